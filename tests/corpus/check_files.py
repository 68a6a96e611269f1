#!/usr/bin/env python3
"""Asks a library about every file of this folder and compares with manifest.tsv.

    check_files.py LIBRARY

A sound file must give the same header and data digests, a damaged one the same code, and neither
may end the process. A file that manifest.tsv does not name is a failure.
"""
import re
import sys

import manifest


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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows, failed = manifest.read(), 0
    wrong = [(f, "not listed in manifest.tsv") for f in manifest.unlisted(rows)]
    wrong += [(r.file, judge(r, manifest.ask(sys.argv[1], r))) for r in rows]
    for name, why in wrong:
        failed += bool(why)
        print("%s %s%s" % ("FAIL" if why else "PASS", name, " -- " + why if why else ""))
    print("%d passed, %d failed" % (len(wrong) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
