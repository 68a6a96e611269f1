# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files: in memory, joined, closed by the garbage collector, used by threads; functions of the module."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from differential import FORMATS, compare, same_value

reference = pytest.importorskip("netCDF4")
ours = pytest.importorskip("zonda.netcdf4")


@pytest.mark.parametrize("format", FORMATS)
def test_memory(tmp_path, format):
    """A file made in memory, read by both from its bytes."""
    ds = ours.Dataset("in memory", "w", memory=1024, format=format)
    ds.createDimension("x", 5)
    ds.createVariable("v", "f8", ("x",))[:] = np.arange(5)
    data = ds.close()
    assert isinstance(data, memoryview)
    for module in (reference, ours):
        for given in (data, bytes(data), bytearray(data)):
            with module.Dataset("name", memory=given) as back:
                assert back.filepath() == "name" and back.data_model == format
                assert np.array_equal(back["v"][:], np.arange(5))
    with pytest.raises(OSError):
        ours.Dataset("name", memory=b"no netCDF at all")
    with pytest.raises(ValueError, match="memory"):
        ours.Dataset("name", "a", memory=data)


@pytest.mark.parametrize("format", FORMATS)
def test_diskless(tmp_path, format):
    for persist in (False, True):
        path = tmp_path / f"diskless-{persist}.nc"
        ds = ours.Dataset(path, "w", diskless=True, persist=persist, format=format)
        ds.createDimension("x", 3)
        ds.createVariable("v", "i4", ("x",))[:] = 7
        ds.close()
        assert path.exists() == persist
    with reference.Dataset(path) as ds:
        assert ds["v"][:].tolist() == [7, 7, 7]
    with ours.Dataset(path, diskless=True) as ds:
        assert ds["v"][:].tolist() == [7, 7, 7]


@pytest.mark.parametrize(("mode", "there", "expected"), [
    ("w", True, []), ("a", True, ["v"]), ("r+", True, ["v"]), ("a", False, []), ("ws", True, []), ("as", True, ["v"]),
])  # fmt: skip
@pytest.mark.parametrize("format", FORMATS)
def test_modes(tmp_path, mode, there, expected, format):
    path = tmp_path / "modes.nc"
    if there:
        with ours.Dataset(path, "w", format=format) as ds:
            ds.createVariable("v", "i4")[...] = 3
    with ours.Dataset(path, mode, format=format) as ds:
        assert list(ds.variables) == expected
        ds.createVariable("w", "i4")[...] = 4
    with reference.Dataset(path) as ds:
        assert list(ds.variables) == [*expected, "w"]
        assert ds["w"][...] == 4
    for kwargs in ({"mode": "x"}, {"mode": "w", "clobber": False}):
        with pytest.raises(FileExistsError):
            ours.Dataset(path, **kwargs)


@pytest.mark.parametrize("format", FORMATS)
def test_definitions_between_data(tmp_path, format):
    """Definitions and data in turns: what define mode is for does not show."""
    datasets = [m.Dataset(tmp_path / f"{m.__name__}.nc", "w", format=format) for m in (reference, ours)]
    for ds in datasets:
        ds.createDimension("t", None)
        for step in range(5):
            ds.createDimension(f"x{step}", step + 1)
            var = ds.createVariable(f"v{step}", "f4", ("t", f"x{step}"))
            var[0] = step
            var.units = f"unit {step}"
            assert var[0, 0] == step
            ds.renameVariable(f"v{step}", f"w{step}")
            ds.renameDimension(f"x{step}", f"y{step}")
            assert ds.variables[f"w{step}"].dimensions == ("t", f"y{step}")
            ds.sync()
            ds.set_fill_off()
            ds.set_fill_on()
            ds.variables["w0"][step] = 10 * step
        ds.close()
    with reference.Dataset(tmp_path / "netCDF4.nc") as a, reference.Dataset(tmp_path / "zonda.netcdf4.nc") as b:
        assert list(a.variables) == list(b.variables)
        for name in a.variables:
            assert not same_value(a[name][:], b[name][:]), name
            assert a[name].__dict__ == b[name].__dict__


def test_groups(tmp_path):
    path = tmp_path / "groups.nc"
    with ours.Dataset(path, "w") as ds:
        ds.createDimension("x", 2)
        var = ds.createVariable("/a/b/v", "i4", ("x",))
        var[:] = [1, 2]
        # Another dimension of the name, nearer: a variable keeps its own. netCDF4 takes the nearer one's length.
        ds["a"].createDimension("x", 3)
        assert ds["a/b/v"][:].tolist() == [1, 2]
        ds.createVariable("a/w", "i4", ("x",))[:] = 5
        ds.createGroup("a/c").title = "c"
        ds["a"].renameGroup("c", "d")
        with pytest.raises(OSError, match="Group"):
            ds["a"].close()
    for module in (reference, ours):
        with module.Dataset(path) as ds:
            assert module is reference or ds["a/b/v"][:].tolist() == [1, 2]
            assert ds["/a/w"].shape == (3,)
            assert ds["a/d"].title == "c" and ds["a/d"].path == "/a/d" and ds["a/b"].parent is ds["a"]
            assert ds["a/b/v"].group().name == "b"


def test_joined_files(tmp_path):
    paths = []
    for n, size in enumerate((3, 1, 4)):
        paths.append(str(tmp_path / f"part{n}.nc"))
        with reference.Dataset(paths[-1], "w", format="NETCDF4_CLASSIC") as ds:
            ds.createDimension("time", None)
            ds.createDimension("x", 3)
            time = ds.createVariable("time", "f8", ("time",))
            time.units, time.calendar = f"days since 2000-01-{n * 3 + 1:02}", "standard"
            time[:] = np.arange(size)
            v = ds.createVariable("v", "i2", ("time", "x"))
            v.scale_factor, v.history = 0.5, "packed"
            v[:] = np.arange(size * 3).reshape(size, 3) + 100 * n
            ds.createVariable("alone", "i4", ("x",))[:] = n
            ds.title = f"part {n}"
    with reference.MFDataset(str(tmp_path / "part*.nc")) as a, ours.MFDataset(paths) as b:
        assert a.ncattrs() == b.ncattrs() and a.title == b.title and a.data_model == b.data_model
        assert [len(d) for d in a.dimensions.values()] == [len(d) for d in b.dimensions.values()]
        for key in (slice(None), 0, -1, 5, slice(1, 7, 2), [0, 3, 7], (slice(2, 5), 1), (slice(None), [0, 2]), (3, 2), 8,
                    (Ellipsis, slice(None, None, 2)), np.array([True] * 4 + [False] * 4)):  # fmt: skip
            compare(f"v[{key}]", lambda k=key: a["v"][k], lambda k=key: b["v"][k])
        compare("alone", lambda: a["alone"][:], lambda: b["alone"][:])
        times = reference.MFTime(a["time"]), ours.MFTime(b["time"])
        compare("time", lambda: times[0][:], lambda: times[1][:])
        assert times[1].units == "days since 2000-01-01" and times[1].calendar == "standard"
        assert b.isopen()
    assert not b.isopen()
    for wrong in ([], "nothing*.nc"):
        with pytest.raises(OSError):
            ours.MFDataset(wrong)
    with pytest.raises(OSError, match="aggregation"):
        ours.MFDataset(paths, aggdim="nowhere")


def test_garbage_is_closed(tmp_path):
    """With keepweakref at once; without, when the collector comes by."""
    for weak in (True, False):
        path = tmp_path / f"{weak}.nc"
        ds = ours.Dataset(path, "w", keepweakref=weak)
        ds.createDimension("x", 2)
        ds.createVariable("v", "i4", ("x",))[:] = 1
        gone = weakref.ref(ds)
        del ds
        if not weak:
            gc.collect()
        assert gone() is None
        with reference.Dataset(path) as back:
            assert back["v"][:].tolist() == [1, 1]


def test_nothing_is_pickled(tmp_path):
    with ours.Dataset(tmp_path / "p.nc", "w") as ds:
        ds.createDimension("x", 2)
        for thing in (ds, ds.createVariable("v", "i4"), ds.createVLType("i4", "row")):
            with pytest.raises(NotImplementedError, match="not picklable"):
                pickle.dumps(thing)


def test_threads(tmp_path):
    """Eight threads read the same variables of the same and of own files, with masks and attributes."""
    paths = [tmp_path / f"{n}.nc" for n in range(4)]
    for n, path in enumerate(paths):
        with ours.Dataset(path, "w") as ds:
            ds.createDimension("x", 10_000)
            v = ds.createVariable("v", "i2", ("x",), zlib=True, chunksizes=(500,), fill_value=n)
            v.scale_factor = 0.5
            v.set_auto_maskandscale(False)
            v[:] = np.arange(10_000) % 100
    shared = [ours.Dataset(path) for path in paths]
    expected = [ds["v"][:] for ds in shared]
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(60):
                n = int(rng.integers(4))
                begin, step = int(rng.integers(9_000)), int(rng.integers(1, 9))
                key = slice(begin, begin + 1_000, step)
                if rng.random() < 0.5:
                    found = shared[n]["v"][key]
                else:
                    with ours.Dataset(paths[n]) as own:
                        found = own["v"][key]
                assert not same_value(expected[n][key].filled(-1), found.filled(-1))
                assert shared[n]["v"].scale_factor == 0.5
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    for ds in shared:
        ds.close()


TEXTS = [np.array(["a", "bcd", ""], "S4"), np.array([["a", "ü"], ["東京", ""]], "U3"), np.array("abc", "S5"), np.arange(3)]


@pytest.mark.parametrize("encoding", [None, "ascii", "utf-8", "none", "latin-1"])
@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_characters(text, encoding):
    if encoding == "none" and text.dtype.kind == "S":
        # netCDF4's gives the first digit of each byte's number.
        characters = ours.stringtochar(text, encoding)
        assert characters.tobytes() == text.tobytes()
        return
    if text.ndim > 1 and encoding != "ascii":
        # netCDF4's takes one dimension here; ours takes any.
        if encoding == "utf-8":
            back = ours.chartostring(ours.stringtochar(text, encoding, 12), encoding)
            assert back.tolist() == text.tolist()
        return
    _, a, b = compare("to", lambda: reference.stringtochar(text, encoding), lambda: ours.stringtochar(text, encoding))
    if isinstance(a, np.ndarray) and a.ndim:
        compare("back", lambda: reference.chartostring(a, encoding), lambda: ours.chartostring(b, encoding))


def test_functions():
    for a, b in ((("abc", 5), {}), (("abc", 5, "U"), {}), ((b"ab", 2), {}), (("abcdef", 3), {}), (("a", 3, "X"), {})):
        compare(f"stringtoarr{a}", lambda a=a, b=b: reference.stringtoarr(*a, **b), lambda a=a, b=b: ours.stringtoarr(*a, **b))
    for name in ("default_fillvals", "NC_DISKLESS", "NC_PERSIST", "is_native_little", "is_native_big"):
        assert getattr(reference, name) == getattr(ours, name), name
    hidden = [name for name in dir(reference) if name.startswith("__has_")]
    assert not [name for name in [*hidden, *reference.__all__] if not hasattr(ours, name)]
    before = ours.get_chunk_cache()
    ours.set_chunk_cache(size=1_000_000, preemption=0.5)
    assert ours.get_chunk_cache() == (1_000_000, before[1], 0.5)
    ours.set_chunk_cache(*before)
    dates = ours.num2date([0, 1], "days since 2000-01-01")
    assert ours.date2num(dates, "days since 2000-01-01").tolist() == [0, 1]


def test_variables_by_attributes(tmp_path):
    path = tmp_path / "by.nc"
    with ours.Dataset(path, "w") as ds:
        for name, axis in (("a", "X"), ("b", "Y"), ("c", None)):
            v = ds.createVariable(name, "i4")
            if axis:
                v.axis = axis
    with reference.Dataset(path) as a, ours.Dataset(path) as b:
        for wanted in ({"axis": "X"}, {"axis": lambda v: v is None}, {"axis": lambda v: v in ("X", "Y")}, {"no": 1}, {}):
            names = [[v.name for v in ds.get_variables_by_attributes(**wanted)] for ds in (a, b)]
            assert names[0] == names[1], wanted


def test_variables_are_a_dictionary(tmp_path):
    """Variables are made when they are asked for; that does not show."""
    path = tmp_path / "many.nc"
    names = [f"v{n}" for n in range(5)]
    with reference.Dataset(path, "w") as ds:
        ds.createDimension("x", 2)
        for n, name in enumerate(names):
            ds.createVariable(name, "i4", ("x",))[:] = n
    for weak in (False, True):
        with ours.Dataset(path, keepweakref=weak) as ds:
            found = ds.variables
            assert isinstance(found, dict) and list(found) == list(found.keys()) == names and len(found) == 5
            assert "v1" in found and "w" not in found and found.get("w") is None and found.get("w", 1) == 1
            assert {**found}["v2"] is found["v2"] is dict(found)["v2"] is found.copy()["v2"] is ds["v2"]
            assert [v.name for v in found.values()] == names and [n for n, _ in found.items()] == names
            assert all(isinstance(v, ours.Variable) for v in ({} | found).values())
            assert all(isinstance(v, ours.Variable) for v in (found | {}).values())
            assert list(reversed(found)) == names[::-1] and found == dict(found) and not found != dict(found)
            other: dict = {}
            other.update(found)
            assert other["v4"][:].tolist() == [4, 4] and "v0" in repr(found)
            with pytest.raises(KeyError):
                found["w"]
            with pytest.raises(KeyError):
                found.pop("w")
    with ours.Dataset(path) as ds:
        assert ds.variables.pop("v1").name == "v1" and ds.variables.popitem()[0] == "v4"
        assert ds.variables.setdefault("v2") is ds["v2"] and list(ds.variables) == ["v0", "v2", "v3"]
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(ds.variables["v3"])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(v is seen[0] for v in seen)
    # The file stays open as long as its variables may be asked for.
    assert ours.Dataset(path).variables["v3"][:].tolist() == [3, 3]


def test_cdl(tmp_path):
    """CDL of a file, and the file of that CDL."""
    path = tmp_path / "cdl.nc"
    with ours.Dataset(path, "w") as ds:
        ds.createDimension("x", 3)
        v = ds.createVariable("v", "i4", ("x",))
        v[:], v.units = [1, 2, 3], "m"
        try:
            text = ds.tocdl(data=True)
        except FileNotFoundError:
            pytest.skip("no ncdump here")
        assert "v = 1, 2, 3 ;" in text and 'v:units = "m" ;' in text
        assert ds.tocdl(outfile=tmp_path / "header.cdl") is None
        assert "v = 1" not in (tmp_path / "header.cdl").read_text()
    (tmp_path / "back.cdl").write_text(text)
    with ours.Dataset.fromcdl(tmp_path / "back.cdl", mode="r") as ds:
        assert ds["v"][:].tolist() == [1, 2, 3] and ds["v"].units == "m"
    with pytest.raises(FileExistsError):
        ours.Dataset.fromcdl(tmp_path / "back.cdl")
    with pytest.raises(FileNotFoundError):
        ours.Dataset.fromcdl(tmp_path / "nowhere.cdl")


def test_a_broken_attribute_hides_no_other(tmp_path):
    """Of one that cannot be read the error is kept, for who asks for it."""
    path = tmp_path / "broken.nc"
    with ours.Dataset(path, "w") as ds:
        ds.good = 1
        ds.setncattr_string("bad", ["one", "two"])
    data = bytearray(path.read_bytes())
    place = data.index(b"GCOL")  # where strings are
    data[place : place + 4] = b"GONE"
    path.write_bytes(data)
    with ours.Dataset(path) as ds:
        assert ds.ncattrs() == ["good", "bad"] and ds.good == 1
        with pytest.raises(AttributeError, match="global heap"):
            ds.getncattr("bad")
