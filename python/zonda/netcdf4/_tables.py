# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names and numbers of netCDF as netCDF4-python's users know them: types, fill values, formats, flags."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

NC_GLOBAL = -1
NC_CHAR = 2
NC_STRING = 12
FIRST_USER_TYPE = 32
NC_DISKLESS = 0x0008
NC_PERSIST = 0x4000
NC_EINVALCOORDS = -40
NC_ENOTNC4 = -111

# A NumPy type without its byte order, and the number of the netCDF type.
TYPE_OF_DTYPE: dict[str, int] = {
    "S1": NC_CHAR, "i1": 1, "u1": 7, "i2": 3, "u2": 8, "i4": 4, "u4": 9, "i8": 10, "u8": 11, "f4": 5, "f8": 6,
}  # fmt: skip
DTYPE_OF_TYPE: dict[int, str] = {number: name for name, number in TYPE_OF_DTYPE.items()}
INTEGER_TYPES = frozenset(name for name in TYPE_OF_DTYPE if name[0] in "iu")

# What `netCDF4.default_fillvals` says; the last two are of complex numbers.
default_fillvals: dict[str, Any] = {
    "S1": "\0",
    "i1": -127,
    "u1": 255,
    "i2": -32767,
    "u2": 65535,
    "i4": -2147483647,
    "u4": 4294967295,
    "i8": -9223372036854775806,
    "u8": 18446744073709551614,
    "f4": 9.969209968386869e36,
    "f8": 9.969209968386869e36,
    "c8": 9.969209968386869e36,
    "c16": 9.969209968386869e36,
}

# What scripts call a format, and what the engine does.
ENGINE_FORMAT: dict[str, Any] = {
    "NETCDF3_CLASSIC": "CDF-1",
    "NETCDF3_64BIT": "CDF-2",
    "NETCDF3_64BIT_OFFSET": "CDF-2",
    "NETCDF3_64BIT_DATA": "CDF-5",
    "NETCDF4_CLASSIC": "NETCDF4_CLASSIC",
    "NETCDF4": "NETCDF4",
}
DATA_MODEL: dict[str, str] = {
    "CDF-1": "NETCDF3_CLASSIC",
    "CDF-2": "NETCDF3_64BIT_OFFSET",
    "CDF-5": "NETCDF3_64BIT_DATA",
    "NETCDF4_CLASSIC": "NETCDF4_CLASSIC",
    "NETCDF4": "NETCDF4",
}

is_native_little = sys.byteorder == "little"
is_native_big = sys.byteorder == "big"
default_encoding = "utf-8"
unicode_error = "replace"

# Names that a script can use on a Dataset or Variable that are no attributes of the file.
PRIVATE_NAMES = (
    "_grpid", "_grp", "_varid", "groups", "dimensions", "variables", "dtype", "data_model", "disk_format",
    "_nunlimdim", "path", "parent", "ndim", "mask", "scale", "cmptypes", "vltypes", "enumtypes", "_isprimitive",
    "file_format", "_isvlen", "_isenum", "_iscompound", "_cmptype", "_vltype", "_enumtype", "name",
    "__orthogoral_indexing__", "keepweakref", "_has_lsd", "always_mask",
    "_buffer", "chartostring", "_use_get_vars", "_ncstring_attrs__", "auto_complex",
)  # fmt: skip
PRIVATE = frozenset(PRIVATE_NAMES)

# Filters of compression by the name that createVariable takes.
FILTER_DEFLATE, FILTER_SHUFFLE, FILTER_FLETCHER32, FILTER_SZIP = 1, 2, 3, 4
FILTER_BZIP2, FILTER_BLOSC, FILTER_ZSTD = 307, 32001, 32015
COMPRESSIONS = frozenset(
    ("zlib", "szip", "zstd", "bzip2", "blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib", "blosc_zstd")
)
BLOSC_CODECS: dict[str, int] = {
    "blosc_lz": 0, "blosc_lz4": 1, "blosc_lz4hc": 2, "blosc_snappy": 3, "blosc_zlib": 4, "blosc_zstd": 5,
}  # fmt: skip
BLOSC_NAMES = {number: name for name, number in BLOSC_CODECS.items()}
SZIP_CODINGS = {"ec": 4, "nn": 32}
QUANTIZE_MODES = ("BitGroom", "GranularBitRound", "BitRound")
ENDIAN_OF_BYTEORDER: dict[str | None, str | None] = {"=": "native", ">": "big", "<": "little", "|": None, None: None}


def plain(dtype: np.dtype) -> str:
    """The name of a type without its byte order, such as `f4`."""
    return dtype.str[1:]


def native(dtype: np.dtype) -> np.dtype:
    """The same type in the byte order of this machine."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def dtype_is_complex(dtype: Any) -> bool:
    """Whether a type is one of complex numbers (`c8`, `c16`)."""
    return dtype in ("c8", "c16")
