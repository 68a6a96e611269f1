# SPDX-License-Identifier: MIT OR Apache-2.0
"""libhdf5 goes on with a file that was edited: go_on(path) appends, fills attributes and links,
renames and deletes, and says what must be seen then."""
import h5py
import hdf5plugin  # noqa: F401, it registers filters
import numpy as np

import look

ROWS = 40           # enough chunks to split a node of a v1 B-tree where chunks are small


def first(f):
    """A dataset of numbers and, if there is one, one that grows."""
    found = [f[path] for path, o in look.Look(f).members if isinstance(o, h5py.Dataset) and o.shape and o.dtype.kind in "iuf"]
    growing = [d for d in found if d.chunks and d.maxshape[0] is None and not d.is_scale and d.size < 1 << 20]
    return (growing or found or [None])[0], bool(growing)


def go_on(path):
    """("edited", what), as operations of change.py say it."""
    touched, facts, added, renamed = [], [], [], {}
    with h5py.File(path, "r+") as f:
        d, grows = first(f)
        if d is not None and grows:
            before = d[()]
            old = d.shape
            d.resize((old[0] + ROWS,) + old[1:])
            more = (np.arange(int(np.prod((ROWS,) + old[1:]))) % 97).astype(d.dtype).reshape((ROWS,) + old[1:])
            d[old[0]:] = more
            facts.append(("data", d.name, np.concatenate([before, more])))
            touched += [(d.name, "data"), (d.name, "shape")]
        if d is not None:
            kept = {i: np.arange(i % 3 + 1) for i in range(20)}
            for i, value in kept.items():
                d.attrs["of h5py %02d" % i] = value
                touched.append((d.name, "@of h5py %02d" % i))
            del d.attrs["of h5py 07"], kept[7]
            kept[0] = np.array([9])
            d.attrs.modify("of h5py 00", kept[0])
            facts += [("attribute", d.name, "of h5py %02d" % i, value) for i, value in kept.items()]
            facts.append(("attribute gone", d.name, "of h5py 07"))
        for i in range(20):
            name = "by h5py %02d" % i
            f.create_dataset(name, data=np.arange(i + 1), chunks=(2,), maxshape=(None,))
            facts.append(("data", "/" + name, np.arange(i + 1)))
            added.append("/" + name)
        f.create_group("group of h5py").attrs["level"] = 1
        added.append("/group of h5py")
        f.move("by h5py 03", "moved by h5py")
        del f["by h5py 05"]
        facts = [x for x in facts if x[1] not in ("/by h5py 03", "/by h5py 05")]
        facts += [("data", "/moved by h5py", np.arange(4)), ("gone", "/by h5py 05"), ("gone", "/by h5py 03")]
        added.append("/moved by h5py")
    return "edited", {"touched": touched, "renamed": renamed, "added": added, "facts": facts, "types": [], "stay": []}
