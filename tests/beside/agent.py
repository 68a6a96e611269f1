# SPDX-License-Identifier: MIT OR Apache-2.0
"""agent.c by h5py: the commands that run.py asks of it."""
import sys

import h5py
import numpy as np

WIDTH = 64
files = {}


def create(path):
    f = h5py.File(path, "w", track_order=True)
    t = f.create_dataset("t", (0,), "i4", maxshape=(None,), chunks=(1024,))
    t.make_scale("t")
    x = f.create_dataset("x", (WIDTH,), "i4")
    x.make_scale("x")
    for name, gzip in (("a", None), ("b", 1)):
        v = f.create_dataset(name, (0, WIDTH), "i4", maxshape=(None, WIDTH), chunks=(1, WIDTH), compression=gzip)
        v.dims[0].attach_scale(t)
        v.dims[1].attach_scale(x)
    return f


def records(f):
    text = "n %d" % f["a"].shape[0]
    for name in "ab":
        text += " |"
        last = -2
        for row in f[name][...]:
            value = int(row[0]) if (row == row[0]).all() else -1
            if value != last:
                text += " %d" % value
            last = value
    return text + " : "


def command(word, ident, rest):
    f = files.get(ident)
    if word == "create":
        files[ident] = create(rest[0])
    elif word == "open":
        files[ident] = h5py.File(rest[1], "r" if rest[0] == "r" else "r+")
    elif word == "append":
        n, value = map(int, rest)
        old = f["a"].shape[0]
        for name in "ab":
            f[name].resize(old + n, 0)
            f[name][old:] = value
    elif word == "overwrite":
        for name in "ab":
            f[name][...] = int(rest[0])
    elif word == "attribute":
        f.attrs[rest[0]] = np.bytes_("x" * 300)
    elif word == "sync":
        f.flush()
    elif word == "close":
        files.pop(ident).close()
    elif word == "records":
        return records(f)
    else:
        return None
    return ""


for line in sys.stdin:
    word, ident, *rest = line.split()
    if word == "quit":
        break
    try:
        said = command(word, ident, rest)
        print("%s0 " % said if said is not None else "-999 ", flush=True)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        print("-1 %s" % str(error).replace("\n", " "), flush=True)
