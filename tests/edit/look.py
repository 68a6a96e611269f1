# SPDX-License-Identifier: MIT OR Apache-2.0
"""What h5py finds in a file, object by object, and what differs between two such looks.

    look.py FILE        shows it

A look is {path of an object: {key: text}}; keys of attributes begin with @. Data and values of
attributes are digests, references are shown as the object that they lead to.
"""
import os
import re
import sys

import h5py
import hdf5plugin  # noqa: F401, it registers filters
import numpy as np
from h5py import h5d, h5o

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "interop"))
import readers  # noqa: E402
import structure  # noqa: E402

# What netCDF keeps for itself in attributes; `scales` says what these mean.
HIDDEN = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict"}
PHONY = re.compile(r".*/phony_dim_\d+$")
LARGE = 1 << 24     # bytes of a dataset that are not read
ZFP = 32013


class Look:
    def __init__(self, f):
        self.f, self.found, self.names, self.members = f, {}, {}, []
        self.walk()
        for path, o in self.members:
            self.found[path] = self.one(o)

    def walk(self):
        """Names all objects before any is shown: references say where they lead. Of several names it is one
        nearest to the root, which a change of the others leaves as it is."""
        queue = [("/", self.f["/"])]
        for path, o in queue:
            if self.names.setdefault(h5o.get_info(o.id).addr, path) != path:
                continue
            self.members.append((path, o))
            for name in o if isinstance(o, h5py.Group) else ():
                below = path.rstrip("/") + "/" + name
                if isinstance(o.get(name, getlink=True), h5py.HardLink):
                    try:
                        queue.append((below, o[name]))
                    except Exception as why:
                        self.found[below] = {"kind": "!" + type(why).__name__}

    def target(self, reference):
        if not reference:
            return None
        try:
            return "to " + self.names.get(h5o.get_info(h5py.h5r.dereference(reference, self.f.id)).addr, "?")
        except Exception as why:
            return "!" + type(why).__name__

    def one(self, o):
        if isinstance(o, h5py.Dataset):
            found = self.dataset(o)
        elif isinstance(o, h5py.Group):
            found = {"kind": "group", "links": self.links(o)}
        else:
            found = {"kind": "type", "dtype": str(o.dtype)}
        for name in o.attrs:
            if name not in HIDDEN:
                found["@" + name] = attempt(lambda: self.attribute(o, name))
        if h5o.get_info(o.id).type != h5o.TYPE_NAMED_DATATYPE and o.id.get_create_plist().get_attr_creation_order():
            order = []
            h5py.h5a.iterate(o.id, lambda n: order.append(n.decode()), index_type=h5py.h5.INDEX_CRT_ORDER)
            found["order"] = [n for n in order if n not in HIDDEN]
        return found

    def attribute(self, o, name):
        data = o.attrs[name]
        if isinstance(data, h5py.Empty):
            return "empty %s" % data.dtype
        return "%s %s" % (o.attrs.get_id(name).dtype, self.show(data))

    def show(self, value):
        """As readers.show; references whole, of whatever length, since what they lead to may get another name."""
        text = readers.show(value, self.target)
        if "'to /" in text:
            a = np.asarray(value)
            text = "%s %s %s" % (a.dtype.str, a.shape, readers.plain(a.tolist(), self.target))
        return text

    def links(self, g):
        found = {}
        for name in g:
            link = g.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                found[name] = "soft %s %s" % (link.path, attempt(lambda: self.names[h5o.get_info(g[name].id).addr]))
            elif isinstance(link, h5py.ExternalLink):
                found[name] = "external %s %s" % (link.filename, link.path)
            else:
                found[name] = attempt(lambda: self.names[h5o.get_info(g[name].id).addr])
        return found

    def dataset(self, d):
        p = d.id.get_create_plist()
        found = {
            "kind": "dataset", "dtype": str(d.dtype), "shape": d.shape, "maxshape": d.maxshape, "chunks": d.chunks,
            "committed": d.id.get_type().committed(),
            "filters": [p.get_filter(i)[0::2] for i in range(p.get_nfilters())],
            "fill": attempt(lambda: "%s %s" % (p.fill_value_defined(), readers.show(d.fillvalue))),
        }
        if d.shape is not None and len(d.shape):
            found["scales"] = attempt(lambda: [sorted(s.name for s in axis.values()) for axis in d.dims])
        found["data"] = attempt(lambda: d.size if d.shape is not None and d.nbytes > LARGE else self.show(d[()]))
        return found


def attempt(function):
    try:
        return function()
    except Exception as why:
        return "!" + type(why).__name__


def look(path):
    with h5py.File(path, "r") as f:
        return Look(f).found


def judge(path):
    """(look, problems of structure without numbers); what cannot be opened raises."""
    class Options:
        exact = sectors = leaks = False
    return look(path), sorted({re.sub(r"\d+", "#", p) for p in structure.check(path, Options).problems})


# ---- Comparing

def moved(path, renamed):
    for old, new in renamed.items():
        if path == old or path.startswith(old.rstrip("/") + "/"):
            return new + path[len(old):]
    return path


def text_moved(value, renamed):
    """What a text says, with the new names."""
    if isinstance(value, dict):
        return {k: text_moved(v, renamed) for k, v in value.items()}
    if isinstance(value, list):
        return [text_moved(v, renamed) for v in value]
    if not isinstance(value, str):
        return value
    # References are shown as what they lead to, where a text is short enough to be shown.
    value = re.sub(r"'to (/[^']*)'", lambda m: "'to %s'" % moved(m[1], renamed), value)
    # One alone is shown without quotes, behind its type and shape.
    value = re.sub(r"\(\) to (/.*)$", lambda m: "() to %s" % moved(m[1], renamed), value)
    return moved(value, renamed) if value.startswith("/") else value


def differences(before, after, result):
    """What is otherwise than it should be after an edit, which says itself what it touched."""
    touched, renamed, added = set(result["touched"]), result["renamed"], set(result["added"])
    wrong = []
    for path, keys in before.items():
        if (path, "*") in touched:
            continue
        there = after.get(moved(path, renamed))
        if there is None:
            wrong.append("%s is lost" % path)
            continue
        for key, value in keys.items():
            if (path, key) in touched:
                continue
            if key == "links":
                wrong += links(path, value, there.get(key, {}), renamed, added)
            elif key == "order":
                free = {k[1:] for p, k in touched if p == path}
                kept = [n for n in there.get(key, []) if n in value and n not in free]
                if kept != [n for n in value if n not in free]:
                    wrong.append("%s: the order of attributes was %s and is %s" % (path, value, there.get(key)))
            elif key == "scales":
                scales = {old: new for old, new in renamed.items() if old not in result["stay"]}
                if any(value) and there.get(key) != text_moved(value, scales):
                    wrong.append("%s, scales: %s was %s" % (path, there.get(key, "nothing"), value))
            elif there.get(key) != text_moved(value, renamed):
                wrong.append("%s, %s: %.150s was %.150s" % (path, key, there.get(key, "nothing"), value))
        for key in there:
            if key not in keys and (path, key) not in touched and key not in ("scales", "order"):
                wrong.append("%s has got %s" % (path, key))
    came = set(after) - {moved(p, renamed) for p in before}
    return wrong + ["%s came" % p for p in sorted(came) if p not in added and not PHONY.match(p)]


def links(path, before, after, renamed, added):
    wrong = []
    for name, value in before.items():
        new = moved(path.rstrip("/") + "/" + name, renamed).rsplit("/", 1)[1]
        value = text_moved(value, renamed)
        if after.get(new) != value:
            wrong.append("%s: the link %s leads to %s, and led to %s" % (path, new, after.get(new), value))
    # The one that is renamed, and what comes, may have any place.
    stay = [n for n in before if moved(path.rstrip("/") + "/" + n, renamed) == path.rstrip("/") + "/" + n]
    if [n for n in after if n in stay] != stay:
        wrong.append("%s: another order of links" % path)
    return wrong


# ---- What an edit says that is there now

def shown(path, facts):
    """What of the facts h5py does not see."""
    wrong = []
    with h5py.File(path, "r") as f:
        for fact in facts:
            try:
                why = missing(f, *fact)
            except Exception as error:
                why = "%s: %s" % (type(error).__name__, error)
            if why:
                wrong.append("%s: %s" % (" ".join(x for x in fact if isinstance(x, str)), why))
    return wrong


def missing(f, what, path, *rest):
    if what == "gone":
        return path in f and "is there"
    if path not in f:
        return "is not there"
    o = f[path]
    if what == "data":
        data, expected = o[()], rest[0]
        if isinstance(data, h5py.Empty):
            return False    # netCDF shows one element, and puts it nowhere
        if is_lossy(o):
            # Chunks that nothing was put into are as they were.
            expected = np.where(data == expected, expected, through_filters(o, expected))
        return not same(data, expected, is_spaced(o)) and "reads %.80r, expected %.80r" % (data, expected)
    if what == "scale":
        # One without values, of a dimension that grows, is as long as it was made: as netCDF-C has it.
        grows = o.maxshape[0] is None and "This is a netCDF dimension" in str(o.attrs.get("NAME", ""))
        return (not o.is_scale or (not grows and o.shape[0] != rest[0])) and "is no dimension of %d" % rest[0]
    if what == "fill":
        return o.fillvalue != rest[0] and "is %r" % o.fillvalue
    if what == "attribute":
        data = o.attrs[rest[0]]
        return not same(data, rest[1]) and "reads %.80r, expected %.80r" % (data, rest[1])
    if what == "attribute gone":
        return rest[0] in o.attrs and "is there"
    if what == "there":
        return False
    raise ValueError(what)


def is_spaced(o):
    """Whether texts end before the spaces that they end with: h5py does not show these, netCDF does."""
    t = o.id.get_type()
    return isinstance(t, h5py.h5t.TypeStringID) and not t.is_variable_str() and t.get_strpad() == h5py.h5t.STR_SPACEPAD


def is_lossy(o):
    p = o.id.get_create_plist()
    return any(p.get_filter(i)[0] == ZFP for i in range(p.get_nfilters()))


def through_filters(o, data):
    """What libhdf5 keeps of data where a filter is lossy: it is told the same, and asked."""
    p = o.id.get_create_plist()
    with h5py.File("through filters", "w", driver="core", backing_store=False) as f:
        uncached = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
        uncached.set_chunk_cache(0, 0, 1.0)
        d = h5py.Dataset(h5py.h5d.create(f.id, b"d", o.id.get_type(), h5py.h5s.create_simple(data.shape), p, dapl=uncached))
        d[...] = data
        return d[()]


def same(a, b, spaced=False):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        # Texts of fixed size end where the type does.
        ends = a.dtype.itemsize if a.dtype.kind == "S" and a.ndim else None
        plain = lambda x: [y.encode() if isinstance(y, str) else y for y in x.ravel().tolist()]
        return plain(a) == [y[:ends].rstrip(b" ") if spaced else y[:ends] for y in plain(b)]
    return a.ravel().tolist() == b.ravel().tolist() if a.ndim == 0 or b.ndim == 0 else np.array_equal(a, b)


def main():
    for path, keys in sorted(look(sys.argv[1]).items()):
        print(path)
        for key, value in keys.items():
            print("    %s: %s" % (key, value))


if __name__ == "__main__":
    main()
