# SPDX-License-Identifier: MIT OR Apache-2.0
"""The names of `zonda.netcdf4` in a module that is called netCDF4: tests ask modules for their names. In children of a
process too, where this folder is on PYTHONPATH."""

import sys

import zonda.netcdf4
import zonda.netcdf4.utils as utils

# What says who the module is stays its own.
OWN = {"__name__", "__qualname__", "__file__", "__path__", "__spec__", "__loader__", "__package__", "__builtins__", "__cached__"}
globals().update({name: value for name, value in vars(zonda.netcdf4).items() if name not in OWN})
sys.modules["netCDF4.utils"] = utils
# The extension module, which h5netcdf's suite asks for a class.
_netCDF4 = sys.modules["netCDF4._netCDF4"] = zonda.netcdf4
