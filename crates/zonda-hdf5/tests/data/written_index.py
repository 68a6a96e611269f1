"""Reads and changes the files that tests/written_index.rs puts together."""

import sys

import h5py
import numpy as np


def datasets(path):
    """Name, extent, chunk, and for each chunk its value."""
    out = []
    with open(path) as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "dataset":
                out.append((fields[1], eval(fields[2]), eval(fields[3]), []))
            else:
                out[-1][3].append((eval(fields[0]), int(fields[1])))
    return out


def filled(dims, chunk, chunks):
    """All elements, from the values of the chunks."""
    counts = [n // size for n, size in zip(dims, chunk)]
    values = np.full(counts, -1, "<i4")
    if chunks:
        values[tuple(np.array([key for key, _ in chunks]).T)] = [value for _, value in chunks]
    for axis, size in enumerate(chunk):
        values = values.repeat(size, axis)
    return values


def check(path, expected):
    with h5py.File(path) as file:
        for name, dims, chunk, chunks in datasets(expected):
            got = file[name]
            assert got.shape == tuple(dims) and got.chunks == tuple(chunk), (name, got.shape)
            assert (got[()] == filled(dims, chunk, chunks)).all(), name
            assert got.id.get_num_chunks() == len(chunks), (name, got.id.get_num_chunks())


def change(path, expected):
    with h5py.File(path, "r+") as file:
        for name, dims, chunk, chunks in datasets(expected):
            dataset = file[name]
            dataset.resize(dims)
            # Chunk by chunk, those that are to have another value, in no order.
            have = dataset[()][tuple(slice(None, None, size) for size in chunk)]
            wanted = [(key, value) for key, value in chunks if have[tuple(key)] != value]
            for at in np.random.default_rng(1).permutation(len(wanted)):
                key, value = wanted[at]
                place = tuple(slice(i * size, (i + 1) * size) for i, size in zip(key, chunk))
                dataset[place] = value


# The library is slow at this.
CHANGED = 20_000


def text(i):
    special = {5: b"x" * 5_000_000, 6: b"y" * 70_000, 7: "h\u00f6he".encode()}
    return special.get(i, b"%d," % i * (i * i % 11))


def expected_texts(n, changed):
    old = lambda i: b"" if i % 1000 == 3 else text(i)
    is_new = lambda i: changed and i % 7 == 1 and i < CHANGED
    return [b"new %d" % i if is_new(i) else old(i) for i in range(n)]


def texts(path, n, changed=False):
    with h5py.File(path) as file:
        got = file["texts"][()].tolist()
        for i, (a, b) in enumerate(zip(got, expected_texts(n, changed), strict=True)):
            assert a == b, (i, a[:50], b[:50])
        lists = file["lists"][()]
        for i, values in enumerate(lists):
            assert values.dtype == "<i4" and (values == np.arange(100 * i % 700)).all(), i
        if changed:
            assert file["more"][()].tolist() == expected_texts(n, False)[:5000]
            assert list(file.attrs["words"]) == ["several", "", "words"]


def change_texts(path, n):
    with h5py.File(path, "r+") as file:
        # Reading brings the collections into the library, which then fills their free space.
        values = file["texts"][()][:CHANGED]
        for i in range(1, len(values), 7):
            values[i] = b"new %d" % i
        file["texts"][:CHANGED] = values
        kind = h5py.string_dtype()
        file.create_dataset("more", data=expected_texts(n, False)[:5000], dtype=kind)
        file.attrs.create("words", ["several", "", "words"], dtype=kind)
    texts(path, n, True)
    try:
        import netCDF4
    except ImportError:
        print("skipped: no netCDF4")
        return
    with netCDF4.Dataset(path, "a") as file:
        got = file["texts"][:100].tolist()
        assert got == [text.decode() for text in expected_texts(100, True)], got[:20]
        file.createDimension("d", 3000)
        variable = file.createVariable("netcdf", str, ("d",))
        variable[:] = np.array(["n%d" % i for i in range(3000)], dtype=object)
    with netCDF4.Dataset(path) as file:
        assert file["netcdf"][:].tolist() == ["n%d" % i for i in range(3000)]
    texts(path, n, True)


if sys.argv[1] in ("check", "change"):
    globals()[sys.argv[1]](*sys.argv[2:])
else:
    globals()[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
