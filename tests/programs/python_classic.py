"""A netCDF4-python program: creates, edits and reads a classic file; prints what it read.

    python_classic.py FORMAT OUT.nc [INPUT.nc ...]
"""
import hashlib
import sys

import numpy as np
from netCDF4 import Dataset

TYPES = ["i1", "i2", "i4", "f4", "f8"]
WIDE = ["u1", "u2", "u4", "i8", "u8"]

MOST_ELEMENTS = 1 << 27


def digest(values):
    plain = np.ma.filled(values)
    return hashlib.sha256(np.ascontiguousarray(plain).tobytes()).hexdigest()[:16]


def show(path):
    with Dataset(path) as d:
        print(path.split("/")[-1], d.data_model, d.disk_format, sorted(d.ncattrs()))
        for name, dim in d.dimensions.items():
            print("  dim", name, len(dim), dim.isunlimited())
        for name, v in d.variables.items():
            print("  var", name, v.dtype, v.dimensions, v.shape, {k: str(v.getncattr(k)) for k in v.ncattrs()})
            # Files may hold arrays that no memory holds: those are not read whole.
            if v.size > MOST_ELEMENTS:
                continue
            v.set_auto_maskandscale(False)
            print("     ", digest(v[...]), digest(v[::2, ...]) if v.ndim else "")
            v.set_auto_maskandscale(True)
            if v.dtype.kind in "iuf" and v.size:
                print("     ", np.ma.sum(v[...].astype("f8")))


def write(kind, path):
    n = np.arange(60)
    with Dataset(path, "w", format=kind) as d:
        d.createDimension("time", None)
        d.createDimension("y", 4)
        d.createDimension("x", 5)
        d.createDimension("len", 6)
        d.title = "written by netCDF4-python"
        d.levels = np.array([1, 2, 3], "i2")
        for t in TYPES + (WIDE if kind == "NETCDF3_64BIT_DATA" else []):
            fixed = d.createVariable("fixed_" + t, t, ("y", "x"), fill_value=99)
            record = d.createVariable("record_" + t, t, ("time", "y", "x"))
            record.units = "m"
            fixed[:] = (n[:20] * 5).reshape(4, 5)
            for step in (2, 0, 1):
                record[step] = n[step * 20:step * 20 + 20].reshape(4, 5)
            record[0:3:2, 1:4, ::3] = 7
        text = d.createVariable("text", "S1", ("time", "len"))
        text[0] = np.array(list("abcdef"), "S1")
        d.createVariable("packed", "i2", ("y",)).setncatts({"scale_factor": 0.5, "add_offset": 10.0})
        d["packed"][:] = [10.0, 11.5, 12.0, -4.0]
    with Dataset(path, "a") as d:
        d.renameVariable("fixed_f4", "renamed")
        d.renameDimension("x", "columns")
        d.later = "an attribute that makes the header grow " * 20
        d["record_f8"][5] = 2.5
        d["renamed"].delncattr("_FillValue")
        d.sync()
    for what in (lambda d: d.createVariable("a/b", "f4"), lambda d: d["record_f8"].__setitem__((0, 9), 1)):
        with Dataset(path, "a") as d:
            try:
                what(d)
                print("no error")
            except (RuntimeError, IndexError, ValueError) as e:
                print(type(e).__name__, e)


def in_memory(kind):
    d = Dataset("memory.nc", "w", format=kind, diskless=True, memory=1024)
    d.createDimension("n", 10)
    d.createVariable("v", "f8", ("n",))[:] = np.arange(10) / 3
    held = d.close()
    print("memory", len(bytes(held)))
    with Dataset("from_memory", memory=bytes(held)) as e:
        print("memory", digest(e["v"][:]))


kind, out, inputs = sys.argv[1], sys.argv[2], sys.argv[3:]
write(kind, out)
show(out)
if kind != "NETCDF3_64BIT_DATA":
    in_memory(kind)
for path in inputs:
    show(path)
