# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files of netCDF-C, which are edited like those of sources.py."""
import ctypes

import numpy as np

from change import nc
from sources import COLUMNS, ROWS, SOURCES, values

FILES = ("fixed", "unlimited", "deflate", "classic-model", "types", "many")


def netcdf(path, library, what):
    lib = nc.Lib(library)
    f = lib.create(path, 0 if what != "classic-model" else nc.CLASSIC_MODEL)
    dim = lambda name, n, g=None: (i := ctypes.c_int(), lib.call("nc_def_dim", f if g is None else g, name, ctypes.c_size_t(n), ctypes.byref(i)))[0].value

    def var(name, kind, dims, g=None, deflate=False):
        g = f if g is None else g
        v = ctypes.c_int()
        lib.call("nc_def_var", g, name, lib.type_of(g, kind), len(dims), (ctypes.c_int * 8)(*dims), ctypes.byref(v))
        if deflate:
            lib.call("nc_def_var_deflate", g, v, 1, 1, 2)
        return v.value

    def att(g, v, name, kind, data):
        lib.call("nc_put_att", g, v, name, kind, ctypes.c_size_t(len(data)), nc.Memory(kind, data).pointer)

    def put(g, v, kind, data):
        lib.call("nc_put_vara", g, v, nc.sizes([0] * data.ndim), nc.sizes(data.shape), nc.Memory(kind, data).pointer)

    endless = dim(b"time", 0) if what != "fixed" else dim(b"time", ROWS)
    x = dim(b"x", COLUMNS)
    coordinate = var(b"time", nc.DOUBLE, [endless])
    d = var(b"data", nc.INT, [endless, x], deflate=what == "deflate")
    other = var(b"other", nc.DOUBLE, [x])
    for name, kind, data in ((b"text", nc.CHAR, np.frombuffer(b"metres", "S1")), (b"numbers", nc.DOUBLE, np.array([1.5, -2.0, 1e300])),
                             (b"extra", nc.INT, np.array([7], "i4"))):
        att(f, d, name, kind, data)
    att(f, nc.GLOBAL, b"title", nc.CHAR, np.frombuffer(b"a file to edit", "S1"))
    inner = None
    if what != "classic-model":
        inner = lib.integer("nc_def_grp", f, b"g")
        inside = var(b"inside", nc.SHORT, [dim(b"four", 4, inner)], inner)
        att(inner, nc.GLOBAL, b"level", nc.INT, np.array([1], "i4"))
    if what == "types":
        lib.define_types(f)
        words = var(b"words", nc.STRING, [x])
        pair = var(b"pair", nc.PAIR, [x])
        att(f, d, b"words", nc.STRING, np.array([b"one", b"two"], object))
    if what == "many":
        for i in range(30):
            var(b"v%02d" % i, nc.FLOAT, [endless] if i % 2 else [x])
            att(f, d, b"attribute %02d" % i, nc.INT, np.arange(i % 4 + 1, dtype="i4"))
    lib.call("nc_enddef", f)
    put(f, coordinate, nc.DOUBLE, np.arange(ROWS, dtype="f8"))
    put(f, d, nc.INT, values((ROWS, COLUMNS)))
    put(f, other, nc.DOUBLE, values((COLUMNS,), "f8", 3))
    if inner is not None:
        put(inner, inside, nc.SHORT, values((4,), "i2", 5))
    if what == "types":
        put(f, words, nc.STRING, np.array([b"word %d" % i for i in range(COLUMNS)], object))
        put(f, pair, nc.PAIR, np.zeros(COLUMNS, nc.NUMPY[nc.PAIR]))
    lib.call("nc_close", f)


def by_netcdf(libraries):
    """Adds the files of netCDF-C: {"nc": library, "ncnew": library}."""
    for form, library in libraries.items():
        for what in FILES:
            SOURCES["%s-%s" % (form, what)] = lambda path, library=library, what=what: netcdf(path, library, what)
