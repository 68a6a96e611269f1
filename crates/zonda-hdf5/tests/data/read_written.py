"""Reads the file that tests/written.rs puts together, changes it, and reads it again."""

import sys

import h5py
import numpy as np

path = sys.argv[1]
pairs = [(0.5, [1, 2, 3]), (-0.5, [-1, -2, -3])]


def same(values, dtype, expected):
    assert values.dtype == np.dtype(dtype), (values.dtype, dtype)
    assert values.tolist() == expected, (values.tolist(), expected)


def same_pairs(values):
    assert [(one["d"], one["three"].tolist()) for one in values] == pairs, values


def check(file):
    assert list(file)[:5] == ["outer", "many", "empty", "compact", "h\u00f6he"], list(file)
    assert file.attrs["title"] == b"root"
    assert list(file["outer"]) == ["pair", "inner", "soft"]
    contiguous = file["outer/inner/contiguous"]
    same(contiguous[:], "<f8", [1.5, -2.0, 1e300])
    same(file["empty"][:], "<f4", np.full((2, 3), 9.96921e36, "<f4").tolist())
    same(file["compact"][:], ">u4", np.arange(40, dtype="u1").view(">u4").tolist())
    same(file["h\u00f6he"][()], "<i2", 42)
    many = file["many"]
    same_pairs(many[:])
    same_pairs(file["outer/soft"][:])
    assert file["outer/pair"].id.equal(many.id.get_type())
    assert many.id.get_type().committed()
    names = "i1 u8 i4 big f4 text none colour array opaque string sequence pair grid"
    assert list(many.attrs)[:14] == names.split(), list(many.attrs)
    same(many.attrs["i1"], "i1", [-128, 127])
    same(many.attrs["u8"], "<u8", [2**64 - 1])
    same(many.attrs["i4"], "<i4", [1, -2, 3])
    assert many.attrs["big"] == 256
    same(many.attrs["f4"], "<f4", [2.5])
    assert many.attrs["text"] == b"hours"
    assert isinstance(many.attrs["none"], h5py.Empty)
    same(many.attrs["colour"], "i1", [7, 1])
    assert h5py.check_enum_dtype(many.attrs.get_id("colour").dtype) == {"red": 1, "blue": 7}
    assert many.attrs["array"].tolist() == [[[1, 2], [3, 4]]]
    # numpy knows no tags, so h5py cannot read the value.
    assert h5py.h5a.open(many.id, b"opaque").get_type().get_tag() == b"tag"
    assert list(many.attrs["string"]) == [""]
    assert many.attrs["sequence"][0].tolist() == []
    same_pairs(many.attrs["pair"])
    assert h5py.h5a.open(many.id, b"pair").get_type().committed()
    same(many.attrs["grid"], "i1", [[1, 2, 3], [4, 5, 6]])


def check_chunked(values):
    assert values.id.get_create_plist().get_nfilters() == 3
    assert (values.chunks, values.maxshape, values.fillvalue) == ((1, 4), (None, 4), -7)


with h5py.File(path, "r", track_order=True) as file:
    check(file)
    check_chunked(file["chunked"])
    same(file["chunked"][:], "<i8", [[-7] * 4] * 2)

with h5py.File(path, "r+", track_order=True) as file:
    file["chunked"].resize((5, 4))
    file["chunked"][4] = [1, 2, 3, 4]
    file["empty"].attrs["new"] = "value"
    file["many"].attrs["another"] = np.arange(100)
    file["outer/inner"].create_group("below")
    file["added"] = np.arange(5.0)
    file["h\u00f6he"][()] = 42
    file["gone"] = 1
    del file["gone"]
    file.move("chunked", "renamed")

with h5py.File(path, "r", track_order=True) as file:
    check(file)
    check_chunked(file["renamed"])
    same(file["renamed"][:], "<i8", [[-7] * 4] * 4 + [[1, 2, 3, 4]])
    assert file["empty"].attrs["new"] == "value"
    assert file["many"].attrs["another"].tolist() == list(range(100))
    assert "below" in file["outer/inner"]
    same(file["added"][:], "<f8", [0.0, 1.0, 2.0, 3.0, 4.0])
