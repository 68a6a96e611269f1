# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies of files: another format, other chunks, other filters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Callable, Union

from . import filters as _filters
from ._progress import Meter
from .dataset import _FORMATS, Dataset, Source, open
from .filters import FilterSpec

__all__ = ["Copied", "copy"]

Chunks = Union["Mapping[str, int]", "Mapping[str, Mapping[str, int]]"]
Filters = Union["Iterable[FilterSpec]", "Mapping[str, Iterable[FilterSpec]]"]


@dataclass(frozen=True)
class Copied:
    """What a copy did.

    Attributes
    ----------
    ways : dict of str
        By the path of each variable: ``"stored"`` (its chunks as they were), ``"values"`` (read and written),
        ``"spilled"`` (by way of a file in between), ``"nothing"`` (there was no data), ``"before"`` (by an earlier copy).
    sizes : dict of int
        By path, the bytes of its values in memory.
    notes : list of str
        What is not as in the source.
    """

    ways: dict[str, str]
    sizes: dict[str, int]
    notes: list[str]


def copy(
    source: Source | Dataset,
    target: str | bytes | os.PathLike[str],
    *,
    format: str | None = None,
    group: str | None = None,
    variables: Iterable[str] = (),
    exclude: Iterable[str] = (),
    chunks: Chunks | None = None,
    contiguous: Iterable[str] = (),
    filters: Filters | None = None,
    fix_unlimited: bool = False,
    memory: int | None = None,
    replace: bool = False,
    resume: bool = False,
    progress: bool | Callable[[str, int, int], object] = False,
) -> Copied:
    """Copies a file into another format, other chunks or other filters, as ``zonda copy`` does.

    What is not asked to be otherwise stays as it is. Chunks that stay are copied without being decompressed, others go
    through all cores in memory of a fixed size. The target gets its name when it is complete.

    Parameters
    ----------
    source
        What `zonda.open` takes, or a dataset that is open.
    target
        The place of the copy.
    format
        Its format, as for `zonda.create`; that of the source by default.
    group
        Path of the group that becomes the root group.
    variables, exclude
        Names or paths, in which ``*`` and ``?`` stand for any text and any character: only these (with their
        coordinates), and not these.
    chunks
        Elements of a chunk by dimension, 0 for all there are: of every variable in chunks and those of at least 8 KiB,
        or, of some, in a dict by variable.
    contiguous
        Variables that are stored without chunks and filters.
    filters
        In place of those of the source, as for `Group.create_variable`, none to store chunks as they are; or a dict of
        them by variable.
    fix_unlimited
        Unlimited dimensions get the length they have.
    memory
        Bytes for data; 256 MiB by default.
    replace
        Replace a target that is there.
    resume
        A copy that breaks off leaves the variables that are complete in ``TARGET.zonda-part``, and this one goes on with those
        that an earlier copy with ``resume`` of the same source has left.
    progress
        Show a bar, if tqdm is installed; or what is called with a variable, bytes done and bytes in all, and ends the
        copy by raising.

    Raises
    ------
    FileExistsError
        If the target is there.
    zonda.NetCDFError
        What the format of the target cannot hold, with names, before anything is written; what reading and writing meet.
        Nothing is left of the target then (but for `resume`), and one that was there stays as it was.

    Examples
    --------
    >>> import zonda
    >>> with zonda.create("maps.nc") as ds:
    ...     v = ds.create_variable("t", data=[[1.0, 2.0], [3.0, 4.0]], dims=("time", "x"), chunks=(1, 2))
    >>> zonda.copy("maps.nc", "series.nc", chunks={"time": 0, "x": 1}, filters=["shuffle", ("zstd", 3)]).ways
    {'/t': 'values'}
    >>> with zonda.open("series.nc") as ds:
    ...     ds["t"].chunk_shape, ds["t"][:, 1]
    ((2, 1), array([2., 4.]))
    """
    if format is not None and format not in _FORMATS:
        raise ValueError(f"no format {format!r}; there are {', '.join(_FORMATS)}")
    is_open = isinstance(source, Dataset)
    dataset = source if isinstance(source, Dataset) else open(source)
    try:
        with _Bar(progress) as tell:
            ways, notes = dataset._file.copy(
                os.fspath(target),
                format=None if format is None else _FORMATS[format],
                group=group,
                variables=list(variables),
                exclude=list(exclude),
                chunks=_chunk_rules(chunks),
                contiguous=list(contiguous),
                filters=_filter_rules(filters),
                fix_unlimited=fix_unlimited,
                memory=memory,
                replace=replace,
                resume=resume,
                progress=tell,
            )
    finally:
        if not is_open:
            dataset.close()
    return Copied({path: way for path, _, way in ways}, {path: size for path, size, _ in ways}, notes)


def _chunk_rules(chunks: Chunks | None) -> list[tuple[str | None, list[tuple[str, int]]]]:
    if not chunks:
        return []
    of_some: list[tuple[str | None, list[tuple[str, int]]]] = []
    of_all: list[tuple[str, int]] = []
    for name, size in chunks.items():
        if isinstance(size, Mapping):
            of_some.append((name, [(dim, _size(n)) for dim, n in size.items()]))
        else:
            of_all.append((name, _size(size)))
    # The last rule for an axis counts: what is said of some variables.
    return ([(None, of_all)] if of_all else []) + of_some


def _size(n: int) -> int:
    if n < 0:
        raise ValueError(f"a chunk has no {n} elements")
    return int(n)


def _filter_rules(filters: Filters | None) -> list[tuple[list[str], list[tuple[str | int, list[int]]]]]:
    if filters is None:
        return []
    if isinstance(filters, Mapping):
        return [([name], _filters.parse(pipeline)) for name, pipeline in filters.items()]
    return [([], _filters.parse(filters))]


class _Bar:
    """What is told of progress: whom it is told, or a bar."""

    def __init__(self, progress: bool | Callable[[str, int, int], object]) -> None:
        self._call = progress if callable(progress) else None
        self._wanted = progress is True
        self._meter: Meter | None = None
        self._done = 0

    def __enter__(self) -> Callable[[str, int, int], object] | None:
        return self._call or (self._show if self._wanted else None)

    def _show(self, variable: str, done: int, total: int) -> None:
        if self._meter is None:
            self._meter = Meter(True, "copying", total)
        self._meter.add(done - self._done)
        self._done = done

    def __exit__(self, *_: object) -> None:
        if self._meter is not None:
            self._meter.__exit__(None, None, None)
