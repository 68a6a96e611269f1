# SPDX-License-Identifier: MIT OR Apache-2.0
"""Attributes to Python values and back, by netCDF4-python's rules."""

from __future__ import annotations

import posixpath
from typing import Any

import numpy as np

from ..errors import NetCDFError
from ._errors import of_attributes
from ._handle import BROKEN, Attribute, Handle
from ._tables import DTYPE_OF_TYPE, FIRST_USER_TYPE, NC_CHAR, NC_STRING, TYPE_OF_DTYPE, native, plain

MISSING = "NetCDF: Attribute not found"


def encoded(text: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes stay what they are."""
    return text if isinstance(text, bytes) else str(text).encode(encoding)


def as_name(name: Any) -> str:
    """A name for the engine: bytes are UTF-8."""
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)


def names(handle: Handle, group: int, variable: int) -> list[str]:
    """Names of all attributes, in the order of the file."""
    with of_attributes():
        return list(handle.attributes_of(group, variable))


def read(handle: Handle, group: int, variable: int, name: Any, encoding: str = "utf-8") -> Any:
    """The value of an attribute.

    Text is `str` (NUL bytes are left out), except that a `_FillValue` of characters is `bytes`; one number is
    a NumPy scalar, several are an array of one dimension; strings are `str` or a list of them.

    Raises
    ------
    AttributeError
        There is none of this name.
    KeyError
        It is of a type that has no NumPy type.
    """
    name = as_name(name)
    with of_attributes():
        found = handle.attributes_of(group, variable).get(name)
    if found is None:
        raise AttributeError(MISSING)
    return value(handle, name, found, encoding)


def value(handle: Handle, name: str, attribute: Attribute, encoding: str = "utf-8") -> Any:
    """The Python value of what the engine gives."""
    typeid, raw = attribute
    if typeid == BROKEN:
        raise AttributeError(str(raw)) from raw
    if typeid == NC_CHAR:
        if name == "_FillValue":
            return bytes(raw)
        return raw.decode(encoding, errors="replace").replace("\0", "")
    if typeid == NC_STRING:
        texts = [_decoded(text, encoding) for text in raw]
        return texts[0] if len(texts) == 1 else texts
    if typeid >= FIRST_USER_TYPE:
        info = handle.file.type_info(typeid)
        if info["class"] not in ("compound", "enum") or not isinstance(raw, np.ndarray):
            raise KeyError(f"attribute {name} has unsupported datatype")
        if info["class"] == "compound":
            from ._types import aligned, text_view  # types need this module

            raw = raw.astype(aligned(raw.dtype)).view(text_view(raw.dtype))
    return raw[0] if raw.size == 1 else raw.copy()


def _decoded(text: str | None, encoding: str) -> str:
    if not text:
        return ""
    if encoding == "utf-8":
        # Bytes that are no UTF-8 came as surrogates.
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if not text.isascii() else text
    else:
        text = text.encode("utf-8", "surrogateescape").decode(encoding, "replace")
    return text.replace("\0", "")


def write(group: Any, variable: int, name: Any, given: Any, typeid: int | None = None, as_string: bool = False) -> None:
    """Sets an attribute of a variable of a group or, with -1, of the group.

    Text that is ASCII is written as characters, other text as a string where the format has strings. A list
    of texts is strings. `as_string` makes every text a string; `typeid` is the type of numbers, by default
    that of the NumPy array they make.

    Raises
    ------
    ValueError
        An array of more than one dimension.
    TypeError
        A type that attributes cannot have.
    OSError
        Several texts in a format without strings.
    AttributeError
        What the engine says.
    """
    handle: Handle = group._handle
    array = np.array(given)
    if array.ndim > 1:
        raise ValueError("multi-dimensional array attributes not supported")
    if plain(array.dtype) == "i8" and handle.classic and handle.data_model != "NETCDF3_64BIT_DATA":
        array = array.astype("i4")
    if array.dtype.char in "SU":
        typeid, stored = _text(array, handle, as_string)
    else:
        if array.dtype.kind == "V":
            from ._types import find_compound

            compound = find_compound(group, array.dtype)
            typeid, array = compound._nc_type, compound.stored(array)
        elif plain(array.dtype) not in TYPE_OF_DTYPE:
            raise TypeError(
                f"illegal data type for attribute {encoded(name)!r}, must be one of "
                f"{TYPE_OF_DTYPE.keys()}, got {plain(array.dtype)}"
            )
        elif typeid is None:
            typeid = TYPE_OF_DTYPE[plain(array.dtype)]
        elif typeid in DTYPE_OF_TYPE:
            array = array.astype(DTYPE_OF_TYPE[typeid])
        stored = np.ascontiguousarray(array.reshape(-1), dtype=native(array.dtype))
    with of_attributes():
        handle.define()
        handle.file.put_att(group._grpid, variable, as_name(name), typeid, stored)
        handle.defined()
    handle.forget(group._grpid, variable)


def _text(array: np.ndarray, handle: Handle, as_string: bool) -> tuple[int, Any]:
    """Type and value of a text attribute, of an array of kind S or U."""
    if array.size > 1:
        if handle.classic:
            raise OSError("array string attributes can only be written with NETCDF4")
        return NC_STRING, [_c_string(encoded(text)) for text in array.flat]
    if array.shape:
        parts = array.ravel().tolist()
        data = encoded(parts[0]) if parts else b""
    else:
        data = encoded(array.item())
    if (as_string or array.dtype.char == "U") and not handle.classic and (as_string or not data.isascii()):
        return NC_STRING, [_c_string(data)]
    # No text is one NUL.
    return NC_CHAR, data or b"\0"


def _c_string(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def delete(group: Any, variable: int, name: Any) -> None:
    """Removes an attribute; `RuntimeError` if there is none."""
    handle: Handle = group._handle
    handle.define()
    handle.file.del_att(group._grpid, variable, as_name(name))
    handle.defined()
    handle.forget(group._grpid, variable)


def rename(group: Any, variable: int, old: Any, new: Any) -> None:
    """Gives an attribute another name."""
    handle: Handle = group._handle
    if len(encoded(new)) > len(encoded(old)):
        handle.define()
    try:
        handle.file.rename_att(group._grpid, variable, as_name(old), as_name(new))
    except NetCDFError as error:
        # In data mode only a name that is not longer fits.
        if error.code != -38:
            raise
        handle.define()
        handle.file.rename_att(group._grpid, variable, as_name(old), as_name(new))
    handle.defined()
    handle.forget(group._grpid, variable)


def joined(path: str, name: str) -> str:
    """Path of a group in a group."""
    return posixpath.join(path, name)
