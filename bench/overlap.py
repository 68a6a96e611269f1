#!/usr/bin/env python3
"""How much of a model's output write-behind hides: (T_sync - T_async) / (T_sync - T_compute).

    overlap.py                  everything; a table and a record, about an hour
    overlap.py --quick          C, output 20 and 80 % of compute, two of the devices, three rounds: some minutes
    overlap.py --only REGEX     by the name of the row
    overlap.py --async SETTING  another ZONDA_ASYNC than "on"
    overlap.py --sleep          the model sleeps instead of computing: a core is free whatever else runs
    overlap.py --repeat N       rounds (5)
    overlap.py --steps N        steps of the model (40): the output of the last one cannot be hidden

The models are examples/overlap_model.c and .f90, unmodified: they compute, put, compute, and close. How long
output takes without overlap is measured first; compute is then made so long that output is 10, 20, 40
and 80 % of it. "free": the model computes on one core. "bound": on one that OpenMP has bound it to
(OMP_PROC_BIND=true OMP_PLACES=cores). "busy": on all. See README.md.
"""

import argparse
import datetime
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import harness
from harness import ROOT, Failed

MOST_SECONDS = 300
MODELS = {"C": "overlap_model", "Fortran": "overlap_model_f"}
FORMATS = ("classic", "netcdf4", "deflate")
CORES = ("free", "bound", "busy")
BOUND = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
SHARES = (0.1, 0.2, 0.4, 0.8)
# Memory-backed, and the same on devices that answer after 100 us.
STORAGE = {"memory": None, "500 MB/s": "500e6:100e-6", "100 MB/s": "100e6:100e-6"}
# Megabytes of a step as floats: output alone takes some tenths of a second each.
MEGABYTES = {"memory": (6, 6, 1.5), "500 MB/s": (3, 3, 1.2), "100 MB/s": (0.8, 0.8, 0.8)}
TARGET = 0.95


@dataclass
class Row:
    language: str
    format: str
    storage: str
    cores: str
    share: float
    seconds: dict = field(default_factory=dict)  # of compute, sync, async: a value for each round
    parts: dict = field(default_factory=dict)
    thread: dict = field(default_factory=dict)  # the same of the model's thread: processor time
    error: str = ""

    @property
    def name(self):
        return f"{self.language}, {self.format}, {self.storage}, {self.cores}, {self.share:.0%}"

    def output(self):
        """What output costs without overlap, round by round."""
        return [a - c for a, c in zip(self.seconds["sync"], self.seconds["compute"])]

    def possible(self):
        """The share that could be hidden: not a copy of each put, nor the last step, after which nothing is computed."""
        copies = [p["memcpy_median"] * p["steps"] * 4 for p in self.parts["async"]]
        n = self.parts["async"][0]["steps"]
        return [1 - 1 / n - c / out for c, out in zip(copies, self.output()) if out > 0]

    def hidden(self):
        """Round by round: what of one round is compared had the same machine."""
        return saved(self.seconds)

    def moved(self):
        """Of the processor time that output costs the model's thread, what other threads have; also where no core is free to have it."""
        return saved(self.thread)


def saved(s: dict) -> list:
    return [(a - b) / (a - c) for a, b, c in zip(s["sync"], s["async"], s["compute"]) if a > c]


def build(folder: Path) -> tuple[str, list[str]]:
    """Compiles the models; gcc's version and the languages that there are."""
    flags = ["-std=c99", "-O2", "-fopenmp", "-lnetcdf", "-lm"]
    harness.ENGINES["overlap_model"] = ("examples/overlap_model.c", flags)
    languages = ["C"]
    if shutil.which("gfortran") and shutil.which("nf-config"):
        flags = subprocess.run(["nf-config", "--fflags"], capture_output=True, text=True).stdout.split()
        harness.ENGINES["overlap_model_f"] = ("examples/overlap_model.f90", ["-O2", "-fopenmp", *flags, "-lnetcdff", "-lnetcdf"])
        languages.append("Fortran")
    return harness.build(folder), languages


class Runner:
    def __init__(self, bin_dir: Path, env: dict, folder: Path, options):
        self.bin_dir, self.env, self.folder, self.options = bin_dir, env, folder, options
        self.cores = len(os.sched_getaffinity(0))
        self.rates: dict = {}

    def run(self, row: Row, asynchronous: str, *args) -> dict:
        """One run of the model; its line."""
        env = {**self.env, "ZONDA_ASYNC": asynchronous, "OMP_WAIT_POLICY": "passive",
               "OMP_NUM_THREADS": str(self.cores if row.cores == "busy" else 1)}
        if row.cores == "bound":
            env |= BOUND
        env |= {"LD_PRELOAD": str(self.bin_dir / "thread_time.so"), "THREAD_TIME": str(self.folder / "thread-time")}
        if STORAGE[row.storage]:
            env |= {"LD_PRELOAD": f"{env['LD_PRELOAD']}:{self.bin_dir / 'throttle.so'}", "THROTTLE": STORAGE[row.storage], "THROTTLE_FOLDER": str(self.folder)}
        words = [str(a) for a in args]
        (line,) = harness.engine(self.bin_dir, MODELS[row.language], words, env, MOST_SECONDS)
        return line

    def model(self, row: Row, kind: str, iterations: int, seconds: float) -> dict:
        """The model as one of compute, sync, async."""
        path = self.folder / f"{kind}.nc"
        path.unlink(missing_ok=True)
        work = ["--sleep", f"{seconds:.6f}"] if self.options.sleep and seconds > 0 else ["--iterations", iterations]
        return self.run(row, self.options.setting if kind == "async" else "off", "--file", path, "--format", row.format, "--steps", self.options.steps,
                        "--mb", MEGABYTES[row.storage][FORMATS.index(row.format)], "--output", int(kind != "compute"), *work)

    def rate(self, row: Row) -> float:
        """Sweeps a second, with as many threads as the row has."""
        key = (row.language, row.cores)
        if key not in self.rates:
            line = self.run(row, "off", "--calibrate", 1.5)
            self.rates[key] = line["calls"] / line["seconds"]
        return self.rates[key]

    def prepare(self, row: Row) -> tuple[int, float]:
        """Sweeps of a step, and seconds, so that output has its share."""
        bare = [self.model(row, "sync", 0, 0) for _ in range(6)][1:]
        output = statistics.median(line["seconds"] - line["params"]["compute"] for line in bare)
        change = statistics.median(line["params"]["compute"] for line in bare)
        rest = max(0.0, output / row.share - change) / self.options.steps
        return int(rest * self.rate(row)), rest

    def measure(self, row: Row) -> None:
        work = self.prepare(row)
        kinds = ["compute", "sync", "async"]
        for number in range(self.options.repeat + 1):
            for kind in kinds if number % 2 == 0 else reversed(kinds):
                line = self.model(row, kind, *work)
                if number > 0:  # round 0 warms up
                    row.seconds.setdefault(kind, []).append(line["seconds"])
                    row.parts.setdefault(kind, []).append(line["params"])
                    row.thread.setdefault(kind, []).append(float((self.folder / "thread-time").read_text()))
            if (self.folder / "sync.nc").read_bytes() != (self.folder / "async.nc").read_bytes():
                raise Failed("the files differ")


# ---- output -----------------------------------------------------------------------------------------


def spread(values: list, scale: float = 1, form: str = ".3g") -> str:
    if not values:
        return ""
    low, middle, high = (x * scale for x in (min(values), statistics.median(values), max(values)))
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def table(rows: list[Row], title: str) -> str:
    lines = [title, "", "| model | format | storage | cores | output of compute | measured | compute s | sync s | async s | hidden | possible | moved | blocked, ms a put | memcpy, ms | blocked / memcpy |",
             "|---" * 15 + "|"]
    for r in rows:
        first = f"| {r.language} | {r.format} | {r.storage} | {r.cores} | {r.share:.0%} "
        if r.error:
            lines.append(f"{first}| {r.error} " + "| " * 9 + "|")
            continue
        s, parts = r.seconds, r.parts["async"]
        put, copy = [p["put_median"] for p in parts], [p["memcpy_median"] for p in parts]
        times = " | ".join(f"{statistics.median(s[k]):.3f}" for k in ("compute", "sync", "async"))
        ratio = [a / b for a, b in zip(put, copy) if b > 0]
        measured = statistics.median(out / c for out, c in zip(r.output(), s["compute"]))
        possible = f"{statistics.median(r.possible() or [0]):.2f}"
        lines.append(f"{first}| {measured:.0%} | {times} | {spread(r.hidden(), form='.2f')} | {possible} | {spread(r.moved(), form='.2f')} | {spread(put, 1e3)} | {spread(copy, 1e3)} | {spread(ratio)} |")
    return "\n".join(lines)


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--async", dest="setting", default="on")
    p.add_argument("--sleep", action="store_true")
    p.add_argument("--repeat", type=int, default=0)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    a.repeat = a.repeat or (3 if a.quick else 5)
    return a


def main() -> int:
    options = arguments()
    bin_dir = ROOT / "out" / "bench-bin"
    gcc, languages = build(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        return 1
    shares = (0.2, 0.8) if options.quick else SHARES
    if options.quick:
        languages = ["C"]
        del STORAGE["100 MB/s"]
    rows = [Row(*what) for what in itertools.product(languages, FORMATS, STORAGE, CORES, shares)]
    rows = [r for r in rows if re.search(options.only, r.name)]
    if options.list:
        print("\n".join(r.name for r in rows))
        return 0
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    with tempfile.TemporaryDirectory(prefix="zonda-overlap-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        runner = Runner(bin_dir, libs["zonda"]["env"], Path(folder), options)
        for row in rows:
            try:
                runner.measure(row)
            except Failed as why:
                row.error = str(why)[:120]
            print(f"{row.name}: {row.error or spread(row.hidden(), form='.2f')}; moved {spread(row.moved(), form='.2f')}", file=sys.stderr, flush=True)
    more = f"ZONDA_ASYNC={options.setting}, {'sleeping' if options.sleep else 'computing'}, {options.steps} steps, {options.repeat} rounds"
    print(table(rows, harness.heading(host, gcc, libs, started, more)))
    print()
    for cores, what in (("free", "a free core"), ("bound", "a free core beside the one it is bound to")):
        good = [r for r in rows if not r.error and r.cores == cores]
        met = sum(statistics.median(r.hidden() or [0]) >= TARGET for r in good)
        print(f"hidden >= {TARGET} with {what}: {met} of {len(good)} rows")
    if not options.quick:
        facts = {"libraries": harness.identity(libs), "setting": options.setting, "sleep": options.sleep}
        kept = harness.keep(host, started, "-overlap", facts, [{"name": r.name, "seconds": r.seconds, "parts": r.parts, "thread": r.thread, "error": r.error} for r in rows])
        print(f"record: {kept}")
    return 1 if any(r.error for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
