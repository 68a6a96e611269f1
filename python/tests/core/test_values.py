"""Values of variables and attributes: every type in every format, judged by other libraries."""

from __future__ import annotations

import h5py
import netCDF4
import numpy as np
import pytest

import zonda
from zonda._zonda import File, default_fill


def test_every_type_is_read_by_netcdf4_python(tmp_path, each_format, numeric_types):
    path = tmp_path / "types.nc"
    file = File.create(path, each_format)
    dim = file.def_dim(0, "n", 5)
    written = {}
    for nc_type, letters in numeric_types.items():
        dtype = np.dtype(letters)
        ends = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        values = np.array([ends.min, 1, 2, 3, ends.max], dtype)
        var = file.def_var(0, f"v{letters}", nc_type, (dim,))
        file.put_att(0, var, "limits", nc_type, values)
        written[f"v{letters}"] = (var, values)
    file.enddef()
    for var, values in written.values():
        assert file.put(0, var, (0,), (5,), None, values) == 0
    file.close()
    with netCDF4.Dataset(path) as judge:
        judge.set_auto_mask(False)
        for name, (_, values) in written.items():
            np.testing.assert_array_equal(judge[name][:], values)
            assert judge[name].dtype == values.dtype
            np.testing.assert_array_equal(judge[name].limits, values)


def test_every_type_is_read_from_netcdf4_python(tmp_path, each_format, numeric_types):
    path = tmp_path / "types.nc"
    named = {"CDF-1": "NETCDF3_CLASSIC", "CDF-2": "NETCDF3_64BIT_OFFSET", "CDF-5": "NETCDF3_64BIT_DATA"}
    with netCDF4.Dataset(path, "w", format=named.get(each_format, each_format)) as judge:
        judge.createDimension("n", 4)
        for letters in numeric_types.values():
            judge.createVariable(letters, letters, ("n",))[:] = [3, 1, 4, 1]
            judge[letters].setncattr("a", np.array([2, 7], letters))
    file = File.open(path)
    assert file.format == each_format
    variables = file.group(0)[5]
    assert [variable[1] for variable in variables] == list(numeric_types.values())
    for var, letters, nc_type, _, shape in variables:
        assert numeric_types[nc_type] == letters and shape == (4,)
        out = np.zeros(4, letters)
        assert file.get(0, var, (0,), (4,), None, out) == 0
        assert out.tolist() == [3, 1, 4, 1]
        found_type, found = file.att(0, var, "a")
        assert found_type == nc_type and found.dtype == letters and found.tolist() == [2, 7]
    file.close()


def test_h5py_reads_what_is_written(numbers):
    with h5py.File(numbers) as judge:
        np.testing.assert_array_equal(judge["v"][...], np.arange(600).reshape(20, 30))
        assert judge["v"].chunks == (7, 8) and judge["v"].compression == "gzip" and judge["v"].shuffle
        stored = judge["v"].id
        places = [stored.get_chunk_info(i) for i in range(stored.get_num_chunks())]
    file = File.open(numbers)
    expected = sorted((c.chunk_offset, c.byte_offset, c.size, c.filter_mask) for c in places)
    assert file.chunks(0, 0) == expected
    file.close()


def test_strides_select_as_numpy_does(numbers):
    file = File.open(numbers)
    whole = np.arange(600, dtype="f4").reshape(20, 30)
    for start, count, stride in [((1, 2), (4, 5), (3, 4)), ((0, 29), (20, 1), (1, 1)), ((19, 0), (1, 30), None), ((0, 0), (0, 3), None)]:
        out = np.zeros(count, "i4")
        file.get(0, 0, start, count, stride, out)
        by = stride or (1, 1)
        want = whole[tuple(slice(s, s + n * b, b) for s, n, b in zip(start, count, by, strict=True))]
        np.testing.assert_array_equal(out, want)
    file.close()


def test_what_does_not_fit_is_counted(tmp_path, each_format):
    file = File.create(tmp_path / "range.nc", each_format)
    dim = file.def_dim(0, "n", 3)
    var = file.def_var(0, "v", 3, (dim,))
    file.enddef()
    assert file.put(0, var, (0,), (3,), None, np.array([1.0, 1e9, -1e9])) == 2
    file.put(0, var, (0,), (3,), None, np.array([1, 300, -5], "i2"))
    assert file.get(0, var, (0,), (3,), None, np.zeros(3, "i1")) == 1
    file.close()


def test_an_unlimited_dimension_grows(tmp_path, each_format):
    path = tmp_path / "grows.nc"
    file = File.create(path, each_format)
    dim = file.def_dim(0, "t", None)
    var = file.def_var(0, "v", 4, (dim,))
    file.enddef()
    file.put(0, var, (6,), (2,), None, np.array([8, 9], "i4"))
    assert file.dim(0, dim) == ("t", 8, True, 0)
    out = np.zeros(8, "i4")
    file.get(0, var, (0,), (8,), None, out)
    assert out.tolist() == [default_fill(4)] * 6 + [8, 9]
    file.close()
    with netCDF4.Dataset(path) as judge:
        assert judge["v"][:].compressed().tolist() == [8, 9]


def test_text_is_bytes(tmp_path, each_format):
    file = File.create(tmp_path / "text.nc", each_format)
    dim = file.def_dim(0, "n", 3)
    var = file.def_var(0, "c", 2, (dim,))
    file.put_att(0, -1, "title", 2, b"Z\xfcrich\0 and on")
    file.enddef()
    file.put(0, var, (0,), (3,), None, np.array([b"a", b"", b"\xff"], "S1"))
    out = np.zeros(3, "S1")
    file.get(0, var, (0,), (3,), None, out)
    assert out.tobytes() == b"a\0\xff"
    assert file.att(0, -1, "title") == (2, b"Z\xfcrich\0 and on")
    with pytest.raises(TypeError) as caught:
        file.get(0, var, (0,), (3,), None, np.zeros(3, "f4"))
    assert caught.value.code == -56
    file.close()


def test_strings_and_sequences_are_objects(tmp_path):
    path = tmp_path / "objects.nc"
    file = File.create(path, "NETCDF4")
    dim = file.def_dim(0, "n", 3)
    names = file.def_var(0, "names", 12, (dim,))
    ragged = file.def_var(0, "ragged", file.def_vlen(0, "list", 4), (dim,))
    words = np.array(["a", "", "Zürich"], object)
    file.put_objects(0, names, (0,), (3,), None, words)
    lists = np.empty(3, object)
    lists[:] = [np.array([1, 2], "i4"), np.array([], "i4"), np.arange(1000, dtype="i4")]
    file.put_objects(0, ragged, (0,), (3,), None, lists)
    file.put_att(0, names, "more", 12, ["x", "ÿ"])
    file.close()
    with netCDF4.Dataset(path) as judge:
        assert judge["names"][:].tolist() == words.tolist() and judge["names"].more == ["x", "ÿ"]
        for got, want in zip(judge["ragged"][:], lists, strict=True):
            np.testing.assert_array_equal(got, want)
    file = File.open(path)
    out = np.empty(3, object)
    file.get_objects(0, names, (0,), (3,), None, out)
    assert out.tolist() == words.tolist()
    file.get_objects(0, ragged, (0,), (3,), None, out)
    assert [list(item) for item in out] == [list(item) for item in lists]
    assert file.att(0, names, "more") == (12, ["x", "ÿ"])
    with pytest.raises(TypeError, match="objects"):
        file.get(0, names, (0,), (3,), None, np.zeros(3, "i8"))
    file.close()


def test_types_of_the_user(tmp_path):
    path = tmp_path / "user.nc"
    file = File.create(path, "NETCDF4")
    dim = file.def_dim(0, "n", 2)
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i2", ("f8", (2,))], "offsets": [0, 8], "itemsize": 24})
    pair = file.def_compound(0, "pair", 24, [("a", 0, 3, ()), ("b", 8, 6, (2,))])
    sky = file.def_enum(0, "sky", 1, [("clear", 0), ("cloudy", -1)])
    raw = file.def_opaque(0, "raw", 5)
    values = {
        pair: np.array([(1, [2, 3]), (4, [5, 6])], dtype), sky: np.array([0, -1], "i1"), raw: np.array([b"12345", b"abc\0d"], "V5"),
    }  # fmt: skip
    ids = {ty: file.def_var(0, f"v{ty}", ty, (dim,)) for ty in values}
    for ty, var in ids.items():
        file.put(0, var, (0,), (2,), None, values[ty])
    file.close()
    file = File.open(path)
    assert file.type_info(pair)["dtype"] == dtype and file.type_info(pair)["class"] == "compound"
    assert file.type_info(sky)["members"] == [("clear", 0), ("cloudy", -1)]
    assert file.type_info(raw)["size"] == 5 and file.type_info(raw)["class"] == "opaque"
    for ty, var in ids.items():
        out = np.zeros(2, file.type_info(ty)["dtype"])
        file.get(0, var, (0,), (2,), None, out)
        for field in out.dtype.names or [...]:
            np.testing.assert_array_equal(out[field], values[ty][field])
    with pytest.raises(TypeError, match="24 bytes"):
        file.get(0, ids[pair], (0,), (2,), None, np.zeros(2, "V23"))
    file.close()
    with h5py.File(path) as judge:
        assert judge[f"v{pair}"]["a"].tolist() == [1, 4] and judge[f"v{pair}"]["b"].tolist() == [[2, 3], [5, 6]]
        assert judge[f"v{raw}"][1].tobytes() == b"abc\0d"


def test_names_that_are_no_utf8_come_and_go(tmp_path):
    path = tmp_path / "names.nc"
    file = File.create(path, "CDF-1")
    # What an old program wrote in Latin 1.
    file.def_dim(0, "abcd", 2)
    file.close()
    data = path.read_bytes()
    assert data.count(b"abcd") == 1
    path.write_bytes(data.replace(b"abcd", b"ab\xfcd"))
    file = File.open(path)
    name = file.group(0)[4][0][1]
    assert name == "ab\udcfcd" and name.encode("utf-8", "surrogateescape") == b"ab\xfcd"
    file.close()


def test_scalars_through_a_file(tmp_path):
    path = tmp_path / "scalars.nc"
    with zonda.create(path) as ds:
        ds.create_variable("number", data=5.5)
        ds.create_variable("text", str)[...] = "word"
        with pytest.raises(ValueError, match="1 dimensions, 0 are named"):
            ds.create_variable("q", data=np.arange(3))
        assert "q" not in ds
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["n"] = np.int16(7)
    with zonda.open(path) as ds:
        number = ds["number"]
        assert number[()] == 5.5 and number[...].shape == () and float(number[...]) == 5.5
        assert np.asarray(number) == 5.5
        out = np.zeros((), "f4")
        number.read_into(out)
        assert out == 5.5
        assert ds["text"][()] == "word"
    with zonda.open(tmp_path / "other.h5") as ds:
        assert ds["n"][()] == 7
