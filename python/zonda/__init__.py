# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zonda: netCDF files, read and written on every core and without a lock.

`zonda.open` and `zonda.create` give a `Dataset`; ``xarray.open_dataset(path, engine="zonda")`` uses the same engine, and
`zonda.netcdf4` has the names of netCDF4-python. NumPy is all that is needed; xarray, dask, cftime and tqdm are used
where they are.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import errors as errors, filters as filters, netcdf4 as netcdf4, types as types, xarray_engine as xarray_engine
    from ._zonda import detect
    from .attributes import Attributes
    from .copying import Copied, copy
    from .dataset import Dataset, create, open
    from .dimension import Dimension
    from .errors import NetCDFError
    from .group import Group
    from .places import get_bin, get_include, get_lib, get_preload
    from .types import CompoundType, EnumType, OpaqueType, UserType, VlenType
    from .variable import Chunk, Variable
    from .xarray_engine import open_mfdataset as open_mfdataset, to_netcdf as to_netcdf

    __version__: str

__all__ = [
    "Attributes", "Chunk", "CompoundType", "Copied", "Dataset", "Dimension", "EnumType", "Group", "NetCDFError", "OpaqueType",
    "UserType", "Variable", "VlenType", "copy", "create", "detect", "errors", "filters", "get_bin", "get_include", "get_lib",
    "get_preload", "open", "types",
]  # fmt: skip

# Where a name is. All are imported when they are used: the console scripts, which only start a program, then need
# neither NumPy nor the engine, and `import zonda` no package that only a part of it needs.
_MODULES = ("errors", "filters", "netcdf4", "types", "xarray_engine")
_PLACES = {
    "_zonda": ["detect"],
    "attributes": ["Attributes"],
    "copying": ["Copied", "copy"],
    "dataset": ["Dataset", "create", "open"],
    "dimension": ["Dimension"],
    "errors": ["NetCDFError"],
    "group": ["Group"],
    "places": ["get_bin", "get_include", "get_lib", "get_preload"],
    "types": ["CompoundType", "EnumType", "OpaqueType", "UserType", "VlenType"],
    "variable": ["Chunk", "Variable"],
    # Not in __all__: `from zonda import *` asks for NumPy only.
    "xarray_engine": ["open_mfdataset", "to_netcdf"],
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names}


# Checkers of types see the imports above, and no name besides.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _HOMES:
            value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        elif name == "__version__":
            value = importlib.import_module(f"{__name__}._zonda").version()
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Found without this function from now on.
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES, "__version__"})


# Programs that only write with xarray never load the engine.
if "xarray" in sys.modules:
    from . import _xarray_default

    _xarray_default.by_itself()
