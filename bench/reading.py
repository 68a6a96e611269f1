#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gets by an I/O server beside those of the program itself.

    bench/reading.py [--pairs 3] [--read on|all]

`tests/servers/read.c time` gets parts of a netCDF-4 file that follow no walk: floats without filters that become doubles, and doubles through deflate. One
process, or eight that read the same at once; `cold` has the kernel forget the file before. Runs with and without a server take turns. Reports milliseconds of a get (of the slowest process)
and the median of the ratios, and decides nothing.

environment: ZONDA_LIB (dist/lib)
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT / "tests"))
import rig  # noqa: E402

SIZES = ((1 << 16, 100), (1 << 20, 40), (16 << 20, 6))


def forget(path):
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def seconds(words, spec, path, is_cold):
    if is_cold:
        forget(path)
    done = rig.run([rig.ZONDA, "run", "--servers", spec, "--", *words], rig.environment(rig.LIBDIR), seconds=300)
    if done.returncode != 0:
        sys.exit("ends with %s: %s" % (done.returncode, done.stderr))
    return max(map(float, done.stdout.split()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--read", choices=("on", "all"), default="all")
    options = p.parse_args()
    specs = ("groups=0", "groups=1,read=" + options.read)
    with rig.scratch() as scratch:
        program, path = rig.compile_c(scratch / "read", ROOT / "tests" / "servers" / "read.c"), scratch / "x.nc"
        rig.must([program, "make", path, "4", "24", "1024"], rig.environment(rig.LIBDIR))
        for var in ("plain", "packed"):
            for n_bytes, rounds in SIZES:
                for n in (1, 8):
                    words = ["sh", "-c", 'for n in %s; do "$@" & done; wait' % " ".join(map(str, range(n))), "sh", program, "time", path, var, n_bytes, rounds]
                    for is_cold in (False, True):
                        pairs = []
                        for pair in range(options.pairs):
                            order = (0, 1) if pair % 2 == 0 else (1, 0)
                            took = {at: seconds(words, specs[at], path, is_cold) for at in order}
                            pairs.append((took[0], took[1]))
                        direct, served = (1e3 / rounds * statistics.median(pair[at] for pair in pairs) for at in (0, 1))
                        ratio = statistics.median(a / b for a, b in pairs)
                        print("%-6s %8d B  %d clients %-4s  alone %8.3f ms  by a server %8.3f ms  alone/server %.2f" % (var, n_bytes, n, "cold" if is_cold else "warm", direct, served, ratio), flush=True)


if __name__ == "__main__":
    main()
