"""Copies of files that h5py wrote, read by h5py: values, filters, fill values, missing chunks.

    h5py_same.py ZONDA

Filters that Zonda has no code for are applied by nobody here: their chunks are written as they are.
"""

import subprocess
import sys

import h5py
import numpy as np

ZONDA = sys.argv[1]


def make(path):
    rng = np.random.default_rng(7)
    with h5py.File(path, "w", track_order=True) as f:
        f.create_dataset("plain", data=rng.normal(size=(40, 50)).astype(">f4"))
        f.create_dataset("packed", data=np.arange(2000).reshape(40, 50), chunks=(7, 11),
                         compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("lzf", data=np.arange(1000, dtype="u2"), chunks=(64,), compression="lzf")
        f.create_dataset("scaled", data=np.arange(1000) // 3, chunks=(100,), scaleoffset=0)
        sparse = f.create_dataset("sparse", shape=(10000, 10000), chunks=(100, 100), dtype="f8", fillvalue=-9.5)
        sparse[150:160, 9999] = 4
        zeros = f.create_dataset("zeros", shape=(100000, 1000), chunks=(100, 100), dtype="f8")
        zeros[5, 5] = 1
        f.create_dataset("text", data=["a", "", "Grüße"], dtype=h5py.string_dtype())
        f.create_dataset("fixed", data=np.array([b"one", b"three"], dtype="S5"))
        record = np.dtype([("id", "<i4"), ("name", "S7"), ("at", ">f8", (2,))])
        values = np.zeros(5, record)
        values["id"], values["name"], values["at"] = np.arange(5), b"abcdefg", 2.5
        f.create_dataset("records", data=values)
        f.create_dataset("lists", shape=(3,), dtype=h5py.vlen_dtype("i2"))[:] = [np.arange(n) for n in (3, 0, 5)]
        f.create_dataset("colours", data=np.array([0, 2, 1], "u1"),
                         dtype=h5py.enum_dtype({"red": 0, "green": 1, "blue": 2}, basetype="u1"))
        own = f.create_dataset("own", shape=(8,), chunks=(4,), dtype="i4",
                               dcpl=foreign_filter())
        own.id.write_direct_chunk((4,), b"as somebody else packs it", 0)
        group = f.create_group("group")
        group.attrs["title"] = "in a group"
        group.create_dataset("scalar", data=3.25)


def foreign_filter():
    """A filter that nobody has, optional so that HDF5 takes it."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((4,))
    dcpl.set_filter(511, h5py.h5z.FLAG_OPTIONAL, (1, 2))
    return dcpl


def members(f):
    found = {}
    f.visititems(lambda name, item: found.update({name: item}))
    return {name: item for name, item in found.items()
            if isinstance(item, h5py.Dataset) and not name.rsplit("/", 1)[-1].startswith("phony_dim")}


def filters(dataset):
    dcpl = dataset.id.get_create_plist()
    return [dcpl.get_filter(i)[:3] for i in range(dcpl.get_nfilters())]


def same(a, b):
    assert a.shape == b.shape and a.chunks == b.chunks, (a.shape, b.shape, a.chunks, b.chunks)
    if a.dtype.kind != "O":
        assert filters(a) == filters(b), (filters(a), filters(b))
    if a.chunks and a.dtype.kind != "O":
        assert a.id.get_num_chunks() == b.id.get_num_chunks(), (a.id.get_num_chunks(), b.id.get_num_chunks())
    if a.name == "/own":
        assert a.id.read_direct_chunk((4,)) == b.id.read_direct_chunk((4,))
        return
    rows = slice(None) if a.size < 10**7 else slice(0, 200)
    if a.shape == ():
        assert a[()] == b[()]
    elif a.dtype.kind == "V":
        for name in ("id", "at"):
            assert np.array_equal(a[name], b[name])
        assert a["name"].tobytes() == b["name"].tobytes()
    elif a.dtype.kind == "O":
        assert all(np.array_equal(x, y) for x, y in zip(a[rows], b[rows]))
    else:
        assert np.array_equal(a[rows], b[rows])


make("h5py.h5")
subprocess.run([ZONDA, "copy", "-q", "-f", "h5py.h5", "h5py-copy.h5"], check=True)
subprocess.run([ZONDA, "copy", "-q", "-f", "-x", "own,sparse,zeros", "-m", "4M",
                "-F", "shuffle|deflate,3", "h5py.h5", "h5py-other.h5"], check=True)
with h5py.File("h5py.h5") as old, h5py.File("h5py-copy.h5") as new, h5py.File("h5py-other.h5") as other:
    names = members(old)
    assert set(names) == set(members(new)), set(names) ^ set(members(new))
    for name, dataset in names.items():
        try:
            same(dataset, new[name])
        except AssertionError as error:
            sys.exit(f"{name}: {error}")
    assert new["group"].attrs["title"] == "in a group"
    assert new["sparse"].fillvalue == -9.5 and new["sparse"][0, 0] == -9.5
    for name in ("plain", "packed", "lzf", "scaled"):
        assert np.array_equal(old[name][...], other[name][...]), name
        assert [f[0] for f in filters(other[name])] == [2, 1], name
    print(len(names), "datasets")
