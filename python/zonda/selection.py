"""What an index such as ``v[3, ::-2, [1, 5]]`` means for a variable: hyperslabs of the file and places of an array.

Integers, slices (steps of either sign), ``...`` and ``np.newaxis`` mean what they mean in NumPy. A list, an array of
integers or a mask of booleans counts for its dimension alone ("orthogonally", as in xarray and netCDF4-python), which
NumPy has only through `np.ix_`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A list is read as one hyperslab, and picked from in memory, if at least one in so many elements is wanted.
_DENSE = 4


@dataclass(frozen=True)
class Run:
    """Elements of one dimension that one hyperslab covers, and where they lie in the array."""

    start: int
    count: int
    stride: int
    where: slice


@dataclass(frozen=True)
class Axis:
    """What is selected of one dimension."""

    runs: tuple[Run, ...]
    # Elements that the runs cover together.
    count: int
    # How to get from what the runs cover to what was asked for: nothing, reverse, or an array of places.
    order: slice | NDArray[np.intp] | None
    # Elements asked for; None for an integer, whose axis the result does not have.
    length: int | None
    # Length that the dimension needs for it.
    needs: int


@dataclass(frozen=True)
class Selection:
    """An index, worked out for a shape."""

    axes: tuple[Axis, ...]
    # Places in the result of axes that np.newaxis asked for.
    new_axes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result, np.newaxis included."""
        shape = [axis.length for axis in self.axes if axis.length is not None]
        for place in self.new_axes:
            shape.insert(place, 1)
        return tuple(shape)

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements of each dimension that pass between file and memory."""
        return tuple(axis.count for axis in self.axes)

    @property
    def is_plain(self) -> bool:
        """Whether one hyperslab is the result, but for its axes of length one."""
        return all(len(axis.runs) <= 1 and axis.order is None for axis in self.axes)

    def slabs(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None, tuple[slice, ...]]]:
        """Start, count, stride (None: all 1) of every hyperslab, and its place in an array of shape `counts`."""
        for runs in itertools.product(*(axis.runs for axis in self.axes)):
            strides = tuple(run.stride for run in runs)
            yield (
                tuple(run.start for run in runs),
                tuple(run.count for run in runs),
                None if all(stride == 1 for stride in strides) else strides,
                tuple(run.where for run in runs),
            )

    def pick(self, covered: NDArray[Any]) -> NDArray[Any]:
        """The result, from an array of shape `counts`."""
        for number, axis in enumerate(self.axes):
            if axis.order is None:
                continue
            if isinstance(axis.order, slice):
                covered = covered[(slice(None),) * number + (axis.order,)]
            else:
                covered = np.take(covered, axis.order, axis=number)
        return covered.reshape(self.shape)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """An array of shape `counts`, from values that broadcast to the result's shape."""
        shape = self.shape
        if values.ndim > len(shape):
            # As NumPy has it: leading axes of length one may be too many.
            extra = values.ndim - len(shape)
            if any(length != 1 for length in values.shape[:extra]):
                raise ValueError(f"values of shape {values.shape} do not fit into the selection's {shape}")
            values = values.reshape(values.shape[extra:])
        try:
            values = np.broadcast_to(values, shape)
        except ValueError:
            raise ValueError(f"values of shape {values.shape} do not fit into the selection's {shape}") from None
        full = tuple(1 if axis.length is None else axis.length for axis in self.axes)
        values = values.reshape(full) if values.shape != full else values
        for number, axis in enumerate(self.axes):
            if axis.order is None:
                continue
            before = (slice(None),) * number
            if isinstance(axis.order, slice):
                values = values[before + (axis.order,)]
            else:
                # The last of several values for one element stays, as in NumPy.
                places = np.empty(axis.count, dtype=np.intp)
                places[axis.order] = np.arange(len(axis.order))
                values = values[before + (places,)]
        return values


def select(
    key: Any,
    shape: Sequence[int],
    growing: Sequence[bool] | None = None,
    values_shape: tuple[int, ...] | None = None,
) -> Selection:
    """Works out an index.

    Parameters
    ----------
    key
        What stood between the brackets.
    shape
        Lengths of the dimensions, in elements.
    growing
        For writing: which dimensions may be written beyond their length.
    values_shape
        For writing: shape of what is assigned, which gives ``v[:]`` and ``v[3:]`` their length in dimensions that grow.

    Raises
    ------
    IndexError
        As NumPy: too many indices, an integer out of bounds, a mask of another length.
    TypeError
        For an index that is none of the kinds.
    """
    entries = _expand(key, len(shape))
    grows = tuple(growing) if growing is not None else (False,) * len(shape)
    # The axis of the values that belongs to each entry, counted from the last.
    from_end = sum(not _is_integer(entry) for entry in entries)
    axes: list[Axis] = []
    new_axes: list[int] = []
    kept = 0
    for entry in entries:
        if entry is None:
            new_axes.append(kept)
            kept += 1
            from_end -= 1
            continue
        number = len(axes)
        length, grow = shape[number], grows[number]
        if _is_integer(entry):
            axes.append(_integer(operator.index(entry), length, number, grow))
            continue
        if isinstance(entry, slice):
            given = None
            if grow and values_shape is not None and 0 < from_end <= len(values_shape):
                given = values_shape[-from_end]
            axes.append(_slice(entry, length, grow, given))
        else:
            axes.append(_list(entry, length, number, grow))
        kept += 1
        from_end -= 1
    return Selection(tuple(axes), tuple(new_axes))


def _is_integer(entry: Any) -> bool:
    if isinstance(entry, (bool, np.bool_, slice)) or entry is None or entry is Ellipsis:
        return False
    if isinstance(entry, np.ndarray) and entry.ndim > 0:
        return False
    try:
        operator.index(entry)
    except TypeError:
        return False
    return True


def _expand(key: Any, rank: int) -> list[Any]:
    """One entry a dimension, and None for each new axis."""
    entries = list(key) if isinstance(key, tuple) else [key]
    if rank == 0 and len(entries) == 1 and isinstance(entries[0], slice) and entries[0] == slice(None):
        return []  # v[:] of a scalar, as netCDF programs have it
    dots = [place for place, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if used > rank:
        raise IndexError(f"too many indices: the variable has {rank} dimensions, but {used} were indexed")
    rest = [slice(None)] * (rank - used)
    if dots:
        return entries[: dots[0]] + rest + entries[dots[0] + 1 :]
    return entries + rest


def _integer(index: int, length: int, number: int, grow: bool) -> Axis:
    start = index + length if index < 0 else index
    if start < 0 or (start >= length and not grow):
        raise IndexError(f"index {index} is out of bounds for dimension {number} with length {length}")
    return Axis((Run(start, 1, 1, slice(0, 1)),), 1, None, None, start + 1)


def _slice(entry: slice, length: int, grow: bool, given: int | None) -> Axis:
    step = 1 if entry.step is None else operator.index(entry.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if grow and step > 0:
        start = 0 if entry.start is None else operator.index(entry.start)
        start = max(start + length, 0) if start < 0 else start
        if entry.stop is None:
            count = max(-(-(length - start) // step), 0)
            if given is not None and given != 1:
                count = given
            elif count == 0 and given == 1:
                count = 1
        else:
            stop = operator.index(entry.stop)
            stop = max(stop + length, 0) if stop < 0 else stop
            count = len(range(start, stop, step))
        selected = range(start, start + count * step, step)
    else:
        selected = range(*entry.indices(length))
    count = len(selected)
    if count == 0:
        # No run at all: nothing passes.
        return Axis((), 0, None, 0, 0)
    order = None
    if selected.step < 0 and count > 1:
        selected, order = selected[::-1], slice(None, None, -1)
    run = Run(selected[0], count, selected.step if count > 1 else 1, slice(0, count))
    return Axis((run,), count, order, count, selected[-1] + 1)


def _list(entry: Any, length: int, number: int, grow: bool) -> Axis:
    array = np.asarray(entry)
    if array.ndim != 1:
        raise IndexError(f"dimension {number}: an index array must have one dimension, not {array.ndim}")
    if array.dtype == bool:
        if len(array) != length:
            raise IndexError(f"dimension {number}: the mask has {len(array)} elements, the dimension {length}")
        wanted = np.flatnonzero(array)
    elif array.size == 0:
        wanted = np.empty(0, dtype=np.intp)
    elif array.dtype.kind in "iu":
        wanted = array.astype(np.intp)
        wanted = np.where(wanted < 0, wanted + length, wanted)
    else:
        raise TypeError(f"dimension {number}: an index must be integers, slices, lists of integers or booleans")
    if wanted.size == 0:
        return Axis((), 0, None, 0, 0)
    low, high = int(wanted.min()), int(wanted.max())
    if low < 0 or (high >= length and not grow):
        raise IndexError(f"dimension {number}: an index of the list is out of bounds for length {length}")
    # Each element once and in the file's order, and how to get from there to what was asked for.
    unique, places = np.unique(wanted, return_inverse=True)
    order = None if len(unique) == len(wanted) and bool(np.all(places[:-1] < places[1:])) else places.astype(np.intp)
    return Axis(tuple(_runs(unique)), len(unique), order, len(wanted), high + 1)


def _runs(indices: NDArray[np.intp]) -> Iterator[Run]:
    """Ascending indices as few runs of one stride each."""
    n = len(indices)
    steps = np.diff(indices)
    if n == 1 or bool(np.all(steps == steps[0])):
        yield Run(int(indices[0]), n, int(steps[0]) if n > 1 else 1, slice(0, n))
        return
    place = 0
    while place < n:
        end = place + 1
        step = 1
        if end < n:
            step = int(steps[place])
            # Two elements make a run only if they are neighbours: else the second may begin a longer one.
            while end < n and int(steps[end - 1]) == step and (step == 1 or end > place):
                end += 1
            if step != 1 and end - place == 2:
                end, step = place + 1, 1
        yield Run(int(indices[place]), end - place, step if end - place > 1 else 1, slice(place, end))
        place = end


def covering(selection: Selection) -> Selection:
    """The same for reading, with lists that are dense or in many pieces read in one piece and picked from in memory."""
    axes = []
    for axis in selection.axes:
        if len(axis.runs) > 1:
            first, last = axis.runs[0], axis.runs[-1]
            span = last.start + (last.count - 1) * last.stride + 1 - first.start
            if span <= _DENSE * axis.count:
                at = np.concatenate([run.start + run.stride * np.arange(run.count) for run in axis.runs]) - first.start
                if isinstance(axis.order, np.ndarray):
                    at = at[axis.order]
                elif axis.order is not None:
                    at = at[axis.order]
                axis = Axis((Run(first.start, span, 1, slice(0, span)),), span, at.astype(np.intp), axis.length, axis.needs)
        axes.append(axis)
    return Selection(tuple(axes), selection.new_axes)
