# SPDX-License-Identifier: MIT OR Apache-2.0
"""Classic files, by their bytes: one variable `v` of floats, all of them 1 and more. What reads a value reads none that could be fill."""
import struct

NAME = "v"
FILL = struct.unpack(">f", bytes.fromhex("7cf00000"))[0]


def name(text):
    data = text.encode()
    return struct.pack(">i", len(data)) + data + bytes(-len(data) % 4)


def classic(n):
    """A CDF-1 file of `n` floats: 1 to 2, in turns."""
    head = b"CDF\x01" + struct.pack(">i", 0)
    head += struct.pack(">ii", 10, 1) + name("x") + struct.pack(">i", n)
    head += struct.pack(">ii", 0, 0)
    head += struct.pack(">ii", 11, 1) + name(NAME) + struct.pack(">ii", 1, 0) + struct.pack(">ii", 0, 0) + struct.pack(">ii", 5, 4 * n)
    begin = len(head) + 4
    values = struct.pack(">250f", *(1 + k / 250 for k in range(250)))
    return head + struct.pack(">i", begin) + (values * (n // 250 + 1))[: 4 * n]
