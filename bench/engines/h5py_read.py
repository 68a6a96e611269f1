#!/usr/bin/env python3
"""read4's `--op read` and `--op open` with h5py: the same options, result lines and digests."""

import json
import sys
import time

import h5py
import numpy as np

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
path, op = options["--file"], options.get("--op", "read")


def digest(values) -> int:
    words = np.ascontiguousarray(values).ravel().view(f"u{values.dtype.itemsize}")
    places = np.arange(words.size, dtype="u8") % 1021 + 1
    return int((words.astype("u8") * places).sum(dtype="u8"))


def ask(group) -> None:
    for item in group.values():
        for name in item.attrs:
            item.attrs[name]
        if isinstance(item, h5py.Group):
            ask(item)
        else:
            item.shape, item.dtype, item.chunks, item.compression, item.fillvalue


if op == "read":
    lines = [[int(word) for word in line.split()] for line in open(options["--list"])]
    rank = len(lines[0]) // 3
    total, n_bytes, first = 0, 0, 0.0
    start = time.perf_counter()
    file = h5py.File(path, "r", **({"rdcc_nbytes": int(options["--cache"])} if "--cache" in options else {}))
    variable = file[options.get("--var", "v0")]
    seconds = time.perf_counter() - start
    for number, line in enumerate(lines):
        at, count, step = (line[i * rank : (i + 1) * rank] for i in range(3))
        begin = time.perf_counter()
        values = variable[tuple(slice(a, a + (c - 1) * s + 1, s) for a, c, s in zip(at, count, step))]
        seconds += time.perf_counter() - begin
        first = first or seconds
        n_bytes += values.nbytes
        total += digest(values) * (number + 1)
    params = {"first": first}
    print(json.dumps({"workload": "read", "params": params, "seconds": seconds, "bytes": n_bytes,
                      "calls": len(lines), "digest": f"{total % 2**64:016x}"}))
else:
    cycles = int(options.get("--cycles", "1"))
    start = time.perf_counter()
    for _ in range(cycles):
        with h5py.File(path, "r") as file:
            if op == "inquire":
                ask(file)
    print(json.dumps({"workload": op, "params": {}, "seconds": time.perf_counter() - start, "bytes": 0,
                      "calls": cycles, "digest": None}))
