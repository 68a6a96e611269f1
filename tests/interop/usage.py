#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two walks over HDF5 files must find the same: `zonda info` and structure.py, which shares nothing
with it.

    usage.py FILE...
    usage.py          the files of the crates' tests, and the smallest of ZONDA_CORPUS

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

# Files of the corpus.
MOST = 300
ROOT = Path(__file__).resolve().parent.parent.parent


def some():
    files = sorted(str(f) for data in ROOT.glob("crates/*/tests/data") for f in data.glob("*.[hn][5c]"))
    corpus = os.environ.get("ZONDA_CORPUS")
    if not corpus:
        print("skip the corpus: ZONDA_CORPUS names none")
        return files
    names = [f for f in Path(corpus).rglob("*") if f.suffix in (".nc", ".nc4", ".h5", ".hdf5", ".he5")]
    sized = sorted((f.stat().st_size, str(f)) for f in names if f.is_file())
    return files + [f for _, f in sized[:MOST]]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("files", nargs="*")
    files = p.parse_args().files or some()
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
        kinds = space["kinds"]
        # What structure.py does not look at.
        unseen = sum(kinds.get(k, 0) for k in ("names of external files", "free-space managers", "shared messages", "cache image"))
        # What is behind the end that the superblock says belongs to nothing either. Collections of the
        # global heap count where a value refers to them here, and where they are there: those that
        # only references to regions lead to, and such that nobody uses, are found there alone.
        heap = sum(end - at for at, end, what in walk.extents if what == "global heap")
        lost = walk.lost + len(walk.data) - walk.end
        collections = kinds.get("global heap", 0)
        want, got = lost + heap, space["unaccounted_bytes"] + collections + unseen
        if got == want and collections >= heap and not space["overlaps"]:
            passed += 1
        else:
            failed += 1
            print("FAIL %s: %d bytes belong to nothing and %d are collections, `zonda info` says %s" % (path, lost, heap, space))
    print("%d passed, %d failed, %d left out" % (passed, failed, left_out))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
