"""Virtual datasets of many forms, in both versions of the mapping, and what HDF5 reads from them.

    python make_virtual.py FOLDER

writes virtual-*.h5 and virtual.tsv into FOLDER. Element i (row-major) of source number k is
1000 * k + i, so that a reader can check a mapping without reading the sources.
"""

import sys

import h5py
import numpy as np

UNLIMITED = h5py.h5s.UNLIMITED


def space(dims, maxdims=None):
    return h5py.h5s.create_simple(dims, maxdims or dims)


def slab(dims, start, count, stride=None, block=None, maxdims=None):
    made = space(dims, maxdims)
    made.select_hyperslab(start, count, stride, block)
    return made


def union(dims, *boxes):
    made = space(dims)
    made.select_none()
    for start, count in boxes:
        made.select_hyperslab(start, count, op=h5py.h5s.SELECT_OR)
    return made


def points(dims, coords):
    made = space(dims)
    made.select_elements(coords)
    return made


def source(file, out, number, name, dims, maxdims=None):
    values = 1000 * number + np.arange(int(np.prod(dims)), dtype="i4").reshape(dims)
    file.create_dataset(name, data=values, maxshape=maxdims, chunks=maxdims and dims)
    out.write(f"S\t{name}\t{number}\t{','.join(map(str, dims))}\n")


def virtual(file, out, path, name, dims, mappings, maxdims=None):
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_fill_value(np.array([-1], dtype="i4"))
    for target, dataset, selection in mappings:
        dcpl.set_virtual(target, b".", dataset.encode(), selection)
    kind = h5py.h5t.NATIVE_INT32
    made = h5py.h5d.create(file.id, name.encode(), kind, space(dims, maxdims), dcpl)
    address = h5py.h5o.get_info(made).addr
    del made
    values = file[name][...]
    shape = ",".join(map(str, values.shape))
    out.write(f"V\t{path}\t{name}\t{address}\t{shape}\t{','.join(map(str, values.ravel()))}\n")


def make(folder, out, version):
    path = f"virtual-{version}.h5"
    with h5py.File(f"{folder}/{path}", "w", libver=(version, version)) as file:
        source(file, out, 1, "a", (4, 6))
        source(file, out, 2, "b", (4, 6))
        source(file, out, 3, "line", (12,))
        source(file, out, 4, "cube", (2, 3, 4))
        source(file, out, 5, "growing", (5, 3), (None, 3))
        for number in range(3):
            source(file, out, 6 + number, f"block-{number}", (2, 3))
        grow = (UNLIMITED, 3)

        virtual(file, out, path, "stack", (2, 4, 6), [
            (slab((2, 4, 6), (0, 0, 0), (1, 4, 6)), "a", space((4, 6))),
            (slab((2, 4, 6), (1, 0, 0), (1, 4, 6)), "b", space((4, 6))),
        ])
        virtual(file, out, path, "interleaved", (8, 6), [
            (slab((8, 6), (0, 0), (4, 6), (2, 1)), "a", space((4, 6))),
            (slab((8, 6), (1, 0), (4, 6), (2, 1)), "b", space((4, 6))),
        ])
        virtual(file, out, path, "parts", (6, 7), [
            (slab((6, 7), (1, 0), (2, 2), (3, 4), (2, 3)),
             "a", slab((4, 6), (0, 0), (1, 1), (1, 1), (4, 6))),
            (slab((6, 7), (0, 1), (1, 6)), "b", slab((4, 6), (3, 0), (1, 6))),
        ])
        virtual(file, out, path, "reshaped", (24,), [
            (slab((24,), (0,), (12,), (2,)), "line", space((12,))),
            (slab((24,), (1,), (12,), (2,)), "cube", slab((2, 3, 4), (0, 0, 0), (2, 3, 2))),
        ])
        virtual(file, out, path, "irregular", (5, 6), [
            (union((5, 6), ((0, 0), (2, 2)), ((1, 3), (2, 3))),
             "cube", union((2, 3, 4), ((0, 1, 1), (2, 2, 2)), ((1, 0, 0), (1, 1, 2)))),
        ])
        # HDF5 2.0 takes no points for mappings.
        virtual(file, out, path, "grown", (5, 3), [
            (slab((5, 3), (0, 0), (1, 1), (1, 1), (UNLIMITED, 3), grow),
             "growing", slab((5, 3), (0, 0), (1, 1), (1, 1), (UNLIMITED, 3), grow)),
        ], grow)
        virtual(file, out, path, "grown-blocks", (9, 3), [
            (slab((9, 3), (1, 0), (UNLIMITED, 1), (4, 1), (2, 3), grow),
             "growing", slab((5, 3), (0, 0), (UNLIMITED, 1), (1, 1), (1, 3), grow)),
        ], grow)
        virtual(file, out, path, "numbered", (9, 3), [
            (slab((9, 3), (1, 0), (UNLIMITED, 1), (2, 1), (2, 3), grow),
             "block-%b", space((2, 3))),
        ], grow)
        virtual(file, out, path, "overlapping", (4, 6), [
            (space((4, 6)), "a", space((4, 6))),
            (slab((4, 6), (1, 1), (2, 3)), "b", slab((4, 6), (0, 0), (2, 3))),
        ])


folder = sys.argv[1]
with open(f"{folder}/virtual.tsv", "w") as out:
    make(folder, out, "v110")
    make(folder, out, "latest")
