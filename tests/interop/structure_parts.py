# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pieces of HDF5 that structure.py puts together: checksums, B-trees of version 2, fractal and
global heaps, datatypes. Written from the file format specification, against bytes."""
import struct

UNDEFINED = 0xFFFFFFFFFFFFFFFF
M32 = 0xFFFFFFFF


class Damage(Exception):
    """Something that cannot be read any further."""


def lookup3(data):
    """The checksum of all HDF5 metadata, and the hash of names."""
    n = len(data)
    a = b = c = (0xDEADBEEF + n) & M32
    if n == 0:
        return c
    padded = bytes(data) + b"\0" * (-n % 12)
    words = struct.unpack("<%dI" % (len(padded) // 4), padded)
    last = len(words) - 3
    for i in range(0, last, 3):
        a, b, c = (a + words[i]) & M32, (b + words[i + 1]) & M32, (c + words[i + 2]) & M32
        a = (a - c) & M32 ^ (c << 4 & M32 | c >> 28)
        c = (c + b) & M32
        b = (b - a) & M32 ^ (a << 6 & M32 | a >> 26)
        a = (a + c) & M32
        c = (c - b) & M32 ^ (b << 8 & M32 | b >> 24)
        b = (b + a) & M32
        a = (a - c) & M32 ^ (c << 16 & M32 | c >> 16)
        c = (c + b) & M32
        b = (b - a) & M32 ^ (a << 19 & M32 | a >> 13)
        a = (a + c) & M32
        c = (c - b) & M32 ^ (b << 4 & M32 | b >> 28)
        b = (b + a) & M32
    a, b, c = (a + words[last]) & M32, (b + words[last + 1]) & M32, (c + words[last + 2]) & M32
    c = ((c ^ b) - (b << 14 & M32 | b >> 18)) & M32
    a = ((a ^ c) - (c << 11 & M32 | c >> 21)) & M32
    b = ((b ^ a) - (a << 25 & M32 | a >> 7)) & M32
    c = ((c ^ b) - (b << 16 & M32 | b >> 16)) & M32
    a = ((a ^ c) - (c << 4 & M32 | c >> 28)) & M32
    b = ((b ^ a) - (a << 14 & M32 | a >> 18)) & M32
    return ((c ^ b) - (b << 24 & M32 | b >> 8)) & M32


class Cursor:
    """Reads forward within some bytes and nothing beside them."""

    def __init__(self, data, at=0, what="data"):
        self.data, self.at, self.what = data, at, what

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise Damage("%s: needs %d bytes at %d of %d" % (self.what, n, self.at, len(self.data)))
        self.at += n
        return self.data[self.at - n:self.at]

    def u(self, n):
        return int.from_bytes(self.take(n), "little")

    def left(self):
        return len(self.data) - self.at

    def name(self):
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise Damage("%s: a name without an end" % self.what)
        found = self.data[self.at:end]
        self.at = end + 1
        return bytes(found)


def width_of(n):
    """How many bytes hold numbers up to n."""
    return max(1, (n.bit_length() + 7) // 8)


# ---- Datatypes

FIXED, FLOAT, TIME, STRING, BITS, OPAQUE, COMPOUND, REFERENCE, ENUM, VLEN, ARRAY, COMPLEX = range(12)


class Type:
    """kind, size; `base` of enum, vlen and array; `members` [(name, offset, Type)]; `n` of an array."""

    def __init__(self, kind, size):
        self.kind, self.size = kind, size
        self.base, self.members, self.n, self.text, self.region = None, [], 1, False, False

    def on_heap(self):
        """Whether values refer to something outside."""
        if self.kind in (VLEN, REFERENCE):
            return True
        if self.kind == ARRAY:
            return self.base.on_heap()
        return any(t.on_heap() for _, _, t in self.members)


def datatype(c, depth=0):
    """The datatype at the cursor."""
    if depth > 32:
        raise Damage("datatypes nested too deeply")
    first, bits = c.u(1), c.u(3)
    size = c.u(4)
    kind, version = first & 15, first >> 4
    if version not in (1, 2, 3, 4, 5):
        raise Damage("datatype of version %d" % version)
    t = Type(kind, size)
    if size == 0 and kind not in (STRING, VLEN):
        raise Damage("datatype of class %d and size 0" % kind)
    if kind in (FIXED, BITS):
        offset, precision = c.u(2), c.u(2)
        if precision == 0 or offset + precision > 8 * size:
            raise Damage("integer of %d bits at %d in %d bytes" % (precision, offset, size))
    elif kind == FLOAT:
        c.take(12)
    elif kind == TIME:
        c.take(2)
    elif kind == OPAQUE:
        c.take((bits & 255) + (-(bits & 255) % 8))
    elif kind == COMPOUND:
        for _ in range(bits & 0xFFFF):
            name = c.name()
            if version < 3:
                c.take(-(len(name) + 1) % 8)
            offset = c.u(4) if version < 3 else c.u(width_of(size))
            n = 1
            if version == 1:
                rank = c.u(1)
                c.take(11)
                for k, length in enumerate([c.u(4) for _ in range(4)]):
                    n *= length if k < rank else 1
            member = datatype(c, depth + 1)
            if offset + n * member.size > size:
                raise Damage("member %r reaches past its compound" % name)
            if n > 1:
                array = Type(ARRAY, n * member.size)
                array.base, array.n, member = member, n, array
            t.members.append((name, offset, member))
        spans = sorted((o, o + m.size) for _, o, m in t.members)
        if any(a[1] > b[0] for a, b in zip(spans, spans[1:])):
            raise Damage("members of a compound overlap")
        if len({m[0] for m in t.members}) != len(t.members):
            raise Damage("two members of a compound have one name")
    elif kind == REFERENCE:
        t.region = version < 4 and bits & 15 != 0 or version >= 4
    elif kind == ENUM:
        n = bits & 0xFFFF
        t.base = datatype(c, depth + 1)
        names = []
        for _ in range(n):
            names.append(c.name())
            if version < 3:
                c.take(-(len(names[-1]) + 1) % 8)
        c.take(n * t.base.size)
        if len(set(names)) != n:
            raise Damage("two members of an enum have one name")
    elif kind == VLEN:
        t.text = bits & 15 == 1
        t.base = datatype(c, depth + 1)
    elif kind == ARRAY:
        rank = c.u(1)
        if version < 3:
            c.take(3)
        for length in [c.u(4) for _ in range(rank)]:
            t.n *= length
        if version < 3:
            c.take(4 * rank)
        t.base = datatype(c, depth + 1)
        if t.n * t.base.size != size:
            raise Damage("array of %d elements of %d bytes in %d" % (t.n, t.base.size, size))
    elif kind == COMPLEX:
        t.base = datatype(c, depth + 1)
    elif kind != STRING:
        raise Damage("datatype of class %d" % kind)
    return t


# ---- B-trees of version 2

def btree2(f, addr, what):
    """All records, in order."""
    c = f.cursor(addr, 38, "B-tree header of " + what)
    if c.take(4) != b"BTHD" or c.u(1) != 0:
        raise Damage("%s: no B-tree at %d" % (what, addr))
    kind, node, record, depth = c.u(1), c.u(4), c.u(2), c.u(2)
    c.take(2)
    root, nroot, total = c.u(8), c.u(2), c.u(8)
    f.checksum(addr, 38, "B-tree header of " + what)
    f.claim(addr, 38, "B-tree header of " + what)
    if record == 0 or node < 10 + record:
        raise Damage("%s: B-tree of nodes of %d and records of %d bytes" % (what, node, record))
    most = [(node - 10) // record]
    cumulative, width0 = list(most), width_of(most[0])
    for level in range(1, depth + 1):
        pointer = 8 + width0 + (width_of(cumulative[level - 1]) if level > 1 else 0)
        most.append((node - 10 - pointer) // (record + pointer))
        cumulative.append((most[level] + 1) * cumulative[level - 1] + most[level])
    records = []

    def visit(at, n, level, expected):
        before = len(records)
        c = f.cursor(at, node, "B-tree node of " + what)
        if c.take(4) != (b"BTIN" if level else b"BTLF") or c.u(1) != 0 or c.u(1) != kind:
            raise Damage("%s: no B-tree node at %d" % (what, at))
        if n > most[level] or (n == 0 and total):
            raise Damage("%s: %d records in a B-tree node of %d" % (what, n, most[level]))
        own = [bytes(c.take(record)) for _ in range(n)]
        children = []
        for _ in range(n + 1 if level else 0):
            child, m = c.u(8), c.u(width0)
            children.append((child, m, c.u(width_of(cumulative[level - 1])) if level > 1 else m))
        f.checksum(at, c.at + 4, "B-tree node of " + what)
        f.claim(at, node, "B-tree node of " + what)
        for i in range(n):
            if level:
                visit(children[i][0], children[i][1], level - 1, children[i][2])
            records.append(own[i])
        if level:
            visit(children[n][0], children[n][1], level - 1, children[n][2])
        if len(records) - before != expected:
            f.problem("%s: a B-tree node says %d records, and there are %d" % (what, expected, len(records) - before))

    if root != UNDEFINED:
        visit(root, nroot, depth, total)
    if len(records) != total:
        f.problem("%s: the B-tree says %d records, and there are %d" % (what, total, len(records)))
    return kind, records


# ---- Fractal heaps

class FractalHeap:
    def __init__(self, f, addr, what):
        self.f, self.what, self.blocks, self.taken = f, what, [], []
        c = f.cursor(addr, 146, "heap of " + what)
        if c.take(4) != b"FRHP" or c.u(1) != 0:
            raise Damage("%s: no fractal heap at %d" % (what, addr))
        self.addr, self.id_len, filtered, flags = addr, c.u(2), c.u(2), c.u(1)
        if filtered:
            raise Damage("%s: a heap with filters is not followed" % what)
        self.max_managed, _, huge = c.u(4), c.u(8), c.u(8)
        free, manager, space, allocated, _, self.n_managed = (c.u(8) for _ in range(6))
        self.huge_size, self.n_huge, _, self.n_tiny = (c.u(8) for _ in range(4))
        self.width, self.start, self.max_direct, self.bits, _ = c.u(2), c.u(8), c.u(8), c.u(2), c.u(2)
        root, rows = c.u(8), c.u(2)
        f.checksum(addr, 146, "heap of " + what)
        f.claim(addr, 146, "heap of " + what)
        self.checked = bool(flags & 2)
        self.offset_width = (self.bits + 7) // 8
        self.length_width = width_of(min(self.max_direct, self.max_managed))
        self.direct_rows = (self.max_direct // self.start).bit_length() + 1
        if root != UNDEFINED:
            if rows:
                self.indirect(root, rows, 0, 0)
            else:
                self.direct(root, 0, self.start)
        if sum(size for _, size, _ in self.blocks) != allocated:
            f.problem("%s: the heap says %d bytes of blocks, and there are %d"
                      % (what, allocated, sum(size for _, size, _ in self.blocks)))
        if free > space:
            f.problem("%s: more free space than space in a heap" % what)
        if manager != UNDEFINED:
            free_space(f, manager, what)
        self.huge = {}
        if huge != UNDEFINED:
            kind, records = btree2(f, huge, "huge objects of " + what)
            for r in records:
                at, length, key = struct.unpack("<QQQ", r) if kind == 1 else struct.unpack("<QQ", r) + (None,)
                f.claim(at, length, "huge object of " + what)
                self.huge[key] = (at, length)

    def block_size(self, row):
        return self.start << max(0, row - 1)

    def direct(self, at, offset, size):
        c = self.f.cursor(at, size, "heap block of " + self.what)
        if c.take(4) != b"FHDB" or c.u(1) != 0 or c.u(8) != self.addr or c.u(self.offset_width) != offset:
            raise Damage("%s: no direct block of its heap at %d" % (self.what, at))
        header = c.at + (4 if self.checked else 0)
        if self.checked:
            stored = c.u(4)
            data = bytearray(self.f.data[at:at + size])
            data[c.at - 4:c.at] = b"\0\0\0\0"
            if lookup3(data) != stored:
                self.f.problem("%s: checksum of the heap block at %d" % (self.what, at))
        self.f.claim(at, size, "heap block of " + self.what)
        self.blocks.append((offset, size, at))
        self.taken.append((offset, offset + header, "block header"))

    def indirect(self, at, rows, offset, depth):
        if depth > 16:
            raise Damage("%s: heap blocks nested too deeply" % self.what)
        direct = min(rows, self.direct_rows) * self.width
        size = 13 + self.offset_width + 8 * rows * self.width + 4
        c = self.f.cursor(at, size, "heap table of " + self.what)
        if c.take(4) != b"FHIB" or c.u(1) != 0 or c.u(8) != self.addr or c.u(self.offset_width) != offset:
            raise Damage("%s: no indirect block of its heap at %d" % (self.what, at))
        self.f.checksum(at, size, "heap table of " + self.what)
        self.f.claim(at, size, "heap table of " + self.what)
        for i in range(rows * self.width):
            child, block = c.u(8), self.block_size(i // self.width)
            if child != UNDEFINED:
                if i < direct:
                    self.direct(child, offset, block)
                else:
                    below = (block // (self.start * self.width)).bit_length()
                    self.indirect(child, below, offset, depth + 1)
            offset += block

    def object(self, identifier):
        """The bytes that a heap id stands for."""
        first = identifier[0]
        if first >> 6:
            raise Damage("%s: a heap id of version %d" % (self.what, first >> 6))
        kind = first >> 4 & 3
        if kind == 2:
            n = (first & 15) + 1
            return identifier[1:1 + n]
        if kind == 1:
            key = int.from_bytes(identifier[1:9], "little") if self.id_len < 17 else None
            if key is None:
                at, length = struct.unpack("<QQ", identifier[1:17])
            elif key in self.huge:
                at, length = self.huge[key]
            else:
                raise Damage("%s: no huge object %d" % (self.what, key))
            return self.f.data[at:at + length]
        offset = int.from_bytes(identifier[1:1 + self.offset_width], "little")
        start = 1 + self.offset_width
        length = int.from_bytes(identifier[start:start + self.length_width], "little")
        for begin, size, at in self.blocks:
            if begin <= offset and offset + length <= begin + size:
                self.taken.append((offset, offset + length, "object"))
                return self.f.data[at + offset - begin:at + offset - begin + length]
        raise Damage("%s: a heap object at %d, outside of all blocks" % (self.what, offset))

    def finish(self):
        """After each object was asked for once: none overlaps, none is missing."""
        spans = sorted(self.taken)
        for a, b in zip(spans, spans[1:]):
            if a[1] > b[0]:
                self.f.problem("%s: objects overlap in a heap at %d" % (self.what, b[0]))
        objects = sum(kind == "object" for _, _, kind in spans)
        if objects != self.n_managed:
            self.f.problem("%s: the heap says %d objects, and there are %d" % (self.what, self.n_managed, objects))
        if len(self.huge) != self.n_huge or sum(n for _, n in self.huge.values()) != self.huge_size:
            self.f.problem("%s: the heap says %d huge objects, and there are %d" % (self.what, self.n_huge, len(self.huge)))


def free_space(f, addr, what):
    """A free-space manager: its header and its sections' place."""
    what = "free space of " + what
    c = f.cursor(addr, 82, what)
    if c.take(4) != b"FSHD" or c.u(1) != 0:
        raise Damage("%s: no header at %d" % (what, addr))
    c.take(1 + 4 * 8 + 8)
    c.take(8)
    sections, used, allocated = c.u(8), c.u(8), c.u(8)
    f.checksum(addr, 82, what)
    f.claim(addr, 82, what)
    if sections != UNDEFINED:
        if f.data[sections:sections + 4] != b"FSSE" or used > allocated:
            raise Damage("%s: no sections at %d" % (what, sections))
        f.checksum(sections, used, what)
        f.claim(sections, allocated, what)


# ---- Global heaps

def collection(f, addr):
    """{index: bytes} of a global heap collection."""
    c = f.cursor(addr, 16, "global heap")
    if c.take(4) != b"GCOL" or c.u(1) != 1:
        raise Damage("no global heap collection at %d" % addr)
    c.take(3)
    size = c.u(8)
    if size < 4096:
        raise Damage("a global heap collection of %d bytes at %d" % (size, addr))
    f.claim(addr, size, "global heap")
    c, found = f.cursor(addr, size, "global heap at %d" % addr), {}
    c.take(16)
    while c.left() >= 16:
        index = c.u(2)
        c.take(6)
        length = c.u(8)
        if index == 0:
            if length - 16 > c.left() or length < 16:
                f.problem("global heap at %d: free space of %d bytes, %d left" % (addr, length, c.left() + 16))
            elif length - 16 != c.left():
                f.problem("global heap at %d: something after its free space" % addr)
            break
        if index in found:
            f.problem("global heap at %d: object %d is there twice" % (addr, index))
        found[index] = bytes(c.take(length))
        c.take(min(-length % 8, c.left()))
    return found
