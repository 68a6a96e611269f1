# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a C program gets of a dataset (read.c), as arrays; what it ought to get; and random selections of both."""
from dataclasses import dataclass, field

import numpy as np
import rig
from rig import Wrong
from shapes import STRINGS, objects

SECONDS = 120
# Of netCDF's types, by number.
CODES = ("", "i1", "S1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8")
STRING, STRLEN = 12, 64


@dataclass
class Expected:
    """A variable as netCDF has it."""

    name: str
    data: np.ndarray
    # Of what is no array of numbers: "char", "string", "structure", "opaque", "sequence".
    kind: str = ""
    extra: dict = field(default_factory=dict)


def chars(data):
    """Strings in the classic model: a dimension more, zeros behind the end."""
    return np.array([list(value[:STRLEN].ljust(STRLEN, b"\0")) for value in data.reshape(-1)], "u1").reshape((*data.shape, STRLEN))


def of_dap2(variables, outer=(), prefix="", grids=True):
    """What a dataset of DAP2 is to netCDF. `outer` has (the shape around, a function from an array of rows to the field's data)."""
    for var in variables:
        name = prefix + var.name
        if var.fields and var.kind == "Structure":
            yield from of_dap2([field_of(var, n) for n in range(len(var.fields))], outer, name + ".")
        elif var.kind == "Sequence":
            rows = var.data.reshape(-1)[0] if var.data.size == 1 else None
            if rows is None or any(each.fields or each.dims for each in var.fields):
                continue
            for n, each in enumerate(var.fields):
                values = [row[n].reshape(-1)[0] for row in rows]
                data = objects(values, (len(values),)) if each.kind in STRINGS else np.array(values, each.code)
                yield Expected(name + "." + each.name, chars(data) if each.kind in STRINGS else data, "char" if each.kind in STRINGS else "")
        else:
            yield Expected(name, chars(var.data) if var.kind in STRINGS else var.data, "char" if var.kind in STRINGS else "")
        if grids:
            yield from of_dap2(var.maps)


def field_of(var, n):
    """A field of a structure as a variable with the structure's dimensions in front."""
    member, rows = var.fields[n], [value[n] for value in var.data.reshape(-1)]
    shape = (*var.shape, *member.shape)
    if member.code:
        data = np.array(rows, member.code).reshape(shape)
    else:
        data = objects([value for row in rows for value in row.reshape(-1)], shape)
    return type(member)(member.name, member.kind, (*var.dims, *member.dims), data, member.fields, member.base, member.maps, member.size)


def of_dap4(variables):
    for var in variables:
        if var.code:
            yield Expected(var.path, var.data)
        elif var.kind in STRINGS:
            yield Expected(var.path, var.data, "string")
        elif var.kind == "Opaque":
            yield Expected(var.path, var.data, "opaque")
        elif all(each.code for each in var.fields):
            layout = np.dtype([(each.name, each.code, each.shape) for each in var.fields], align=True)
            if var.kind == "Structure":
                yield Expected(var.path, packed(layout, var.data.reshape(-1)).reshape(var.shape), "structure")
            else:
                yield Expected(var.path, objects([packed(layout, rows) for rows in var.data.reshape(-1)], var.shape), "sequence", {"layout": layout})


def packed(layout, rows):
    made = np.zeros(len(rows), layout)
    for n, row in enumerate(rows):
        for name, value in zip(layout.names, row):
            made[n][name] = value
    return made


# ---- Reading

class Answers:
    """The output of read.c, piece by piece."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def line(self):
        end = self.data.index(b"\n", self.at)
        self.at, line = end + 1, self.data[self.at : end]
        return line.decode()

    def value(self):
        """(code, bytes)"""
        code, size = map(int, self.line().split())
        self.at += size
        return code, self.data[self.at - size : self.at]


def ask(bench, url, lines, env):
    """What the program says to these lines: (code of the open, Answers)."""
    done = bench.run([bench.reader, url], env, seconds=SECONDS, text=False, input="".join(line + "\n" for line in lines).encode())
    if done.returncode:
        raise Wrong("read ends with %s: %s" % (done.returncode, done.stderr.decode(errors="replace")[-300:]))
    answers = Answers(done.stdout)
    return int(answers.line()), answers


def listed(answers):
    """{name: (type, shape)}"""
    found = {}
    while line := answers.line():
        name, kind, _, *shape = line.split(" ")
        found[name.replace("%20", " ")] = int(kind), tuple(map(int, shape))
    return found


def same(expected, kind, selection, data, named):
    """What is wrong with the bytes that came for a selection of a variable."""
    # An array, of no dimensions, too.
    wanted = expected.data[(*selection, ...)]
    if expected.kind == "string":
        wanted = b"".join(len(value).to_bytes(4, "little") + value for value in wanted.reshape(-1))
    elif expected.kind == "opaque":
        size = len(data) // max(wanted.size, 1)
        wanted = b"".join(value.ljust(size, b"\0")[:size] for value in wanted.reshape(-1))
    elif expected.kind == "sequence":
        wanted = b"".join(len(value).to_bytes(4, "little") + value.tobytes() for value in wanted.reshape(-1))
    elif expected.kind == "structure":
        got = np.frombuffer(data, wanted.dtype) if len(data) == wanted.nbytes else None
        ok = got is not None and all(np.array_equal(got[name].reshape(-1), wanted[name].reshape(-1)) for name in wanted.dtype.names)
        return None if ok else "%s: %s, not %s" % (named, got, wanted)
    else:
        code = CODES[kind] if 0 < kind < len(CODES) else "u%d" % wanted.dtype.itemsize
        if code and np.dtype(code).itemsize != wanted.dtype.itemsize:
            # Wider, as netCDF has no such type.
            got, wanted = np.frombuffer(data, code).astype("f8"), wanted.astype("f8")
            return None if np.array_equal(got, wanted.reshape(-1)) else "%s: %.100s, not %.100s" % (named, got, wanted)
        wanted = wanted.tobytes()
    return None if data == wanted else "%s: %.60r, not %.60r" % (named, data, wanted)


def selections(shape, rng, n):
    """[(call, numbers, index for NumPy)]: whole, single, part, with steps, transposed by map (as the same values), empty."""
    whole = tuple(slice(None) for _ in shape)
    made = [("var", (), whole)]
    if not shape or not all(shape):
        made += [("vara", (*[0] * len(shape), *shape), whole)]
        return made
    for _ in range(n):
        start = [int(rng.integers(size)) for size in shape]
        count = [int(rng.integers(1, size - first + 1)) for size, first in zip(shape, start)]
        stride = [int(rng.integers(1, 4)) for _ in shape]
        fits = [max(1, (size - first + step - 1) // step) for size, first, step in zip(shape, start, stride)]
        many = [int(rng.integers(1, most + 1)) for most in fits]
        strided = tuple(slice(first, first + (number - 1) * step + 1, step) for first, number, step in zip(start, many, stride))
        memory = [int(np.prod(many[d + 1 :], dtype=int)) for d in range(len(shape))]
        made.append(("var1", tuple(start), tuple(slice(first, first + 1) for first in start)))
        made.append(("vara", (*start, *count), tuple(slice(first, first + number) for first, number in zip(start, count))))
        made.append(("vars", (*start, *many, *stride), strided))
        made.append(("varm", (*start, *many, *stride, *memory), strided))
    empty = [int(rng.integers(2)) * size for size in shape]
    empty[int(rng.integers(len(shape)))] = 0
    made.append(("vara", (*[0] * len(shape), *empty), tuple(slice(0, size) for size in empty)))
    return made


def equal(bench, url, expected, env, seed=1, n=2, most=None):
    """All variables of the dataset (`most` at most) have the expected shape and, by random selections, values. The names of all that there are."""
    expected = {each.name.lstrip("/"): each for each in expected}
    code, answers = ask(bench, url, ["list"], env)
    if code:
        raise Wrong("nc_open says %d: %s" % (code, url))
    rng, found, wrong = np.random.default_rng(seed), listed(answers), []
    lines, wanted = [], []
    chosen = rng.choice(len(found), min(most or len(found), len(found)), replace=False)
    for name, (kind, shape) in (list(found.items())[int(at)] for at in sorted(chosen)):
        one = expected.get(name.lstrip("/"))
        if one is None:
            continue
        if one.data.shape != shape:
            wrong.append("%s has the shape %s, not %s" % (name, shape, one.data.shape))
            continue
        for call, numbers, index in selections(shape, rng, n):
            if call == "varm" and kind >= STRING:
                continue
            lines.append(" ".join([call, name.replace(" ", "%20"), *map(str, numbers)]))
            wanted.append((one, kind, index))
    code, answers = ask(bench, url, lines, env)
    for line, (one, kind, index) in zip(lines, wanted):
        code, data = answers.value()
        wrong.append("%s: code %d" % (line, code) if code else same(one, kind, index, data, line))
    if int(answers.line()):
        wrong.append("nc_close is an error")
    wrong = [each for each in wrong if each]
    if wrong:
        raise Wrong("%d of %d: %s" % (len(wrong), len(lines), "; ".join(wrong[:4])))
    if not lines:
        raise Wrong("nothing was compared: %s and %s" % (sorted(found)[:5], sorted(expected)[:5]))
    return sorted(name.lstrip("/") for name in found)
