# SPDX-License-Identifier: MIT OR Apache-2.0
"""What attributes make of stored numbers, both ways: zonda.netcdf4 beside netCDF4, and xarray's engine `zonda` beside
its engine `netcdf4`, on a table of types, signs, missing values, ranges and packings.

Arrays must be the same to the bit, with type, mask and fill value; and where one raises, so does the other.
"""

import importlib.util
import itertools
import warnings
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

import zonda.netcdf4

_spec = importlib.util.spec_from_file_location(
    "differential", Path(__file__).parent.parent / "netcdf4" / "differential.py"
)
differential = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(differential)

TYPES = "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split()
SIGNS = [{}, {"_Unsigned": "true"}, {"_Unsigned": "false"}]
FILLS = ["none", "low", "high", "zero", "nan"]
MISSING = [
    {},
    {"missing_value": "same"},
    {"missing_value": "list"},
    {"missing_value": np.float64(100)},
    {"missing_value": "-1"},
    {"missing_value": np.float64(np.nan)},
]
RANGES = [
    {},
    {"valid_range": "pair"},
    {"valid_min": np.float64(0.5)},
    {"valid_max": "same"},
    {"valid_range": np.float64([0, np.inf])},
    {"valid_range": np.int32([7])},
]
PACKINGS = [
    {},
    {"scale_factor": np.float32(0.5)},
    {"scale_factor": np.float64(0.01), "add_offset": np.float64(273.15)},
    {"add_offset": np.float64(-5)},
    {"scale_factor": np.float64(0), "add_offset": np.float64(1.5)},
    {"scale_factor": np.float64(np.inf)},
    {"scale_factor": np.float64(1), "add_offset": np.float64(0)},
    {"scale_factor": np.int16(2)},
    {"scale_factor": "0.5"},
    {"scale_factor": np.float64([2.0])},
    {"scale_factor": np.float64([1.0, 2.0])},
    {"scale_factor": np.float64(np.nan)},
]


def table(dtype):
    """Rows with every pair of neighbouring choices; all rows would be 6480 for each type."""
    rows = list(itertools.product(SIGNS, FILLS, MISSING, RANGES, PACKINGS))
    axes = [SIGNS, FILLS, MISSING, RANGES, PACKINGS]
    chosen, seen = [], set()
    for row in rows:
        numbers = [axis.index(value) if axis is FILLS else next(i for i, v in enumerate(axis) if v is value)
                   for axis, value in zip(axes, row, strict=True)]  # fmt: skip
        pairs = {(a, b, numbers[a], numbers[b]) for a, b in itertools.combinations(range(len(axes)), 2)}
        if not pairs <= seen:
            seen |= pairs
            chosen.append(row)
    return chosen


def stored(dtype):
    if dtype[0] == "f":
        return np.array([-1e30, -7.5, -1, -0.0, 0, 1, 2.5, 100, 1e30, np.nan, np.inf, -np.inf], dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, 0, 1, 2, 5, 7, 100, info.max - 1, info.max], dtype)


def written(path, dtype, rows):
    with netCDF4.Dataset(path, "w") as d:
        values = stored(dtype)
        d.createDimension("x", len(values))
        for at, (sign, fill, missing, bounds, packing) in enumerate(rows):
            fills = {"low": values.min(), "high": values.max(), "zero": 0, "nan": np.nan}
            fill_value = fills.get(fill)
            if fill == "nan" and dtype[0] != "f":
                fill_value = None
            elif fill_value is not None and dtype[0] == "f" and fill != "nan":
                fill_value = {"low": -1e30, "high": 1e30, "zero": 0}[fill]
            v = d.createVariable(f"v{at}", dtype, ("x",), fill_value=fill_value)
            v.set_auto_maskandscale(False)
            v[:] = values
            same = {"same": np.array(5, dtype)[()], "list": np.array([1, 100], dtype), "pair": np.array([1, 100], dtype)}
            for name, value in {**sign, **missing, **bounds, **packing}.items():
                v.setncattr(name, same.get(value, value) if isinstance(value, str) else value)


@pytest.fixture(scope="module", params=TYPES)
def files(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("decoding") / f"{request.param}.nc"
    rows = table(request.param)
    written(path, request.param, rows)
    return path, request.param, rows


def test_table_has_every_pair():
    assert 60 <= len(table("i2")) < 6480


@pytest.mark.parametrize("mask, scale", [(True, True), (True, False), (False, True), (False, False)])
def test_beside_netcdf4(files, mask, scale):
    path, _, rows = files
    differences = []
    with netCDF4.Dataset(path) as theirs, zonda.netcdf4.Dataset(path) as ours:
        for at, row in enumerate(rows):
            outcomes = []
            for d in (theirs, ours):
                v = d[f"v{at}"]
                v.set_auto_mask(mask)
                v.set_auto_scale(scale)
                with np.errstate(all="ignore"):
                    outcomes.append([differential.outcome(lambda v=v, key=key: v[key]) for key in (..., slice(2, 5), 7)])
            for their, our in zip(*outcomes, strict=True):
                told = their[0] != our[0] and f"{their[:2]} and {our[:2]}"
                if not told and their[0] == "gives":
                    told = differential.same_value(their[1], our[1])
                if told:
                    differences.append((at, row, told))
    assert not differences, f"{len(differences)} of {len(rows)} rows: {differences[:3]}"


def test_back_beside_netcdf4(files, tmp_path):
    """Values put with masks and scales are stored as the same bytes."""
    path, dtype, rows = files
    found = []
    for module in (netCDF4, zonda.netcdf4):
        copy = tmp_path / f"{module.__name__}.nc"
        copy.write_bytes(path.read_bytes())
        outcomes = []
        with module.Dataset(copy, "a") as d, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for at in range(len(rows)):
                v = d[f"v{at}"]
                values = np.ma.masked_array([1.0, 2.5, 100, 5, 7, 50] + [3.0] * (len(v) - 6), dtype="f8")
                values[1] = np.ma.masked
                outcomes.append(differential.outcome(lambda v=v, values=values: v.__setitem__(..., values))[0])
        found.append((outcomes, copy))
    (their_outcomes, theirs), (our_outcomes, ours) = found
    assert their_outcomes == our_outcomes
    differences = []
    with netCDF4.Dataset(theirs) as a, netCDF4.Dataset(ours) as b:
        for at, row in enumerate(rows):
            for d in (a, b):
                d[f"v{at}"].set_auto_maskandscale(False)
            if a[f"v{at}"][:].tobytes() != b[f"v{at}"][:].tobytes():
                differences.append((at, row, a[f"v{at}"][:], b[f"v{at}"][:]))
    assert not differences, f"{len(differences)} of {len(rows)} rows: {differences[:3]}"


def is_refused_at_once(row):
    """Whether xarray looks at what cannot be decoded when it opens the file, not when it reads."""
    return any(isinstance(value, str) and name != "_Unsigned" and value not in ("same", "list", "pair")
               or name == "scale_factor" and np.ndim(value)
               for part in (row[0], row[2], row[3], row[4]) for name, value in part.items())  # fmt: skip


def opened(path, engine, drop):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_dataset(path, engine=engine, drop_variables=drop, decode_times=False)


def loaded(ds, name):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ds[name].load()


def difference(their, our):
    if their[0] != our[0] or (their[0] == "raises" and type(their[1]) is not type(our[1])):
        return their[:2], our[:2]
    if their[0] == "raises":
        return None
    a, b = their[1], our[1]
    same = a.dtype == b.dtype and a.values.tobytes() == b.values.tobytes() and list(a.attrs) == list(b.attrs)
    return None if same and list(a.encoding) == list(b.encoding) else (a, b)


def test_beside_xarray(files):
    path, _, rows = files
    from zonda.xarray_engine import ZondaBackendEntrypoint

    engines = "netcdf4", ZondaBackendEntrypoint
    refused = {f"v{at}" for at, row in enumerate(rows) if is_refused_at_once(row)}
    differences = []
    theirs, ours = (opened(path, engine, refused) for engine in engines)
    with theirs, ours:
        assert list(theirs.variables) == list(ours.variables)
        for name in theirs.variables:
            found = [differential.outcome(lambda ds=ds, name=name: loaded(ds, name)) for ds in (theirs, ours)]
            differences += [(name, rows[int(name[1:])], told) for told in [difference(*found)] if told]
    # One of these keeps the whole file from being opened.
    for name in sorted(refused)[::8]:
        drop = {f"v{at}" for at in range(len(rows))} - {name}
        found = [differential.outcome(lambda e=e, n=name, d=drop: loaded(opened(path, e, d), n)) for e in engines]
        differences += [(name, rows[int(name[1:])], told) for told in [difference(*found)] if told]
    assert not differences, f"{len(differences)} of {len(rows)} rows: {differences[:3]}"


def test_back_beside_xarray(files, tmp_path):
    """What xarray encodes goes into the file as the other engine writes it."""
    path, _, rows = files
    from zonda.xarray_engine import ZondaBackendEntrypoint  # noqa: F401

    differences = []
    whole = opened(path, "netcdf4", {f"v{at}" for at, row in enumerate(rows) if is_refused_at_once(row)})
    for name in list(whole.variables)[::7]:
        at = int(name[1:])
        got = differential.outcome(lambda name=name: loaded(whole, name))
        if got[0] == "raises":
            continue
        ds = got[1].to_dataset(name=name)
        targets = [tmp_path / "theirs.nc", tmp_path / "ours.nc"]
        writers = (
            lambda to, ds=ds: ds.to_netcdf(to, engine="netcdf4"),
            lambda to, ds=ds: zonda.xarray_engine.to_netcdf(ds, to),
        )
        ends = []
        for to, write in zip(targets, writers, strict=True):
            with np.errstate(all="ignore"):
                ends.append(differential.outcome(lambda to=to, write=write: write(to)))
        if ends[0][0] != ends[1][0]:
            differences.append((at, rows[at], ends))
        elif ends[0][0] == "gives":
            raw = []
            for to in targets:
                with netCDF4.Dataset(to) as d:
                    d[name].set_auto_maskandscale(False)
                    raw.append((d[name].dtype, d[name][:].tobytes(), sorted(d[name].ncattrs())))
            if raw[0] != raw[1]:
                differences.append((at, rows[at], raw))
    assert not differences, f"{len(differences)}: {differences[:3]}"
