"""The reference side of the filter tests: HDF5 and its filter plugins, by h5py and hdf5plugin.

    reference.py make FILE SCALE    chunks as the reference stores them, and their bytes
    reference.py check FILE         reads chunks that Zonda encoded through the reference
    reference.py speed FILE         chunks for examples/filter_speed.rs, made by the stock zlib

FILE holds, all numbers u32 little-endian: the number of arrays; per array its element size, its
length and its bytes; the number of chunks; per chunk the length of its name and the name, its
array, its mask, the number of filters, per filter its id, its flags, the number of parameters and
these, then the length of the stored bytes and these. An array is one chunk of one dimension.
"""

import io
import struct
import sys
import zlib

import h5py
import hdf5plugin  # noqa: F401  registers the plugins
import numpy as np

OPTIONAL = 1


class Reader:
    def __init__(self, path):
        self.bytes = open(path, "rb").read()
        self.at = 0

    def take(self, n):
        self.at += n
        return self.bytes[self.at - n : self.at]

    def u32(self, n=None):
        values = struct.unpack(f"<{n or 1}I", self.take(4 * (n or 1)))
        return values[0] if n is None else list(values)


def read(path):
    r = Reader(path)
    arrays = []
    for _ in range(r.u32()):
        size = r.u32()
        arrays.append((size, r.take(r.u32())))
    chunks = []
    for _ in range(r.u32()):
        name = r.take(r.u32()).decode()
        array, mask = r.u32(), r.u32()
        filters = []
        for _ in range(r.u32()):
            id, flags, n = r.u32(), r.u32(), r.u32()
            filters.append((id, flags, r.u32(n) if n else []))
        chunks.append((name, array, mask, filters, r.take(r.u32())))
    assert r.at == len(r.bytes)
    return arrays, chunks


def write(path, arrays, chunks):
    out = bytearray()

    def u32(*values):
        out.extend(struct.pack(f"<{len(values)}I", *values))

    u32(len(arrays))
    for size, raw in arrays:
        u32(size, len(raw))
        out.extend(raw)
    u32(len(chunks))
    for name, array, mask, filters, stored in chunks:
        u32(len(name.encode()))
        out.extend(name.encode())
        u32(array, mask, len(filters))
        for id, flags, params in filters:
            u32(id, flags, len(params), *params)
        u32(len(stored))
        out.extend(stored)
    open(path, "wb").write(out)


# Types by element size; 3 and 12 are there for what is no power of two.
TYPES = {1: "u1", 2: "<i2", 3: "V3", 4: "<f4", 8: "<f8", 12: "V12", 16: "<c16"}


def make_arrays(scale):
    """Smooth values with little noise, one array of several blocks, one without any pattern."""
    rng = np.random.default_rng(20)
    for size, n in [(1, 331), (2, 270), (3, 203), (4, 203), (8, 164), (12, 90), (16, 141)]:
        if scale == 1 and size == 12:
            continue
        n *= scale
        smooth = np.round(40 * np.sin(np.arange(n) / 90)) + rng.integers(0, 2, n)
        if size in (3, 12):
            whole = np.repeat(smooth.astype("<i4"), (size + 3) // 4)
            yield size, whole.view("u1").reshape(n, -1)[:, :size].tobytes()
        else:
            with np.errstate(all="ignore"):
                yield size, smooth.astype(np.float64).astype(TYPES[size]).tobytes()
    yield 4, (np.arange(7000 * scale) // 25 % 300).astype("<f4").tobytes()
    yield 2, rng.integers(0, 65536, 150 * scale).astype("<u2").tobytes()


def pipelines(size, n_bytes):
    """Names and filters."""
    yield "deflate-1", [(1, OPTIONAL, [1])]
    yield "shuffle-deflate-4", [(2, OPTIONAL, [size]), (1, OPTIONAL, [4])]
    yield "shuffle-deflate-9-fletcher", [(2, 1, [size]), (1, 1, [9]), (3, 0, [])]
    yield "fletcher-shuffle-deflate", [(3, 0, []), (2, 1, [size]), (1, 1, [6])]
    yield "shuffle", [(2, 1, [size])]
    yield "fletcher", [(3, 0, [])]
    yield "bzip2", [(307, 1, [3])]
    yield "lzf", [(32000, 1, [4, 0x0105, n_bytes])]
    yield "shuffle-lzf", [(2, 1, [size]), (32000, 1, [4, 0x0105, n_bytes])]
    yield "lz4", [(32004, 1, [0])]
    yield "lz4-blocks", [(32004, 1, [512])]
    yield "zstd", [(32015, 1, [5])]
    yield "shuffle-zstd-default", [(2, 1, [size]), (32015, 1, [])]
    for codec, options in [("none", [0]), ("lz4", [2]), ("zstd", [3, 4])]:
        yield f"bitshuffle-{codec}", [(32008, 1, [0, 4, size, 0, *options])]
    yield "bitshuffle-lz4-136", [(32008, 1, [0, 4, size, 136, 2])]
    for codec, name in enumerate(["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]):
        for shuffle in range(3):
            params = [2, 2, min(size, 255), n_bytes, [5, 9, 1][shuffle], shuffle, codec]
            yield f"blosc-{name}-{shuffle}", [(32001, 1, params)]


def dataset(file, name, size, n_bytes, filters):
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((n_bytes // size,))
    for id, flags, params in filters:
        if id == 1:
            dcpl.set_deflate(*params)
        elif id == 2:
            dcpl.set_shuffle()
        elif id == 3:
            dcpl.set_fletcher32()
        elif id == 32008:
            # The plugin itself puts version and element size first.
            dcpl.set_filter(id, flags, tuple(params[3:]))
        else:
            dcpl.set_filter(id, flags, tuple(params))
    space = h5py.h5s.create_simple((n_bytes // size,))
    type = h5py.h5t.py_create(np.dtype(TYPES[size]))
    return h5py.h5d.create(file.id, name.encode(), type, space, dcpl)


def make(path, scale):
    arrays, chunks = list(make_arrays(scale)), []
    with h5py.File("chunks", "w", driver="core", backing_store=False) as file:
        for i, (size, raw) in enumerate(arrays):
            for name, filters in pipelines(size, len(raw)):
                # The file that is kept is to be small.
                if scale == 1 and i == 6 and name in ("shuffle", "fletcher", "bitshuffle-none"):
                    continue
                name = f"{i}-{size}-{name}"
                made = dataset(file, name, size, len(raw), filters)
                values = np.frombuffer(raw, TYPES[size])
                made.write(h5py.h5s.ALL, h5py.h5s.ALL, values, made.get_type())
                file.flush()
                mask, stored = made.read_direct_chunk((0,))
                plist = made.get_create_plist()
                kept = [plist.get_filter(k) for k in range(plist.get_nfilters())]
                filters = [(id, flags, list(params)) for id, flags, params, _ in kept]
                chunks.append((name, i, mask, filters, stored))
    write(path, arrays, chunks)
    print(f"made {len(chunks)}")


def check(path):
    arrays, chunks = read(path)
    bad = 0
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for k, (name, array, mask, filters, stored) in enumerate(chunks):
            size, raw = arrays[array]
            made = dataset(file, str(k), size, len(raw), filters)
            made.write_direct_chunk((0,), bytes(stored), mask)
    # HDF5 forgets the mask of chunks written this way until the file is opened again.
    with h5py.File(stream, "r") as file:
        for k, (name, array, mask, filters, stored) in enumerate(chunks):
            size, raw = arrays[array]
            values = np.empty(len(raw) // size, TYPES[size])
            made = file[str(k)].id
            try:
                made.read(h5py.h5s.ALL, h5py.h5s.ALL, values, made.get_type())
                wrong = None if values.tobytes() == raw else "other bytes"
            except Exception as error:
                wrong = error
            if wrong:
                print(f"{name}: {wrong}")
                bad += 1
    print(f"checked {len(chunks)}, {bad} bad")
    return bad


def speed(path):
    """Smooth fields with noise, the same rounded to 12 bits, the first packed as shorts."""
    rng = np.random.default_rng(1)
    arrays, chunks = [], []
    for kib in (64, 1024, 4096):
        n = kib * 256
        smooth = 280 + 20 * np.sin(np.arange(n) / 700) + 3 * np.sin(np.arange(n) / 11)
        noisy = (smooth + rng.normal(0, 0.3, n)).astype("<f4")
        rounded = ((noisy.view("<u4") + 0x400) & 0xFFFFF800).view("<f4")
        short = np.resize((noisy * 100).astype("<i2"), 2 * n)
        for kind, values in [("noise", noisy), ("rounded", rounded), ("short", short)]:
            size = values.itemsize
            arrays.append((size, values.tobytes()))
            planes = values.view("u1").reshape(-1, size).T.tobytes()
            for level in (1, 4, 9):
                filters = [(2, 0, [size]), (1, 0, [level])]
                name = f"{kib} KiB, {kind}, level {level}"
                chunks.append((name, len(arrays) - 1, 0, filters, zlib.compress(planes, level)))
    write(path, arrays, chunks)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "speed":
        speed(sys.argv[2])
    else:
        sys.exit(check(sys.argv[2]) != 0)
