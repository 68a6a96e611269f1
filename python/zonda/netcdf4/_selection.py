# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `variable[...]` selects, by netCDF4-python's rules.

Indexing is orthogonal: integers, slices, one ellipsis, and lists or arrays of one dimension of integers or
booleans, each for its own axis. Writing may reach behind the end of an unlimited dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

INVALID = "only integers, slices (`:`), ellipsis (`...`), and 1-d integer or boolean arrays are valid indices"
FULL = slice(None, None, None)


class Selection:
    """A selection: per axis a start, a count and a step, or a list of indices in its place.

    `scalars` are the axes that vanish from the result.
    """

    __slots__ = ("starts", "counts", "steps", "lists", "scalars")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.counts: list[int] = []
        self.steps: list[int] = []
        self.lists: dict[int, np.ndarray] = {}
        self.scalars: list[int] = []

    def add(self, start: int, count: int, step: int) -> None:
        self.starts.append(start)
        self.counts.append(count)
        self.steps.append(step)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis; an integer is one."""
        return tuple(self.counts)

    @property
    def is_empty(self) -> bool:
        return 0 in self.counts

    def squeezed(self) -> tuple[Any, ...]:
        """The index that takes the axes of integers out of an array of `shape`."""
        return tuple(0 if axis in self.scalars else FULL for axis in range(len(self.counts)))

    def takes_whole(self, axis: int, length: int) -> bool:
        """Whether an axis is taken whole by a slice, or a list that is one."""
        if axis in self.lists and not self.is_empty:
            return length == 1
        if axis in self.lists:
            return False
        if axis in self.scalars:
            return length == 1 and not self.is_empty
        return self.counts[axis] == length


def is_int(value: Any) -> bool:
    """Whether a value is an integer by its value."""
    try:
        return bool(int(value) == value)
    except Exception:  # whatever the value's own type raises
        return False


def _items(elem: Any) -> list[Any]:
    """The indices, one an axis, of what stands in the brackets."""
    if isinstance(elem, tuple):
        return list(elem)
    if np.iterable(elem):
        if isinstance(elem, np.ndarray) or all(is_int(e) for e in elem):
            return [elem]
        return list(elem)
    return [elem]


def _index(item: Any, axis: int, shape: tuple[int, ...], grows: bool) -> Any:
    """One index: an int, a slice, or an array of non-negative integers."""
    if isinstance(item, (str, bytes)):
        try:
            return int(item)
        except ValueError:
            raise IndexError(INVALID) from None
    array = np.asarray(item)
    if array.ndim > 1:
        raise IndexError("Index cannot be multidimensional")
    if array.ndim == 1 and array.dtype.kind == "b":
        if not grows and shape[axis] != len(array):
            raise IndexError("\nBoolean array must have the same shape as the data along this dimension.")
        array = np.flatnonzero(array)
    if array.ndim == 1 and array.dtype.kind == "i":
        array = np.where(array < 0, array + shape[axis], array)
        if (array < 0).any():
            raise IndexError("integer index out of range")
        if array.size and not grows and array.max() >= shape[axis]:
            raise IndexError("integer index exceeds dimension size")
        return array
    if array.ndim == 0 and array.dtype.kind == "f":
        if not np.isfinite(item) or item != np.floor(item):
            raise IndexError(INVALID)
        return int(item)
    try:
        return int(item)
    except (TypeError, ValueError, OverflowError):
        raise IndexError(INVALID) from None


def _progression(indices: np.ndarray) -> Any:
    """A slice, if the indices rise by the same step, else the indices."""
    if indices.size == 0:
        return slice(0, 0, 1)
    first = int(indices[0])
    if indices.size == 1:
        return slice(first, first + 1, 1)
    step = int(indices[1]) - first
    if step > 0 and (np.diff(indices) == step).all():
        return slice(first, int(indices[-1]) + 1, step)
    return indices


def parse(elem: Any, shape: tuple[int, ...], unlimited: Sequence[bool] = ()) -> list[Any]:
    """The indices of all axes: ints, slices and arrays of integers that are no progressions.

    Raises
    ------
    IndexError
        Something that is no index, or is outside.
    ValueError
        More indices than dimensions.
    """
    ndim = len(shape)
    items = _items(elem)
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("At most one ellipsis allowed in a slicing expression")
    found: list[Any] = []
    axis = 0
    for item in items:
        if item is Ellipsis:
            missing = ndim - len(items) + 1
            found.extend([FULL] * missing)
            axis += missing
            continue
        if isinstance(item, slice):
            found.append(item)
        elif type(item) is int:
            found.append(item)
        else:
            grows = axis < len(unlimited) and unlimited[axis]
            index = _index(item, axis, shape, grows)
            found.append(_progression(index) if isinstance(index, np.ndarray) else index)
        axis += 1
    found.extend([FULL] * (ndim - len(found)))
    if len(found) > ndim:
        raise ValueError("slicing expression exceeds the number of dimensions of the variable")
    return found


def reading(elem: Any, shape: tuple[int, ...]) -> Selection:
    """What an index reads of a variable of this shape; a scalar has the shape of one element.

    Raises
    ------
    IndexError, ValueError
        As `parse`; an integer that is outside.
    """
    chosen = Selection()
    scalar = not shape
    shape = shape or (1,)
    items = parse(elem, shape)
    for axis, item in enumerate(items):
        if isinstance(item, slice):
            start, stop, step = item.indices(shape[axis])
            chosen.add(start, len(range(start, stop, step)), step)
        elif isinstance(item, np.ndarray):
            chosen.add(0, len(item), 1)
            chosen.lists[axis] = item
        else:
            chosen.add(_at(item, shape[axis]), 1, 1)
            chosen.scalars.append(axis)
    if not scalar:
        for axis in chosen.scalars:
            if chosen.starts[axis] >= shape[axis]:
                empty = chosen.is_empty
                raise IndexError("integer index exceeds dimension size" if empty else "index exceeds dimension bounds")
    return chosen


def _at(index: int, length: int) -> int:
    if index >= 0:
        return index
    if -index <= length:
        return index + length
    raise IndexError("Index out of range")


def writing(elem: Any, shape: tuple[int, ...], unlimited: Sequence[bool], data_shape: tuple[int, ...]) -> Selection:
    """What an index writes with data of a shape, `()` for one value.

    Along an unlimited dimension a slice without end takes as much as the data have.

    Raises
    ------
    IndexError, ValueError
        As `reading`; data that do not fit.
    """
    chosen = Selection()
    shape = shape or (1,)
    unlimited = unlimited or (False,) * len(shape)
    grows = any(unlimited)
    items = parse(elem, shape, unlimited)
    if data_shape and not grows and all(isinstance(i, slice) and i == FULL for i in items):
        data_shape = np.broadcast_shapes(shape, data_shape)
    data_shape = _aligned(items, shape, unlimited, data_shape)
    for axis, item in enumerate(items):
        if isinstance(item, slice):
            length = _reach(item, axis, shape, unlimited, data_shape)
            start, stop, step = item.indices(length)
            chosen.add(start, len(range(start, stop, step)), step)
        elif isinstance(item, np.ndarray):
            chosen.add(0, len(item), 1)
            chosen.lists[axis] = item
        else:
            chosen.add(_at(item, shape[axis]), 1, 1)
            chosen.scalars.append(axis)
    return chosen


def _aligned(
    items: list[Any], shape: tuple[int, ...], unlimited: Sequence[bool], data_shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The data's shape with a place for each axis that an integer selects."""
    if not data_shape or len(data_shape) == len(items):
        return data_shape
    sliced = sum(isinstance(item, slice) for item in items)
    for axis, item in enumerate(items):
        if not isinstance(item, slice):
            continue
        length = shape[axis]
        if unlimited[axis]:
            if item.stop is None:
                continue
            length = max(length, item.stop)
        if not range(*item.indices(length)):
            # Nothing is written, whatever the lists are.
            sliced = sum(isinstance(item, (slice, np.ndarray)) for item in items)
            break
    if len(data_shape) != sliced:
        return data_shape
    lengths = iter(data_shape)
    # The iterator ends where lists follow slices that the data have no axis for.
    return tuple(next(lengths, 0) if isinstance(item, (slice, np.ndarray)) else 0 for item in items)


def _reach(item: slice, axis: int, shape: tuple[int, ...], unlimited: Sequence[bool], data_shape: tuple[int, ...]) -> int:
    """The length of an axis that a slice of a writing is of."""
    if not unlimited[axis]:
        return shape[axis]
    if item.stop is not None:
        return int(max(item.stop, shape[axis]))
    if data_shape:
        if axis >= len(data_shape):
            raise IndexError("shape of data does not conform to slice")
        length = int(data_shape[axis] + (item.start or 0))
        if length < 0:
            raise ValueError("length should not be negative")
        return length
    # One value into a dimension without length yet makes it one long.
    return 1 if shape[-1] == 0 else shape[axis]
