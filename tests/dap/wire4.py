# SPDX-License-Identifier: MIT OR Apache-2.0
"""DAP4, the server's side: a dataset from its DMR, with values from a saved response or made up; DMR and data by constraint.

    Dataset.read(path)       of path.dap
    Dataset.made(dmr, seed)  of a text, with random values
"""
import copy
import re
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace

import numpy as np
from shapes import NUMBERS, STRINGS, Refused, Var, objects, project, random_values, words_of

LAST, ERROR, LITTLE, NO_SUMS = 1, 2, 4, 8
SPACE = "http://xml.opendap.org/ns/DAP/4.0#"
VARIABLES = {*NUMBERS, *STRINGS, "Opaque", "Enum", "Structure", "Sequence"}
CHUNK = 60000


# ---- DMR

def tree(text):
    root = ET.fromstring(text)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


class Described:
    """The variables of a DMR, in the order in which their values come."""

    def __init__(self, root):
        self.dims, self.enums, self.variables = {}, {}, []
        self.group(root, "")

    def group(self, element, path):
        for each in element:
            if each.tag == "Dimension":
                self.dims[path + "/" + each.get("name")] = int(each.get("size"))
            elif each.tag == "Enumeration":
                self.enums[path + "/" + each.get("name")] = each
        self.variables += [self.variable(each, path) for each in element if each.tag in VARIABLES]
        for each in element:
            if each.tag == "Group":
                self.group(each, path + "/" + each.get("name"))

    def variable(self, element, group):
        dims, kind = [], element.tag
        for each in element:
            if each.tag == "Dim":
                name = each.get("name")
                dims.append((name, self.dims[name] if name else int(each.get("size"))))
        var = Var(element.get("name"), kind, tuple(dims), group=group, element=element, size=int(element.get("_edu.ucar.opaque.size", "0")))
        if kind == "Enum":
            enum = self.enums[element.get("enum")]
            var.base, var.extra = enum.get("basetype"), {"members": {each.get("name"): int(each.get("value")) for each in enum}}
        var.fields = tuple(self.variable(each, group) for each in element if each.tag in VARIABLES)
        return var


# ---- Values

def encoded(var, data, order):
    def counted(n):
        return np.array(n, order + "u8").tobytes()

    if var.code:
        return data.astype(order + var.code).tobytes()
    if var.kind in STRINGS or var.kind == "Opaque":
        return b"".join(counted(len(value)) + value for value in data.reshape(-1))

    def fields(row):
        return b"".join(encoded(member, part, order) for member, part in zip(var.fields, row))

    if var.kind == "Sequence":
        return b"".join(counted(len(value)) + b"".join(fields(row) for row in value) for value in data.reshape(-1))
    return b"".join(fields(value) for value in data.reshape(-1))


class Reader:
    def __init__(self, data, order):
        self.data, self.at, self.order = data, 0, order

    def take(self, n):
        if self.at + n > len(self.data):
            raise ValueError("%d bytes at %d of %d" % (n, self.at, len(self.data)))
        self.at += n
        return self.data[self.at - n : self.at]

    def counted(self):
        return int.from_bytes(self.take(8), "little" if self.order == "<" else "big")

    def values(self, var):
        n = int(np.prod(var.shape, dtype=int))
        if var.code:
            code = np.dtype(self.order + var.code)
            return np.frombuffer(self.take(n * code.itemsize), code).astype(var.code).reshape(var.shape)
        if var.kind in STRINGS or var.kind == "Opaque":
            return objects([self.take(self.counted()) for _ in range(n)], var.shape)

        def one():
            return tuple(self.values(each) for each in var.fields)

        return objects([[one() for _ in range(self.counted())] if var.kind == "Sequence" else one() for _ in range(n)], var.shape)


def chunks(data):
    """(flags, bytes) of a response."""
    at = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 4], "big")
        at += 4 + (head & 0xFFFFFF)
        yield head >> 24, data[at - (head & 0xFFFFFF) : at]


def chunk(flags, data):
    return (flags << 24 | len(data)).to_bytes(4, "big") + data


# ---- Datasets

class Dataset:
    def __init__(self, root):
        self.root, self.described = root, Described(root)

    @property
    def variables(self):
        return self.described.variables

    @staticmethod
    def read(path):
        (flags, dmr), *rest = chunks(path.with_name(path.name + ".dap").read_bytes())
        self = Dataset(tree(dmr.decode().strip()))
        body = Reader(b"".join(data for _, data in rest), "<" if flags & LITTLE else ">")
        for var in self.variables:
            began = body.at
            var.data = body.values(var)
            if not flags & NO_SUMS:
                summed = zlib.crc32(body.data[began : body.at])
                if int.from_bytes(body.take(4), "little" if flags & LITTLE else "big") != summed:
                    raise ValueError("the checksum of %s" % var.path)
        return self

    @staticmethod
    def made(dmr, seed=1):
        self, rng = Dataset(tree(dmr)), np.random.default_rng(seed)
        for var in self.variables:
            var.data = random_values(var, rng)
        return self

    def chosen(self, ce):
        if not ce:
            return self.variables
        paths = []
        for word in re.split(r";(?![^\[]*\])", ce):
            group, _, rest = word.strip().rpartition("/")
            parts = words_of(rest, ".")
            paths.append([(group + "/" + parts[0][0], parts[0][1]), *parts[1:]])
        kept = []
        for var in self.variables:
            asked = [path for path in paths if path[0][0] in (var.path, var.path[1:])]
            if asked:
                kept.append(project(var, asked))
        if len({path[0][0].lstrip("/") for path in paths}) != len(kept):
            raise Refused("no such variable in %r" % ce)
        return kept

    def dmr(self, ce=""):
        chosen = {var.path: var for var in self.chosen(ce)}
        root = copy.deepcopy(self.root)
        self.fewer(root, "", chosen)
        root.set("xmlns", SPACE)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"

    def fewer(self, element, group, chosen):
        """Leaves out what is not chosen; groups stay."""
        for each in list(element):
            if each.tag == "Group":
                self.fewer(each, group + "/" + each.get("name"), chosen)
            elif each.tag in VARIABLES:
                var = chosen.get(group + "/" + each.get("name"))
                if var is None:
                    element.remove(each)
                else:
                    self.shaped(each, var)

    def shaped(self, element, var):
        if var.extra.get("cut"):
            # Lengths of their own, as THREDDS has it.
            for dim, (_, size) in zip(element.findall("Dim"), var.dims):
                dim.attrib = {"size": str(size)}
        members = {each.name: each for each in var.fields}
        for each in list(element):
            if each.tag in VARIABLES:
                if each.get("name") in members:
                    self.shaped(each, members[each.get("name")])
                else:
                    element.remove(each)

    def parts(self, ce="", order="<", sums=True):
        """[(variable, its bytes with its checksum)]"""
        found = []
        for var in self.chosen(ce):
            data = encoded(var, var.data, order)
            found.append((var, data + np.array(zlib.crc32(data), order + "u4").tobytes() if sums else data))
        return found

    def dap(self, ce="", order="<", sums=True, size=CHUNK):
        flags = (LITTLE if order == "<" else 0) | (0 if sums else NO_SUMS)
        data = b"".join(each for _, each in self.parts(ce, order, sums))
        pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        made = [chunk(flags, self.dmr(ce).encode() + b"\r\n")]
        return b"".join(made + [chunk(flags | (LAST if n == len(pieces) - 1 else 0), piece) for n, piece in enumerate(pieces)])


__all__ = ["Dataset", "Refused", "chunk", "chunks", "replace"]
