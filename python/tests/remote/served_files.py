# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that the tests of servers read."""

from __future__ import annotations

import numpy as np

import zonda


def make(path, format="NETCDF4", chunked=False):
    """A file with a record variable, a plain one and, in netCDF-4, chunks."""
    with zonda.create(path, format=format) as ds:
        ds.attrs["title"] = "on a server"
        ds.create_dimension("time", None)
        kind = {"chunks": (4, 25), "compression": "zlib"} if chunked else {}
        v = ds.create_variable("v", "f4", ("time", "x"), sizes={"x": 100}, attrs={"units": "K"}, **kind)
        v[:40] = np.arange(4000).reshape(40, 100)
        ds.create_variable("plain", "i4", "y", sizes={"y": 5000})[:] = np.arange(5000)
    return path
