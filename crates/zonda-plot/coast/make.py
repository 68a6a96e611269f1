#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes land-110m.bin anew: the coastlines of Natural Earth at 1:110 million, as crates/zonda-plot/src/coast.rs reads them.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    crates/zonda-plot/coast/make.py package/land-110m.json

The source is TopoJSON: arcs as differences of whole numbers, with a scale and an offset. The result is numbers of variable
length (LEB128, signs in the lowest bit): how many lines; for each how many points, then longitude and latitude in hundredths
of a degree, the first ones whole, later ones as differences.
"""

import json
import sys
from pathlib import Path

STEPS = 100  # of a degree


def arcs(topology):
    """Each arc as points in hundredths of a degree."""
    (sx, sy), (tx, ty) = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            point = (round((x * sx + tx) * STEPS), round((y * sy + ty) * STEPS))
            if not points or point != points[-1]:
                points.append(point)
        yield points


def is_coast(a, b):
    """Whether a step is along a coast, and not along the edge of the map, where polygons were cut."""
    edge = 180 * STEPS - 1
    is_along_edge = abs(a[0]) >= edge and abs(b[0]) >= edge or a[1] <= -89.9 * STEPS and b[1] <= -89.9 * STEPS
    is_across_all = abs(a[0] - b[0]) > edge
    return not (is_along_edge or is_across_all)


def lines(points):
    """The parts of an arc that are coasts."""
    line = []
    for point in points:
        if line and not is_coast(line[-1], point):
            if len(line) > 1:
                yield line
            line = []
        line.append(point)
    if len(line) > 1:
        yield line


def number(value):
    """A number of either sign in as few bytes as it takes."""
    value = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def main(source):
    coasts = [line for arc in arcs(json.loads(Path(source).read_text())) for line in lines(arc)]
    out = bytearray(number(len(coasts)))
    for line in coasts:
        out += number(len(line))
        x = y = 0
        for px, py in line:
            out += number(px - x) + number(py - y)
            x, y = px, py
    target = Path(__file__).with_name("land-110m.bin")
    target.write_bytes(out)
    print(f"{target.name}: {len(coasts)} lines, {sum(map(len, coasts))} points, {len(out)} bytes")


main(sys.argv[1])
