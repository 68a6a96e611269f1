#!/usr/bin/env python3
"""`zonda copy` beside `nccopy`: the same copies in turns, files in memory.

    copies.py                   everything; a markdown table and a record
    copies.py --only REGEX      by the name of the case
    copies.py --repeat N        rounds that count (5); one before them does not
    copies.py --list

`nccopy` is the distribution's (NCCOPY names another); with NETCDF_LIBS=before=DIR an earlier DIR/../bin/zonda runs, too. Both results are read by the distribution's
library and ncdump: other values, chunks or filters than those of nccopy's copy, and there is no time. `cp` is
the limit of copies that change nothing. See README.md.
"""

import argparse
import datetime
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import REFERENCE, ROOT, Failed

MOST_SECONDS = 900
SHAPE = "64,361,720"  # 67 MB of float
MAPS, BRICKS, SERIES, SMALL = "1,361,720", "16,91,120", "64,19,24", "1,36,72"
PACKED = ["--deflate", "1", "--shuffle", "1"]


@dataclass
class Case:
    """A copy: how the source is made, and what each program is told."""

    name: str
    source: list[str]
    nccopy: list[str]
    zonda: list[str]
    settings: int = 1  # whether chunks and filters are to be those of nccopy


def cases():
    """All cases."""

    def chunks(sizes):
        return ",".join(f"d{d}/{n}" for d, n in enumerate(sizes.split(",")))

    maps, plain = ["--chunk", MAPS, *PACKED], ["--chunk", MAPS]
    yield Case("nothing changes, deflated maps", maps, [], [])
    # nccopy puts small chunks together.
    yield Case("nothing changes, deflated chunks of 5 KB", ["--chunk", SMALL, *PACKED], [], [], 0)
    yield Case("nothing changes, unfiltered maps", plain, [], [])
    yield Case("nothing changes, contiguous", ["--chunk", "none"], [], [])
    yield Case("deflate 1 becomes 5", maps, ["-d", "5", "-s"], ["-d", "5", "-s"])
    yield Case("deflate 1 becomes none", maps, ["-d", "0"], ["-F", "none"], 0)
    yield Case("unfiltered becomes deflate 1 with shuffle", plain, ["-d", "1", "-s"], ["-d", "1", "-s"])
    for name, old, new in (("maps become series", MAPS, SERIES), ("series become maps", SERIES, MAPS),
                           ("bricks become series", BRICKS, SERIES)):
        change = ["-c", chunks(new)]
        yield Case(f"{name}, deflate 1", ["--chunk", old, *PACKED], change, change)
        yield Case(f"{name}, deflate 1, 16 MB of memory", ["--chunk", old, *PACKED],
                   [*change, "-m", "16M"], [*change, "-m", "16M"])
    for name, old, new in (("maps become series", MAPS, SERIES), ("series become maps", SERIES, MAPS)):
        yield Case(f"{name}, unfiltered", ["--chunk", old], ["-c", chunks(new)], ["-c", chunks(new)])
    yield Case("deflated maps become classic", maps, ["-k", "cdf5"], ["-k", "cdf5"])
    yield Case("classic becomes deflated maps", ["--classic"],
               ["-k", "nc4", "-d", "1", "-s", "-c", chunks(MAPS)], ["-k", "nc4", "-d", "1", "-s", "-c", chunks(MAPS)])


def tool(libs: Path) -> Path:
    """`zonda` beside a folder of libraries."""
    return libs.parent / "bin" / "zonda"


class Runner:
    def __init__(self, bin_dir: Path, libs: dict, folder: Path, repeat: int):
        self.bin_dir, self.libs, self.repeat, self.folder = bin_dir, libs, repeat, folder
        self.nccopy = os.environ.get("NCCOPY", "nccopy")
        self.tools = {"zonda": tool(Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib")))}
        if "before" in libs and (before := tool(Path(libs["before"]["env"]["LD_LIBRARY_PATH"]))).exists():
            self.tools["before"] = before
        self.source, self.target = folder / "source.nc", folder / "target.nc"

    def engine(self, name: str, args: list) -> dict:
        (line,) = harness.engine(self.bin_dir, name, [str(a) for a in args], self.libs[REFERENCE]["env"], MOST_SECONDS)
        return line

    def make(self, case: Case) -> None:
        classic = case.source == ["--classic"]
        args = ["--chunk", "none"] if classic else case.source
        self.engine("write4", ["--op", "data", "--shape", SHAPE, "--type", "float", "--puts", "whole",
                               "--unlimited", "0", *args, "--file", self.source])
        if classic:
            self.run([self.nccopy, "-k", "cdf5", self.source, self.target])
            self.target.replace(self.source)

    def run(self, command: list) -> tuple[float, float]:
        self.target.unlink(missing_ok=True)
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            out = subprocess.run(command, env=self.libs[REFERENCE]["env"], capture_output=True, text=True,
                                 timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"more than {MOST_SECONDS} s") from None
        seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if out.returncode != 0 or out.stderr.strip():
            raise Failed(f"ended with {out.returncode}: {out.stderr.strip()[-200:]}")
        return seconds, cpu

    def meaning(self, case: Case) -> tuple:
        """Values, chunks and filters; nccopy leaves no variable its fill mode."""
        said = ""
        if case.settings:
            out = subprocess.run(["ncdump", "-hs", self.target], env=self.libs[REFERENCE]["env"], capture_output=True,
                                 text=True)
            said = "".join(re.findall(r"\S+:_(?:Storage|ChunkSizes|Shuffle|DeflateLevel|Filter|Format) = .*", out.stdout))
        return self.engine("digest", ["--file", self.target, "--settings", 0])["digest"], said

    def measure(self, case: Case) -> dict:
        """All rounds of a case, the programs in turns; round 0 warms up."""
        self.make(case)
        programs = {"nccopy": [self.nccopy, *case.nccopy, self.source, self.target]}
        programs |= {n: [path, "copy", "-q", *case.zonda, self.source, self.target] for n, path in self.tools.items()}
        programs["cp"] = ["cp", self.source, self.target]
        row = {"name": case.name, "seconds": {}, "cpu": {}, "size": {}, "errors": {}}
        digests = {}
        for number in range(self.repeat + 1):
            for name in programs if number % 2 == 0 else reversed(programs):
                if name in row["errors"]:
                    continue
                try:
                    seconds, cpu = self.run(programs[name])
                    if number == 0 and name != "cp":
                        row["size"][name] = self.target.stat().st_size
                        digests[name] = self.meaning(case)
                except Failed as why:
                    row["errors"][name] = str(why)[:150]
                    continue
                if number > 0:
                    row["seconds"].setdefault(name, []).append(seconds)
                    row["cpu"].setdefault(name, []).append(cpu)
        for name in digests:
            if digests[name] != digests.get("nccopy"):
                row["errors"][name] = "another digest than nccopy's copy"
                row["seconds"].pop(name, None)
        for file in (self.source, self.target):
            file.unlink(missing_ok=True)
        return row


def with_spread(values: list, scale: float = 1) -> str:
    if not values:
        return ""
    return f"{statistics.median(values) * scale:.3g} ({min(values) * scale:.3g}-{max(values) * scale:.3g})"


def table(rows: list) -> str:
    lines = ["| copy | nccopy, ms | zonda copy, ms | nccopy / zonda | the same in processor time "
             "| cp, ms | file, MB: nccopy, zonda |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        seconds = row["seconds"]
        pairs, cpu = ([a / b for a, b in zip(of.get("nccopy", []), of.get("zonda", []))] for of in (seconds, row["cpu"]))
        sizes = ", ".join(f"{row['size'].get(n, 0) / 1e6:.1f}" for n in ("nccopy", "zonda"))
        show = [with_spread(seconds.get(n), 1e3) or row["errors"].get(n, "") for n in ("nccopy", "zonda")]
        lines.append(f"| {row['name']} | {show[0]} | {show[1]} | {with_spread(pairs)} | {with_spread(cpu)} "
                     f"| {with_spread(seconds.get('cp'), 1e3)} | {sizes} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=".", metavar="REGEX")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [c for c in cases() if re.search(options.only, c.name)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return 0
    bin_dir = ROOT / "out" / "bench-bin"
    harness.ENGINES["write4"] = ("bench/engines/write4.c", ["-std=c99", "-O2", "-lnetcdf", "-lm"])
    gcc = harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    heading = harness.heading(host, gcc, libs, started, "files in memory")
    folder = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")))
    runner, rows = Runner(bin_dir, libs, folder, options.repeat), []
    try:
        for case in chosen:
            rows.append(runner.measure(case))
            show = {n: f"{statistics.median(s) * 1e3:.4g}" for n, s in rows[-1]["seconds"].items()}
            print(f"{case.name}: {show} ms {rows[-1]['errors'] or ''}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(heading, table(rows), sep="\n\n")
    if not options.no_record and options.repeat > 0:
        facts = {"gcc": gcc, "cache": "memory", "repeat": options.repeat, "libraries": harness.identity(libs)}
        print(f"\nraw figures: {harness.keep(host, started, '-copies', facts, rows)}")
    return 1 if any("zonda" in row["errors"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
