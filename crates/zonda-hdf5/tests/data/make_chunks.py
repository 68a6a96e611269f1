"""Datasets with every kind of chunk index, and where HDF5 finds their chunks.

    python make_chunks.py FOLDER [large]

writes chunks-*.h5.gz and chunks.tsv into FOLDER; with `large` other files, of 100,000 chunks and more.
The stored bytes of each chunk are its dataset's number and its coordinates as text, so the script
finds them in the file by itself: HDF5's own answer is wrong for some extensible arrays.
"""

import ctypes
import glob
import gzip
import itertools
import os
import re
import sys
import zlib

import h5py
import numpy as np

EARLY = h5py.h5d.ALLOC_TIME_EARLY

# For two calls that h5py lacks: the library that it has loaded.
(library,) = glob.glob(f"{os.path.dirname(h5py.__file__)}/../h5py.libs/libhdf5-*.so*")
library = ctypes.CDLL(library)


def set_istore_k(fcpl, k):
    assert library.H5Pset_istore_k(ctypes.c_int64(fcpl.id), ctypes.c_uint(k)) >= 0


def leave_edges_unfiltered(dcpl):
    assert library.H5Pset_chunk_opts(ctypes.c_int64(dcpl.id), ctypes.c_uint(2)) >= 0



def number(coords):
    """The same for the same chunk, else scattered."""
    return zlib.crc32(repr(coords).encode())


def text(coords):
    return ",".join(str(coord) for coord in coords)


def content(serial, coords, size):
    return f"#{serial}:{text(coords)}".encode().ljust(size, b".")


def create(file, name, shape, maxshape, chunks, filtered, early=False, edges=True):
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(chunks)
    if filtered:
        dcpl.set_shuffle()
        dcpl.set_deflate(1)
    if early:
        dcpl.set_alloc_time(EARLY)
    if not edges:
        leave_edges_unfiltered(dcpl)
    unlimited = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple(
        shape, tuple(unlimited if dim is None else dim for dim in maxshape)
    )
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(16)
    kind.set_strpad(h5py.h5t.STR_NULLPAD)
    return h5py.h5d.create(file.id, name.encode(), kind, space, dcpl)


def fill(dataset, serial, chunks, coords, filtered):
    """Writes a chunk; gives what its bytes begin with, their number and its filter mask."""
    offset = tuple(coord * length for coord, length in zip(coords, chunks))
    chance = number(coords)
    size, mask = 16 * int(np.prod(chunks)), 0
    if filtered:
        size, mask = 16 + chance % 23, (0, 0, 1, 3)[chance // 7 % 4]
    dataset.write_direct_chunk(offset, content(serial, coords, size), mask)
    return coords, size, mask


class File:
    """A file that is being made, and what is known of its chunks."""

    def __init__(self, folder, path, out, file):
        self.folder, self.path, self.out, self.file = folder, path, out, file
        self.known = []

    def add(self, kind, shape, maxshape, chunks, filtered, keep, shrunk=None, places=None, **more):
        serial = len(self.known)
        name = f"{kind}-{len(shape)}-{'f' if filtered else 'u'}-{serial}"
        made = create(self.file, name, shape, maxshape, chunks, filtered, **more)
        places = places or grid(shape, chunks)
        filled = [
            fill(made, serial, chunks, coords, filtered) for coords in places if keep(coords)
        ]
        if shrunk:
            made.set_extent(shrunk)
            inside = set(grid(shrunk, chunks))
            filled = [row for row in filled if row[0] in inside]
        address = h5py.h5o.get_info(made).addr
        if kind != "extensible":
            # For these, HDF5 2.0 gives wrong answers unless the first dimension is the unlimited one.
            answers = [
                (made.get_chunk_info_by_coord(tuple(np.multiply(row[0], chunks)))) for row in filled
            ]
            assert [(answer.size, answer.filter_mask) for answer in answers] == [
                (size, mask) for _, size, mask in filled
            ]
        self.known.append((name, address, kind, filtered, not more.get("edges", True), filled))

    def close(self):
        self.file.close()
        with open(f"{self.folder}/{self.path}", "rb") as file:
            stored = file.read()
        # Most of a small file is room for more.
        with open(f"{self.folder}/{self.path}.gz", "wb") as file:
            file.write(gzip.compress(stored, mtime=0))
        os.remove(f"{self.folder}/{self.path}")
        places = {}
        for match in re.finditer(rb"#\d+:[\d,]+", stored):
            places.setdefault(match.group(), []).append(match.start())
        for serial, (name, address, kind, filtered, edges, filled) in enumerate(self.known):
            self.out.write(f"D\t{self.path}\t{name}\t{address}\t{kind}\t{int(edges)}\n")
            for coords, size, mask in filled:
                wanted = content(serial, coords, size)
                (at,) = places[content(serial, coords, 0)]
                assert stored[at : at + size] == wanted
                self.out.write(f"C\t{text(coords)}\t{at}\t{size}\t{mask}\n")


def grid(shape, chunks):
    counts = [-(-dim // length) for dim, length in zip(shape, chunks)]
    return itertools.product(*(range(count) for count in counts))


def most(coords):
    return number(coords) % 4 != 0


def some(coords):
    return number(coords) % 4 == 0


def few(coords):
    return number(coords) % 97 == 0


def every(_):
    return True


SHAPES = [((11,), (2,)), ((7, 5), (2, 2)), ((3, 2, 5), (1, 1, 2))]


def every_kind(file, kinds, shape, chunks, filtered):
    rank = len(shape)
    if "btree1" in kinds:
        file.add("btree1", shape, (None,) * rank, chunks, filtered, most)
        return
    file.add("single", chunks, chunks, chunks, filtered, every)
    if not filtered:
        file.add("implicit", shape, shape, chunks, False, every, early=True)
    file.add("fixed", shape, shape, chunks, filtered, most)
    wider = tuple(dim + 4 for dim in shape)
    file.add("fixed", shape, wider, chunks, filtered, most)
    for place in range(rank):
        free = tuple(None if i == place else wider[i] for i in range(rank))
        file.add("extensible", shape, free, chunks, filtered, most)
    if rank > 1:
        file.add("btree2", shape, (None,) * rank, chunks, filtered, most)


def small(folder, out):
    for version, userblock, width in [
        ("earliest", 0, 8),
        ("v110", 0, 8),
        ("latest", 0, 8),
        ("earliest", 512, 4),
        ("v110", 1024, 4),
    ]:
        path = f"chunks-{version}-{width}.h5"
        fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        fcpl.set_userblock(userblock)
        fcpl.set_sizes(width, width)
        set_istore_k(fcpl, 2)
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        bounds = {
            "earliest": (h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V110),
            "v110": (h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110),
            "latest": (h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST),
        }
        fapl.set_libver_bounds(*bounds[version])
        made = h5py.h5f.create(f"{folder}/{path}".encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)
        file = File(folder, path, out, h5py.File(made))
        tree = "btree1" if version == "earliest" else "btree2"
        kinds = ["btree1"] if version == "earliest" else []
        all_ranks = userblock == 0 and version != "latest"
        for (shape, chunks), filtered in itertools.product(SHAPES, [False, True]):
            # Only the sizes of filtered chunks differ with the latest version.
            if all_ranks or len(shape) == 2 and (filtered or version != "latest"):
                every_kind(file, kinds, shape, chunks, filtered)
        if all_ranks:
            # Several levels; then coordinates outside the extent in the tree's separators.
            shape, shrunk = ((7, 8), (6, 3)) if tree == "btree1" else ((11, 12), (10, 5))
            file.add(tree, shape, (None, None), (1, 1), False, most)
            file.add(tree, shape, (None, None), (1, 1), False, most, shrunk=shrunk)
        if version == "v110" and userblock == 0:
            # Super blocks; pages, of which few are written; edges without filters.
            file.add("extensible", (2, 150), (2, None), (1, 1), True, some)
            for n in 1024, 1030:
                file.add("fixed", (n,), (n,), (1,), False, few)
            # A page that was never written, and a chunk right after it.
            file.add("fixed", (1030,), (1030,), (1,), False, every, places=[(1024,)])
            places = [(3,), (200,), (131060 + 2 * 2048 + 1030,)]
            file.add("extensible", (140000,), (None,), (1,), False, every, places=places)
            file.add("fixed", (7, 5), (7, 5), (2, 2), True, every, edges=False)
        file.close()


def large(folder, out):
    def create(path, version):
        return File(folder, path, out, h5py.File(f"{folder}/{path}", "w", libver=version))

    file = create("chunks-large-1.h5", "earliest")
    file.add("btree1", (40, 500), (None, None), (1, 1), True, most)
    file.close()
    file = create("chunks-large-2.h5", ("v110", "v110"))
    file.add("btree2", (40, 500), (None, None), (1, 1), True, most)
    file.add("fixed", (30, 100), (40, 110), (1, 1), True, most)
    # 131,060 elements come before the first data blocks with pages.
    file.add("extensible", (3, 60000), (3, None), (1, 1), False, few)
    file.add("extensible", (140000,), (None,), (1,), True, few)
    file.close()


if __name__ == "__main__":
    folder = sys.argv[1]
    is_large = sys.argv[2:] == ["large"]
    with open(f"{folder}/chunks{'-large' if is_large else ''}.tsv", "w") as out:
        (large if is_large else small)(folder, out)
