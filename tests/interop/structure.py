#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Walks HDF5 files byte by byte and says what is wrong with them.

    structure.py [--exact] [--sectors] [--leaks] FILE...

Superblock, object headers, links, attributes, chunk indexes, heaps and the values that refer to them
are read from the bytes, by no library. Checksums must be right, nothing may lie past the end of the
file or on top of something else, counts and orders must agree, references must lead to objects, and
dimension scales must know the variables that name them. Of newer files (indexes of layout version 4)
only the metadata is followed.

--exact    the file ends where the superblock says
--sectors  the first chunk of each object header lies within 512 bytes of the disk
--leaks    says how many bytes belong to nothing

One line per problem; the last one says how many files are wrong.
"""
import argparse
import mmap
import struct
import sys

import structure_parts as parts
from structure_objects import Object
from structure_parts import UNDEFINED, Cursor, Damage


class File:
    def __init__(self, data):
        self.data, self.problems, self.extents = data, [], []
        self.objects, self.queue, self.links_to = {}, [], {}
        self.references, self.collections, self.followed = [], {}, True
        self.sectors = False

    def problem(self, text):
        self.problems.append(text)

    def cursor(self, at, size, what):
        if at == UNDEFINED or at + size > len(self.data):
            raise Damage("%s at %d, past the end of the file" % (what, at))
        return Cursor(self.data[at:at + size], 0, what)

    def claim(self, at, size, what):
        if size:
            self.extents.append((at, at + size, what))

    def checksum(self, at, size, what):
        stored = int.from_bytes(self.data[at + size - 4:at + size], "little")
        if parts.lookup3(self.data[at:at + size - 4]) != stored:
            self.problem("%s at %d: the checksum is wrong" % (what, at))

    # ---- Superblock

    def superblock(self):
        at = 0
        while self.data[at:at + 8] != b"\x89HDF\r\n\x1a\n":
            at = at * 2 or 512
            if at + 8 > len(self.data):
                raise Damage("no superblock")
        if at:
            # Everything is relative to it; the end of the file is not.
            self.data = self.data[at:]
        c = self.cursor(0, 9, "superblock")
        c.take(8)
        self.version = c.u(1)
        self.chunk_k, self.group_k, self.leaf_k = 32, 16, 4
        if self.version < 2:
            c = self.cursor(0, 24, "superblock")
            c.take(13)
            widths = c.u(1), c.u(1)
            c.take(1)
            self.leaf_k, self.group_k = c.u(2), c.u(2)
            size = 24
            if self.version == 1:
                self.chunk_k = self.cursor(24, 2, "superblock").u(2)
                size = 28
            c = self.cursor(size, 4 * 8 + 40, "superblock")
            base, _, end, driver = c.u(8), c.u(8), c.u(8), c.u(8)
            c.take(8)
            root, extension = c.u(8), UNDEFINED
            self.claim(0, size + 72, "superblock")
            if driver != UNDEFINED:
                raise Damage("a driver information block")
        elif self.version < 4:
            c = self.cursor(0, 48, "superblock")
            c.take(9)
            widths = c.u(1), c.u(1)
            c.take(1)
            base, extension, end, root = c.u(8), c.u(8), c.u(8), c.u(8)
            self.checksum(0, 48, "superblock")
            self.claim(0, 48, "superblock")
        else:
            raise Damage("superblock of version %d" % self.version)
        if widths != (8, 8):
            raise Damage("addresses of %d and lengths of %d bytes" % widths)
        if base != at:
            self.problem("the superblock is at %d and says that it is at %d" % (at, base))
        self.end = end - base
        if self.end > len(self.data):
            self.problem("the file ends at %d, and the superblock says %d" % (len(self.data), self.end))
        if extension != UNDEFINED:
            for kind, _, _, body in self.header(extension)[0]:
                if kind == 19:
                    self.chunk_k, self.group_k, self.leaf_k = (int.from_bytes(body[i:i + 2], "little") for i in (1, 3, 5))
        self.root = root

    # ---- Object headers

    def header(self, addr):
        """([(type, flags, order, body)], flags of the header, version)."""
        what = "object header at %d" % addr
        if self.data[addr:addr + 4] == b"OHDR":
            return self.header2(addr, what)
        c = self.cursor(addr, 16, what)
        if c.u(1) != 1:
            raise Damage("no object header at %d" % addr)
        c.take(1)
        count, _, size = c.u(2), c.u(4), c.u(4)
        self.claim(addr, 16 + size, what)
        blocks, messages, seen = [(addr + 16, size)], [], {addr}
        while blocks:
            at, size = blocks.pop(0)
            c = self.cursor(at, size, what)
            while c.left() >= 8 and len(messages) < count:
                kind, length, flags = c.u(2), c.u(2), c.u(1)
                c.take(3)
                body = bytes(c.take(length))
                messages.append((kind, flags, None, body))
                if kind == 16:
                    at, size = struct.unpack("<QQ", body[:16])
                    if at in seen:
                        raise Damage("%s: continuations in a circle" % what)
                    seen.add(at)
                    self.claim(at, size, "continuation of " + what)
                    blocks.append((at, size))
        if len(messages) != count:
            self.problem("%s: %d messages, and it says %d" % (what, len(messages), count))
        return messages, 0, 1

    def header2(self, addr, what):
        c = self.cursor(addr, min(64, len(self.data) - addr), what)
        c.take(4)
        if c.u(1) != 2:
            raise Damage("%s: unknown version" % what)
        flags = c.u(1)
        if flags & 0x20:
            c.take(16)
        if flags & 0x10 and c.u(2) < c.u(2) - 1:
            self.problem("%s: thresholds of attributes that overlap" % what)
        chunk = c.u(1 << (flags & 3))
        whole = c.at + chunk + 4
        self.cursor(addr, whole, what)
        self.checksum(addr, whole, what)
        self.claim(addr, whole, what)
        if self.sectors and addr // 512 != (addr + whole - 1) // 512:
            self.problem("%s: %d bytes over the border of a sector" % (what, whole))
        blocks, messages, seen = [(addr + c.at, chunk)], [], {addr}
        while blocks:
            at, size = blocks.pop(0)
            c = self.cursor(at, size, what)
            head = 6 if flags & 4 else 4
            while c.left() >= head:
                kind, length, message = c.u(1), c.u(2), c.u(1)
                order = c.u(2) if flags & 4 else None
                body = bytes(c.take(length))
                messages.append((kind, message, order, body))
                if kind == 16:
                    at, size = struct.unpack("<QQ", body[:16])
                    if at in seen or size < 8:
                        raise Damage("%s: a continuation at %d of %d bytes" % (what, at, size))
                    seen.add(at)
                    if self.data[at:at + 4] != b"OCHK":
                        raise Damage("%s: no continuation at %d" % (what, at))
                    self.cursor(at, size, what)
                    self.checksum(at, size, "continuation of " + what)
                    self.claim(at, size, "continuation of " + what)
                    blocks.append((at + 4, size - 8))
            if any(c.take(c.left())):
                self.problem("%s: a gap that is not zero" % what)
        return messages, flags, 2

    def visit(self, addr, name):
        if addr in self.objects:
            return
        self.objects[addr] = o = Object(self, addr, name)
        try:
            o.read()
        except Damage as why:
            self.problem("%s: %s" % (name, why))
        except (struct.error, IndexError) as why:
            self.problem("%s: cannot be read: %s" % (name, why))

    # ---- Values that lie elsewhere

    def heap_object(self, addr, index):
        if addr not in self.collections:
            self.collections[addr] = parts.collection(self, addr)
        if index not in self.collections[addr]:
            raise Damage("no object %d in the global heap at %d" % (index, addr))
        return self.collections[addr][index]

    def values(self, t, data, owner, depth=0):
        """Follows what the elements in `data` refer to."""
        if depth > 16:
            raise Damage("sequences nested too deeply")
        for at in range(0, len(data) - t.size + 1, t.size):
            self.value(t, data[at:at + t.size], owner, depth)

    def value(self, t, data, owner, depth):
        if t.kind == parts.VLEN:
            n, addr, index = struct.unpack("<IQI", data)
            if addr == 0 or addr == UNDEFINED:
                if n:
                    self.problem("%s: a sequence of %d elements nowhere" % (owner, n))
                return
            if n == 0 and index == 0:
                return
            body = self.heap_object(addr, index)
            if len(body) != n * t.base.size and not (n == 0 and len(body) <= 1):
                self.problem("%s: %d elements of %d bytes in %d" % (owner, n, t.base.size, len(body)))
            if t.base.on_heap():
                self.values(t.base, body, owner, depth + 1)
        elif t.kind == parts.REFERENCE:
            if t.size == 8 and not t.region:
                self.references.append((owner, int.from_bytes(data, "little")))
        elif t.kind == parts.ARRAY:
            self.values(t.base, data, owner, depth)
        else:
            for _, offset, member in t.members:
                if member.on_heap():
                    self.value(member, data[offset:offset + member.size], owner, depth)

    # ---- The whole

    def walk(self):
        self.superblock()
        self.visit(self.root, "/")
        while self.queue:
            self.visit(*self.queue.pop(0))
        for o in list(self.objects.values()):
            if o.links_said is not None and o.links_said != self.links_to.get(o.addr, 0) + (o.addr == self.root):
                self.problem("%s: %d links lead to it, and it says %d" % (o.name, self.links_to.get(o.addr, 0), o.links_said))
        for owner, target in self.references:
            if target not in (0, UNDEFINED) and target not in self.objects:
                self.problem("%s: a reference to %d, where no object is" % (owner, target))
        self.scales()
        self.extents.sort()
        reach = (0, 0, "")
        self.lost = 0
        for e in self.extents:
            if e[1] > self.end:
                self.problem("%s at %d to %d, past the end of the file" % (e[2], e[0], e[1]))
            if e[0] < reach[1] and (self.followed or "chunk" not in e[2]):
                self.problem("%s at %d overlaps %s at %d" % (e[2], e[0], reach[2], reach[0]))
            self.lost += max(0, e[0] - reach[1])
            reach = max(reach, e, key=lambda x: x[1])
        self.lost += max(0, self.end - reach[1])

    def scales(self):
        """Whom dimension scales list is who names them, and the other way round."""
        named, listed = set(), set()
        for o in self.objects.values():
            a = o.attributes.get(b"DIMENSION_LIST")
            if a and a[0].kind == parts.VLEN and a[0].base.kind == parts.REFERENCE and not a[0].base.region:
                for axis in range(len(a[1]) // 16):
                    n, addr, index = struct.unpack("<IQI", a[1][axis * 16:axis * 16 + 16])
                    if not n:
                        continue
                    body = self.heap_object(addr, index)
                    for k in range(n):
                        named.add((struct.unpack_from("<Q", body, 8 * k)[0], o.addr, axis))
            a = o.attributes.get(b"REFERENCE_LIST")
            if a and a[0].kind == parts.COMPOUND and a[0].size >= 12 and not a[0].members[0][2].region:
                for at in range(0, len(a[1]), a[0].size):
                    listed.add((o.addr, *struct.unpack_from("<QI", a[1], at)))
        for scale, user, axis in sorted(named ^ listed):
            side = "names" if (scale, user, axis) in named else "is listed by"
            def name(x):
                return self.objects[x].name if x in self.objects else "nothing at %d" % x
            self.problem("%s, axis %d, %s the scale %s, but not the other way round" % (name(user), axis, side, name(scale)))


def check(path, options):
    with open(path, "rb") as handle:
        try:
            data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            data = b""
    f = File(Bytes(data, 0))
    f.sectors = options.sectors
    try:
        f.walk()
        if options.exact and f.end != len(f.data):
            f.problem("the file has %d bytes, and the superblock says %d" % (len(f.data), f.end))
    except Damage as why:
        f.problem(str(why))
    except (struct.error, IndexError, ZeroDivisionError, RecursionError) as why:
        f.problem("the file cannot be followed: %s: %s" % (type(why).__name__, why))
    return f


class Bytes:
    """The bytes of a file behind its user block."""

    def __init__(self, data, base):
        self.map, self.base = data, base

    def __len__(self):
        return len(self.map) - self.base

    def __getitem__(self, key):
        start, stop, _ = key.indices(len(self))
        if key.stop is None:
            return Bytes(self.map, self.base + start)
        return self.map[self.base + start:self.base + stop]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--exact", action="store_true")
    p.add_argument("--sectors", action="store_true")
    p.add_argument("--leaks", action="store_true")
    p.add_argument("files", nargs="+")
    options = p.parse_args()
    sys.setrecursionlimit(10000)
    failed = 0
    for path in options.files:
        f = check(path, options)
        failed += bool(f.problems)
        for text in f.problems[:20]:
            print("FAIL %s: %s" % (path, text))
        if len(f.problems) > 20:
            print("FAIL %s: %d more" % (path, len(f.problems) - 20))
        if options.leaks and not f.problems:
            print("ok   %s: %d of %d bytes belong to nothing" % (path, f.lost, f.end))
    print("%d of %d files are wrong" % (failed, len(options.files)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
