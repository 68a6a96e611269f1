#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zonda edits in place what others wrote: the matrix of files and operations.

    tests/edit/run.py                  a sample: each file and each operation with some of the others
    tests/edit/run.py --long           every file with every operation
    tests/edit/run.py --only PATTERN   cases whose FILE OPERATION matches (a regular expression)
    tests/edit/run.py --parts LIST     of matrix, crash, beside
    tests/edit/run.py --refusals       all that was refused, as lines of refused.txt

Files are made by sources.py, operations are those of change.py, done by the library under test. Then
the library itself, h5py, both netCDF-C and h5dump read the file; what the operation says must be
seen; everything else must have the digest that it had; the structure is walked byte by byte; and
libhdf5 goes on editing it (goon.py). A refusal must leave the bytes as they were, and be in
refused.txt.

ZONDA_LIBDIR (dist/lib) or --lib is the library under test. ZONDA_PYTHON has h5py, hdf5plugin and netCDF4
(out/venv); without it all is skipped. ZONDA_CORPUS may name a folder of further files. ZONDA_SCRATCH
(/dev/shm) takes the files; those of failures are kept in out/edit/failed.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "out" / "edit"


def find_python():
    """Goes on in the Python that has what is needed."""
    needed = "import h5py, hdf5plugin, netCDF4"
    try:
        exec(needed, {})
        return
    except ImportError:
        pass
    if "EDIT_PYTHON" not in os.environ:
        for python in (os.environ.get("ZONDA_PYTHON", ""), str(ROOT / "out" / "venv" / "bin" / "python")):
            if os.path.exists(python) and subprocess.run([python, "-c", needed], capture_output=True).returncode == 0:
                os.environ["EDIT_PYTHON"] = python
                os.execv(python, [python, *sys.argv])
    print("tests/edit: no Python with h5py, hdf5plugin and netCDF4\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--long", action="store_true", help="every file with every operation")
    p.add_argument("--only", default="", help="cases whose FILE OPERATION matches")
    p.add_argument("--parts", default="matrix,crash,beside")
    p.add_argument("--lib", default=os.environ.get("ZONDA_LIBDIR") or str(ROOT / "dist" / "lib"), help="folder of the library under test")
    p.add_argument("--refusals", action="store_true", help="print what was refused as lines of refused.txt")
    p.add_argument("--corpus", type=int, default=None, help="files of the corpus")
    p.add_argument("--seconds", type=int, default=None, help="of the part beside")
    p.add_argument("--pause", type=float, default=0, help="seconds between two commits, of the part beside")
    p.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    return p.parse_args()


def main():
    find_python()
    o = options()
    sys.path.insert(0, str(HERE))
    os.environ.update(HDF5_USE_FILE_LOCKING="FALSE", LC_ALL="C.UTF-8", TZ="UTC", PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    import programs
    scratch = Path(tempfile.mkdtemp(prefix="zonda-edit-", dir=os.environ.get("ZONDA_SCRATCH", "/dev/shm")))
    shutil.rmtree(OUT / "failed", ignore_errors=True)
    counts = collections.Counter()
    try:
        tools = programs.Programs(o, scratch)
        for part in o.parts.split(","):
            start = time.time()
            module = __import__(part)
            found = module.run(o, tools, scratch)
            counts.update(found)
            print("edit: %s: %s [%d s]" % (part, ", ".join("%d %s" % (n, k) for k, n in found.items()), time.time() - start), flush=True)
    except programs.Setup as why:
        print("tests/edit: %s\n0 passed, 1 failed" % why)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("%d passed, %d failed%s" % (counts["passed"], counts["failed"], ", %d skipped" % counts["skipped"] if counts["skipped"] else ""))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
