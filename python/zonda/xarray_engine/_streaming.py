"""Arrays on their way to a file, a part at a time."""

from __future__ import annotations

import itertools
import math
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np
from xarray.core import indexing

from zonda import _zonda

from ._xarray import ArrayWriter, dask_scheduler, write_lock

if TYPE_CHECKING:
    from xarray import Dataset, Variable

__all__ = ["FileLock", "Progress", "StreamingWriter", "in_parts", "lock_for"]

_LOADED = (indexing.NumpyIndexingAdapter, indexing.PandasIndexingAdapter)

# What is held of a lazy array, or of blocks that come back from processes, at a time.
_PART_BYTES = 64 << 20


def in_parts(dataset: Dataset) -> Dataset:
    """Large variables that are lazy, but no dask arrays, as dask arrays: so they are read and written in parts.

    Parts are slabs along the first dimension of about 64 MiB, of whole chunks of the file where its chunks
    are known. Without dask they are loaded when they are encoded, as xarray does.
    """
    try:
        import dask.array  # noqa: F401
    except ImportError:
        return dataset
    parts: dict[Any, Variable] = {}
    for name, variable in dataset.variables.items():
        data = variable._data
        lazy = isinstance(data, indexing.ExplicitlyIndexed) and not isinstance(data, _LOADED)
        nbytes = variable.size * variable.dtype.itemsize
        if not lazy or variable.ndim == 0 or nbytes <= _PART_BYTES or variable.dims == (name,):
            continue
        rows = max(1, _PART_BYTES * variable.shape[0] // nbytes)
        chunks = variable.encoding.get("chunksizes")
        if chunks and rows > chunks[0]:
            rows -= rows % chunks[0]
        parts[name] = variable.chunk({variable.dims[0]: rows})
    coords = {name: part for name, part in parts.items() if name in dataset.coords}
    rest = {name: part for name, part in parts.items() if name not in coords}
    return dataset.assign_coords(coords).assign(rest) if parts else dataset


class FileLock:
    """A lock between processes of one machine for who writes a file; it can be pickled.

    It is a ``flock`` of the folder, as the engine locks the file itself. Each use has a descriptor of its
    own, so it keeps threads apart, too.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._held = threading.local()

    def __enter__(self) -> FileLock:
        import fcntl

        self._held.fd = os.open(os.path.dirname(self.path) or ".", os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._held.fd, fcntl.LOCK_EX)
        return self

    def __exit__(self, *args: Any) -> None:
        os.close(self._held.fd)  # which gives the lock back

    def __reduce__(self) -> Any:
        return FileLock, (self.path,)


def lock_for(path: str) -> Any:
    """A lock for those who write one file under the scheduler that dask uses now."""
    if dask_scheduler() == "multiprocessing":
        return FileLock(path)
    return write_lock(path)


class StreamingWriter(ArrayWriter):
    """Writes dask arrays under any scheduler with no lock and bounded memory.

    Threads put their blocks themselves. Under processes and distributed, blocks are computed there and
    written here, in the one process that has the file open: with distributed as they come, each released
    when it is written; with processes in rounds of about 64 MiB or two blocks a core.
    """

    __slots__ = ()

    def compute(self) -> None:
        """Compute and write all that was added."""
        scheduler = dask_scheduler() if self.sources else None
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
    import dask

    least = 2 * _zonda.threads()
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
