#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunks, copies, large files and xarray beside what the machine allows: netCDF-C, an earlier build and Zonda in one table.

    limits.py                  everything, half an hour: a table of docs/status/performance.md with its plot, and a record
    limits.py --quick          one round, a tenth of the data where the size is no part of the work; prints only
    limits.py --only REGEX     rows with such a name; prints only
    limits.py --rounds N       rounds that count (5)
    limits.py --mine           of reads no netCDF-C, which takes minutes for some; prints only
    limits.py --list           the names of the rows

    NETCDF_LIBS=before=DIR limits.py    with an earlier build beside: its library, of copies DIR/../bin/zonda; ZONDA_PYTHON_BEFORE is a Python with
                                        its package. Two columns more

The rows are cases of reads.py, writes.py, copies.py, python.py and run.py, which say how each is measured and checked; here all have the same columns.
The floor: chunks that are touched, each inflated once on all cores (reads), each compressed once and written (writes), `cp`, a stream past the page
cache, and what xarray and NumPy take when all is in memory already. Reads of many requests have a second one, `requests`: the chunks that a request is
the first to touch are decoded on all cores, into memory of their own where they stay, and what it asks for is copied, request by request. Who gave other
values than netCDF-C has no time.
"""

import argparse
import dataclasses
import datetime
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import copies
import floors_table
import harness
import python
import reads
import run
import study_chunks
import writes
from floors_table import FLOOR, REQUESTS, Work, taken
from harness import REFERENCE, ROOT, Failed

COPIES = {"nccopy": REFERENCE, "zonda": "zonda", "before": "before", "cp": FLOOR}
NEXT = f"1.2 x floor or 1.1 x {REQUESTS}"
ENGINES = {python.REFERENCE: REFERENCE, python.MINE: "zonda", python.BEFORE: "before"}


@dataclass
class Row(Work):
    """A row, and the case that it shows."""

    kind: str = ""
    case: Any = None
    limit: str = ""  # which of the case's limits is the floor; by default its first
    what: str = "seconds"  # or "cpu": processor time


def named(kind: str, every: list, names: dict[str, str]) -> list[Row]:
    """Rows of cases by their names, with what each is to reach."""
    by_name = {case.name: case for case in every}
    return [Row(name, reach, kind=kind, case=by_name[name]) for name, reach in names.items()]


def rows(quick: bool) -> list[Row]:
    """All rows. Those of one file follow each other."""
    stacks = study_chunks.stack_reads(study_chunks.QUICK if quick else study_chunks.STACK, levels=(1,))
    found = [Row(f"Landsat stacks: {case.name}", NEXT, kind="reads", case=case) for case in stacks]
    found += named("reads", list(reads.cases()), {
        "layers, chunks 256x128x256, default cache": NEXT,
        "layers, chunks 64x128x256, default cache": NEXT,
        "time series, chunks 64x128x256, default cache": NEXT,
        "layers, chunks 1x128x256, default cache": NEXT,
        "time series, chunks 1x128x256, default cache": NEXT,
        "layers, chunks 256x16x16, default cache": NEXT,
        "time series, map-shaped chunks": NEXT,
        "whole, zstd, float": "1.1 x floor",
        "2-D blocks, zstd, float": NEXT,
        "time series, zstd, float": NEXT,
    })
    found += named("writes", list(writes.cases()), {
        "whole, zstd 3 shuffle, float, chunks of 1 MiB": "1.1 x floor",
        **{f"{puts}, {codec}, float, chunks of 1 MiB": "1.2 x floor" if puts != "records" else "1.1 x floor"
           for puts in ("records", "slices", "bands", "random") for codec in ("deflate 1 shuffle", "uncompressed")},
        "records, uncompressed, short from double, chunks of 1 MiB": "1.3 x floor",
    })
    every = {case.name: case for case in copies.cases()}
    for name, reach in (("maps become series, unfiltered", "2 x floor"), ("series become maps, unfiltered", "2 x floor"),
                        ("nothing changes, deflated chunks of 5 KB", "1.2 x floor")):
        found.append(Row(f"copy: {name}", reach, kind="copies", case=every[name]))
        found.append(Row(f"copy: {name}, processor time", "2 x netCDF-C", kind="copies", case=every[name], what="cpu"))
    found.append(Row("case study, 197 MB of doubles, ZONDA_SYNC=data", "1.2 x floor", kind="run",
                     case="history 197 MB, double, random, write and sync"))
    found.append(Row(f"redef whose {100 if quick else 1000} MB move", "1.2 x floor", kind="redef", case=100 if quick else 1000))
    three = "3 x netCDF-C or 1.1 x floor"
    engine = {"mean over time, numpy: blocks, deflate 4": three, "mean over time, numpy: maps, deflate 4": three, "mean over space, numpy: maps, deflate 4": three,
              "mean over time, numpy: blocks, zstd 3": three, "mean over time, numpy: maps, zstd 3": three,
              "mean over time, numpy: maps, packed short, deflate 4": three, "mean over space, numpy: maps, packed short, deflate 4": three,
              "mean over time, numpy: contiguous": three, "mean over time, numpy: classic": three,
              "open_mfdataset, 100 files": three, "open_mfdataset, 100 files, parallel": three, "open_mfdataset, 100 files, and mean of all": three}
    by_name = {case.name: case for case in python.cases(100)}
    found += [Row(f"xarray, 100 MB: {name}", reach, kind="python", case=by_name[name], limit=python.ALONE) for name, reach in engine.items()]
    return found


class Bench:
    """What measures the kinds of rows."""

    def __init__(self, options, bin_dir: Path, libs: dict, memory: Path, disk: Path):
        self.options, self.bin_dir, self.libs, self.memory, self.disk = options, bin_dir, libs, memory, disk
        self.readers = reads.Libraries(libs, bin_dir, writes.MOST_SECONDS)
        if options.mine:
            self.readers.all = {name: peer for name, peer in self.readers.all.items() if name != REFERENCE}
        self.made: list[str] = []
        self.found: dict[int, dict] = {}  # what a case has found that is more than one row
        self.engines = None

    def measure(self, row: Row) -> dict:
        return {**getattr(self, f"of_{row.kind}")(row), "name": row.name, "unit": row.unit}

    def of_reads(self, row: Row) -> dict:
        file = self.memory / "read.nc"
        if row.case.make != self.made:
            self.made = []
            harness.engine(self.bin_dir, "make4", ["--file", str(file), *row.case.make], self.libs[REFERENCE]["env"])
            self.made = row.case.make
        case = dataclasses.replace(row.case, limits=(*row.case.limits, REQUESTS)) if len(row.case.reads) > 1 else row.case
        return taken(reads.measure(case, self.readers, self.bin_dir, [file], self.options.rounds))

    def of_writes(self, row: Row) -> dict:
        self.clear()
        # What reading back takes is writes.py's own question.
        case = dataclasses.replace(row.case, shape=())
        return taken(writes.Runner(self.bin_dir, self.libs, self.memory, self.options.rounds).measure(case))

    def of_copies(self, row: Row) -> dict:
        self.clear()
        if id(row.case) not in self.found:
            self.found[id(row.case)] = copies.Runner(self.bin_dir, self.libs, self.memory, self.options.rounds).measure(row.case)
        return taken(self.found[id(row.case)], COPIES, what=row.what)

    def of_run(self, row: Row) -> dict:
        asked = argparse.Namespace(only=re.escape(row.case), quick=False, long=False, cold=False, repeat=self.options.rounds)
        (definition,) = run.definitions(asked)
        (work,) = run.Runner(asked, self.bin_dir, self.libs, {"disk": self.disk, "memory": self.memory}).measure(definition)
        return taken({"name": row.name, "seconds": work.seconds, "errors": work.errors, "limit": {"best": work.limit}})

    def of_redef(self, row: Row) -> dict:
        """100 bytes more in the header of netCDF-C's file: all data move. `cp` of it is the floor."""
        self.clear()
        file, seconds, errors, digests = self.memory / "redef.nc", {}, {}, {}
        reference = self.libs[REFERENCE]["env"]
        for number in range(self.options.rounds + 1):
            for name in harness.in_turn([*self.libs, FLOOR], number):
                if name in errors:
                    continue
                harness.engine(self.bin_dir, "redef", ["--op", "make", "--file", str(file), "--mb", str(row.case)], reference)
                try:
                    if name == FLOOR:
                        began = time.perf_counter()
                        subprocess.run(["cp", file, self.memory / "copy.nc"], check=True)
                        value = time.perf_counter() - began
                    else:
                        (line,) = harness.engine(self.bin_dir, "redef", ["--op", "grow", "--file", str(file)], self.libs[name]["env"])
                        value = line["seconds"]
                        if number == 0:
                            (line,) = harness.engine(self.bin_dir, "digest", ["--file", str(file)], reference)
                            digests[name] = line["digest"]
                except Failed as why:
                    errors[name] = str(why)[:160]
                    continue
                if number > 0:
                    seconds.setdefault(name, []).append(value)
                for left in self.memory.iterdir():
                    left.unlink()
        for name in digests:
            if digests[name] != digests.get(REFERENCE):
                errors[name] = "other values than netCDF-C"
        return taken({"name": row.name, "seconds": {n: s for n, s in seconds.items() if n not in errors}, "errors": errors})

    def of_python(self, row: Row) -> dict:
        self.clear()
        if self.engines is None:
            mine = "|".join(f"^{name}$" for name in ENGINES)
            asked = argparse.Namespace(quick=True, peers=mine, repeat=self.options.rounds, patience=600)
            self.engines = python.Bench(asked, self.memory / "python")
            self.engines.scratch.mkdir()
            self.engines.warmup()
        right = self.engines.scratch / "right.npy"
        right.unlink(missing_ok=True)
        found = self.engines.measure(row.case)
        return taken(found, {**ENGINES, python.ALONE: FLOOR}, row.limit)

    def clear(self) -> None:
        """Forgets the file of the last read."""
        self.made = []
        (self.memory / "read.nc").unlink(missing_ok=True)


def build(bin_dir: Path) -> str:
    """Compiles all that is run; gcc's version."""
    reads.build(bin_dir)
    return writes.build(bin_dir)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="environment: ZONDA_LIB (dist/lib), ZONDA_PYTHON (out/venv), ZONDA_SCRATCH (out/bench), BENCH_MEMORY (/dev/shm). "
                                "Exit status: 0 done, 1 Zonda or a floor failed (times never decide), 2 wrong usage.")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--rounds", type=int, default=0)
    p.add_argument("--mine", action="store_true")
    p.add_argument("--list", action="store_true")
    options = p.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


def main() -> int:
    options = arguments()
    chosen = [row for row in rows(options.quick) if re.search(options.only, row.name)]
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    venv = ROOT / "out" / "venv" / "bin" / "python"
    if venv.exists():
        os.environ.setdefault("ZONDA_PYTHON", str(venv))
    reads.add_plugins(os.environ.get("ZONDA_PYTHON", sys.executable))
    bin_dir = ROOT / "out" / "bench-bin"
    gcc = build(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        return 1
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    heading = harness.heading(host, gcc, libs, started, f"files in memory, {options.rounds} rounds")
    print(heading, "\n", file=sys.stderr)
    scratch = Path(os.environ.get("ZONDA_SCRATCH", ROOT / "out" / "bench"))
    scratch.mkdir(parents=True, exist_ok=True)
    found = []
    with tempfile.TemporaryDirectory(prefix="zonda-limits-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as memory, \
            tempfile.TemporaryDirectory(prefix="zonda-limits-", dir=scratch) as disk:
        bench = Bench(options, bin_dir, libs, Path(memory), Path(disk))
        for row in chosen:
            try:
                found.append(bench.measure(row))
            except Failed as why:
                found.append({"name": row.name, "unit": row.unit, "values": {}, "errors": {"floor": str(why)[:160]}})
            show = {n: f"{statistics.median(v) * 1e3:.4g}" for n, v in found[-1]["values"].items() if v}
            print(f"{row.name}: {show | found[-1]['errors']} ms {floors_table.verdict(row, found[-1]['values'])}", file=sys.stderr, flush=True)
    shown = floors_table.table(chosen, found, libs)
    print(f"{heading}\n\n{shown}")
    if not (options.quick or options.only or options.mine):
        record = harness.keep(host, started, "-limits", {"gcc": gcc, "rounds": options.rounds, "libraries": harness.identity(libs)}, found)
        picture = floors_table.PLOT.with_name("performance-limits.svg")
        written = floors_table.write(heading, f"{shown}\n\n![times the limit]({picture.name})", chosen, found, "bench/limits.py", picture)
        print(f"\nwritten: {', '.join(written)}; raw figures: {record}")
    for one in found:
        for name, why in one["errors"].items():
            print(f"{one['name']}: {name}: {why}", file=sys.stderr)
    return 1 if any(name in ("zonda", FLOOR) for one in found for name in one["errors"]) else 0


if __name__ == "__main__":
    sys.exit(main())
