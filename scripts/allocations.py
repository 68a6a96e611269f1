#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds memory that is taken without a way to fail, in a size that may come from outside.

`Vec::with_capacity(n)`, `vec![value; n]`, `resize`, `reserve` and `repeat` end the process where there is
no memory. Where a caller or a file says n, `zonda_model::memory` is to be used instead, which gives an
error. Sizes made of constants, of ranks and of lengths of what is in memory already are fine; so is what
follows a `try_reserve`. Each other place is in allocations.txt with the reason why its size is bounded:

    crates/PATH | SIZE | reason

    scripts/allocations.py           new places and lines that no place needs any more: exit 1
    scripts/allocations.py --list    all places that need a line, in the form of one
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = ROOT / "scripts" / "allocations.txt"
# All but what only tests use.
CRATES = sorted(path.name for path in (ROOT / "crates").iterdir() if path.name != "zonda-testkit")
TAKES = re.compile(r"with_capacity\(|vec!\[|\.reserve\(|\.reserve_exact\(|\.resize\(|\.resize_with\(|\.repeat\(")
# What was asked for just before cannot fail any more.
ASKED = re.compile(r"try_reserve|reserve\((filter|NAME)|super::reserve|slab::zeros\(|memory::(reserve|room|lengthen|filled)")
LINES_BEFORE = 5
# Parts of sizes that are bounded by what is there.
BOUNDED = [
    r"\b\d[\d_]*\b", r"\b[A-Z][A-Z0-9_]+\b", r"\b(Self|self|crate|super|size_of|size_of_val)\b", r"\b(u8|u16|u32|u64|usize|as|from|try_from|T|f32|f64|sirocco|deflate)\b",
    r"\b(n_)?rank\b", r"[\w.&()\[\]*]*\.(len|count|rank)\(\)", r"\.(saturating_add|saturating_mul|saturating_sub|max|min|next_multiple_of|checked_next_multiple_of|div_ceil|unwrap_or|unwrap_or_default|unwrap|into)\b",
]


def argument(text, at):
    """The text between the bracket before `at` and the one that closes it."""
    depth, begin = 1, at
    while at < len(text) and depth:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        at += 1
    return " ".join(text[begin : at - 1].split())


def size_of(call, inside):
    """The part of the argument that is the size."""
    if call == "vec![":
        return inside.rsplit(";", 1)[1].strip() if ";" in inside else None
    depth = 0
    for i, ch in enumerate(inside):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(ch, 0)
        if ch == "," and depth == 0:
            return inside[:i].strip()
    return inside


def is_bounded(size):
    for part in BOUNDED:
        size = re.sub(part, "", size)
    return not re.search(r"[a-z_]", size)


def places():
    for crate in CRATES:
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            name = path.relative_to(ROOT).as_posix()
            if re.search(r"/tests?(/|\.rs)|/testing\.rs|/lab\.rs", name):
                continue
            text = re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod \w+ \{", path.read_text())[0]
            lines = text.splitlines()
            for match in TAKES.finditer(text):
                number = text.count("\n", 0, match.start())
                if lines[number].lstrip().startswith("//"):
                    continue
                size = size_of(match[0], argument(text, match.end()))
                before = "\n".join(lines[max(0, number - LINES_BEFORE) : number + 1])
                if size and not is_bounded(size) and not ASKED.search(before):
                    yield name, size, number + 1


def main():
    found = list(places())
    if "--list" in sys.argv:
        for name, size, _ in found:
            print("%s | %s | " % (name, size))
        return 0
    listed = set()
    for line in LISTED.read_text().splitlines():
        if line and not line.startswith("#"):
            name, size, reason = (part.strip() for part in line.split(" | "))
            listed.add((name, size))
    new = [place for place in found if place[:2] not in listed]
    for name, size, line in new:
        print("%s:%d: memory of `%s` is taken without a way to fail: use zonda_model::memory, or say in scripts/allocations.txt what bounds it" % (name, line, size), file=sys.stderr)
    gone = listed - {place[:2] for place in found}
    for name, size in sorted(gone):
        print("scripts/allocations.txt: nothing in %s takes `%s` any more" % (name, size), file=sys.stderr)
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
