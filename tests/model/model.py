# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a netCDF-4 file must hold: plain lists, dictionaries and arrays, and no cleverness.

Each object has the id it has in the file that is open. An element of a variable may be unsure: never
written where nothing is filled, or put after the last commit of a writer that died.
"""
import numpy as np

import nc
from nc import DOUBLE, FLOAT, LIST, NUMPY, PAIR, STRING

FILL = {nc.BYTE: -127, nc.CHAR: b"\0", nc.SHORT: -32767, nc.INT: -2147483647, FLOAT: 9.969209968386869e36,
        DOUBLE: 9.969209968386869e36, nc.UBYTE: 255, nc.USHORT: 65535, nc.UINT: 4294967295,
        nc.INT64: -9223372036854775806, nc.UINT64: 18446744073709551614, STRING: b"", LIST: ()}


def array_of(kind, shape, value):
    """An array with one value everywhere."""
    if kind in (STRING, LIST):
        a = np.empty(shape, object)
        flat = a.reshape(-1)
        for i in range(flat.size):
            flat[i] = value
        return a
    if kind == PAIR:
        a = np.zeros(shape, NUMPY[PAIR])
        if value is not None:
            a[...] = value
        return a
    return np.full(shape, value, NUMPY[kind])


def short_faults(extent, shape, unlimited):
    """What is wrong with a variable that is shorter than its dimensions, see Var.faults."""
    if all(n >= length for n, length in zip(extent, shape)):
        return set()
    return {"strided", "reader"} if sum(unlimited) > 1 or not unlimited[0] else {"strided"}


class Dim:
    def __init__(self, name, length, unlimited):
        self.name, self.length, self.unlimited, self.id = name, length, unlimited, None


class Var:
    def __init__(self, number, name, kind, dims, chunks, filters, fill, nofill):
        self.number = number        # whatever its name will be
        self.name, self.kind, self.dims, self.chunks, self.filters = name, kind, dims, chunks, filters
        self.fill, self.nofill, self.atts, self.id, self.retyped = fill, nofill, {}, None, set()
        self.data = array_of(kind, self.shape(), self.fill_value())
        # Where nothing is filled, nobody knows what was never written.
        self.sure = np.full(self.shape(), not nofill)
        self.dirty = np.zeros(self.shape(), bool)
        # What was put, ever, and how far: a dimension may be longer.
        self.written = np.zeros(self.shape(), bool)
        self.extent = [0 if d.unlimited else d.length for d in dims]

    def fill_value(self):
        return self.fill if self.fill is not None else FILL.get(self.kind)

    def shape(self):
        return tuple(d.length for d in self.dims)

    def grow(self):
        """As long as the dimensions are now."""
        shape = self.shape()
        if shape == self.data.shape:
            return
        old = tuple(slice(0, n) for n in self.data.shape)
        for name, fresh in (("data", array_of(self.kind, shape, self.fill_value())), ("sure", np.full(shape, not self.nofill)),
                            ("dirty", np.zeros(shape, bool)), ("written", np.zeros(shape, bool))):
            fresh[old] = getattr(self, name)
            setattr(self, name, fresh)

    def put(self, where, values):
        self.extent = [max(n, w.stop) for n, w in zip(self.extent, where)]
        where += (Ellipsis,)
        self.data[where] = values
        for mask in (self.sure, self.dirty, self.written):
            mask[where] = True

    def faults(self):
        """What netCDF-C 4.9.0 does not do right: as a reader, it puts elements in the wrong place where a
        variable of several unlimited dimensions is shorter than one of them, or is read with strides
        past its end, and it cannot read strings whose chunk was never written; as a writer, it makes
        more of those."""
        found = short_faults(self.extent, self.shape(), [d.unlimited for d in self.dims])
        if self.kind in (STRING, LIST) and not self.written.all():
            found |= {"writer", "unwritten"}
        return found


class Group:
    def __init__(self, name, parent):
        self.name, self.parent, self.id = name, parent, None
        self.dims, self.vars, self.groups, self.atts, self.retyped = [], [], [], {}, set()
        self.ordered = True         # a renamed variable may change its place

    def all_groups(self):
        yield self
        for g in self.groups:
            yield from g.all_groups()

    def visible_dims(self):
        """Own dimensions and those above, but for hidden ones."""
        found, names, g = [], set(), self
        while g:
            found += [d for d in g.dims if d.name not in names]
            names |= {d.name for d in g.dims}
            g = g.parent
        return found

    def names(self):
        """Names of variables and groups, which share one name space; dimensions have their own."""
        return {v.name for v in self.vars} | {g.name for g in self.groups}

    def snapshot(self):
        return {
            "dims": {d.name: (d.length, d.unlimited) for d in self.dims},
            "atts": dict(self.atts),
            "vars": {v.name: {"kind": v.kind, "dims": tuple(d.name for d in v.dims), "atts": dict(v.atts), "chunks": v.chunks,
                              "filters": v.filters, "nofill": v.nofill, "data": v.data.copy(), "sure": v.sure.copy(),
                              "faults": v.faults(), "number": v.number, "extent": list(v.extent),
                              "unlimited": [d.unlimited for d in v.dims]}
                     for v in self.vars},
            "groups": {g.name: g.snapshot() for g in self.groups},
            "order": [v.name for v in self.vars] if self.ordered else None,
        }


# ---- Comparison: what is different between a file and the model, or None

def same_attributes(want, got):
    return want.keys() == got.keys() and all(want[n][0] == got[n][0] and nc.equal(want[n][1], got[n][1]) for n in want)


READER, ALL = {"reader", "unwritten"}, {"reader", "writer", "strided", "unwritten"}


def difference(want, got, forgive=frozenset(), path=""):
    """`forgive` says as what the reference took part."""
    for what in ("dims", "vars", "groups"):
        if want[what].keys() != got[what].keys():
            return "%s/: %s are %s, and must be %s" % (path, what, sorted(got[what]), sorted(want[what]))
    if want["dims"] != got["dims"]:
        return "%s/: dimensions are %s, and must be %s" % (path, got["dims"], want["dims"])
    if want["order"] is not None and want["order"] != got["order"]:
        return "%s/: variables are in the order %s, and must be in %s" % (path, got["order"], want["order"])
    if not same_attributes(want["atts"], got["atts"]):
        return "%s/: attributes are %s, and must be %s" % (path, got["atts"], want["atts"])
    for name, w in want["vars"].items():
        why = variable_difference(w, got["vars"][name], forgive & (w["faults"] - {"strided"}))
        if why:
            return "%s/%s: %s" % (path, name, why)
    for name, g in want["groups"].items():
        why = difference(g, got["groups"][name], forgive, path + "/" + name)
        if why:
            return why
    return None


def variable_difference(w, g, forgive):
    for what in ("kind", "dims", "nofill"):
        if w[what] != g[what]:
            return "%s is %s, and must be %s" % (what, g[what], w[what])
    # None means that the library chooses.
    if w["chunks"] is not None and w["chunks"] != g["chunks"]:
        return "chunks are %s, and must be %s" % (g["chunks"], w["chunks"])
    if w["filters"] != g["filters"]:
        return "filters are %s, and must be %s" % (g["filters"], w["filters"])
    if not same_attributes(w["atts"], g["atts"]):
        return "attributes are %s, and must be %s" % (g["atts"], w["atts"])
    if forgive - {"unwritten"}:
        return None
    if isinstance(g["data"], int):
        return None if forgive else "reading gives %d" % g["data"]
    if w["data"].shape != g["data"].shape:
        return "the shape is %s, and must be %s" % (g["data"].shape, w["data"].shape)
    if not nc.equal(w["data"], g["data"], w["sure"]):
        wrong = [i for i in np.ndindex(w["data"].shape) if w["sure"][i] and not nc.equal(np.asarray(w["data"][i]), np.asarray(g["data"][i]))]
        if wrong:
            i = wrong[0]
            return "%d of %d elements are wrong; %s is %r, and must be %r" % (len(wrong), w["data"].size, list(i), g["data"][i], w["data"][i])
    return None


def between(states, dirty, got, forgive=frozenset(), path=""):
    """A file that was not closed: each object is as in one of `states`, and elements put since the first
    of them may have any value. `dirty` says which: number of a variable -> array."""
    for what in ("vars", "groups"):
        if got[what].keys() not in [s[what].keys() for s in states]:
            return "%s/: %s are %s, which they never were" % (path, what, sorted(got[what]))
    if got["dims"].keys() not in [s["dims"].keys() for s in states]:
        return "%s/: dimensions are %s, which they never were" % (path, sorted(got["dims"]))
    for name, (length, unlimited) in got["dims"].items():
        lengths = [s["dims"][name][0] for s in states if name in s["dims"]]
        # Records that were put since then may be there.
        if length < min(lengths) or not unlimited and length > max(lengths):
            return "%s/%s has the length %d, and had %s" % (path, name, length, lengths)
    if not any(same_attributes(s["atts"], got["atts"]) for s in states):
        return "%s/: attributes are %s, which they never were" % (path, got["atts"])
    for name, g in got["vars"].items():
        why = [one_between(w, g, dirty.get(w["number"]), forgive & (faults_between(w, g) - {"strided"}))
               for w in (s["vars"][name] for s in states if name in s["vars"])]
        if all(why):
            return "%s/%s: %s" % (path, name, why[0])
    for name, g in got["groups"].items():
        why = between([s["groups"][name] for s in states if name in s["groups"]], dirty, g, forgive, path + "/" + name)
        if why:
            return why
    return None


def faults_between(w, g):
    """Those of a variable whose dimensions may have grown since, by what was put to others."""
    shape = () if isinstance(g["data"], int) else g["data"].shape
    if len(shape) != len(w["extent"]):
        return w["faults"]
    return w["faults"] | short_faults(w["extent"], shape, w["unlimited"])


def one_between(w, g, dirty, forgive):
    for what in ("kind", "dims"):
        if w[what] != g[what]:
            return "%s is %s, and was %s" % (what, g[what], w[what])
    if not same_attributes(w["atts"], g["atts"]):
        return "attributes are %s, and were %s" % (g["atts"], w["atts"])
    if forgive - {"unwritten"}:
        return None
    if isinstance(g["data"], int):
        return None if forgive else "reading gives %d" % g["data"]
    common = tuple(slice(0, min(a, b)) for a, b in zip(w["data"].shape, g["data"].shape)) + (Ellipsis,)
    sure = w["sure"][common].copy()
    if dirty is not None:
        part = tuple(slice(0, min(a, b)) for a, b in zip(sure.shape, dirty.shape)) + (Ellipsis,)
        sure[part] &= ~dirty[part]
    if not nc.equal(w["data"][common], g["data"][common], sure):
        return "elements that nobody put since the last commit have changed"
    return None
