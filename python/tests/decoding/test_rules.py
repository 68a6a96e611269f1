# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the engine decides about values, asked directly, beside NumPy and xarray: which attributes keep their values in
the type of a variable, and which type results have. The table in `test_table.py` has whole reads.
"""

import itertools
import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr

import zonda.netcdf4
from zonda.netcdf4._masking import BY_VALUE, same_values

TYPES = "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split()
TYPEID = {"i1": 1, "S1": 2, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10, "u8": 11}

# Around all ends of all types, and what floats hold exactly.
WHOLE = sorted({sign * (2**bits) + d for bits in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for sign in (-1, 1) for d in (-1, 0, 1)})
REAL = [0.5, -0.0, 0.1, 1e20, 1e39, -1e39, 1e300, np.nan, np.inf, -np.inf, float(np.float32(0.1)), *map(float, WHOLE)]


def numbers(dtype):
    if dtype[0] == "f":
        with np.errstate(over="ignore"):
            return list(np.array(REAL).astype(dtype))
    info = np.iinfo(dtype)
    return [np.dtype(dtype).type(n) for n in WHOLE if info.min <= n <= info.max]


@pytest.fixture(scope="module")
def attributes(tmp_path_factory):
    """A file with one variable for each attribute value: of each type, and some texts."""
    path = tmp_path_factory.mktemp("rules") / "rules.nc"
    given = [number for dtype in TYPES for number in numbers(dtype)]
    given += [np.array([1, 200], "i2"), np.array([1, 70000], "i4"), np.array([1.0, 0.5]), "5", "x", "70000", "nan"]
    with netCDF4.Dataset(path, "w") as d:
        for at, value in enumerate(given):
            d.createVariable(f"v{at}", "i4").setncattr("missing_value", value)
    return path, given


@pytest.mark.parametrize("dtype", TYPES)
def test_what_keeps_its_value(attributes, dtype):
    path, given = attributes
    differences = []
    with zonda.netcdf4.Dataset(path) as d, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for at, value in enumerate(given):
            v = d[f"v{at}"]
            _, missing, *_, unused, left = v._handle.file.netcdf4_rules(
                v._grpid, v._varid, TYPEID[dtype], scales=True, is_filled=True, by_value=BY_VALUE
            )
            try:
                cast = np.array(np.array(value), dtype)
                keeps = same_values(np.array(value), cast)
            except (ValueError, OverflowError):
                keeps = False
            expected = np.atleast_1d(cast).tobytes() if keeps else b""
            if (missing.tobytes(), "missing_value" in unused) != (expected, not keeps):
                differences.append((value, missing, keeps))
            assert missing.dtype == dtype and list(left) == (["missing_value"] if isinstance(value, str) else [])
    assert len(given) > 150 and not differences, differences


@pytest.fixture(scope="module")
def packings(tmp_path_factory):
    path = tmp_path_factory.mktemp("packings") / "packings.nc"
    factors = [None] + [np.dtype(t).type(n) for t in TYPES for n in (2, 100, *((0.25, 1e300) if t == "f8" else ()))]
    factors += [np.int16(-2), np.int32(200), np.int32(70000), np.float32(0.5)]
    rows = [row for row in itertools.product(factors, factors) if row != (None, None)]
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 2)
        for at, (factor, offset) in enumerate(rows):
            v = d.createVariable(f"v{at}", "f8", ("x",))
            for name, value in (("scale_factor", factor), ("add_offset", offset)):
                if value is not None:
                    v.setncattr(name, value)
    return path, rows


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_results(packings, dtype):
    """The type of a result is that of the operations, done by the NumPy that is installed."""
    path, rows = packings
    differences = []
    with zonda.netcdf4.Dataset(path) as d, np.errstate(all="ignore"):
        for at, (factor, offset) in enumerate(rows):
            v = d[f"v{at}"]
            *_, product, result, _, _ = v._handle.file.netcdf4_rules(
                v._grpid, v._varid, TYPEID[dtype], scales=True, is_filled=True, by_value=BY_VALUE
            )
            values = np.ones(2, dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = values if factor is None else values * factor
                inner = values.dtype
                values = values if offset is None else values + offset
            if (np.dtype(product), np.dtype(result)) != (inner, values.dtype):
                differences.append((factor, offset, product, result, inner, values.dtype))
    assert len(rows) > 500 and not differences, differences


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_xarray(tmp_path, dtype):
    """xarray's engine `zonda` decodes into the types that xarray does, for every combination of types; and does not leave
    to xarray what it can do itself."""
    from zonda.xarray_engine import ZondaBackendEntrypoint
    from zonda.xarray_engine._arrays import ZondaArray

    path = tmp_path / "types.nc"
    factors = [None, *(np.dtype(t).type(2) for t in ("i2", "i4", "i8", "f4", "f8"))]
    fills = [None, np.dtype(dtype).type(1)]
    if dtype[0] == "f":
        fills.append(np.dtype(dtype).type(np.nan))
    rows = list(itertools.product(factors, factors, fills))
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 3)
        for at, (factor, offset, fill) in enumerate(rows):
            v = d.createVariable(f"v{at}", dtype, ("x",), fill_value=fill)
            v.set_auto_maskandscale(False)
            v[:] = [0, 1, 2]
            for name, value in (("scale_factor", factor), ("add_offset", offset)):
                if value is not None:
                    v.setncattr(name, value)
    with xr.open_dataset(path, engine="netcdf4") as theirs, xr.open_dataset(path, engine=ZondaBackendEntrypoint) as ours:
        own = 0
        for at, row in enumerate(rows):
            a, b = theirs[f"v{at}"], ours[f"v{at}"]
            data = b.variable._data
            while not isinstance(data, ZondaArray):
                data = data.array
            own += data.dtype == b.dtype
            assert a.dtype == b.dtype, row
            try:
                wanted = a.values
            except ValueError:
                # NaN in a variable of integers, which a factor of integers makes.
                with pytest.raises(ValueError, match="NaN"):
                    b.values
            else:
                assert np.array_equal(wanted, b.values, equal_nan=True), row
        assert own > len(rows) // 2
