#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two walks over HDF5 files must find the same: `zonda info` and structure.py, which shares nothing
with it.

    usage.py FILE...

Compared are the bytes that belong to nothing. Files that structure.py does not follow to the end
(damaged ones, and newer indexes of chunks) are left out, and so are those where `zonda info` says
that it could not count something.

ZONDA_LIBDIR (dist/lib): the tool is in bin beside it. One line per difference; the last line is
`N passed, N failed, N left out`.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import structure

ROOT = Path(__file__).resolve().parent.parent.parent


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("files", nargs="+")
    files = p.parse_args().files
    tool = Path(os.environ.get("ZONDA_LIBDIR", ROOT / "dist" / "lib")).resolve().parent / "bin" / "zonda"
    options = argparse.Namespace(sectors=False, exact=False)
    sys.setrecursionlimit(10000)
    passed = failed = left_out = 0
    for path in files:
        try:
            walk = structure.check(path, options)
        except (OSError, ValueError) as why:
            print("skip %s: %s" % (path, why))
            left_out += 1
            continue
        out = subprocess.run([tool, "info", "--json", path], capture_output=True, text=True, timeout=300)
        space = json.loads(out.stdout).get("space") if out.stdout else None
        if walk.problems or not walk.followed or space is None or space["faults"]:
            left_out += 1
            continue
        # What is behind the end that the superblock says belongs to nothing either. Collections of the
        # global heap count where a value refers to them here, and where they are there: those that
        # only references to regions lead to, and such that nobody uses, are found there alone.
        heap = sum(end - at for at, end, what in walk.extents if what == "global heap")
        lost = walk.lost + len(walk.data) - walk.end
        want, got = lost + heap, space["unaccounted_bytes"] + space["heap_bytes"]
        if got == want and space["heap_bytes"] >= heap and not space["overlaps"]:
            passed += 1
        else:
            failed += 1
            print("FAIL %s: %d bytes belong to nothing and %d are collections, `zonda info` says %s" % (path, lost, heap, space))
    print("%d passed, %d failed, %d left out" % (passed, failed, left_out))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
