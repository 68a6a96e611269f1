# SPDX-License-Identifier: MIT OR Apache-2.0
"""A selection's elements between the file and an array.

The engine takes start, count and a positive stride. Negative steps are read forwards and turned; lists are
read run by run, or as the box around them where that is less work.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _memory
from ._selection import FULL, Selection

# Reads `out.shape` elements from start and stride (None: 1) on into `out`.
Reader = Callable[[tuple[int, ...], tuple[int, ...], "tuple[int, ...] | None", np.ndarray], Any]
Writer = Reader

# A box around listed elements is read instead of the runs when it has at most so many times their number,
# or is so small that calls cost more than elements.
BOX_FACTOR = 4
BOX_SMALL = 1 << 16


def read(selection: Selection, dtype: np.dtype, get: Reader, ndim: int) -> np.ndarray:
    """The selected elements, an array of the selection's shape.

    Parameters
    ----------
    dtype : native, or object
    ndim : dimensions of the variable; a scalar's selection has one axis more
    """
    if selection.is_empty:
        return np.empty(selection.shape, dtype)
    if not selection.lists:
        return _block(selection.starts, selection.counts, selection.steps, dtype, get, ndim)
    box = _box(selection)
    if box is not None:
        starts, counts, indices = box
        whole = _block(starts, counts, selection.steps, dtype, get, ndim)
        for axis, index in indices.items():
            whole = np.take(whole, index, axis=axis)
        return whole
    out = _memory.empty(selection.shape, dtype)
    for place, starts, counts in _pieces(selection):
        out[place] = _block(starts, counts, selection.steps, dtype, get, ndim)
    return out


def write(selection: Selection, data: np.ndarray, put: Writer, ndim: int) -> None:
    """Writes an array of the selection's shape."""
    if selection.is_empty:
        return
    for place, starts, counts in _pieces(selection):
        part = data[place] if selection.lists else data
        begins, strides, turned = _forwards(starts, counts, selection.steps)
        if turned:
            part = part[turned]
        if not part.flags.c_contiguous:
            part = part.copy()
        put(begins[:ndim], tuple(counts)[:ndim], strides[:ndim] if strides else None, part)


def _block(starts: list[int], counts: list[int], steps: list[int], dtype: np.dtype, get: Reader, ndim: int) -> np.ndarray:
    """One hyperslab, with steps of either sign."""
    out = _memory.empty(tuple(counts), dtype)
    begins, strides, turned = _forwards(starts, counts, steps)
    get(begins[:ndim], tuple(counts)[:ndim], strides[:ndim] if strides else None, out)
    return out[turned].copy() if turned else out


def _forwards(starts: list[int], counts: list[int], steps: list[int]) -> tuple[tuple[int, ...], Any, Any]:
    """Starts, strides (None if all are 1) and the index that turns what ran backwards (None if nothing did)."""
    if all(step == 1 for step in steps):
        return tuple(starts), None, None
    begins = tuple(
        start + step * (count - 1) if step < 0 else start
        for start, count, step in zip(starts, counts, steps, strict=True)
    )
    # A stride of a single element says nothing, and may be longer than the dimension.
    strides = tuple(1 if count == 1 else abs(step) for count, step in zip(counts, steps, strict=True))
    turned = tuple(slice(None, None, -1) if step < 0 else FULL for step in steps)
    return begins, strides, turned if any(step < 0 for step in steps) else None


def _box(selection: Selection) -> tuple[list[int], list[int], dict[int, np.ndarray]] | None:
    """The box around the listed elements, if reading it is less work than the runs."""
    starts, counts = list(selection.starts), list(selection.counts)
    indices = {}
    runs = 1
    for axis, wanted in selection.lists.items():
        low, high = int(wanted.min()), int(wanted.max())
        starts[axis], counts[axis] = low, high - low + 1
        indices[axis] = wanted - low
        runs *= len(_runs(wanted))
    box = _elements(counts)
    if runs > 1 and box > max(BOX_FACTOR * _elements(selection.counts), BOX_SMALL):
        return None
    return starts, counts, indices


def _elements(counts: list[int]) -> int:
    number = 1
    for count in counts:
        number *= count
    return number


def _runs(indices: np.ndarray) -> list[tuple[int, int]]:
    """Begin and end, in the list, of each part that rises by one."""
    cuts = np.flatnonzero(np.diff(indices) != 1) + 1
    edges = [0, *cuts.tolist(), len(indices)]
    return list(itertools.pairwise(edges))


def _pieces(selection: Selection) -> Iterator[tuple[tuple[slice, ...], list[int], list[int]]]:
    """The hyperslabs of a selection with lists: their place in the array, starts and counts."""
    axes = list(selection.lists)
    for cut in itertools.product(*(_runs(selection.lists[axis]) for axis in axes)):
        place = [FULL] * len(selection.counts)
        starts, counts = list(selection.starts), list(selection.counts)
        for axis, (begin, end) in zip(axes, cut, strict=True):
            place[axis] = slice(begin, end)
            starts[axis], counts[axis] = int(selection.lists[axis][begin]), end - begin
        yield tuple(place), starts, counts
