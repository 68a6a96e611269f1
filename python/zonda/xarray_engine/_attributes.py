"""Attributes as xarray's netCDF4 engine writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from zonda import _zonda

from ._types import NC_CHAR, NC_STRING, is_classic_model, typeid_of

__all__ = ["put"]


def put(file: _zonda.File, group: int, var: int, name: str, value: Any, typeid: int | None = None) -> None:
    """Write an attribute of a Python value.

    Text that is ASCII is written as characters, other text as a string where the format has strings; a list
    of several strings as an array of strings.

    Raises
    ------
    ValueError
        If the value has more than one dimension.
    TypeError
        If netCDF has no type for it.
    """
    array = np.asarray(value)
    if array.ndim > 1:
        raise ValueError(f"attribute {name!r}: multi-dimensional array attributes not supported")
    if array.dtype.kind == "O":
        array = np.asarray([_text(item) for item in array.ravel()])
    if array.dtype.kind in "SU":
        _put_text(file, group, var, name, array, typeid)
        return
    if array.dtype.kind == "b":
        raise TypeError(f"attribute {name!r}: illegal data type for attribute, bool")
    array = np.atleast_1d(array)
    if array.dtype == np.dtype("i8") and is_classic_model(file.format) and file.format != "CDF-5":
        array = array.astype("i4")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    if typeid is None:
        try:
            typeid = typeid_of(array.dtype)
        except ValueError:
            raise TypeError(f"attribute {name!r}: illegal data type for attribute, {array.dtype}") from None
    file.put_att(group, var, name, typeid, array)


def _text(item: Any) -> str:
    if isinstance(item, (bytes, str)):
        return item.decode("utf-8", "replace") if isinstance(item, bytes) else item
    raise TypeError(f"attribute of objects that are not strings: {item!r}")


def _put_text(
    file: _zonda.File, group: int, var: int, name: str, array: np.ndarray, typeid: int | None
) -> None:
    has_strings = not is_classic_model(file.format)
    items = array.ravel().tolist()
    if len(items) > 1 and not has_strings:
        raise OSError(f"attribute {name!r}: array string attributes can only be written with NETCDF4")
    if typeid == NC_STRING or (len(items) > 1 and typeid is None):
        file.put_att(group, var, name, NC_STRING, [_text(item) for item in items])
        return
    text = b"".join(item if isinstance(item, bytes) else item.encode("utf-8", "surrogateescape") for item in items)
    if array.dtype.kind == "U" and has_strings and not text.isascii() and typeid is None:
        file.put_att(group, var, name, NC_STRING, [_text(item) for item in items])
    else:
        # The reference writes a null character for an empty text; readers expect it.
        file.put_att(group, var, name, NC_CHAR, text or b"\0")
