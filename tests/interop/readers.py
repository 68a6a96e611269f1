#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What Python's libraries read in netCDF-4 files: readers.py h5py|netcdf4|h5netcdf FILE...

One line of JSON for each file, as soon as it was read: [file, text]. Equal texts mean that the
library saw the same names, types, shapes, filters, attributes and values.
"""
import hashlib
import json
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def show(value, target=None):
    """A value as text: short ones whole, others as a hash. `target` names what a reference means."""
    a = np.asarray(value) if not isinstance(value, np.ma.MaskedArray) else value.filled()
    if a.dtype.kind == "O" or a.dtype.hasobject:
        text = repr(plain(a.tolist(), target))
    elif a.dtype.kind == "V":
        # Padding binds nobody.
        text = repr(plain(a.tolist(), target))
    else:
        text = repr(a.tolist()) if a.size <= 12 else hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()
    if len(text) > 300:
        text = "%s... %s" % (text[:60], hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest())
    return "%s %s %s" % (a.dtype.str, a.shape, text)


def plain(x, target):
    if isinstance(x, np.ndarray):
        return plain(x.tolist(), target)
    if isinstance(x, (list, tuple)):
        return [plain(y, target) for y in x]
    if target and hasattr(x, "typecode"):
        return target(x)
    if isinstance(x, np.generic):
        return x.item()
    return x


def attempt(lines, what, function):
    try:
        lines.append("%s %s" % (what, function()))
    except Exception as why:
        lines.append("%s: %s" % (what, type(why).__name__))


# ---- h5py

def by_h5py(path):
    import h5py
    import hdf5plugin  # noqa: F401, it registers filters

    lines, f = [], h5py.File(path, "r")

    # By address: asking the library for an object's name takes it a walk through the file.
    names = {h5py.h5o.get_info(f.id).addr: "/"}
    f.visititems(lambda name, o: names.update({h5py.h5o.get_info(o.id).addr: name}))

    def target(reference):
        return names[h5py.h5o.get_info(h5py.h5r.dereference(reference, f.id)).addr] if reference else None

    def attributes(o):
        for name in sorted(o.attrs):
            def value():
                a = o.attrs.get_id(name)
                if name == "_NCProperties":
                    return a.shape, a.dtype.kind
                data = o.attrs[name]
                if isinstance(data, h5py.Empty):
                    return "empty", data.dtype
                if name == "REFERENCE_LIST":
                    return sorted((target(r[0]), int(r[1])) for r in data)
                return show(data, target)
            attempt(lines, "  @%s" % name, value)

    def visit(name, o):
        if isinstance(o, h5py.Dataset):
            p = o.id.get_create_plist()
            lines.append("dataset %s %s %s %s" % (name, o.dtype, o.shape, o.maxshape))
            lines.append("  layout %s chunks %s alloc %s fill %s %s order %s" % (
                p.get_layout(), o.chunks, p.get_alloc_time(), p.get_fill_time(), p.fill_value_defined(), p.get_attr_creation_order()))
            for i in range(p.get_nfilters()):
                lines.append("  filter %s" % (p.get_filter(i)[0::2],))
            attempt(lines, "  fill value", lambda: show(o.fillvalue))
            attempt(lines, "  scale", lambda: (o.is_scale, h5py.h5ds.is_scale(o.id)))
            attempt(lines, "  data", lambda: show(o[()], target) if o.shape is None or o.size < 1 << 24 else o.size)
        elif isinstance(o, h5py.Group):
            p = o.id.get_create_plist()
            lines.append("group %s order %s %s" % (name, p.get_link_creation_order(), p.get_attr_creation_order()))
            order = []
            if p.get_link_creation_order():
                o.id.links.iterate(lambda n: order.append(n), idx_type=h5py.h5.INDEX_CRT_ORDER)
            lines.append("  members %s" % sorted(order))
        else:
            lines.append("type %s %s" % (name, o.dtype))
        attributes(o)

    visit("/", f["/"])
    f.visititems(visit)
    f.close()
    return "\n".join(lines)


# ---- netCDF4

def by_netcdf4(path):
    import netCDF4

    lines = []

    def group(g):
        lines.append("group %s %s" % (g.path, g.data_model))
        for types in (g.cmptypes, g.vltypes, g.enumtypes):
            for t in types.values():
                lines.append(" type %s %s %s" % (t.name, t.dtype, getattr(t, "enum_dict", "")))
        for d in g.dimensions.values():
            lines.append(" dim %s %d %s" % (d.name, len(d), d.isunlimited()))
        for n in g.ncattrs():
            attempt(lines, " @" + n, lambda: show(g.getncattr(n)))
        for v in g.variables.values():
            lines.append(" var %s %s %s %s" % (v.name, v.dtype, v.dimensions, v.shape))
            attempt(lines, "  storage", lambda: (v.chunking(), v.filters(), v.endian(), v.quantization()))
            for n in v.ncattrs():
                attempt(lines, "  @" + n, lambda: show(v.getncattr(n)))
            v.set_auto_maskandscale(False)
            if v.dtype is not str:
                v.set_auto_chartostring(False)
            attempt(lines, "  data", lambda: show(v[...]) if v.size < 1 << 24 else v.size)
        for s in g.groups.values():
            group(s)

    with netCDF4.Dataset(path) as f:
        group(f)
    return "\n".join(lines)


# ---- h5netcdf

def by_h5netcdf(path):
    import h5netcdf
    import hdf5plugin  # noqa: F401

    lines = []

    def attributes(o, indent):
        for n in o.attrs:
            if n != "_NCProperties":
                attempt(lines, indent + "@" + n, lambda: show(o.attrs[n]))

    def group(g):
        lines.append("group %s" % g.name)
        for d in g.dimensions.values():
            lines.append(" dim %s %d %s" % (d.name, d.size, d.isunlimited()))
        attributes(g, " ")
        for v in g.variables.values():
            lines.append(" var %s %s %s %s" % (v.name, v.dtype, v.dimensions, v.shape))
            attempt(lines, "  storage", lambda: (v.chunks, v.compression, v.compression_opts, v.shuffle, v.fletcher32))
            attributes(v, "  ")
            attempt(lines, "  data", lambda: show(v[...]) if np.prod(v.shape) < 1 << 24 else v.shape)
        for s in g.groups.values():
            group(s)

    with h5netcdf.File(path, "r") as f:
        group(f)
    return "\n".join(lines)


READERS = {"h5py": by_h5py, "netcdf4": by_netcdf4, "h5netcdf": by_h5netcdf}


def main():
    read = READERS[sys.argv[1]]
    for path in sys.argv[2:]:
        # A library may end the whole process: then the runner knows where.
        try:
            text = read(path)
        except Exception as why:
            text = "!%s" % type(why).__name__
        print(json.dumps([path, text]), flush=True)


if __name__ == "__main__":
    main()
