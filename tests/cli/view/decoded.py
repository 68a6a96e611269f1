#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values that `zonda view` shows, beside those of netCDF4-python, whose rules are the same for these attributes (and of
xarray for `_Unsigned = "false"`, which netCDF4-python does not know): every type of numbers, with what can be said
about sign, missing values, valid range and packing.

    decoded.py ZONDA [--long]

A part of the table by default, all of it with --long. Runs in a folder of its own. Prints `N passed, N failed, N without an oracle`.
"""

import itertools
import re
import subprocess
import sys
import warnings

import netCDF4
import numpy as np
import xarray as xr

INTEGERS = "i1 u1 i2 u2 i4 u4 i8 u8".split()
UNSIGNED = [None, "true", "false"]
FILL = [None, "low", "high", "zero"]
MISSING = [None, "one", "list", "wider"]
VALID = [None, "range", "min", "max"]
PACKING = [None, ("f4", 0.5, None), ("f8", 0.01, 273.15), ("f8", None, -5.0), ("f8", 0.0, 1.5)]
PART = 61  # every so manyth row of the table, coprime to the lengths above


def rows():
    for dtype in INTEGERS + ["f4", "f8"]:
        signs = UNSIGNED if dtype in INTEGERS else [None, "true"]
        fills = FILL + ["nan"] if dtype[0] == "f" else FILL
        yield from itertools.product([dtype], signs, fills, MISSING, VALID, PACKING)


def make(d, name, row):
    dtype, unsigned, fill, missing, valid, packing = row
    kind = np.dtype(dtype)
    if kind.kind == "f":
        stored = np.array([-1e30, -7.5, -1, 0, 1, 2.5, 100, 1e30, np.nan], dtype)
        low, high = -1e30, 1e30
    else:
        info = np.iinfo(kind)
        # Not the fill values by default, of which the readers take different ones where signs are changed.
        inner = [0, 1, 5, 100, info.max - 3, info.min + 9]
        stored = np.array(inner + ([-1, -3, -100] if info.min else [info.max // 2 + 5, info.max // 2 + 100]), dtype)
        low, high = int(stored.min()), int(stored.max())
    fills = {"low": low, "high": high, "zero": 0, "nan": np.nan}
    v = d.createVariable(name, dtype, ("x" + str(len(stored)),), fill_value=None if fill is None else fills[fill])
    v.set_auto_maskandscale(False)
    v[:] = stored
    if unsigned:
        v.setncattr_string("_Unsigned", unsigned) if len(name) % 2 else v.setncattr("_Unsigned", unsigned)
    typed = lambda value: np.array(value, dtype)[()] if np.ndim(value) == 0 else np.array(value, dtype)
    if missing == "one":
        v.missing_value = typed(5 if kind.kind != "f" else 2.5)
    elif missing == "list":
        v.missing_value = typed([1, 100])
    elif missing == "wider":
        v.missing_value = np.float64(100)
    # Bounds as what is compared with: of numbers of the other sign both are written as they are stored.
    if valid == "range":
        v.valid_range = typed([1, 100])
    elif valid == "min":
        v.valid_min = typed(1)
    elif valid == "max":
        v.valid_max = typed(100)
    if packing:
        of, scale, offset = packing
        if scale is not None:
            v.scale_factor = np.dtype(of).type(scale)
        if offset is not None:
            v.add_offset = np.dtype(of).type(offset)


def by_netcdf4(d, name):
    v = d[name]
    v.set_auto_maskandscale(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = v[:]
    return np.ma.filled(values.astype("f8"), np.nan)


def by_xarray(path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, engine="netcdf4", decode_times=False) as ds:
            return ds[name].values.astype("f8")


def shown(zonda, path, name):
    done = subprocess.run([zonda, "view", path, name], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    missing = int(re.search(r"values +\d+, (\d+) missing", done.stdout)[1])
    found = re.search(r"range +(\S+) to (\S+)", done.stdout)
    return missing, *(float(part) for part in (found.groups() if found else (np.nan, np.nan)))


def main(zonda, is_long):
    table = list(rows())
    table = table if is_long else table[::PART]
    passed = failed = left_out = 0
    path = "decoded.nc"
    with netCDF4.Dataset(path, "w") as d:
        for n in (8, 9):
            d.createDimension(f"x{n}", n)
        for at, row in enumerate(table):
            make(d, f"v{at}", row)
    with netCDF4.Dataset(path) as d:
        for at, row in enumerate(table):
            name = f"v{at}"
            dtype, unsigned, _, _, valid, _ = row
            if unsigned == "false" and dtype[0] == "u":
                if valid:
                    left_out += 1  # xarray has no ranges, netCDF4-python not this sign
                    continue
                expected = by_xarray(path, name)
            else:
                try:
                    expected = by_netcdf4(d, name)
                except TypeError:
                    left_out += 1  # netCDF4-python has no fill value for what it masks by a range
                    continue
            good = expected[np.isfinite(expected)]
            want = (expected.size - good.size, good.min(initial=np.inf), good.max(initial=-np.inf))
            if not good.size:
                want = (want[0], np.nan, np.nan)
            got = shown(zonda, path, name)
            if got[0] == want[0] and np.allclose(got[1:], want[1:], rtol=2e-5, atol=1e-30, equal_nan=True):
                passed += 1
            else:
                failed += 1
                print(f"{name} {row}: {got}, expected {want}")
    print(f"{passed} passed, {failed} failed, {left_out} without an oracle")
    return failed != 0 or passed == 0


sys.exit(main(sys.argv[1], "--long" in sys.argv[2:]))
