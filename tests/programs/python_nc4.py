"""A netCDF4-python program: creates, edits and reads a netCDF-4 file; prints what it read.

    python_nc4.py OUT.nc
"""
import hashlib
import sys

import numpy as np
from netCDF4 import Dataset


def digest(values):
    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        return repr(values.tolist())
    plain = np.ma.filled(values)
    return repr(plain) if np.ndim(plain) == 0 else hashlib.sha256(np.ascontiguousarray(plain).tobytes()).hexdigest()[:16]


def show(group, indent=""):
    print(indent + group.path, {k: str(group.getncattr(k)) for k in group.ncattrs()})
    for name, d in group.dimensions.items():
        print(indent, "dim", name, len(d), d.isunlimited())
    for name, v in group.variables.items():
        v.set_auto_maskandscale(False)
        print(indent, "var", name, v.dtype, v.dimensions, v.shape, v.endian(), {k: str(v.getncattr(k)) for k in v.ncattrs()})
        print(indent, "   ", {k: v.filters().get(k) for k in ("zlib", "shuffle", "complevel", "fletcher32")}, digest(v[...]))
        if v.ndim and isinstance(v.datatype, np.dtype) and v.dtype.kind in "iuf":
            print(indent, "    every other", digest(v[::2]))
    for child in group.groups.values():
        show(child, indent + "  ")


def write(path):
    n = np.arange(600)
    with Dataset(path, "w", format="NETCDF4") as d:
        d.createDimension("time", None)
        d.createDimension("run", None)
        d.createDimension("y", 20)
        d.createDimension("x", 30)
        d.title = "written by netCDF4-python"
        d.setncattr_string("words", ["one", "zwei", "tr\xeas"])
        for i, t in enumerate("i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split()):
            v = d.createVariable("v_" + t, t, ("y", "x"), zlib=i % 2 == 0, complevel=1 + i % 9, shuffle=i % 3 == 0,
                                 fletcher32=i % 4 == 1, chunksizes=(7, 30) if i % 3 else None, fill_value=99 if i % 2 else None,
                                 endian="big" if i in (2, 5) else "native")
            v[:] = (n % 120).reshape(20, 30)
            v[3:9:2, ::5] = 7
        for step in (0, 1, 3):
            r = d.variables.get("records")
            if r is None:
                r = d.createVariable("records", "f4", ("time", "y", "x"), zlib=True, least_significant_digit=2)
            r[step] = np.sqrt(n + step).reshape(20, 30)
        both = d.createVariable("both", "i4", ("time", "run"), chunksizes=(4, 4))
        both[0:4, 0:3] = np.arange(12).reshape(4, 3)
        d.createVariable("x", "f8", ("x",))[:] = np.linspace(0, 1, 30)
        s = d.createVariable("names", str, ("y",))
        for i in range(20):
            s[i] = "name" * (i % 4)
        complex_t = np.dtype([("real", "f8"), ("imag", "f8")])
        pair = d.createCompoundType(complex_t, "complex")
        c = d.createVariable("waves", pair, ("x",))
        values = np.zeros(30, complex_t)
        values["real"], values["imag"] = np.cos(np.arange(30)), np.sin(np.arange(30))
        c[:] = values
        ragged = d.createVLType(np.int32, "ragged")
        q = d.createVariable("lists", ragged, ("y",))
        for i in range(20):
            q[i] = np.arange(i % 5 + 1, dtype="i4") * i
        sky = d.createEnumType(np.uint8, "sky", {"clear": 0, "cloud": 1, "missing": 255})
        d.createVariable("state", sky, ("time",), fill_value=255)[0:3] = np.array([0, 1, 1], "u1")
        g = d.createGroup("model/output")
        g.createDimension("z", 3)
        g.createVariable("profile", "f8", ("time", "z"), zlib=True)[0:2] = np.arange(6).reshape(2, 3)
        g.note = "nested"
    with Dataset(path, "a") as d:
        d["records"][4] = 1.25
        d["both"][5, 4] = 9
        d["names"][3] = "changed, and longer than it was"
        d.renameAttribute("title", "heading")
        d.later = np.arange(5.0)
        d["v_i4"].units = "1"
        d.createVariable("added", "i2", ("time", "x"), zlib=True)[0:2] = 5
        d.createGroup("afterwards").createVariable("w", "i1", ("x",))[:] = 1
        d.sync()
        d["v_f4"].delncattr("_FillValue") if "_FillValue" in d["v_f4"].ncattrs() else None
    with Dataset(path, "a") as d:
        for what in (lambda: d.createVariable("x", "f4"), lambda: d["v_i4"].__setitem__((25, 0), 1), lambda: d.createDimension("y", 3)):
            try:
                what()
                print("no error")
            except (RuntimeError, IndexError, ValueError) as e:
                print(type(e).__name__, e)


def classic_model(path):
    with Dataset(path, "w", format="NETCDF4_CLASSIC") as d:
        d.createDimension("t", None)
        d.createDimension("x", 5)
        v = d.createVariable("v", "f8", ("t", "x"), zlib=True)
        v[0:3] = np.arange(15).reshape(3, 5)
        d.title = "classic model"


def in_memory():
    d = Dataset("memory.nc", "w", format="NETCDF4", memory=1024)
    d.createDimension("n", 10)
    d.createVariable("v", "f8", ("n",), zlib=True)[:] = np.arange(10) / 3
    held = d.close()
    with Dataset("from_memory", memory=bytes(held)) as e:
        print("memory", digest(e["v"][:]))


out = sys.argv[1]
write(out)
classic_model("classic_" + out)
for path in (out, "classic_" + out):
    with Dataset(path) as d:
        print(path, d.data_model, d.disk_format)
        show(d)
in_memory()
