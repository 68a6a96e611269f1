# SPDX-License-Identifier: MIT OR Apache-2.0
"""A variable's elements between the engine and NumPy: byte order, structures, complex numbers, text, rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _complex, _transfer
from ._selection import Selection
from ._tables import native

UTF8 = ("utf-8", "utf8", "UTF-8", "UTF8")


def read(variable: Any, selection: Selection) -> Any:
    """The selected elements, an array of the selection's shape in the variable's type."""
    file, group, number, ndim = variable._handle.file, variable._grpid, variable._varid, variable.ndim
    if variable._isvlen:

        def get(start: Any, count: Any, stride: Any, out: np.ndarray) -> None:
            file.get_objects(group, number, start, count, stride, out)

        data = _transfer.read(selection, np.dtype(object), get, ndim)
        return _decoded(variable, data) if variable.dtype is str else _ordered(data, variable.dtype)
    if variable._complex is not None:
        return _read_complex(variable, selection)

    def get_numbers(start: Any, count: Any, stride: Any, out: np.ndarray) -> None:
        file.get(group, number, start, count, stride, out)

    dtype = variable.dtype
    if variable._iscompound:
        data = _transfer.read(selection, variable._user_type._file_dtype, get_numbers, ndim)
        return data if data.dtype == dtype else data.astype(dtype)
    data = _transfer.read(selection, native(dtype), get_numbers, ndim)
    return data if dtype.isnative else data.byteswap(inplace=True).view(dtype)


def _read_complex(variable: Any, selection: Selection) -> np.ndarray:
    """Complex numbers: two parts in a structure, or in a last dimension that Python does not see."""
    file, group, number = variable._handle.file, variable._grpid, variable._varid
    as_dimension = variable._complex == _complex.DIMENSION
    part = np.dtype(_complex.part(variable.dtype))
    compound = None if as_dimension else variable._user_type._file_dtype

    def get(start: Any, count: Any, stride: Any, out: np.ndarray) -> None:
        if as_dimension:
            parts = out.view(part).reshape((*count, 2)) if out.ndim else out.reshape(1).view(part)
            file.get(group, number, (*start, 0), (*count, 2), None if stride is None else (*stride, 1), parts)
        else:
            file.get(group, number, start, count, stride, out.view(compound))

    return _transfer.read(selection, np.dtype(variable.dtype), get, variable.ndim)


def _decoded(variable: Any, data: np.ndarray) -> np.ndarray:
    """Text by the variable's `_Encoding`; the engine's is UTF-8, what is none as surrogates."""
    encoding = variable._attribute("_Encoding") or "utf-8"
    flat = data.reshape(-1)
    plain_utf8 = encoding in UTF8
    for at, text in enumerate(flat):
        if text is None:
            flat[at] = ""
        elif not text.isascii() or not plain_utf8:
            flat[at] = text.encode("utf-8", "surrogateescape").decode(encoding)
    return data


def _ordered(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rows of numbers in the variable's byte order."""
    if not dtype.isnative:
        flat = data.reshape(-1)
        for at, row in enumerate(flat):
            flat[at] = row.astype(dtype)
    return data


def fitted(data: Any, selection: Selection) -> Any:
    """Data in the selection's shape: reshaped if they have as many elements, else broadcast.

    Raises
    ------
    ValueError
        They do not fit.
    IndexError
        Rows of one dimension of another length.
    """
    shape = selection.shape
    if data.shape == ():
        return np.broadcast_to(data, shape) if isinstance(data, np.ndarray) and not np.ma.isMA(data) else np.tile(data, shape)
    if data.shape == shape:
        return data
    if data.ndim != len(shape) or data.ndim > 1 or 0 in shape:
        try:
            return data.view().reshape(shape)
        except ValueError:
            return np.broadcast_to(data, shape)
    if selection.scalars and data.size:
        # One position takes the last of several values, as it does in the netCDF4 module.
        return data[-1:]
    if selection.lists and data.shape[0] > shape[0]:
        # A list of positions takes as many values as it has.
        return data[: shape[0]]
    raise IndexError("size of data array does not conform to slice")


def write(variable: Any, selection: Selection, data: Any) -> None:
    """Writes an array of the selection's shape, cast to the variable's type."""
    file, group, number, ndim = variable._handle.file, variable._grpid, variable._varid, variable.ndim
    data = np.asarray(data)
    if selection.is_empty:
        return
    if variable._isvlen:
        if data.dtype.char != "O":
            raise TypeError("data to put in string variable must be an object array containing Python strings")
        data = _encoded(variable, data) if variable.dtype is str else _checked_rows(variable, data)

        def put_rows(start: Any, count: Any, stride: Any, values: np.ndarray) -> None:
            file.put_objects(group, number, start, count, stride, values)

        _transfer.write(selection, data, put_rows, ndim)
        return

    def put(start: Any, count: Any, stride: Any, values: np.ndarray) -> None:
        # Not every array is aligned: messages between processes are not.
        file.put(group, number, start, count, stride, np.require(values, requirements=["C", "A"]))

    if variable._complex is not None:
        data = data.astype(variable.dtype, copy=False)
        put = _complex_writer(variable)
    elif variable._iscompound:
        data = variable._user_type.stored(data)
    else:
        # First to the variable's type, as netCDF4-python casts, then to this machine's order.
        if data.dtype != variable.dtype:
            data = data.astype(variable.dtype)
        if not data.dtype.isnative:
            data = data.astype(native(data.dtype))
    _transfer.write(selection, data, put, ndim)


def _complex_writer(variable: Any) -> Any:
    file, group, number = variable._handle.file, variable._grpid, variable._varid
    part = np.dtype(_complex.part(variable.dtype))

    def put(start: Any, count: Any, stride: Any, values: np.ndarray) -> None:
        values = np.require(values, requirements=["C", "A"])
        if variable._complex == _complex.DIMENSION:
            parts = values.reshape(-1).view(part).reshape((*count, 2))
            file.put(group, number, (*start, 0), (*count, 2), None if stride is None else (*stride, 1), parts)
        else:
            file.put(group, number, start, count, stride, values.view(variable._user_type._file_dtype))

    return put


def _encoded(variable: Any, data: np.ndarray) -> np.ndarray:
    """Text as the engine takes it, of the bytes that `_Encoding` gives."""
    encoding = variable._attribute("_Encoding") or "utf-8"
    out = np.empty(data.shape, object)
    flat = out.reshape(-1)
    for at, text in enumerate(data.flat):
        flat[at] = _stored_text(text, encoding)
    return out


def _stored_text(text: Any, encoding: str) -> str:
    if isinstance(text, str):
        if text.isascii() or encoding in UTF8:
            return text
        text = text.encode(encoding)
    if not isinstance(text, bytes):
        raise TypeError(f"expected bytes, {type(text).__name__} found")
    return text.decode("utf-8", "surrogateescape")


def _checked_rows(variable: Any, data: np.ndarray) -> np.ndarray:
    """Rows of the type's numbers.

    Raises
    ------
    TypeError
        A row of another type.
    """
    out = np.empty(data.shape, object)
    flat = out.reshape(-1)
    for at, row in enumerate(data.flat):
        if not isinstance(row, np.ndarray) or row.dtype.str[1:] != variable.dtype.str[1:]:
            found = getattr(row, "dtype", type(row).__name__)
            raise TypeError(f"wrong data type in object array: should be {variable.dtype}, got {found}")
        flat[at] = np.ascontiguousarray(row.reshape(-1), dtype=native(row.dtype))
    return out


def write_row(variable: Any, place: tuple[int, ...], data: Any) -> None:
    """Writes one text or one row of numbers.

    Raises
    ------
    TypeError
        Of another type.
    """
    element = np.empty((1,) * len(place), object)
    if variable.dtype is str:
        element[(0,) * len(place)] = _stored_text(data, variable._attribute("_Encoding") or "utf-8")
    else:
        if getattr(data, "dtype", None) != variable.dtype:
            raise TypeError(f"wrong data type: should be {variable.dtype}, got {getattr(data, 'dtype', type(data).__name__)}")
        row = np.ascontiguousarray(np.asarray(data).reshape(-1), dtype=native(variable.dtype))
        element[(0,) * len(place)] = row
    file = variable._handle.file
    file.put_objects(variable._grpid, variable._varid, place, (1,) * len(place), None, element)
