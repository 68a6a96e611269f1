#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""h5py as a reader of netCDF-4 files: writes out plainly what it finds in them, as plain.c has it.

Takes paths on standard input, one a line; writes beside each file `.plain`, empty if it cannot be read,
and answers `ok` or why not. check.c linked with plain.c then judges that by the rules that hold for
every reader. What a netCDF dimension or variable is follows from the dimension scales here, so this
knows nothing of either library. It looks closer than those in one thing: references between scales
and variables must lead to what they say."""

import os
import resource
import signal
import struct
import sys
import traceback

import h5py
import numpy as np
from h5py import h5a, h5d, h5o, h5r, h5t, h5z

CHAR, STRING = 2, 12
INTEGERS = {(1, 1): 1, (2, 1): 3, (4, 1): 4, (8, 1): 10, (1, 0): 7, (2, 0): 8, (4, 0): 9, (8, 0): 11}
FLOATS = {4: 5, 8: 6}
FIRST_USER_TYPE = 32
UNLIMITED = 2**64 - 1
PLACEHOLDER = b"This is a netCDF dimension but not a netCDF variable"
NOT_COORDINATE = b"_nc4_non_coord_"
HIDDEN = {
    *(b"CLASS", b"NAME", b"DIMENSION_LIST", b"REFERENCE_LIST"),
    *(b"_Netcdf4Dimid", b"_Netcdf4Coordinates", b"_nc3_strict", b"_NCProperties"),
}
MEMORY_BYTES = 768 << 20  # beyond what the process has when it begins
SECONDS = 60


class Damaged(Exception):
    """What h5py reads is not as netCDF has it."""


def number(n):
    return struct.pack("=q", n)


def text(data):
    return number(len(data)) + data


def read(source):
    """All of an attribute or a dataset."""
    array = np.zeros(source.shape or (), dtype=source.dtype)
    if array.size and isinstance(source, h5a.AttrID):
        source.read(array)
    elif array.size:
        source.read(h5py.h5s.ALL, h5py.h5s.ALL, array)
    return array


def packed(kind, array, types):
    """Elements as they are in memory; strings and lists each with its length before it."""
    if kind == STRING:
        return text(b"".join(text(one) for one in array.flat))
    if kind >= FIRST_USER_TYPE and types.is_list(kind):
        return text(b"".join(number(len(one)) + bytes(one) for one in array.flat))
    return text(array.tobytes())


class Types:
    """The types that the root group has, and the numbers that plain.c gives to all types."""

    def __init__(self):
        self.names, self.ids = [], []

    def add(self, name, tid):
        self.names.append(name)
        self.ids.append(tid)

    def is_list(self, kind):
        return isinstance(self.ids[kind - FIRST_USER_TYPE], h5t.TypeVlenID)

    def kind(self, tid):
        if isinstance(tid, h5t.TypeStringID):
            return STRING if tid.is_variable_str() else CHAR
        if isinstance(tid, h5t.TypeIntegerID):
            return INTEGERS[tid.get_size(), tid.get_sign()]
        if isinstance(tid, h5t.TypeFloatID):
            return FLOATS[tid.get_size()]
        for i, one in enumerate(self.ids):
            if tid.equal(one):
                return FIRST_USER_TYPE + i
        raise Damaged("a type that the root group does not have")


class Object:
    """A group or a dataset with its attributes: all of them are read."""

    def __init__(self, name, oid):
        self.name, self.oid, self.atts = name, oid, []
        self.hidden = {}
        for i in range(h5a.get_num_attrs(oid)):
            aid = h5a.open(oid, index=i)
            if aid.name in HIDDEN:
                self.hidden[aid.name] = read(aid)
            else:
                self.atts.append((aid.name, aid.get_type(), read(aid)))

    def written_atts(self, types):
        out = [number(len(self.atts))]
        for name, tid, array in self.atts:
            kind = types.kind(tid)
            n = array.size * tid.get_size() if kind == CHAR else array.size
            out += [text(name), number(kind), number(n), packed(kind, array, types)]
        return b"".join(out)


class Dataset(Object):
    def __init__(self, name, oid):
        super().__init__(name, oid)
        space = oid.get_space()
        self.shape, self.most = space.get_simple_extent_dims(), space.get_simple_extent_dims(True)
        self.is_scale = self.says(b"CLASS").startswith(b"DIMENSION_SCALE")
        self.is_variable = not (self.is_scale and self.says(b"NAME").startswith(PLACEHOLDER))
        self.id = int(self.hidden[b"_Netcdf4Dimid"]) if self.is_scale else None
        self.dims = []

    def says(self, name):
        return self.hidden[name].item() if name in self.hidden else b""

    def find_dims(self, tree):
        """Which dimensions it has, by their numbers; the references must agree with those."""
        rank = len(self.shape)
        lists = self.hidden.get(b"DIMENSION_LIST", np.empty(0, object)).flat
        referred = [tree.scale_at(one[0]).id for one in lists]
        said = self.hidden.get(b"_Netcdf4Coordinates")
        if said is not None:
            self.dims = [int(d) for d in said.flat]
        elif self.is_scale and rank == 1:
            self.dims = [self.id]
        else:
            self.dims = referred
        if len(self.dims) != rank or (referred and referred != self.dims):
            what = f"dimensions {self.dims}, by its references {referred}, and rank {rank}"
            raise Damaged(f"{self.name} has {what}")
        for one in self.hidden.get(b"REFERENCE_LIST", np.empty(0, object)).flat:
            user = h5r.dereference(one["dataset"], self.oid)
            if not isinstance(user, h5d.DatasetID) or one["dimension"] >= user.rank:
                raise Damaged(f"{self.name} is said to be axis {one['dimension']} of something else")

    def written(self, tree):
        kind, plist = tree.types.kind(self.oid.get_type()), self.oid.get_create_plist()
        filters = {f[0]: f[2] for f in map(plist.get_filter, range(plist.get_nfilters()))}
        shape = tuple(tree.dims[d].len for d in self.dims)
        data = read(self.oid)
        if data.shape != shape:
            # An unlimited dimension is as long as in the longest of its variables.
            whole = np.zeros(shape, data.dtype)
            if data.dtype.kind == "O":
                whole[...] = b""
            elif plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
                fill = np.zeros((), data.dtype)
                plist.get_fill_value(fill)
                whole[...] = fill
            whole[tuple(map(slice, data.shape))] = data
            data = whole
        name = self.name.removeprefix(NOT_COORDINATE)
        level = filters[h5z.FILTER_DEFLATE][0] if h5z.FILTER_DEFLATE in filters else -1
        return b"".join(
            (
                *(text(name), number(kind), number(len(shape)), *map(number, self.dims)),
                self.written_atts(tree.types),
                number(plist.get_layout() == h5d.CONTIGUOUS),
                number(h5z.FILTER_SHUFFLE in filters),
                number(level),
                number(h5z.FILTER_FLETCHER32 in filters),
                packed(kind, data, tree.types),
            )
        )


class Dimension:
    def __init__(self, scale):
        self.name, self.id = scale.name, scale.id
        self.len, self.is_unlimited = scale.shape[0], scale.most[0] == UNLIMITED

    def written(self):
        return number(self.id) + text(self.name) + number(self.len) + number(self.is_unlimited)


class Group(Object):
    def __init__(self, name, oid, tree):
        super().__init__(name, oid)
        self.datasets, self.groups = [], []
        names = []
        oid.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
        for name in names:
            child = h5o.open(oid, name)
            if isinstance(child, h5d.DatasetID):
                self.datasets.append(tree.add(Dataset(name, child)))
            elif isinstance(child, h5t.TypeID):
                tree.types.add(name, child)
            else:
                self.groups.append(Group(name, child, tree))

    def written(self, tree):
        dims = [tree.dims[d.id] for d in self.datasets if d.is_scale]
        parts = [text(self.name), number(len(dims)), *(d.written() for d in dims)]
        parts.append(self.written_atts(tree.types))
        for children in ([d for d in self.datasets if d.is_variable], self.groups):
            parts += [number(len(children)), *(one.written(tree) for one in children)]
        return b"".join(parts)


class Tree:
    """What a file holds as netCDF sees it."""

    def __init__(self, file):
        self.types, self.datasets, self.scales = Types(), [], {}
        root = Group(b"/", h5o.open(file.id, b"/"), self)
        self.dims = {d.id: Dimension(d) for d in self.datasets if d.is_scale}
        if len(self.dims) != sum(d.is_scale for d in self.datasets):
            raise Damaged("two dimensions have the same number")
        for one in self.datasets:
            one.find_dims(self)
            for d, n in zip(one.dims, one.shape):
                if self.dims[d].is_unlimited:
                    self.dims[d].len = max(self.dims[d].len, n)
        types = [number(len(self.types.names)), *map(text, self.types.names)]
        self.plain = b"".join(types) + root.written(self)

    def add(self, dataset):
        self.datasets.append(dataset)
        return dataset

    def scale_at(self, reference):
        """The scale that a variable refers to. After a crash that may be the one before, which has
        the same number."""
        oid = h5r.dereference(reference, self.datasets[0].oid)
        address = h5o.get_info(oid).addr
        if address not in self.scales:
            self.scales[address] = Dataset(b"a scale", oid)
            if not self.scales[address].is_scale:
                raise Damaged("a variable refers to a scale that is none")
        return self.scales[address]


def plain(path):
    """(whether it can be read, the file written out or why not)."""
    try:
        with h5py.File(path, "r") as file:
            return True, Tree(file).plain
    except Exception as why:  # whatever it is, h5py does not read the file
        where = traceback.extract_tb(why.__traceback__)[-1]
        return False, f"{type(why).__name__}: {why} ({where.name}, line {where.lineno})"


def main():
    print("h5py", h5py.version.version, flush=True)
    with open("/proc/self/statm", encoding="ascii") as f:
        memory = int(f.read().split()[0]) * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for line in sys.stdin:
        path = line.rstrip("\n")
        signal.alarm(SECONDS)
        is_read, what = plain(path)
        signal.alarm(0)
        with open(os.path.join(os.path.dirname(path), ".plain"), "wb") as f:
            f.write(what if is_read else b"")
        print("ok" if is_read else what.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
