#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two walks over HDF5 files must find the same: `zonda info` and structure.py, which shares nothing
with it.

    usage.py FILE...
    usage.py          the files of the crates' tests, and the smallest of ZONDA_CORPUS

Compared are the bytes that belong to nothing. Files that structure.py does not follow to the end
(damaged ones, and newer indexes of chunks) are left out, and so are those where `zonda info` says
that it could not count something.

tests/rig/places.py has the settings. One line per difference.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402
import structure  # noqa: E402


def some(options, counts):
    """Files of ours, and the smallest of the corpus."""
    files = sorted(str(f) for data in rig.ROOT.glob("crates/*/tests/data") for f in data.glob("*.[hn][5c]"))
    if not rig.CORPUS:
        counts.skip("the corpus", "ZONDA_CORPUS names none")
        return files
    names = [f for f in rig.CORPUS.rglob("*") if f.suffix in (".nc", ".nc4", ".h5", ".hdf5", ".he5")]
    sized = sorted((f.stat().st_size, str(f)) for f in names if f.is_file())
    return files + [f for _, f in sized[:options.by(0, 300, 300)]]


def main():
    parser = rig.parser(__doc__, only=None)
    parser.add_argument("files", nargs="*")
    options, counts = rig.arguments(parser), rig.Counts()
    sys.setrecursionlimit(10000)
    left_out = 0
    for path in options.files or some(options, counts):
        try:
            walk = structure.check(path, argparse.Namespace(sectors=False, exact=False))
        except (OSError, ValueError) as why:
            print("left out %s: %s" % (path, why))
            left_out += 1
            continue
        out = rig.run([rig.ZONDA, "info", "--json", path])
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
        is_same = got == want and collections >= heap and not space["overlaps"]
        counts.check(path, None if is_same else "%d bytes belong to nothing and %d are collections, `zonda info` says %s" % (lost, heap, space))
    print("%d left out" % left_out)
    return counts


if __name__ == "__main__":
    rig.main(main)
