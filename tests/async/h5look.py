# SPDX-License-Identifier: MIT OR Apache-2.0
"""What h5py sees of files of agent.c. Of each line, "N PATH", it says as agent.c does: a code, seconds, how many
records there are, and of the first N and of the others, for both variables, how many are right, absent in
part, wrong."""

import sys

import h5py
import numpy as np


def counts(data, var, first, last):
    n = [0, 0, 0]
    i = np.arange(data.shape[1])
    for r in range(first, last):
        want = r * 1000.0 + i % 997 if var == "a" else r + (i % 512) * 0.25
        # A record that the dataset does not reach is fill values.
        row = data[r].astype("f8") if r < data.shape[0] else np.full(i.size, data.fillvalue, "f8")
        other = row != want
        absent = other & (np.abs(row - 9.969209968386869e36) < 1e30)
        n[2 if (other & ~absent).any() else 1 if absent.any() else 0] += 1
    return n


for line in sys.stdin:
    promised, path = line.rstrip("\n").split(maxsplit=1)
    try:
        with h5py.File(path, "r") as f:
            promised, length = int(promised), max(f[v].shape[0] for v in "ab")
            found = [x for ends in ((0, promised), (promised, length)) for v in "ab" for x in counts(f[v], v, *ends)]
            print(0, 0, length, *found, flush=True)
    except (OSError, KeyError, RuntimeError) as why:
        print(1, 0, *str(why).split(), flush=True)
