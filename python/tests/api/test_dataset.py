"""Files, groups, variables and attributes through `zonda.open` and `zonda.create`."""

from __future__ import annotations

import io
import os
import pickle
import threading

import numpy as np
import pytest

import zonda


def test_round_trip_in_each_format(tmp_path, each_format):
    path = tmp_path / "file.nc"
    values = np.arange(24, dtype="f8").reshape(2, 3, 4)
    with zonda.create(path, format=each_format) as ds:
        assert ds.format == each_format and ds.is_writable
        ds.create_dimension("t", None)
        v = ds.create_variable("v", "i4", ("t", "y", "x"), sizes={"y": 3, "x": 4}, attrs={"units": "m", "level": 3})
        v[...] = values
        # A definition after data: the modes of the classic model are not the caller's business.
        w = ds.create_variable("w", "f4", ("t", "y"))
        v[2] = 7
        w[:] = np.ones((3, 3))
        ds.attrs["history"] = "made\nchanged"
    with zonda.open(path) as ds:
        assert list(ds) == ["v", "w"] and ds.sizes == {"t": 3, "y": 3, "x": 4}
        assert ds.dims["t"].is_unlimited and not ds.dims["x"].is_unlimited
        assert ds["v"].dtype == np.int32 and ds["v"].dims == ("t", "y", "x")
        np.testing.assert_array_equal(ds["v"][:2], values)
        assert (ds["v"][2] == 7).all()
        assert ds["v"].attrs["units"] == "m" and ds["v"].attrs["level"] == 3
        assert ds.attrs["history"] == "made\nchanged"


def test_indices_beside_numpy(model):
    expected = np.arange(4 * 7 * 5, dtype="f4").reshape(4, 7, 5)
    with zonda.open(model) as ds:
        v = ds["temp"]
        for key in [
            ..., 0, -1, (1, 2, 3), np.s_[::-1], np.s_[1:3, ::2, 4], np.s_[..., ::-2], np.s_[3:0:-2, 0], np.s_[0:0],
            (None, 1), np.s_[..., 0, None],
        ]:  # fmt: skip
            found = v[key]
            np.testing.assert_array_equal(found, expected[key])
            assert np.shape(found) == expected[key].shape
        assert isinstance(v[1, 2, 3], np.float32)
        np.testing.assert_array_equal(v[[3, 0], [True, False, False, True, False, False, True], 1:3],
                                      expected[[3, 0]][:, [0, 3, 6], 1:3])  # fmt: skip
        assert len(v) == 4 and [row.sum() for row in v] == [row.sum() for row in expected]
        np.testing.assert_array_equal(np.asarray(v), expected)
        with pytest.raises(IndexError):
            v[4]
        with pytest.raises(IndexError):
            v[0, 0, 0, 0]


def test_read_into(model):
    expected = np.arange(4 * 7 * 5).reshape(4, 7, 5)
    with zonda.open(model) as ds:
        v = ds["temp"]
        for out in [np.empty((4, 7, 5)), np.empty((4, 7, 5), "i2"), np.empty((5, 7, 4)).T, np.empty((4, 7, 5), ">f4")]:
            v.read_into(out)
            np.testing.assert_array_equal(out, expected)
        out = np.empty((2, 5))
        v.read_into(out, np.s_[[3, 1], 2])
        np.testing.assert_array_equal(out, expected[[3, 1], 2])
        with pytest.raises(ValueError, match="shape"):
            v.read_into(np.empty((2, 2)))
        frozen = np.empty((4, 7, 5))
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="written"):
            v.read_into(frozen)
        narrow = np.zeros((4, 7, 5), "i1")
        with pytest.raises(zonda.NetCDFError, match="12 values do not fit") as caught:
            v.read_into(narrow)
        assert caught.value.code == -60
        # All that fit were delivered.
        np.testing.assert_array_equal(narrow.ravel()[:128], np.arange(128))


def test_writing(tmp_path):
    with zonda.create(tmp_path / "w.nc") as ds:
        ds.create_dimension("t", None)
        v = ds.create_variable("v", "i2", ("t", "x"), sizes={"x": 4}, fill_value=-9)
        v[0] = 1
        v[2, ::2] = [5, 6]
        v[2, ::-2] = [7, 8]
        v[[4, 3], 1:3] = [[1, 2], [3, 4]]
        expected = np.full((5, 4), -9)
        expected[0], expected[2, ::2], expected[2, ::-2] = 1, [5, 6], [7, 8]
        expected[[4, 3], 1:3] = [[1, 2], [3, 4]]
        np.testing.assert_array_equal(v[...], expected)
        v[5:] = np.zeros((3, 4))
        assert v.shape == (8, 4)
        v[...] = v[::-1]
        np.testing.assert_array_equal(v[3:], expected[::-1])
        v[:, [True, False, True, False]] = 2.0
        assert (v[:, 0] == 2).all() and (v[:, 2] == 2).all()
        with pytest.raises(zonda.NetCDFError) as caught:
            v[0] = np.array([1, 2, 3, 10**6])
        assert caught.value.code == -60
        np.testing.assert_array_equal(v[0, :3], [1, 2, 3])
        for wrong in [np.zeros((2, 9)), np.zeros(3)]:
            with pytest.raises(ValueError, match="do not fit"):
                v[0:2] = wrong
        for wrong in [np.ma.masked_array([1, 2, 3, 4], mask=[0, 1, 0, 0]), np.array([1j] * 4), ["a"] * 4,
                      np.array(["2020-01-01"] * 4, "M8[D]")]:  # fmt: skip
            with pytest.raises((TypeError, ValueError)):
                v[0] = wrong
        v[0] = [True, False, True, False]
        np.testing.assert_array_equal(v[0], [1, 0, 1, 0])
        v[0] = np.array([1, 2, 3, 4], ">f8")
        np.testing.assert_array_equal(v[0], [1, 2, 3, 4])


def test_characters_and_strings(tmp_path):
    with zonda.create(tmp_path / "text.nc") as ds:
        c = ds.create_variable("c", "char", ("n", "len"), sizes={"n": 2, "len": 6})
        c[0] = "abc"
        c[1] = np.array(list("uvwxyz"), "S1")
        assert c.dtype == "S1" and c[...].tobytes() == b"abc\0\0\0uvwxyz"
        c[:] = np.array(["ä", "longer"])
        assert c[...].tobytes() == "ä".encode() + b"\0\0\0\0longer"
        with pytest.raises(ValueError, match="do not fit"):
            c[0] = "too long"
        s = ds.create_variable("s", str, "n")
        s[:] = ["x" * 10000, "ü"]
        assert s[...].tolist() == ["x" * 10000, "ü"] and s.dtype == object and s[1] == "ü"
        s[0] = "one"
        assert s[::-1].tolist() == ["ü", "one"]


def test_attributes(tmp_path):
    path = tmp_path / "atts.nc"
    values = {
        "text": "Grüße", "bytes": b"\xff raw", "empty": "", "number": 3, "real": 2.5, "array": np.arange(3, dtype="i2"),
        "strings": ["a", "b"], "u8": np.uint64(2**63),
    }  # fmt: skip
    with zonda.create(path) as ds:
        ds.attrs.update(values)
        ds.attrs.set("one string", "s", str)
        ds.attrs.set("short", 5, "i2")
    with zonda.open(path, "r+") as ds:
        assert list(ds.attrs) == [*values, "one string", "short"]
        assert ds.attrs["text"] == "Grüße" and ds.attrs["empty"] == ""
        assert ds.attrs["bytes"].encode("utf-8", "surrogateescape") == b"\xff raw"
        assert ds.attrs["number"] == 3 and ds.attrs["number"].dtype == np.int64
        assert ds.attrs["real"] == 2.5 and ds.attrs["u8"] == 2**63
        np.testing.assert_array_equal(ds.attrs["array"], [0, 1, 2])
        assert ds.attrs["strings"].tolist() == ["a", "b"] and ds.attrs["one string"] == "s"
        assert ds.attrs.type("one string") is str and ds.attrs.type("text") == "char"
        assert ds.attrs["short"].dtype == np.int16
        assert ds.attrs.as_dict().keys() == set(ds.attrs) and len(ds.attrs) == 10
        ds.attrs.rename("short", "shorter")
        del ds.attrs["real"]
        assert ds.attrs.pop("number") == 3 and ds.attrs.pop("number", None) is None
        assert "real" not in ds.attrs and "shorter" in ds.attrs
        with pytest.raises(KeyError):
            ds.attrs["real"]
        for wrong in [1j, object(), np.datetime64("2020")]:
            with pytest.raises(TypeError):
                ds.attrs["wrong"] = wrong
        # A text with surrogates comes back as the same bytes.
        ds.attrs["again"] = ds.attrs["bytes"]
        assert ds.attrs.raw("again") == b"\xff raw"


def test_classic_attributes(tmp_path):
    with zonda.create(tmp_path / "c.nc", format="CDF-1") as ds:
        ds.attrs["n"] = 3
        assert ds.attrs["n"].dtype == np.int32
        with pytest.raises(TypeError, match="32 bits"):
            ds.attrs["n"] = 2**40


def test_groups(model):
    with zonda.open(model, "a") as ds:
        inner = ds["forecast/surface"]
        assert inner.path == "/forecast/surface" and inner.parent.name == "forecast"
        assert ds["/forecast/surface/names"][2] == "Zürich"
        assert inner["/lat"].shape == (7,)
        assert [group.path for group in ds.walk()] == ["/", "/forecast", "/forecast/surface"]
        # Dimensions of groups above are those of a variable below.
        v = inner.create_variable("v", "f4", ("time", "station"))
        assert v.shape == (4, 3) and inner.find_dimension("time").is_unlimited
        assert ds.require_group("forecast") in ds.groups.values() or ds.require_group("forecast").path == "/forecast"
        with pytest.raises(TypeError):
            ds.require_group("lat")
        for name in ["nothing", "forecast/nothing", "nothing/lat"]:
            assert name not in ds
            with pytest.raises(KeyError, match="nothing"):
                ds[name]
        ds["lat"].name = "latitude"
        ds.dims["lat"].name = "latitude"
        inner.name = "ground"
        assert ds["latitude"].dims == ("latitude",) and "forecast/ground/names" in ds
        assert "lat" not in ds and "lat" not in ds.dims


def test_storage_of_variables(model):
    with zonda.open(model) as ds:
        v = ds["temp"]
        assert v.chunk_shape == (1, 7, 5)
        assert [name for name, _ in v.filters] == ["shuffle", "deflate"]
        assert v.fill_value == -1 and v.nbytes == 4 * 7 * 5 * 4
        chunks = v.chunks()
        assert [chunk.start for chunk in chunks] == [(n, 0, 0) for n in range(4)]
        import zlib

        with open(model, "rb") as file:
            file.seek(chunks[2].offset)
            raw = zlib.decompress(file.read(chunks[2].size))
        planes = np.frombuffer(raw, "u1").reshape(4, -1)
        np.testing.assert_array_equal(planes.T.copy().view("<f4").ravel(), v[2].ravel())


def test_filters_by_name(tmp_path):
    data = np.arange(4000, dtype="i4").reshape(40, 100)
    with zonda.create(tmp_path / "f.nc") as ds:
        for name, level in [("zlib", 9), ("zstd", None), ("zstd", -5), ("bzip2", 1)]:
            v = ds.create_variable(f"{name}{level}", data=data, dims=("y", "x"), compression=name, level=level,
                                   shuffle=True, fletcher32=True, chunks=(10, 100))  # fmt: skip
            np.testing.assert_array_equal(v[...], data)
        ds.create_variable("both", data=data, dims=("y", "x"), filters=[("zstd", [3])], chunks=(10, 100))
        ds.create_variable("alone", data=data, dims=("y", "x"), filters=[("zstd", 3)], chunks=(10, 100))
        before = list(ds)
        for wrong in [{"compression": "none such"}, {"compression": "zlib", "level": 99}, {"level": 1},
                      {"filters": ["none such"]}, {"filters": [("zstd", [2**40])]}]:  # fmt: skip
            with pytest.raises(ValueError):
                ds.create_variable("wrong", "f4", "x", **wrong)
        assert list(ds) == before, "a refused variable was defined"
    with zonda.open(tmp_path / "f.nc") as ds:
        assert all((ds[name][...] == data).all() for name in ds)
        assert ("zstd", (3,)) in ds["both"].filters and ds["alone"].filters == ds["both"].filters


def test_user_types(tmp_path):
    with zonda.create(tmp_path / "types.nc") as ds:
        point = ds.create_compound("point", np.dtype([("x", "f8"), ("n", "i4", (2,))], align=True))
        ragged = ds.create_vlen("ragged", "i2")
        blob = ds.create_opaque("blob", 5)
        sky = ds.create_enum("sky", "i1", {"clear": 0, "cloudy": 2})
        p = ds.create_variable("p", point, "i", sizes={"i": 2})
        values = np.zeros(2, point.dtype)
        values["x"], values["n"] = [1.5, 2.5], [[1, 2], [3, 4]]
        p[:] = values
        r = ds.create_variable("r", "ragged", "i")
        rows = np.empty(2, object)
        rows[:] = [np.array([1, 2, 3], "i2"), np.array([], "i2")]
        r[:] = rows
        r[1] = np.array([9], "i2")
        b = ds.create_variable("b", blob, "i")
        b[:] = np.array([b"12345", b"\0\1\2\3\4"], "V5")
        s = ds.create_variable("s", sky, "i", attrs={})
        s[:] = [0, 2]
    with zonda.open(tmp_path / "types.nc") as ds:
        assert list(ds.types) == ["point", "ragged", "blob", "sky"]
        np.testing.assert_array_equal(ds["p"][...]["n"], [[1, 2], [3, 4]])
        assert [row.tolist() for row in ds["r"][...]] == [[1, 2, 3], [9]]
        assert ds["b"][0].tobytes() == b"12345"
        kind = ds["s"].datatype
        assert isinstance(kind, zonda.EnumType) and kind.name_of(int(ds["s"][1])) == "cloudy"
        with pytest.raises(KeyError):
            kind.name_of(1)
        assert isinstance(ds["r"].datatype, zonda.VlenType) and ds["r"].datatype.base == np.int16


def test_sources(model):
    content = model.read_bytes()
    with zonda.open(model) as ds:
        expected = ds["temp"][...]
    for source in [str(model), os.fsencode(model), model, content, bytearray(content), memoryview(content),
                   io.BytesIO(content)]:  # fmt: skip
        with zonda.open(source) as ds:
            np.testing.assert_array_equal(ds["temp"][...], expected)
    with open(model, "rb") as file, zonda.open(file) as ds:
        np.testing.assert_array_equal(ds["temp"][1:], expected[1:])
    with zonda.open(content, "r+") as ds:
        ds["temp"][0] = 0
        assert (ds["temp"][0] == 0).all()
    assert content == model.read_bytes()
    with pytest.raises(TypeError):
        zonda.open(17)
    with pytest.raises(ValueError, match="mode"):
        zonda.open(model, "q")
    with pytest.raises(ValueError, match="only be read"):
        zonda.open(io.BytesIO(content), "r+")


def test_errors_are_those_people_catch(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        zonda.open(tmp_path / "none.nc")
    assert isinstance(caught.value, zonda.NetCDFError) and caught.value.code == 2
    assert str(tmp_path / "none.nc") in str(caught.value.path)
    (tmp_path / "text.nc").write_text("no netCDF")
    with pytest.raises(OSError):
        zonda.open(tmp_path / "text.nc")
    zonda.create(tmp_path / "there.nc").close()
    with pytest.raises(FileExistsError):
        zonda.create(tmp_path / "there.nc", "x")
    with pytest.raises(ValueError, match="format"):
        zonda.create(tmp_path / "x.nc", format="HDF9")
    ds = zonda.open(tmp_path / "there.nc")
    with pytest.raises(PermissionError):
        ds.attrs["a"] = 1
    ds.close()
    ds.close()
    with pytest.raises(ValueError):
        ds.attrs["a"]
    with pytest.raises(ValueError):
        list(ds)
    assert "closed" in repr(ds)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and again.code == 2


def test_memory_and_abort(tmp_path):
    ds = zonda.create("name only", memory=True)
    ds.create_variable("v", data=np.arange(3), dims="x")
    content = ds.to_bytes()
    assert not ds.is_open
    np.testing.assert_array_equal(zonda.open(content)["v"][...], [0, 1, 2])
    with zonda.create(tmp_path / "kept.nc", memory=True, persist=True) as ds:
        ds.attrs["a"] = 1
    with zonda.open(tmp_path / "kept.nc", memory=True) as ds:
        assert ds.attrs["a"] == 1


def test_the_first_error_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="mine"), zonda.create(tmp_path / "e.nc"):
        raise RuntimeError("mine")


def test_write_behind(tmp_path):
    path = tmp_path / "behind.nc"
    data = np.random.default_rng(0).random((20, 1000))
    with zonda.create(path, write_behind=True) as ds:
        v = ds.create_variable("v", "f8", ("t", "x"), sizes={"t": None, "x": 1000}, compression="zlib", level=1)
        for n, row in enumerate(data):
            v[n] = row
        ds.sync()
        waiting, wrong = ds.write_behind_status()
        assert waiting == 0 and wrong is None
    with zonda.open(path) as ds:
        np.testing.assert_array_equal(ds["v"][...], data)


def test_pickle(model):
    with zonda.open(model) as ds:
        v = pickle.loads(pickle.dumps(ds["temp"]))
        np.testing.assert_array_equal(v[...], ds["temp"][...])
        assert pickle.loads(pickle.dumps(ds["forecast/surface"])).path == "/forecast/surface"
    with zonda.open(model, "r+") as ds, pytest.raises(TypeError, match="pickled"):
        pickle.dumps(ds)


def test_threads_share_a_dataset(model):
    expected = np.arange(4 * 7 * 5, dtype="f4").reshape(4, 7, 5)
    wrong = []
    with zonda.open(model) as ds:

        def look(seed):
            chosen = np.random.default_rng(seed)
            for _ in range(200):
                n = int(chosen.integers(4))
                if not (ds["temp"][n, ::-1] == expected[n, ::-1]).all() or ds["temp"].attrs.as_dict() is None:
                    wrong.append(n)

        threads = [threading.Thread(target=look, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_others_read_it(model):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(model) as other:
        np.testing.assert_array_equal(other["temp"][:], np.arange(4 * 7 * 5).reshape(4, 7, 5))
        assert other["forecast/surface/names"][2] == "Zürich" and other["lat"].units == "degrees_north"


def test_how_it_looks(model):
    with zonda.open(model, "r+") as ds:
        ds.attrs["html"] = "<script>alert(1)</script>"
        for thing in (ds, ds["temp"], ds["forecast"]):
            text, html = repr(thing), thing._repr_html_()
            assert text.startswith("<zonda.") and "<script>" not in html and html.count("<div") == html.count("</div>")
            assert html.count("<details") == html.count("</details>")
        text = repr(ds)
        for part in ["time: 4 (unlimited)", "temp (time, lat, lon) float32", "title: a model", "forecast"]:
            assert part in text
        assert "chunks 1x7x5, shuffle(4), deflate(1)" in repr(ds["temp"]) or "chunks 1x7x5" in repr(ds["temp"])


def test_progress(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    from zonda import _progress, variable

    monkeypatch.setattr(_progress, "_LONG", 1000)
    monkeypatch.setattr(variable, "_PART", 4000)
    data = np.arange(30000.0).reshape(300, 100)
    with zonda.create(tmp_path / "p.nc", progress=True) as ds:
        v = ds.create_variable("v", "f8", ("y", "x"), sizes={"y": 300, "x": 100}, chunks=(7, 100))
        v[:] = data
        np.testing.assert_array_equal(v[3::2], data[3::2])
        np.testing.assert_array_equal(v[5:], data[5:])
    shown = capsys.readouterr().err
    assert "writing v" in shown and "reading v" in shown and "100%" in shown


def test_arrays_that_are_not_aligned_are_written(tmp_path):
    values = np.frombuffer(b"x" + np.arange(6.0).tobytes(), "f8", offset=1).reshape(2, 3)
    assert not values.flags.aligned
    with zonda.create(tmp_path / "a.nc") as ds:
        ds.create_variable("v", data=values, dims=("y", "x"))
        ds["v"][1] = values[0]
        assert ds["v"][...].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_a_dataset_is_made_by_functions() -> None:
    with pytest.raises(TypeError, match=r"zonda\.open\(path\)"):
        zonda.Dataset("file.nc")  # type: ignore[arg-type]
