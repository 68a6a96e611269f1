"""What the tests of the low-level interface share."""

from __future__ import annotations

import numpy as np
import pytest

import zonda

FORMATS = ["NETCDF4", "NETCDF4_CLASSIC", "CDF-1", "CDF-2", "CDF-5"]


@pytest.fixture(params=FORMATS)
def each_format(request):
    return request.param


@pytest.fixture
def model(tmp_path):
    """A file with a bit of everything that netCDF-4 has."""
    path = tmp_path / "model.nc"
    with zonda.create(path) as ds:
        ds.attrs["title"] = "a model"
        ds.create_dimension("time", None)
        ds.create_variable("lat", data=np.linspace(-90, 90, 7), dims="lat", attrs={"units": "degrees_north"})
        temperature = ds.create_variable(
            "temp", "f4", ("time", "lat", "lon"), sizes={"lon": 5}, chunks=(1, 7, 5), compression="zlib", level=1,
            shuffle=True, fill_value=-1,
        )  # fmt: skip
        temperature[:4] = np.arange(4 * 7 * 5).reshape(4, 7, 5)
        inner = ds.create_group("forecast/surface")
        inner.create_variable("names", str, "station", sizes={"station": 3})[:] = ["a", "", "Zürich"]
    return path
