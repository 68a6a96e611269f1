# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zonda: netCDF files, read and written on every core and without a lock.

`zonda.open` and `zonda.create` give a `Dataset`; ``xarray.open_dataset(path, engine="zonda")`` uses the same engine, and
`zonda.netcdf4` has the names of netCDF4-python. NumPy is all that is needed; xarray, dask, cftime and tqdm are used
where they are.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _zonda, errors, filters, types
from ._zonda import detect
from .attributes import Attributes
from .dataset import Dataset, create, open
from .dimension import Dimension
from .errors import NetCDFError
from .group import Group
from .places import get_bin, get_include, get_lib, get_preload
from .types import CompoundType, EnumType, OpaqueType, UserType, VlenType
from .variable import Chunk, Variable

__version__ = _zonda.version()

__all__ = [
    "Attributes", "Chunk", "CompoundType", "Dataset", "Dimension", "EnumType", "Group", "NetCDFError", "OpaqueType",
    "UserType", "Variable", "VlenType", "create", "detect", "errors", "filters", "get_bin", "get_include", "get_lib",
    "get_preload", "open", "types",
]  # fmt: skip

# Not in __all__, so that `from zonda import *` asks for no other package.
_MODULES = ("netcdf4", "xarray_engine")


def __getattr__(name: str) -> Any:
    """What needs more than NumPy is imported when it is used."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "to_netcdf":
        return importlib.import_module(f"{__name__}.xarray_engine").to_netcdf
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "to_netcdf"})
