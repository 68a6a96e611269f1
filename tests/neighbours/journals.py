# SPDX-License-Identifier: MIT OR Apache-2.0
"""Journals made from two states of a file, by the description in docs/dev and by nothing of Zonda's."""
import os
import struct
import zlib

SECTOR = 512


def classic(old, new, version=2, header_bytes=None):
    """A journal that makes the header of `old` that of `new`."""
    length = header_bytes or len(new)
    old_header, new_header = old[:length].ljust(length, b"\0"), new[:length]
    identity = os.urandom(16) if version == 2 else b""
    total = 64 + len(identity) + 2 * length
    covered = struct.pack("<QQQQQQ", total, 0, len(old), length, length, 0)
    covered += identity + old_header + new_header
    return b"ZNDJRNL" + bytes([version]) + struct.pack("<II", 1, zlib.crc32(covered)) + covered


def hdf5(old, new, version=2):
    """A journal that makes `old` `new`, which is as long, sector by sector."""
    assert len(old) == len(new)
    ranges = [at for at in range(0, len(new), SECTOR) if old[at:at + SECTOR] != new[at:at + SECTOR]]
    assert ranges, "two states that are the same"
    changes = b""
    for at in ranges:
        before, after = old[at:at + SECTOR], new[at:at + SECTOR]
        changes += struct.pack("<QQ", at, len(after)) + before + after
    identity = os.urandom(16) if version == 2 else b""
    total = 24 + len(identity) + len(changes)
    covered = struct.pack("<IQ", len(ranges), total) + identity + changes
    return b"ZNDJHDF" + bytes([version]) + struct.pack("<I", lookup3(covered)) + covered


def lookup3(data):
    """Bob Jenkins' hash of 2006, as HDF5 uses it for checksums of metadata."""
    mask = 0xffffffff

    def rot(x, k):
        return ((x << k) | (x >> (32 - k))) & mask

    a = b = c = (0xdeadbeef + len(data)) & mask
    rest = data
    while len(rest) > 12:
        x, y, z = struct.unpack("<III", rest[:12])
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        a = ((a - c) & mask) ^ rot(c, 4)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rot(a, 6)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rot(b, 8)
        b = (b + a) & mask
        a = ((a - c) & mask) ^ rot(c, 16)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rot(a, 19)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rot(b, 4)
        b = (b + a) & mask
        rest = rest[12:]
    if not rest:
        return c
    x, y, z = struct.unpack("<III", rest.ljust(12, b"\0"))
    a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
    c = ((c ^ b) - rot(b, 14)) & mask
    a = ((a ^ c) - rot(c, 11)) & mask
    b = ((b ^ a) - rot(a, 25)) & mask
    c = ((c ^ b) - rot(b, 16)) & mask
    a = ((a ^ c) - rot(c, 4)) & mask
    b = ((b ^ a) - rot(a, 14)) & mask
    return ((c ^ b) - rot(b, 24)) & mask
