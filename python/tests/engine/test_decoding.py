# SPDX-License-Identifier: MIT OR Apache-2.0
"""Datasets made without xarray's decoders where those change nothing: beside xarray's decoders on the same store."""

import itertools
import os
import warnings
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from xarray.backends.store import StoreBackendEntrypoint

from zonda.xarray_engine import ZondaDataStore, _decode

DEFAULTS = dict(
    mask_and_scale=True,
    decode_times=True,
    concat_characters=True,
    decode_coords=True,
    use_cftime=None,
    decode_timedelta=None,
)


def by_xarray(store, drop, **options):
    return StoreBackendEntrypoint().open_dataset(store, drop_variables=drop, **options)


def both(path, drop=None, group=None, **options):
    """The dataset by this engine and by xarray's decoders, and what each warned of."""
    options = {**DEFAULTS, **options}
    made = []
    for mine in (True, False):
        store = ZondaDataStore.open(str(path), group=group)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ds = (_decode.dataset if mine else by_xarray)(store, drop, **options)
        made.append((ds, sorted(str(warning.message) for warning in told)))
    return made


def same_dict(mine, theirs, where):
    assert list(mine) == list(theirs), where
    for key, value in mine.items():
        assert type(value) is type(theirs[key]), (where, key)
        np.testing.assert_array_equal(value, theirs[key], err_msg=f"{where} {key}")


def check_same(mine, theirs):
    """Everything of two datasets, values last: those are lazy until then."""
    assert list(mine.variables) == list(theirs.variables)
    assert list(mine.sizes.items()) == list(theirs.sizes.items())
    assert set(mine.coords) == set(theirs.coords)
    assert list(mine.indexes) == list(theirs.indexes) == []
    same_dict(mine.attrs, theirs.attrs, "of the dataset")
    same_dict(mine.encoding, theirs.encoding, "encoding of the dataset")
    for name, expected in theirs.variables.items():
        found = mine.variables[name]
        assert found.dims == expected.dims and found.shape == expected.shape, name
        assert found.dtype == expected.dtype and type(found) is type(expected), name
        assert found._in_memory == expected._in_memory, name
        same_dict(found.attrs, expected.attrs, f"attributes of {name}")
        same_dict(found.encoding, expected.encoding, f"encoding of {name}")
        for key in keys(expected.ndim):
            part, right = (values_or_error(variable, key) for variable in (found, expected))
            if not isinstance(right, np.ndarray):
                assert part == right, (name, key)
                continue
            assert part.dtype == right.dtype, (name, key)
            assert part.shape == right.shape, (name, key)
            # The bits: signs of zeros and payloads of NaNs as well.
            bits = (lambda values: repr(values.tolist())) if right.dtype == object else np.ndarray.tobytes
            assert bits(part) == bits(right), (name, key)


def values_or_error(variable, key):
    try:
        return variable[key].values
    except Exception as error:  # such as of no dates at all, in cftime's calendars
        return type(error), str(error)


def values_or_error_of_engine(path, engine):
    try:
        return xr.open_dataset(path, engine=engine)
    except Exception as error:  # of an index
        return type(error), str(error)


def keys(rank):
    yield ...
    if rank:
        yield (0,) * rank
        yield (slice(1, None, 2),) * rank
        yield (slice(None, None, -1),) * rank
        yield (slice(2, 2),) * rank
        yield (np.array([1, 0, 1]),) * rank
        yield xr.Variable("points", [1, 0, 0])


FILLS = [None, -7, "nan", "other", "text", "many"]


def attributes_of(kind, fill, missing, scale, offset):
    """Attributes to try, as the pairs that are set."""
    dtype = np.dtype(kind)
    values = {
        -7: dtype.type(100 if kind[0] == "u" else -7),
        "nan": np.float32("nan"),
        "other": np.float64(3),
        "text": "three",
        "many": np.array([1, 2], dtype),
    }
    told = {"units": "K", "_FillValue": values.get(fill), "missing_value": values.get(missing)}
    told["scale_factor"], told["add_offset"] = scale, offset
    return {name: value for name, value in told.items() if value is not None}


def packed(path, kind, combinations):
    """A file with a variable for each combination of fill value, missing value, scale and offset."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("n", 4)
        file.createDimension("m", 4)
        for number, combination in enumerate(combinations):
            told = attributes_of(kind, *combination)
            fill = told.pop("_FillValue", None)
            if fill is not None and np.isnan(fill) and kind[0] != "f":
                fill = None
            variable = file.createVariable(f"v{number}", kind, ("n", "m"), fill_value=fill)
            variable.set_auto_maskandscale(False)
            variable.setncatts(told)
            values = np.arange(16).reshape(4, 4)
            values[0, :2] = [100 if kind[0] == "u" else -7, 3]
            variable[:] = values.astype(kind)
    return path


@pytest.mark.parametrize("kind", ["u1", "i2", "i4", "u8", "f4", "f8"])
def test_masks_and_scales(tmp_path, kind):
    scales, offsets = [None, np.float32(0.01), np.float64(0.1)], [None, np.float32(0.5), np.int16(2)]
    path = packed(tmp_path / "packed.nc", kind, itertools.product(["nan", -7, None], FILLS, scales, offsets))
    for options in ({}, {"mask_and_scale": False}, {"mask_and_scale": {"v3": False}}):
        (mine, said), (theirs, expected) = both(path, **options)
        assert said == expected
        check_same(mine, theirs)


@pytest.mark.parametrize("fill", [-7, None])
@pytest.mark.parametrize("scale", [np.int16(2), np.array([0.5]), np.array([0.5, 2.0]), "two"], ids=str)
@pytest.mark.parametrize("is_offset", [False, True])
def test_scales_that_are_no_floating_point_number(tmp_path, fill, scale, is_offset):
    path = packed(tmp_path / "odd.nc", "i2", [(fill, None, None, scale) if is_offset else (fill, None, scale, None)])
    outcomes = []
    for mine in (True, False):
        store = ZondaDataStore.open(str(path))
        make = _decode.dataset if mine else by_xarray
        try:
            outcomes.append(make(store, None, **DEFAULTS))
        except Exception as error:
            outcomes.append((type(error), str(error)))
    if isinstance(outcomes[1], xr.Dataset):
        check_same(*outcomes)
    else:
        assert outcomes[0] == outcomes[1]


@pytest.fixture
def odd(tmp_path):
    """Whatever else there is to decode."""
    path = tmp_path / "odd.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.setncatts({"title": "odd", "coordinates": "lon missing"})
        for name, length in (("time", None), ("n", 3), ("letters", 5), ("both", 2)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "days since 2000-01-01", "calendar": "noleap", "bounds": "time_bounds"})
        time[:] = [0, 1, 2.5]
        file.createVariable("time_bounds", "f8", ("time", "both"))[:] = np.arange(6).reshape(3, 2)
        late = file.createVariable("late", "i4", ("n",), fill_value=-1)
        late.units = "hours since 1900-01-01"
        late[:] = [1, 2, 3]
        lag = file.createVariable("lag", "i2", ("n",))
        lag.units = "hours"
        lag[:] = [1, 2, 3]
        file.createVariable("lon", "f4", ("n",))[:] = [1, 2, 3]
        temp = file.createVariable("temp", "i2", ("time", "n"), fill_value=-9)
        temp.setncatts({"coordinates": "lon late nowhere", "scale_factor": 0.5, "units": "days of rain"})
        temp.set_auto_maskandscale(False)
        temp[:] = [[-9, 1, 2]] * 3
        flag = file.createVariable("flag", "i1", ("n",))
        flag.dtype_ = "no"
        flag.setncattr("dtype", "bool")
        flag[:] = [0, 1, 0]
        wide = file.createVariable("wide", "i1", ("n",), fill_value=-1)
        wide.setncattr("_Unsigned", "true")
        wide.set_auto_maskandscale(False)
        wide[:] = [-1, -2, 3]
        file.createVariable("word", "S1", ("n", "letters"))[:] = np.array([list("apple"), list("pears"), list("plums")], "S1")
        file.createVariable("letters_of", "S1", ("letters", "n"))[:] = np.full((5, 3), b"x")
        initial = file.createVariable("initial", "S1", ("n",), fill_value=b"?")
        initial[:] = np.array([b"a", b"?", b"c"])
        name = file.createVariable("name", str, ("n",))
        name[:] = np.array(["one", "zwei", ""], object)
        file.createVariable("big", ">i4", ("n",), fill_value=-1)[:] = [1, 2, 3]
        file.createVariable("scalar", "f8", (), fill_value=0.5)[...] = 0.5
        colour = file.createEnumType("u1", "colour", {"red": 0, "green": 1})
        paint = file.createVariable("paint", colour, ("n",), fill_value=1)
        paint[:] = [0, 1, 0]
        point = file.createCompoundType(np.dtype([("x", "f4"), ("y", "i4")]), "point")
        file.createVariable("place", point, ("n",))[:] = np.ones(3, [("x", "f4"), ("y", "i4")])
        inner = file.createGroup("inner")
        inner.createVariable("n", "f4", ("n",))[:] = [3, 4, 5]
        inner.createVariable("t", "f4", ("time", "n"))[:] = 1
    return path


OPTIONS = [
    {},
    {"decode_times": False},
    {"decode_times": xr.coders.CFDatetimeCoder(use_cftime=True, time_unit="s")},
    {"decode_timedelta": False},
    {"decode_timedelta": True},
    {"decode_timedelta": xr.coders.CFTimedeltaCoder(time_unit="s")},
    {"concat_characters": False},
    {"decode_coords": False},
    {"decode_coords": "coordinates"},
    {"decode_coords": "all"},
    {"mask_and_scale": False, "decode_times": False},
    {"decode_times": {"time": False}},
    {"drop": "lon"},
    {"drop": ["time", "late", "nowhere"]},
    {"group": "inner"},
    dict.fromkeys(DEFAULTS, False),  # decode_cf=False
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_all_else(odd, options):
    (mine, said), (theirs, expected) = both(odd, **options)
    assert said == expected
    check_same(mine, theirs)


def test_use_cftime_is_xarrays_own(odd):
    with pytest.warns(FutureWarning, match="use_cftime"):
        ds = _decode.dataset(ZondaDataStore.open(str(odd)), ["late"], **{**DEFAULTS, "use_cftime": True})
    assert ds["time"].dtype == object


def names_and_dims(tmp_path, *definitions):
    path = tmp_path / "names.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 2)
        for name, dims in definitions:
            file.createVariable(name, "f4", dims)[...] = 1
    return path


@pytest.mark.parametrize(
    "definitions",
    [[("x", ("y",)), ("v", ("x", "y"))], [("x", ("x", "y")), ("y", ("y",))], [("x", ("x",)), ("y", ("x",)), ("v", ("y",))]],
    ids=str,
)
def test_variables_called_like_dimensions_of_others(tmp_path, definitions):
    path = names_and_dims(tmp_path, *definitions)
    (mine, said), (theirs, expected) = both(path)
    assert said == expected
    check_same(mine, theirs)


def test_what_xarray_cannot_put_into_one_dataset(tmp_path):
    scalar = names_and_dims(tmp_path, ("x", ()), ("v", ("x",)))
    lengths = tmp_path / "lengths.nc"
    with netCDF4.Dataset(lengths, "w") as file:
        file.createDimension("x", 3)
        inner = file.createGroup("inner")
        inner.createVariable("outer", "f4", ("x",))
        inner.createDimension("x", 2)
        inner.createVariable("own", "f4", ("x",))
    for path, group in ((scalar, None), (lengths, "inner")):
        texts = []
        for make in (_decode.dataset, by_xarray):
            with pytest.raises(ValueError) as failure:
                make(ZondaDataStore.open(str(path), group=group), None, **DEFAULTS)
            texts.append(str(failure.value))
        assert texts[0] == texts[1]


def test_the_error_names_the_variable(tmp_path):
    path = tmp_path / "time.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", 2)
        time = file.createVariable("t", "f8", ("t",))
        time.units = "days since never"
        time[:] = [1, 2]
    with pytest.raises(ValueError, match="decode_times") as failure:
        xr.open_dataset(path, engine="zonda")
    assert "Raised while decoding variable 't'" in failure.value.__notes__[0]


def test_two_arrays_of_one_variable_are_two_to_dask(odd):
    raw = xr.open_dataset(odd, engine="zonda", mask_and_scale=False, decode_times=False)["temp"].variable._data
    decoded = xr.open_dataset(odd, engine="zonda", decode_times=False)["temp"].variable._data
    from dask.base import tokenize

    inner = [data.array.array.array for data in (raw, decoded)]
    assert tokenize(inner[0]) != tokenize(inner[1])
    assert tokenize(inner[1]) == tokenize(inner[1])


def test_what_is_plain_goes_by_no_decoder(tmp_path, monkeypatch):
    path = tmp_path / "plain.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name in ("time", "x"):
            file.createDimension(name, 3)
            file.createVariable(name, "f8", (name,))[:] = [1, 2, 3]
        file["time"].units = "days since 2000-01-01"
        file.createVariable("t", "f4", ("time", "x"), fill_value=9)[:] = 1
        packed = file.createVariable("p", "i2", ("time", "x"), fill_value=9)
        packed.setncatts({"scale_factor": np.float32(2), "add_offset": np.float32(1), "units": "K"})
        packed[:] = 3
    asked = []
    plain = xr.conventions.decode_cf_variable
    monkeypatch.setattr(xr.conventions, "decode_cf_variable", lambda name, *a, **k: asked.append(name) or plain(name, *a, **k))
    ds = xr.open_dataset(path, engine="zonda")
    assert not asked and ds["time"].dtype == "M8[ns]"
    xr.testing.assert_identical(ds.load(), xr.open_dataset(path, engine="netcdf4").load())


@pytest.mark.parametrize(
    "kind, values, units, calendar",
    [
        ("f8", [0, 1, 2.5], "days since 2000-01-01", "standard"),
        ("i4", [0, 1, 2], "hours since 1900-01-01 00:00", None),
        ("i8", [0, 10**9, 1], "days since 1-1-1", "gregorian"),  # one of them is no date
        ("i4", [0, 400000, 1], "days since 1500-01-01", "standard"),
        ("f8", [0.0, np.nan, 1], "days since 2000-01-01", "proleptic_gregorian"),
        ("f4", [0.1, 0.2, 1], "seconds since 2000-01-01 00:00:00.5", "standard"),
        ("i4", [0, 1, 2], "days since 2000-01-01", "360_day"),
        ("i4", [], "days since 2000-01-01", "standard"),
        ("i4", range(2000), "days since 2000-01-01", "standard"),
        ("u8", [0, 1, 2**63], "days since 2000-01-01", "standard"),
        ("u8", [3, 2**63 - 1, 2**64 - 1], "nanoseconds since 2000-01-01", "standard"),
        ("i8", [-5, 2**62, 0], "seconds since 2000-01-01", "standard"),
        ("i8", [2**63 - 1, -(2**63)], "nanoseconds since 1970-01-01", "standard"),
        ("i2", [-32768, 32767, 5], "days since 2000-01-01 12:00:00 +6:30", "standard"),
        ("f8", [-3.0, 0.0, 1e6], "hours since 2000-01-01", "standard"),
        ("f8", [106751.0, 106752.0], "days since 1970-01-01", "standard"),  # the last day of NumPy's dates
        ("f8", [-106751.0, -106752.0], "days since 1970-01-01", "standard"),
        ("f8", [2.0**53 - 1, 2.0**53 + 2], "nanoseconds since 1970-01-01", "proleptic_gregorian"),
        ("f8", [123456789.0, 987654321987.0], "microseconds since 1900-01-01", "standard"),
        ("f8", [np.inf, 1.0], "days since 2000-01-01", "standard"),
        ("f4", [16777217.0, 3.0], "seconds since 2000-01-01", "standard"),
        ("i4", [0, 10], "months since 2000-01-01", "standard"),
        ("i4", [0, 10], "days since the flood", "standard"),
        ("i4", [7, -7], "weeks since 2000-01-01", "standard"),
        ("i4", [1], "days since 2000-02-30", "standard"),
    ],
)
def test_dates(tmp_path, kind, values, units, calendar):
    path = tmp_path / "dates.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", len(values) or None)
        time = file.createVariable("time", kind, ("time",))
        time.units = units
        if calendar:
            time.calendar = calendar
        time[:] = np.array(list(values), kind)
    _decode._CLOCKS.clear()
    expected = outcome_of(by_xarray, path)
    # Units that were met before are decoded without xarray.
    for _ in range(3):
        found = outcome_of(_decode.dataset, path)
        if isinstance(expected, tuple):
            assert found == expected
        else:
            check_same(found, expected)
    if isinstance(expected, tuple):
        return
    engines = [values_or_error_of_engine(path, engine) for engine in ("zonda", "netcdf4")]
    if isinstance(engines[1], xr.Dataset):
        xr.testing.assert_identical(*engines)
    else:
        assert engines[0] == engines[1]


def test_units_of_many_files_are_understood_once(tmp_path, monkeypatch):
    _decode._CLOCKS.clear()
    asked, plain = [], _decode.decode_cf_datetime
    monkeypatch.setattr(_decode, "decode_cf_datetime", lambda *a, **k: asked.append(a) or plain(*a, **k))
    for number in range(5):
        path = tmp_path / f"{number}.nc"
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", 2)
            time = file.createVariable("time", "f8", ("time",))
            time.units = "hours since 2000-01-01"
            time[:] = [number, 6 * number + 1]
        right = np.datetime64("2000-01-01", "ns") + np.array([number, 6 * number + 1]) * np.timedelta64(1, "h")
        np.testing.assert_array_equal(_decode.dataset(ZondaDataStore.open(str(path)), None, **DEFAULTS)["time"].values, right)
    # The first two, and one for the clock.
    assert len(asked) == 3


def outcome_of(make, path):
    try:
        return make(ZondaDataStore.open(str(path)), None, **DEFAULTS)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore")
def test_files_of_others():
    corpus = os.environ.get("ZONDA_CORPUS")
    if not corpus:
        pytest.skip("ZONDA_CORPUS names no files")
    files = sorted(path for path in Path(corpus).rglob("*") if path.suffix in (".nc", ".nc4", ".h5", ".cdf"))
    opened = 0
    for path in files[::8]:
        if path.stat().st_size > 4 << 20:
            continue
        mine, theirs = outcome_of(_decode.dataset, path), outcome_of(by_xarray, path)
        if isinstance(theirs, tuple):
            assert mine == theirs, path
            continue
        opened += 1
        assert list(mine.variables) == list(theirs.variables) and set(mine.coords) == set(theirs.coords), path
        same_dict(mine.attrs, theirs.attrs, path)
        for name, expected in theirs.variables.items():
            found = mine.variables[name]
            assert (found.dims, found.shape, found.dtype) == (expected.dims, expected.shape, expected.dtype), (path, name)
            same_dict(found.attrs, expected.attrs, (path, name))
            same_dict(found.encoding, expected.encoding, (path, name))
            if expected.size <= 1000 and expected.dtype != object:
                values = [values_or_error(variable, ...) for variable in (found, expected)]
                if isinstance(values[1], np.ndarray):
                    assert values[0].tobytes() == values[1].tobytes(), (path, name)
                else:
                    assert values[0] == values[1], (path, name)
    assert opened
