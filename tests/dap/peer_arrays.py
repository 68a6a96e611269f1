# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the servers of others serve: made here, by their processes and by the tests alike. Names begin alike nowhere: opendap-protocol takes what a
name begins with for the name."""
import numpy as np

SHAPE = {"t": 4, "y": 5, "x": 6}
TYPES = {"byte": "u1", "short": "i2", "ushort": "u2", "long": "i4", "ulong": "u4", "single": "f4", "double": "f8"}


def values(code, shape, seed):
    rng = np.random.default_rng(seed)
    if np.dtype(code).kind == "f":
        return (rng.standard_normal(shape) * 1e3).astype(code)
    info = np.iinfo(code)
    return rng.integers(info.min, info.max, shape, dtype=code, endpoint=True)


def coordinates():
    return {name: np.arange(size, dtype="f8") * 1.5 - n for n, (name, size) in enumerate(SHAPE.items())}


def grids():
    """{name: array on (t, y, x)}"""
    return {"%s_grid" % name: values(code, tuple(SHAPE.values()), n) for n, (name, code) in enumerate(TYPES.items())}


def scalars():
    return {"%s_scalar" % name: values(code, (), 20 + n) for n, (name, code) in enumerate(TYPES.items())}


def rows():
    """[(number, double, text)]"""
    return [(n, n * 0.25 - 1, "row %d" % n) for n in range(5)]


WORDS = ["nothing", "one", "some more words"]
