#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Predicts how long the calls that all ranks of a file make take with up to 32,768 ranks, and draws it.

    parallel_model.py            the table; docs/dev/parallel-messages.svg, and the table of docs/dev/parallel.md
    parallel_model.py --check    are both as they would be made? exit 1 if not

The prediction is that of crates/zonda-team/src/model.rs, which has its assumptions, by its example `messages`.
"""
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLOT = ROOT / "docs/dev/parallel-messages.svg"
TEXT = ROOT / "docs/dev/parallel.md"
COLOURS = ["#1b6ca8", "#c1121f", "#2a9d57", "#e08e0b", "#6a4c93"]
WIDE, TALL, LEFT, TOP, BELOW = 300, 240, 56, 40, 84
GAP = 24


def table():
    command = ["cargo", "run", "--quiet", "--locked", "--package", "zonda-team", "--example", "messages"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def plot(rows, ranks):
    """A panel for each machine: seconds over ranks, both logarithmic."""
    machines = list(dict.fromkeys(machine for _, machine, _ in rows))
    calls = list(dict.fromkeys(call for call, _, _ in rows))
    times = [time for _, _, row in rows for time in row]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    last = math.log2(ranks[-1])
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (LEFT + len(machines) * (WIDE + GAP), TOP + TALL + BELOW),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="16" font-size="13">Waiting for other ranks in a call, predicted (LogGP)</text>' % LEFT]  # fmt: skip

    def height(time):
        return TOP + TALL * (high - math.log10(time)) / (high - low)

    for number, machine in enumerate(machines):
        begin = LEFT + number * (WIDE + GAP)
        out.append('<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' % (begin, TOP, WIDE, TALL))
        out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % (begin + WIDE / 2, TOP - 6, machine))
        for power in range(low, high + 1):
            y = height(10**power)
            out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (begin, begin + WIDE, y, y))
            if number == 0:
                out.append('<text x="%d" y="%.1f" text-anchor="end">%g ms</text>' % (begin - 5, y + 4, 10**power / 1000))
        places = [begin + 12 + (WIDE - 30) * math.log2(n) / last for n in ranks]
        for x, n in zip(places, ranks):
            out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x, TOP + TALL + 15, "{:,}".format(n)))
        for call, of, row in rows:
            if of == machine:
                points = " ".join("%.1f,%.1f" % (x, height(time)) for x, time in zip(places, row))
                out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (points, COLOURS[calls.index(call)]))
    for number, call in enumerate(calls):
        x, y = LEFT + number % 3 * 200, TOP + TALL + 40 + 20 * (number // 3)
        out.append('<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="3"/>' % (x, x + 22, y, y, COLOURS[number]))
        out.append('<text x="%d" y="%d">%s</text>' % (x + 28, y + 4, call))
    return "\n".join([*out, "</svg>", ""])


def main():
    text = table()
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    ranks = [int(cell) for cell in lines[0][2:]]
    rows = [(call, machine, [float(cell) for cell in cells]) for call, machine, *cells in lines[2:]]
    head = text.splitlines()[0]
    before, found, after = TEXT.read_text().partition(head)
    if not found:
        sys.exit("%s has no table that begins with %s" % (TEXT.name, head))
    rest = after.split("\n")
    end = next(at for at, line in enumerate(rest) if at and not line.startswith("|"))
    made = {TEXT: before + text.rstrip("\n") + "\n" + "\n".join(rest[end:]), PLOT: plot(rows, ranks)}
    if "--check" in sys.argv[1:]:
        old = [path.name for path, content in made.items() if not path.exists() or path.read_text() != content]
        sys.exit("out of date: %s; run bench/parallel_model.py" % ", ".join(old) if old else 0)
    for path, content in made.items():
        path.write_text(content)
    print(text, end="")


if __name__ == "__main__":
    main()
