#!/usr/bin/env python3
"""Writes classic files that ncgen cannot write, byte by byte, into a folder.

    odd_files.py FOLDER

Each is one that `ncdump` reads: names full of punctuation, text longer than a block of `zonda dump`,
a file whose end is missing, rows that do not fill a block evenly.
"""

import struct
import sys
from pathlib import Path

BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE = range(1, 7)
SIZE = {BYTE: 1, CHAR: 1, SHORT: 2, INT: 4, FLOAT: 4, DOUBLE: 8}
DIM, VAR, ATT = 10, 11, 12


def number(value):
    return struct.pack(">I", value)


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def name(text):
    data = text.encode() if isinstance(text, str) else text
    return number(len(data)) + padded(data)


def a_list(tag, items):
    return number(tag if items else 0) + number(len(items)) + b"".join(items)


def text_atts(atts):
    return a_list(ATT, [name(k) + number(CHAR) + number(len(v)) + padded(v) for k, v in atts])


def classic(dims, variables, atts=(), records=0):
    """A CDF-1 file: dims (name, length), variables (name, axes, type, data, atts), all of fixed size."""
    head = b"CDF\x01" + number(records) + a_list(DIM, [name(n) + number(l) for n, l in dims])
    head += text_atts(atts)

    def entries(begin):
        items = []
        for label, axes, kind, data, own in variables:
            item = name(label) + number(len(axes)) + b"".join(map(number, axes)) + text_atts(own)
            items.append(item + number(kind) + number(len(padded(data))) + number(begin))
            begin += len(padded(data))
        return a_list(VAR, items)

    begin = len(head) + len(entries(0))
    return head + entries(begin) + b"".join(padded(data) for _, _, _, data, _ in variables)


PUNCTUATION = "".join(c for c in map(chr, range(33, 127)) if not c.isalnum() and c != "/")


def files():
    yield "punctuation", classic(
        [("dim " + PUNCTUATION, 2), ("7th", 1)],
        [
            ("v" + PUNCTUATION, [0], INT, struct.pack(">2i", 1, 2), [("a" + PUNCTUATION, b"x")]),
            ("2m temperature", [1], SHORT, struct.pack(">h", 3), [("1st", b"y")]),
            ("with\ttab\x7f", [], BYTE, b"\5", []),
            ("group", [], BYTE, b"\5", [("data", b"z")]),
            (b"latin\xe9\xff", [], BYTE, b"\5", []),
        ],
        [("global " + PUNCTUATION, b"z")],
    )
    # A string of one row over several blocks: characters, then NULs, then one more character.
    row = 5_000_001
    long_text = bytearray(2 * row)
    long_text[:10] = b"beginning\n"
    long_text[row - 1] = ord("!")
    long_text[row + 4_500_000] = ord("x")
    yield "long_text", classic([("n", 2), ("len", row)], [("text", [0, 1], CHAR, long_text, [])])
    # Rows of shorts that end in the middle of a block.
    n, m = 3, 700_001
    shorts = struct.pack(f">{m}h", *((i * 7) % 30000 for i in range(m))) * n
    yield "long_rows", classic([("n", n), ("m", m)], [("v", [0, 1], SHORT, shorts, [])])
    numbers = struct.pack(">1000d", *(i * 0.1 for i in range(1000)))
    whole = classic([("n", 1000)], [("a", [0], DOUBLE, numbers, []), ("b", [0], DOUBLE, numbers, [])])
    yield "end_missing", whole[:-2001]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for label, data in files():
        (folder / f"{label}.nc").write_bytes(data)


main()
