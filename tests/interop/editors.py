#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Changes netCDF-4 files in place with Python's libraries: editors.py h5py|netcdf4|h5netcdf FILE...

What is done follows from what is in the file, so that two files that hold the same are changed in
the same way. One line of JSON for each file: [file, text], the text telling what could not be done.
"""
import json
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def numbers(shape, dtype, seed):
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 + seed) % 100).astype(dtype).reshape(shape)


def attempt(lines, what, function):
    try:
        function()
    except Exception as why:
        lines.append("%s: %s" % (what, type(why).__name__))


def by_netcdf4(path):
    import netCDF4

    lines = []

    def group(g, seed):
        for i, v in enumerate(list(g.variables.values())):
            v.set_auto_maskandscale(False)
            unlimited = [d.isunlimited() for d in v.get_dims()]
            if isinstance(v.dtype, np.dtype) and v.dtype.kind in "iuf" and v.size < 1 << 20:
                if any(unlimited) and all(n or u for n, u in zip(v.shape, unlimited)):
                    where = tuple(slice(n, n + 1) if u else slice(None) for n, u in zip(v.shape, unlimited))
                    shape = tuple(1 if u else n for n, u in zip(v.shape, unlimited))
                    attempt(lines, "append " + v.name, lambda: v.__setitem__(where, numbers(shape, v.dtype, i)))
                elif v.size:
                    attempt(lines, "put " + v.name, lambda: v.__setitem__(Ellipsis, numbers(v.shape, v.dtype, i)))
            attempt(lines, "attribute", lambda: v.setncattr("edited", "by netCDF4-python"))
            for n in v.ncattrs()[:1]:
                if n not in ("_FillValue", "edited"):
                    attempt(lines, "delete", lambda: v.delncattr(n))
        attempt(lines, "attributes", lambda: g.setncatts({"text": "added", "numbers": np.arange(4.0), "unicode": "h\xe4"}))
        for s in list(g.groups.values()):
            group(s, seed + 1)

    with netCDF4.Dataset(path, "a") as f:
        group(f, 1)
        f.createDimension("python_dim", 5)
        v = f.createVariable("python_var", "f4", ("python_dim",), zlib=True, fletcher32=True, fill_value=-1)
        v[1:4] = [1, 2, 3]
        f.createVariable("python_dim", "i4", ("python_dim",))[:] = np.arange(5)
        if f.data_model == "NETCDF4":
            g = f.createGroup("python group/inside")
            g.createDimension("t", None)
            g.createVariable("s", str, ("t",))[0:3] = np.array(["a", "bc", ""], object)
    return "\n".join(lines)


def by_h5py(path):
    import h5py
    import hdf5plugin  # noqa: F401

    lines, f = [], h5py.File(path, "r+")
    datasets = []
    f.visititems(lambda name, o: datasets.append(o) if isinstance(o, h5py.Dataset) else None)
    for i, d in enumerate(datasets):
        placeholder = d.attrs.get("NAME", b"")
        if isinstance(placeholder, bytes) and placeholder.startswith(b"This is a netCDF dimension"):
            continue
        if d.dtype.kind in "iuf" and d.shape and d.size < 1 << 20:
            if d.chunks and any(m is None for m in d.maxshape) and not d.is_scale:
                old = d.shape
                shape = tuple(n + 1 if m is None else n for n, m in zip(d.shape, d.maxshape))
                attempt(lines, "resize " + d.name, lambda: d.resize(shape))
                last = tuple(slice(n - 1, n) if n != o else slice(None) for n, o in zip(d.shape, old))
                attempt(lines, "append " + d.name, lambda: d.__setitem__(last, numbers(d[last].shape, d.dtype, i)))
            elif d.size:
                attempt(lines, "put " + d.name, lambda: d.__setitem__(Ellipsis, numbers(d.shape, d.dtype, i)))
        attempt(lines, "attribute", lambda: d.attrs.create("edited", np.arange(i % 5 + 1)))
        attempt(lines, "modify", lambda: d.attrs.modify("edited", np.arange(i % 5 + 1) * 2))
        for n in sorted(d.attrs):
            if n.islower() and n not in ("edited", "_fillvalue") and not n.startswith("_"):
                attempt(lines, "delete " + n, lambda: d.attrs.__delitem__(n))
                break
    for o in [f] + datasets:
        if len(o.attrs) < 150:
            continue
        # So many that they are edited where they are.
        for i, n in enumerate(sorted(n for n in o.attrs if n.islower() and not n.startswith("_"))):
            if i % 3 == 0:
                attempt(lines, "delete " + n, lambda: o.attrs.__delitem__(n))
            elif i % 3 == 1:
                attempt(lines, "rename " + n, lambda: h5py.h5a.rename(o.id, n.encode(), b"by h5py, " + n.encode()))
            elif i % 6 == 2:
                attempt(lines, "longer " + n, lambda: o.attrs.create(n, np.arange(i % 90)))
        for i in range(200):
            attempt(lines, "create", lambda: o.attrs.create("created %d" % i, np.arange(i % 90)))
    for n in range(20):
        f.attrs["from h5py %d" % n] = "x" * n
    g = f.create_group("h5py group", track_order=True)
    scale = g.create_dataset("h5py_dim", data=np.arange(4))
    scale.make_scale("h5py_dim")
    user = g.create_dataset("user", data=np.arange(8.0).reshape(4, 2), chunks=(2, 2), compression="gzip", shuffle=True, track_order=True)
    user.dims[0].attach_scale(scale)
    f.close()
    return "\n".join(lines)


def by_h5netcdf(path):
    import h5netcdf
    import hdf5plugin  # noqa: F401

    lines = []
    with h5netcdf.File(path, "a") as f:
        def group(g):
            for i, v in enumerate(list(g.variables.values())):
                if getattr(v.dtype, "kind", "") in "iuf" and v.shape and np.prod(v.shape) < 1 << 20 and 0 not in v.shape:
                    attempt(lines, "put " + v.name, lambda: v.__setitem__(Ellipsis, numbers(v.shape, v.dtype, i)))
                attempt(lines, "attribute", lambda: v.attrs.__setitem__("edited", "by h5netcdf"))
            attempt(lines, "attribute", lambda: g.attrs.__setitem__("count", np.int32(len(g.variables))))
            for s in list(g.groups.values()):
                group(s)
        group(f)

        def more():
            f.dimensions["h5netcdf_dim"] = 4
            f.create_variable("h5netcdf_var", ("h5netcdf_dim",), float, compression="gzip")[...] = np.arange(4)
            f.dimensions["h5netcdf_time"] = None
            v = f.create_variable("h5netcdf_time", ("h5netcdf_time",), "i4")
            f.resize_dimension("h5netcdf_time", 3)
            v[...] = np.arange(3)
            g = f.create_group("h5netcdf group")
            g.create_variable("inside", ("h5netcdf_dim",), "i2")[...] = np.arange(4)
        attempt(lines, "definitions", more)
    return "\n".join(lines)


EDITORS = {"h5py": by_h5py, "netcdf4": by_netcdf4, "h5netcdf": by_h5netcdf}


def main():
    edit = EDITORS[sys.argv[1]]
    for path in sys.argv[2:]:
        try:
            text = edit(path)
        except Exception as why:
            text = "!%s" % type(why).__name__
        print(json.dumps([path, text]), flush=True)


if __name__ == "__main__":
    main()
