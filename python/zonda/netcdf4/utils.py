# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of `netCDF4.utils` that scripts import, and its commands `ncinfo`, `nc3tonc4`, `nc4tonc3`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._commands import copy_to_classic as _nc4tonc3
from ._commands import copy_to_netcdf4 as _nc3tonc4
from ._commands import nc3tonc4, nc4tonc3, ncinfo
from ._dimension import find_dim as _find_dim
from ._masking import quantized as _quantize
from ._masking import same_values as _safecast
from ._selection import FULL, reading, writing
from ._selection import is_int as _is_int

__all__ = ["nc3tonc4", "nc4tonc3", "ncinfo", "broadcasted_shape"]
# Imported by scripts in spite of the underscore.
_NAMES = (_nc4tonc3, _nc3tonc4, _find_dim, _quantize, _safecast, _is_int)


def _sortbylist(A: Any, B: Any) -> list[Any]:
    """The elements of one list in the order of another."""
    return [A[i] for i in sorted(range(len(A)), key=B.__getitem__)]


def _walk_grps(topgrp: Any) -> Iterator[Any]:
    """The groups of a group and of those in it, level by level of each branch."""
    yield topgrp.groups.values()
    for grp in topgrp.groups.values():
        yield from _walk_grps(grp)


def _getgrp(g: Any, p: str) -> Any:
    """The group of a path."""
    for name in p.split("/"):
        if name:
            g = g.groups[name]
    return g


def _tostr(s: Any) -> Any:
    """The text of anything."""
    return str(s)


def broadcasted_shape(shp1: Any, shp2: Any) -> tuple[int, ...]:
    """The shape of arrays of two shapes together."""
    return np.broadcast_shapes(tuple(shp1), tuple(shp2))


def _StartCountStride(
    elem: Any,
    shape: Any,
    dimensions: Any = None,
    grp: Any = None,
    datashape: Any = None,
    put: bool = False,
    use_get_vars: bool = True,
    return_selection: bool = False,
) -> tuple[Any, ...]:
    """An index as start, count, stride and place in the data, for each hyperslab of it.

    The first axes of the arrays number the hyperslabs, the last one the dimensions. The place of an integer
    is -1, that of a slice is `slice(None)`, that of a list the number of the element.
    """
    shape = tuple(shape)
    if put:
        unlimited = tuple(_find_dim(grp, dimensions[axis]).isunlimited() for axis in range(len(shape)))
        chosen = writing(elem, shape, unlimited, tuple(datashape or ()))
    else:
        chosen = reading(elem, shape)
    ndim = len(chosen.counts)
    lists = {} if chosen.is_empty else chosen.lists
    outer = [len(lists[axis]) if axis in lists else 1 for axis in range(ndim)]
    start, count, stride = (np.empty((*outer, ndim), dtype=np.intp) for _ in range(3))
    indices = np.empty((*outer, ndim), dtype=object)
    for axis in range(ndim):
        along = [1] * ndim
        along[axis] = -1
        stride[..., axis] = chosen.steps[axis]
        if axis in lists:
            start[..., axis] = lists[axis].reshape(along)
            count[..., axis] = 1
            indices[..., axis] = np.arange(len(lists[axis])).reshape(along)
            continue
        start[..., axis] = chosen.starts[axis] if axis not in chosen.lists else int(chosen.lists[axis][0])
        count[..., axis] = chosen.counts[axis]
        # Of a list in an empty selection not a slice, so that it is not taken for the whole axis.
        indices[..., axis] = -1 if axis in chosen.scalars else 0 if axis in chosen.lists else FULL
    if return_selection:
        items = [lists.get(axis, slice(*_bounds(chosen, axis))) for axis in range(ndim)]
        return start, count, stride, indices, items
    return start, count, stride, indices


def _bounds(chosen: Any, axis: int) -> tuple[int, int, int]:
    start, count, step = chosen.starts[axis], chosen.counts[axis], chosen.steps[axis]
    return start, start + count * step, step


def _out_array_shape(count: Any) -> list[int]:
    """The shape of the data of `_StartCountStride`'s counts."""
    outer = count.shape[:-1]
    return [int(count[..., axis].flat[0]) if n == 1 and count.size else n for axis, n in enumerate(outer)]
