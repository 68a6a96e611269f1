"""Makes the files of tests/remote_trips.rs: make_remote.py, with h5py. Files are packed, since most of each is zeros.

`objects-*` have 20, 200 or 2000 datasets with attributes, two groups deep, their headers far apart from each other; `old` is what the first
libraries write (symbol tables, version 1 headers), `new` what the newest can (links and attributes in heaps with B-trees). `index-*` have
datasets of 10, 1000 and 10000 chunks in one kind of index. `names` names other files.
"""
import gzip
import io
from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).resolve().parent


def pack(name, buffer):
    with open(HERE / (name + ".h5.gz"), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(buffer.getvalue())


def objects(name, libver, n):
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=libver, track_order=False) as file:
        x = file.create_dataset("x", data=np.arange(4, dtype="i4"))
        x.make_scale("x")
        y = file.create_dataset("y", data=np.arange(512, dtype="i4"))
        y.make_scale("y")
        inner = file.create_group("inner/most")
        text = h5py.string_dtype()
        for i in range(n):
            group = inner if i % 4 == 3 else file
            var = group.create_dataset("v%d" % i, shape=(4, 512), dtype="i4", fillvalue=-1)
            var[...] = i
            var.dims[0].attach_scale(x)
            var.dims[1].attach_scale(y)
            var.attrs["units"] = np.bytes_("metres")
            var.attrs.create("comment", "number %d" % i, dtype=text)
            if i % 10 == 0:
                for j in range(12):
                    var.attrs["a%d" % j] = np.arange(j + 1, dtype="f8")
    pack("objects-%s-%d" % (name, n), buffer)


def index(name, libver, maxshape, **more):
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=libver) as file:
        # What follows is behind what the first request to a server brings.
        file.create_dataset("first", data=np.zeros(200000, dtype="i4"))
        for n in (10, 1000, 10000):
            rank = len(maxshape)
            shape = (n * 4,) if rank == 1 else (n // 5, 20)
            chunks = (4,) if rank == 1 else (1, 4)
            var = file.create_dataset("v%d" % n, shape=shape, maxshape=maxshape, chunks=chunks, dtype="i4", **more)
            # Each chunk by itself, so that other things may lie between them.
            var[...] = np.arange(n * 4, dtype="i4").reshape(shape)
        file.create_dataset("strings", data=np.array(["text %d of some length" % i for i in range(3000)], dtype=object),
                            dtype=h5py.string_dtype())
    pack("index-" + name, buffer)


def names():
    """A virtual dataset, external data and a link, each with the name of another file."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver="latest") as file:
        layout = h5py.VirtualLayout(shape=(10,), dtype="i4")
        layout[0:5] = h5py.VirtualSource("other.h5", "v", shape=(5,))
        layout[5:10] = h5py.VirtualSource("never.h5", "v", shape=(5,))
        file.create_virtual_dataset("virtual", layout, fillvalue=-3)
        file.create_dataset("external", shape=(10,), dtype="i4", external=[("/etc/hostname", 0, 40)])
        file["link"] = h5py.ExternalLink("other.h5", "/v")
        file.create_dataset("own", data=np.arange(10, dtype="i4"))
    pack("names", buffer)


def main():
    names()
    for n in (20, 200, 2000):
        objects("old", "earliest", n)
        objects("new", "latest", n)
    index("btree-v1", "earliest", (None,))
    index("fixed-array", "latest", (40000,))
    index("extensible-array", "latest", (None,))
    index("btree-v2", "latest", (None, None))
    index("filtered", "latest", (None,), compression="gzip")


if __name__ == "__main__":
    main()
