"""Makes the files of links and attributes: python3 links_attributes.py (h5py 3.16, HDF5 2.0).

What h5py does not offer is called in the libhdf5 that it has loaded.
"""

import ctypes

import h5py
import numpy as np
from h5py import h5a, h5f, h5g, h5p, h5s, h5t

with open("/proc/self/maps") as maps:
    HDF5 = next(line.split()[-1] for line in maps if "libhdf5-" in line or "libhdf5.so" in line)
lib = ctypes.CDLL(HDF5)
H = ctypes.c_int64

# Neither in the order of names nor in that of hashes.
NAMES = [b"link%02d" % (i * 17 % 40) for i in range(40)]


def create(name, latest, fcpl=None):
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5f.LIBVER_LATEST if latest else h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)
    return h5f.create(name, h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl)


def group(parent, name, tracked=0, deflate=False):
    gcpl = h5p.create(h5p.GROUP_CREATE)
    gcpl.set_link_creation_order(tracked)
    gcpl.set_attr_creation_order(tracked)
    if deflate:
        assert lib.H5Pset_deflate(H(gcpl.id), ctypes.c_uint(6)) >= 0
    return h5g.create(parent, name, gcpl=gcpl)


def attribute(where, name, value, tid=None):
    value = np.asarray(value)
    space = h5s.create_simple(value.shape) if value.shape else h5s.create(h5s.SCALAR)
    a = h5a.create(where, name, tid or h5t.py_create(value.dtype), space)
    a.write(value)


def links(g, names, target):
    for name in names:
        g.links.create_hard(name, g, target)


# Nodes of two entries: a version 1 B-tree of several levels over few names.
fcpl = h5p.create(h5p.FILE_CREATE)
assert lib.H5Pset_sym_k(H(fcpl.id), ctypes.c_uint(2), ctypes.c_uint(1)) >= 0
f = create(b"symbol_table.h5", False, fcpl)
links(f, NAMES, b"/")
f.links.create_soft(b"soft", b"/link03/link04")
f.links.create_soft(b"dangling", b"nowhere")
f.links.create_soft(b"loop", b"./loop")
for i, attr in enumerate(NAMES[:12]):
    attribute(h5g.open(f, b"/"), attr, np.int32(i))
f.close()

f = create(b"links.h5", True)
both = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED
links(group(f, b"ordered", both), NAMES, b"/")
links(group(f, b"tracked", h5p.CRT_ORDER_TRACKED), NAMES, b"/")
links(group(f, b"hashed"), NAMES, b"/")
links(group(f, b"filtered", 0, True), NAMES, b"/")
few = group(f, b"few", both)
links(few, NAMES[:2], b"/ordered")
few.links.create_soft(b"soft", b"../few")
few.links.create_soft(b"to-root", b"/hashed/./link07//few")
few.links.create_soft(b"chain", b"to-root")
few.links.create_external(b"external", b"other.h5", b"/there")
few.links.create_soft(b"over", b"external/and")
chain = group(f, b"chain", both)
for i in range(17):
    chain.links.create_soft(b"%d" % (i + 1), b"%d" % i)
chain.links.create_hard(b"0", chain, b"/few")
f.close()

f = create(b"attributes.h5", True)
for name, flags in [(b"ordered", both), (b"tracked", h5p.CRT_ORDER_TRACKED), (b"hashed", 0)]:
    g = group(f, name, flags)
    for i, attr in enumerate(NAMES[:20]):
        attribute(g, attr, np.int32(i))
    few = group(f, b"few-" + name, flags)
    for i, attr in enumerate(NAMES[:5]):
        attribute(few, attr, np.int32(i))
g = group(f, b"large", both)
for i in range(9):
    attribute(g, b"small%d" % i, np.float32(i))
attribute(g, b"huge", np.arange(1200, dtype="<i4"))
committed = h5t.STD_U16BE.copy()
committed.commit(f, b"committed")
attribute(f, b"of committed type", np.uint16([1, 2, 3]), committed)
f.close()

# All that can be shared is, in a list that becomes a B-tree.
fcpl = h5p.create(h5p.FILE_CREATE)
assert lib.H5Pset_shared_mesg_nindexes(H(fcpl.id), ctypes.c_uint(2)) >= 0
ATTR, REST = 1 << 12, (1 << 1) | (1 << 3) | (1 << 5) | (1 << 11)
assert lib.H5Pset_shared_mesg_index(H(fcpl.id), 0, ctypes.c_uint(ATTR), ctypes.c_uint(20)) >= 0
assert lib.H5Pset_shared_mesg_index(H(fcpl.id), 1, ctypes.c_uint(REST), ctypes.c_uint(12)) >= 0
assert lib.H5Pset_shared_mesg_phase_change(H(fcpl.id), 12, 8) >= 0
f = create(b"shared.h5", True, fcpl)
for name, n in [(b"one", 5), (b"two", 5), (b"many", 20)]:
    g = group(f, name, both)
    for i, attr in enumerate(NAMES[:n]):
        attribute(g, attr, np.arange(i, i + 3, dtype="<i8"))
f.close()
