#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Work of small calls and small files beside its floor: the same work by hand, with no library between.

    floors.py                  everything, some ten minutes: the table of docs/status/performance.md with its plot, and a record
    floors.py --quick          smaller files, two rounds; prints only
    floors.py --only REGEX     rows with such a name; prints only
    floors.py --rounds N       rounds that count (5)
    floors.py --list           the names of the rows

    NETCDF_LIBS=before=DIR floors.py    with an earlier build beside: two columns more

A row is done by the distribution's netCDF-C (`reference`), the library of the newest netCDF4 wheel, h5py where it has that work, Zonda
(engines/rows.c, h5py_rows.py), and by hand (engines/floors.c; examples/raw_write.c for the case study), in turns. Each run gives the least of some
loops; the table has medians of the rounds and quartiles. Rows of calls and of small files are processor time, those of threads and of the case study
are wall time. Correct first: who was told other values than the reference, or left a file that means something else to it, has no time; that
goes for the floor, too.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import floors_table
import harness
import overlap
import reads
from floors_table import FLOOR, SCALES
from harness import BENCH, REFERENCE, ROOT, Failed

MOST_SECONDS = 120


@dataclass
class Row:
    """Work with a name, and what of it is shown: seconds of a call in `unit`, or a share of which more is better."""

    name: str
    key: str  # of the engines, or what measures it
    unit: str
    reach: str  # "20 ns", "1.5 x floor", "1.8", "0.95 of floor"
    make: str = ""  # of the file that is read or written over
    size: int = 0
    quick_size: int = 0
    loops: int = 5
    result: str = "told"  # or "file": what is left is read by the reference
    ahead: bool = False  # netCDF-C and the peers are to be slower
    without: tuple = ()  # who cannot
    args: dict = field(default_factory=dict)

    @property
    def more_is_better(self):
        return self.unit == ""


H5PY = ("att4", "get1-chunks-random", "open4-one")
LINE = {"make": "line", "size": 1_000_000, "quick_size": 1_000_000, "loops": 15}
PUT = {**LINE, "result": "file"}
HALVES = {"make": "line", "size": 8_000_000, "quick_size": 8_000_000}
ROWS = [
    Row("one value in order, classic, put", "put1", "ns", "20 ns", **PUT, ahead=True),
    Row("one value in order, classic, get", "get1", "ns", "20 ns", **LINE, ahead=True),
    Row("ten values in order, classic, put", "put10", "ns", "", **PUT, ahead=True),
    Row("ten values in order, classic, get", "get10", "ns", "", **LINE, ahead=True),
    Row("nc_inq_dimlen, classic", "dimlen", "ns", "10 ns", "header", loops=15, ahead=True),
    Row("nc_inq_var, classic", "var", "ns", "10 ns", "header", loops=15, ahead=True),
    Row("nc_get_att of 2 doubles, netCDF-4", "att4", "ns", "10 ns", "header4", loops=5, ahead=True),
    Row("one value in order, netCDF-4 chunks, put", "put1-chunks", "ns", "50 ns", loops=3, result="file"),
    Row("one value at random, netCDF-4 chunks, put", "put1-chunks-random", "ns", "150 ns", loops=3, result="file"),
    Row("one value at random, netCDF-4 chunks, get", "get1-chunks-random", "ns", "1.5 x floor", "chunks", 320, 40, loops=3),
    *(Row(f"two threads / one, halves of a classic file, {n} value{'s' * (n > 1)} a {way}", f"{way}{'1' * (n == 1)}-halves", "", "1.8",
          **(LINE if n == 1 else HALVES), result="file" if way == "put" else "told", without=(REFERENCE, "wheel")) for n in (1, 256) for way in ("put", "get")),
    *(Row(f"case study, {kind}, slices in random order, {name}", "history-" + phase, "ms", reach, size=197, quick_size=22, result=how, args={"type": kind})
      for kind in ("double", "float") for phase, name, reach, how in (("write", "write", "1.1 x floor", "file"), ("read", "read back", "1.3 x floor", "told"))),
    Row("create + define 10 variables + close, classic", "create", "us", "12 us", result="file"),
    Row("create + define 1 variable + close, netCDF-4", "create4-1", "us", "35 us", loops=3, result="file"),
    Row("create + define 10 variables + close, netCDF-4", "create4", "us", "", loops=3, result="file"),
    Row("open of 1,000 variables, classic", "open", "us", "100 us", "many"),
    Row("open + one variable by name, 1,000 variables, netCDF-4", "open4-one", "us", "300 us", "many4", loops=3),
    *(Row(f"output hidden, file in memory, output {share:.0%} of compute", "hidden", "", "0.95 of floor", result="none", without=(REFERENCE, "wheel"), args={"share": share})
      for share in (0.2, 0.8)),
    *(Row(f"output's processor time that other threads have, {share:.0%} of compute", "moved", "", "", result="none", without=(REFERENCE, "wheel"), args={"share": share})
      for share in (0.2, 0.8)),
]
# Bytes of a step of the case study in the file.
STEP = {"double": 21889024, "float": 10944512}


class Runner:
    def __init__(self, bin_dir: Path, libs: dict, python: str, folder: Path, options):
        self.bin_dir, self.libs, self.python, self.folder, self.options = bin_dir, libs, python, folder, options
        self.made: dict = {}
        self.overlaps: dict = {}

    def engine(self, name: str, env: dict, *args) -> dict:
        return harness.engine(self.bin_dir, name, [str(a) for a in args], env, MOST_SECONDS)[-1]

    @property
    def reference(self) -> dict:
        return self.libs[REFERENCE]["env"]

    def digest(self, path: Path) -> str:
        return self.engine("digest", self.reference, "--file", path)["digest"]

    def input(self, row: Row) -> Path | None:
        """The file that a row reads or writes over, made once by the reference."""
        size = self.size(row)
        key = (row.make or row.key, size, json.dumps(row.args))
        if key not in self.made:
            path = self.folder / f"made-{len(self.made)}.nc"
            if row.key == "history-read":
                self.engine("history_model", self.reference, *self.history("write", row), "--order", "sorted", path)
            elif row.make:
                harness.engine(self.bin_dir, "rows", ["--make", row.make, "--file", str(path), "--size", str(size)], self.reference)
            else:
                path = None
            self.made[key] = path
        return self.made[key]

    def steps(self, row: Row) -> int:
        return max(self.size(row) * 10**6 // STEP[row.args["type"]], 1)

    def size(self, row: Row) -> int:
        return row.quick_size if self.options.quick else row.size

    def history(self, phase: str, row: Row) -> list:
        return ["--phase", phase, *(["--type", row.args["type"], "--steps", self.steps(row)] if phase == "write" else [])]

    def warm(self, row: Row) -> None:
        """Memory as large as the file is at hand (README.md)."""
        path = self.folder / "warm"
        with path.open("wb") as file:
            for _ in range(self.size(row)):
                file.write(bytes(10**6))
        path.unlink()

    def case_study(self, row: Row, name: str, path: Path) -> dict:
        phase = row.key.removeprefix("history-")
        if name != FLOOR:
            return self.engine("history_model", self.libs[name]["env"], *self.history(phase, row), "--order", "random", path)
        record = STEP[row.args["type"]]
        return self.engine("raw_write", self.reference, "--phase", phase, "--mode", "convert", "--type", row.args["type"],
                           "--bytes", record * self.steps(row), "--record", record, path)

    def small(self, row: Row, key: str, name: str, path: Path, like: Path) -> dict:
        args = ["--row", key, "--file", path, "--loops", row.loops]
        if name == FLOOR:
            return self.engine("floors", self.reference, *args, "--like", like)
        if name == "h5py":
            done = subprocess.run([self.python, BENCH / "engines" / "h5py_rows.py", *map(str, args)], capture_output=True, text=True, timeout=MOST_SECONDS)
            if done.returncode:
                raise Failed((done.stderr.strip().splitlines() or ["no message"])[-1])
            return json.loads(done.stdout)
        return self.engine("rows", self.libs[name]["env"], *args)

    def once(self, row: Row, name: str, like: Path) -> tuple[float, str | None]:
        """One run: seconds of a call (or the share), and the digest of what came of it."""
        made, path = self.input(row), self.folder / "row.nc"
        path.unlink(missing_ok=True)
        if row.key == "att4" and name == FLOOR:
            # Of the same definitions in a classic file, which is no part of the work.
            made = self.input(Row("", "", "", "", "header"))
        if made and row.result == "file":
            shutil.copyfile(made, path)
        elif made:
            path = made
        if row.key.startswith("history"):
            if row.result == "file":
                self.warm(row)
            line = self.case_study(row, name, path)
            value = line["seconds"]
        elif row.key.endswith("-halves"):
            one, line = (self.small(row, f"{row.key}-{n}", name, path, like) for n in (1, 2))
            value = one["seconds"] / line["seconds"]
        else:
            line = self.small(row, row.key, name, path, like)
            value = line["seconds"] / line["calls"]
        if row.result != "file" or (row.key == "history-write" and name == FLOOR):
            # raw_write leaves values without a header: nobody reads it.
            return value, line["digest"]
        found = self.digest(path)
        if name == REFERENCE:
            shutil.move(path, like)
        return value, found

    def measure(self, row: Row) -> dict:
        """All rounds of a row; round 0 warms up, and begins with the reference, whose file others follow."""
        names = [n for n in (*self.libs, *(["h5py"] if self.python and row.key in H5PY else []), FLOOR) if n not in row.without]
        found = {"name": row.name, "unit": row.unit, "values": {}, "errors": {}}
        like, digests = self.folder / "like.nc", {}
        for number in range(self.options.rounds + 1):
            for name in names if number == 0 else harness.in_turn(names, number):
                if name in found["errors"]:
                    continue
                try:
                    value, digest = self.once(row, name, like)
                    if digest and not (row.key.startswith("history") and name == FLOOR):
                        right = digests.setdefault("right", digest)
                        if digest != right:
                            raise Failed("other values than the reference")
                except (Failed, subprocess.TimeoutExpired) as why:
                    found["errors"][name] = str(why).replace(f"{ROOT}/", "")[:160]
                    found["values"].pop(name, None)
                    continue
                if number > 0:
                    found["values"].setdefault(name, []).append(value)
        return found

    def overlapped(self, name: str, share: float) -> overlap.Row:
        """A row of bench/overlap.py with one library, measured once."""
        if (name, share) not in self.overlaps:
            folder = self.folder / "overlap"
            folder.mkdir(exist_ok=True)
            asked = argparse.Namespace(sleep=False, setting="on", steps=20 if self.options.quick else 40, repeat=self.options.rounds)
            work = overlap.Row("C", "classic", "memory", "free", share)
            try:
                overlap.Runner(self.bin_dir, self.libs[name]["env"], folder, asked).measure(work)
            except Failed as why:
                work.error = str(why)[:160]
            self.overlaps[name, share] = work
        return self.overlaps[name, share]

    def hidden(self, row: Row) -> dict:
        """What write-behind hides of output, or moves to other threads, library after library; the floor is what can be hidden at all."""
        found = {"name": row.name, "unit": row.unit, "values": {}, "errors": {}}
        for name in self.libs:
            if name in row.without:
                continue
            work = self.overlapped(name, row.args["share"])
            if work.error:
                found["errors"][name] = work.error
                continue
            found["values"][name] = work.hidden() if row.key == "hidden" else work.moved()
            if name == "zonda" and row.key == "hidden":
                found["values"][FLOOR] = work.possible()
        return found


def build(bin_dir: Path) -> str:
    """Compiles what rows need; gcc's version."""
    overlap.build(bin_dir)
    harness.ENGINES["rows"] = ("bench/engines/rows.c", ["-std=c99", "-O2", "-lnetcdf", "-lpthread"])
    harness.ENGINES["floors"] = ("bench/engines/floors.c", ["-std=c11", *harness.LIMIT_FLAGS, "-lpthread"])
    return harness.build(bin_dir)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="environment: ZONDA_LIB (dist/lib), ZONDA_PYTHON (out/venv), NETCDF_LIBS, BENCH_MEMORY (/dev/shm). Exit status: 0 done, "
                                "1 Zonda or a floor failed (times never decide), 2 wrong usage.")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--rounds", type=int, default=0)
    p.add_argument("--list", action="store_true")
    options = p.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 5)
    return options


def main() -> int:
    options = arguments()
    chosen = [row for row in ROWS if re.search(options.only, row.name)]
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    bin_dir = ROOT / "out" / "bench-bin"
    gcc = build(bin_dir)
    venv = ROOT / "out" / "venv" / "bin" / "python"
    if venv.exists():
        os.environ.setdefault("ZONDA_PYTHON", str(venv))
    python = reads.add_wheel(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        return 1
    if subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode:
        print(f"{python} has no h5py: left out", file=sys.stderr)
        python = ""
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    heading = harness.heading(host, gcc, libs, started, f"files in memory, {options.rounds} rounds")
    print(heading, "\n", file=sys.stderr)
    found = []
    with tempfile.TemporaryDirectory(prefix="zonda-floors-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        runner = Runner(bin_dir, libs, python, Path(folder), options)
        for row in chosen:
            found.append(runner.hidden(row) if row.key in ("hidden", "moved") else runner.measure(row))
            scale = SCALES.get(row.unit, 1)
            show = {n: f"{statistics.median(v) * scale:.3g}" for n, v in found[-1]["values"].items() if v}
            print(f"{row.name}: {show | found[-1]['errors']} {row.unit}", file=sys.stderr, flush=True)
    shown = floors_table.table(chosen, found, libs)
    print(f"{heading}\n\n{shown}")
    if not options.quick and not options.only:
        record = harness.keep(host, started, "-floors", {"gcc": gcc, "rounds": options.rounds, "libraries": harness.identity(libs)}, found)
        written = floors_table.write(heading, shown, chosen, found)
        print(f"\nwritten: {', '.join(written)}; raw figures: {record}")
    for one in found:
        for name, why in one["errors"].items():
            print(f"{one['name']}: {name}: {why}", file=sys.stderr)
    return 1 if any(name in ("zonda", FLOOR) for one in found for name in one["errors"]) else 0


if __name__ == "__main__":
    sys.exit(main())
