#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Predicts whole reads and writes, and calls of one element by many threads, on up to 128 cores, from costs that were measured on few.

    cores_model.py              the tables, from the newest record; docs/dev/many-cores.svg, and the tables of docs/dev/many-cores.md
    cores_model.py --check      are both as they would be made? exit 1 if not
    cores_model.py --measure    measures first, some minutes, and keeps a record (bench/record)
    cores_model.py --measure --rounds N    with N rounds (15)

A run by one thread counts by its processor time, the least of the rounds. One by two threads counts by its wall time where both had a processor for most of it
(the median of these rounds): on a busy machine there may be none, and then the table says so.

Nobody has measured more cores than the record has. What is assumed is in ASSUMED and in the functions that predict; docs/dev/many-cores.md says it in words.
Lines that threads share are counted, not timed: tests/counts/shared.txt.
"""
import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from harness import BENCH, ROOT

PLOT, PAGE = ROOT / "docs/dev/many-cores.svg", ROOT / "docs/dev/many-cores.md"
COUNTS = ROOT / "tests/counts/shared.txt"
BEGIN, END = "<!-- bench/cores_model.py: begin -->", "<!-- bench/cores_model.py: end -->"
CORES = (1, 2, 16, 32, 64, 128)
MIB = 1 << 20
# Measured: an array of so many bytes, in chunks of so many; chunks of LITTLE bytes show what a chunk costs beside its bytes.
BYTES, CHUNK, LITTLE = 64 * MIB, MIB, 16 << 10
# Calls of one element in a run: some milliseconds.
ONES_CALLS = 200_000
# A run counts where its threads had a processor for this share of its time.
HAD_PROCESSORS = 0.8
# Predicted: an array of so many bytes, of chunks as above.
PREDICTED = 4096 * MIB
ASSUMED = {
    # Bytes a second that the memory of one socket moves, and its cores.
    "socket_traffic": 200e9,
    "socket_cores": 64,
    # Bytes that memory moves for each byte of the array: copies, shuffled and compressed forms, the system's cache.
    "traffic": {"write deflate": 4.0, "write plain": 3.0, "read deflate": 3.0, "read plain": 3.0},
    # How much longer a line takes from one socket to the other.
    "far_line": 2.0,
    # Threads that write at a time where a file system lets several (STORE_WRITERS of zonda-chunk).
    "writers": 4,
}
# What is predicted of calls: name, what cores.c calls it, the row of shared.txt.
ONES = (
    ("get, in order, a file each", "get own", "get1-own"),
    ("get, in order, one file", "get same", "get1"),
    ("put, in order, a file each", "put own", "put1-own"),
    ("put, in order, one file", "put same", "put1"),
    ("get, deflated chunks, a file each", "got-chunks own", "get1filtered-own"),
    ("get, deflated chunks, one file", "got-chunks same", "get1filtered"),
)
COLOURS = ["#1b6ca8", "#c1121f", "#2a9d57", "#e08e0b", "#6a4c93", "#444444"]


# ---- measuring

class Engine:
    """cores.c, with the library of dist/."""

    def __init__(self, folder):
        self.folder, self.program = folder, folder / "cores"
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-I", ROOT / "dist/include", BENCH / "engines/cores.c", "-o", self.program]
        subprocess.run([*command, "-L", ROOT / "dist/lib", "-lnetcdf", "-lpthread"], check=True)

    def run(self, words, threads=1):
        env = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "dist/lib"), "ZONDA_THREADS": str(threads)}
        out = subprocess.run([self.program, *map(str, words)], cwd=self.folder, env=env, capture_output=True, text=True, check=True)
        wall, cpu, n = map(float, out.stdout.split())
        return {"wall": wall, "cpu": cpu, "n": n}


def cases():
    """Name -> words for cores.c, threads of the library."""
    found = {}
    for kind in ("deflate", "plain"):
        for what in ("write", "read"):
            for threads in (1, 2):
                found["%s %s %d" % (what, kind, threads)] = ([what, kind, CHUNK, BYTES, kind + ".nc"], threads)
        for what in ("write", "read"):
            found["%s %s little" % (what, kind)] = ([what, kind, LITTLE, BYTES, kind + "-little.nc"], 1)
    for threads in (1, 2):
        found["raw %d" % threads] = (["raw", threads, 2 * BYTES, "raw"], 1)
        found["copy %d" % threads] = (["copy", threads, BYTES], 1)
        found["line %d" % threads] = (["line", threads, 200_000], 1)
        for kind in ("get", "put", "got-chunks"):
            for which in ("same", "own"):
                files = ["ones-%d.nc" % n for n in range(threads if which == "own" else 1)]
                found["ones %s %s %d" % (kind, which, threads)] = (["ones", kind, which, threads, ONES_CALLS, *files], 1)
    found["wake"] = (["wake", 300], 1)
    return found


def measure(rounds):
    """Keeps a record of the costs; gives its path."""
    host, started = harness.machine(), datetime.datetime.now(datetime.timezone.utc)
    runs = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        engine, todo = Engine(Path(scratch)), cases()
        for number in range(rounds):
            # In the first round files are made before they are read.
            for name in harness.in_turn(todo, number) if number else todo:
                words, threads = todo[name]
                runs.setdefault(name, []).append(engine.run(words, threads))
        stored = (Path(scratch) / "deflate.nc").stat().st_size / BYTES
    rows = [{"case": name, "n": each[0]["n"], "wall": [run["wall"] for run in each], "cpu": [run["cpu"] for run in each]} for name, each in runs.items()]
    return harness.keep(host, started, "-cores", {"rounds": rounds, "stored": stored, "shared": read_counts()}, rows)


def read_counts():
    """Row -> lines, and stores to them, of a call."""
    found = {}
    for line in COUNTS.read_text().splitlines():
        words = line.split()
        if words and words[0] not in ("#", "row"):
            found[words[0]] = {"lines": float(words[2]), "writes": float(words[3])}
    return found


# ---- predicting

class Model:
    def __init__(self, record):
        self.record, self.of = record, {row["case"]: {"n": row["n"], "cpu": min(row["cpu"])} for row in record["rows"]}
        self.runs = {row["case"]: list(zip(row["wall"], row["cpu"])) for row in record["rows"]}
        n_more = BYTES / LITTLE - BYTES / CHUNK
        # Seconds a byte: what the system takes to write, one thread at a time.
        self.raw = self.of["raw 1"]["cpu"] / self.of["raw 1"]["n"]
        # Seconds a chunk that the calling thread takes beside the bytes: places, tables, calls. At most that, since some of it is any thread's.
        self.per_chunk = {what: max(0.0, (self.of[what + " plain little"]["cpu"] - self.of[what + " plain 1"]["cpu"]) / n_more) for what in ("write", "read")}
        # Seconds in which a line goes from one core to another.
        self.line = self.of["line 2"]["cpu"]

    def measured(self, case, threads=2):
        """Seconds of a run by so many threads; None where in no run they had as many processors."""
        walls = [wall for wall, cpu in self.runs[case] if cpu >= threads * HAD_PROCESSORS * wall]
        return statistics.median(walls) if walls else None

    def traffic_seconds(self, what, size, cores):
        """What memory takes at least; one core cannot have all of it, and what one has was measured."""
        one = 2 * self.of["copy 1"]["n"] / self.of["copy 1"]["cpu"]
        sockets = math.ceil(cores / ASSUMED["socket_cores"])
        return ASSUMED["traffic"][what] * size / min(cores * one * 1.5, sockets * ASSUMED["socket_traffic"])

    def whole(self, what, size, cores, writers=1):
        """Seconds for a whole array: as much as the calling thread alone takes, or all of the work by all cores, or memory; and what the last chunk takes,
        for which the others wait."""
        work = self.of[what + " 1"]["cpu"] / BYTES * size
        n_chunks = size / CHUNK
        alone = self.per_chunk[what.split()[0]] * n_chunks
        if what == "write plain":
            # One thread does all of it, whatever there is.
            return work
        if what == "write deflate":
            alone += self.raw * self.record["stored"] * size / writers
        wake = math.log2(cores) * self.of["wake"]["cpu"] / self.of["wake"]["n"]
        last = work / n_chunks * (1 - 1 / cores)
        return max(alone, work / cores, self.traffic_seconds(what, size, cores) if cores > 2 else 0) + last + wake

    def ones(self, case, row, cores):
        """Seconds in which each of the threads makes a call. The busiest shared line goes round all of them; a thread waits for each line it shares."""
        alone = self.of["ones %s 1" % case]
        call, shared = alone["cpu"] / alone["n"], self.record["shared"][row]
        line = self.line * (1 if cores <= ASSUMED["socket_cores"] else ASSUMED["far_line"])
        if cores == 1 or shared["lines"] == 0:
            return call
        hands = shared["writes"] / shared["lines"]
        return max(call + shared["lines"] * line, hands * line * cores)


def figure(x):
    return "%.3g" % x if x < 1000 else "{:,.0f}".format(x)


def table(head, rows):
    lines = ["| %s |" % " | ".join(head), "|---|%s" % ("--:|" * (len(head) - 1))]
    return lines + ["| %s |" % " | ".join(row) for row in rows]


def beside(name, unit, scale, one, two, told):
    """A row of what was measured and what is told."""
    shown = ["%s %s" % (figure(scale * x), unit) if x else "busy" for x in (one, told[0], two, told[1])]
    return [name, *shown, "%.2f" % (told[1] / two) if two else ""]


def curves(model):
    """Name -> for each number of cores how many times faster than one."""
    whole = [("write, deflate", "write deflate", 1), ("write, deflate, %d write at a time" % ASSUMED["writers"], "write deflate", ASSUMED["writers"]),
             ("write, unfiltered", "write plain", 1), ("read, deflate", "read deflate", 1), ("read, unfiltered", "read plain", 1)]  # fmt: skip
    return {name: [model.whole(what, PREDICTED, n, writers) for n in CORES] for name, what, writers in whole}


def text_of(model):
    host = model.record["machine"]
    out = ["Costs of %s, %d cores, commit %s, %s." % (host["cpu"], host["cores"], model.record["commit"], model.record["started"][:10]), "",
           "Predicted, GB/s of an array of 4 GiB in chunks of 1 MiB, float, deflate 1 with shuffle where it says so, a file in memory:", ""]  # fmt: skip
    rates = [[name, *(figure(PREDICTED / seconds / 1e9) for seconds in row)] for name, row in curves(model).items()]
    out += table(["Cores", *map(str, CORES)], rates)
    out += ["", "Predicted, million calls of one element a second, by as many threads as cores:", ""]
    rows = []
    for name, case, row in ONES:
        shared = model.record["shared"][row]
        rows.append([name, figure(shared["lines"]), *(figure(n / model.ones(case, row, n) / 1e6) for n in CORES)])
    out += table(["Calls", "shared lines (counted)", *map(str, CORES)], rows)
    out += ["", "Measured and predicted on 1 and 2 cores (an array of 64 MiB). One core: processor time; two: wall time of runs in which both threads had a processor, `busy` where there was none:", ""]
    rows = []
    for what in ("write deflate", "write plain", "read deflate", "read plain"):
        rows.append(beside(what, "ms", 1e3, model.of[what + " 1"]["cpu"], model.measured(what + " 2", 1 if what == "write plain" else 2), [model.whole(what, BYTES, n) for n in (1, 2)]))
    for name, case, row in ONES:
        one, two = model.of["ones %s 1" % case], model.measured("ones %s 2" % case)
        two = two and two / model.of["ones %s 2" % case]["n"]
        rows.append(beside(name, "ns", 1e9, one["cpu"] / one["n"], two, [model.ones(case, row, n) for n in (1, 2)]))
    out += table(["Work", "1: measured", "predicted", "2: measured", "predicted", "predicted / measured"], rows)
    out += ["", "Measured: " + "; ".join([
        "the system writes %s GB of a file in a second of one thread's processor time" % figure(1e-9 / model.raw),
        "of an array %.0f %% is stored" % (100 * model.record["stored"]),
        "a chunk costs the calling thread %s us when it is written, %s us when it is read" % tuple(figure(1e6 * model.per_chunk[what]) for what in ("write", "read")),
        "a line goes from one core to another in %s ns, an addition to one's own takes %s ns" % (figure(1e9 * model.line), figure(1e9 * model.of["line 1"]["cpu"])),
        "to wake a thread %s us" % figure(1e6 * model.of["wake"]["cpu"] / model.of["wake"]["n"]),
        "a core copies %s GB/s" % figure(model.of["copy 1"]["n"] / model.of["copy 1"]["cpu"] / 1e9),
    ]) + "."]  # fmt: skip
    alone = model.raw * model.record["stored"] * BYTES + model.per_chunk["write"] * BYTES / CHUNK
    out += ["", "Of the processor time of a deflated write %.1f %% is the part that one thread does at a time." % (100 * alone / model.of["write deflate 1"]["cpu"])]
    return "\n".join(out)


def plot(model):
    """Two panels: how many times faster whole arrays and calls are than on one core."""
    wide, tall, left, top, below, gap = 330, 260, 56, 40, 130, 40
    calls = {name: [n * model.ones(case, row, 1) / model.ones(case, row, n) for n in CORES] for name, case, row in ONES}
    whole = {name: [row[0] / seconds for seconds in row] for name, row in curves(model).items()}
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (left + 2 * (wide + gap), top + tall + below),
           '<rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    last = math.log2(CORES[-1])
    for panel, (title, lines) in enumerate((("Whole arrays, predicted: times faster than one core", whole), ("Calls of one element, predicted", calls))):
        begin = left + panel * (wide + gap)
        out.append('<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' % (begin, top, wide, tall))
        out.append('<text x="%d" y="%d" font-size="13">%s</text>' % (begin, top - 10, title))

        def height(times):
            return top + tall * (1 - (math.log2(times) + 3) / (last + 3))

        for power in range(-2, int(last) + 1, 1):
            y = height(2.0**power)
            out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (begin, begin + wide, y, y))
            out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (begin - 5, y + 4, 2.0**power))
        places = [begin + 10 + (wide - 20) * math.log2(n) / last for n in CORES]
        for x, n in zip(places, CORES):
            out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (x, top + tall + 15, n))
        for number, (name, row) in enumerate(lines.items()):
            points = " ".join("%.1f,%.1f" % (x, height(max(times, 0.13))) for x, times in zip(places, row))
            dash = ' stroke-dasharray="5 3"' if number % 2 else ""
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>' % (points, COLOURS[number], dash))
            y = top + tall + 36 + 15 * number
            out.append('<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="3"%s/>' % (begin, begin + 22, y - 4, y - 4, COLOURS[number], dash))
            out.append('<text x="%d" y="%d">%s</text>' % (begin + 28, y, name))
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.measure:
        print(measure(options.rounds))
    records = sorted(BENCH.glob("record/*/*-cores.json"), key=lambda path: path.name)
    if not records:
        sys.exit("there is no record: cores_model.py --measure makes one")
    model = Model(json.loads(records[-1].read_text()))
    before, found, rest = PAGE.read_text().partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found or not found_end:
        sys.exit("%s has no place for the tables" % PAGE.name)
    text = text_of(model)
    made = {PAGE: before + BEGIN + "\n" + text + "\n" + END + after, PLOT: plot(model)}
    if options.check:
        old = [path.name for path, content in made.items() if not path.exists() or path.read_text() != content]
        sys.exit("out of date: %s; run bench/cores_model.py" % ", ".join(old) if old else 0)
    for path, content in made.items():
        path.write_text(content)
    print(text)


if __name__ == "__main__":
    main()
