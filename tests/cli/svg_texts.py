#!/usr/bin/env python3
"""The texts of an SVG picture in its order, and what is drawn: pictures within it (size, colours by number of pixels), and of lines
the number and the range of each colour."""
import base64
import struct
import sys
import xml.etree.ElementTree as tree
import zlib

SVG = "{http://www.w3.org/2000/svg}"


def chunks(png):
    """Type and content of each chunk of a PNG."""
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length


def colours(png):
    """Width, height, and how many pixels each colour of an indexed PNG has, most frequent first."""
    parts = {}
    for kind, content in chunks(png):
        parts[kind] = parts.get(kind, b"") + content
    width, height, depth, colour_type = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (depth, colour_type) == (8, 3), "not one byte for a pixel"
    lines = zlib.decompress(parts[b"IDAT"])
    counts = {}
    for row in range(height):
        line = lines[row * (width + 1) : (row + 1) * (width + 1)]
        assert line[0] == 0, "filtered"
        for index in line[1:]:
            counts[index] = counts.get(index, 0) + 1
    palette = parts[b"PLTE"]
    named = {}
    for index, count in counts.items():
        name = palette[3 * index : 3 * index + 3].hex() + "/" + parts[b"tRNS"][index : index + 1].hex()
        named[name] = named.get(name, 0) + count
    return width, height, sorted(named.items(), key=lambda item: (-item[1], item[0]))


root = tree.parse(sys.argv[1]).getroot()
assert root.tag == SVG + "svg", root.tag
print("size", root.get("width"), root.get("height"))
for image in root.iter(SVG + "image"):
    png = base64.b64decode(image.get("href").removeprefix("data:image/png;base64,"), validate=True)
    width, height, used = colours(png)
    print("image", width, height, *(f"{colour}:{count}" for colour, count in used[:6]))
lines = {}
for line in root.iter(SVG + "polyline"):
    points = [tuple(map(int, point.split(","))) for point in line.get("points").split()]
    lines.setdefault(line.get("stroke"), []).append(points)
for colour, all_of_it in lines.items():
    xs, ys = zip(*(point for points in all_of_it for point in points))
    print("lines", colour, len(all_of_it), "from", min(xs), min(ys), "to", max(xs), max(ys))
for text in root.iter(SVG + "text"):
    print("text", text.text.strip())
