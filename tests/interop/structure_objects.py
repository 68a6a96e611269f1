# SPDX-License-Identifier: MIT OR Apache-2.0
"""The objects of an HDF5 file for structure.py: groups, datasets and committed types, their messages,
attributes, links and data."""
import struct
import zlib

import structure_parts as parts
from structure_parts import UNDEFINED, Cursor, Damage

NAMES = {0: "nil", 1: "dataspace", 2: "link info", 3: "datatype", 4: "old fill", 5: "fill", 6: "link", 7: "external",
         8: "layout", 10: "group info", 11: "filters", 12: "attribute", 16: "continuation", 17: "symbol table",
         21: "attribute info", 22: "reference count"}
NOWHERE = object()      # no dataspace message; a null dataspace is None
ELEMENTS = 1 << 22      # of one array, whose references are followed


class Object:
    def __init__(self, f, addr, name):
        self.f, self.addr, self.name = f, addr, name
        self.attributes, self.links_said = {}, None

    def read(self):
        f = self.f
        self.messages, flags, version = f.header(self.addr)
        self.type = self.layout = None
        self.space = NOWHERE
        self.filters, self.fill, self.external = [], None, False
        orders, counted = [], {}
        attribute_info = link_info = None
        links = []
        if version == 2:
            self.links_said = 1
        for kind, message, order, body in self.messages:
            c = Cursor(body, 0, NAMES.get(kind, "message %d" % kind))
            counted[kind] = counted.get(kind, 0) + 1
            if message & 2 and kind not in (1, 3, 4, 5, 11, 12):
                f.problem("%s: a shared message of type %d" % (self.name, kind))
            if message & 2 and kind != 3:
                f.followed = False
                continue
            if kind == 1:
                self.space = dataspace(c)
            elif kind == 2:
                link_info = self.index_info(c, 8)
            elif kind == 3:
                self.type = self.shared_type(c) if message & 2 else parts.datatype(c)
            elif kind == 5:
                self.fill = fill_value(c)
            elif kind == 6:
                links.append(link(c))
            elif kind == 7:
                self.external = True
            elif kind == 8:
                self.layout = body
            elif kind == 11:
                self.filters = filters(c)
            elif kind == 12:
                self.attribute(c)
                orders.append(order)
            elif kind == 17:
                self.symbol_table(c.u(8), c.u(8))
            elif kind == 21:
                attribute_info = self.index_info(c, 2)
            elif kind == 22:
                c.take(1)
                self.links_said = c.u(4)
        for kind in (1, 2, 3, 5, 8, 10, 11, 17, 21, 22):
            if counted.get(kind, 0) > 1:
                f.problem("%s: %d messages %s" % (self.name, counted[kind], NAMES[kind]))
        if attribute_info:
            if attribute_info[2] != UNDEFINED and orders:
                f.problem("%s: attributes in the header and in a heap" % self.name)
            orders += self.dense(attribute_info, "attributes", 8, 9)
        self.ordered(orders, attribute_info, bool(flags & 4), "attributes")
        if link_info:
            tracked = [order for _, _, order in links]
            if link_info[2] != UNDEFINED and links:
                f.problem("%s: links in the header and in a heap" % self.name)
            tracked += self.dense(link_info, "links", 5, 6, links)
            self.ordered(tracked, link_info, bool(link_info[0] & 1), "links")
        self.follow(links)
        if self.layout is not None:
            self.raw_data()

    def index_info(self, c, width):
        """(flags, next order, heap, names, orders) of a Link Info or Attribute Info message."""
        if c.u(1) != 0:
            raise Damage("%s of an unknown version" % c.what)
        flags = c.u(1)
        most = c.u(width) if flags & 1 else None
        heap, names = c.u(8), c.u(8)
        return flags, most, heap, names, c.u(8) if flags & 2 else UNDEFINED

    def ordered(self, orders, info, tracked, what):
        if not tracked:
            return
        if len(set(orders)) != len(orders):
            self.f.problem("%s: two %s of one creation order: %s" % (self.name, what, sorted(orders)))
        if info and info[0] & 1 and orders and None not in orders and max(orders) >= info[1]:
            self.f.problem("%s: %s of creation order %d, and the next is %d" % (self.name, what, max(orders), info[1]))

    def dense(self, info, what, by_name, by_order, links=None):
        """Attributes or links in a heap; their orders."""
        flags, _, heap_at, names_at, orders_at = info
        f, what = self.f, "%s of %s" % (what, self.name)
        if heap_at == UNDEFINED:
            if names_at != UNDEFINED or orders_at != UNDEFINED:
                f.problem("%s: an index without a heap" % what)
            return []
        heap = parts.FractalHeap(f, heap_at, what)
        kind, records = parts.btree2(f, names_at, "names, " + what)
        if kind != by_name:
            raise Damage("%s: an index of type %d" % (what, kind))
        hashes, orders, ids = [], [], {}
        for r in records:
            if by_name == 5:
                hashed, identifier, shared = int.from_bytes(r[:4], "little"), r[4:], False
                found = link(Cursor(bytes(heap.object(identifier)), 0, what))
                links.append(found)
                name, order = found[0], found[2]
            else:
                identifier, shared = r[:8], bool(r[8] & 2)
                order, hashed = struct.unpack("<II", r[9:17])
                if shared:
                    f.followed = False
                    continue
                name = self.attribute(Cursor(bytes(heap.object(identifier)), 0, what))
            hashes.append((hashed, name))
            orders.append(order)
            ids[order] = identifier
            if parts.lookup3(name) != hashed:
                f.problem("%s: the hash of %r is wrong" % (what, name))
        if hashes != sorted(hashes):
            f.problem("%s: the index of names is not in order" % what)
        heap.finish()
        if bool(flags & 2) != (orders_at != UNDEFINED):
            f.problem("%s: the index of orders is not as the flags say" % what)
        if orders_at != UNDEFINED:
            kind, records = parts.btree2(f, orders_at, "orders, " + what)
            if kind != by_order:
                raise Damage("%s: an index of type %d" % (what, kind))
            if by_order == 6:
                second = [(int.from_bytes(r[:8], "little"), r[8:]) for r in records]
            else:
                second = [(int.from_bytes(r[9:13], "little"), r[:8]) for r in records]
            if second != sorted(ids.items()):
                f.problem("%s: the two indexes do not agree" % what)
        return orders

    def follow(self, links):
        if len({name for name, _, _ in links}) != len(links):
            self.f.problem("%s: two links of one name" % self.name)
        for name, target, _ in links:
            if target is not None:
                self.f.links_to[target] = self.f.links_to.get(target, 0) + 1
                path = self.name.rstrip("/") + "/" + name.decode(errors="backslashreplace")
                self.f.queue.append((target, path))

    def symbol_table(self, tree, heap):
        """Links of an old group."""
        f = self.f
        c = f.cursor(heap, 32, "local heap")
        if c.take(4) != b"HEAP":
            raise Damage("no local heap at %d" % heap)
        c.take(4)
        size, _, data = c.u(8), c.u(8), c.u(8)
        f.claim(heap, 32, "local heap")
        f.claim(data, size, "names")
        names, links = f.cursor(data, size, "names").data, []

        def node(at, depth):
            c = f.cursor(at, 24 + (4 * f.group_k + 1) * 8, "group node")
            if depth > 32 or c.take(4) != b"TREE" or c.u(1) != 0:
                raise Damage("no node of a group at %d" % at)
            level, n = c.u(1), c.u(2)
            c.take(16)
            f.claim(at, len(c.data), "group node")
            for _ in range(n):
                c.take(8)
                child = c.u(8)
                if level:
                    node(child, depth + 1)
                    continue
                s = f.cursor(child, 8 + 2 * f.leaf_k * 40, "symbol node")
                if s.take(4) != b"SNOD":
                    raise Damage("no symbol node at %d" % child)
                f.claim(child, len(s.data), "symbol node")
                s.take(2)
                for _ in range(s.u(2)):
                    name, target, cached = s.u(8), s.u(8), s.u(4)
                    s.take(20)
                    links.append((bytes(Cursor(names, name, "names").name()), target if cached != 2 else None, None))
        node(tree, 0)
        if [n for n, _, _ in links] != sorted(n for n, _, _ in links):
            f.problem("%s: names of an old group are not in order" % self.name)
        self.follow(links)

    def shared_type(self, c):
        """A committed datatype, by the address of its header."""
        version, kind = c.u(1), c.u(1)
        if version == 1:
            c.take(14)
        elif version == 3 and kind == 1:
            self.f.followed = False
            raise Damage("a datatype in the heap of shared messages")
        addr = c.u(8)
        # Who uses a committed type counts as a link to it.
        self.f.links_to[addr] = self.f.links_to.get(addr, 0) + 1
        own = len(self.f.extents)
        for kind, flags, _, body in self.f.header(addr)[0]:
            if kind == 3 and not flags & 2:
                del self.f.extents[own:]
                return parts.datatype(Cursor(body, 0, "committed datatype"))
        raise Damage("no datatype at %d" % addr)

    def attribute(self, c):
        version, flags = c.u(1), c.u(1)
        name_size, type_size, space_size = c.u(2), c.u(2), c.u(2)
        if version == 3:
            c.take(1)
        pad = 8 if version == 1 else 1
        raw = bytes(c.take(name_size + (-name_size % pad)))[:name_size]
        name = raw[:-1]
        if not name or raw[-1:] != b"\0" or b"\0" in name and version == 3:
            raise Damage("an attribute named %r" % raw)
        t = Cursor(c.take(type_size + (-type_size % pad)), 0, "type of attribute %r" % name)
        t = self.shared_type(t) if flags & 1 and version > 1 else parts.datatype(t)
        if flags & 2 and version > 1:
            raise Damage("attribute %r has a shared dataspace" % name)
        space = dataspace(Cursor(c.take(space_size + (-space_size % pad)), 0, "space of attribute %r" % name))
        data = bytes(c.take(elements(space) * t.size))
        if name in self.attributes:
            self.f.problem("%s: two attributes %r" % (self.name, name))
        self.attributes[name] = (t, data, space)
        if t.on_heap():
            self.f.values(t, data, "%s@%s" % (self.name, name.decode(errors="backslashreplace")))
        return name

    # ---- Raw data

    def raw_data(self):
        f, what = self.f, "data of " + self.name
        if self.space is NOWHERE or self.type is None:
            raise Damage("a dataset without dataspace or datatype")
        if self.fill and len(self.fill) != self.type.size:
            f.problem("%s: a fill value of %d bytes for elements of %d" % (self.name, len(self.fill), self.type.size))
        if self.fill and self.type.on_heap():
            f.values(self.type, self.fill, "fill value of " + self.name)
        c = Cursor(self.layout, 0, "layout")
        version, n = c.u(1), elements(self.space)
        if version < 3:
            rank, kind = c.u(1), c.u(1)
            c.take(5)
            addr = c.u(8) if kind else None
            dims = [c.u(4) for _ in range(rank)]
            size = n * self.type.size if kind == 1 else c.u(4) if kind == 0 else None
        elif version == 3:
            kind = c.u(1)
            rank = c.u(1) if kind == 2 else 0
            addr = c.u(8) if kind else None
            dims = [c.u(4) for _ in range(rank)]
            size = c.u(2) if kind == 0 else c.u(8) if kind == 1 else None
        else:
            kind = c.u(1)
            if kind > 1:
                f.followed = False
                return
            addr = c.u(8) if kind else None
            size = c.u(2) if kind == 0 else c.u(8)
        if kind == 0:
            if size != n * self.type.size:
                f.problem("%s: %d bytes for %d elements of %d" % (what, size, n, self.type.size))
            self.inspect(c.take(size), n)
        elif kind == 1:
            if size < n * self.type.size and not self.external:
                f.problem("%s: %d bytes for %d elements of %d" % (what, size, n, self.type.size))
            if addr != UNDEFINED and not self.external:
                f.claim(addr, size, what)
                if addr + size <= len(f.data):
                    self.inspect(f.data[addr:addr + n * self.type.size], n)
        elif addr != UNDEFINED:
            self.chunked(addr, dims, what)

    def inspect(self, data, n):
        if self.type.on_heap() and n <= ELEMENTS:
            self.f.values(self.type, bytes(data), self.name)

    def chunked(self, root, dims, what):
        f, shape = self.f, self.space
        if len(dims) != len(shape) + 1 or 0 in dims or dims[-1] != self.type.size:
            raise Damage("chunks of %s for elements of %d bytes in an array of %s" % (dims, self.type.size, shape))
        rank, whole = len(shape), 1
        for d in dims:
            whole *= d
        width, keys = 8 + 8 * (rank + 1), []

        def node(at, expected_level, low, siblings):
            c = f.cursor(at, 24 + (2 * f.chunk_k + 1) * width + 2 * f.chunk_k * 8, "chunk node")
            if c.take(4) != b"TREE" or c.u(1) != 1:
                raise Damage("no node of chunks at %d" % at)
            level, n = c.u(1), c.u(2)
            if expected_level is not None and level != expected_level:
                raise Damage("a chunk node of level %d below one of %d" % (level, expected_level + 1))
            siblings.append((at, c.u(8), c.u(8)))
            if n > 2 * f.chunk_k:
                raise Damage("a chunk node of %d children" % n)
            f.claim(at, len(c.data), "chunk node")
            below = []
            for i in range(n + 1):
                size, mask = c.u(4), c.u(4)
                key = tuple(c.u(8) for _ in range(rank + 1))
                if low is not None and i == 0 and key[:rank] < low:
                    f.problem("%s: a chunk node that begins before its parent says" % what)
                if i == n:
                    if keys and key <= keys[-1][0] + (keys[-1][4],) and n:
                        f.problem("%s: the last key of a node is %s, its last chunk %s" % (what, key, keys[-1][0]))
                    break
                child = c.u(8)
                if level:
                    node(child, level - 1, key[:rank], below)
                else:
                    keys.append((key[:rank], size, mask, child, key[rank]))
            self.chain(below, what)
        tops = []
        node(root, None, None, tops)
        self.chain(tops, what)
        if [k[0] for k in keys] != sorted({k[0] for k in keys}):
            f.problem("%s: chunks are not in order" % what)
        heap = self.type.on_heap()
        for offset, size, mask, at, last in keys:
            where = "chunk %s of %s" % (list(offset), self.name)
            if last != 0 or any(o % d for o, d in zip(offset, dims)) or any(o >= s for o, s in zip(offset, shape)):
                f.problem("%s: not a chunk of %s in an array of %s" % (where, dims[:-1], shape))
            if not self.filters and size != whole:
                f.problem("%s: %d bytes, and chunks have %d" % (where, size, whole))
            f.claim(at, size, where)
            if at + size > len(f.data) or size == 0:
                f.problem("%s: %d bytes at %d" % (where, size, at))
                continue
            try:
                raw = undo(self.filters, mask, f.data[at:at + size], whole)
            except (zlib.error, Damage) as why:
                f.problem("%s: %s" % (where, why))
                continue
            if raw is None:
                continue
            if len(raw) != whole:
                f.problem("%s: %d bytes after its filters, and chunks have %d" % (where, len(raw), whole))
            elif heap:
                self.inspect(raw, len(raw) // self.type.size)

    def chain(self, siblings, what):
        for i, (at, left, right) in enumerate(siblings):
            want = (siblings[i - 1][0] if i else UNDEFINED, siblings[i + 1][0] if i + 1 < len(siblings) else UNDEFINED)
            # At the ends of a row below different parents, neighbours are cousins.
            if i and left != want[0] or i + 1 < len(siblings) and right != want[1]:
                self.f.problem("%s: the node at %d has other neighbours than it says" % (what, at))


# ---- Messages

def dataspace(c):
    """The shape, () of a scalar, None of a null space."""
    version, rank, flags = c.u(1), c.u(1), c.u(1)
    if version == 1:
        c.take(5)
        kind = 1 if rank else 0
    elif version == 2:
        kind = c.u(1)
    else:
        raise Damage("dataspace of version %d" % version)
    shape = tuple(c.u(8) for _ in range(rank))
    if flags & 1:
        most = [c.u(8) for _ in range(rank)]
        if any(m < s for m, s in zip(most, shape)):
            raise Damage("an array of %s with at most %s" % (shape, most))
    return None if kind == 2 else shape


def elements(space):
    if space is None:
        return 0
    n = 1
    for s in space:
        n *= s
    return n


def fill_value(c):
    version = c.u(1)
    if version == 3:
        flags = c.u(1)
        return bytes(c.take(c.u(4))) if flags & 0x20 else None
    c.take(2)
    defined = c.u(1)
    if version == 2 and not defined:
        return None
    n = c.u(4)
    return bytes(c.take(n)) or None


def link(c):
    """(name, address or None, creation order or None)."""
    if c.u(1) != 1:
        raise Damage("link of an unknown version")
    flags = c.u(1)
    kind = c.u(1) if flags & 8 else 0
    order = c.u(8) if flags & 4 else None
    if flags & 16:
        c.take(1)
    name = bytes(c.take(c.u(1 << (flags & 3))))
    if not name or b"/" in name:
        raise Damage("a link named %r" % name)
    return name, c.u(8) if kind == 0 else None, order


def filters(c):
    """[(id, values)] in the order of writing."""
    version, n = c.u(1), c.u(1)
    if version == 1:
        c.take(6)
    found = []
    for _ in range(n):
        identifier = c.u(2)
        length = c.u(2) if version == 1 or identifier >= 256 else 0
        c.take(2)
        values = c.u(2)
        c.take(length)
        found.append((identifier, [c.u(4) for _ in range(values)]))
        if version == 1 and values % 2:
            c.take(4)
    return found


def fletcher32(data):
    one = two = 0
    words = struct.unpack(">%dH" % (len(data) // 2), data[:len(data) // 2 * 2])
    for w in words + ((data[-1] << 8,) if len(data) % 2 else ()):
        one = (one + w) % 65535
        two = (two + one) % 65535
    # 0 and 65535 are one number here; the other programs' choice depends on where they fold.
    return one, two


def undo(pipeline, mask, data, whole):
    """A chunk without its filters; None where one of them is not known here."""
    for i, (identifier, values) in reversed(list(enumerate(pipeline))):
        if mask >> i & 1:
            continue
        if identifier == 1:
            inflate = zlib.decompressobj()
            data = inflate.decompress(bytes(data), whole + 64)
            if not inflate.eof:
                raise Damage("a deflated chunk goes on after its %d bytes" % whole)
        elif identifier == 2:
            size = values[0]
            n = len(data) // size
            tail = data[n * size:]
            out = bytearray(n * size)
            for k in range(size):
                out[k::size] = data[k * n:(k + 1) * n]
            data = bytes(out) + bytes(tail)
        elif identifier == 3:
            data, stored = bytes(data[:-4]), int.from_bytes(data[-4:], "little")
            if len(data) <= 1 << 20:
                one, two = fletcher32(data)
                if ((stored & 0xFFFF) % 65535, (stored >> 16) % 65535) != (one, two):
                    raise Damage("the checksum of the filter is wrong")
        else:
            return None
    return data
