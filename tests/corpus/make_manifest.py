#!/usr/bin/env python3
"""Fills the last three columns of manifest.tsv with what the distribution's library answers.

    make_manifest.py [--lib LIBRARY]

To add a file: copy it into files/ (or bad/ if damaged), add a line with its name, origin and
licence, run this. Only files with a clearly open licence, below 50 KB.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import manifest  # noqa: E402
import rig  # noqa: E402

NC_ENOMEM = "-61"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lib", default=None)
    library = p.parse_args().lib or str(rig.reference_library())
    rows = manifest.read()
    for r in rows:
        r.code, r.header_sha256, r.data_sha256 = answer = manifest.ask(library, r)
        if r.damaged and (not re.fullmatch(r"-?\d+", r.code) or r.code == NC_ENOMEM
                          or manifest.ask(library, r, "--unlimited") != answer):
            r.code, r.header_sha256, r.data_sha256 = "refused", "-", "-"
        print(r.file, r.code)
    manifest.write(rows)
    for f in manifest.unlisted(rows):
        print("not listed:", f)


if __name__ == "__main__":
    main()
