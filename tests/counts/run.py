#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What small work takes, in counts and not in time: a count that grew beyond counts.txt is a failure.

    tests/counts/run.py                 half a minute
    tests/counts/run.py --only REGEX    rows with such a name
    tests/counts/run.py --list          the counts as they are, those of counts.txt, and those of the same work by hand
    UPDATE=1 tests/counts/run.py        counts.txt anew (with --only: of these rows)

The rows are those of bench/floors.py, by the same program (bench/engines/rows.c), once to warm up and once between marks. Of the case study it is
one of eight variables and a megabyte; what only time shows (two threads, hidden output) is not here.

    instructions   of a call, by callgrind; up to 30 % more, and 30, is let pass. Valgrind shows programs no AVX-512, but glibc has other
                   branches for other processors, and other settings of the compiler make a difference: codegen-units=1, as
                   .ci/run has it, 20 % less (dimlen) to 7 % more (open4-one). Limits are those of `make build`.
    calls          of the system about files in all, by a preloaded library (counter.c)
    moved          bytes that these read and wrote
    allocations    malloc, calloc, realloc and their like in all, by the same
    copied         bytes of memcpy and memmove in all, of those of 512 bytes and more, by the same; up to a tenth more is let pass

Without valgrind, and on another kind of processor than counts.txt is of, instructions are left out with a line.
"""
import contextlib
import os
import platform
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

ENGINES = rig.ROOT / "bench" / "engines"
LIMITS = HERE / "counts.txt"
MEASURES = ("instructions", "calls", "moved", "allocations", "copied")
# Row, calls that are counted, what is made for it.
ROWS = (
    ("put1", 20000, "line"),
    ("get1", 20000, "line"),
    ("put10", 5000, "line"),
    ("get10", 5000, "line"),
    ("dimlen", 5000, "header"),
    ("var", 5000, "header"),
    ("att4", 5000, "header4"),
    ("put1-chunks", 20000, None),
    ("put1-chunks-random", 20000, None),
    ("get1-chunks-random", 2000, "chunks"),
    ("put-halves-1", 2000, "line"),
    ("get-halves-1", 2000, "line"),
    ("slices-put", 1024, None),
    ("slices-get", 1024, None),
    ("create", 20, None),
    ("create4", 20, None),
    ("create4-1", 20, None),
    ("open", 4, "many"),
    ("open4-one", 2, "many4"),
)
SIZES = {"line": 1_000_000, "chunks": 40}
# What is the same each time, and what may be so much more: a share, and a number beside.
MORE = {"instructions": (0.3, 30), "copied": (0.1, 4096)}
TRIES = 3
# A count that fell so far deserves a new limit.
FELL = 0.8


def most(measure, limit):
    share, more = MORE.get(measure, (0, 0))
    return int(limit * (1 + share)) + more


# ---- counting

class Counter:
    """Counts of a program that does rows, on files that are made here."""

    def __init__(self, folder, rows):
        self.folder, self.rows = folder, rows
        self.program = rig.compile_c(folder / "rows", ENGINES / "rows.c", flags=["-DCOUNTS"])
        self.words = ["%s:%d:%s.nc" % (row, calls, kind or row) for row, calls, kind in rows]
        self.counter = rig.compile_c(folder / "counter.so", HERE / "counter.c", link=None, flags=["-O2", "-fno-builtin", "-shared", "-fPIC"])
        # By hand the same attributes are those of a classic header.
        kinds = {kind for _, _, kind in rows if kind} | {"header"}
        for kind in sorted(kinds):
            rig.must([self.program, "--make", kind, "--file", kind + ".nc", "--size", SIZES.get(kind, 0)], self.env(), cwd=folder)
            # What was changed a moment ago may be read once more.
            os.utime(folder / (kind + ".nc"), (1e9, 1e9))

    def env(self, **more):
        # As on each other machine, however large it is.
        return rig.environment(rig.LIBDIR, ZONDA_MEMORY="1G", ZONDA_THREADS="2", **more)

    def run(self, before=(), **more):
        return rig.must([*before, self.program, *self.words], self.env(**more), cwd=self.folder)

    def by_hand(self):
        """From now on bench/engines/floors.c is counted, which has all rows but the small case study. Where it writes a netCDF-4 file, it
        goes by the one that the library left."""
        self.rows = [row for row in self.rows if not row[0].startswith("slices")]
        self.program = rig.compile_c(self.folder / "floors", ENGINES / "floors.c", link=None, flags=["-DCOUNTS", "-O3"], libraries=["-lm"])
        kinds = {"header4": "header"}
        self.words = ["%s:%d:%s.nc" % (row, calls, kinds.get(kind, kind)) if kind else "%s:%d:floor.nc:%s.nc" % (row, calls, row)
                      for row, calls, kind in self.rows]  # fmt: skip

    def preloaded(self):
        """Row -> what the preloaded library counts."""
        found = {}
        for line in self.run(LD_PRELOAD=self.counter).splitlines():
            row, *numbers = line.split()
            found[row] = dict(zip(("allocations", "copied", "calls", "moved"), map(int, numbers)))
        return found

    def instructions(self):
        """Row -> instructions of a call."""
        if not shutil.which("valgrind"):
            raise rig.Skip("there is no valgrind")
        if rig.run(["gcc", "-E", "-include", "valgrind/callgrind.h", "-x", "c", "/dev/null"]).returncode:
            raise rig.Skip("valgrind has no header here")
        out = self.folder / "callgrind"
        self.run(["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=%s.%%p" % out])
        found, calls = {}, {row: n for row, n, _ in self.rows}
        for path in self.folder.glob("callgrind.*"):
            text = path.read_text(errors="replace")
            path.unlink()
            row = re.search(r"^desc: Trigger: Client Request: (\S+)$", text, re.M)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
            if row and total:
                found[row[1]] = {"instructions": round(int(total[1]) / calls[row[1]])}
        return found


# ---- the table

def read_limits():
    """The processor of the limits, and row -> measure -> limit."""
    kind, found = "", {}
    for line in LIMITS.read_text().splitlines() if LIMITS.exists() else ():
        words = line.split()
        if line.startswith("# instructions of "):
            kind = words[-1]
        elif words and words[0] != "#" and words[0] != "row":
            found[words[0]] = {measure: int(word) for measure, word in zip(MEASURES, words[2:]) if word != "-"}
    return kind, found


def write_limits(measured, limits):
    lines = ["# What each row takes: renewed by UPDATE=1 tests/counts/run.py, which says what the columns are.",
             "# instructions of %s" % platform.machine(),
             "%-20s %6s" % ("row", "n") + "".join("%14s" % measure for measure in MEASURES)]
    for row, calls, _ in ROWS:
        values = {**limits.get(row, {}), **measured.get(row, {})}
        lines.append("%-20s %6d" % (row, calls) + "".join("%14s" % values.get(measure, "-") for measure in MEASURES))
    LIMITS.write_text("\n".join(lines) + "\n")


def least(way, measured, limits):
    """Adds the counts of one way, the least of some tries where one is more than may be: on a busy machine a device looks slow for a while
    (docs/dev/runtime.md), and what was changed a moment ago may be read again."""
    for _ in range(TRIES):
        found = way()
        for row, values in measured.items():
            for measure, value in found[row].items():
                values[measure] = min(value, values.get(measure, value))
        if all(value <= most(measure, limits.get(row, {}).get(measure, -1)) for row, values in measured.items() for measure, value in values.items()):
            return


def judge(counts, row, measure, value, limit):
    name = "%s, %s" % (row, measure)
    if limit is None:
        counts.fail(name, "%d, and counts.txt has no limit; UPDATE=1 tests/counts/run.py writes one" % value)
        return
    bound = most(measure, limit)
    counts.check(name, value > bound and "%d, and %d were let pass (counts.txt: %d); if it has to be so, UPDATE=1 tests/counts/run.py renews counts.txt" % (value, bound, limit))
    if value < FELL * limit:
        print("note %s: %d, %d less than counts.txt has: UPDATE=1 tests/counts/run.py keeps it so" % (name, value, limit - value))


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("--list", action="store_true", help="the counts, and those of counts.txt")
    options, counts = rig.arguments(parser), rig.Counts()
    rows = [row for row in ROWS if options.wants(row[0])]
    kind, limits = read_limits()
    measured = {row: {} for row, _, _ in rows}
    with rig.scratch(in_memory=True) as folder:
        counter = Counter(folder, rows)
        for way in (counter.preloaded, counter.instructions):
            try:
                least(way, measured, {} if os.environ.get("UPDATE") else limits)
            except rig.Skip as why:
                counts.skip(way.__name__, why)
        by_hand = {row: {} for row, _, _ in rows if not row.startswith("slices")}
        if options.list and by_hand:
            counter.by_hand()
            with contextlib.suppress(rig.Skip):
                for way in (counter.preloaded, counter.instructions):
                    least(way, by_hand, limits)
    if os.environ.get("UPDATE"):
        write_limits(measured, limits)
        print("%s is written" % LIMITS.relative_to(rig.ROOT))
        counts.passes(len(rows))
        return counts
    if kind != platform.machine():
        counts.skip("instructions", "counts.txt has those of %s" % (kind or "no processor"))
    if options.list:
        print("%-20s" % "now, limit, by hand" + "".join("%28s" % measure for measure in MEASURES))
    for row, values in measured.items():
        if options.list:
            three = [[found.get(row, {}).get(measure, "-") for found in (measured, limits, by_hand)] for measure in MEASURES]
            print("%-20s" % row + "".join("%28s" % ", ".join(map(str, each)) for each in three))
        for measure, value in values.items():
            if measure != "instructions" or kind == platform.machine():
                judge(counts, row, measure, value, limits.get(row, {}).get(measure))
    return counts


if __name__ == "__main__":
    rig.main(main)
