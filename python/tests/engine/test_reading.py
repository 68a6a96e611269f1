# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that netCDF4-python wrote, read by the engine and judged by the engine netcdf4."""

import copy
import inspect
import io
import multiprocessing
import os
import pickle
import threading

import netCDF4
import numpy as np
import pytest
import xarray as xr

import zonda
from zonda.xarray_engine import ZondaBackendEntrypoint, _handles, _selection, open_mfdataset


@pytest.fixture
def path(data, tmp_path):
    path = tmp_path / "data.nc"
    encoding = {"field": {"zlib": True, "chunksizes": (5, 7, 11), "_FillValue": -9e9}}
    data.to_netcdf(path, engine="netcdf4", encoding=encoding, unlimited_dims=["time"])
    return str(path)


KEYS = [
    (slice(None), slice(None), slice(None)),
    (slice(10, 1, -3), slice(None, None, -1), slice(2, 29, 5)),
    (3, -1, slice(None)),
    (-12, 0, 29),
    (slice(5, 5), slice(None), 0),
    (np.array([1, 1, 0, 11]), slice(0, 20, 4), np.array([0, 29, 2, -3, 27])),
    (np.array([], int), slice(None), slice(None)),
    (slice(None), np.array([2, 5, 8, 11]), np.array([-1])),
    (np.arange(12)[::-1], 7, np.array([0, 1, 2, 27, 28])),
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_every_kind_of_index(path, data, key):
    with xr.open_dataset(path, engine="zonda", cache=False) as ds:
        got = ds["field"].isel(dict(zip(("time", "lat", "lon"), key, strict=True)))
        expected = data["field"].isel(dict(zip(("time", "lat", "lon"), key, strict=True)))
        xr.testing.assert_equal(got, expected)


def test_index_out_of_bounds(path):
    with xr.open_dataset(path, engine="zonda") as ds, pytest.raises(IndexError):
        ds["field"].isel(lon=30).load()


def test_points_far_apart_and_near(path, data):
    rng = np.random.default_rng(1)
    for count in (1, 3, 50):
        at = {
            name: xr.DataArray(rng.integers(0, size, (count, 2)), dims=("p", "q"))
            for name, size in data.sizes.items()
        }
        with xr.open_dataset(path, engine="zonda") as ds:
            xr.testing.assert_equal(ds["field"].isel(at), data["field"].isel(at))


def test_points_are_not_read_as_a_box(tmp_path, monkeypatch):
    big = xr.Dataset({"v": (("a", "b", "c"), np.arange(64.0**3).reshape(64, 64, 64))})
    big.to_netcdf(tmp_path / "big.nc", engine="netcdf4")
    read = []
    plain = _selection.read

    def counted(plans, dtype, reader):
        result = plain(plans, dtype, reader)
        read.append(result.size)
        return result

    monkeypatch.setattr(_selection, "read", counted)
    points = xr.DataArray(np.arange(64), dims="p")
    with xr.open_dataset(tmp_path / "big.nc", engine="zonda", cache=False) as ds:
        got = ds["v"].isel(a=points, b=points, c=points).values
    assert got.tolist() == np.einsum("iii->i", big["v"].values).tolist()
    assert sum(read) == 64


def test_array_index_reads_joined_runs():
    calls = []

    def reader(start, count, stride, out):
        calls.append((start, count, stride))
        out[...] = np.arange(1000)[start[0] : start[0] + count[0] * (stride or (1,))[0] : (stride or (1,))[0]]

    for index in ([5, 6, 7], [3, 9, 4, 900, 901], [0, 10, 20, 30], [999, -1000], [8, 8, 8], [2, 5, 4, 4]):
        calls.clear()
        got = _selection.read(_selection.plan([np.array(index)], (1000,)), np.dtype(int), reader)
        assert got.tolist() == np.arange(1000)[index].tolist()
        assert len(calls) <= 2
    calls.clear()
    _selection.read(_selection.plan([np.arange(0, 1000, 10)], (1000,)), np.dtype(int), reader)
    assert calls == [((0,), (100,), (10,))]


def test_like_the_netcdf4_engine(path):
    """Values, attributes and every encoding key."""
    for decode in (True, False):
        with (
            xr.open_dataset(path, engine="zonda", decode_cf=decode) as ours,
            xr.open_dataset(path, engine="netcdf4", decode_cf=decode) as theirs,
        ):
            xr.testing.assert_identical(ours.load(), theirs.load())
            assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"] == {"time"}
            assert list(ours.variables) == list(theirs.variables)
            for name in theirs.variables:
                assert _plain(ours[name].encoding) == _plain(theirs[name].encoding), name
                assert ours[name].dtype == theirs[name].dtype
                for key, value in theirs[name].attrs.items():
                    assert type(ours[name].attrs[key]) is type(value), (name, key)


def _plain(encoding):
    return {key: repr(value) for key, value in encoding.items()}


FILTERS = [
    {"zlib": True, "complevel": 1},
    {"zlib": True, "shuffle": False},
    {"compression": "zstd", "complevel": 3},
    {"compression": "bzip2", "complevel": 9},
    {"compression": "blosc_zstd", "blosc_shuffle": 2, "complevel": 5},
    {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 16},
    {"fletcher32": True, "chunksizes": (6, 20, 15)},
    {"contiguous": True},
    {"dtype": "i2", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -32768},
    {"least_significant_digit": 2, "zlib": True},
    {"zlib": True, "significant_digits": 3, "quantize_mode": "BitGroom"},
    {"endian": "big"},
]


@pytest.mark.parametrize("encoding", FILTERS, ids=lambda e: "-".join(map(str, e)))
def test_encodings_make_the_round(data, tmp_path, encoding):
    """Written by Zonda, seen alike by both; and written again with the encoding that was read."""
    from zonda.xarray_engine import to_netcdf

    first, second = str(tmp_path / "a.nc"), str(tmp_path / "b.nc")
    written = data[["field"]]
    to_netcdf(written, first, encoding={"field": encoding})
    with xr.open_dataset(first, engine="netcdf4") as theirs, xr.open_dataset(first, engine="zonda") as ours:
        xr.testing.assert_identical(ours.load(), theirs.load())
        ours_told, theirs_told = _plain(ours["field"].encoding), _plain(theirs["field"].encoding)
        for key in set(ours_told) | set(theirs_told):
            assert ours_told.get(key) == theirs_told.get(key), key
        precision = 0.02 if "least_significant_digit" in encoding or "significant_digits" in encoding else 1e-3
        np.testing.assert_allclose(ours["field"], written["field"], atol=precision, rtol=precision)
        to_netcdf(ours, second)
    with xr.open_dataset(second, engine="zonda") as again, xr.open_dataset(first, engine="zonda") as ours:
        same = {key: value for key, value in ours_told.items() if key != "source"}
        assert {key: value for key, value in _plain(again["field"].encoding).items() if key != "source"} == same
        xr.testing.assert_identical(again.load(), ours.load())


def test_types_of_netcdf4(tmp_path):
    path = str(tmp_path / "types.nc")
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("x", 3)
        kind = nc.createEnumType("u1", "cloud_t", {"clear": 0, "cloudy": 1, "missing": 255})
        nc.createVariable("cloud", kind, ("x",), fill_value=255)[:] = [0, 1, 255]
        nc.createVariable("text", str, ("x",))[:] = np.array(["a", "", "é"], object)
        nc.createVariable("char", "S1", ("x",))[:] = np.array([b"a", b"b", b"c"])
        pair = nc.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair_t")
        nc.createVariable("pair", pair, ("x",))[:] = np.array([(1, 2.5)] * 3, pair.dtype)
        ragged = nc.createVLType("i4", "ragged_t")
        v = nc.createVariable("rag", ragged, ("x",))
        for n in range(3):
            v[n] = np.arange(n + 1, dtype="i4")
        nc.createVariable("scalar", "f4", ())[...] = 4
        nc.setncattr_string("s", ["one", "two"])
        nc.empty = ""
        nc.text = "plain"
    with (
        xr.open_dataset(path, engine="zonda") as ours,
        xr.open_dataset(path, engine="netcdf4") as theirs,
    ):
        for name in ("cloud", "text", "char", "pair", "scalar"):
            xr.testing.assert_identical(ours[name].load(), theirs[name].load())
            assert ours[name].dtype == theirs[name].dtype, name
        assert ours["cloud"].encoding["dtype"].metadata == theirs["cloud"].encoding["dtype"].metadata
        assert [row.tolist() for row in ours["rag"].values] == [[0], [0, 1], [0, 1, 2]]
        assert ours.attrs == theirs.attrs


@pytest.mark.parametrize("source", ["bytes", "memoryview", "BytesIO", "file", "fsspec"])
def test_things_that_are_no_path(path, data, source):
    content = open(path, "rb").read()
    if source == "fsspec":
        fsspec = pytest.importorskip("fsspec")
        fs = fsspec.filesystem("memory")
        fs.pipe("/zonda/data.nc", content)
        thing = fs.open("/zonda/data.nc")
    else:
        thing = {
            "bytes": lambda: content,
            "memoryview": lambda: memoryview(content),
            "BytesIO": lambda: io.BytesIO(content),
            "file": lambda: open(path, "rb"),
        }[source]()
    assert ZondaBackendEntrypoint().guess_can_open(thing)
    with xr.open_dataset(thing, engine="zonda") as ds:
        xr.testing.assert_equal(ds.load(), data)


def test_guess(tmp_path, path):
    guess = ZondaBackendEntrypoint().guess_can_open
    other = tmp_path / "other.nc"
    other.write_bytes(b"something else")
    assert guess(path) and guess(tmp_path / "not_there.nc")
    assert not guess(other) and not guess(tmp_path / "x.tif")
    assert guess("https://host/data.nc") and guess("https://host/data?id=1#mode=bytes")
    # Any other may be a dataset of OPeNDAP.
    assert guess("https://host/x") and not guess("https://host/x.zarr")
    assert not guess(3)


def test_what_is_not_there(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(tmp_path / "none.nc", engine="zonda")
    with pytest.raises(OSError, match="nogroup"):
        xr.open_dataset(path, engine="zonda", group="nogroup")
    broken = tmp_path / "broken.nc"
    broken.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(OSError):
        xr.open_dataset(broken, engine="zonda")


def test_pickle_copy_and_tokens(path, data):
    from dask.base import tokenize

    with xr.open_dataset(path, engine="zonda") as ds:
        again = pickle.loads(pickle.dumps(ds))
        xr.testing.assert_identical(again.load(), ds)
        xr.testing.assert_identical(copy.deepcopy(ds).load(), ds)
        assert tokenize(ds["field"].variable) == tokenize(pickle.loads(pickle.dumps(ds["field"].variable)))
    content = open(path, "rb").read()
    with xr.open_dataset(content, engine="zonda") as ds:
        xr.testing.assert_equal(pickle.loads(pickle.dumps(ds)).load(), data)


def test_closed_datasets_give_their_file_back(path):
    import gc

    # What tests before this one left to the collector.
    gc.collect()
    before = _open_files()
    ds = xr.open_dataset(path, engine="zonda")
    assert _open_files() == before + 1
    ds.close()
    assert _open_files() == before
    ds["count"].load()  # is opened again, as with the other engines
    ds.close()
    ds = xr.open_dataset(path, engine="zonda", cache=False)
    del ds
    gc.collect()
    assert _open_files() == before


def _open_files():
    links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    return sum(os.path.exists(link) and os.readlink(link).endswith(".nc") for link in links)


def _write_many(folder, count):
    paths = []
    for number in range(count):
        path = str(folder / f"part{number:04}.nc")
        with netCDF4.Dataset(path, "w", format="NETCDF4" if number % 2 else "NETCDF3_CLASSIC") as nc:
            nc.createDimension("t", 4)
            nc.createVariable("t", "i4", ("t",))[:] = np.arange(4) + 4 * number
            nc.createVariable("v", "f8", ("t",))[:] = np.arange(4) + 0.5 + 4 * number
        paths.append(path)
    return paths


def test_more_files_than_may_be_open(tmp_path):
    """1,000 files opened in one call and read at random by 8 threads, at most 50 of them open."""
    paths = _write_many(tmp_path, 1000)
    before = _open_files()
    with xr.set_options(file_cache_maxsize=50), open_mfdataset(paths, chunks={}) as ds:
        assert ds.sizes["t"] == 4000
        assert _open_files() - before <= 50 + 8
        parts = [xr.open_dataset(path, engine="zonda", cache=False) for path in paths]
        wrong = []

        def at_random(seed):
            rng = np.random.default_rng(seed)
            try:
                for number in rng.integers(0, 1000, 500):
                    at = int(rng.integers(0, 4))
                    got = float(parts[number]["v"][at])
                    if got != at + 0.5 + 4 * number:
                        wrong.append((number, at, got))
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=at_random, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert _open_files() - before <= 50 + 8
        assert float(ds["v"].sum()) == sum(n + 0.5 for n in range(4000))
        for part in parts:
            part.close()
    assert _open_files() == before


def test_open_many_says_which_file_is_wrong(tmp_path):
    paths = _write_many(tmp_path, 6)
    open(paths[3], "wb").write(b"nothing")
    before = _open_files()
    with pytest.raises(OSError, match="part0003"):
        open_mfdataset(paths)
    assert _open_files() == before
    with pytest.raises(FileNotFoundError):
        open_mfdataset(str(tmp_path / "no*.nc"))


def test_nested_combination(tmp_path):
    paths = _write_many(tmp_path, 4)
    with (
        open_mfdataset([paths[:2], paths[2:]], combine="nested", concat_dim=["a", "t"]) as ours,
        xr.open_mfdataset([paths[:2], paths[2:]], combine="nested", concat_dim=["a", "t"], engine="netcdf4",
                          data_vars="all", coords="different", compat="no_conflicts", join="outer") as theirs,
    ):
        xr.testing.assert_identical(ours.load(), theirs.load())


def test_one_file_by_eight_threads(path, data):
    expected = data["field"].values
    wrong = []
    with xr.open_dataset(path, engine="zonda", cache=False) as ds:

        def work(seed):
            rng = np.random.default_rng(seed)
            try:
                for _ in range(200):
                    t, y = int(rng.integers(12)), int(rng.integers(20))
                    if not np.array_equal(ds["field"][t, y].values, expected[t, y], equal_nan=True):
                        wrong.append((t, y))
                    if seed == 0:
                        ds.close()  # others go on: the file is opened again for them
            except Exception as error:
                wrong.append(repr(error))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def _in_child(ds, queue):
    queue.put(float(ds["field"].sum()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork(path, data):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with xr.open_dataset(path, engine="zonda", cache=False) as ds:
        float(ds["field"].sum())  # the threads of the engine exist now
        children = [context.Process(target=_in_child, args=(ds, queue)) for _ in range(3)]
        for child in children:
            child.start()
        sums = [queue.get(timeout=60) for _ in children]
        for child in children:
            child.join(60)
            assert child.exitcode == 0
        assert sums == [float(ds["field"].sum())] * 3


def test_groups_and_trees(tmp_path):
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"a": ("x", [1, 2])}, attrs={"of": "root"}),
            "/one": xr.Dataset({"b": ("x", [3.0, 4.0])}),
            "/one/two": xr.Dataset({"c": (("x", "y"), np.ones((2, 3)))}),
        }
    )
    path = str(tmp_path / "tree.nc")
    tree.to_netcdf(path, engine="netcdf4")
    with xr.open_datatree(path, engine="zonda") as ours:
        xr.testing.assert_identical(ours.load(), tree)
    with xr.open_datatree(path, engine="zonda", group="one") as ours:
        assert [node.path for node in ours.subtree] == ["/", "/two"]
    groups = xr.open_groups(path, engine="zonda")
    assert list(groups) == ["/", "/one", "/one/two"]
    with xr.open_dataset(path, engine="zonda", group="/one/two") as ds:
        assert ds["c"].dims == ("x", "y")
    for ds in groups.values():
        ds.close()


def test_limit_is_that_of_xarray(tmp_path):
    paths = _write_many(tmp_path, 6)
    with xr.set_options(file_cache_maxsize=3):
        handles = [_handles.Handle(_handles.Source.of(path)) for path in paths]
        for handle in handles:
            handle.acquire()
        assert [handle.is_open for handle in handles] == [False] * 3 + [True] * 3
        held = handles[5].acquire()
        for handle in handles[:3]:
            handle.acquire()
        assert not handles[5].is_open and held.file.is_open  # who is in it keeps it
    for handle in handles:
        handle.close()


def test_the_class_is_an_engine_too(tmp_path):
    """Not installed, an engine is given as a class; xarray then knows of its keywords only what the class says."""
    path = tmp_path / "f.nc"
    with zonda.create(path) as ds:
        ds.create_variable("v", data=np.array([1, 2, 3], "i2"), dims="x", attrs={"scale_factor": 0.5})
    said = inspect.signature(ZondaBackendEntrypoint.open_dataset).parameters
    assert ZondaBackendEntrypoint.open_dataset_parameters == tuple(name for name in said if name != "self")
    with xr.open_dataset(path, engine=ZondaBackendEntrypoint, decode_cf=False) as ds:
        assert ds.v.dtype == "i2" and ds.v.attrs["scale_factor"] == 0.5
    with xr.open_dataset(path, engine=ZondaBackendEntrypoint) as ds:
        np.testing.assert_array_equal(ds.v, [0.5, 1, 1.5])
