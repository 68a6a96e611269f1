# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random datasets of DAP2 as saved responses: every type, shared and unnamed dimensions, grids that fit and that do not, structures with
dimensions, sequences in sequences, attributes of variables, of fields, and of what is not there.

    paths = write(folder, seed)     # folder/rSEED.dds, .das, .dods; the path without its ending
"""
import random
import struct

TYPES = ["Byte", "Int16", "UInt16", "Int32", "UInt32", "Float32", "Float64", "String", "Url"]
TEXTS = ("String", "Url")
SHARED = [("x", 2), ("y", 3), ("t", 2), ("z", 4), ("x", 5)]
NUMBERS = {"Int16": (">i", -(2**15), 2**15), "UInt16": (">I", 0, 2**16), "Int32": (">i", -(2**31), 2**31), "UInt32": (">I", 0, 2**32)}
INDENT = "    "


def filled(data):
    return data + bytes(-len(data) % 4)


def size(dims):
    n = 1
    for _, length in dims:
        n *= length
    return n


class Made:
    """A node is (kind, type, name, dimensions, fields)."""

    def __init__(self, seed):
        self.random, self.n, self.records = random.Random(seed), 0, {}
        self.fields = self.some_fields(0)

    def name(self):
        self.n += 1
        return self.random.choice(["a", "b", "v", "Lat", "q"]) + (str(self.n) if self.random.random() < 0.85 else "")

    def dims(self, most=3):
        dims = []
        for _ in range(self.random.choice([0, 1, 1, 2, most])):
            if self.random.random() < 0.6:
                dims.append(self.random.choice(SHARED) if self.random.random() < 0.97 else ("e", 0))
            else:
                dims.append((None, self.random.randint(0 if self.random.random() < 0.1 else 1, 4)))
        return dims

    def value(self, name, dims):
        return ("value", self.random.choice(TYPES), name, dims, [])

    def grid(self, name):
        dims = self.dims() or [("x", 2)]
        names = [dim or "m%d" % at for at, (dim, _) in enumerate(dims)]
        if len(set(names)) < len(names):
            dims, names = dims[:1], names[:1]
        if self.random.random() < 0.1:
            names[-1] = "other"
        array = self.value(name if self.random.random() < 0.7 else name + "arr", dims)
        maps = [("value", "Float32", of, [dim if self.random.random() < 0.8 else (None, dim[1])], []) for of, dim in zip(names, dims)]
        return ("Grid", "", name, [], [array, *maps])

    def declaration(self, depth, names):
        name = self.name()
        while name in names:
            name = self.name()
        names.add(name)
        chance = self.random.random()
        if depth < 3 and chance < 0.15:
            return ("Structure", "", name, self.dims(2) if self.random.random() < 0.4 else [], self.some_fields(depth + 1))
        if depth < 3 and chance < 0.25:
            return ("Sequence", "", name, [], self.some_fields(depth + 1))
        return self.grid(name) if chance < 0.45 else self.value(name, self.dims())

    def some_fields(self, depth):
        names = set()
        return [self.declaration(depth, names) for _ in range(self.random.randint(1, 4))]

    def declared(self, fields, depth=1):
        lines = []
        for kind, of, name, dims, inner in fields:
            shape = "".join("[%d]" % length if dim is None else "[%s = %d]" % (dim, length) for dim, length in dims)
            if kind == "value":
                lines.append(INDENT * depth + "%s %s%s;\n" % (of, name, shape))
            elif kind == "Grid":
                parts = ("ARRAY", inner[:1]), ("MAPS", inner[1:])
                body = "".join(INDENT * depth + " %s:\n%s" % (word, self.declared(part, depth + 1)) for word, part in parts)
                lines.append(INDENT * depth + "Grid {\n%s%s} %s;\n" % (body, INDENT * depth, name))
            else:
                lines.append(INDENT * depth + "%s {\n%s%s} %s%s;\n" % (kind, self.declared(inner, depth + 1), INDENT * depth, name, shape))
        return "".join(lines)

    def element(self, of, alone):
        if of == "Byte":
            return bytes(3 if alone else 0) + bytes([self.random.randrange(256)])
        if of in NUMBERS:
            form, first, end = NUMBERS[of]
            return struct.pack(form, self.random.randrange(first, end))
        if of not in TEXTS:
            return struct.pack(">f" if of == "Float32" else ">d", self.random.uniform(-10, 10))
        text = "".join(self.random.choice("abc XYZ;,.") for _ in range(self.random.randrange(12))).encode()
        return struct.pack(">I", len(text)) + filled(text)

    def values(self, fields):
        out = b""
        for at, (kind, of, _, dims, inner) in enumerate(fields):
            n = size(dims)
            if kind == "value" and not dims:
                out += self.element(of, True)
            elif kind == "value":
                out += struct.pack(">I", n) * (1 if of in TEXTS else 2)
                out += filled(b"".join(self.element(of, False) for _ in range(n)))
            elif kind == "Sequence":
                # As many for each record of what is around it.
                n = self.records.setdefault((id(fields), at), self.random.randint(0 if self.random.random() < 0.3 else 1, 3))
                out += b"".join(b"\x5a\0\0\0" + self.values(inner) for _ in range(n)) + b"\xa5\0\0\0"
            else:
                out += struct.pack(">I", n) if dims else b""
                out += b"".join(self.values(inner) for _ in range(n))
        return out

    def attribute(self):
        of, name = self.random.choice(TYPES), self.random.choice(["units", "scale", "long_name", "w%d" % self.random.randrange(5)])
        text = {"String": '"m s"', "Url": '"http://x/"'}.get(of) or (str(self.random.randint(-100, 300)) if self.random.random() < 0.7 else "2.5")
        return "%s %s %s;" % (of, name, text + ", " + text if self.random.random() < 0.3 else text)

    def attributes(self):
        """Sets by name: the reference drops a DAS with two of one name."""
        sets = {}

        def walk(fields, before):
            for kind, _, name, _, inner in fields:
                if self.random.random() < 0.5:
                    sets.setdefault(self.random.choice([name, before + name]), " ".join(self.attribute() for _ in range(self.random.randint(0, 3))))
                if kind != "value":
                    if self.random.random() < 0.4:
                        sets.setdefault(name, "%s %s { %s }" % (self.attribute() if self.random.random() < 0.5 else "", inner[0][2], self.attribute()))
                    walk(inner, before + name + ".")

        walk(self.fields, "")
        if self.random.random() < 0.5:
            sets["NC_GLOBAL"] = "%s deep { %s }" % (self.attribute(), self.attribute())
        if self.random.random() < 0.3:
            sets["other"] = "%s inner { %s HDF_GLOBAL { %s } }" % (self.attribute(), self.attribute(), self.attribute())
        if self.random.random() < 0.2:
            sets["DODS_EXTRA"] = 'String Unlimited_Dimension "%s";' % self.random.choice("xyt")
        return "Attributes {\n%s}\n" % "".join("%s%s { %s }\n" % (INDENT, name, inside) for name, inside in sets.items())


def write(folder, seed):
    made, path = Made(seed), folder / ("r%d" % seed)
    dds = "Dataset {\n%s} %s;\n" % (made.declared(made.fields), path.name)
    (folder / (path.name + ".dds")).write_text(dds)
    (folder / (path.name + ".das")).write_text(made.attributes())
    (folder / (path.name + ".dods")).write_bytes((dds + "\nData:\n").encode() + made.values(made.fields))
    return path
