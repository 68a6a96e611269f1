# SPDX-License-Identifier: MIT OR Apache-2.0
"""netCDF4-python's names on Zonda's engine: `import zonda.netcdf4 as netCDF4` runs its scripts.

    import zonda.netcdf4 as netCDF4

    with netCDF4.Dataset("model.nc") as ds:
        temperature = ds["temp"][0]

Files may be used from several threads; reading and writing happen without Python's lock. What differs from
the netCDF4 module is in docs/guides/python.md. Times need the package cftime.
"""

from importlib.util import find_spec as _find_spec

from .._zonda import has_filter as _has_filter
from . import utils
from ._dataset import Dataset, Group
from ._dimension import Dimension
from ._library import (
    COMPATIBLE_VERSION,
    HDF5_VERSION,
    NetCDF4MissingFeatureException,
    get_alignment,
    get_chunk_cache,
    getlibversion,
    rc_get,
    rc_set,
    set_alignment,
    set_chunk_cache,
)
from ._multifile import MFDataset, MFTime
from ._strings import chartostring, stringtoarr, stringtochar
from ._tables import (
    NC_DISKLESS,
    NC_PERSIST,
    default_encoding,
    default_fillvals,
    dtype_is_complex,
    is_native_big,
    is_native_little,
    unicode_error,
)
from ._times import date2index, date2num, num2date
from ._types import CompoundType, EnumType, VLType
from ._variable import Variable

_has_mpi4py = int(_find_spec("mpi4py") is not None)

__version__ = f"{COMPATIBLE_VERSION}+zonda"
__netcdf4libversion__ = getlibversion().split()[0]
__hdf5libversion__ = HDF5_VERSION
__has_rename_grp__ = 1
__has_nc_inq_path__ = 1
__has_nc_inq_format_extended__ = 1
__has_nc_open_mem__ = 1
__has_nc_create_mem__ = 1
__has_cdf5_format__ = 1
# With mpi4py, which is looked for when a file is opened in parallel.
__has_parallel4_support__ = _has_mpi4py
__has_pnetcdf_support__ = _has_mpi4py
__has_parallel_support__ = _has_mpi4py
__has_quantization_support__ = 1
__has_zstandard_support__ = int(_has_filter("zstd"))
__has_bzip2_support__ = int(_has_filter("bzip2"))
__has_blosc_support__ = int(_has_filter("blosc"))
__has_szip_support__ = int(_has_filter("szip"))
__has_set_alignment__ = 1
__has_ncfilter__ = 1
__has_nc_rc_set__ = 1

__all__ = [
    "CompoundType", "Dataset", "Dimension", "EnumType", "Group", "MFDataset", "MFTime", "NC_DISKLESS", "NC_PERSIST",
    "NetCDF4MissingFeatureException", "VLType", "Variable", "chartostring", "date2index", "date2num",
    "default_encoding", "default_fillvals", "dtype_is_complex", "get_alignment", "get_chunk_cache", "getlibversion",
    "is_native_big", "is_native_little", "num2date", "rc_get", "rc_set", "set_alignment", "set_chunk_cache",
    "stringtoarr", "stringtochar", "unicode_error", "utils",
]  # fmt: skip

# Texts of objects name the class, and scripts know it by this module.
for _class in (CompoundType, Dataset, Dimension, EnumType, Group, MFDataset, MFTime, VLType, Variable):
    _class.__module__ = __name__
