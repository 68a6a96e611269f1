# SPDX-License-Identifier: MIT OR Apache-2.0
"""The engine is there under its name, whether or not the package is installed; and data to write."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4", reason="files are judged by netCDF4-python")

from xarray.backends import plugins
from xarray.backends.common import BACKEND_ENTRYPOINTS

from zonda.xarray_engine import ZondaBackendEntrypoint

if "zonda" not in plugins.list_engines():
    BACKEND_ENTRYPOINTS["zonda"] = (None, ZondaBackendEntrypoint)
    plugins.list_engines.cache_clear()


@pytest.fixture
def data():
    """A dataset with a time axis, floats with gaps, integers, text and a coordinate that is not an index."""
    rng = np.random.default_rng(9)
    field = rng.normal(size=(12, 20, 30)).astype("f4")
    field[3, 4, 5] = np.nan
    return xr.Dataset(
        {
            "field": (("time", "lat", "lon"), field, {"units": "K", "valid": np.array([1, 2], "i2")}),
            "count": (("time",), np.arange(12, dtype="i8")),
            "label": (("lat",), np.array([f"row {n}" for n in range(20)], object)),
        },
        coords={
            "time": xr.date_range("2001-01-01", periods=12, freq="D"),
            "lat": np.linspace(-90, 90, 20),
            "lon": np.arange(30.0),
            "area": (("lat", "lon"), rng.random((20, 30))),
        },
        attrs={"title": "a title", "several": ["one", "two"], "number": 3.5},
    )
