"""From an index of a variable to hyperslabs.

netCDF reads boxes with a stride. An index by arrays (one a dimension) is taken apart into few boxes: indices
that lie close together share one, what lies between them is read and dropped.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from .. import _memory

__all__ = ["Piece", "Plan", "box", "plan", "read"]

# Indices at most this far apart are read in one piece: below it a second call costs more than what is
# read for nothing.
_JOIN = 16

Reader = Callable[[tuple[int, ...], tuple[int, ...], "tuple[int, ...] | None", np.ndarray], None]


class Piece(NamedTuple):
    """A run along one dimension: what is read, which of it is kept, and where in the result it goes."""

    start: int
    count: int
    stride: int
    keep: np.ndarray | None
    into: slice


class Plan(NamedTuple):
    """The runs of one dimension; ``length`` is None if the index was a number."""

    pieces: tuple[Piece, ...]
    length: int | None
    order: Any = None  # an index of the result, where its order differs from that of the file


def _plan_slice(key: slice, size: int) -> Plan:
    start, stop, step = key.indices(size)
    count = len(range(start, stop, step))
    if step < 0:
        start, step, order = start + (count - 1) * step, -step, slice(None, None, -1)
    else:
        order = None
    if count == 0:
        start, step = 0, 1
    return Plan((Piece(start, count, step if count > 1 else 1, None, slice(0, count)),), count, order)


def _plan_array(key: np.ndarray, size: int) -> Plan:
    if key.dtype.kind == "b":
        key = np.flatnonzero(key)
    index = key.astype(np.int64, copy=False)
    if index.size == 0:
        return Plan((Piece(0, 0, 1, None, slice(0, 0)),), 0)
    low, high = int(index.min()), int(index.max())
    if low < -size or high >= size:
        raise IndexError(f"index {low if low < -size else high} is out of bounds for a dimension of {size}")
    if low < 0:
        index = np.where(index < 0, index + size, index)
    steps = np.diff(index)
    order = None
    if steps.size and int(steps.min()) <= 0:
        index, order = np.unique(index, return_inverse=True)
        order = order.ravel()
        steps = np.diff(index)
    if steps.size == 0:
        return Plan((Piece(int(index[0]), 1, 1, None, slice(0, 1)),), 1, order)
    if int(steps.min()) == int(steps.max()):
        piece = Piece(int(index[0]), index.size, int(steps[0]), None, slice(0, index.size))
        return Plan((piece,), index.size, order)
    bounds = [0, *(np.flatnonzero(steps > _JOIN) + 1).tolist(), index.size]
    pieces = []
    for begin, end in itertools.pairwise(bounds):
        start, last = int(index[begin]), int(index[end - 1])
        count = last - start + 1
        keep = None if count == end - begin else index[begin:end] - start
        pieces.append(Piece(start, count, 1, keep, slice(begin, end)))
    return Plan(tuple(pieces), index.size, order)


def plan(key: Sequence[Any], shape: Sequence[int]) -> list[Plan]:
    """The runs of each dimension.

    Parameters
    ----------
    key : sequence of int, slice or 1-D array
        One a dimension, as in xarray's BasicIndexer and OuterIndexer.
    shape : sequence of int
        The lengths of the dimensions.

    Raises
    ------
    IndexError
        If an index leaves its dimension.
    """
    plans = []
    for part, size in zip(key, shape, strict=True):
        if isinstance(part, slice):
            plans.append(_plan_slice(part, size))
        elif isinstance(part, np.ndarray) and part.ndim > 0:
            plans.append(_plan_array(part, size))
        else:
            number = int(part)
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of bounds for a dimension of {size}")
            number += size if number < 0 else 0
            plans.append(Plan((Piece(number, 1, 1, None, slice(0, 1)),), None))
    return plans


def box(
    key: Sequence[Any], shape: Sequence[int]
) -> tuple[list[int], list[int], list[int] | None, list[int]] | None:
    """The one hyperslab of an index by numbers and slices that go forwards; None for any other.

    Returns
    -------
    start, count, stride, shape
        ``stride`` is None where every step is 1; ``shape`` is without the dimensions that were indexed by a number.

    Raises
    ------
    IndexError
        If an index leaves its dimension.
    """
    start, count, stride, kept = [], [], [], []
    for part, size in zip(key, shape, strict=True):
        if isinstance(part, slice):
            first, stop, step = part.indices(size)
            if step < 1:
                return None
            length = len(range(first, stop, step))
            start.append(first if length else 0)
            stride.append(step if length > 1 else 1)
            kept.append(length)
            count.append(length)
        elif isinstance(part, (int, np.integer)):
            number = int(part)
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of bounds for a dimension of {size}")
            start.append(number + size if number < 0 else number)
            stride.append(1)
            count.append(1)
        else:
            return None
    return start, count, stride if max(stride, default=1) > 1 else None, kept


def _fetch(pieces: Sequence[Piece], dtype: np.dtype, reader: Reader, out: np.ndarray | None) -> np.ndarray:
    counts = tuple(piece.count for piece in pieces)
    stride = None if all(piece.stride == 1 for piece in pieces) else tuple(piece.stride for piece in pieces)
    if out is None:
        out = _memory.empty(counts, dtype)
    if out.size:
        reader(tuple(piece.start for piece in pieces), counts, stride, out)
    if any(piece.keep is not None for piece in pieces):
        out = out[np.ix_(*(np.arange(p.count) if p.keep is None else p.keep for p in pieces))]
    return out


def read(plans: Sequence[Plan], dtype: np.dtype, reader: Reader) -> np.ndarray:
    """Read what the plans say.

    Parameters
    ----------
    plans : sequence of Plan
        One a dimension.
    dtype : numpy.dtype
        Of the result.
    reader : callable
        ``reader(start, count, stride, out)`` fills ``out`` with one hyperslab.

    Returns
    -------
    numpy.ndarray
        Without the dimensions that were indexed by a number.
    """
    if all(len(p.pieces) == 1 for p in plans):
        result = _fetch([p.pieces[0] for p in plans], dtype, reader, None)
    else:
        result = _memory.empty(tuple(1 if p.length is None else p.pieces[-1].into.stop for p in plans), dtype)
        for pieces in itertools.product(*(p.pieces for p in plans)):
            into = tuple(piece.into for piece in pieces)
            part = result[into]
            straight = part.flags.c_contiguous and all(piece.keep is None for piece in pieces)
            if straight:
                _fetch(pieces, dtype, reader, part)
            else:
                result[into] = _fetch(pieces, dtype, reader, None)
    for axis, p in enumerate(plans):
        if isinstance(p.order, slice):
            result = np.flip(result, axis)
        elif p.order is not None:
            result = np.take(result, p.order, axis)
    scalars = tuple(axis for axis, p in enumerate(plans) if p.length is None)
    return result.reshape(tuple(n for axis, n in enumerate(result.shape) if axis not in scalars))
