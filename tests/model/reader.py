#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads files for model.py in a process of its own: reader.py LIBRARY, or reader.py h5py.

A line with a path comes in; the length and the pickle of ("ok", dump) or ("error", text) go out.
"""
import pickle
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def by_h5py(path):
    """{path of a dataset: (attribute names, array or None)} of what h5py reads."""
    import h5py

    found = {}
    hidden = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"}
    with h5py.File(path, "r") as f:
        def visit(name, o):
            atts = set()
            for n in o.attrs:
                o.attrs[n]
                atts.add(n)
            name = "/".join(x.removeprefix("_nc4_non_coord_") for x in name.split("/"))
            if isinstance(o, h5py.Dataset):
                placeholder = o.attrs.get("NAME", b"")
                if not (isinstance(placeholder, bytes) and placeholder.startswith(b"This is a netCDF dimension but")):
                    try:
                        data = np.asarray(o[()])
                    except OSError as why:
                        found[name] = (atts - hidden, str(why))
                        return
                    found[name] = (atts - hidden, data if data.dtype.kind in "iufS" else None)
        f.visititems(visit)
    return found


def main():
    if sys.argv[1] == "h5py":
        read = by_h5py
    else:
        import nc
        read = nc.Lib(sys.argv[1]).dump
    for line in sys.stdin:
        try:
            answer = "ok", read(line.rstrip("\n"))
        except Exception as why:
            answer = "error", "%s: %s" % (type(why).__name__, why)
        data = pickle.dumps(answer)
        sys.stdout.buffer.write(b"%d\n" % len(data) + data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
