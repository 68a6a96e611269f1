#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shapes of chunks, compression and access: stacks of satellite images, and slices of long variables from Fortran (make study-chunks).

    study_chunks.py                everything, about half an hour: tables and plots of docs/dev/chunk-study.md; out/study/chunks.csv
    study_chunks.py --quick        an eighth of the data, one round, some cells; prints only
    study_chunks.py --full         also images put one by one, deflate 9 and chunks of one element from Fortran: hours
    study_chunks.py --only REGEX   rows with such a name; prints only
    study_chunks.py --repeat N     rounds that count (5)
    study_chunks.py --peers REGEX  beside netCDF-C these libraries: zonda, before (of NETCDF_LIBS), wheel (of ZONDA_PYTHON). All but the wheel by default

Stacks: 24 images of 2000 x 2000 shorts, packed, in chunks of 24x500x500, 5x500x500, 5x200x200 and 1x200x200, shuffled, deflate 1 and 9; written whole,
read image by image and as series of 100 points. Engines: make4.c, read4.c, write4.c.
Fortran: two variables of 100,000 doubles, one over an unlimited dimension, written and read in slices, in order and at random (engines/table.f90).
The limit: each chunk that is touched inflated once by libdeflate on all cores (engines/codec.c); for writing each chunk compressed once on all cores
and written (encode_limit), without a filter the bytes written. Libraries take turns, the limit runs in the same rounds. Values are compared in each round.
"""

import argparse
import csv
import datetime
import os
import re
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import floors_table
import harness
import panels
import reads
import writes
from floors_table import FLOOR, Work, figure, taken
from harness import REFERENCE, ROOT, Failed

STACK, QUICK = (24, 2000, 2000), (24, 1000, 1000)
CHUNKS, LEVELS = ((24, 500, 500), (5, 500, 500), (5, 200, 200), (1, 200, 200)), (1, 9)
LENGTHS, SLICES = (10, 100, 1000, 10000), (1, 10, 100, 1000)
PAGE = ROOT / "docs" / "dev" / "chunk-study.md"
STACKS_PLOT, CELLS_PLOT = "chunk-study-stacks.svg", "chunk-study-fortran.svg"
MOST_SECONDS = 300
STYLES = {"netCDF-C": ("#d55e00", False), "Zonda": ("#0072b2", False), "limit": ("#999999", True)}


def texts(numbers, between="x") -> str:
    return between.join(map(str, numbers))


def stack_reads(shape, levels=LEVELS):
    """Images, and series of 100 points, of stacks in each kind of chunks."""
    for chunk in CHUNKS:
        for level in levels:
            make = reads.data(shape, chunk, "short", level, 1)
            label = f"{texts(chunk)}, deflate {level}"
            yield reads.Case(f"{label}, read as maps", make, reads.slabs(shape, "layers", shape[0]))
            yield reads.Case(f"{label}, read as series", make, reads.slabs(shape, "far series", 100))


def stack_writes(shape, levels=LEVELS, puts="whole"):
    """The same stacks written."""
    for chunk in CHUNKS:
        for level in levels:
            filters = ["--deflate", str(level), "--shuffle", "1"]
            args = ["--op", "data", "--shape", texts(shape, ","), "--chunk", texts(chunk, ","), "--type", "short", "--puts", puts,
                    "--unlimited", str(int(puts == "records")), *filters]
            how = "written whole" if puts == "whole" else "written map by map"
            yield writes.Case(f"{texts(chunk)}, deflate {level}, {how}", "write4", args, limits={"codec": ["encode_limit", *filters]},
                              raw=f"stack {shape} {chunk}", warm_mb=2 * shape[0] * shape[1] * shape[2] >> 20)


@dataclass(frozen=True)
class Cell:
    """One way of the program in Fortran."""

    deflate: int
    op: str
    access: str
    chunk: int
    slice: int

    @property
    def name(self) -> str:
        return f"deflate {self.deflate}, {self.how}, chunk {self.chunk}, slice {self.slice}"

    @property
    def how(self) -> str:
        return f"{'written' if self.op == 'write' else 'read'} {'in order' if self.access == 'order' else 'at random'}"


def cells(options):
    """All cells; those that read a file come behind each other."""
    lengths = LENGTHS[1:3] if options.quick else ((1, *LENGTHS) if options.full else LENGTHS)
    for deflate in (1,) if options.quick else (0, 1, 9) if options.full else (0, 1):
        for chunk in lengths:
            for op in ("write", "read"):
                for access in ("order", "random"):
                    for slice in SLICES:
                        yield Cell(deflate, op, access, chunk, slice)


class Study:
    """What is measured, and on which libraries."""

    def __init__(self, options, bin_dir: Path, libs: dict, folder: Path):
        self.options, self.bin_dir, self.libs, self.folder = options, bin_dir, libs, folder
        self.readers = reads.Libraries(libs, bin_dir, MOST_SECONDS)
        self.made: Any = None
        self.n = 100_000 if not options.quick else 20_000

    # ---- stacks -------------------------------------------------------------------------------------------

    def read(self, case: reads.Case) -> dict:
        file = self.folder / "stack.nc"
        if self.made != case.make:
            self.made = None
            harness.engine(self.bin_dir, "make4", ["--file", str(file), *case.make], self.libs[REFERENCE]["env"])
            self.made = case.make
        return reads.measure(case, self.readers, self.bin_dir, [file], self.options.repeat)

    def write(self, case: writes.Case) -> dict:
        return writes.Runner(self.bin_dir, self.libs, self.folder, self.options.repeat).measure(case)

    # ---- Fortran ------------------------------------------------------------------------------------------

    def engine(self, name: str, args: list, lib: str = REFERENCE) -> dict:
        (line,) = harness.engine(self.bin_dir, name, [str(a) for a in args], self.libs[lib]["env"], MOST_SECONDS)
        return line

    def table(self, cell: Cell, name: str, path: Path) -> float:
        args = ["--file", path, "--n", self.n, "--chunk", cell.chunk, "--slice", cell.slice, "--deflate", cell.deflate, "--access", cell.access, "--op", cell.op]
        return self.engine("table", args, name)["seconds"]

    def source(self, cell: Cell) -> Path:
        """The file that a cell's limit takes values from, and that its reads read."""
        path = self.folder / "source.nc"
        if self.made != (cell.chunk, cell.deflate):
            self.table(Cell(cell.deflate, "write", "order", cell.chunk, 1000), REFERENCE, path)
            facts = self.engine("chunks", ["--file", path, "--var", "a,b", "--raw", self.folder / "raw"])["params"]
            self.made, self.facts = (cell.chunk, cell.deflate), facts
        return path

    def limit(self, cell: Cell) -> float:
        source, target = self.source(cell), self.folder / "limit"
        if cell.op == "read":
            whole = self.folder / "whole.list"
            whole.write_text(f"0 {self.n} 1\n")
            return sum(self.engine("codec", ["--file", source, "--var", var, "--list", whole])["seconds"] for var in "ab")
        args = ["--raw", self.folder / "raw", "--file", target, "--chunk-bytes", self.facts["chunk_bytes"], "--elem", 8]
        if cell.deflate:
            return self.engine("encode_limit", [*args, "--shuffle", 1, "--deflate", cell.deflate])["seconds"]
        return self.engine("encode", [*args, "--op", "write"])["seconds"]

    def once(self, cell: Cell, name: str, digests: dict) -> float:
        if name == FLOOR:
            return self.limit(cell)
        source, path = self.source(cell), self.folder / "table.nc"
        if cell.op == "read":
            return self.table(cell, name, source)  # which compares what it read
        path.unlink(missing_ok=True)
        seconds = self.table(cell, name, path)
        right = digests.setdefault("right", self.engine("digest", ["--file", source])["digest"])
        if self.engine("digest", ["--file", path])["digest"] != right:
            raise Failed("other values than netCDF-C's file")
        return seconds

    def cell(self, cell: Cell) -> dict:
        """All rounds of a cell; round 0 warms up."""
        found: dict = {"name": cell.name, "unit": "ms", "values": {}, "errors": {}}
        # The wheel's library lacks a function that netCDF-Fortran calls.
        names = [name for name in (*self.libs, FLOOR) if name != "wheel"]
        digests: dict = {}
        for number in range(self.options.repeat + 1):
            for name in harness.in_turn(names, number):
                if name in found["errors"]:
                    continue
                try:
                    seconds = self.once(cell, name, digests)
                except Failed as why:
                    found["errors"][name] = str(why)[:120]
                    found["values"].pop(name, None)
                    continue
                if number > 0:
                    found["values"].setdefault(name, []).append(seconds)
        return found


# ---- output -----------------------------------------------------------------------------------------------


def size_table(sizes: dict) -> str:
    lines = ["| stack | netCDF-C, MB | Zonda, MB | Zonda / netCDF-C |", "| --- | --- | --- | --- |"]
    for name, size in sizes.items():
        its, mine = size.get(REFERENCE), size.get("zonda")
        if its and mine:
            lines.append(f"| {name} | {its / 1e6:.1f} | {mine / 1e6:.1f} | {mine / its:.3f} |")
    return "\n".join(lines)


def middle(one: dict, name: str) -> float | None:
    values = one["values"].get(name)
    return statistics.median(values) if values else None


def cell_table(found: dict[Cell, dict]) -> str:
    """A line for each chunk, a column for each slice: netCDF-C, Zonda and the limit, and how many times as fast as netCDF-C Zonda is (its spread)."""
    slices = [s for s in SLICES if any(cell.slice == s for cell in found)]
    lines = ["| deflate | access | chunk | " + " | ".join(f"slices of {s}" for s in slices) + " |", "| --- " * (3 + len(slices)) + "|"]
    groups: dict = {}
    for cell, one in found.items():
        groups.setdefault((cell.deflate, cell.how, cell.chunk), {})[cell.slice] = one
    for (deflate, how, chunk), by_slice in groups.items():
        shown = []
        for s in slices:
            one = by_slice.get(s, {"values": {}, "errors": {}})
            three = [middle(one, n) for n in (REFERENCE, "zonda", FLOOR)]
            times = floors_table.shown(floors_table.ratios(one["values"].get(REFERENCE), one["values"].get("zonda")))
            text = " / ".join(figure(v * 1e3) if v else "-" for v in three) + f"; {times}" if any(three) else ""
            shown.append("; ".join([text, *one["errors"].values()]).removeprefix("; "))
        lines.append(f"| {deflate} | {how} | {chunk} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def cell_plot(found: dict[Cell, dict], n: int) -> str:
    groups: dict = {}
    for cell, one in found.items():
        panel = groups.setdefault((cell.deflate, cell.how), {}).setdefault(cell.chunk, {line: {} for line in STYLES})
        for line, name in zip(STYLES, (REFERENCE, "zonda", FLOOR)):
            panel[line][cell.slice] = middle(one, name)
    rows = [[(f"deflate {deflate}, {how}\nchunks of {chunk:,}", panel) for chunk, panel in by_chunk.items()] for (deflate, how), by_chunk in groups.items()]
    return panels.svg(f"Two variables of {n:,} doubles from Fortran: seconds over slice length", rows, STYLES, 150)


def build(bin_dir: Path) -> str:
    """Compiles all that is run; gcc's version."""
    reads.build(bin_dir)
    return writes.build(bin_dir)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="environment: ZONDA_LIB (dist/lib), ZONDA_PYTHON, NETCDF_LIBS, BENCH_MEMORY (/dev/shm). Exit status: 0 done, 1 Zonda or a "
                                "limit failed or gave other values (times never decide), 2 wrong usage.")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--full", action="store_true")
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--repeat", type=int, default=0)
    p.add_argument("--peers", default="^(?!wheel$)", metavar="REGEX")
    options = p.parse_args()
    options.repeat = options.repeat or (1 if options.quick else 5)
    return options


def main() -> int:
    options = arguments()
    bin_dir, out = ROOT / "out" / "bench-bin", ROOT / "out" / "study"
    gcc = build(bin_dir)
    if re.search(options.peers, "wheel"):
        reads.add_wheel(bin_dir)
    libs = {n: lib for n, lib in harness.libraries(bin_dir).items() if n == REFERENCE or re.search(options.peers, n)}
    if not (bin_dir / "encode_limit").exists():
        sys.exit("the limit of writing could not be built (cargo build --release --package zonda-chunk --example encode_limit)")
    shape, levels = (QUICK, (1,)) if options.quick else (STACK, LEVELS)
    stacks = [*stack_reads(shape, levels), *stack_writes(shape, levels), *(stack_writes(shape, levels, "records") if options.full else ())]
    stacks = [case for case in stacks if re.search(options.only, case.name)]
    slices = [cell for cell in cells(options) if re.search(options.only, cell.name)]
    if not (bin_dir / "table").exists():
        print("gfortran or netCDF-Fortran is not there: that part is left out", file=sys.stderr)
        slices = []
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    heading = harness.heading(host, gcc, libs, started, f"files in memory, {options.repeat} rounds")
    print(heading, "\n", file=sys.stderr)
    found, sizes, of_cells = [], {}, {}
    with tempfile.TemporaryDirectory(prefix="zonda-chunks-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        study = Study(options, bin_dir, libs, Path(folder))
        for case in stacks:
            row = study.read(case) if isinstance(case, reads.Case) else study.write(case)
            found.append(taken(row))
            if "size" in row:
                sizes[case.name.rsplit(",", 1)[0]] = row["size"]
            report(found[-1])
        for left in Path(folder).iterdir():
            left.unlink()
        for cell in slices:
            of_cells[cell] = study.cell(cell)
            report(of_cells[cell])
    rows = [Work(one["name"]) for one in found]
    parts = []
    if found:
        shown = floors_table.table(rows, found, libs)
        parts.append(f"Stacks of {texts(shape)} shorts, milliseconds; the floor is the limit.\n\n{shown}\n\n![stacks: times the limit]({STACKS_PLOT})")
    if sizes:
        parts.append("Sizes of the files.\n\n" + size_table(sizes))
    if of_cells:
        parts.append(f"Two variables of {study.n:,} doubles from Fortran, milliseconds: netCDF-C / Zonda / limit; netCDF-C / Zonda with its quartiles.\n\n" + cell_table(of_cells)
                     + f"\n\n![Fortran: seconds over slice]({CELLS_PLOT})")
    text = "\n\n".join(parts)
    print(f"{heading}\n\n{text}")
    every = [*found, *of_cells.values()]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "chunks.csv").open("w", newline="") as f:
        lines = csv.writer(f)
        lines.writerow(["row", "library", "round", "seconds"])
        lines.writerows([one["name"], name, number, s] for one in every for name, values in one["values"].items() for number, s in enumerate(values))
    plots = {STACKS_PLOT: floors_table.plot(rows, found) if found else "",
             CELLS_PLOT: cell_plot(of_cells, study.n) if of_cells else ""}
    home = out if options.quick or options.only else PAGE.parent
    for name, plot in plots.items():
        if plot:
            (home / name).write_text(plot)
    if home != out:
        floors_table.put(PAGE, "bench/study_chunks.py", floors_table.measured(heading, text))
    print(f"\nwritten: out/study/chunks.csv, {', '.join(str((home / n).relative_to(ROOT)) for n, plot in plots.items() if plot)}")
    for one in every:
        for name, why in one["errors"].items():
            print(f"{one['name']}: {name}: {why}", file=sys.stderr)
    # What took too long says so in its cell, and is no failure.
    return 1 if any(n in ("zonda", FLOOR) and "took more than" not in why for one in every for n, why in one["errors"].items()) else 0


def report(one: dict) -> None:
    show = {n: f"{statistics.median(v) * 1e3:.3g}" for n, v in one["values"].items() if v}
    print(f"{one['name']}: {show | one['errors']} ms", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
