#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whatever define mode accepts survives close and reads back.

    tests/limits/define.py                 60 files; with --quick 10
    tests/limits/define.py --long          6,000 files
    tests/limits/define.py --only SEED     one file, with its definitions printed
    tests/limits/define.py --seed S --files N

Each file gets random definitions at and around every limit of its format: lengths of dimensions, names,
ranks, numbers and sizes of attributes, members of enumerations, fields of compounds, types in types,
groups in groups, sizes of opaque types, chunks, filters, fill values. What a call refuses is left out; a
file whose definitions were all accepted or refused one by one must then be closed with NC_NOERR and read
by the library under test and by the reference, each in a process of its own, with every accepted
definition as it was given. The reference is asked in the same way for what it reads: it is the judge.

tests/rig/places.py has the settings.
"""
import ctypes as c
import json
import os
import random
import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

OUT = rig.out("limits")
FORMATS = {"cdf1": 0, "cdf2": 0x200, "cdf5": 0x20, "nc4": 0x1000, "nc4classic": 0x1100}
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
STRING = 12
GLOBAL = -1
TOO_LONG = -62
SECONDS = 20


class Lib:
    """A libnetcdf; calls answer their code."""

    def __init__(self, path):
        self.so = c.CDLL(path)

    def __getattr__(self, name):
        return getattr(self.so, "nc_" + name)

    def number(self, name, *args):
        """A call whose last argument is an int that it fills in."""
        out = c.c_int(-99)
        return getattr(self, name)(*args, c.byref(out)), out.value

    def must(self, name, *args):
        code = getattr(self, name)(*args)
        if code:
            raise RuntimeError("%s: %d" % (name, code))


# ---- What is in a file

def ids_of(lib, name, nc):
    n = c.c_int()
    lib.must(name, nc, c.byref(n), None)
    ids = (c.c_int * max(1, n.value))()
    lib.must(name, nc, c.byref(n), ids)
    return list(ids[: n.value])


def type_name(lib, nc, number):
    name = c.create_string_buffer(257)
    lib.must("inq_type", nc, number, name, None)
    return text_of(name)


def text_of(name):
    """A name. The reference forgets the NUL behind one of 256 bytes: what follows is no part of it."""
    return name.value[:256].decode("utf-8", "replace")


def atts_of(lib, nc, var, where, found):
    n = c.c_int()
    lib.must("inq_natts" if var == GLOBAL else "inq_varnatts", *([nc] if var == GLOBAL else [nc, var]), c.byref(n))
    for i in range(n.value):
        name, kind, length = c.create_string_buffer(257), c.c_int(), c.c_size_t()
        lib.must("inq_attname", nc, var, i, name)
        lib.must("inq_att", nc, var, name, c.byref(kind), c.byref(length))
        value = None
        if kind.value in SIZES:
            data = c.create_string_buffer(max(1, length.value * SIZES[kind.value]))
            lib.must("get_att", nc, var, name, data)
            raw = data.raw[: length.value * SIZES[kind.value]]
            value = [len(raw), hash_of(raw)]
        found["att %s@%s" % (where, text_of(name))] = [type_name(lib, nc, kind.value), length.value, value]


def hash_of(data):
    h = 0
    for byte in data[:64] + data[-64:]:
        h = (h * 31 + byte) & 0xFFFFFFFF
    return h


def types_of(lib, nc, path, found):
    for number in ids_of(lib, "inq_typeids", nc):
        name, size, base, n, kind = c.create_string_buffer(257), c.c_size_t(), c.c_int(), c.c_size_t(), c.c_int()
        lib.must("inq_user_type", nc, number, name, c.byref(size), c.byref(base), c.byref(n), c.byref(kind))
        told = [kind.value, size.value, n.value]
        if kind.value in (13, 15):
            told.append(type_name(lib, nc, base.value))
        if kind.value == 15:
            value = c.c_longlong()
            for i in range(n.value):
                member = c.create_string_buffer(257)
                lib.must("inq_enum_member", nc, number, i, member, c.byref(value))
                told.append([text_of(member), value.value & (1 << 8 * size.value) - 1])
        if kind.value == 16:
            for i in range(n.value):
                field, at, of, rank, dims = c.create_string_buffer(257), c.c_size_t(), c.c_int(), c.c_int(), (c.c_int * 1024)()
                lib.must("inq_compound_field", nc, number, i, field, c.byref(at), c.byref(of), c.byref(rank), dims)
                told.append([text_of(field), at.value, type_name(lib, nc, of.value), list(dims[: rank.value])])
        found["type %s%s" % (path, text_of(name))] = told


def contents(lib, nc, format):
    """Everything that is defined in an open file, by kind and path."""
    found, todo = {}, [(nc, "/")]
    while todo:
        group, path = todo.pop()
        found.setdefault("order", []).append(path)
        inner_groups = []
        unlimited = set()
        if format == "nc4":
            unlimited = set(ids_of(lib, "inq_unlimdims", group))
            types_of(lib, group, path, found)
            for inner in ids_of(lib, "inq_grps", group):
                name = c.create_string_buffer(257)
                lib.must("inq_grpname", inner, name)
                inside = path + text_of(name) + "/"
                found["group " + inside] = True
                inner_groups.append((inner, inside))
            dims = []
            n = c.c_int()
            lib.must("inq_dimids", group, c.byref(n), None, 0)
            ids = (c.c_int * max(1, n.value))()
            lib.must("inq_dimids", group, c.byref(n), ids, 0)
            dims = list(ids[: n.value])
        else:
            n, one = c.c_int(), c.c_int()
            lib.must("inq_ndims", group, c.byref(n))
            lib.must("inq_unlimdim", group, c.byref(one))
            dims, unlimited = range(n.value), {one.value}
        for dim in dims:
            name, length = c.create_string_buffer(257), c.c_size_t()
            lib.must("inq_dim", group, dim, name, c.byref(length))
            found["dim %s%s" % (path, text_of(name))] = [length.value, dim in unlimited]
        n = c.c_int()
        lib.must("inq_nvars", group, c.byref(n))
        for var in range(n.value):
            name, kind, rank, dims = c.create_string_buffer(257), c.c_int(), c.c_int(), (c.c_int * 1024)()
            lib.must("inq_var", group, var, name, c.byref(kind), c.byref(rank), dims, None)
            told, where = [type_name(lib, group, kind.value), rank.value], path + text_of(name)
            for dim in dims[: rank.value]:
                label = c.create_string_buffer(257)
                lib.must("inq_dimname", group, dim, label)
                told.append(text_of(label))
            if format.startswith("nc4"):
                storage, chunks, no_fill, endian = c.c_int(), (c.c_size_t * 1024)(), c.c_int(), c.c_int()
                a, b, d, e = c.c_int(), c.c_int(), c.c_int(), c.c_int()
                lib.must("inq_var_chunking", group, var, c.byref(storage), chunks)
                lib.must("inq_var_fill", group, var, c.byref(no_fill), None)
                lib.must("inq_var_endian", group, var, c.byref(endian))
                lib.must("inq_var_deflate", group, var, c.byref(a), c.byref(b), c.byref(d))
                lib.must("inq_var_fletcher32", group, var, c.byref(e))
                told += [storage.value, list(chunks[: rank.value]) if storage.value == 0 else [], no_fill.value]
                told += [a.value, b.value, d.value if b.value else 0, e.value]
            found["var " + where] = told
            atts_of(lib, group, var, where, found)
        atts_of(lib, group, GLOBAL, path, found)
        todo += reversed(inner_groups)
    return found


# ---- Definitions

def clipped(name):
    """A name, without its last character if it has 256 bytes in normalisation form C."""
    text = unicodedata.normalize("NFC", name.decode("utf-8", "ignore"))
    return text.encode()[:255].decode("utf-8", "ignore").encode() if len(text.encode()) == 256 else name


class Maker:
    """Random definitions in one new file. `kept` has those that were accepted."""

    def __init__(self, lib, path, seed, told, skip=()):
        self.lib, self.rng, self.told, self.skip = lib, random.Random(seed), told, skip
        self.format = self.rng.choice(["cdf1", "cdf2", "cdf5", "nc4", "nc4", "nc4", "nc4", "nc4classic"])
        self.kept, self.tried, self.refused, self.early = {}, 0, 0, []
        code, self.nc = lib.number("create", os.fsencode(path), FORMATS[self.format])
        if code:
            raise RuntimeError("create: %d" % code)
        self.groups, self.dims, self.vars, self.types = [(self.nc, "/")], [], [], []
        self.uses, self.count = {}, 0
        # Elements that are filled at the end are bounded: this is about definitions.
        lib.set_fill(self.nc, 0x100, c.byref(c.c_int()))

    def near(self, *limits):
        return max(0, self.rng.choice(limits) + self.rng.choice([-9, -8, -4, -2, -1, 0, 0, 1, 2, 5]))

    def name(self):
        self.count += 1
        rng, own = self.rng, "n%d" % self.count
        kind = rng.randrange(12)
        if kind == 0:
            return (own + "x" * 300)[: self.near(256)].encode()
        if kind == 1:
            return (own + "\u00e9\u65e5\U0001f600"[rng.randrange(3)] * rng.choice([1, 40, 62, 63, 64, 84, 85, 126, 127])).encode()
        if kind == 2:
            return (own + rng.choice(["e\u0301", "a b", "a.b", "+-@:", "\u0344\u212b", "\u1e9b\u0323" * 30])).encode()
        if kind == 3 and rng.random() < 0.3:
            return rng.choice([b"a/b", b"", b" x", b"x ", b"\xff", b"a\x01", b"-a", b"_" + own.encode()])
        return own.encode()

    def note(self, code, what, key=None, value=True):
        self.tried += 1
        if self.told:
            print("%6d  %s  %s" % (code, what, shown(key or "")), flush=True)
        if code:
            self.refused += 1
        elif key:
            self.kept[key] = value
        return code == 0

    def text(self, name):
        return unicodedata.normalize("NFC", name.decode("utf-8", "replace"))

    def group(self):
        parent, path = self.rng.choice(self.groups)
        # Of a group whose name has 256 bytes the reference makes one that it cannot open itself: it leaves
        # out the NUL behind the name.
        name, depth = clipped(self.name()), self.rng.choice([1, 1, 1, 3, 60])
        for _ in range(depth):
            code, group = self.lib.number("def_grp", parent, name)
            inside = path + self.text(name) + "/"
            if not self.note(code, "def_grp", "group " + inside):
                return
            self.groups.append((group, inside))
            parent, path = group, inside

    def dim(self):
        group, path = self.rng.choice(self.groups)
        name = self.name()
        length = self.rng.choice([0, 1, 2, 3, 7, 10, 100, self.near(1 << 16), self.near(1 << 31), self.near(1 << 32), self.near(1 << 40), self.near(1 << 63)])
        code, dim = self.lib.number("def_dim", group, name, c.c_size_t(length))
        if self.note(code, "def_dim %d" % length, "dim " + path + self.text(name), length):
            self.dims.append((dim, path, self.text(name), length))

    def var(self):
        rng = self.rng
        group, path = rng.choice(self.groups)
        name = self.name()
        # Only dimensions of groups around it are seen.
        seen = [d for d in self.dims if path.startswith(d[1])]
        small = [d for d in seen if d[3] <= 100]
        rank = rng.choice([0, 1, 1, 2, 2, 3, 4, 8, self.near(32), self.near(1024)])
        pool = seen if rank < 4 and rng.random() < 0.5 else [d for d in small if d[3]] or small
        picked = [rng.choice(pool) for _ in range(rank)] if pool else []
        kind = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, STRING])
        if self.types and rng.random() < 0.4:
            kind = rng.choice(self.types)[0]
            size = c.c_size_t()
            self.lib.inq_type(self.nc, kind, None, c.byref(size))
            # The reference wants memory for elements of each variable when it opens a file.
            if size.value > 1 << 24:
                return
        if rank > 8 and rng.random() < 0.7:
            picked = [d for d in picked if d[3] == 1] or picked
        ids = (c.c_int * max(1, len(picked)))(*[d[0] for d in picked])
        # What is too long for the format the reference refuses only when definitions end.
        code, var = (TOO_LONG, -1) if self.tried in self.skip else self.lib.number("def_var", group, name, kind, len(picked), ids)
        if code == TOO_LONG:
            self.early.append(self.tried)
        if self.note(code, "def_var rank %d type %d %s" % (len(picked), kind, [d[3] for d in picked][:5]), "var " + path + self.text(name), len(picked)):
            self.vars.append((group, path + self.text(name), var, kind, [d[3] for d in picked]))
            self.uses[kind] = True

    def setting(self):
        if not self.vars or not self.format.startswith("nc4"):
            return
        lib, rng = self.lib, self.rng
        group, path, var, kind, lengths = rng.choice(self.vars)
        which = rng.randrange(9)
        if which <= 2:
            sizes = [rng.choice([1, max(1, n), max(1, min(n or 1, 10)), self.near(1 << 16), self.near(1 << 31), self.near(1 << 32)]) for n in lengths]
            code = lib.def_var_chunking(group, var, rng.choice([0, 0, 0, 1, 2]), (c.c_size_t * max(1, len(sizes)))(*sizes))
            self.note(code, "def_var_chunking %s of %s" % (sizes[:5], path))
        elif which == 3:
            self.note(lib.def_var_deflate(group, var, rng.randrange(2), 1, rng.randrange(-1, 11)), "def_var_deflate")
        elif which == 4:
            self.note(lib.def_var_fletcher32(group, var, 1), "def_var_fletcher32")
        elif which == 5:
            self.note(lib.def_var_endian(group, var, rng.randrange(4)), "def_var_endian")
        elif which == 6:
            self.note(lib.def_var_quantize(group, var, rng.randrange(5), rng.choice([-1, 0, 1, 7, 8, 15, 16, 23, 24, 52, 53])), "def_var_quantize")
        elif which == 7:
            n = rng.choice([0, 1, 2, 5, 30, self.near(16_000), self.near(16_384), self.near(65_536)])
            id = rng.choice([1, 2, 3, 4, 5, 6, 307, 32015])
            params = (c.c_uint * max(1, n))(*[rng.randrange(6) for _ in range(min(n, 8))])
            self.note(lib.def_var_filter(group, var, id, c.c_size_t(n), params), "def_var_filter %d %d" % (id, n))
        else:
            size = c.c_size_t()
            lib.inq_type(group, kind, None, c.byref(size))
            known = [t for t in self.types if t[0] == kind]
            if kind in SIZES or (known and known[0][1] == "opaque"):
                value = c.create_string_buffer(bytes([1]) * size.value, max(1, size.value))
                self.note(lib.def_var_fill(group, var, rng.choice([0, 0, 1]), value), "def_var_fill of %d bytes" % size.value)

    def att(self):
        rng, lib = self.rng, self.lib
        if self.vars and rng.random() < 0.5:
            group, where, var = rng.choice(self.vars)[:3]
        else:
            (group, where), var = rng.choice(self.groups), GLOBAL
        name = self.name()
        kind = rng.choice(list(SIZES))
        size = SIZES[kind]
        n = rng.choice([0, 1, 2, 30, 1000, self.near(65_536 // size), self.near(65_480 // size), self.near(70_000)])
        for i in range(rng.choice([1, 1, 1, 1, 9, 70])):
            own = name if i == 0 else name[:240] + b"_%d" % i
            data = bytes((i + j * 7) & 63 for j in range(min(n * size, 4096)))
            buffer = c.create_string_buffer(data, max(1, n * size))
            code = lib.put_att(group, var, own, kind, c.c_size_t(n), buffer)
            key = "att %s@%s" % (where, self.text(own))
            if not self.note(code, "put_att type %d of %d" % (kind, n), key, n):
                return
        if self.types and rng.random() < 0.3:
            kind, sort, size = rng.choice(self.types)
            if sort in ("opaque", "enum") and size:
                n = rng.choice([1, 2, max(1, 65_500 // size)])
                code = lib.put_att(group, var, name[:200] + b"_u", kind, c.c_size_t(n), c.create_string_buffer(n * size))
                self.note(code, "put_att of %s, %d of %d bytes" % (sort, n, size), "att %s@%s" % (where, self.text(name[:200] + b"_u")), n)
                self.uses[kind] = True

    def type(self):
        rng, lib = self.rng, self.lib
        group, path = rng.choice(self.groups)
        which = rng.randrange(5)
        name = self.name()
        key = "type " + path + self.text(name)
        if which == 0:
            size = rng.choice([0, 1, 7, 255, 256, self.near(65_520), self.near(65_536), 70_000, 1 << 20, self.near(1 << 32)])
            code, kind = lib.number("def_opaque", group, c.c_size_t(size), name)
            if self.note(code, "def_opaque %d" % size, key, [14, size]):
                self.types.append((kind, "opaque", size if size <= 1 << 20 else 0))
        elif which == 1:
            base = rng.choice([1, 3, 4, 7, 8, 9, 10, 11])
            code, kind = lib.number("def_enum", group, base, name)
            if not self.note(code, "def_enum %d" % base):
                return
            self.fill_enum(group, kind, base, key)
        elif which == 2:
            self.compound(group, name, key)
        elif which == 3:
            base = self.base()
            code, kind = lib.number("def_vlen", group, name, base)
            if self.note(code, "def_vlen of %d" % base, key, [13]):
                self.types.append((kind, "vlen", 0))
                self.uses[base] = True
        else:
            self.nest(group, path)

    def base(self):
        return self.rng.choice(self.types)[0] if self.types and self.rng.random() < 0.6 else self.rng.choice([1, 4, 6, 2, STRING])

    def fill_enum(self, group, kind, base, key):
        size = SIZES[base]
        n = self.rng.choice([1, 2, 100, self.near(65_500 // (size + 6)), 127 if size == 1 else 66_000 // (size + 5)])
        n, done = min(n, 127 if size == 1 else 32_767), 0
        for i in range(n):
            code = self.lib.insert_enum(group, kind, b"m%04x" % i, c.byref(c.c_longlong(i)))
            done += code == 0
            if not self.note(code, "insert_enum %d" % i if self.told and i % 500 == 0 or code else ""):
                break
        self.kept[key] = [15, size, done]
        self.types.append((kind, "enum", size))

    def compound(self, group, name, key):
        rng, lib = self.rng, self.lib
        size = rng.choice([8, 64, 4096, 1 << 20, 1 << 28, self.near(1 << 32)])
        code, kind = lib.number("def_compound", group, c.c_size_t(size), name)
        if not self.note(code, "def_compound %d" % size):
            return
        n, at, done = rng.choice([1, 2, 5, 50, 2400, 3000, 3600]), 0, 0
        same = rng.random() < 0.7
        of = self.base()
        for i in range(n):
            of = of if same else self.base()
            step = c.c_size_t()
            lib.inq_type(group, of, None, c.byref(step))
            dims = [rng.choice([1, 2, 3, 0, 1 << 20]) for _ in range(rng.choice([0, 0, 0, 0, 1, 2, 5]))] if not same else []
            code = lib.insert_array_compound(group, kind, b"f%d" % i, c.c_size_t(at), of, len(dims), (c.c_int * max(1, len(dims)))(*dims))
            if not self.note(code, "insert_compound %d of type %d %s" % (i, of, dims) if self.told and (code or i % 500 == 0) else ""):
                if not done:
                    self.lib.insert_compound(group, kind, b"first", c.c_size_t(0), 1)
                    done += 1
                break
            done += 1
            self.uses[of] = True
            product = 1
            for dim in dims:
                product *= dim
            at += step.value * product
        self.kept[key] = [16, size, done]
        self.types.append((kind, "compound", 0))

    def nest(self, group, path):
        rng, lib = self.rng, self.lib
        depth, inner, size = rng.choice([5, 12, 22, 36]), self.base(), c.c_size_t()
        alternate = rng.choice([1, 2, 2, 3])
        if rng.random() < 0.05 and self.told is None:
            depth = 140
        for i in range(depth):
            self.count += 1
            name = b"t%d" % self.count
            key = "type " + path + self.text(name)
            if i % alternate == 0:
                code, kind = lib.number("def_vlen", group, name, inner)
                if not self.note(code, "def_vlen of %d" % inner, key, [13]):
                    return
            else:
                lib.inq_type(group, inner, None, c.byref(size))
                twice = size.value * 2
                code, kind = lib.number("def_compound", group, c.c_size_t(twice), name)
                if not self.note(code, "def_compound %d" % twice):
                    return
                code = lib.insert_compound(group, kind, b"f", c.c_size_t(0), inner)
                if not self.note(code, "insert_compound of %d" % inner):
                    lib.insert_compound(group, kind, b"f", c.c_size_t(0), 1)
                    self.kept[key] = [16, twice, 1]
                    return
                if rng.random() < 0.2:
                    self.note(lib.insert_compound(group, kind, b"g", c.c_size_t(size.value), inner), "insert_compound again")
                self.kept[key] = [16, twice]
            self.types.append((kind, "nested", 0))
            self.uses[inner] = True
            inner = kind

    def run(self):
        rng = self.rng
        steps = [self.dim, self.dim, self.var, self.var, self.att, self.setting, self.setting]
        if self.format == "nc4":
            steps += [self.type, self.type, self.group]
        elif rng.random() < 0.1:
            steps += [self.type, self.group]
        for _ in range(rng.choice([5, 15, 40])):
            rng.choice(steps)()


def matches(kept, found):
    """What was accepted and is not there as it was given."""
    wrong = []
    for key, value in kept.items():
        got = found.get(key)
        if got is None:
            wrong.append("%s is not there" % key[:100])
        elif key.startswith("dim ") and got != [value, value == 0] or key.startswith(("var ", "att ")) and value is not True and got[1] != value:
            wrong.append("%s is %r, not %r" % (key[:100], got, value))
        elif key.startswith("type ") and got[: len(value)] != value:
            wrong.append("%s is %r, not %r" % (key[:100], got[:3], value))
    return wrong


def serve(role, path):
    """A child: one request a line, one answer a line."""
    lib = Lib(path)
    for line in sys.stdin:
        request = json.loads(line)
        if role == "write":
            maker = Maker(lib, request["file"], request["seed"], request.get("told"), request.get("skip", ()))
            maker.run()
            ended = lib.enddef(maker.nc)
            # Definitions may bring others, when they end.
            found = contents(lib, maker.nc, maker.format) if ended == 0 else {}
            answer = {"format": maker.format, "enddef": ended, "close": lib.close(maker.nc), "tried": maker.tried, "refused": maker.refused, "early": maker.early}
            answer["wrong"] = matches(maker.kept, found) if ended == 0 else []
            answer["found"] = found
        else:
            code, nc = lib.number("open", os.fsencode(request["file"]), 0)
            answer = {"open": code}
            if code == 0:
                try:
                    answer["found"] = contents(lib, nc, request["format"])
                    answer["close"] = lib.close(nc)
                except RuntimeError as error:
                    answer["fault"] = str(error)
        print(json.dumps(answer), flush=True)


class Child:
    """A library in a process that may die or hang without harm."""

    def __init__(self, role, library):
        self.command, self.process = [sys.executable, __file__, "--serve", role, str(library)], None

    def ask(self, **request):
        import select

        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        self.process.stdin.flush()
        data, end = b"", time.time() + SECONDS
        while not data.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.time()))
            piece = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            if not piece:
                self.process.kill()
                code = self.process.wait()
                self.process = None
                return {"died": code if ready else "no answer in %d s" % SECONDS}
            data += piece
        lines = data.decode().splitlines()
        return json.loads(lines[-1])


class Types:
    """The types of a file as the format keeps them.

    The header of a variable or an attribute has a copy of its type, in files of the reference, too, and
    readers take the first type of the file that is like it. Sizes and offsets of compounds are made up
    by the reader, as a C compiler would pack them."""

    def __init__(self, found, numbers):
        self.told = {key.rsplit("/", 1)[1]: value for key, value in found.items() if key.startswith("type ")}
        # Numbers of what types are made of, which several files share.
        self.numbers, self.known, self.first = numbers, {}, {}
        place = {path: i for i, path in enumerate(found.get("order", []))}
        for key in found:
            if key.startswith("type "):
                path, name = key[len("type ") :].rsplit("/", 1)
                like, at = self.like(name), place[path + "/"]
                self.first[like] = min(at, self.first.get(like, at))
        self.place = place

    def like(self, name):
        """The number of all types that are alike; of an atomic type its name."""
        if name not in self.told:
            return name
        if name not in self.known:
            kind, size, n, *inside = self.told[name]
            if kind == 13:
                what = [self.like(inside[0])]
            elif kind == 16:
                what = [[field, self.like(of), dims] for field, _, of, dims in inside]
            else:
                what = [size, inside]
            self.known[name] = self.numbers.setdefault(json.dumps([kind, n, what]), len(self.numbers))
        return self.known[name]

    def all_like(self, found):
        """Definitions with numbers in the place of names of types."""
        out = {}
        for key, value in found.items():
            if key == "order":
                continue
            if key.startswith("type "):
                value = ["a type", self.like(key.rsplit("/", 1)[1])]
            elif key.startswith("var "):
                is_user = value[0] in self.told
                value = [self.like(value[0])] + value[1:]
                if is_user and len(value) > 7 + value[1]:
                    # Whether zeros were asked for is not told of a type without default.
                    value = value[: 4 + value[1]] + value[5 + value[1] :]
            elif key.startswith("att "):
                value = [self.like(value[0])] + value[1:]
            out[key] = value
        return out

    def come_later(self, found):
        """Variables before all types that are like theirs: the reference has read none when it comes to
        them, and leaves them out, of files that it wrote as well."""
        late = set()
        for key, value in found.items():
            if key.startswith("var ") and value[0] in self.told:
                path = key[len("var ") :].rsplit("/", 1)[0] + "/"
                if self.first[self.like(value[0])] > self.place[path]:
                    late.add(key[len("var ") :])
        return late


def without(found, late):
    """Definitions without these variables."""
    gone = lambda key: key[4:] in late or any(key.startswith("att %s@" % where) for where in late)
    return {key: value for key, value in found.items() if not gone(key)}


def clipped_names(value):
    """The same with the beginnings of names that are too long for the reference: of 256 bytes it reads
    255 or some more, also where it wrote them."""
    if isinstance(value, dict):
        return {clipped_names(key): clipped_names(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [clipped_names(inside) for inside in value]
    if not isinstance(value, str):
        return value
    parts = [part.encode("utf-8", "replace") for part in re.split("([/@])", value)]
    return "".join((part[:250] if len(part) >= 255 else part).decode("utf-8", "ignore") for part in parts)


def shown(text):
    """A text, in which repeated characters are counted."""
    return re.sub(r"(.)\1{9,}", lambda run: "%s{%d}" % (run[1], len(run[0])), text)


def differences(a, b):
    keys = [k for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k)]
    return ["%s: %r before, %r after" % (shown(k), a.get(k), b.get(k)) for k in keys[:4]]


def judge(seed, ours, judge_writer, readers, found):
    """The faults of one file."""
    path = OUT / ("define-%d.nc" % seed)
    path.unlink(missing_ok=True)
    made = ours.ask(file=str(path), seed=seed)
    faults = []
    if "died" in made:
        return ["the library died: %s" % made["died"]]
    found["tried"] += made["tried"]
    found["refused"] += made["refused"]
    faults += ["on the open handle: " + wrong for wrong in made["wrong"]]
    ended = [made["enddef"], made["close"]]
    if ended != [0, 0]:
        # Classic variables are measured when definitions end, and a device has limits of its own.
        other = path.with_suffix(".reference.nc")
        other.unlink(missing_ok=True)
        told = {} if made["format"].startswith("nc4") or not judge_writer else judge_writer.ask(file=str(other), seed=seed, skip=made["early"])
        theirs = [told.get("enddef"), told.get("close")]
        device = all(code > 0 for code in ended + theirs if code != 0 and code is not None) and theirs[1]
        if not (ended == theirs or device):
            faults.append("enddef and close %s, of the reference %s" % (ended, theirs))
        elif ended == theirs:
            # What is left must be the same: no file, an empty one, or the same definitions.
            left = [readers["reference"].ask(file=str(file), format=made["format"]) for file in (path, other)]
            if left[0] != left[1]:
                faults.append("left behind: %.150s, by the reference: %.150s" % tuple(left))
        other.unlink(missing_ok=True)
        if not faults:
            found["ended"] += 1
            path.unlink(missing_ok=True)
        return faults
    if not faults:
        given, numbers, told = made["found"], {}, {}
        late = Types(given, numbers).come_later(given)
        for name, reader in readers.items():
            read = reader.ask(file=str(path), format=made["format"])
            if "died" in read and name == "reference" and "no answer" in str(read["died"]):
                found["slow"] += 1
            elif "found" not in read:
                faults.append("%s: %s" % (name, {k: v for k, v in read.items()}))
            else:
                before, after = given, read["found"]
                told[name] = after
                if name == "reference":
                    found["late"] += len(late)
                    before, after = clipped_names(without(before, late)), clipped_names(after)
                before, after = (Types(one, numbers).all_like(one) for one in (before, after))
                faults += ["%s: %s" % (name, d) for d in differences(before, after)]
        if len(told) == 2 and not faults:
            # Of types that are alike both name the same, with the same sizes and offsets.
            ours, theirs = clipped_names(without(told["zonda"], late)), clipped_names(told["reference"])
            faults += ["zonda and the reference: %s" % d for d in differences(ours, theirs)]
    if not faults:
        path.unlink(missing_ok=True)
    return faults


def show(seed):
    """One file, with its definitions."""
    lib, path = Lib(rig.LIBRARY), OUT / ("define-%d.nc" % seed)
    path.unlink(missing_ok=True)
    maker = Maker(lib, str(path), seed, True)
    maker.run()
    print("enddef %d" % lib.enddef(maker.nc))
    if hasattr(lib.so, "nc_zonda_last_error"):
        lib.so.nc_zonda_last_error.restype = c.c_char_p
        print((lib.so.nc_zonda_last_error() or b"").decode("utf-8", "replace"))
    print("close %d: %s" % (lib.close(maker.nc), path))


def files(n, first, counts):
    """n files, from a first seed on."""
    readers, reference = {"zonda": Child("read", rig.LIBRARY)}, rig.reference_library()
    if reference:
        readers["reference"] = Child("read", reference)
    else:
        counts.skip("the reference", "there is no library of the distribution")
    ours, theirs = Child("write", rig.LIBRARY), Child("write", reference) if reference else None
    found = {"tried": 0, "refused": 0, "slow": 0, "ended": 0, "late": 0}
    for seed in range(first, first + n):
        faults = judge(seed, ours, theirs, readers, found)
        counts.check("seed %d (out/limits/define-%d.nc)" % (seed, seed), "".join("\n     " + shown(fault)[:400] for fault in faults[:5]))
    for child in [ours, theirs, *readers.values()]:
        if child and child.process:
            child.process.stdin.close()
            child.process.wait(timeout=60)
    print("seeds %d to %d: %d definitions, %d of them refused; %d files that both end with one error, %d that the reference did not read in %d s, %d variables that it cannot read" % (first, first + n - 1, found["tried"], found["refused"], found["ended"], found["slow"], SECONDS, found["late"]))


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    parser = rig.parser(__doc__, seed=1, only=None)
    parser.add_argument("--files", type=int)
    parser.add_argument("--only", type=int, metavar="SEED")
    options, counts = rig.arguments(parser), rig.Counts()
    if options.only is not None:
        return show(options.only)
    files(options.files or options.by(10, 60, 6000), options.seed, counts)
    return counts


if __name__ == "__main__":
    rig.main(main)
