"""Chunks filtered by the reference library, and what it makes of chunks filtered by others.

    random_chunks.py make FILTER COUNT SEED    prints COUNT cases, one a line:
        name, filter id, parameters, chunk dimensions, element size, stored bytes, chunk as read
    random_chunks.py check FILTER COUNT SEED   the same cases; standard input has "name, stored bytes"
        of another encoder, and "name, chunk as read" is printed

Fields are separated by tabs, bytes are in hexadecimal. Needs h5py, and hdf5plugin for filters that
are not HDF5's own.
"""

import ctypes
import glob
import itertools
import os
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z


NAMES = ("case%d.h5" % index for index in itertools.count())


def relax(access):
    """Lets types with few significant bits be stored (HDF5 2 asks for this)."""
    libs = os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*")
    for lib in glob.glob(libs):
        call = getattr(ctypes.CDLL(lib), "H5Pset_relax_file_integrity_checks", None)
        if call:
            call.argtypes = [ctypes.c_int64, ctypes.c_uint64]
            call(access.id, 1)


def dataset(values, filetype, set_filter, fill=None):
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fapl_core(1 << 16, False)
    relax(access)
    file = h5f.create(next(NAMES).encode(), h5f.ACC_TRUNC, None, access)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(values.shape)
    if fill is not None:
        plist.set_fill_value(np.array(fill, dtype=values.dtype))
    set_filter(plist)
    space = h5s.create_simple(values.shape)
    return file, h5d.create(file, b"d", filetype, space, plist)


def as_read(data, values):
    """The chunk's bytes: what is read, as the file's type says elements are laid out."""
    out = np.empty(values.shape, dtype=np.dtype(("V", data.get_type().get_size())))
    buffer = np.frombuffer(bytearray(out.nbytes), dtype="u1")
    data.read(h5s.ALL, h5s.ALL, buffer, data.get_type())
    return buffer.tobytes()


def narrow(base, precision, offset):
    kind = base.copy()
    kind.set_precision(precision)
    kind.set_offset(offset)
    return kind


INTEGERS = {
    ("i1", "<"): h5t.STD_I8LE, ("i2", "<"): h5t.STD_I16LE, ("i4", "<"): h5t.STD_I32LE,
    ("i8", "<"): h5t.STD_I64LE, ("u1", "<"): h5t.STD_U8LE, ("u2", "<"): h5t.STD_U16LE,
    ("u4", "<"): h5t.STD_U32LE, ("u8", "<"): h5t.STD_U64LE,
    ("i1", ">"): h5t.STD_I8BE, ("i2", ">"): h5t.STD_I16BE, ("i4", ">"): h5t.STD_I32BE,
    ("i8", ">"): h5t.STD_I64BE, ("u1", ">"): h5t.STD_U8BE, ("u2", ">"): h5t.STD_U16BE,
    ("u4", ">"): h5t.STD_U32BE, ("u8", ">"): h5t.STD_U64BE,
}
FLOATS = {
    ("f4", "<"): h5t.IEEE_F32LE, ("f8", "<"): h5t.IEEE_F64LE,
    ("f4", ">"): h5t.IEEE_F32BE, ("f8", ">"): h5t.IEEE_F64BE,
}


def shape(rng, most_rank=3, most=9):
    return tuple(int(n) for n in rng.integers(1, most, size=rng.integers(1, most_rank + 1)))


def integers(rng, kind, dims):
    info = np.iinfo(kind)
    span = int(rng.choice([1, 2, 5, 100, 1000, 100000, 2**40]))
    if rng.random() < 0.1:
        low, high = int(info.min), int(info.max)
    else:
        low = int(rng.integers(max(info.min, -1000), min(info.max, 1000) + 1))
        high = min(low + span - 1, int(info.max))
    return rng.integers(low, high, size=dims, dtype=kind, endpoint=True)


def floats(rng, kind, dims):
    way = rng.integers(4)
    if way == 0:
        values = np.cumsum(rng.standard_normal(dims), axis=-1)
    elif way == 1:
        values = rng.standard_normal(dims) * 10.0 ** float(rng.integers(-5, 6))
    elif way == 2:
        values = np.zeros(dims) + float(rng.integers(-3, 4))
    else:
        values = np.indices(dims).sum(axis=0) * 0.25 + rng.random(dims) * 0.01
    return values.astype(kind)


def scaleoffset(rng):
    order = str(rng.choice(["<", ">"]))
    if rng.random() < 0.5:
        kind = str(rng.choice([k for k, o in INTEGERS if o == order]))
        values = integers(rng, kind, shape(rng))
        bits = int(rng.choice([0, 0, 0, 3, values.itemsize * 8]))
        fill = values.flat[0] if rng.random() < 0.4 else None
        return values, INTEGERS[kind, order], lambda p: p.set_scaleoffset(h5z.SO_INT, bits), fill
    kind = str(rng.choice(["f4", "f8"]))
    values = floats(rng, kind, shape(rng))
    digits = int(rng.choice([0, 1, 2, 3, 5]))
    fill = values.flat[0] if rng.random() < 0.4 else None
    return (values, FLOATS[kind, order],
            lambda p: p.set_scaleoffset(h5z.SO_FLOAT_DSCALE, digits), fill)


def number(rng):
    """A numpy kind, and a file type with gaps for it."""
    order = str(rng.choice(["<", ">"]))
    if rng.random() < 0.2:
        kind = str(rng.choice(["f4", "f8"]))
        return kind, FLOATS[kind, order]
    kind = str(rng.choice([k for k, o in INTEGERS if o == order]))
    bits = np.dtype(kind).itemsize * 8
    precision = int(rng.integers(1 if kind[0] == "u" else 2, bits + 1))
    return kind, narrow(INTEGERS[kind, order], precision, int(rng.integers(0, bits - precision + 1)))


def nbit(rng):
    def set_filter(plist):
        plist.set_filter(5, 1, ())

    dims = shape(rng)
    way = rng.integers(3)
    if way == 0:
        kind, filetype = number(rng)
        values = (integers if kind[0] != "f" else floats)(rng, kind, dims)
        return values, filetype, set_filter, None
    if way == 1:
        kind, filetype = number(rng)
        inner = shape(rng, 2, 4)
        make = integers if kind[0] != "f" else floats
        values = np.zeros(dims, dtype=(np.dtype([("a", kind, inner)])))
        values["a"] = make(rng, kind, dims + inner)
        compound = h5t.create(h5t.COMPOUND, values.itemsize + 3)
        compound.insert(b"a", 1, h5t.array_create(filetype, inner))
        return values, compound, set_filter, None
    kinds = [number(rng) for _ in range(rng.integers(1, 4))]
    fields = [("m%d" % i, kind) for i, (kind, _) in enumerate(kinds)] + [("s", "S3")]
    values = np.zeros(dims, dtype=np.dtype(fields))
    for (name, kind) in fields[:-1]:
        values[name] = (integers if kind[0] != "f" else floats)(rng, kind, dims)
    values["s"] = b"xyz"
    text = h5t.C_S1.copy()
    text.set_size(3)
    compound = h5t.create(h5t.COMPOUND, 64)
    at = int(rng.integers(0, 3))
    for (name, _), (_, filetype) in zip(fields, kinds):
        compound.insert(name.encode(), at, filetype)
        at += filetype.get_size() + int(rng.integers(0, 3))
    compound.insert(b"s", at, text)
    return values, compound, set_filter, None


def szip(rng):
    option = int(rng.choice([h5z.SZIP_EC_OPTION_MASK, h5z.SZIP_NN_OPTION_MASK]))
    block = int(rng.choice([2, 4, 6, 8, 10, 16, 32]))
    order = str(rng.choice(["<", ">"]))
    while True:
        dims = shape(rng, 3, 40)
        if 2 * block <= np.prod(dims) < 6000:
            break
    if rng.random() < 0.3:
        kind = str(rng.choice(["f4", "f8"]))
        values, filetype = floats(rng, kind, dims), FLOATS[kind, order]
    else:
        kind = str(rng.choice([k for k, o in INTEGERS if o == order]))
        values, filetype = integers(rng, kind, dims), INTEGERS[kind, order]
        bits = values.itemsize * 8
        # Negative numbers in a narrow type have bits outside it, and the reference's coder then
        # writes what it does not read.
        if rng.random() < 0.6 and kind[0] == "u":
            precision = int(rng.integers(bits // 2 + 1, bits + 1))
            filetype = narrow(filetype, precision, 0)
            values &= np.array(2**precision - 1, dtype=kind)
    return values, filetype, lambda p: p.set_szip(option, block), None


def plugin(options):
    """What hdf5plugin says, as a filter set by number."""
    values = tuple(int(value) for value in options["compression_opts"])
    return lambda plist: plist.set_filter(options["compression"], 1, values)


def zfp(rng):
    import hdf5plugin

    kind = str(rng.choice(["i4", "i8", "f4", "f8"]))
    while True:
        dims = shape(rng, 4, 12)
        if np.prod(dims) < 3000:
            break
    if kind[0] == "f":
        values = floats(rng, kind, dims)
        if rng.random() < 0.1:
            values.flat[0] = rng.choice([np.nan, np.inf, -0.0, 1e-40])
    else:
        # The codec leaves two bits for its transform.
        values = integers(rng, kind, dims) // 4
    way = rng.integers(5)
    if way == 0:
        options = hdf5plugin.Zfp(rate=float(rng.choice([1, 4, 7.5, 8, 16, 24])))
    elif way == 1:
        options = hdf5plugin.Zfp(precision=int(rng.integers(1, 40)))
    elif way == 2:
        options = hdf5plugin.Zfp(accuracy=float(rng.choice([1e-6, 1e-3, 0.1, 10])))
    elif way == 3:
        options = hdf5plugin.Zfp(reversible=True)
    else:
        options = hdf5plugin.Zfp(minbits=int(rng.integers(1, 60)), maxbits=int(rng.integers(60, 2000)),
                                 maxprec=int(rng.integers(1, 64)), minexp=int(rng.integers(-1074, 0)))
    filetype = (FLOATS if kind[0] == "f" else INTEGERS)[kind, "<"]
    return values, filetype, plugin(options), None


def blosc2(rng):
    import hdf5plugin

    order = str(rng.choice(["<", ">"]))
    if rng.random() < 0.05:
        # Several blocks, and some that stick out of the chunk.
        dims = tuple(int(n) for n in rng.choice([37, 50, 61, 70], size=3))
        dims = dims if rng.random() < 0.7 else (int(np.prod(dims)),)
    else:
        dims = shape(rng, 4, int(rng.choice([4, 40, 40, 40])))
        while np.prod(dims) > 40000:
            dims = dims[1:]
    if rng.random() < 0.4:
        kind = str(rng.choice(["f4", "f8"]))
        values, filetype = floats(rng, kind, dims), FLOATS[kind, order]
    else:
        kind = str(rng.choice([k for k, o in INTEGERS if o == order]))
        values, filetype = integers(rng, kind, dims), INTEGERS[kind, order]
    if rng.random() < 0.1:
        values[...] = rng.choice([0, 7])
    filters = int(rng.choice([0, 1, 2, 3]))
    options = hdf5plugin.Blosc2(cname=str(rng.choice(["blosclz", "lz4", "lz4hc", "zlib", "zstd"])),
                                clevel=int(rng.integers(0, 10)), filters=filters)
    return values, filetype, plugin(options), None


def cases(name, count, seed):
    rng = np.random.default_rng(seed)
    make = globals()[name]
    for index in range(count):
        refused = []
        while True:
            values, filetype, set_filter, fill = make(rng)
            try:
                file, data = dataset(values, filetype, set_filter, fill)
                break
            except (ValueError, RuntimeError, OSError) as error:
                refused.append(str(error))
                if len(refused) == 100:
                    sys.exit("\n".join(refused))
        memory = h5t.py_create(values.dtype)
        data.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values), memory)
        h5f.flush(file)
        yield "%s-%d" % (name, index), data, values


def main():
    what, name, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    given = {}
    if what == "check":
        for line in sys.stdin:
            key, stored = line.rstrip("\n").split("\t")
            given[key] = bytes.fromhex(stored)
    for key, data, values in cases(name, count, seed):
        origin = (0,) * values.ndim
        if what == "make":
            mask, stored = data.read_direct_chunk(origin)
            if mask:
                continue
            number, _, params, _ = data.get_create_plist().get_filter(0)
            fields = [key, str(number), ",".join(map(str, params)),
                      ",".join(map(str, values.shape)), str(data.get_type().get_size()),
                      stored.hex(), as_read(data, values).hex()]
            print("\t".join(fields))
        elif key in given:
            data.write_direct_chunk(origin, given[key], 0)
            print("%s\t%s" % (key, as_read(data, values).hex()))


main()
