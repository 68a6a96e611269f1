# SPDX-License-Identifier: MIT OR Apache-2.0
"""DAP2, the server's side: a dataset from its DDS, with values from a saved response or made up; DDS and data by constraint.

    Dataset.read(path)            of path.dds, path.das and path.dods
    Dataset.made(dds, das, seed)  of texts, with random values
"""
import re
from dataclasses import replace

import numpy as np
from shapes import NUMBERS, STRINGS, Refused, Var, called, objects, project, random_values, words_of

START, END = b"\x5a\0\0\0", b"\xa5\0\0\0"
# How a number goes over the line.
XDR = {"Byte": "u1", "Int16": ">i4", "UInt16": ">u4", "Int32": ">i4", "UInt32": ">u4", "Float32": ">f4", "Float64": ">f8"}


# ---- DDS

def tokens(text):
    return re.findall(r"[{}\[\];=]|[^\s{}\[\];=]+", text)


def parsed(text):
    """(name of the dataset, variables without values) of a DDS."""
    words = tokens(text)
    if not words or words.pop(0).lower() != "dataset" or words.pop(0) != "{":
        raise ValueError("no DDS: %.60r" % text)
    variables = []
    while words[0] != "}":
        variables.append(declaration(words))
    return words[1] if words[1] != ";" else "", variables


def declaration(words):
    kind = {name.lower(): name for name in (*XDR, *STRINGS[:2], "Grid", "Structure", "Sequence")}.get(words[0].lower())
    if kind is None:
        raise ValueError("no type: %s" % words[0])
    words.pop(0)
    fields, maps = [], []
    if kind in ("Structure", "Sequence", "Grid"):
        assert words.pop(0) == "{"
        while words[0] != "}":
            if words[0].lower() in ("array", "maps") and words[1] == ":":
                del words[1]
            if kind == "Grid" and words[0].lower().rstrip(":") in ("array", "maps"):
                words.pop(0)
            fields.append(declaration(words))
        words.pop(0)
    name, dims = words.pop(0), []
    while words[0] != ";":
        assert words.pop(0) == "["
        dim = words.pop(0) if words[1] == "=" else None
        if dim:
            words.pop(0)
        dims.append((dim, int(words.pop(0))))
        assert words.pop(0) == "]"
    words.pop(0)
    if kind == "Grid":
        array, *maps = fields
        return replace(array, name=name, maps=tuple(maps), extra={"array": array.name})
    return Var(name, kind, tuple(dims), fields=tuple(fields))


def declared(var, indent="    "):
    """Lines of a DDS."""
    dims = "".join("[%s%d]" % (name + " = " if name else "", size) for name, size in var.dims)
    if var.maps:
        array = replace(var, name=var.extra.get("array", var.name), maps=())
        maps = "".join(declared(each, indent + "    ") for each in var.maps)
        return "%sGrid {\n%s  Array:\n%s%s  Maps:\n%s%s} %s;\n" % (indent, indent, declared(array, indent + "    "), indent, maps, indent, var.name)
    if var.fields:
        return "%s%s {\n%s%s} %s%s;\n" % (indent, var.kind, "".join(declared(each, indent + "    ") for each in var.fields), indent, var.name, dims)
    return "%s%s %s%s;\n" % (indent, var.kind, var.name, dims)


# ---- Values

def encoded(var, data):
    """The bytes of a variable."""
    if var.maps:
        return encoded(replace(var, maps=()), data) + b"".join(encoded(each, each.data) for each in var.maps)
    n = np.array(data.size, ">u4").tobytes()
    if var.kind in XDR:
        # A single byte is a number of four.
        body = data.astype(XDR[var.kind] if var.dims or var.kind != "Byte" else ">u4").tobytes()
        return (n + n if var.dims else b"") + padded(body)
    if var.kind in STRINGS:
        return (n if var.dims else b"") + b"".join(np.array(len(value), ">u4").tobytes() + padded(value) for value in data.reshape(-1))
    return (n if var.dims else b"") + b"".join(structure(var, value) for value in data.reshape(-1))


def structure(var, value):
    def fields(row):
        return b"".join(encoded(member, part) for member, part in zip(var.fields, row))

    if var.kind == "Sequence":
        return b"".join(START + fields(row) for row in value) + END
    return fields(value)


def padded(data):
    return data + bytes(-len(data) % 4)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise ValueError("%d bytes at %d of %d" % (n, self.at, len(self.data)))
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self):
        return int.from_bytes(self.take(4), "big")


def decoded(var, body):
    """The values of a variable; those of a grid's maps go into `var`."""
    n = int(np.prod(var.shape, dtype=int))
    if var.dims:
        counts = [body.number()] + ([body.number()] if var.kind in XDR else [])
        if counts.count(n) != len(counts):
            raise ValueError("%s has %s values of %d" % (var.name, counts, n))
    if var.kind in XDR:
        code = np.dtype(XDR[var.kind] if var.dims or var.kind != "Byte" else ">u4")
        size = n * code.itemsize
        data = np.frombuffer(body.take(size), code).astype(NUMBERS[var.kind]).reshape(var.shape)
        body.take(-size % 4)
    elif var.kind in STRINGS:
        values = []
        for _ in range(n):
            length = body.number()
            values.append(body.take(length))
            body.take(-length % 4)
        data = objects(values, var.shape)
    else:
        data = objects([rows(var, body) for _ in range(n)], var.shape)
    var.maps = tuple(replace(each, data=decoded(each, body)) for each in var.maps)
    return data


def rows(var, body):
    if var.kind != "Sequence":
        return tuple(decoded(each, body) for each in var.fields)
    found = []
    while (mark := body.take(4)) == START:
        found.append(tuple(decoded(each, body) for each in var.fields))
    if mark != END:
        raise ValueError("%s has %s between its rows" % (var.name, mark.hex()))
    return found


# ---- Datasets

class Dataset:
    def __init__(self, name, variables, das):
        self.name, self.variables, self.attributes = name, variables, das

    @staticmethod
    def read(path):
        data = path.with_name(path.name + ".dods").read_bytes()
        found = re.search(rb"\n[Dd]ata:\r?\n", data)
        name, variables = parsed(data[: found.start()].decode("latin-1"))
        if tokens(data[: found.start()].decode("latin-1")) != tokens(path.with_name(path.name + ".dds").read_text("latin-1")):
            raise ValueError("its DDS is another one than that of its data")
        body = Reader(data[found.end() :])
        for var in variables:
            var.data = decoded(var, body)
        # Some of the reference's files have a line's end behind their values.
        if body.at != len(body.data) and body.data[body.at :] != b"\n":
            raise ValueError("%d bytes are left" % (len(body.data) - body.at))
        return Dataset(name, variables, path.with_name(path.name + ".das").read_text("latin-1"))

    @staticmethod
    def made(dds, das="Attributes {\n}\n", seed=1):
        rng = np.random.default_rng(seed)
        name, variables = parsed(dds)
        for var in variables:
            var.data = random_values(var, rng)
            var.maps = tuple(replace(each, data=random_values(each, rng)) for each in var.maps)
        return Dataset(name, variables, das)

    def chosen(self, query):
        """The variables of a constraint, with what is left of them. Selections are refused."""
        projection, *selections = query.split("&")
        if selections:
            raise Refused("no selections here")
        if not projection:
            return self.variables
        paths = [words_of(word, ".") for word in re.split(r",(?![^\[]*\])", projection)]
        kept = []
        for var in self.variables:
            asked = [path for path in paths if called(path[0][0], var.name)]
            if asked:
                kept.append(project(var, asked))
        if len({path[0][0] for path in paths}) != len(kept):
            raise Refused("no such variable in %r" % projection)
        return kept

    def dds(self, query=""):
        return "Dataset {\n%s} %s;\n" % ("".join(declared(var) for var in self.chosen(query)), self.name)

    def das(self):
        return self.attributes

    def dods(self, query=""):
        return self.dds(query).encode("latin-1") + b"\nData:\n" + b"".join(encoded(var, var.data) for var in self.chosen(query))
