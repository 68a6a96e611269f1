"""What the tests of the module `zonda._zonda` share."""

from __future__ import annotations

import numpy as np
import pytest

from zonda._zonda import File

FORMATS = ["CDF-1", "CDF-2", "CDF-5", "NETCDF4", "NETCDF4_CLASSIC"]
# Numbers of the types, and what NumPy calls them.
CLASSIC = {1: "i1", 3: "i2", 4: "i4", 5: "f4", 6: "f8"}
EXTENDED = CLASSIC | {7: "u1", 8: "u2", 9: "u4", 10: "i8", 11: "u8"}


@pytest.fixture(params=FORMATS)
def each_format(request):
    return request.param


@pytest.fixture
def numeric_types(each_format):
    """Those that the format has."""
    return EXTENDED if each_format in ("CDF-5", "NETCDF4") else CLASSIC


@pytest.fixture
def numbers(tmp_path):
    """A chunked netCDF-4 file: `v` is 0, 1, 2 ... of shape 20 x 30."""
    path = tmp_path / "numbers.nc"
    file = File.create(path, "NETCDF4")
    dims = (file.def_dim(0, "y", 20), file.def_dim(0, "x", 30))
    var = file.def_var(0, "v", 5, dims)
    file.def_var_chunking(0, var, (7, 8))
    file.def_var_deflate(0, var, 1, True)
    file.put(0, var, (0, 0), (20, 30), None, np.arange(600, dtype="f4").reshape(20, 30))
    file.close()
    return path
