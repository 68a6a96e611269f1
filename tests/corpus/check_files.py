#!/usr/bin/env python3
"""Asks a library about every file of this folder and compares with manifest.tsv.

    check_files.py [LIBRARY]

A sound file must give the same header and data digests, a damaged one the same code, and neither
may end the process. A file that manifest.tsv does not name is a failure.
"""
import re
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import manifest  # noqa: E402
import rig  # noqa: E402


def judge(row, answer):
    """What is wrong, or an empty string."""
    code, header, data = answer
    if row.code == "refused":
        return "" if re.fullmatch(r"-?[1-9]\d*", code) else "nc_open: %s, expected an error code" % code
    if code != row.code:
        return "nc_open: %s, expected %s" % (code, row.code)
    if header != row.header_sha256:
        return "header differs (see probe.py --header)"
    if data != row.data_sha256:
        return "data differ"
    return ""


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("library", nargs="?", default=str(rig.LIBRARY))
    options, counts, rows = rig.arguments(parser), rig.Counts(), manifest.read()
    for name in manifest.unlisted(rows):
        counts.fail(name, "not listed in manifest.tsv")
    for row in rows:
        if options.wants(row.file) and counts.check(row.file, judge(row, manifest.ask(options.library, row))):
            print("PASS %s" % row.file)
    return counts


if __name__ == "__main__":
    rig.main(main)
