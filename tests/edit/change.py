# SPDX-License-Identifier: MIT OR Apache-2.0
"""The edits: what is done to a file through a libnetcdf, and what must be seen after it.

    change.py LIBRARY OPERATION FILE    does one, says what it did as JSON

An operation is a function of an `Edit`, which opens and closes the file, and notes `facts` (what
readers must find), `touched` (path and key of what may differ from before), `renamed` and `added`,
`types` (names of those that are new) and `stay` (old paths where a dimension keeps its name).
"""
import ctypes as c
import hashlib
import json
import os
import shutil
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "model"))
import nc  # noqa: E402

OPERATIONS = {}
MANY = 1 << 20      # elements that are put at once


class NotHere(Exception):
    """The file has nothing that this operation is about."""


class Variable:
    def __init__(self, group, number, path, xtype, size, kind, shape, endless, natts):
        self.group, self.number, self.path, self.xtype, self.size = group, number, path, xtype, size
        self.kind, self.shape, self.endless, self.natts = kind, shape, endless, natts


class Edit:
    def __init__(self, library, path):
        self.lib, self.path, self.nc = nc.Lib(library), path, None
        self.touched, self.renamed, self.added, self.facts = [], {}, [], []
        self.types, self.stay = [], []

    def open(self):
        self.nc = self.lib.open(self.path, nc.WRITE)
        self.classic = self.lib.integer("nc_inq_format", self.nc) == 4
        self.defining = False

    def define(self, wanted=True):
        """Define mode, where the model of the file asks for it."""
        if self.classic and self.defining != wanted:
            (self.redef if wanted else self.enddef)(self.nc)
            self.defining = wanted

    def close(self):
        nc, self.nc = self.nc, None
        self.lib.call("nc_close", nc)
        self.committed()

    def committed(self):
        """Keeps what the file holds now, and tells the log shim, where crash.py asks for it. What is
        refused later leaves the file so."""
        self.done = sha256(self.path)
        folder = os.environ.get("EDIT_VERSIONS")
        if folder:
            k = len(os.listdir(folder))
            shutil.copy(self.path, os.path.join(folder, "%d.nc" % k))
            c.CDLL(None).crash_mark(b"P %d" % k)

    def give_up(self):
        if self.nc is not None and self.lib.so.nc_close(self.nc):
            self.lib.so.nc_abort(self.nc)

    def __getattr__(self, name):
        return lambda *args: self.lib.call("nc_" + name, *args)

    def touch(self, path, *keys):
        self.touched += [(path, key) for key in keys]

    # ---- What there is

    def variables(self, group=None, path=""):
        group = self.nc if group is None else group
        n, name = c.c_int(), c.create_string_buffer(257)
        self.inq_nvars(group, c.byref(n))
        for v in range(n.value):
            xtype, rank, natts, size, kind = c.c_int(), c.c_int(), c.c_int(), c.c_size_t(), c.c_int()
            dims = (c.c_int * 1024)()
            self.inq_var(group, v, name, c.byref(xtype), c.byref(rank), dims, c.byref(natts))
            shape, key = [], name.value.decode()
            for d in dims[:rank.value]:
                length = c.c_size_t()
                self.inq_dimlen(group, d, c.byref(length))
                shape.append(length.value)
            self.inq_type(group, xtype, None, c.byref(size))
            kind = xtype.value
            if kind > nc.STRING:
                kind = c.c_int()
                self.inq_user_type(group, xtype, None, None, None, None, c.byref(kind))
                kind = kind.value
            yield Variable(group, v, path + "/" + key, xtype.value, size.value, kind, shape, self.endless(group, dims[:rank.value]), natts.value)
        for g in self.groups(group):
            self.inq_grpname(g, name)
            yield from self.variables(g, path + "/" + name.value.decode())

    def endless(self, group, dims):
        """Which dimensions of a variable are unlimited, wherever these were defined."""
        found = set()
        while True:
            n, ids = c.c_int(), (c.c_int * 1024)()
            self.inq_unlimdims(group, c.byref(n), ids)
            found |= set(ids[:n.value])
            parent = c.c_int()
            if self.lib.so.nc_inq_grp_parent(group, c.byref(parent)):
                return [d in found for d in dims]
            group = parent.value

    def groups(self, group):
        n = c.c_int()
        self.inq_grps(group, c.byref(n), None)
        ids = (c.c_int * max(1, n.value))()
        self.inq_grps(group, None, ids)
        return ids[:n.value]

    def data(self):
        """The variable to change: `data`, or the first that has numbers, or the first."""
        found = list(self.variables())
        for wanted in (lambda v: v.path == "/data", lambda v: v.xtype < nc.STRING and v.xtype != nc.CHAR and v.shape,
                       lambda v: v.xtype <= nc.STRING, lambda v: True):
            for v in found:
                if wanted(v):
                    return v
        raise NotHere("no variables")

    def dimensions(self, group):
        """Names of those that a group defines itself."""
        n, ids, name = c.c_int(), (c.c_int * 1024)(), c.create_string_buffer(257)
        self.inq_dimids(group, c.byref(n), ids, 0)
        found = []
        for d in ids[:n.value]:
            self.inq_dimname(group, d, name)
            found.append(name.value.decode())
        return found

    def subgroup(self):
        for g in self.groups(self.nc):
            name = c.create_string_buffer(257)
            self.inq_grpname(g, name)
            return g, "/" + name.value.decode()
        raise NotHere("no groups")

    def attribute_of(self, v, name):
        """An attribute of the variable, preferably the one named."""
        if v.natts == 0:
            raise NotHere("no attributes")
        if self.lib.so.nc_inq_att(v.group, v.number, name, None, None) == 0:
            return name
        for i in range(v.natts):
            found = c.create_string_buffer(257)
            self.inq_attname(v.group, v.number, i, found)
            if found.value not in (b"_FillValue", b"text"):
                return found.value
        raise NotHere("no attribute")

    def read(self, v):
        if v.kind == nc.STRING:
            return self.lib.get(v.group, v.number, v.kind, [0] * len(v.shape), v.shape)
        data = np.zeros(v.shape, nc.NUMPY[v.xtype] if v.xtype < nc.STRING else "V%d" % v.size)
        self.get_vara(v.group, v.number, nc.sizes([0] * len(v.shape)), nc.sizes(v.shape), data.ctypes.data_as(c.c_void_p))
        return data

    # ---- What is done

    def put(self, v, data, start=None):
        data = np.asarray(data)
        memory = nc.Memory(v.kind if v.kind == nc.STRING else None, data)
        start = start or [0] * data.ndim
        self.define(False)
        self.put_vara(v.group, v.number, nc.sizes(start), nc.sizes(data.shape), memory.pointer)

    def new(self, v, shape, seed=0):
        """Other values of a variable's type."""
        n = int(np.prod(shape))
        if v.kind == nc.STRING:
            out = np.empty(n, object)
            for i in range(n):
                out[i] = b"changed %d " % (i + seed) + b"y" * (i % 4 * 20)
            return out.reshape(shape)
        if v.xtype > nc.STRING:
            raise NotHere("a user-defined type")
        if v.xtype == nc.CHAR:
            return np.frombuffer(b"abcdefghij" * (n // 10 + 1), "S1")[:n].reshape(shape)
        return ((np.arange(n) * 3 + seed) % 101).astype(nc.NUMPY[v.xtype]).reshape(shape)

    def att(self, group, number, path, name, kind, data):
        memory = nc.Memory(kind, data)
        self.define()
        self.put_att(group, number, name, kind, c.c_size_t(len(data)), memory.pointer)
        if kind == nc.CHAR:
            data = data.tobytes()
        self.note(path, name, data)

    def note(self, path, name, data):
        name = name.decode()
        self.facts = [f for f in self.facts if f[:3] != ("attribute", path, name)] + [("attribute", path, name, data)]
        self.touch(path, "@" + name)

    def dim(self, name, n, group=None, path=""):
        d = c.c_int()
        self.define()
        self.def_dim(self.nc if group is None else group, name, c.c_size_t(n), c.byref(d))
        self.added.append(path + "/" + name.decode())
        return d.value

    def var(self, name, kind, dims, group=None, path="", settings=lambda g, v: None):
        group = self.nc if group is None else group
        v = c.c_int()
        self.define()
        self.def_var(group, name, kind, len(dims), (c.c_int * 8)(*dims), c.byref(v))
        settings(group, v)
        self.added.append(path + "/" + name.decode())
        return v.value

    def fill(self, group, number, path, kind, data):
        self.define(False)
        self.put_vara(group, number, nc.sizes([0] * data.ndim), nc.sizes(data.shape), nc.Memory(kind, data).pointer)
        self.facts.append(("data", path, data))


def text(value):
    return np.frombuffer(value, "S1")


def operation(function):
    OPERATIONS[function.__name__.replace("_", "-")] = function
    return function


# ---- Values

@operation
def overwrite(e):
    v = e.data()
    if int(np.prod(v.shape)) > MANY:
        raise NotHere("large")
    data = np.roll(e.read(v).ravel(), 1).reshape(v.shape) if v.xtype > nc.STRING else e.new(v, v.shape)
    if v.kind == nc.STRING or v.xtype < nc.STRING:
        e.facts.append(("data", v.path, data))
    elif v.kind == 13:      # a sequence has pointers
        raise NotHere("sequences")
    e.put(v, data)
    e.touch(v.path, "data")


@operation
def overwrite_part(e):
    v = e.data()
    if not v.shape or 0 in v.shape or int(np.prod(v.shape)) > MANY:
        raise NotHere("no part of it")
    count = [max(1, n // 2) for n in v.shape]
    start = [n - m for n, m in zip(v.shape, count)]
    data, part = e.read(v) if v.xtype <= nc.STRING else None, e.new(v, count, 50)
    data[tuple(slice(s, None) for s in start)] = part
    e.put(v, part, start)
    e.facts.append(("data", v.path, data))
    e.touch(v.path, "data")


def longer(e, n):
    v = e.data()
    if not any(v.endless) or int(np.prod(v.shape)) > MANY or v.kind > nc.STRING:
        raise NotHere("nothing unlimited")
    data = e.read(v)
    for axis in [i for i, endless in enumerate(v.endless) if endless]:
        count = list(data.shape)
        count[axis] = n
        if 0 in count:
            raise NotHere("another dimension is empty")
        part = e.new(v, count, axis)
        start = [0] * data.ndim
        start[axis] = data.shape[axis]
        e.put(v, part, start)
        data = np.concatenate([data, part], axis)
    e.facts.append(("data", v.path, data))
    e.touch(v.path, "data", "shape")


@operation
def extend(e):
    longer(e, 1)


@operation
def extend_far(e):
    longer(e, 70)


# ---- Attributes

@operation
def attribute_add(e):
    v = e.data()
    e.att(v.group, v.number, v.path, b"edited", nc.DOUBLE, np.array([0.5, 2]))


@operation
def attribute_add_many(e):
    v = e.data()
    for i in range(24):
        e.att(v.group, v.number, v.path, b"edited %02d" % i, nc.INT, np.arange(i % 3 + 1, dtype="i4"))


@operation
def attribute_same_size(e):
    v = e.data()
    name = e.attribute_of(v, b"extra")
    kind, n = c.c_int(), c.c_size_t()
    e.inq_att(v.group, v.number, name, c.byref(kind), c.byref(n))
    if kind.value >= nc.STRING or kind.value == nc.CHAR:
        raise NotHere("not numbers")
    e.att(v.group, v.number, v.path, name, kind.value, np.arange(n.value).astype(nc.NUMPY[kind.value]) + 3)


@operation
def attribute_grow(e):
    v = e.data()
    e.att(v.group, v.number, v.path, e.attribute_of(v, b"text"), nc.CHAR, text(b"much longer than before " * 50))


@operation
def attribute_retype(e):
    v = e.data()
    e.att(v.group, v.number, v.path, e.attribute_of(v, b"numbers"), nc.CHAR, text(b"now it is text"))


@operation
def attribute_delete(e):
    v = e.data()
    name = e.attribute_of(v, b"extra")
    e.define()
    e.del_att(v.group, v.number, name)
    e.facts = [f for f in e.facts if f[:3] != ("attribute", v.path, name.decode())]
    e.facts.append(("attribute gone", v.path, name.decode()))
    e.touch(v.path, "@" + name.decode())


@operation
def attribute_rename(e):
    v = e.data()
    name = e.attribute_of(v, b"text")
    e.define()
    e.rename_att(v.group, v.number, name, b"another_name_for_it")
    e.facts.append(("attribute gone", v.path, name.decode()))
    e.touch(v.path, "@" + name.decode(), "@another_name_for_it")


@operation
def attribute_strings(e):
    v = e.data()
    e.att(v.group, v.number, v.path, b"edited words", nc.STRING, np.array([b"one", b"", b"three" * 30], object))


@operation
def root_attributes(e):
    e.att(e.nc, nc.GLOBAL, "/", b"title", nc.CHAR, text(b"another title, which is longer than the first"))
    e.att(e.nc, nc.GLOBAL, "/", b"edited", nc.INT, np.array([1, 2, 3], "i4"))


@operation
def root_attribute_delete(e):
    n = c.c_int()
    e.inq_natts(e.nc, c.byref(n))
    name = c.create_string_buffer(257)
    if not n.value:
        raise NotHere("no attributes")
    e.inq_attname(e.nc, nc.GLOBAL, 0, name)
    e.define()
    e.del_att(e.nc, nc.GLOBAL, name)
    e.facts.append(("attribute gone", "/", name.value.decode()))
    e.touch("/", "@" + name.value.decode())


@operation
def group_attribute(e):
    g, path = e.subgroup()
    e.att(g, nc.GLOBAL, path, b"edited", nc.CHAR, text(b"in a group"))


# ---- Definitions

@operation
def variable_add(e):
    v = e.var(b"edit_var", nc.DOUBLE, [e.dim(b"edit_x", 3), e.dim(b"edit_y", 2)])
    e.att(e.nc, v, "/edit_var", b"units", nc.CHAR, text(b"K"))
    e.fill(e.nc, v, "/edit_var", nc.DOUBLE, np.arange(6.0).reshape(3, 2))


@operation
def variable_add_chunked(e):
    """With all that can be set on a new variable, in dimensions that are there or not."""
    def settings(g, v):
        e.def_var_deflate(g, v, 1, 1, 3)
        e.def_var_fletcher32(g, v, 1)
        e.def_var_chunking(g, v, 0, nc.sizes([2, 2]))
        e.def_var_fill(g, v, 0, c.byref(c.c_int(-99)))
    v = e.var(b"edit_chunked", nc.INT, [e.dim(b"edit_time", 0), e.dim(b"edit_y", 5)], settings=settings)
    data = np.arange(15, dtype="i4").reshape(3, 5)
    e.fill(e.nc, v, "/edit_chunked", nc.INT, data)
    e.facts.append(("fill", "/edit_chunked", -99))


@operation
def variable_add_same_dimensions(e):
    """Beside the variable, with its dimensions."""
    d = e.data()
    ids, rank = (c.c_int * 1024)(), c.c_int()
    e.inq_varndims(d.group, d.number, c.byref(rank))
    e.inq_vardimid(d.group, d.number, ids)
    path = d.path.rsplit("/", 1)[0]
    v = e.var(b"edit_beside", nc.FLOAT, ids[:rank.value], d.group, path)
    if 0 not in d.shape and int(np.prod(d.shape)) < MANY:
        e.fill(d.group, v, path + "/edit_beside", nc.FLOAT, np.arange(int(np.prod(d.shape)), dtype="f4").reshape(d.shape))
    e.touch(d.path, "scales")


@operation
def variable_add_strings(e):
    v = e.var(b"edit_words", nc.STRING, [e.dim(b"edit_n", 4)])
    words = np.empty(4, object)
    words[:] = [b"a", b"", b"longer " * 40, b"\xc3\xa4"]
    e.fill(e.nc, v, "/edit_words", nc.STRING, words)


@operation
def variable_rename(e):
    v = e.data()
    was_coordinate = v.path.rsplit("/", 1)[1] in e.dimensions(v.group)
    e.define()
    e.rename_var(v.group, v.number, b"renamed_variable")
    folder, name = v.path.rsplit("/", 1)
    new = folder + "/renamed_variable"
    e.renamed[v.path] = new
    e.facts.append(("there", new))
    if was_coordinate:
        # The dimension keeps its name, so it has an object of its own now, to which all lead who have it.
        e.added.append(v.path)
        e.stay.append(v.path)
        e.facts.append(("scale", v.path, v.shape[0]))
    else:
        e.facts.append(("gone", v.path))


@operation
def dimension_add(e):
    e.dim(b"edit_dimension", 6)
    e.facts.append(("there", "/edit_dimension"))


@operation
def dimension_rename(e):
    ids, n, name = (c.c_int * 1024)(), c.c_int(), c.create_string_buffer(257)
    e.inq_dimids(e.nc, c.byref(n), ids, 0)
    if not n.value:
        raise NotHere("no dimensions")
    for v in e.variables():
        e.touch(v.path, "scales", "@NAME", "@CLASS")
    e.inq_dimname(e.nc, ids[0], name)
    e.define()
    e.rename_dim(e.nc, ids[0], b"renamed_dimension")
    old, path = name.value.decode(), "/renamed_dimension"
    # A coordinate variable keeps its name, and is one no more; a dimension without one is renamed.
    v = c.c_int()
    if e.lib.so.nc_inq_varid(e.nc, name, c.byref(v)):
        e.renamed["/" + old] = path
    e.facts.append(("there", path))
    e.added.append(path)


@operation
def coordinate_add(e):
    d = e.dim(b"edit_coordinate", 4)
    v = e.var(b"edit_coordinate", nc.INT, [d])
    e.fill(e.nc, v, "/edit_coordinate", nc.INT, np.arange(4, dtype="i4"))


@operation
def group_add(e):
    g = e.lib.integer("nc_def_grp", e.nc, b"edit_group")
    inner = e.lib.integer("nc_def_grp", g, b"inner")
    e.added += ["/edit_group", "/edit_group/inner"]
    d = e.dim(b"edit_z", 2, g, "/edit_group")
    v = e.var(b"v", nc.SHORT, [d], inner, "/edit_group/inner")
    e.att(g, nc.GLOBAL, "/edit_group", b"level", nc.INT, np.array([1], "i4"))
    e.fill(inner, v, "/edit_group/inner/v", nc.SHORT, np.array([5, 6], "i2"))


@operation
def group_rename(e):
    g, path = e.subgroup()
    e.rename_grp(g, b"renamed_group")
    e.renamed[path] = "/renamed_group"
    e.facts += [("gone", path), ("there", "/renamed_group")]


@operation
def group_variable(e):
    g, path = e.subgroup()
    d = e.dim(b"edit_w", 3, g, path)
    v = e.var(b"edit_inside", nc.INT, [d], g, path)
    e.fill(g, v, path + "/edit_inside", nc.INT, np.array([1, 2, 3], "i4"))


@operation
def type_add(e):
    # Where no order is kept, netCDF-C wants types before the variables that have them by name, too.
    e.types += ["edit_pair", "edit_list", "edit_a_type"]
    e.lib.define_types(e.nc, *e.types[:2])
    t = c.c_int()
    e.def_enum(e.nc, nc.BYTE, b"edit_a_type", c.byref(t))
    for i, name in enumerate((b"red", b"green")):
        e.insert_enum(e.nc, t, name, c.byref(c.c_byte(i)))
    e.added += ["/" + name for name in e.types]
    v = e.var(b"edit_colours", t, [e.dim(b"edit_n", 3)])
    e.fill(e.nc, v, "/edit_colours", nc.BYTE, np.array([0, 1, 0], "i1"))


@operation
def many_definitions(e):
    """Enough links to split a symbol table's nodes, or to become dense."""
    d = e.dim(b"edit_x", 2)
    for i in range(30):
        v = e.var(b"edit %02d" % i, nc.SHORT, [d])
        e.fill(e.nc, v, "/edit %02d" % i, nc.SHORT, np.array([i, -i], "i2"))


# ---- Nothing, and several

@operation
def nothing(e):
    """Only opened for writing."""


@operation
def redef_nothing(e):
    e.redef(e.nc)
    e.enddef(e.nc)


@operation
def sync_between(e):
    """Three changes, each committed."""
    v = e.data()
    e.att(v.group, v.number, v.path, b"edited", nc.INT, np.array([1], "i4"))
    e.define(False)
    e.sync(e.nc)
    e.committed()
    if 0 not in v.shape:
        overwrite(e)
        e.define(False)
        e.sync(e.nc)
        e.committed()
    e.att(v.group, v.number, v.path, b"edited", nc.CHAR, text(b"once more, and longer"))


@operation
def sessions(e):
    """One after the other, each opens and closes the file."""
    for step in (attribute_add, extend, variable_add, overwrite_part, attribute_delete, group_add, root_attributes):
        try:
            step(e)
        except NotHere:
            continue
        e.facts = [f for i, f in enumerate(e.facts) if not any(f[0] == "data" and g[:2] == f[:2] for g in e.facts[i + 1:])]
        e.close()
        e.done = sha256(e.path)
        e.open()


# ---- Running

def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def apply(library, name, path):
    """("edited", what) | ("refused", {where, code, message, kept}) | ("not here", why)."""
    e = Edit(library, path)
    e.done = sha256(path)
    try:
        e.open()
        OPERATIONS[name](e)
        e.close()
    except NotHere as why:
        e.give_up()
        return "not here", str(why)
    except nc.NcError as why:
        if why.code == -112:
            e.give_up()
            return "not here", "the classic model"
        message = c.c_char_p
        try:
            last = e.lib.so.nc_zonda_last_error
            last.restype = message
            said = (last() or b"").decode(errors="replace")
        except AttributeError:
            said = ""
        e.give_up()
        return "refused", {"where": str(why).split(":")[0], "code": why.code, "message": said, "kept": sha256(path) == e.done}
    return "edited", {"touched": e.touched, "renamed": e.renamed, "added": e.added, "facts": e.facts, "types": e.types, "stay": e.stay}


def main():
    what, result = apply(*sys.argv[1:4])
    if what == "edited":
        result = {k: v for k, v in result.items() if k != "facts"}
    print(json.dumps([what, result]))


if __name__ == "__main__":
    main()
