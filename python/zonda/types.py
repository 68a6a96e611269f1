"""Types of netCDF as Python has them.

NumPy's dtypes where they exist; ``"char"`` (NC_CHAR, ``S1``) and `str` (NC_STRING); and a class for each kind of
user-defined type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ._zonda import File

__all__ = ["CompoundType", "EnumType", "OpaqueType", "TypeLike", "UserType", "VlenType"]

# Numbers of the types, as in netcdf.h.
BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE = 1, 2, 3, 4, 5, 6
UBYTE, USHORT, UINT, INT64, UINT64, STRING = 7, 8, 9, 10, 11, 12
FIRST_USER_TYPE = 32

_DTYPES = {
    BYTE: np.dtype("i1"),
    CHAR: np.dtype("S1"),
    SHORT: np.dtype("i2"),
    INT: np.dtype("i4"),
    FLOAT: np.dtype("f4"),
    DOUBLE: np.dtype("f8"),
    UBYTE: np.dtype("u1"),
    USHORT: np.dtype("u2"),
    UINT: np.dtype("u4"),
    INT64: np.dtype("i8"),
    UINT64: np.dtype("u8"),
    STRING: np.dtype(object),
}
_IDS = {dtype: number for number, dtype in _DTYPES.items() if number != STRING}
_NAMES = {
    "byte": BYTE, "char": CHAR, "short": SHORT, "int": INT, "long": INT, "float": FLOAT, "real": FLOAT, "double": DOUBLE,
    "ubyte": UBYTE, "ushort": USHORT, "uint": UINT, "int64": INT64, "uint64": UINT64, "string": STRING,
}  # fmt: skip
# Names of NumPy that CDL has with another meaning stay NumPy's where both agree in size; "long" is CDL's.
NAMES = {number: name for name, number in _NAMES.items() if name not in ("long", "real")}


@dataclass(frozen=True)
class UserType:
    """A user-defined type of a file.

    Attributes
    ----------
    name : str
        Its name.
    id : int
        Its number in the file.
    size : int
        Bytes that one value takes in memory.
    dtype : numpy.dtype
        What arrays of it have; object where values have variable parts.
    """

    name: str
    id: int
    size: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class CompoundType(UserType):
    """A compound type. Arrays of it are structured arrays, or hold tuples if it has variable parts."""

    # name, offset, type, shape
    fields: tuple[tuple[str, int, Any, tuple[int, ...]], ...]


@dataclass(frozen=True)
class VlenType(UserType):
    """Sequences of variable length. Arrays of it hold one array an element (dtype object)."""

    base: Any


@dataclass(frozen=True)
class OpaqueType(UserType):
    """Bytes without a meaning. Arrays of it have dtype ``V<size>``."""


@dataclass(frozen=True)
class EnumType(UserType):
    """Names for integers. Arrays of it hold the integers; `members` tells the names."""

    base: np.dtype[Any]
    members: tuple[tuple[str, int], ...]

    def name_of(self, value: int) -> str:
        """The name of a value. KeyError if none has it."""
        for name, number in self.members:
            if number == value:
                return name
        raise KeyError(f"{self.name} has no member of value {value}")


TypeLike = Union[UserType, str, type, "np.dtype[Any]"]


def from_id(file: File, typeid: int) -> TypeLike:
    """What stands for a type of the file: a dtype, ``"char"``, `str`, or a `UserType`."""
    if typeid == CHAR:
        return "char"
    if typeid == STRING:
        return str
    if typeid in _DTYPES:
        return _DTYPES[typeid]
    info = file.type_info(typeid)
    name, size = info["name"], info["size"]
    dtype = np.dtype(object) if info["dtype"] is None else info["dtype"]
    if info["class"] == "enum":
        return EnumType(name, typeid, size, dtype, _DTYPES[info["base"]], tuple(info["members"]))
    if info["class"] == "compound":
        fields = tuple((field, at, from_id(file, base), tuple(shape)) for field, at, base, shape in info["fields"])
        return CompoundType(name, typeid, size, dtype, fields)
    if info["class"] == "vlen":
        return VlenType(name, typeid, size, dtype, from_id(file, info["base"]))
    return OpaqueType(name, typeid, size, dtype)


def to_id(file: File, dtype: TypeLike) -> int:
    """The number of a type.

    Raises
    ------
    TypeError
        If netCDF has no such type.
    """
    if isinstance(dtype, UserType):
        return dtype.id
    if dtype is str:
        return STRING
    if dtype is bytes:
        return CHAR
    if isinstance(dtype, str) and dtype in _NAMES:
        return _NAMES[dtype]
    plain = np.dtype(dtype)
    number = _IDS.get(plain.newbyteorder("="))
    if number is None:
        raise TypeError(
            f"netCDF has no type for {plain}: numbers of 1 to 8 bytes, 'char', str and types of the file are possible"
        )
    return number


def dtype_of(file: File, typeid: int) -> np.dtype[Any]:
    """What arrays of a type have in memory."""
    if typeid in _DTYPES:
        return _DTYPES[typeid]
    dtype = file.type_info(typeid)["dtype"]
    return np.dtype(object) if dtype is None else dtype


def text(kind: TypeLike) -> str:
    """A type as shown to people."""
    if isinstance(kind, UserType):
        return kind.name
    if kind is str:
        return "string"
    return kind if isinstance(kind, str) else str(np.dtype(kind))


def plain_numbers(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Numbers as the engine takes them: native, of a type of netCDF, one after the other in memory.

    Raises
    ------
    TypeError
        For what is no number of netCDF.
    """
    dtype = values.dtype.newbyteorder("=")
    if dtype == np.bool_:
        dtype = np.dtype("i1")
    elif dtype == np.float16:
        dtype = np.dtype("f4")
    elif dtype.kind in "mM":
        raise TypeError(f"{what}: netCDF has no type for {values.dtype}; encode times as numbers (as xarray does)")
    elif dtype not in _IDS:
        raise TypeError(f"{what}: netCDF has no type for {values.dtype}")
    return np.ascontiguousarray(values, dtype=dtype)


def compound_fields(file: File, dtype: np.dtype[Any], known: Mapping[str, TypeLike]) -> list[tuple[str, int, int, tuple[int, ...]]]:
    """Fields of a structured dtype as the engine takes them; `known` gives types of the file by field.

    Raises
    ------
    TypeError
        For a field that has no type in netCDF.
    """
    if dtype.fields is None:
        raise TypeError(f"{dtype} has no fields")
    fields = []
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]
        base, shape = field.subdtype if field.subdtype is not None else (field, ())
        if name in known:
            typeid = to_id(file, known[name])
        elif base.kind == "S" and base.itemsize > 1:
            typeid, shape = CHAR, (*shape, base.itemsize)
        elif base.fields is not None:
            raise TypeError(f"field {name!r} is a compound: name its type in `types`")
        else:
            typeid = to_id(file, base)
        fields.append((name, int(offset), typeid, tuple(shape)))
    return fields
