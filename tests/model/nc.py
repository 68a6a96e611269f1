# SPDX-License-Identifier: MIT OR Apache-2.0
"""libnetcdf through ctypes, and what it reads in a file as plain data.

A dump of a group is {"dims", "atts", "vars", "groups", "order"}; values are numpy arrays, of bytes
objects for strings and of tuples for sequences, so that two dumps can be compared by ==.
"""
import ctypes as c
import os

import numpy as np

BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE, UBYTE, USHORT, UINT, INT64, UINT64, STRING = range(1, 13)
GLOBAL = -1
WRITE, NETCDF4, CLASSIC_MODEL = 1, 0x1000, 0x100
UNLIMITED = 0
PAIR, LIST = "pair_t", "list_t"         # the compound and the sequence that files may have
NUMPY = {BYTE: "i1", CHAR: "S1", SHORT: "i2", INT: "i4", FLOAT: "f4", DOUBLE: "f8", UBYTE: "u1", USHORT: "u2",
         UINT: "u4", INT64: "i8", UINT64: "u8", PAIR: np.dtype([("a", "i4"), ("b", "f8", (2,)), ("c", "u1")], align=True)}


class NcError(Exception):
    def __init__(self, what, code):
        super().__init__("%s: %d" % (what, code))
        self.code = code


class Vlen(c.Structure):
    _fields_ = [("len", c.c_size_t), ("p", c.c_void_p)]


def sizes(values):
    return (c.c_size_t * max(1, len(values)))(*values)


def strides(values):
    return (c.c_ssize_t * max(1, len(values)))(*values)


class Memory:
    """Values as the library wants them: `pointer`, which lives as long as this does."""

    def __init__(self, kind, values):
        if kind == STRING:
            flat = list(values.ravel())
            self.pointer = (c.c_char_p * max(1, len(flat)))(*flat)
        elif kind == LIST:
            flat = list(values.ravel())
            self.kept = [np.array(x, "i4") for x in flat]
            self.pointer = (Vlen * max(1, len(flat)))(*[Vlen(len(x), x.ctypes.data if len(x) else None) for x in self.kept])
        else:
            self.kept = np.ascontiguousarray(values)
            self.pointer = self.kept.ctypes.data_as(c.c_void_p)


class Lib:
    def __init__(self, path):
        self.so = c.CDLL(path)

    def call(self, name, *args):
        code = getattr(self.so, name)(*args)
        if code:
            raise NcError(name, code)

    def integer(self, name, *args):
        out = c.c_int(-99)
        self.call(name, *args, c.byref(out))
        return out.value

    def create(self, path, flags):
        return self.integer("nc_create", os.fsencode(path), flags | NETCDF4)

    def open(self, path, flags):
        return self.integer("nc_open", os.fsencode(path), flags)

    def type_of(self, nc, kind):
        return self.integer("nc_inq_typeid", nc, kind.encode()) if isinstance(kind, str) else kind

    def kind_of(self, nc, xtype):
        if xtype <= STRING:
            return xtype
        name = c.create_string_buffer(257)
        self.call("nc_inq_user_type", nc, xtype, name, None, None, None, None)
        return name.value.decode()

    def define_types(self, nc, pair=PAIR, sequence=LIST):
        dtype = NUMPY[PAIR]
        t = c.c_int()
        self.call("nc_def_compound", nc, c.c_size_t(dtype.itemsize), pair.encode(), c.byref(t))
        self.call("nc_insert_compound", nc, t, b"a", c.c_size_t(dtype.fields["a"][1]), INT)
        self.call("nc_insert_array_compound", nc, t, b"b", c.c_size_t(dtype.fields["b"][1]), DOUBLE, 1, (c.c_int * 1)(2))
        self.call("nc_insert_compound", nc, t, b"c", c.c_size_t(dtype.fields["c"][1]), UBYTE)
        self.call("nc_def_vlen", nc, sequence.encode(), INT, c.byref(t))

    # ---- Values

    def read(self, kind, n, get):
        """n values of a kind, fetched by get(pointer)."""
        if kind == STRING:
            out = (c.c_char_p * max(1, n))()
            get(out)
            found = np.empty(n, object)
            for i in range(n):
                found[i] = out[i] if out[i] is not None else b""
            if n:
                self.so.nc_free_string(c.c_size_t(n), out)
            return found
        if kind == LIST:
            out = (Vlen * max(1, n))()
            get(out)
            found = np.empty(n, object)
            for i in range(n):
                found[i] = tuple(np.ctypeslib.as_array(c.cast(out[i].p, c.POINTER(c.c_int)), (out[i].len,)).tolist()) if out[i].len else ()
            if n:
                self.so.nc_free_vlens(c.c_size_t(n), out)
            return found
        found = np.zeros(n, NUMPY[kind])
        get(found.ctypes.data_as(c.c_void_p))
        return found

    def get(self, nc, var, kind, start, count, stride=None):
        n = int(np.prod(count, dtype=int))
        if stride:
            read = lambda p: self.call("nc_get_vars", nc, var, sizes(start), sizes(count), strides(stride), p)
        else:
            read = lambda p: self.call("nc_get_vara", nc, var, sizes(start), sizes(count), p)
        return self.read(kind, n, read).reshape(count)

    def attribute(self, nc, var, name):
        xtype, n = c.c_int(), c.c_size_t()
        self.call("nc_inq_att", nc, var, name.encode(), c.byref(xtype), c.byref(n))
        kind = self.kind_of(nc, xtype.value)
        return kind, self.read(kind, n.value, lambda p: self.call("nc_get_att", nc, var, name.encode(), p))

    # ---- Everything

    def attributes(self, nc, var, n):
        found = {}
        for i in range(n):
            name = c.create_string_buffer(257)
            self.call("nc_inq_attname", nc, var, i, name)
            found[name.value.decode()] = self.attribute(nc, var, name.value.decode())
        return found

    def group(self, nc):
        name, n = c.create_string_buffer(257), c.c_int()
        found = {"dims": {}, "atts": {}, "vars": {}, "groups": {}, "order": []}
        self.call("nc_inq_dimids", nc, c.byref(n), None, 0)
        ids = (c.c_int * max(1, n.value))()
        self.call("nc_inq_dimids", nc, None, ids, 0)
        endless = (c.c_int * 1024)()
        m = c.c_int()
        self.call("nc_inq_unlimdims", nc, c.byref(m), endless)
        for d in ids[:n.value]:
            length = c.c_size_t()
            self.call("nc_inq_dim", nc, d, name, c.byref(length))
            found["dims"][name.value.decode()] = (length.value, d in endless[:m.value])
        self.call("nc_inq_natts", nc, c.byref(n))
        found["atts"] = self.attributes(nc, GLOBAL, n.value)
        self.call("nc_inq_nvars", nc, c.byref(n))
        for v in range(n.value):
            key, variable = self.variable(nc, v)
            found["vars"][key] = variable
            found["order"].append(key)
        self.call("nc_inq_grps", nc, c.byref(n), None)
        groups = (c.c_int * max(1, n.value))()
        self.call("nc_inq_grps", nc, None, groups)
        for g in groups[:n.value]:
            self.call("nc_inq_grpname", g, name)
            found["groups"][name.value.decode()] = self.group(g)
        return found

    def variable(self, nc, v):
        name, xtype, rank, natts = c.create_string_buffer(257), c.c_int(), c.c_int(), c.c_int()
        dims = (c.c_int * 1024)()
        self.call("nc_inq_var", nc, v, name, c.byref(xtype), c.byref(rank), dims, c.byref(natts))
        kind, names, shape = self.kind_of(nc, xtype.value), [], []
        for d in dims[:rank.value]:
            dim, length = c.create_string_buffer(257), c.c_size_t()
            self.call("nc_inq_dim", nc, d, dim, c.byref(length))
            names.append(dim.value.decode())
            shape.append(length.value)
        storage, chunks = c.c_int(), (c.c_size_t * 1024)()
        self.call("nc_inq_var_chunking", nc, v, c.byref(storage), chunks)
        shuffle, deflate, level, fletcher, nofill = (c.c_int() for _ in range(5))
        self.call("nc_inq_var_deflate", nc, v, c.byref(shuffle), c.byref(deflate), c.byref(level))
        self.call("nc_inq_var_fletcher32", nc, v, c.byref(fletcher))
        self.call("nc_inq_var_fill", nc, v, c.byref(nofill), None)
        return name.value.decode(), {
            "kind": kind, "dims": tuple(names), "atts": self.attributes(nc, v, natts.value),
            "chunks": tuple(chunks[:rank.value]) if storage.value == 0 else None,
            "filters": (shuffle.value, level.value if deflate.value else None, fletcher.value),
            "nofill": bool(nofill.value),
            "data": self.data(nc, v, kind, shape),
        }

    def data(self, nc, v, kind, shape):
        """All values, or the code of the error."""
        try:
            return self.get(nc, v, kind, [0] * len(shape), shape)
        except NcError as refused:
            return refused.code

    def dump(self, path):
        nc = self.open(path, 0)
        try:
            return self.group(nc)
        finally:
            self.call("nc_close", nc)


def equal(a, b, where=None):
    """Whether two arrays hold the same; `where` says which elements count."""
    if a.shape != b.shape:
        return False
    if a.dtype.names:
        same = np.array(np.ones(a.shape, bool))
        for f in a.dtype.names:
            one = a[f] == b[f]
            same &= one.all(axis=tuple(range(a.ndim, one.ndim)))
    else:
        same = np.asarray(a == b)
        if same.shape != a.shape:
            same = np.array([x == y for x, y in zip(a.ravel(), b.ravel())], bool).reshape(a.shape)
    return bool((same if where is None else same | ~where).all())
