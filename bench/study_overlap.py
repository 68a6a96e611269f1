#!/usr/bin/env python3
"""Chunk x slice x overlap: one program in Fortran, without overlap, with it by hand, and by ZONDA_ASYNC.

    study_overlap.py             everything, half an hour or more; out/study/overlap.md, .svg and .csv
    study_overlap.py --quick     without chunks of one element and without netCDF-C
    study_overlap.py --work N    steps that each value takes (300: some tenths of a second for all)
    study_overlap.py --repeat N  rounds (3)

Two double variables of 300,000 elements, one over a fixed and one over an unlimited dimension, in chunks of 1, 10,
100, 1000 elements or of the default size. The program (engines/table.f90) computes a slice of 1, 10, 100 or
1000 elements of each and puts it. By hand: OpenMP sections, one thread computes the next slice while
another puts this one. See docs/dev/overlap.md.
"""

import argparse
import csv
import datetime
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
import panels
from harness import REFERENCE, ROOT, Failed

CHUNKS, SLICES = (0, 1, 10, 100, 1000), (1, 10, 100, 1000)
MOST_SECONDS = 300
# Name -> library, how the program overlaps, ZONDA_ASYNC.
WAYS = {
    "netCDF-C": (REFERENCE, "none", "off"),
    "netCDF-C, sections": (REFERENCE, "sections", "off"),
    "Zonda": ("zonda", "none", "off"),
    "Zonda, sections": ("zonda", "sections", "off"),
    "Zonda, ZONDA_ASYNC=on": ("zonda", "none", "on"),
}
COLOURS = ["#999999", "#444444", "#56b4e9", "#0072b2", "#d55e00"]


class Study:
    def __init__(self, bin_dir: Path, libs: dict, folder: Path, options):
        self.bin_dir, self.libs, self.folder, self.options = bin_dir, libs, folder, options
        self.ways = {n: w for n, w in WAYS.items() if not (options.quick and w[0] == REFERENCE)}
        self.seconds: dict = {}  # (chunk, slice, way) -> a value for each round
        self.errors: dict = {}

    def run(self, lib: str, asynchronous: str, overlap: str, chunk: int, slice: int, path: Path) -> float:
        path.unlink(missing_ok=True)
        args = ["--file", path, "--n", self.options.n, "--chunk", chunk, "--slice", slice, "--work", self.options.work, "--overlap", overlap]
        # Threads of OpenMP wait awake for some microseconds, then asleep: on busy cores hundreds of thousands of
        # meetings would otherwise cost a time slice each.
        env = {**self.libs[lib]["env"], "ZONDA_ASYNC": asynchronous, "GOMP_SPINCOUNT": "10000"}
        (line,) = harness.engine(self.bin_dir, "table_omp", [str(a) for a in args], env, MOST_SECONDS)
        return line["seconds"]

    def digest(self, path: Path) -> str:
        (line,) = harness.engine(self.bin_dir, "digest", ["--file", str(path)], self.libs[REFERENCE]["env"], MOST_SECONDS)
        return line["digest"]

    def one(self, chunk: int, slice: int) -> None:
        """All rounds of a cell; round 0 warms up and looks at what was written."""
        digests = {}
        names = [*self.ways, "compute only"]
        for number in range(self.options.repeat + 1):
            for name in names if number % 2 == 0 else reversed(names):
                key = (chunk, slice, name)
                if key in self.errors:
                    continue
                lib, overlap, asynchronous = self.ways.get(name, ("zonda", "only", "off"))
                path = self.folder / "table.nc"
                try:
                    seconds = self.run(lib, asynchronous, overlap, chunk, slice, path)
                    if number == 0 and overlap != "only":
                        digests[name] = self.digest(path)
                except Failed as why:
                    self.errors[key] = str(why)[:100]
                    continue
                if number > 0:
                    self.seconds.setdefault(key, []).append(seconds)
        for name, value in digests.items():
            if value != next(iter(digests.values())):
                self.errors[chunk, slice, name] = "wrong values"

    def median(self, *key) -> float | None:
        return statistics.median(self.seconds[key]) if key in self.seconds and key not in self.errors else None


# ---- output -----------------------------------------------------------------------------------------


def chunk_name(chunk: int) -> str:
    return f"chunk {chunk}" if chunk else "default chunks"


def table(study: Study, heading: str) -> str:
    lines = [heading, "", "Seconds, medians (least to most); computing included. Hidden: of what output adds to computing, the part that "
             "ZONDA_ASYNC takes away.", "", "| chunk | slice | compute only | " + " | ".join(study.ways) + " | hidden |",
             "|---" * (len(study.ways) + 4) + "|"]
    for chunk, slice in itertools.product(CHUNKS, SLICES):
        cells = []
        for name in ("compute only", *study.ways):
            key = (chunk, slice, name)
            values = study.seconds.get(key)
            cells.append(study.errors.get(key) or (f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})" if values else ""))
        compute, sync, behind = (study.median(chunk, slice, n) for n in ("compute only", "Zonda", "Zonda, ZONDA_ASYNC=on"))
        share = ""
        if None not in (compute, sync, behind) and sync > compute:
            share = f"{(sync - behind) / (sync - compute):.2f}"
        if any(cells):
            lines.append(f"| {chunk or 'default'} | {slice} | " + " | ".join(cells) + f" | {share} |")
    return "\n".join(lines) + "\n"


def plot(study: Study) -> str:
    """A panel for each chunk: seconds over slice."""
    styles = {"compute only": ("#cccccc", False), **{n: (COLOURS[list(WAYS).index(n)], "sections" in n) for n in study.ways}}
    chunks = [c for c in CHUNKS if any(k[0] == c for k in study.seconds)]
    row = [(chunk_name(c), {n: {s: study.median(c, s, n) for s in SLICES} for n in styles}) for c in chunks]
    return panels.svg(f"Two variables of {study.options.n:,} doubles: seconds over slice length", [row], styles)


def build(bin_dir: Path) -> str:
    """Compiles the program in Fortran, with OpenMP; gcc's version."""
    if not (shutil.which("gfortran") and shutil.which("nf-config")):
        sys.exit("the study needs gfortran and netCDF-Fortran (libnetcdff-dev)")
    flags = subprocess.run(["nf-config", "--fflags"], capture_output=True, text=True).stdout.split()
    harness.ENGINES["table_omp"] = ("bench/engines/table.f90", ["-O2", "-fopenmp", *flags, "-lnetcdff", "-lnetcdf"])
    return harness.build(bin_dir)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--quick", action="store_true")
    p.add_argument("--work", type=int, default=300)
    p.add_argument("--n", type=int, default=300_000, help="elements of each variable")
    p.add_argument("--repeat", type=int, default=3)
    options = p.parse_args()
    bin_dir, out = ROOT / "out" / "bench-bin", ROOT / "out" / "study"
    gcc = build(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        return 1
    out.mkdir(parents=True, exist_ok=True)
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    with tempfile.TemporaryDirectory(prefix="zonda-study-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        study = Study(bin_dir, libs, Path(folder), options)
        for chunk, slice in itertools.product(CHUNKS[2:] if options.quick else CHUNKS, SLICES):
            study.one(chunk, slice)
            print(f"{chunk_name(chunk)}, slice {slice}: done", file=sys.stderr, flush=True)
    text = table(study, harness.heading(host, gcc, libs, started, f"work {options.work}, {options.repeat} rounds"))
    (out / "overlap.md").write_text(text)
    with (out / "overlap.csv").open("w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["chunk", "slice", "way", "round", "seconds"])
        rows.writerows([*key, number, seconds] for key, values in study.seconds.items() for number, seconds in enumerate(values))
    (out / "overlap.svg").write_text(plot(study))
    print(text)
    print("written: " + ", ".join(str((out / f"overlap.{end}").relative_to(ROOT)) for end in ("md", "csv", "svg")))
    # What took too long says so in its cell, and is no failure.
    return 1 if any("took more than" not in why for why in study.errors.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
