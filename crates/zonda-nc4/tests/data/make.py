#!/usr/bin/env python3
"""Makes the files of this folder: `python3 make.py` with the wheels netCDF4, h5py and numpy."""
import os

import h5py
import netCDF4
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def model():
    """Everything of the data model, by netCDF-C."""
    d = netCDF4.Dataset("model.nc", "w")
    d.createDimension("time", None)
    d.createDimension("x", 4)
    d.createDimension("name", 3)
    d.title = "a model"
    d.empty = ""
    d.words = ["one", "", "drei\u00e9"]
    d.numbers = np.array([1, -2, 300], "i2")
    d.setncattr_string("one", "text")
    t = d.createVariable("time", "f8", ("time",))
    t.units = "days since 2000-01-01"
    t[:] = [0.5, 1.5]
    a = d.createVariable("a", "i4", ("time", "x"), endian="big", zlib=True, shuffle=True, fletcher32=True, chunksizes=(2, 3), fill_value=-9)
    a[:] = np.arange(8).reshape(2, 4)
    # A longer record dimension than `a` has records.
    b = d.createVariable("b", "f4", ("time",))
    b[:] = np.arange(5, dtype="f4")
    c = d.createVariable("x", "i1", ("x", "name"))  # a coordinate variable of two dimensions
    c[:] = np.arange(12).reshape(4, 3)
    n = d.createVariable("name", "S1", ("x", "name"))  # not one, though named as a dimension
    n[:] = np.array([list(s) for s in ("abc", "def", "ghi", "jkl")], "S1")
    s = d.createVariable("s", str, ("x",))
    s[0] = "eins"
    s[2] = ""
    u = d.createVariable("never", "u2", ("x",))
    d.createVariable("scalar", "i8", ())[...] = -(1 << 40)
    g = d.createGroup("g")
    g.createDimension("x", 2)
    pair = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2", (2,))], align=True)
    pair_t = g.createCompoundType(pair, "pair")
    colour = g.createEnumType("u1", "colour", {"red": 0, "green": 7})
    ragged = g.createVLType("i4", "ragged")
    p = g.createVariable("p", pair_t, ("x",))
    p[:] = np.array([(1, 2.5, (3, 4)), (-1, -2.5, (5, 6))], pair)
    e = g.createVariable("e", colour, ("x",))
    e[:] = [7, 0]
    r = g.createVariable("r", ragged, ("x",))
    r[0] = np.array([1, 2, 3], "i4")
    inner = g.createGroup("inner")
    i = inner.createVariable("up", "i2", ("x", "time"))
    i[:, 0:6] = np.arange(12).reshape(2, 6)
    inner.createVariable("short", "i1", ("time",))[0:1] = 1
    d.close()


def chunked():
    """Many small chunks, with values that follow from their places, by netCDF-C."""
    d = netCDF4.Dataset("chunked.nc", "w")
    for name, n in (("t", None), ("y", 50), ("x", 40)):
        d.createDimension(name, n)
    t, y, x = np.ogrid[:60, :50, :40]
    values = t * 10000 + y * 100 + x
    v = d.createVariable("v", "i4", ("t", "y", "x"), zlib=True, shuffle=True, chunksizes=(7, 9, 11))
    v[:] = values
    f = d.createVariable("f", "f4", ("t", "y", "x"), endian="big", zlib=True, shuffle=True, fletcher32=True, chunksizes=(16, 16, 16))
    f[:] = values / 4
    d.close()


def plain():
    """HDF5 that knows nothing of netCDF, by h5py."""
    with h5py.File("other.h5", "w") as f:
        f["target"] = np.arange(3, dtype="<i2")
    np.arange(6, dtype="<i4").tofile("raw.bin")
    with h5py.File("plain.h5", "w") as f:
        f["square"] = np.arange(9, dtype="<u4").reshape(3, 3)
        f["line"] = np.arange(3, dtype=">f8")
        f.create_dataset("grow", (3, 2), "i2", maxshape=(None, 2), chunks=(2, 2), data=np.arange(6).reshape(3, 2))
        f["text"] = np.array([b"ab", b"cde"], "S3")
        f.create_dataset("unwritten", (2,), h5py.string_dtype())
        f["packed"] = np.array([(1, 2.5), (-1, -2.5)], [("a", "i1"), ("b", "<f8")])
        f["half"] = np.array([1.5, -2.0], "f2")
        f["yes"] = np.array([True, False])
        f["soft"] = h5py.SoftLink("/line")
        f["nowhere"] = h5py.SoftLink("/not/there")
        f["outside"] = h5py.ExternalLink("other.h5", "target")
        f["beyond"] = h5py.ExternalLink("../data/other.h5", "target")
        f["reference"] = np.array([f["line"].ref], h5py.ref_dtype)
        g = f.create_group("g")
        g["back"] = f["/"]
        g["again"] = f["line"]
        f.create_dataset("raw", (2, 3), "<i4", external=[("raw.bin", 0, 24)])
        layout = h5py.VirtualLayout((2, 3), "<i4")
        layout[0] = h5py.VirtualSource("plain.h5", "square", (3, 3))[1]
        f.create_virtual_dataset("virtual", layout, fillvalue=-1)
        f.create_dataset("empty", data=h5py.Empty("f4"))
        three = h5py.h5t.STD_I32LE.copy()
        three.set_size(3)
        three.set_precision(24)
        space = h5py.h5s.create_simple((2,))
        d = h5py.h5d.create(f.id, b"three", three, space)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([-2, 70000], "<i4"))
        f.attrs["fixed"] = np.bytes_("abc")
        f.attrs["list"] = np.array([b"a", b"bc"], "S2")
        f.attrs["nothing"] = h5py.Empty("i4")
        f.attrs["flag"] = True
        f["line"].attrs["matrix"] = np.zeros((2, 2))


def foreign():
    """What other writers make: a filter that has no code, and a text where netCDF has another form."""
    with h5py.File("foreign.h5", "w") as f:
        f.attrs["_NCProperties"] = "version=2,h5lib=1.14.0"
        f["known"] = np.arange(4, dtype="<i4")
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_chunk((2, 3))
        # Number 300 takes each byte and this parameter together by `xor`. Only an optional filter is
        # let in where it is missing; its chunks are stored as it would leave them.
        p.set_filter(300, h5py.h5z.FLAG_OPTIONAL, (0x5A,))
        space = h5py.h5s.create_simple((4, 3))
        d = h5py.h5d.create(f.id, b"filtered", h5py.h5t.STD_I32LE, space, p)
        values = np.arange(12, dtype="<i4").reshape(4, 3) * 1000 - 1
        d.write_direct_chunk((0, 0), bytes(b ^ 0x5A for b in values[:2].tobytes()), 0)
        # The filter was left out for this one.
        d.write_direct_chunk((2, 0), values[2:].tobytes(), 1)


model()
chunked()
plain()
foreign()
