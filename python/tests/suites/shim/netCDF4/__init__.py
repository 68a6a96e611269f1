# SPDX-License-Identifier: MIT OR Apache-2.0
"""`import netCDF4` gives `zonda.netcdf4`, in children of a process too, where this folder is on PYTHONPATH."""

import sys

import zonda.netcdf4
import zonda.netcdf4.utils

sys.modules["netCDF4"] = zonda.netcdf4
sys.modules["netCDF4.utils"] = zonda.netcdf4.utils
