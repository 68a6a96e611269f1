#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many clients of few I/O servers: 64 to 512 processes that put at the same time.

    many_clients.py                   64, 128, 256 and 512 clients, 1, 2 and 4 groups: some minutes; out/study/clients.md, .svg and .csv
    many_clients.py --clients 64 ...  others
    many_clients.py --groups 1 ...

Each client writes a file of its own, 16 records of 64 KiB with a pause of 50 ms after each. Each server has a device of 60 MB/s (`throttle:60M:shared`). A row
says what the slowest client waited for, what its puts cost, how long servers wrote after the last client, how many messages went, and how many bytes waited in
servers at most (by their recordings). Beside it stands the model of gathering to one rank that writes: all bytes pass one process, at the rate
of one device, while nobody computes.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT

sys.path[1:1] = [str(ROOT / "tests")]
import rig  # noqa: E402

STEPS, BYTES, PAUSE, RATE = 16, 64 << 10, 0.05, 60e6
FIELDS = ["clients", "groups", "clients end, s", "all written, s", "median put, us", "worst put, us", "messages", "most bytes that waited", "gathered (model), s"]


def traced(folder):
    """Messages that servers took, and the most bytes that waited in one of them at a time."""
    messages = most = 0
    for trace in folder.glob("trace.server*"):
        done = subprocess.run([rig.ZONDA, "trace", "--chrome", folder / "chrome.json", trace], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        for event in json.loads((folder / "chrome.json").read_text())["traceEvents"]:
            messages += event["name"] == "taken"
            if event["name"] == "queue bytes":
                most = max(most, *event["args"].values())
        trace.unlink()
    return messages, most


def row(program, n, groups):
    with tempfile.TemporaryDirectory(prefix="zonda-clients-") as name:
        folder = Path(name)
        (folder / "files").mkdir()
        env = {**os.environ, "LD_LIBRARY_PATH": str(rig.LIBDIR), "ZONDA_IO": "cache,throttle:%d:shared,file" % RATE, "ZONDA_TRACE": str(folder / "trace.%p")}
        words = [rig.ZONDA, "run", "--servers", "groups=%d" % groups, "--", program, str(n), folder / "files", str(STEPS), str(BYTES)]
        began = time.monotonic()
        done = subprocess.run(list(map(str, words)), env=env, capture_output=True, text=True, timeout=900)
        whole = time.monotonic() - began
        if done.returncode != 0:
            raise SystemExit("%d clients, %d groups: status %d: %s" % (n, groups, done.returncode, done.stderr[-1000:]))
        *puts, ended = map(float, done.stdout.split())
        size = sum(path.stat().st_size for path in (folder / "files").iterdir())
        if len(puts) != n * STEPS or size < n * STEPS * BYTES:
            raise SystemExit("%d puts and %d bytes of %d clients" % (len(puts), size, n))
        messages, most = traced(folder)
        return [n, groups, round(ended, 2), round(whole, 2), round(statistics.median(puts), 1), round(max(puts), 1), messages, most,
                round(STEPS * PAUSE + n * STEPS * BYTES / RATE, 2)]  # fmt: skip


def plot(rows, path):
    """Seconds over clients: when clients end, when all is written, and the model."""
    width, height, left, low = 640, 400, 60, 360
    most_x, most_y = max(r[0] for r in rows), max(max(r[3], r[8]) for r in rows)

    def at(x, y):
        return "%.1f,%.1f" % (left + (width - left - 20) * x / most_x, low - (low - 20) * y / most_y)

    colours = {1: "#d55e00", 2: "#0072b2", 4: "#009e73"}
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (width, height + 20)]
    out.append('<rect width="100%%" height="100%%" fill="white"/><path d="M%d,20 V%d H%d" stroke="black" fill="none"/>' % (left, low, width - 20))
    for x in sorted({r[0] for r in rows}):
        out.append('<text x="%s" y="%d" text-anchor="middle">%d</text>' % (at(x, 0).split(",")[0], low + 16, x))
    for part in range(5):
        y = most_y * part / 4
        out.append('<text x="%d" y="%s" text-anchor="end">%.1f s</text>' % (left - 4, at(0, y).split(",")[1], y))
    lines = [("gathered to one rank (model)", "#888888", "4", [(r[0], r[8]) for r in rows if r[1] == rows[0][1]])]
    for groups in sorted({r[1] for r in rows}):
        own = [r for r in rows if r[1] == groups]
        lines.append(("%d groups: all written" % groups, colours.get(groups, "#000000"), "", [(r[0], r[3]) for r in own]))
        lines.append(("%d groups: clients end" % groups, colours.get(groups, "#000000"), "2", [(r[0], r[2]) for r in own]))
    for number, (name, colour, dash, points) in enumerate(lines):
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>' % (" ".join(at(*p) for p in points), colour, dash))
        y = 30 + 16 * number
        out.append('<line x1="80" x2="110" y1="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/><text x="116" y="%d">%s</text>' % (y, y, colour, dash, y + 4, name))
    out.append('<text x="%d" y="%d" text-anchor="middle">clients, 1 MiB each</text></svg>' % (width // 2, height + 10))
    path.write_text("\n".join(out) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--clients", type=int, nargs="+", default=[64, 128, 256, 512])
    p.add_argument("--groups", type=int, nargs="+", default=[1, 2, 4])
    options = p.parse_args()
    out = ROOT / "out" / "study"
    out.mkdir(parents=True, exist_ok=True)
    program = rig.compile_c(out / "many_clients", ROOT / "bench" / "engines" / "many_clients.c")
    rows = []
    print("| %s |\n|%s" % (" | ".join(FIELDS), "---|" * len(FIELDS)))
    for groups in options.groups:
        for n in options.clients:
            rows.append(row(program, n, groups))
            print("| %s |" % " | ".join(map(str, rows[-1])), flush=True)
    with open(out / "clients.csv", "w", newline="") as file:
        csv.writer(file).writerows([FIELDS, *rows])
    (out / "clients.md").write_text("| %s |\n|%s\n" % (" | ".join(FIELDS), "---|" * len(FIELDS)) + "".join("| %s |\n" % " | ".join(map(str, r)) for r in rows))
    plot(rows, out / "clients.svg")


if __name__ == "__main__":
    main()
