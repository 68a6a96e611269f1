#!/usr/bin/env python3
"""Reads files through the C API of one libnetcdf, a process for each, for differential.py.

    probe.py LIBRARY        reads paths from standard input, one a line; answers each with a line
    probe.py --raw FILE     where the file's raw data lie, by h5py

An answer is JSON: {"died": why}, or {"items": {what: [code, value]}}. What and value are text; large
values are shown as digests. --raw prints [[first byte, bytes], ...]: data without references into
heaps, unfiltered or under filters of which any two decoders must agree on damaged input.
"""
import ctypes
import hashlib
import json
import os
import resource
import select
import signal
import sys
import time
from ctypes import byref, c_char_p, c_int, c_size_t, create_string_buffer

SECONDS = 20
MEMORY = 2 << 30
DATA = 1 << 20      # bytes read of one variable
ITEMS = 4000        # of one file: damage may claim any number
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}    # by NC_ type
NOT_WRITTEN = 1     # beside the codes of libnetcdf: success, but memory was left as it was
STRING, ENUM, COMPOUND = 12, 15, 16
COMPARABLE_FILTERS = {1, 2, 3}      # deflate, shuffle, fletcher32


def short(data):
    return data.hex() if len(data) <= 64 else "%d bytes %s" % (len(data), hashlib.sha256(data).hexdigest()[:32])


class Probe:
    def __init__(self, library):
        self.nc, self.items = library, {}

    def call(self, what, name, *args):
        """True if the function succeeded; a failure becomes an item."""
        code = getattr(self.nc, name)(*args)
        if code:
            self.note(what, "", code)
        return code == 0

    def note(self, what, value, code=0):
        if len(self.items) < ITEMS:
            self.items[what] = [code, value]

    def values(self, what, kind, count, function, *args):
        """Reads `count` values of an atomic type through a function that takes their address last."""
        size = 8 if kind == STRING else SIZES.get(kind, 0)
        if size == 0 or size * count > DATA:
            return
        if kind == STRING:
            memory = (c_char_p * max(count, 1))()
            if self.call(what, function, *args, memory):
                texts = [memory[i] for i in range(count)]
                self.note(what, short(repr(texts).encode()))
                self.nc.nc_free_string(c_size_t(count), memory)
            return
        memory, again = (create_string_buffer(byte * max(size * count, 1)) for byte in (b"\0", b"\xff"))
        if not self.call(what, function, *args, memory) or not self.call(what, function, *args, again):
            return
        if memory.raw[:size * count] == again.raw[:size * count]:
            self.note(what, short(memory.raw[:size * count]))
        else:
            self.note(what, "", NOT_WRITTEN)

    def attributes(self, where, group, var, count):
        for i in range(min(count, ITEMS)):
            name, kind, length = create_string_buffer(257), c_int(), c_size_t()
            if not self.call("%s attribute %d" % (where, i), "nc_inq_attname", group, var, i, name):
                continue
            what = "%s attribute %r" % (where, name.value)
            if not self.call(what, "nc_inq_att", group, var, name, byref(kind), byref(length)):
                continue
            self.note(what, "type %d length %d" % (kind.value, length.value))
            self.values(what + " value", kind.value, length.value, "nc_get_att", group, var, name)

    def variable(self, where, group, var):
        name, kind, rank, count = create_string_buffer(257), c_int(), c_int(), c_int()
        what = "%s variable %d" % (where, var)
        if not self.call(what, "nc_inq_varndims", group, var, byref(rank)) or rank.value > 1024:
            return
        dims = (c_int * 1024)()
        if not self.call(what, "nc_inq_var", group, var, name, byref(kind), None, dims, byref(count)):
            return
        dims = list(dims[:rank.value])
        self.note(what, "%r type %d dimensions %s" % (name.value, kind.value, dims))
        what = "%s variable %r" % (where, name.value)
        self.attributes(what, group, var, count.value)
        elements = 1
        for dim in dims:
            length = c_size_t()
            if not self.call(what + " shape", "nc_inq_dimlen", group, dim, byref(length)):
                return
            elements *= length.value
        self.values(what + " data", kind.value, elements, "nc_get_var", group, var)

    def type(self, where, group, kind):
        name, size, base, fields, form = create_string_buffer(257), c_size_t(), c_int(), c_size_t(), c_int()
        what = "%s type %d" % (where, kind)
        if not self.call(what, "nc_inq_user_type", group, kind, name, byref(size), byref(base), byref(fields),
                         byref(form)):
            return
        self.note(what, "%r size %d base %d fields %d class %d"
                  % (name.value, size.value, base.value, fields.value, form.value))
        for i in range(min(fields.value, ITEMS)):
            part, offset, of, rank = create_string_buffer(257), c_size_t(), c_int(), c_int()
            at = "%s part %d" % (what, i)
            if form.value == COMPOUND:
                if self.call(at, "nc_inq_compound_field", group, kind, i, part, byref(offset), byref(of), byref(rank),
                             None):
                    self.note(at, "%r offset %d type %d rank %d" % (part.value, offset.value, of.value, rank.value))
            elif form.value == ENUM:
                value = create_string_buffer(8)
                if self.call(at, "nc_inq_enum_member", group, kind, i, part, value):
                    self.note(at, "%r %s" % (part.value, value.raw.hex()))

    def ids(self, where, function, group, *more):
        """What the functions give that tell a number of ids and then the ids."""
        count = c_int()
        if not self.call(where, function, group, byref(count), None, *more) or not 0 <= count.value <= 1 << 20:
            return []
        ids = (c_int * max(count.value, 1))()
        return list(ids[:count.value]) if self.call(where, function, group, None, ids, *more) else []

    def group(self, where, group, depth=0):
        attributes, unlimited = c_int(), self.ids(where, "nc_inq_unlimdims", group)
        for kind in self.ids(where, "nc_inq_typeids", group):
            self.type(where, group, kind)
        for dim in self.ids(where, "nc_inq_dimids", group, 0):
            name, length = create_string_buffer(257), c_size_t()
            what = "%s dimension %d" % (where, dim)
            if self.call(what, "nc_inq_dim", group, dim, name, byref(length)):
                self.note(what, "%r %d%s" % (name.value, length.value, " unlimited" * (dim in unlimited)))
        if self.call(where, "nc_inq_natts", group, byref(attributes)):
            self.attributes(where, group, -1, attributes.value)
        for var in self.ids(where, "nc_inq_varids", group):
            self.variable(where, group, var)
        for i, child in enumerate(self.ids(where, "nc_inq_grps", group)):
            name = create_string_buffer(257)
            if self.call("%s group %d" % (where, i), "nc_inq_grpname", child, name) and depth < 32:
                path = "%s/%s" % (where, repr(name.value)[2:-1])
                self.note(path, "group")
                self.group(path, child, depth + 1)

    def file(self, path):
        root = c_int()
        if self.call("open", "nc_open", os.fsencode(path), 0, byref(root)):
            self.note("open", "")
            self.group("", root)
            self.call("close", "nc_close", root)
        return self.items


def in_a_child(work):
    """The answer of a process that may die, hang or ask for too much memory."""
    get, put = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(get)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with os.fdopen(put, "w") as out:
                out.write(json.dumps({"items": work()}))
        except BaseException as error:
            os.write(quiet, repr(error).encode())
            os._exit(3)
        os._exit(0)
    os.close(put)
    answer, end = b"", time.monotonic() + SECONDS
    while True:
        ready, _, _ = select.select([get], [], [], max(end - time.monotonic(), 0))
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(get, 1 << 16)
        if not part:
            break
        answer += part
    os.close(get)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not ready:
        return {"died": "more than %d s" % SECONDS}
    if status < 0:
        return {"died": signal.Signals(-status).name}
    return json.loads(answer) if status == 0 else {"died": "exit %d" % status}


def raw(path):
    import h5py
    found = []

    def look(_, thing):
        if not isinstance(thing, h5py.Dataset):
            return
        create = thing.id.get_create_plist()
        filters = {create.get_filter(i)[0] for i in range(create.get_nfilters())}
        if not filters <= COMPARABLE_FILTERS or thing.dtype.hasobject:
            return
        if create.get_layout() == h5py.h5d.CONTIGUOUS and thing.id.get_offset() is not None:
            found.append([thing.id.get_offset(), thing.id.get_storage_size()])
        elif create.get_layout() == h5py.h5d.CHUNKED:
            for i in range(min(thing.id.get_num_chunks(), 1000)):
                chunk = thing.id.get_chunk_info(i)
                found.append([chunk.byte_offset, chunk.size])

    with h5py.File(path, "r") as file:
        file.visititems(look)
    return found


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--raw":
        print(json.dumps(raw(sys.argv[2])))
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = ctypes.CDLL(os.path.abspath(sys.argv[1]))
    for line in sys.stdin:
        path = line.rstrip("\n")
        print(json.dumps(in_a_child(lambda: Probe(library).file(path))), flush=True)


if __name__ == "__main__":
    main()
