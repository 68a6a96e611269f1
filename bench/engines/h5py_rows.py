#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows of rows.c that are about HDF5, with h5py: the same options, work, result lines and digests.

    h5py_rows.py --row att4|get1-chunks-random|open4-one --file FILE [--calls N] [--loops N]
"""
import json
import sys
import time

import h5py
import numpy as np

VARS, OTHERS, MASK = 100, 300_000, 2**64 - 1
START, FACTOR = 0xCBF29CE484222325, 0x9E3779B97F4A7C15
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
row, path = options["--row"], options["--file"]


def word(h, w):
    h = ((h ^ w) * FACTOR) & MASK
    return h ^ h >> 29


def digest(values):
    """digest_bytes of engine.h, of whole words."""
    h = START
    for w in values.view("u8").tolist():
        h = word(h, w)
    return word(h, 0)


def random_places(n, total):
    """places_of of rows.h, by number."""
    state, found = 7, np.empty(n, "u8")
    for k in range(n):
        state = (state + FACTOR) & MASK
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        found[k] = (z ^ z >> 31) % total
    return found


def att4(calls):
    with h5py.File(path, "r") as file:
        attributes = [file["variable_number_%d" % v].attrs for v in range(VARS)]
        told, begin = {}, time.process_time()
        for i in range(calls):
            pair = attributes[i % VARS]["valid_range"]
            told[i % VARS] = int(pair[0] + 3 * pair[1])
        seconds = time.process_time() - begin
        # Of as many calls as the others make in this time.
        return seconds, sum(told[i % VARS] * (i + 1) for i in range(OTHERS)) & MASK


def one_value(calls):
    with h5py.File(path, "r") as file:
        variable = file["v0"]
        places = np.array(np.unravel_index(random_places(calls, variable.size), variable.shape)).T.tolist()
        values, begin = np.empty(calls), time.process_time()
        for i, (a, b, c) in enumerate(places):
            values[i] = variable[a, b, c]
        return time.process_time() - begin, digest(values)


def open_one(calls):
    begin = time.process_time()
    for _ in range(calls):
        with h5py.File(path, "r") as file:
            told = int(file["variable_617"][0])
    return time.process_time() - begin, told


work, calls = {"att4": (att4, 3000), "get1-chunks-random": (one_value, 20000), "open4-one": (open_one, 5)}[row]
calls = int(options.get("--calls", calls))
results = [work(calls) for _ in range(int(options.get("--loops", 5)))]
seconds, told = min(s for s, _ in results), results[-1][1]
print(json.dumps({"workload": row, "params": {}, "seconds": seconds, "bytes": 0, "calls": calls, "digest": "%016x" % told}))
