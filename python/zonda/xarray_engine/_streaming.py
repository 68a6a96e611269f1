"""Arrays on their way to a file, a part at a time."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any, Callable, Iterator

import numpy as np
from xarray.backends.common import ArrayWriter
from xarray.core import indexing
from xarray.core.variable import Variable

__all__ = ["Progress", "StreamingWriter", "scheduler_name", "write_variable"]

# What is held of a lazy array, or of blocks that come back from processes, at a time.
_PART_BYTES = 64 << 20


def scheduler_name() -> str | None:
    """``"threaded"``, ``"multiprocessing"`` or ``"distributed"``; None without dask."""
    from xarray.backends.locks import get_dask_scheduler

    return get_dask_scheduler()


def write_variable(variable: Variable, target: Any, writer: ArrayWriter) -> None:
    """Hand the values of a variable to the writer.

    Lazy arrays that are larger than 64 MiB are read and written in slabs along their first dimension, of
    whole chunks of the file where its chunks are known.
    """
    data = variable._data
    nbytes = variable.size * variable.dtype.itemsize
    lazy = isinstance(data, indexing.ExplicitlyIndexed) and not isinstance(data, indexing.NumpyIndexingAdapter)
    if not lazy or variable.ndim == 0 or nbytes <= _PART_BYTES:
        writer.add(variable.data, target)
        return
    rows = max(1, int(_PART_BYTES // max(1, nbytes // variable.shape[0])))
    chunks = variable.encoding.get("chunksizes")
    if chunks and rows > chunks[0]:
        rows -= rows % chunks[0]
    for first in range(0, variable.shape[0], rows):
        slab = slice(first, min(first + rows, variable.shape[0]))
        target[slab] = variable[slab].values


class StreamingWriter(ArrayWriter):
    """Writes dask arrays under any scheduler with no lock and bounded memory.

    Threads put their blocks themselves. Under processes and distributed, blocks are computed there and
    written here, in the one process that has the file open: with distributed as they come, each released
    when it is written; with processes in rounds of about 64 MiB or two blocks a core.
    """

    __slots__ = ()

    def compute(self) -> None:
        """Compute and write all that was added."""
        scheduler = scheduler_name() if self.sources else None
        if scheduler not in ("distributed", "multiprocessing") or not _all_dask(self.sources):
            self.sync(compute=True)
            return
        import dask

        sources, targets = self.sources, self.targets
        self.sources, self.targets, self.regions = [], [], []
        sources = dask.optimize(*sources)
        blocks = itertools.chain.from_iterable(map(_blocks, sources, targets))
        if scheduler == "distributed":
            _through_cluster(list(blocks))
        else:
            _in_rounds(blocks)


Block = "tuple[Any, Any, tuple[slice, ...], int]"


def _all_dask(sources: list[Any]) -> bool:
    return all(hasattr(source, "to_delayed") and hasattr(source, "dask") for source in sources)


def _blocks(source: Any, target: Any) -> Iterator[Any]:
    """Every block as (delayed, target, region, bytes)."""
    delayed = source.to_delayed(optimize_graph=False)
    bounds = [np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist() for sizes in source.chunks]
    for index in np.ndindex(*source.numblocks):
        region = tuple(slice(b[i], b[i + 1]) for b, i in zip(bounds, index, strict=True))
        nbytes = math.prod(r.stop - r.start for r in region) * source.dtype.itemsize
        yield delayed[index], target, region, nbytes


def _through_cluster(blocks: list[Any]) -> None:
    from distributed import as_completed, get_client

    client = get_client()
    # All at once: whatever blocks share is computed once, and workers that fill up spill or wait.
    futures = client.compute([block[0] for block in blocks])
    # Blocks may be equal, and then their futures have one key.
    places: dict[str, list[Any]] = {}
    for future, block in zip(futures, blocks, strict=True):
        places.setdefault(future.key, []).append(block)
    unique = list({future.key: future for future in futures}.values())
    del futures
    queue = as_completed(unique, with_results=True)
    try:
        for future, result in queue:
            for _, target, region, _ in places[future.key]:
                target[region] = result
            future.release()
    except BaseException:
        client.cancel(unique)
        raise


def _in_rounds(blocks: Iterator[Any]) -> None:
    import os

    import dask

    least = 2 * (os.cpu_count() or 1)
    round_: list[Any] = []
    held = 0

    def flush() -> None:
        for result, (_, target, region, _) in zip(dask.compute(*(b[0] for b in round_)), round_, strict=True):
            target[region] = result
        round_.clear()

    for block in blocks:
        round_.append(block)
        held += block[3]
        if held >= _PART_BYTES and len(round_) >= least:
            flush()
            held = 0
    if round_:
        flush()


class Progress:
    """A tqdm bar of the bytes that were handed to the file; ``put`` may be called from any thread.

    Parameters
    ----------
    wanted : bool or callable
        True for tqdm; or a function that is called with the bytes of each block.
    total : int
        Bytes in all.
    """

    def __init__(self, wanted: bool | Callable[[int], Any], total: int, name: str) -> None:
        self._lock = threading.Lock()
        self._bar: Any = None
        self._call: Callable[[int], Any] | None = None
        if callable(wanted):
            self._call = wanted
        elif wanted:
            try:
                from tqdm.auto import tqdm
            except ImportError as error:
                raise ImportError("progress=True needs the package tqdm") from error
            self._bar = tqdm(total=total, unit="B", unit_scale=True, desc=name)

    @property
    def wanted(self) -> bool:
        return self._bar is not None or self._call is not None

    def put(self, nbytes: int) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.update(nbytes)
            elif self._call is not None:
                self._call(nbytes)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
