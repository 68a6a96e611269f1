# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files that are edited: every structure that HDF5 has for the same thing, by name.

    sources.py FOLDER [NAME...]     makes them, to look at

A name is FORM-WHAT. The form is the age of the format and whether orders are kept:

    v1      libver earliest: object headers of version 1, symbol tables, v1 B-trees
    mixed   libver earliest with orders of links: groups have new headers, datasets old ones
    v108    new headers and links, v1 B-trees
    v110    new indexes of chunks as well
    latest  what the newest HDF5 writes
    loose   as v110, without orders

    nc, ncnew   by netCDF-C of the distribution, and of the netCDF4 wheel

Most have the dataset `data`, which operations change, with attributes `text`, `numbers` and `extra`;
`other`; the group `g` with `inside`; attributes of the root group. The same name gives the same bytes.
"""
import ctypes
import glob
import os
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "interop"))
import structure_parts  # noqa: E402

FORMS = {  # libver, orders of links, of attributes
    "v1": ("earliest", False, False),
    "mixed": ("earliest", True, False),
    "v108": ("v108", True, True),
    "v110": ("v110", True, True),
    "latest": ("latest", True, True),
    "loose": ("v110", False, False),
}
BOUNDS = {"earliest": h5f.LIBVER_EARLIEST, "v108": h5f.LIBVER_V18, "v110": h5f.LIBVER_V110, "latest": h5f.LIBVER_LATEST}
ROWS, COLUMNS = 12, 10
SOURCES = {}


def source(forms="v1 mixed v108 v110 latest"):
    """Registers `what(file, form)` for each of the forms."""
    def register(function):
        name = function.__name__.replace("_", "-")
        for form in forms.split():
            SOURCES["%s-%s" % (form, name)] = lambda path, form=form: make(path, form, function)
        return function
    return register


def own(forms="v1 v108 latest"):
    """Registers what(path, form), which makes the file itself."""
    def register(function):
        name = function.__name__.replace("_", "-")
        for form in forms.split():
            SOURCES["%s-%s" % (form, name)] = lambda path, form=form: function(path, form)
        return function
    return register


def make(path, form, what, **more):
    libver, links, _ = FORMS[form]
    with h5py.File(path, "w", libver=(libver, "latest"), track_order=links, **more) as f:
        what(f, form)


def write(name, path):
    """Makes a file: the same bytes each time."""
    SOURCES[name](path)
    with open(path, "r+b") as f:
        data, at = bytearray(f.read()), -1
        # The headers of some objects have times, which no property turns off.
        while (at := data.find(b"OHDR\x02", at + 1)) >= 0:
            if data[at + 5] & 0x20:
                size = 1 << (data[at + 5] & 3)
                head = 22 + (4 if data[at + 5] & 0x10 else 0) + size
                end = at + head + int.from_bytes(data[at + head - size:at + head], "little")
                if data[end:end + 4] == structure_parts.lookup3(bytes(data[at:end])).to_bytes(4, "little"):
                    data[at + 6:at + 22] = bytes(16)
                    data[end:end + 4] = structure_parts.lookup3(bytes(data[at:end])).to_bytes(4, "little")
        f.seek(0)
        f.write(data)


def values(shape, dtype="i4", seed=1):
    n = int(np.prod(shape))
    return ((np.arange(n) * 37 + seed) % 1009).astype(dtype).reshape(shape)


def dataset(f, form, name="data", data=None, shape=None, dtype=None, early=False, layout=None, **more):
    """A dataset, whose attributes keep their order if the form says so."""
    if early or layout is not None:
        # What the high-level interface does not reach.
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_obj_track_times(False)
        if FORMS[form][2]:
            plist.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        if layout is not None:
            plist.set_layout(layout)
        if more.get("chunks"):
            plist.set_chunk(more["chunks"])
        if early:
            plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        space = h5s.create_simple(data.shape, tuple(h5s.UNLIMITED if n is None else n for n in more.get("maxshape", data.shape)))
        d = h5py.Dataset(h5d.create(f.id, name.encode(), h5t.py_create(data.dtype, logical=True), space, plist))
        d[...] = data
        return d
    return f.create_dataset(name, data=data, shape=shape, dtype=dtype, track_order=FORMS[form][2], track_times=False, **more)


def attributes(o):
    o.attrs["text"] = np.bytes_(b"metres")
    o.attrs["numbers"] = np.array([1.5, -2.0, 1e300])
    o.attrs["extra"] = np.int32(7)


def around(f, form, d=None):
    """What is beside the dataset that is changed."""
    if d is not None:
        attributes(d)
    other = dataset(f, form, "other", data=values((5, 4), "f8", 3))
    other.attrs["note"] = np.arange(3, dtype="i2")
    g = f.create_group("g", track_order=FORMS[form][1])
    inside = dataset(g, form, "inside", data=values((4,), "i2", 5))
    inside.attrs["note"] = np.bytes_(b"within")
    g.attrs["level"] = np.int32(1)
    f.attrs["title"] = np.bytes_(b"a file to edit")
    f.attrs["version"] = np.array([1, 2], "i4")


# ---- Where a dataset's values are

@source("v1 mixed v108 v110 latest loose")
def contiguous(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS))))


@source("v1 v108 latest")
def unwritten(f, form):
    around(f, form, dataset(f, form, shape=(ROWS, COLUMNS), dtype="i4", fillvalue=-7))


@source()
def compact(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), layout=h5d.COMPACT))


@source("v110 latest")
def single(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(ROWS, COLUMNS)))


@source("v110 latest")
def single_deflate(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(ROWS, COLUMNS), compression="gzip"))


@source("v108 v110 latest")
def implicit(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), early=True))


@source()
def fixed(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4)))


@source()
def fixed_deflate(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), compression="gzip", shuffle=True))


@source("v1 v110 latest")
def fixed_paged(f, form):
    """More chunks than a fixed array keeps in one page, and than a node of a v1 B-tree has room for."""
    around(f, form, dataset(f, form, data=values((2500,)), chunks=(1,)))


@source("v1 v110 latest")
def fixed_sparse(f, form):
    d = dataset(f, form, shape=(ROWS, COLUMNS), dtype="i4", chunks=(4, 4), fillvalue=-7)
    d[4:8, 0:8] = 3
    around(f, form, d)


@source("v1 mixed v108 v110 latest loose")
def unlimited(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(2, 5), maxshape=(None, COLUMNS)))


@source("v1 mixed v108 v110 latest loose")
def unlimited_deflate(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(2, 5), maxshape=(None, COLUMNS),
                            compression="gzip", shuffle=True, fletcher32=True))


@source("v1 mixed v110 latest")
def unlimited_many(f, form):
    around(f, form, dataset(f, form, data=values((3000,)), chunks=(1,), maxshape=(None,)))


@source("v1 latest")
def unlimited_empty(f, form):
    around(f, form, dataset(f, form, shape=(0, COLUMNS), dtype="i4", chunks=(2, 5), maxshape=(None, COLUMNS)))


@source("v1 v108 v110 latest")
def second_unlimited(f, form):
    """The slower dimension is fixed: an extensible array swizzles."""
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 5), maxshape=(ROWS, None)))


@source("v1 mixed v108 v110 latest")
def two_unlimited(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), maxshape=(None, None)))


@source("v1 v110 latest")
def two_unlimited_deflate(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), maxshape=(None, None), compression="gzip"))


@source("v1 latest")
def two_unlimited_many(f, form):
    around(f, form, dataset(f, form, data=values((50, 40)), chunks=(1, 1), maxshape=(None, None)))


@source("v1 latest")
def limited(f, form):
    """May grow up to a bound, which netCDF knows not."""
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), maxshape=(40, COLUMNS)))


@source("v1 latest")
def scalar(f, form):
    around(f, form, dataset(f, form, data=np.int32(42)))


@source("v1 latest")
def null(f, form):
    """No space for any element; netCDF shows one."""
    around(f, form, dataset(f, form, data=h5py.Empty("i4")))


# ---- Types

@source("v1 v108 latest")
def big_endian(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS), ">i2"), chunks=(4, 4)))


@source("v1 v108 latest")
def compound(f, form):
    kind = np.dtype([("a", "i4"), ("b", "f8", (2,)), ("c", "u1")], align=True)
    data = np.zeros(7, kind)
    data["a"], data["c"] = np.arange(7), 3
    around(f, form, dataset(f, form, data=data))


@source("v1 v108 latest")
def committed(f, form):
    f["kind"] = np.dtype([("a", "i4"), ("b", "f8")])
    f["colour"] = h5py.enum_dtype({"red": 0, "green": 1}, basetype="i1")
    around(f, form, dataset(f, form, data=values((ROWS,))))
    data = np.zeros(3, f["kind"].dtype)
    data["a"] = 5
    dataset(f, form, "pairs", data=data, dtype=f["kind"])
    dataset(f, form, "colours", data=np.array([0, 1, 1], "i1"), dtype=f["colour"])
    f["data"].attrs.create("pair", data[:2], dtype=f["kind"])


@source("v1 v108 latest loose")
def committed_attributes(f, form):
    """Attributes of committed types, which count who has them."""
    f["number"], f["fraction"] = np.dtype("i4"), np.dtype("f8")
    around(f, form, dataset(f, form, data=values((ROWS,)), dtype=f["number"]))
    attributes = f["data"].attrs
    attributes.create("numbers", np.arange(3), dtype=f["number"])
    attributes.create("extra", 5, dtype=f["number"])
    attributes.create("text", 0.5, dtype=f["fraction"])


@source("v1 v108 v110 latest")
def strings(f, form):
    d = dataset(f, form, shape=(6,), dtype=h5py.string_dtype())
    d[...] = ["a", "", "three", "h\u00e4", "x" * 300, "last"]
    around(f, form, d)


@source("v1 v108 v110 latest")
def strings_chunked(f, form):
    d = dataset(f, form, shape=(6,), dtype=h5py.string_dtype(), chunks=(2,), maxshape=(None,))
    d[...] = ["a", "", "three", "h\u00e4", "x" * 300, "last"]
    around(f, form, d)


@source("v1 latest")
def strings_deflate(f, form):
    d = dataset(f, form, shape=(6,), dtype=h5py.string_dtype(), chunks=(4,), compression="gzip")
    d[...] = ["a", "", "three", "h\u00e4", "x" * 300, "last"]
    around(f, form, d)


@source("v1 latest")
def sequences(f, form):
    d = dataset(f, form, shape=(3,), dtype=h5py.vlen_dtype("i4"))
    d[0], d[2] = [1, 2, 3], [9]
    around(f, form, d)


@source("v1 latest")
def texts(f, form):
    around(f, form, dataset(f, form, data=np.array([b"one", b"two", b"three"], "S5")))


# ---- Attributes

@source("v1 mixed v108 v110 latest loose")
def attributes_many(f, form):
    """Dense where there is such a thing; else in further blocks of the header."""
    d = dataset(f, form, data=values((ROWS, COLUMNS)))
    for i in range(40):
        d.attrs["attribute %02d" % i] = np.arange(i % 5 + 1)
        f.attrs["of the root %02d" % i] = np.bytes_(b"text %d" % i)
    around(f, form, d)


@source("v1 v108 latest loose")
def attributes_none(f, form):
    dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4))


@source("v1 v108 latest loose")
def attributes_large(f, form):
    d = dataset(f, form, data=values((ROWS, COLUMNS)))
    d.attrs["large"] = np.arange(5000, dtype="i4")
    d.attrs["also large"] = np.arange(7000.0)
    around(f, form, d)


@source("v1 v108 latest")
def attributes_strings(f, form):
    d = dataset(f, form, data=values((ROWS, COLUMNS)))
    d.attrs["words"] = ["one", "two", "h\u00e4"]
    d.attrs["word"] = "unicode"
    f.attrs["history"] = "made by a test"
    around(f, form, d)
    d.attrs["text"] = "a string now"


# ---- Groups

@source("v1 mixed v108 v110 latest loose")
def links_many(f, form):
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), maxshape=(None, COLUMNS)))
    for i in range(60):
        dataset(f, form, "many %02d" % i, data=np.int16(i))
    for i in range(30):
        f["g"].create_group("below %02d" % i, track_order=FORMS[form][1])


@source("v1 mixed v108 latest")
def nested(f, form):
    g = f
    for i in range(6):
        g = g.create_group("deep%d" % i, track_order=FORMS[form][1])
        attributes(g)
        dataset(g, form, "here", data=values((3,), seed=i))
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS))))


@source("v1 mixed v108 latest loose")
def links_all(f, form):
    """Soft and external links, two names for one object, references."""
    d = dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), maxshape=(None, COLUMNS))
    around(f, form, d)
    f["soft"] = h5py.SoftLink("/other")
    f["dangling"] = h5py.SoftLink("/nowhere")
    f["outside"] = h5py.ExternalLink("elsewhere.h5", "/x")
    f["g/second name"] = f["other"]
    dataset(f, form, "references", data=np.array([f["data"].ref, f["g"].ref, f["other"].ref], h5py.ref_dtype))
    f["other"].attrs["see"] = f["data"].ref


@source("v1 v108 latest")
def data_twice(f, form):
    """The dataset that is changed has two names, and references lead to it."""
    around(f, form, dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 4), maxshape=(None, COLUMNS)))
    f["g/again"] = f["data"]
    f["g"].attrs["see"] = f["data"].ref


@source("v1 mixed v108 v110 latest")
def scales(f, form):
    time = dataset(f, form, "time", data=np.arange(ROWS, dtype="f8"), chunks=(4,), maxshape=(None,))
    x = dataset(f, form, "x", data=np.arange(COLUMNS, dtype="f4"))
    d = dataset(f, form, data=values((ROWS, COLUMNS)), chunks=(4, 5), maxshape=(None, COLUMNS))
    for s in (time, x):
        s.make_scale(s.name[1:])
    d.dims[0].attach_scale(time)
    d.dims[1].attach_scale(x)
    around(f, form, d)
    second = dataset(f, form, "second", data=values((COLUMNS,), "f4"))
    second.dims[0].attach_scale(x)


@source("v1 latest")
def scale_names_itself(f, form):
    """Scales in their own lists, as the tools of HDF-EOS5 write them and no function of libhdf5 does."""
    d = dataset(f, form, data=values((ROWS, COLUMNS)))
    kind = h5py.vlen_dtype(h5py.ref_dtype)
    for axis, (name, n) in enumerate([("time", ROWS), ("x", COLUMNS)]):
        scale = dataset(f, form, name, data=np.arange(n, dtype="f8"))
        scale.make_scale(name)
        d.dims[axis].attach_scale(scale)
        named = np.empty((1,), dtype=kind)
        named[0] = np.array([scale.ref], dtype=h5py.ref_dtype)
        scale.attrs.create("DIMENSION_LIST", named, dtype=kind)
        users = scale.attrs["REFERENCE_LIST"]
        users = np.append(users, np.array([(scale.ref, 0)], dtype=users.dtype))
        scale.attrs.create("REFERENCE_LIST", users, dtype=users.dtype)
    around(f, form, d)


# ---- Files

@own("v1 v108 latest")
def user_block(path, form):
    make(path, form, unlimited_deflate, userblock_size=2048)
    with open(path, "r+b") as f:
        f.write(b"what is before the file" * 20)


@own("v1 v108 latest")
def free_space_kept(path, form):
    make(path, form, unlimited_deflate, fs_strategy="fsm", fs_persist=True)
    with h5py.File(path, "r+") as f:
        del f["g"]


@own("v1 v108 latest")
def pages(path, form):
    make(path, form, unlimited_deflate, fs_strategy="page", fs_page_size=4096)


@own("v108 latest")
def pages_kept(path, form):
    make(path, form, unlimited_deflate, fs_strategy="page", fs_persist=True, fs_page_size=512)
    with h5py.File(path, "r+") as f:
        del f["g/inside"]


@own("v1 v108 latest")
def space_none(path, form):
    make(path, form, unlimited_deflate, fs_strategy="none")


def hdf5():
    """The libhdf5 that h5py has loaded, for what it does not wrap."""
    found = glob.glob(os.path.join(os.path.dirname(os.path.dirname(h5py.__file__)), "h5py.libs", "libhdf5-*"))
    return ctypes.CDLL(found[0] if found else "libhdf5.so")


def raw_file(path, form, creation=None, access=None):
    """A file by property lists, which creation(library, id) and access(library, id) may change."""
    libver, links, _ = FORMS[form]
    fcpl, fapl = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    fcpl.set_obj_track_times(False)
    if links:
        fcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        fcpl.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    fapl.set_libver_bounds(BOUNDS[libver], h5f.LIBVER_LATEST)
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    for change, plist in ((creation, fcpl), (access, fapl)):
        if change and change(hdf5(), plist.id) < 0:
            raise OSError("libhdf5 refuses the property")
    return h5py.File(h5f.create(path.encode(), h5f.ACC_TRUNC, fcpl, fapl))


@own("v1 v108 latest")
def messages_shared(path, form):
    """Types, dataspaces, fill values, filters and attributes that are stored once for all."""
    def creation(lib, plist):
        plist = ctypes.c_int64(plist)
        code = lib.H5Pset_shared_mesg_nindexes(plist, ctypes.c_uint(2))
        code |= lib.H5Pset_shared_mesg_index(plist, ctypes.c_uint(0), ctypes.c_uint(0x0f), ctypes.c_uint(8))
        return code | lib.H5Pset_shared_mesg_index(plist, ctypes.c_uint(1), ctypes.c_uint(0x10), ctypes.c_uint(8))
    with raw_file(path, form, creation) as f:
        unlimited_deflate(f, form)
        twin = dataset(f, form, "twin", data=values((ROWS, COLUMNS)), chunks=(2, 5), maxshape=(None, COLUMNS),
                       compression="gzip", shuffle=True, fletcher32=True)
        attributes(twin)


@own("v108")
def cache_image(path, form):
    class Image(ctypes.Structure):
        _fields_ = [("version", ctypes.c_int32), ("generate", ctypes.c_bool), ("save_resize", ctypes.c_bool), ("ageout", ctypes.c_int32)]
    with raw_file(path, form, access=lambda lib, plist: lib.H5Pset_mdc_image_config(
            ctypes.c_int64(plist), ctypes.byref(Image(1, True, False, -1)))) as f:
        unlimited_deflate(f, form)


def flagged(path, form, flags):
    """A writer that died has left its mark in the superblock."""
    make(path, form, unlimited)
    mark(path, flags)


def mark(path, flags=0):
    """Puts the flags of consistency into a superblock of version 3."""
    with open(path, "r+b") as f:
        head = bytearray(f.read(48))
        assert head[8] >= 2
        head[11] = flags
        head[44:48] = structure_parts.lookup3(bytes(head[:44])).to_bytes(4, "little")
        f.seek(0)
        f.write(head)


@own("v110 latest")
def stale_swmr(path, form):
    flagged(path, form, 5)


@own("v110 latest")
def stale_writer(path, form):
    flagged(path, form, 1)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:] or SOURCES:
        write(name, os.path.join(sys.argv[1], name + ".h5"))


if __name__ == "__main__":
    main()
