# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the files of run.py by h5py: `make.py FOLDER CASES`, with a list of cases as JSON: the name of the file, what
it is ("external", "virtual", "link"), and how it names the source."""
import json
import sys

import h5py
import numpy as np

N = 4
FILL = -9.0


def source(path, base):
    with h5py.File(path + ".h5", "w") as f:
        f["y"] = base + np.arange(N, dtype="f8")
        f.create_dataset("g", data=base + np.arange(N, dtype="f8"), maxshape=(None,))
    (base + np.arange(N, dtype="f8")).tofile(path + ".bin")


def case(path, kind, name):
    with h5py.File(path, "w", track_order=True) as f:
        f["own"] = np.array([1.0, 2.0])
        if kind == "external":
            f.create_dataset("v", (N,), "f8", external=[(name, 0, 8 * N)], fillvalue=FILL)
        elif kind == "virtual":
            layout = h5py.VirtualLayout((N,), "f8")
            layout[:] = h5py.VirtualSource(name, "y", (N,))
            f.create_virtual_dataset("v", layout, fillvalue=FILL)
        elif kind == "link":
            f["v"] = h5py.ExternalLink(name, "/y")
        elif kind == "link in":
            f["v"] = h5py.ExternalLink(name, "/v")
        elif kind == "halves":
            # The first half from the source beside, the second one from where `name` says.
            layout = h5py.VirtualLayout((2 * N,), "f8")
            layout[:N] = h5py.VirtualSource("src.h5", "y", (N,))
            layout[N:] = h5py.VirtualSource(name, "y", (N,))
            f.create_virtual_dataset("v", layout, fillvalue=FILL)
        elif kind == "slots":
            f.create_dataset("v", (2 * N,), "f8", external=[("src.bin", 0, 8 * N), (name, 0, 8 * N)], fillvalue=FILL)
        elif kind in ("endless", "numbered"):
            # As long as the source, or as there are sources: `name` with %b for their numbers.
            count, block = (h5py.h5s.UNLIMITED, 1) if kind == "endless" else (h5py.h5s.UNLIMITED, N)
            whole = h5py.h5s.create_simple((0,), (h5py.h5s.UNLIMITED,))
            whole.select_hyperslab((0,), (count,), (block,), (block,))
            if kind == "endless":
                one = h5py.h5s.create_simple((0,), (h5py.h5s.UNLIMITED,))
                one.select_hyperslab((0,), (count,), (1,), (1,))
            else:
                one = h5py.h5s.create_simple((N,))
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_virtual(whole, name.encode(), b"g" if kind == "endless" else b"y", one)
            h5py.h5d.create(f.id, b"v", h5py.h5t.NATIVE_DOUBLE, whole, dcpl)
        else:
            raise ValueError(kind)


if __name__ == "__main__":
    folder, cases = sys.argv[1:]
    for path, base in json.loads(cases)["sources"]:
        source(path, base)
    for path, kind, name in json.loads(cases)["cases"]:
        case(path, kind, name)
