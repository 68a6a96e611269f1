# SPDX-License-Identifier: MIT OR Apache-2.0
"""What both versions of the protocol have in common: variables with their values, and parts of them.

Values of a variable are an array of its shape: of numbers, or of objects. An object is `bytes` for a string or an opaque value, a tuple of
arrays (one for each field) for a structure, a list of such tuples for a sequence.
"""
import re
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import numpy as np

NUMBERS = {"Int8": "i1", "UInt8": "u1", "Byte": "u1", "Char": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4", "UInt32": "u4", "Int64": "i8", "UInt64": "u8",
           "Float32": "f4", "Float64": "f8"}  # fmt: skip
STRINGS = ("String", "Url", "URL")
WORDS = (b"", b"a", b"some words", "Ωμέγα".encode(), b'with "quotes" and \\ in it', b"x" * 61)


class Refused(Exception):
    """What a server says of a constraint that it does not take."""


@dataclass
class Var:
    """`base` is the type of an enumeration's numbers; `maps` makes a DAP2 array a grid; `size` is an opaque value's, 0 where each has its own."""

    name: str
    kind: str
    dims: tuple = ()
    data: np.ndarray = None
    fields: tuple = ()
    base: str = ""
    maps: tuple = ()
    size: int = 0
    group: str = ""
    extra: dict = field(default_factory=dict)
    element: object = None

    @property
    def shape(self):
        return tuple(size for _, size in self.dims)

    @property
    def code(self):
        """NumPy's name of a number's type; empty for what is none."""
        return NUMBERS.get(self.base or self.kind, "")

    @property
    def path(self):
        return self.group + "/" + self.name


def objects(values, shape):
    """An array of objects, each of which may be a sequence itself."""
    made = np.empty(len(values), dtype=object)
    for n, value in enumerate(values):
        made[n] = value
    return made.reshape(shape)


def random_values(var, rng, rows=3):
    """An array of values for the variable: all bits of integers, no NaN, which would not equal itself."""
    n = int(np.prod(var.shape, dtype=int))
    code = np.dtype(var.code or "u1")
    if var.code and code.kind == "f":
        return (rng.standard_normal(n) * 1e3).astype(code).reshape(var.shape)
    if var.code and var.kind == "Char":
        return rng.integers(33, 127, n).astype(code).reshape(var.shape)
    if var.code and var.base:
        return rng.choice(list(var.extra["members"].values()), n).astype(code).reshape(var.shape)
    if var.code:
        info = np.iinfo(code)
        return rng.integers(info.min, info.max, n, dtype=code, endpoint=True).reshape(var.shape)
    if var.kind in STRINGS:
        return objects([WORDS[rng.integers(len(WORDS))] for _ in range(n)], var.shape)
    if var.kind == "Opaque":
        return objects([rng.bytes(var.size or int(rng.integers(9))) for _ in range(n)], var.shape)

    def one():
        return tuple(random_values(each, rng, rows) for each in var.fields)

    if var.kind == "Sequence":
        return objects([[one() for _ in range(rng.integers(rows + 1))] for _ in range(n)], var.shape)
    return objects([one() for _ in range(n)], var.shape)


# ---- Constraints

RANGE = re.compile(r"\[([^\[\]]*)\]")


def ranges(text, shape):
    """Slices of `[a:s:b]` and the like; all of the dimensions that are not named."""
    asked = RANGE.findall(text)
    if len(asked) > len(shape) or "".join("[%s]" % each for each in asked) != text:
        raise Refused("%r does not fit %d dimensions" % (text, len(shape)))
    slices = []
    for words, size in zip(asked, shape):
        if words.strip() in ("", "*"):
            slices.append(slice(0, size, 1))
            continue
        try:
            numbers = [int(word) if word not in ("", "*") else None for word in words.split(":")]
        except ValueError:
            raise Refused("no range: %r" % words) from None
        first, step, last = (numbers[0], 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[1]) if len(numbers) == 2 else numbers
        first, last = first or 0, size - 1 if last is None else last
        if step is None or step < 1 or first > last or last >= size:
            raise Refused("[%s] is not within %d" % (words, size))
        slices.append(slice(first, last + 1, step))
    return tuple(slices) + tuple(slice(0, size, 1) for size in shape[len(asked) :])


def cut(var, text):
    """The variable less what the ranges leave out."""
    if not text:
        return var
    slices = ranges(text, var.shape)
    sizes = [len(range(*each.indices(size))) for each, size in zip(slices, var.shape)]
    dims = tuple((name, size) for (name, _), size in zip(var.dims, sizes))
    maps = tuple(cut(each, "[%d:%d:%d]" % (at.start, at.step, at.stop - 1)) for each, at in zip(var.maps, slices))
    return replace(var, dims=dims, data=var.data[slices], maps=maps, extra={**var.extra, "cut": True})


def project(var, paths):
    """The variable by a constraint's words: lists of (name, ranges), the first of which is the variable's own."""
    text = paths[0][0][1]
    whole = [path for path in paths if len(path) == 1]
    if whole:
        return cut(var, whole[0][0][1])
    members = var.fields or (replace(var, maps=(), name=var.extra.get("array", var.name)), *var.maps)
    kept = []
    for n, member in enumerate(members):
        asked = [path[1:] for path in paths if called(path[1][0], member.name)]
        if asked:
            kept.append((n, member, asked))
    if len({path[1][0] for path in paths}) != len(kept):
        raise Refused("%s has no such member" % var.name)
    if not var.fields:
        # Part of a grid is a structure.
        parts = tuple(project(member, asked) for _, member, asked in kept)
        return Var(var.name, "Structure", data=objects([tuple(part.data for part in parts)], ()), fields=parts)
    var = cut(var, text)

    def fewer(value):
        return tuple(project(replace(member, data=value[n]), asked).data for n, member, asked in kept)

    values = [[fewer(row) for row in value] if var.kind == "Sequence" else fewer(value) for value in var.data.reshape(-1)]
    fields = tuple(project(replace(member, data=placeholder(member)), asked) for _, member, asked in kept)
    return replace(var, fields=fields, data=objects(values, var.shape))


def placeholder(var):
    """Values of the right shape for a field whose values are elsewhere."""
    if var.code:
        return np.zeros(var.shape, var.code)
    n = int(np.prod(var.shape, dtype=int))
    empty = b"" if not var.fields else [] if var.kind == "Sequence" else tuple(placeholder(each) for each in var.fields)
    return objects([empty] * n, var.shape)


def called(asked, name):
    """Whether this name is asked for: some clients escape what of a name is an escape already, some do not."""
    return asked in (name, unquote(name))


def words_of(path, separator):
    """[(name, ranges)] of `a[0:1].b`; the separators within ranges are none."""
    parts = []
    for word in re.split(re.escape(separator) + r"(?![^\[]*\])", path):
        name, bracket, rest = word.partition("[")
        parts.append((name, bracket + rest))
    return parts
