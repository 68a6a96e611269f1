#!/usr/bin/env python3
"""The classic tools beside those of the distribution: the same work in turns.

    nccopy.py                    everything; a markdown table and a record
    nccopy.py --only REGEX       by the name of the case
    nccopy.py --size MB          of the data (1000)
    nccopy.py --repeat N         rounds that count (3); one before them does not
    nccopy.py --patience S       a program that takes longer is stopped, and not run again (600)
    nccopy.py --list

The distribution's tools run on its library, ours are in dist/bin (or beside ZONDA_LIB). Results are compared by the
digest of all values that the distribution's library reads: another one, and there is no time. Where the reference was
stopped, values are compared with those of the source. `cp` is the limit of copies that change nothing. Files are in
BENCH_MEMORY (/dev/shm).
"""

import argparse
import datetime
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import harness
from harness import REFERENCE, ROOT, Failed

MOST_SECONDS = 3600
LAT, LON = 361, 720
MAPS, SERIES = f"1,{LAT},{LON}", "{t},19,24"
PACKED = ["--deflate", "1", "--shuffle", "1"]


@dataclass
class Case:
    """Work for a tool: how its source is made, and what it is told."""

    name: str
    tool: str
    source: list = field(default_factory=list)
    options: list = field(default_factory=list)


def cases(records: int):
    """All cases for so many maps."""

    def chunks(sizes):
        return ",".join(f"d{d}/{n}" for d, n in enumerate(sizes.format(t=records).split(",")))

    yield Case("nccopy -d1 -s, contiguous", "nccopy", ["--chunk", "none"], ["-d1", "-s"])
    yield Case("nccopy -d1 -s, maps", "nccopy", ["--chunk", MAPS], ["-d1", "-s"])
    yield Case("nccopy, deflated maps as they are", "nccopy", ["--chunk", MAPS, *PACKED])
    yield Case("nccopy, maps as they are", "nccopy", ["--chunk", MAPS])
    yield Case("nccopy, contiguous as it is", "nccopy", ["--chunk", "none"])
    yield Case("nccopy, maps become series, 256 MB", "nccopy", ["--chunk", MAPS],
               ["-c", chunks(SERIES), "-m", "256M", "-h", "256M", "-e", "10k"])
    yield Case("nccopy, deflated maps become series, 256 MB", "nccopy", ["--chunk", MAPS, *PACKED],
               ["-c", chunks(SERIES), "-m", "256M", "-h", "256M", "-e", "10k"])


class Patience(Failed):
    """A program that took too long, and how long that was."""


class Runner:
    def __init__(self, bin_dir: Path, libs: dict, folder: Path, options):
        self.bin_dir, self.libs, self.folder, self.repeat = bin_dir, libs, folder, options.repeat
        self.patience = options.patience
        self.ours = Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib")).parent / "bin"
        self.records = max(2, options.size * 1_000_000 // (LAT * LON * 4))
        self.source, self.target = folder / "source.nc", folder / "target.nc"

    def engine(self, name: str, args: list) -> dict:
        env = self.libs[REFERENCE]["env"]
        (line,) = harness.engine(self.bin_dir, name, [str(a) for a in args], env, MOST_SECONDS)
        return line

    def digest(self, file: Path) -> str:
        # All chunks are kept: the library reads maps, and of series each has a part of all.
        cache = 2 * self.records * LAT * LON * 4 // 1_000_000
        return self.engine("digest", ["--file", file, "--settings", 0, "--cache", cache])["digest"]

    def run(self, command: list) -> tuple:
        """Seconds, processor seconds, and peak of memory in MB."""
        self.target.unlink(missing_ok=True)
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        child = subprocess.Popen(command, env=self.libs[REFERENCE]["env"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        alarm = threading.Timer(self.patience, child.kill)
        alarm.start()
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        alarm.cancel()
        seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode == -signal.SIGKILL and seconds >= self.patience:
            raise Patience(f"> {self.patience:g}")
        if child.returncode or said.strip():
            raise Failed(f"ended with {child.returncode}: {said.strip()[-200:]}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return seconds, cpu, usage.ru_maxrss // 1024

    def measure(self, case: Case) -> dict:
        """All rounds of a case, the programs in turns; round 0 warms up."""
        shape = f"{self.records},{LAT},{LON}"
        self.engine("write4", ["--op", "data", "--shape", shape, "--type", "float", "--puts", "whole", "--unlimited", "0",
                               *case.source, "--file", self.source])
        programs = {name: [str(tool), *case.options, str(self.source), str(self.target)]
                    for name, tool in (("reference", f"/usr/bin/{case.tool}"), ("zonda", self.ours / case.tool))}
        if not case.options:
            programs["cp"] = ["cp", str(self.source), str(self.target)]
        row = {"name": case.name, "seconds": {}, "cpu": {}, "peak": {}, "size": {}, "errors": {}}
        digests = {}
        for number in range(self.repeat + 1):
            for name in programs if number % 2 == 0 else reversed(programs):
                if name in row["errors"]:
                    continue
                try:
                    seconds, cpu, peak = self.run(programs[name])
                    if number == 0:
                        row["size"][name] = self.target.stat().st_size
                        digests[name] = self.digest(self.target)
                except Patience as why:
                    row["errors"][name] = str(why)
                    digests[name] = self.digest(self.source)
                    continue
                except Failed as why:
                    row["errors"][name] = str(why)[:150]
                    continue
                if number > 0:
                    row["seconds"].setdefault(name, []).append(seconds)
                    row["cpu"].setdefault(name, []).append(cpu)
                    row["peak"][name] = max(peak, row["peak"].get(name, 0))
        if len(set(digests.values())) > 1:
            row["errors"]["zonda"] = "another digest than that of the reference"
            row["seconds"].pop("zonda", None)
        for file in (self.source, self.target):
            file.unlink(missing_ok=True)
        return row


def with_spread(values: list) -> str:
    if not values:
        return ""
    return f"{statistics.median(values):.3g} ({min(values):.3g}-{max(values):.3g})"


def table(rows: list) -> str:
    lines = ["| work | reference, s | zonda, s | reference / zonda | cp, s | peak of memory, MB | file, MB |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        seconds = row["seconds"]
        pairs = [a / b for a, b in zip(seconds.get("reference", []), seconds.get("zonda", []))]
        times = with_spread(pairs)
        stopped = re.fullmatch(r"> ([0-9.]+)", row["errors"].get("reference", ""))
        if stopped and "zonda" in seconds:
            times = f"> {float(stopped[1]) / statistics.median(seconds['zonda']):.3g}"
        show = [with_spread(seconds.get(n)) or row["errors"].get(n, "") for n in ("reference", "zonda")]
        peak = ", ".join(str(row["peak"].get(n, "")) for n in ("reference", "zonda"))
        size = ", ".join(f"{row['size'].get(n, 0) / 1e6:.0f}" for n in ("reference", "zonda"))
        lines.append(f"| {row['name']} | {show[0]} | {show[1]} | {times} "
                     f"| {with_spread(seconds.get('cp'))} | {peak} | {size} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=".", metavar="REGEX")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--patience", type=float, default=600, metavar="SECONDS")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    bin_dir = ROOT / "out" / "bench-bin"
    harness.ENGINES["write4"] = ("bench/engines/write4.c", ["-std=c99", "-O2", "-lnetcdf", "-lm"])
    records = max(2, options.size * 1_000_000 // (LAT * LON * 4))
    chosen = [case for case in cases(records) if re.search(options.only, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    gcc = harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    heading = harness.heading(host, gcc, libs, started, "files in memory")
    folder = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")))
    runner, rows = Runner(bin_dir, libs, folder, options), []
    try:
        for case in chosen:
            rows.append(runner.measure(case))
            show = {n: f"{statistics.median(s):.4g}" for n, s in rows[-1]["seconds"].items()}
            print(f"{case.name}: {show} s {rows[-1]['errors'] or ''}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(heading, table(rows), sep="\n\n")
    if not options.no_record and options.repeat > 0:
        facts = {"gcc": gcc, "cache": "memory", "repeat": options.repeat, "libraries": harness.identity(libs)}
        print(f"\nraw figures: {harness.keep(host, started, '-nccopy', facts, rows)}")
    return 1 if any("zonda" in row["errors"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
