"""Many files at once."""

from __future__ import annotations

import glob
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable

import xarray as xr

from zonda import _remote, _zonda

from ._entrypoint import ZondaBackendEntrypoint

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["open_mfdataset"]


def open_mfdataset(
    paths: Any,
    *,
    threads: int | None = None,
    preprocess: Callable[[Dataset], Dataset] | None = None,
    combine: str = "by_coords",
    concat_dim: Any = None,
    chunks: Any = None,
    attrs_file: Any = None,
    compat: Any = "no_conflicts",
    data_vars: Any = "all",
    coords: Any = "different",
    join: Any = "outer",
    combine_attrs: Any = "override",
    **kwargs: Any,
) -> Dataset:
    """Open many files and combine them, as `xarray.open_mfdataset` does; files are opened by several threads.

    Parameters
    ----------
    paths : str or (nested) list of paths
        A glob pattern, or paths; for ``combine="nested"`` nested as the dimensions of `concat_dim`.
    threads : int, optional
        How many threads open files; by default as many as the library computes with (``ZONDA_THREADS``), 4 at
        least and 32 at most. One core gains, too: while one file waits for the disk, another is decoded.
    chunks : dict, optional
        As in xarray; None leaves arrays lazy or loads them, as combining needs it. ``{}`` gives dask arrays
        with the chunks of the files.
    preprocess, combine, concat_dim, compat, data_vars, coords, join, combine_attrs, attrs_file
        As in `xarray.open_mfdataset`.
    **kwargs
        Passed to `xarray.open_dataset` (``group``, ``decode_times`` ...).

    Raises
    ------
    OSError
        If there is no file, or one cannot be opened; those that are open are closed then.
    ValueError
        For an unknown `combine`.
    """
    if isinstance(paths, (str, os.PathLike)):
        pattern = os.fspath(paths)
        paths = [pattern] if _remote.is_url(pattern) else sorted(glob.glob(pattern))
        if not paths:
            raise FileNotFoundError(f"no files match {pattern!r}")
    flat: list[Any] = []
    shape = _flatten(list(paths), flat)
    if not flat:
        raise OSError("no files to open")
    if combine not in ("by_coords", "nested"):
        raise ValueError(f"{combine} is an invalid option for the keyword argument ``combine``")

    def open_one(path: Any) -> tuple[Dataset, Callable[[], None]]:
        dataset = xr.open_dataset(path, engine=ZondaBackendEntrypoint, chunks=chunks, **kwargs)
        close = dataset.close
        return (dataset if preprocess is None else preprocess(dataset)), close

    # They wait for the device more than they compute.
    workers = threads or min(32, max(4, _zonda.threads()))
    closers: list[Callable[[], None]] = []
    try:
        with ThreadPoolExecutor(max(1, min(workers, len(flat))), "zonda-open") as pool:
            futures = [pool.submit(open_one, path) for path in flat]
            datasets, failure = [], None
            for future in futures:
                try:
                    dataset, close = future.result()
                    datasets.append(dataset)
                    closers.append(close)
                except BaseException as error:
                    failure = failure or error
                    for other in futures:
                        other.cancel()
        if failure is not None:
            raise failure
        rules = dict(compat=compat, data_vars=data_vars, coords=coords, join=join, combine_attrs=combine_attrs)
        if combine == "nested":
            combined = xr.combine_nested(_nest(shape, iter(datasets)), concat_dim=concat_dim, **rules)
        else:
            combined = xr.combine_by_coords(datasets, **rules)
    except BaseException:
        for close in closers:
            close()
        raise

    def close_all() -> None:
        for close in closers:
            close()

    combined.set_close(close_all)
    if attrs_file is not None:
        combined.attrs = datasets[flat.index(os.fspath(attrs_file))].attrs
    return combined


def _flatten(paths: list[Any], flat: list[Any]) -> list[Any]:
    """Collect the leaves; gives the shape as nested lists."""
    shape: list[Any] = []
    for path in paths:
        if isinstance(path, (list, tuple)):
            shape.append(_flatten(list(path), flat))
        else:
            shape.append(None)
            flat.append(os.fspath(path) if isinstance(path, os.PathLike) else path)
    return shape


def _nest(shape: list[Any], leaves: Any) -> list[Any]:
    return [next(leaves) if part is None else _nest(part, leaves) for part in shape]
