#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packs wheels anew, by libdeflate's highest level: 4 % smaller than zlib makes them. What is in them stays, byte for byte and in its order.

    repack.py WHEEL...    in place; needs the package deflate of PyPI
"""
import os
import sys
import zipfile
from pathlib import Path

import deflate

LEVEL = 12


class Whole:
    """A compressor as `zipfile` wants one, which packs all at the end."""

    def __init__(self):
        self.parts = []

    def compress(self, data):
        self.parts.append(bytes(data))
        return b""

    def flush(self):
        return deflate.deflate_compress(b"".join(self.parts), LEVEL)


def repack(path):
    new = path.with_name(f".{path.name}.{os.getpid()}")
    own = zipfile._get_compressor
    # zipfile has no other way to bring a compressor.
    zipfile._get_compressor = lambda kind, level=None: Whole() if kind == zipfile.ZIP_DEFLATED else own(kind, level)
    try:
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w") as packed:
            for entry in old.infolist():
                packed.writestr(entry, old.read(entry))
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(new) as packed:
            for was, entry in zip(old.infolist(), packed.infolist(), strict=True):
                same = (was.filename, was.date_time, was.external_attr) == (entry.filename, entry.date_time, entry.external_attr)
                if not same or old.read(was) != packed.read(entry):
                    raise SystemExit(f"repack.py: {path}: {was.filename} is not what it was")
        before, after = path.stat().st_size, new.stat().st_size
        new.replace(path)
    finally:
        zipfile._get_compressor = own
        new.unlink(missing_ok=True)
    print(f"{path.name}: {after:,} bytes, {before:,} before")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        repack(Path(name))
