#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zonda edits in place what others wrote: the matrix of files and operations.

    tests/edit/run.py                  a sample: each file and each operation with some of the others
    tests/edit/run.py --long           every file with every operation
    tests/edit/run.py --only PATTERN   cases whose FILE OPERATION matches (a regular expression)
    tests/edit/run.py --quick          each fifth file with one operation
    tests/edit/run.py --parts LIST     of matrix, crash, beside
    tests/edit/run.py --refusals       all that was refused, as lines of refused.txt

Files are made by sources.py, operations are those of change.py, done by the library under test. Then
the library itself, h5py, both netCDF-C and h5dump read the file; what the operation says must be
seen; everything else must have the digest that it had; the structure is walked byte by byte; and
libhdf5 goes on editing it (goon.py). A refusal must leave the bytes as they were, and be in
refused.txt.

Without a Python with h5py, hdf5plugin and netCDF4 all is skipped. --lib names another library under test.
Files of failures are kept in out/edit/failed. tests/rig/places.py has the settings.
"""
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402


def options():
    p = rig.parser(__doc__, parts={"matrix": rig.QUICK, "crash": rig.FULL, "beside": rig.FULL}, only="cases whose FILE OPERATION matches")
    p.add_argument("--lib", default=str(rig.LIBDIR), help="folder of the library under test")
    p.add_argument("--refusals", action="store_true", help="print what was refused as lines of refused.txt")
    p.add_argument("--corpus", type=int, default=None, help="files of the corpus")
    p.add_argument("--seconds", type=int, default=None, help="of the part beside")
    p.add_argument("--pause", type=float, default=0, help="seconds between two commits, of the part beside")
    p.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    return rig.arguments(p)


def main():
    rig.needs("h5py", "hdf5plugin", "netCDF4")
    o, counts = options(), rig.Counts()
    os.environ.update(HDF5_USE_FILE_LOCKING="FALSE", LC_ALL="C.UTF-8", TZ="UTC", PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    import programs
    rig.out("edit", "failed", anew=True)
    with rig.scratch(in_memory=True) as scratch:
        tools = programs.Programs(o, scratch)
        for part in o.chosen():
            start = time.time()
            found = __import__(part).run(o, tools, scratch)
            # They say themselves what is wrong.
            counts.passed, counts.failed = counts.passed + found["passed"], counts.failed + found["failed"]
            print("edit: %s: %s [%d s]" % (part, ", ".join("%d %s" % (n, k) for k, n in found.items()), time.time() - start), flush=True)
    return counts


if __name__ == "__main__":
    rig.main(main)
