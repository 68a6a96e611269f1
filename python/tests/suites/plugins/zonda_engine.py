# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pytest plugin: in xarray's own tests, what they call the engine ``netcdf4`` is the engine ``zonda``.

    pytest -p zonda_engine .../site-packages/xarray/tests/test_backends.py

The tests stay where they are installed. The reader, the writer and the store are exchanged; netCDF4-python
itself stays what it is, so files that tests make or look at with it are made and judged by it.
"""

import xarray.backends
from xarray.backends import plugins
from xarray.backends.common import BACKEND_ENTRYPOINTS

from zonda.xarray_engine import ZondaBackendEntrypoint, ZondaDataStore, enable_writing

try:
    from xarray.backends import writers
except ImportError:  # xarray before 2025.9
    from xarray.backends import api as writers

enable_writing()
BACKEND_ENTRYPOINTS["netcdf4"] = (None, ZondaBackendEntrypoint)
BACKEND_ENTRYPOINTS["zonda"] = (None, ZondaBackendEntrypoint)
plugins.list_engines.cache_clear()
writers.WRITEABLE_STORES["netcdf4"] = ZondaDataStore.open
xarray.backends.NetCDF4DataStore = ZondaDataStore


def pytest_report_header():
    engine = plugins.list_engines()["netcdf4"]
    if not isinstance(engine, ZondaBackendEntrypoint):
        raise RuntimeError(f"the engine netcdf4 is {engine!r}, not zonda")
    return "xarray's engine netcdf4: zonda.xarray_engine"
