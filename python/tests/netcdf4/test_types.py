# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types, text and attributes: written by one module, read by the other and by h5py."""

import itertools

import numpy as np
import pytest
from differential import FORMATS, compare, same_value

reference = pytest.importorskip("netCDF4")
ours = pytest.importorskip("zonda.netcdf4")

BOTH_WAYS = list(itertools.permutations((reference, ours)))
POINT = np.dtype([("n", "i4"), ("at", "f8", (2,)), ("tag", "S5")], align=True)
ATTRIBUTES = {
    "text": "degrees", "bytes": b"raw", "umlaut": "Zürich", "empty": "", "number": 3, "real": 2.5,
    "single": np.float32(1.5), "list": [1, 2, 3], "reals": np.array([1.5, 2.5], "f4"), "byte": np.int8(-3),
    "big": np.array([1, 2], ">i4"), "nothing": np.array([], "f8"), "one_text": ["only"],
}  # fmt: skip


def write_types(module, path):
    """A file of every user-defined type."""
    with module.Dataset(path, "w") as ds:
        ds.createDimension("x", 4)
        ds.createDimension("t", None)
        point = ds.createCompoundType(POINT, "point")
        pair = ds.createCompoundType(np.dtype([("p", point.dtype), ("w", "u2")], align=True), "pair")
        row = ds.createVLType("i2", "row")
        color = ds.createEnumType("u1", "color", {"red": 0, "green": 1, "blue": 7})
        v = ds.createVariable("points", point, ("x",))
        data = np.zeros(4, POINT)
        data["n"], data["at"], data["tag"] = np.arange(4), np.arange(8).reshape(4, 2), [b"a", b"bc", b"", b"abcde"]
        v[:] = data
        v[1:3] = data[2:]
        v = ds.createVariable("pairs", pair, ("t",))
        v[0:2] = np.zeros(2, pair.dtype_view)
        v = ds.createVariable("rows", row, ("x", "t"))
        rows = np.empty((4, 2), object)
        for index in np.ndindex(rows.shape):
            rows[index] = np.arange(sum(index), dtype="i2")
        v[:] = rows
        v[2, 1] = np.array([7, 8, 9], "i2")
        v = ds.createVariable("colors", color, ("x",), fill_value=7)
        v[:] = [0, 1, 7, 0]
        v = ds.createVariable("texts", str, ("x",))
        v[:] = np.array(["a", "Zürich", "", "long " * 50], object)
        v[-1] = "東京"
        v = ds.createVariable("alone", str, ())
        v[...] = "scalar"
        v = ds.createVariable("unwritten", str, ("x",))
        ds.createVariable("rows_unwritten", row, ("x",))
        ds.createVariable("colors_unwritten", color, ("x",))
        ds.createDimension("n", 6)
        v = ds.createVariable("chars", "S1", ("x", "n"))
        v._Encoding = "utf-8"
        v[:] = np.array(["a", "bü", "", "abcdef"], "U6")


@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
def test_user_types(tmp_path, writer, reader):
    path = tmp_path / "types.nc"
    write_types(writer, path)
    with writer.Dataset(path) as a, reader.Dataset(path) as b:
        assert list(a.cmptypes) == list(b.cmptypes)
        assert {n: t.dtype for n, t in a.cmptypes.items()} == {n: t.dtype for n, t in b.cmptypes.items()}
        assert {n: t.dtype for n, t in a.vltypes.items()} == {n: t.dtype for n, t in b.vltypes.items()}
        assert {n: t.enum_dict for n, t in a.enumtypes.items()} == {n: t.enum_dict for n, t in b.enumtypes.items()}
        for name, var in a.variables.items():
            assert var.dtype == b[name].dtype, name
            for key in (Ellipsis, slice(None, None, -2), 0, [2, 0], slice(0, 0)):
                compare(f"{path} {name}[{key}]", lambda n=name, k=key: a[n][k], lambda n=name, k=key: b[n][k])


def test_user_types_by_h5py(tmp_path):
    """What zonda.netcdf4 writes, another HDF5 library reads."""
    h5py = pytest.importorskip("h5py")
    paths = [tmp_path / "reference.nc", tmp_path / "ours.nc"]
    for module, path in zip((reference, ours), paths, strict=True):
        write_types(module, path)
    with h5py.File(paths[0]) as a, h5py.File(paths[1]) as b:
        for name in ("points", "pairs", "colors", "texts", "alone", "chars"):
            assert a[name].dtype == b[name].dtype, name
            assert np.array_equal(a[name][()], b[name][()]), name
        for x, y in zip(a["rows"][()].ravel(), b["rows"][()].ravel(), strict=True):
            assert np.array_equal(x, y)


@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
@pytest.mark.parametrize("format", FORMATS)
def test_attributes(tmp_path, writer, reader, format):
    path = tmp_path / "attributes.nc"
    with writer.Dataset(path, "w", format=format) as ds:
        ds.createDimension("x", 2)
        var = ds.createVariable("v", "f4", ("x",))
        for owner in (ds, var):
            for name, value in ATTRIBUTES.items():
                owner.setncattr(name, value)
            owner.gone = 1
            del owner.gone
            owner.renameAttribute("real", "r")
            if format == "NETCDF4":
                owner.setncattr_string("string", "s")
                owner.strings = ["a", "", "ü"]
    with writer.Dataset(path) as a, reader.Dataset(path) as b:
        for owner, other in ((a, b), (a["v"], b["v"])):
            assert owner.ncattrs() == other.ncattrs()
            for name, value in owner.__dict__.items():
                assert not same_value(value, other.__dict__[name]), name
                assert not same_value(getattr(owner, name), getattr(other, name)), name


@pytest.mark.parametrize("format", FORMATS)
def test_wrong_attributes(tmp_path, format):
    datasets = [module.Dataset(tmp_path / f"{module.__name__}.nc", "w", format=format) for module in (reference, ours)]
    for value in (np.zeros((2, 2)), None, 1j, True, ["a", "b"], object(), np.zeros(2, POINT), 2**40):
        calls = [lambda d=d, v=value: d.setncattr("wrong", v) for d in datasets]
        compare(f"{format} {value!r}", *calls)
    for call in (lambda d: d.missing, lambda d: d.getncattr("missing"), lambda d: d.delncattr("missing"),
                 lambda d: setattr(d, "groups", 1), lambda d: delattr(d, "path"), lambda d: d["nowhere"],
                 lambda d: d.renameVariable("a", "b"), lambda d: d.renameDimension("a", "b"),
                 lambda d: d.createVariable("v", "f4", ("nowhere",)), lambda d: d.createVariable("v", "c16"),
                 lambda d: d.createVariable("v", "f4", compression="no"), lambda d: d.createVariable("v", "M8[s]"),
                 lambda d: d.createDimension("x", -1), lambda d: iter(d), lambda d: "v" in d, lambda d: d.filepath()[:1],
                 lambda d: d.setncattr_string("s", "x"), lambda d: d.renameGroup("a", "b")):  # fmt: skip
        compare(format, *[lambda d=d, c=call: c(d) for d in datasets])
    for ds in datasets:
        ds.close()
        for call in (lambda d: d.close(), lambda d: d.sync(), lambda d: d.createDimension("y", 1), lambda d: d.ncattrs()):
            with pytest.raises((RuntimeError, AttributeError), match="Not a valid ID"):
                call(ds)


@pytest.mark.parametrize("path", ["/nowhere/file.nc", "/etc/passwd", "/tmp"])
@pytest.mark.parametrize("mode", ["r", "rs", "q", "rw"])
def test_open_errors(path, mode):
    compare(f"{path} {mode}", lambda: reference.Dataset(path, mode), lambda: ours.Dataset(path, mode))


@pytest.mark.parametrize(("path", "mode", "error"), [
    ("/nowhere/file.nc", "r", FileNotFoundError),
    # HDF5 says of a folder that is not there that one must not write to it; this says what is the matter.
    ("/nowhere/file.nc", "w", FileNotFoundError), ("/nowhere/file.nc", "a", FileNotFoundError),
    ("/etc/passwd", "r", OSError), ("/etc/passwd", "x", FileExistsError),
])  # fmt: skip
def test_open_errors_say_which_file(path, mode, error):
    with pytest.raises(error, match=path) as told:
        ours.Dataset(path, mode)
    assert told.value.filename == path and told.value.errno is not None and told.value.strerror
    assert told.value.__cause__.code == told.value.errno


@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("format", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_complex(tmp_path, writer, reader, dtype, format):
    path = tmp_path / "complex.nc"
    data = (np.arange(12) + 1j * np.arange(12)[::-1]).astype(dtype).reshape(3, 4)
    with writer.Dataset(path, "w", format=format, auto_complex=True) as ds:
        ds.createDimension("x", 3)
        ds.createDimension("y", 4)
        ds.createVariable("z", dtype, ("x", "y"))[:] = data
    with reader.Dataset(path, auto_complex=True) as ds:
        assert ds["z"].shape == (3, 4) and ds["z"].dtype == np.dtype(dtype)
        assert np.array_equal(ds["z"][:], data)
        assert np.array_equal(ds["z"][1:, ::2], data[1:, ::2])


@pytest.mark.parametrize("compression", ["zlib", "szip", "zstd", "bzip2", "blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib", "blosc_zstd"])  # fmt: skip
@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
def test_compressions(tmp_path, writer, reader, compression):
    path = tmp_path / "compressed.nc"
    data = np.arange(20_000, dtype="i4").reshape(100, 200)
    with writer.Dataset(path, "w") as ds:
        ds.createDimension("x", 100)
        ds.createDimension("y", 200)
        options = {"compression": compression, "complevel": 3, "chunksizes": (20, 100), "fletcher32": True}
        ds.createVariable("v", "i4", ("x", "y"), **options)[:] = data
        ds.createVariable("q", "f4", ("x", "y"), significant_digits=3, quantize_mode="BitRound", zlib=True)[:] = data / 3
    with writer.Dataset(path) as a, reader.Dataset(path) as b:
        for name in ("v", "q"):
            for call in ("filters", "chunking", "quantization"):
                assert getattr(a[name], call)() == getattr(b[name], call)(), call
            assert np.array_equal(a[name][:], b[name][:])
        assert np.array_equal(b["v"][:], data)


def write_filtered(module, path):
    """Strings and rows with filters, and what a module then says of them."""
    told = {}
    with module.Dataset(path, "w") as ds:
        ds.createDimension("x", 5)
        row = ds.createVLType("i4", "row")
        # Without checksums: the module cannot write those (NC_EHDFERR).
        for name, choice in {
            "zlib": {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (2,)},
            "zstd": {"compression": "zstd"},
            "bzip2": {"compression": "bzip2"},
        }.items():
            texts = ds.createVariable(f"{name}_texts", str, ("x",), **choice)
            rows = ds.createVariable(f"{name}_rows", row, ("x",), **choice)
            for at in range(5):
                texts[at], rows[at] = "ü" * at, np.arange(at, dtype="i4")
            told[name] = [(v.filters(), v.chunking()) for v in (texts, rows)]
    return told


def test_filters_of_strings_and_rows(tmp_path):
    """They are taken, as by the library that the module brings (4.10.1; 4.9.0 refuses them); each reads the other's."""
    h5py = pytest.importorskip("h5py")
    theirs, own = tmp_path / "theirs.nc", tmp_path / "own.nc"
    assert write_filtered(reference, theirs) == write_filtered(ours, own)
    for path, module in itertools.product((theirs, own), (reference, ours)):
        with module.Dataset(path) as ds:
            for (name, v), at in itertools.product(ds.variables.items(), range(5)):
                found, wanted = v[at], "ü" * at if "texts" in name else np.arange(at)
                assert np.array_equal(found, wanted), (path, module, name, at)
    with h5py.File(own) as f:
        assert f["zlib_texts"].compression == "gzip" and f["zlib_texts"].shuffle
        assert f["zlib_texts"].asstr()[3] == "üüü" and f["zlib_rows"][4].tolist() == [0, 1, 2, 3]
