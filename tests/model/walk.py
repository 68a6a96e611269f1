# SPDX-License-Identifier: MIT OR Apache-2.0
"""A random walk through the life of one netCDF-4 file, in the model and through a library at once.

All choices come from the seed and from the model, none from the library: without a library the walk
is the same, which tells what a file held at any step of a process that was killed.
"""
import copy
import os
import random
import sys

import numpy as np

import model
import nc
from nc import LIST, PAIR, STRING

NAMES = ["a", "bb", "temperature", "t\u00e9", "long name with blanks", "x1", "zz_top", "lat", "lon", "level", "time",
         "a_rather_long_name_that_takes_more_room_than_the_others_do"]
KINDS = list(range(1, 12)) + [STRING, PAIR, LIST]
ATTRIBUTE_KINDS = list(range(1, 13)) + [PAIR, LIST]
ENAMEINUSE, ENOTATT, EEDGE = -42, -43, -57
MOST = {"dims": 10, "vars": 14, "groups": 5, "records": 12}


class Broken(Exception):
    """The library did something else than the model."""


class Walk:
    def __init__(self, seed, path, steps, lib=None, options=None):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.seed, self.path, self.steps, self.lib = seed, path, steps, lib
        self.o = options
        self.log, self.step, self.nc, self.aborting = [], 0, None, False
        self.numbered, self.promised = 0, False
        self.states = []                # at the last commit, and whenever define mode ended since
        self.defining = True
        self.classic = self.loose = False
        self.counts = {}

    # ---- Talking to the library

    def call(self, name, *args):
        if self.lib:
            self.lib.call(name, *args)

    def note(self, text):
        self.log.append("%6d  %s" % (self.step, text))
        if self.o.aloud:
            print(self.log[-1], file=sys.stderr, flush=True)
        self.counts[text.split(" ")[0]] = self.counts.get(text.split(" ")[0], 0) + 1

    def expect(self, code, name, *args):
        """A call that must end in an error."""
        if not self.lib:
            return
        got = getattr(self.lib.so, name)(*args)
        if got != code:
            raise Broken("%s gives %d, and must give %d" % (name, got, code))

    def new_id(self, name, *args):
        return self.lib.integer(name, *args) if self.lib else None

    # ---- The whole file

    def create(self):
        self.classic = self.random.random() < 0.15
        self.nc = self.lib.create(self.path, nc.CLASSIC_MODEL if self.classic else 0) if self.lib else None
        self.note("create%s" % (" classic" if self.classic else ""))
        self.root = model.Group("/", None)
        self.root.id = self.nc
        self.defining = True
        if self.lib and not self.classic:
            self.lib.define_types(self.nc)

    def commit(self, promised=True):
        """What the library promises is in the file from now on. What ends define mode by itself may be."""
        self.defining = False
        snapshot = self.root.snapshot()
        if self.o.on_commit:
            self.o.on_commit(self, promised, snapshot)
        if not promised:
            self.states.append(snapshot)
            return
        self.states, self.loose, self.promised = [snapshot], False, True
        for g in self.root.all_groups():
            for v in g.vars:
                v.dirty[...] = False

    def reopen(self, flags=nc.WRITE):
        self.nc = self.lib.open(self.path, flags) if self.lib else None
        self.root.id = self.nc
        self.defining = False
        if not self.lib:
            return
        for g in self.root.all_groups():
            if g.parent:
                g.id = self.new_id("nc_inq_grp_ncid", g.parent.id, g.name.encode())
            for d in g.dims:
                d.id = self.new_id("nc_inq_dimid", g.id, d.name.encode())
            for v in g.vars:
                v.id = self.new_id("nc_inq_varid", g.id, v.name.encode())

    def check(self, when):
        """The open file against the model."""
        if self.lib:
            why = model.difference(self.root.snapshot(), self.lib.group(self.nc), self.o.forgive)
            if why:
                raise Broken("%s: %s" % (when, why))

    def define(self, call=False):
        """Define mode: by a call, or later by the definition itself."""
        if not self.defining and (self.classic or call or self.random.random() < 0.3):
            self.call("nc_redef", self.nc)
            self.defining = True

    def end_definitions(self):
        """Data mode by call."""
        self.call("nc_enddef", self.nc)
        self.commit()

    def use(self, itself=True):
        """Data mode: what was defined is committed, by a call or by the next transfer itself."""
        if self.defining and (self.classic or not itself or self.random.random() < 0.5):
            self.end_definitions()

    def used(self):
        """After a transfer: it has ended define mode. What was defined may be in the file from now on,
        and must be after the next commit."""
        if self.defining:
            self.commit(False)

    # ---- Choices

    def chance(self, p):
        return self.random.random() < p

    def group(self):
        return self.random.choice(list(self.root.all_groups()))

    def variable(self):
        """(group, variable) or None."""
        found = [(g, v) for g in self.root.all_groups() for v in g.vars]
        return self.random.choice(found) if found else None

    def owner(self):
        """(group, variable or None, attributes)."""
        pick = self.variable() if self.chance(0.7) else None
        if pick:
            return pick[0], pick[1], pick[1].atts
        g = self.group()
        return g, None, g.atts

    def kind(self, among):
        if self.classic:
            return self.random.randint(1, 6)
        return self.random.choice(among)

    def values(self, kind, shape):
        n = int(np.prod(shape, dtype=int))
        if kind == STRING:
            a = np.empty(n, object)
            for i in range(n):
                a[i] = b"" if self.chance(0.1) else b"value %d " % self.random.randrange(1000) * self.random.randrange(6)
            return a.reshape(shape)
        if kind == LIST:
            a = np.empty(n, object)
            for i in range(n):
                a[i] = tuple(self.random.randrange(-99, 99) for _ in range(self.random.randrange(6)))
            return a.reshape(shape)
        if kind == PAIR:
            a = np.zeros(n, nc.NUMPY[PAIR])
            a["a"], a["c"] = self.numbers.integers(-1000, 1000, n), self.numbers.integers(0, 256, n)
            a["b"] = self.numbers.integers(-8, 8, (n, 2)) / 4
            return a.reshape(shape)
        if kind == nc.CHAR:
            return self.numbers.integers(97, 123, n).astype("u1").view("S1").reshape(shape)
        a = self.numbers.integers(-100 if nc.NUMPY[kind][0] != "u" else 0, 100, n).astype(nc.NUMPY[kind])
        return (a + a.dtype.type(0.25) if kind in (nc.FLOAT, nc.DOUBLE) else a).reshape(shape)

    # ---- Definitions

    def def_dim(self):
        g = self.group()
        if len(g.dims) >= MOST["dims"]:
            return
        name, unlimited = self.random.choice(NAMES), self.chance(0.35)
        if self.classic and unlimited and any(d.unlimited for d in g.dims):
            unlimited = False
        length = 0 if unlimited else self.random.randint(1, 6)
        self.define()
        self.note("def_dim %s/%s %d" % (g.name, name, length))
        if any(d.name == name for d in g.dims):
            return self.expect(ENAMEINUSE, "nc_def_dim", g.id, name.encode(), nc.c.c_size_t(length), None)
        if self.clash(g, name):
            return
        d = model.Dim(name, length, unlimited)
        d.id = self.new_id("nc_def_dim", g.id, name.encode(), nc.c.c_size_t(length))
        g.dims.append(d)
        self.defining = True

    def clash(self, g, name):
        """Whether a dimension of this name makes a variable a coordinate that was none before it."""
        return not self.o.bold and any(v.name == name for v in g.vars)

    def def_var(self):
        g = self.group()
        name = self.random.choice(NAMES)
        if len(g.vars) >= MOST["vars"]:
            return
        if self.aborting and self.o.careful and any(d.name == name for d in g.dims):
            return          # netCDF-C has the dimension replaced already
        dims = [self.random.choice(g.visible_dims()) for _ in range(min(self.random.randrange(4), len(g.visible_dims())))]
        if self.classic:
            dims = [d for i, d in enumerate(dims) if i == 0 or not d.unlimited]
        kind = self.kind(KINDS)
        own = [d for d in g.dims if d.name == name]
        if own and self.chance(0.7):
            dims = own + [d for d in dims[1:] if d is not own[0]]        # a coordinate variable, of one dimension or more
        self.define()
        self.note("def_var %s/%s %s %s" % (g.name, name, kind, [d.name for d in dims]))
        if name in g.names():
            if not self.classic:
                self.expect(ENAMEINUSE, "nc_def_var", g.id, name.encode(), 4, 0, None, None)
            return
        v_id = self.new_id("nc_def_var", g.id, name.encode(), self.lib and self.lib.type_of(g.id, kind), len(dims),
                           (nc.c.c_int * max(1, len(dims)))(*[d.id or 0 for d in dims]))
        unlimited, chunks = any(d.unlimited for d in dims), None
        if dims and self.chance(0.4):
            chunks = tuple(self.random.randint(1, 5 if d.unlimited else d.length) for d in dims)
            self.call("nc_def_var_chunking", g.id, v_id, 0, nc.sizes(chunks))
        shuffle, level, fletcher = 0, None, 0
        if dims and kind not in (STRING, LIST) and self.chance(0.5):
            if self.chance(0.7):
                shuffle, level = self.random.randrange(2), self.random.randint(1, 6)
                self.call("nc_def_var_deflate", g.id, v_id, shuffle, 1, level)
            if self.chance(0.4):
                fletcher = 1
                self.call("nc_def_var_fletcher32", g.id, v_id, 1)
        fill, nofill = None, False
        if kind not in (STRING, LIST, PAIR) and self.chance(0.3):
            if self.chance(0.4):
                nofill = True
                self.call("nc_def_var_fill", g.id, v_id, 1, None)
            else:
                fill = self.values(kind, (1,))
                memory = nc.Memory(kind, fill)
                self.call("nc_def_var_fill", g.id, v_id, 0, memory.pointer)
        self.numbered += 1
        v = model.Var(self.numbered, name, kind, dims, chunks, (shuffle, level, fletcher), None if fill is None else fill[0], nofill)
        v.id = v_id
        if fill is not None:
            v.atts["_FillValue"] = (kind, fill)
        if not chunks and not unlimited and level is None and not fletcher and kind not in (STRING, LIST):
            if dims and self.chance(0.2):
                self.call("nc_def_var_chunking", g.id, v_id, 2, None)      # compact
        g.vars.append(v)
        self.defining = True

    def def_group(self):
        g = self.group()
        if self.classic or len(list(self.root.all_groups())) > MOST["groups"]:
            return
        name = "g " + self.random.choice(NAMES)
        self.define()
        self.note("def_grp %s/%s" % (g.name, name))
        if name in g.names():
            return self.expect(ENAMEINUSE, "nc_def_grp", g.id, name.encode(), None)
        new = model.Group(name, g)
        new.id = self.new_id("nc_def_grp", g.id, name.encode())
        g.groups.append(new)
        self.defining = True

    def put_att(self):
        g, v, atts = self.owner()
        name, kind = "att " + self.random.choice(NAMES), self.kind(ATTRIBUTE_KINDS)
        n = self.random.choice([0, 1, 1, 2, 3, 5, 20, 300] if kind != PAIR and kind != LIST else [1, 2, 3])
        if self.o.careful and n == 0 and name in atts:
            return          # netCDF-C does not shorten a text to nothing
        values = self.values(kind, (n,))
        # In data mode, an attribute that is there is overwritten without define mode; who reads the file
        # then, may see it or not, until the next commit.
        over = name in atts and not self.defining and not self.classic and not self.loose and self.chance(0.4)
        if name in atts and not over:
            self.define(True)
        elif not over:
            self.define()
        self.loose |= over
        self.note("put_att %s/%s@%s %s %d" % (g.name, v.name if v else "", name, kind, n))
        owner = v.id if v else nc.GLOBAL
        if self.lib:
            xtype = self.lib.type_of(g.id, kind)
            memory = nc.Memory(kind, values)
            if kind == nc.CHAR:
                self.call("nc_put_att_text", g.id, owner, name.encode(), nc.c.c_size_t(n), memory.pointer)
            else:
                self.call("nc_put_att", g.id, owner, name.encode(), xtype, nc.c.c_size_t(n), memory.pointer)
        if name in atts and (atts[name][0] != kind or len(atts[name][1]) != n):
            (v or g).retyped.add(name)
        atts[name] = (kind, values)
        self.defining |= not over

    def del_att(self):
        g, v, atts = self.owner()
        owner = v.id if v else nc.GLOBAL
        names = [n for n in atts if n != "_FillValue"]
        if self.o.careful:
            # With netCDF-C 4.9.0, an attribute that was overwritten by one of another type comes back.
            names = [n for n in names if n not in (v or g).retyped]
            if not names and atts:
                return
        self.define()
        if not names:
            self.note("del_att of nothing")
            return self.expect(ENOTATT, "nc_del_att", g.id, owner, b"no such attribute")
        name = self.random.choice(names)
        self.note("del_att %s/%s@%s" % (g.name, v.name if v else "", name))
        self.call("nc_del_att", g.id, owner, name.encode())
        del atts[name]
        self.defining = True

    def rename_att(self):
        g, v, atts = self.owner()
        owner = v.id if v else nc.GLOBAL
        names = [n for n in atts if n != "_FillValue"]
        if not names or not self.o.renames:
            return
        old, new = self.random.choice(names), "att " + self.random.choice(NAMES) + " renamed"
        self.define(True)
        self.note("rename_att %s/%s@%s to %s" % (g.name, v.name if v else "", old, new))
        if new in atts:
            return self.expect(ENAMEINUSE, "nc_rename_att", g.id, owner, old.encode(), new.encode())
        self.call("nc_rename_att", g.id, owner, old.encode(), new.encode())
        atts[new] = atts.pop(old)

    def rename_var(self):
        pick = self.variable()
        if not pick or not self.o.renames:
            return
        g, v = pick
        new = self.random.choice(NAMES) + " r"
        dims = {d.name for d in g.dims}
        if new in g.names() or not self.o.bold and (v.name in dims or new in dims):
            return
        self.define(True)
        self.note("rename_var %s/%s to %s" % (g.name, v.name, new))
        self.call("nc_rename_var", g.id, v.id, new.encode())
        v.name, g.ordered = new, False

    def rename_dim(self):
        g = self.group()
        if not g.dims or not self.o.renames:
            return
        d, new = self.random.choice(g.dims), self.random.choice(NAMES) + " r"
        names = {v.name for v in g.vars}
        if any(x.name == new for x in g.dims) or not self.o.bold and (d.name in names or new in names):
            return
        # A dimension below of the new name would hide it from variables that have it.
        self.define(True)
        self.note("rename_dim %s/%s to %s" % (g.name, d.name, new))
        self.call("nc_rename_dim", g.id, d.id, new.encode())
        d.name, g.ordered = new, False

    def rename_group(self):
        groups = [g for g in self.root.all_groups() if g.parent]
        if not groups or not self.o.renames:
            return
        g, new = self.random.choice(groups), "g " + self.random.choice(NAMES) + " r"
        if new in g.parent.names():
            return
        self.define(True)
        self.note("rename_grp %s to %s" % (g.name, new))
        self.call("nc_rename_grp", g.id, new.encode())
        g.name = new

    # ---- Data

    def put(self):
        pick = self.variable()
        if not pick:
            return
        g, v = pick
        self.use()
        start, count, stride = [], [], []
        strided = self.chance(0.25)
        for d in v.dims:
            s = self.random.randint(1, 3) if strided else 1
            if d.unlimited:
                room = MOST["records"]
                first = self.random.randrange(min(d.length + 2, room))
            else:
                room = d.length
                first = self.random.randrange(room)
            n = self.random.randint(1, (room - first + s - 1) // s) if self.chance(0.6) else (room - first + s - 1) // s
            if d.unlimited:
                n = min(n, 4)
            start.append(first)
            count.append(n)
            stride.append(s)
        values = self.values(v.kind, tuple(count))
        self.note("put %s/%s %s %s %s" % (g.name, v.name, start, count, stride if strided else ""))
        if self.lib:
            memory = nc.Memory(v.kind, values)
            if v.dims and all(n == 1 for n in count) and not strided and self.chance(0.5):
                self.call("nc_put_var1", g.id, v.id, nc.sizes(start), memory.pointer)
            elif strided:
                self.call("nc_put_vars", g.id, v.id, nc.sizes(start), nc.sizes(count), nc.strides(stride), memory.pointer)
            else:
                self.call("nc_put_vara", g.id, v.id, nc.sizes(start), nc.sizes(count), memory.pointer)
        elif v.dims and all(n == 1 for n in count) and not strided:
            self.chance(0.5)
        self.used()
        for d, first, n, s in zip(v.dims, start, count, stride):
            if d.unlimited:
                d.length = max(d.length, first + (n - 1) * s + 1)
        for group in self.root.all_groups():
            for other in group.vars:
                other.grow()
        v.put(tuple(slice(f, f + (n - 1) * s + 1, s) for f, n, s in zip(start, count, stride)), values)

    def put_outside(self):
        pick = self.variable()
        if not pick:
            return
        g, v = pick
        fixed = [i for i, d in enumerate(v.dims) if not d.unlimited]
        if not fixed or any(d.unlimited for d in v.dims):
            return
        self.use(False)
        start, count = [0] * len(v.dims), [1] * len(v.dims)
        count[fixed[0]] = v.dims[fixed[0]].length + 1
        self.note("put_outside %s/%s" % (g.name, v.name))
        values = self.values(v.kind, tuple(count))
        if self.lib:
            memory = nc.Memory(v.kind, values)
            self.expect(EEDGE, "nc_put_vara", g.id, v.id, nc.sizes(start), nc.sizes(count), memory.pointer)

    def get(self):
        pick = self.variable()
        if not pick:
            return
        g, v = pick
        if not v.data.size or self.o.forgive & v.faults():
            return
        self.use()
        start, count, stride = [], [], []
        for n in v.shape():
            first = self.random.randrange(n)
            step = self.random.randint(1, 3)
            start.append(first)
            stride.append(step)
            count.append(self.random.randint(1, (n - first + step - 1) // step))
        self.note("get %s/%s %s %s %s" % (g.name, v.name, start, count, stride))
        if self.lib:
            where = tuple(slice(f, f + (n - 1) * s + 1, s) for f, n, s in zip(start, count, stride)) + (Ellipsis,)
            got = self.lib.get(g.id, v.id, v.kind, start, count, stride if any(s > 1 for s in stride) else None)
            if not nc.equal(v.data[where], got, v.sure[where]):
                raise Broken("get gives %r, and must give %r" % (got.tolist(), v.data[where].tolist()))
        self.used()

    # ---- Life

    def enddef(self):
        if self.defining:
            self.note("enddef")
            self.end_definitions()

    def sync(self):
        if self.classic and self.defining:
            self.call("nc_enddef", self.nc)
        self.note("sync")
        self.call("nc_sync", self.nc)
        self.commit()

    def close_and_open(self):
        self.note("reopen")
        if self.classic and self.defining:
            self.call("nc_enddef", self.nc)
        self.call("nc_close", self.nc)
        self.commit()
        if self.lib and self.o.on_close:
            self.o.on_close(self)
        self.reopen()
        self.check("opened again")

    def abort(self):
        """Definitions that are given up: the file is as it was."""
        self.sync()
        kept, self.aborting = copy.deepcopy(self.root), True
        self.note("abort begins")
        self.call("nc_redef", self.nc)
        self.defining = True
        # netCDF-C cannot take back what it deleted.
        some = [self.def_dim, self.def_var, self.def_group] + ([] if self.o.careful else [self.put_att, self.del_att, self.rename_att])
        for _ in range(self.random.randint(1, 4)):
            self.random.choice(some)()
        self.note("abort")
        self.call("nc_abort", self.nc)
        self.nc = None
        self.root, self.aborting = kept, False
        self.reopen()
        self.check("after an abort")

    def checked(self):
        self.note("check")
        self.use(False)
        self.check("open file")

    def copied(self):
        """What a reader finds in a copy of the file, made while it is open."""
        if self.o.careful or self.loose:
            self.sync()
        if self.promised:
            self.note("copy")
            if self.lib and self.o.on_copy:
                self.o.on_copy(self)

    STEPS = [(def_dim, 6), (def_var, 9), (def_group, 2), (put_att, 12), (del_att, 4), (rename_att, 3), (rename_var, 2),
             (rename_dim, 2), (rename_group, 1), (put, 40), (put_outside, 1), (get, 20), (enddef, 3), (sync, 2),
             (close_and_open, 1.2), (abort, 0.3), (checked, 1.2), (copied, 0.8)]

    def begin_with_abort(self):
        """A new file that is given up is not there."""
        self.note("create and abort")
        for _ in range(4):
            self.random.choice([self.def_dim, self.def_var, self.put_att])()
        self.call("nc_abort", self.nc)
        if self.lib and os.path.exists(self.path):
            raise Broken("a new file is still there after nc_abort")

    def run(self):
        functions, weights = zip(*self.STEPS)
        self.create()
        if self.chance(0.03):
            self.begin_with_abort()
            self.create()
        while self.step < self.steps:
            self.step += 1
            self.random.choices(functions, weights)[0](self)
            if self.o.on_step:
                self.o.on_step(self)
        self.note("close")
        if self.classic and self.defining:
            self.call("nc_enddef", self.nc)
        self.call("nc_close", self.nc)
        self.commit()
        if self.lib and self.o.on_close:
            self.o.on_close(self)
