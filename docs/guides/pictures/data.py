#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the files that docs/guides/pictures.md draws, beside this script.

    data.py coads_climatology.cdf

The source is the climatology of the Comprehensive Ocean-Atmosphere Data Set, a work of the US government (NOAA) in the public
domain, as Ferret brings it. sea.nc is its sea surface temperature, packed; polar.nc the same on a polar stereographic grid, with
latitudes and longitudes of two dimensions; air.nc is a formula: the temperatures that the test of Held and Suarez (1994) relaxes to.
"""

import sys
from pathlib import Path

import netCDF4
import numpy as np

HERE = Path(__file__).parent
STEP = 0.05  # kelvins


def packed(d, name, dims, values, **attributes):
    v = d.createVariable(name, "i2", dims, zlib=True, complevel=9, shuffle=True, fill_value=np.int16(-32768))
    v.setncatts({"scale_factor": np.float32(STEP), **attributes})
    v.set_auto_maskandscale(False)
    v[:] = np.where(np.isfinite(values), np.round(values / STEP), -32768).astype("i2")


def coordinate(d, name, values, **attributes):
    d.createDimension(name, len(values))
    v = d.createVariable(name, "f4", (name,))
    v.setncatts(attributes)
    v[:] = values


def sea(source):
    lat, lon = source["COADSY"][:].filled(), source["COADSX"][:].filled()
    sst = np.ma.filled(source["SST"][:].astype("f8"), np.nan)
    with netCDF4.Dataset(HERE / "sea.nc", "w", format="NETCDF4_CLASSIC") as d:
        d.title = "COADS climatology, sea surface temperature (NOAA, public domain)"
        d.createDimension("time", 12)
        time = d.createVariable("time", "f8", ("time",))
        # The middles of the months of any year.
        time.setncatts({"units": "days since 0001-01-01", "calendar": "noleap"})
        time[:] = [15, 45, 74, 105, 135, 166, 196, 227, 258, 288, 319, 349]
        coordinate(d, "lat", lat, units="degrees_north")
        coordinate(d, "lon", lon, units="degrees_east")
        packed(d, "sst", ("time", "lat", "lon"), sst, long_name="sea surface temperature", units="degC")
    return sst, lat, lon


def polar(sst, lat, lon):
    """The northern Atlantic, by the nearest cell."""
    x = np.linspace(-3.0e6, 3.0e6, 90)
    y = np.linspace(-5.2e6, -1.0e6, 63)
    xx, yy = np.meshgrid(x, y)
    radius = 6.371e6
    place_lat = 90 - 2 * np.degrees(np.arctan(np.hypot(xx, yy) / (2 * radius)))
    place_lon = np.degrees(np.arctan2(xx, -yy)) - 20
    rows = np.abs(lat[:, None, None] - place_lat).argmin(axis=0)
    columns = np.abs((lon[:, None, None] - place_lon + 180) % 360 - 180).argmin(axis=0)
    with netCDF4.Dataset(HERE / "polar.nc", "w", format="NETCDF4_CLASSIC") as d:
        coordinate(d, "y", y / 1000, units="km")
        coordinate(d, "x", x / 1000, units="km")
        for name, values, units in (("lat", place_lat, "degrees_north"), ("lon", place_lon, "degrees_east")):
            v = d.createVariable(name, "f4", ("y", "x"), zlib=True, complevel=9, shuffle=True, least_significant_digit=2)
            v.units = units
            v[:] = values
        attributes = {"long_name": "sea surface temperature in August", "units": "degC", "coordinates": "lat lon"}
        packed(d, "sst", ("y", "x"), sst[7][rows, columns], **attributes)


def air():
    lat = np.linspace(-88, 88, 45)
    lev = np.array([1000, 950, 900, 850, 800, 700, 600, 500, 400, 300, 250, 200, 150, 100, 70, 50, 30, 10], "f4")
    phi, p = np.radians(lat)[None, :], lev[:, None] / 1000
    potential = 315 - 60 * np.sin(phi) ** 2 - 10 * np.log(p) * np.cos(phi) ** 2
    with netCDF4.Dataset(HERE / "air.nc", "w", format="NETCDF4_CLASSIC") as d:
        coordinate(d, "lat", lat, units="degrees_north")
        coordinate(d, "lev", lev, units="hPa", long_name="pressure")
        packed(d, "T", ("lev", "lat"), np.maximum(200, potential * p ** (2 / 7)), long_name="temperature", units="K")


with netCDF4.Dataset(sys.argv[1]) as source:
    polar(*sea(source))
air()
