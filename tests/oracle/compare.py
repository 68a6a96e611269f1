#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares two transcripts of one oracle program.

    compare.py FAMILY REFERENCE ZONDA EXCEPTIONS

Exceptions are lines `family | regular expression | reason`; a line of a transcript that matches
one in whole is left out of the comparison. An exception must be needed: one that no differing
line matches is reported. Exit status 0: equal; 1: different; 2: an exception is not needed.
"""

import difflib
import re
import sys


def exceptions(path: str, family: str) -> list[re.Pattern[str]]:
    found = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, pattern, _reason = (part.strip() for part in line.split(" | ", 2))
                if name == family:
                    found.append(re.compile(pattern))
    return found


def read(path: str) -> list[str]:
    with open(path, encoding="latin-1") as lines:
        return lines.read().splitlines()


def main() -> int:
    family, reference, zonda, allowed = sys.argv[1:5]
    patterns = exceptions(allowed, family)
    sides = [read(reference), read(zonda)]
    full = difflib.unified_diff(*sides, n=0, lineterm="") if patterns else []
    differing = [line[1:] for line in full if line[:1] in "+-"]
    unneeded = [p for p in patterns if not any(p.fullmatch(line) for line in differing)]

    kept = [
        [line for line in side if not any(p.fullmatch(line) for p in patterns)] for side in sides
    ]
    if kept[0] != kept[1]:
        names = ("reference", "zonda")
        for shown, line in enumerate(difflib.unified_diff(*kept, *names, n=3, lineterm="")):
            if shown >= 80:
                print("    ... (more in the transcripts)")
                break
            print("    " + line)
        return 1
    for pattern in unneeded:
        print(f"    not needed any more: {pattern.pattern}")
    return 2 if unneeded else 0


if __name__ == "__main__":
    sys.exit(main())
