#!/usr/bin/env python3
"""Reads one file through the C API of any libnetcdf and prints what it holds, as JSON.

    probe.py --lib LIBRARY FILE             {"code": 0, "header_sha256": ..., "data_sha256": ...}
    probe.py --lib LIBRARY --header FILE    the header text that the digest is taken over

`code` is what nc_open returned. The header digest covers format, dimensions, attributes and
variables with all names, types and values; the data digest the values of all variables in order,
in their own type. A call that fails is part of the text by its code. Standard library only.
"""
import argparse
import ctypes
import hashlib
import json
import os
import resource

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}    # by NC_ type
MEMORY_LIMIT = 1 << 30
VARIABLE_LIMIT = 64 << 20       # a damaged header may claim any size


class Reader:
    def __init__(self, library):
        self.nc = ctypes.CDLL(os.path.abspath(library))
        self.header, self.data = [], hashlib.sha256()

    def call(self, name, *args):
        """Calls a function; a failure becomes a line of the header text. True if it succeeded."""
        code = getattr(self.nc, name)(*args)
        if code:
            self.header.append("%s failed: %d" % (name, code))
        return code == 0

    def open(self, path):
        self.id = ctypes.c_int()
        return self.nc.nc_open(os.fsencode(path), 0, ctypes.byref(self.id))

    def close(self):
        self.call("nc_close", self.id)

    def attributes(self, varid, count):
        for i in range(count):
            name, kind, length = ctypes.create_string_buffer(257), ctypes.c_int(), ctypes.c_size_t()
            if not self.call("nc_inq_attname", self.id, varid, i, name):
                continue
            if not self.call("nc_inq_att", self.id, varid, name, ctypes.byref(kind), ctypes.byref(length)):
                continue
            size = SIZES.get(kind.value, 0) * length.value
            value = ctypes.create_string_buffer(max(size, 1))
            if self.call("nc_get_att", self.id, varid, name, value):
                self.header.append("  att %r type %d length %d value %s"
                                   % (name.value, kind.value, length.value, value.raw[:size].hex()))

    def variable(self, varid, dim_lengths):
        name, kind, rank = ctypes.create_string_buffer(257), ctypes.c_int(), ctypes.c_int()
        dims, natts = (ctypes.c_int * 1024)(), ctypes.c_int()
        if not self.call("nc_inq_varndims", self.id, varid, ctypes.byref(rank)) or rank.value > 1024:
            return
        if not self.call("nc_inq_var", self.id, varid, name, ctypes.byref(kind), ctypes.byref(rank),
                         dims, ctypes.byref(natts)):
            return
        shape = list(dims[:rank.value])
        self.header.append("var %r type %d dims %s" % (name.value, kind.value, shape))
        self.attributes(varid, natts.value)
        size = SIZES.get(kind.value, 0)
        for d in shape:
            size *= dim_lengths.get(d, 0)
        if size > VARIABLE_LIMIT:
            self.data.update(b"%d bytes, not read" % size)
            return
        value = ctypes.create_string_buffer(max(size, 1))
        code = self.nc.nc_get_var(self.id, varid, value)
        self.data.update(b"code %d\n" % code + (value.raw[:size] if code == 0 else b""))

    def everything(self):
        counts = [ctypes.c_int() for _ in range(4)]
        kind = ctypes.c_int()
        if self.call("nc_inq_format", self.id, ctypes.byref(kind)):
            self.header.append("format %d" % kind.value)
        if not self.call("nc_inq", self.id, *map(ctypes.byref, counts)):
            return
        ndims, nvars, natts, unlimited = (c.value for c in counts)
        self.header.append("dims %d vars %d atts %d unlimited %d" % (ndims, nvars, natts, unlimited))
        lengths = {}
        for i in range(ndims):
            name, length = ctypes.create_string_buffer(257), ctypes.c_size_t()
            if self.call("nc_inq_dim", self.id, i, name, ctypes.byref(length)):
                lengths[i] = length.value
                self.header.append("dim %r length %d" % (name.value, length.value))
        self.attributes(-1, natts)
        for i in range(nvars):
            self.variable(i, lengths)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lib", required=True)
    p.add_argument("--header", action="store_true")
    p.add_argument("--unlimited", action="store_true", help="no limit on memory")
    p.add_argument("file")
    a = p.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not a.unlimited:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    r = Reader(a.lib)
    code = r.open(a.file)
    answer = {"code": code}
    if code == 0:
        r.everything()
        r.close()
        text = "\n".join(r.header) + "\n"
        answer.update(header_sha256=hashlib.sha256(text.encode()).hexdigest(), data_sha256=r.data.hexdigest())
        if a.header:
            print(text, end="")
            return
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
