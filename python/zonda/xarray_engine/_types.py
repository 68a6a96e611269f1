"""Types of netCDF and of NumPy, and the encoding that filters make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zonda import _zonda

__all__ = [
    "NC_CHAR",
    "NC_STRING",
    "VariableType",
    "engine_format",
    "file_name",
    "filters_of",
    "is_classic_model",
    "is_text",
    "python_name",
    "type_of",
    "typeid_of",
    "xarray_format",
]

NC_CHAR = 2
NC_STRING = 12

_DTYPES = {1: "i1", 2: "S1", 3: "i2", 4: "i4", 5: "f4", 6: "f8", 7: "u1", 8: "u2", 9: "u4", 10: "i8", 11: "u8"}
_TYPEIDS = {dtype: typeid for typeid, dtype in _DTYPES.items()}

_FORMATS = {
    "NETCDF4": "NETCDF4",
    "NETCDF4_CLASSIC": "NETCDF4_CLASSIC",
    "NETCDF3_CLASSIC": "CDF-1",
    "NETCDF3_64BIT": "CDF-2",
    "NETCDF3_64BIT_OFFSET": "CDF-2",
    "NETCDF3_64BIT_DATA": "CDF-5",
}
_XARRAY_FORMATS = {
    "CDF-1": "NETCDF3_CLASSIC",
    "CDF-2": "NETCDF3_64BIT_OFFSET",
    "CDF-5": "NETCDF3_64BIT_DATA",
}
_BLOSC = {0: "blosc_lz", 1: "blosc_lz4", 2: "blosc_lz4hc", 3: "blosc_snappy", 4: "blosc_zlib", 5: "blosc_zstd"}


# How a variable without a name is called in files: xarray's word.
_NAMELESS = "__values__"


def file_name(name: Any) -> Any:
    """The name in files of a variable that xarray calls so."""
    return _NAMELESS if name is None else name


def python_name(name: Any) -> Any:
    """The name that xarray has for a variable of a file."""
    return None if name == _NAMELESS else name


def is_text(dtype: np.dtype) -> bool:
    """Whether values are text: NumPy's own, or objects that are marked as such (the mark is h5py's)."""
    return dtype.kind in "UT" or (dtype.metadata or {}).get("element_type") is str


def engine_format(format: str | None) -> str:
    """The engine's name of a format of xarray's.

    Raises
    ------
    ValueError
        If there is no such format.
    """
    try:
        return _FORMATS[(format or "NETCDF4").upper()]
    except KeyError:
        raise ValueError(f"unexpected {format=}; formats are: {sorted(_FORMATS)}") from None


def xarray_format(format: str) -> str:
    """xarray's name of a format of the engine's."""
    return _XARRAY_FORMATS.get(format, format)


def is_classic_model(format: str) -> bool:
    """Whether the format has the classic data model: no strings, groups, or user types."""
    return format != "NETCDF4"


def typeid_of(dtype: np.dtype) -> int:
    """The netCDF type of an atomic NumPy type.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        return _TYPEIDS[dtype.newbyteorder("=").str[1:]]
    except KeyError:
        raise ValueError(f"unsupported dtype for netCDF4 variable: {dtype}") from None


@dataclass(frozen=True)
class VariableType:
    """What a variable of a file is in Python.

    ``dtype`` is that of the array that is read; ``encoded`` the value of ``encoding["dtype"]``; ``objects``
    tells that values are Python objects; ``complex`` that pairs of reals are given as complex numbers.
    """

    dtype: np.dtype
    encoded: Any
    objects: bool = False
    complex: bool = False


def type_of(file: _zonda.File, typeid: int, endian: str, auto_complex: bool) -> VariableType:
    """The Python side of a variable's type."""
    if typeid in _DTYPES:
        dtype = np.dtype(_DTYPES[typeid])
        return VariableType(dtype, dtype.newbyteorder(">") if endian == "big" else dtype)
    if typeid == NC_STRING:
        return VariableType(np.dtype("O", metadata={"element_type": str}), str, objects=True)
    info = file.type_info(typeid)
    dtype = info["dtype"]
    if info["class"] == "enum":
        base = np.dtype(_DTYPES[info["base"]])
        metadata = {"enum": dict(info["members"]), "enum_name": info["name"]}
        return VariableType(base, np.dtype(base, metadata=metadata))
    if dtype is None:
        return VariableType(np.dtype(object), np.dtype(object), objects=True)
    if auto_complex and (whole := _complex_of(dtype)) is not None:
        return VariableType(whole, whole, complex=True)
    return VariableType(dtype, dtype)


def _complex_of(dtype: np.dtype) -> np.dtype | None:
    names, fields = dtype.names, dtype.fields
    if names is None or fields is None or len(names) != 2:
        return None
    if tuple(name.lower() for name in names) not in {("r", "i"), ("re", "im"), ("real", "imag")}:
        return None
    one, two = fields[names[0]][0], fields[names[1]][0]
    if one != two or one.kind != "f" or dtype.itemsize != 2 * one.itemsize or one.itemsize not in (4, 8):
        return None
    return np.dtype(f"c{dtype.itemsize}")


def filters_of(filters: list[tuple[int, str | None, tuple[int, ...]]]) -> dict[str, Any]:
    """Encoding keys of a chain of filters, as netCDF4-python's ``Variable.filters`` tells them."""
    told: dict[str, Any] = {
        "zlib": False,
        "szip": False,
        "zstd": False,
        "bzip2": False,
        "blosc": False,
        "shuffle": False,
        "complevel": 0,
        "fletcher32": False,
    }
    for number, _, params in filters:
        first = int(params[0]) if params else 0
        if number == 1:
            told.update(zlib=True, complevel=first)
        elif number == 2:
            told["shuffle"] = True
        elif number == 3:
            told["fletcher32"] = True
        elif number == 4 and len(params) > 1:
            # Bit 2 of the options mask: entropy coding, else nearest neighbour.
            told["szip"] = {"coding": "ec" if first & 4 else "nn", "pixels_per_block": int(params[1])}
        elif number == 307:
            told.update(bzip2=True, complevel=first)
        elif number == 32015:
            told.update(zstd=True, complevel=first - (1 << 32) if first >= 1 << 31 else first)
        elif number == 32001 and len(params) > 6:
            told["blosc"] = {"compressor": _BLOSC.get(int(params[6]), "blosc_lz"), "shuffle": int(params[5])}
            told["complevel"] = int(params[4])
    return told
