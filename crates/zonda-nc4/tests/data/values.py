#!/usr/bin/env python3
"""What netCDF4 and h5py make of files that Zonda wrote, and files for Zonda to change.

    values.py digests FILE...     for each variable: name, type, shape, digest of its values
    values.py make FILE           a file with all kinds of chunk indexes
    values.py changed FILE        whether exactly what Zonda put there has changed
"""

import hashlib
import sys

import h5py
import netCDF4
import numpy as np


def digests(path):
    with netCDF4.Dataset(path) as nc, h5py.File(path) as h5:
        nc.set_auto_mask(False)
        for name, var in nc.variables.items():
            var.set_auto_maskandscale(False)
            values = var[...]
            if var.dtype is str:
                text = "\0".join(np.ravel(values))
                print(name, "str", hashlib.sha256(text.encode()).hexdigest())
                continue
            values = np.asarray(values)
            native = values.astype(values.dtype.newbyteorder("="))
            # h5py reads what the variable has; netCDF4 all that its dimensions have.
            same = h5[name][()]
            same = same.astype(same.dtype.newbyteorder("=")) if same.dtype.kind in "iuf" else same
            inner = tuple(slice(0, n) for n in same.shape)
            if same.tobytes() != np.ascontiguousarray(native[inner]).tobytes():
                raise SystemExit(f"{path}: {name}: h5py and netCDF4 differ")
            shape = "x".join(str(n) for n in native.shape) or "scalar"
            digest = hashlib.sha256(np.ascontiguousarray(native).tobytes()).hexdigest()
            print(name, native.dtype.str[1:], shape, digest)


SHAPES = {
    "single": ((6, 6), None, (6, 6), None),
    "fixed": ((10, 7), None, (3, 3), "gzip"),
    "extensible": ((5, 7), (None, 7), (2, 3), "gzip"),
    "both": ((5, 4), (None, None), (2, 2), None),
    "plain": ((5, 7), (None, 7), (2, 3), None),
    "run": ((6, 7), None, None, None),
}


def values(name):
    shape = SHAPES[name][0]
    return np.arange(np.prod(shape), dtype="i4").reshape(shape)


def make(path):
    with h5py.File(path, "w", libver="latest", track_order=True) as h5:
        for name, (shape, most, chunks, filter_) in SHAPES.items():
            h5.create_dataset(
                name, data=values(name), maxshape=most, chunks=chunks, compression=filter_
            )
        h5.create_dataset("texts", data=np.array([b"one", b"two", b"three"], dtype="S5"))


def changed(path):
    with h5py.File(path) as h5:
        for name, (shape, most, _, _) in SHAPES.items():
            expected = values(name)
            if most is not None:
                longer = np.zeros((9,) + shape[1:], dtype="i4")
                longer[: shape[0]] = expected
                expected = longer
                expected[8, 1] = 1000
            expected[1:3, 2:4] = [[100, 101], [102, 103]]
            got = h5[name][()]
            if got.shape != expected.shape or (got != expected).any():
                raise SystemExit(f"{name}: {got} instead of {expected}")
        texts = list(h5["texts"][()])
        if texts != [b"one", b"four", b""]:
            raise SystemExit(f"texts: {texts}")


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    for path in paths:
        {"digests": digests, "make": make, "changed": changed}[command](path)
