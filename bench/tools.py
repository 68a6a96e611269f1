#!/usr/bin/env python3
"""The classic tools beside those of the distribution: the same commands in turns, files in memory.

    tools.py                   everything; a markdown table and a record
    tools.py --only REGEX      by the name of the case
    tools.py --quick           a tenth of the data; not recorded
    tools.py --repeat N        rounds that count (3)
    tools.py --list

Ours are in dist/bin (or beside ZONDA_LIB). Output of both must be the same, or there is no time. See
README.md.
"""

import argparse
import array
import datetime
import hashlib
import os
import random
import re
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import harness
from harness import ROOT, Failed

MOST_SECONDS = 900
OURS = Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib")).parent / "bin"
FLOAT, DOUBLE, INT = ("f", 5), ("d", 6), ("i", 4)


@dataclass
class Case:
    """A command of one tool. `make` writes what it reads into a folder; `command` are its arguments,
    in that folder. What it gives is what it prints, or the file `result`."""

    name: str
    tool: str
    make: Callable[[Path, float], None]
    command: list[str]
    target: float  # how many times as fast as the reference it should be
    megabytes: int = 100
    result: str = ""
    dumped: bool = False  # the result counts by its dump: headers may leave room


def values(kind: tuple, count: int) -> bytes:
    """Numbers as instruments give them, big-endian: a million different ones, over and over."""
    code, _ = kind
    numbers = random.Random(7)
    period = min(count, 1_000_000)
    if code == "i":
        some = array.array(code, (numbers.randrange(-(10**6), 10**6) for _ in range(period)))
    else:
        some = array.array(code, (numbers.gauss(280, 15) for _ in range(period)))
    if sys.byteorder == "little":
        some.byteswap()
    block = some.tobytes()
    times, rest = divmod(count, period)
    return block * times + block[: rest * some.itemsize]


def classic(path: Path, kind: tuple, shape: list[int]) -> None:
    """A CDF-2 file of one variable."""
    code, number = kind
    count, size = 1, struct.calcsize(code)
    for length in shape:
        count *= length
    word = lambda *all: struct.pack(f">{len(all)}I", *all)
    name = lambda text: word(len(text)) + text + b"\0" * (-len(text) % 4)
    head = b"CDF\2" + word(0, 10, len(shape))
    for axis, length in enumerate(shape):
        head += name(b"d%d" % axis) + word(length)
    head += word(0, 0, 11, 1) + name(b"v") + word(len(shape), *range(len(shape)))
    head += word(0, 0, number, min(count * size, 2**32 - 4))
    head += struct.pack(">Q", len(head) + 8)
    with open(path, "wb") as file:
        file.write(head)
        file.write(values(kind, count))


def numbers(kind: tuple, rows: int | None = None) -> Callable[[Path, float], None]:
    """Makes a variable of so many megabytes: in rows of that length, or in one."""

    def make(folder: Path, megabytes: float) -> None:
        count = int(megabytes * 1e6) // struct.calcsize(kind[0])
        shape = [count] if rows is None else [count // rows // 10, 10, rows]
        classic(folder / "in.nc", kind, shape)

    return make


def text(kind: tuple, rows: int | None = None) -> Callable[[Path, float], None]:
    """The same as CDL."""

    def make(folder: Path, megabytes: float) -> None:
        numbers(kind, rows)(folder, megabytes)
        with open(folder / "in.cdl", "wb") as out:
            subprocess.run(["/usr/bin/ncdump", "in.nc"], cwd=folder, stdout=out, check=True)
        (folder / "in.nc").unlink()

    return make


def cases():
    """All cases."""
    for kind in ("nc6", "nc4"):
        yield Case(f"ncgen -k {kind}, float in rows of 1000", "ncgen", text(FLOAT, 1000),
                   ["-k", kind, "-o", "result", "in.cdl"], 10, result="result", dumped=True)
    yield Case("ncgen -k nc6, int in rows of 4", "ncgen", text(INT, 4), ["-k", "nc6", "-o", "result", "in.cdl"], 10,
               result="result", dumped=True)
    yield Case("ncgen -k nc6, double in rows of 1000", "ncgen", text(DOUBLE, 1000),
               ["-k", "nc6", "-o", "result", "in.cdl"], 10, result="result", dumped=True)
    dump = lambda name, make, *options: Case(f"ncdump, {name}", "ncdump", make, [*options, "in.nc"], 10)
    yield dump("float in rows of 1000", numbers(FLOAT, 1000))
    yield dump("float in one row", numbers(FLOAT))
    yield dump("double in rows of 1000", numbers(DOUBLE, 1000))
    yield dump("double, all digits", numbers(DOUBLE, 1000), "-p", "9,17")
    yield dump("int in rows of 4", numbers(INT, 4))


class Runner:
    def __init__(self, folder: Path, repeat: int, scale: float):
        self.folder, self.repeat, self.scale = folder, repeat, scale
        self.env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}

    def programs(self, case: Case) -> dict:
        reference = shutil.which(case.tool, path="/usr/bin:/usr/local/bin")
        if reference is None or not (OURS / case.tool).exists():
            raise Failed(f"no {case.tool} in {OURS}, or none of the distribution")
        return {"reference": reference, "zonda": str(OURS / case.tool)}

    def run(self, case: Case, program: str, output=subprocess.DEVNULL) -> tuple[float, float]:
        if case.result:
            (self.folder / case.result).unlink(missing_ok=True)
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            out = subprocess.run([program, *case.command], cwd=self.folder, env=self.env, stdout=output,
                                 stderr=subprocess.PIPE, text=True, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"more than {MOST_SECONDS} s") from None
        seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        if out.returncode != 0 or out.stderr.strip():
            raise Failed(f"ended with {out.returncode}: {out.stderr.strip()[-200:]}")
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def digest(self, case: Case, program: str) -> str:
        """Of what the tool gives."""
        path = self.folder / (case.result or "printed")
        with open(self.folder / "printed", "wb") as printed:
            self.run(case, program, printed)
            if case.dumped:
                subprocess.run(["/usr/bin/ncdump", case.result], cwd=self.folder, stdout=printed, check=True)
                (self.folder / case.result).unlink()
                path = self.folder / "printed"
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path.unlink()
        return digest

    def measure(self, case: Case) -> dict:
        """All rounds of a case, the programs in turns; what the digests are taken of warms up."""
        row = {"name": case.name, "megabytes": case.megabytes * self.scale, "target": case.target,
               "seconds": {}, "cpu": {}, "errors": {}}
        try:
            programs = self.programs(case)
            case.make(self.folder, case.megabytes * self.scale)
            if len({self.digest(case, program) for program in programs.values()}) > 1:
                raise Failed("another result than the reference's")
            for number in range(self.repeat):
                for name in programs if number % 2 == 0 else reversed(programs):
                    seconds, cpu = self.run(case, programs[name])
                    row["seconds"].setdefault(name, []).append(seconds)
                    row["cpu"].setdefault(name, []).append(cpu)
        except Failed as why:
            row["errors"]["zonda"] = str(why)[:150]
        for path in self.folder.iterdir():
            path.unlink()
        return row


def table(rows: list) -> str:
    lines = ["| case | MB | reference, MB/s | Zonda, MB/s | reference / Zonda | in processor time | target |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        def show(what, scale=1.0):
            return f"{statistics.median(what) * scale:.3g} ({min(what) * scale:.3g}-{max(what) * scale:.3g})"

        if row["errors"]:
            lines.append(f"| {row['name']} | {row['megabytes']:g} | {row['errors']['zonda']} | | | | |")
            continue
        rates = {n: [row["megabytes"] / s for s in row["seconds"][n]] for n in ("reference", "zonda")}
        pairs, cpu = ([a / b for a, b in zip(of["reference"], of["zonda"])] for of in (row["seconds"], row["cpu"]))
        lines.append(f"| {row['name']} | {row['megabytes']:g} | {show(rates['reference'])} | {show(rates['zonda'])} "
                     f"| {show(pairs)} | {show(cpu)} | {row['target']:g} x |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=".", metavar="REGEX")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [c for c in cases() if re.search(options.only, c.name)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return 0
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    folder = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")))
    runner, rows = Runner(folder, options.repeat, 0.1 if options.quick else 1), []
    try:
        for case in chosen:
            rows.append(runner.measure(case))
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{host['cpu']}, {host['cores']} cores, Linux {host['kernel']}, files in memory",
          f"commit {harness.commit()}, {started:%Y-%m-%d %H:%M} UTC, load {host['load_at_start']:.1f}", sep="\n")
    print(f"\n{table(rows)}")
    if not options.no_record and not options.quick:
        facts = {"cache": "memory", "repeat": options.repeat}
        print(f"\nraw figures: {harness.keep(host, started, '-tools', facts, rows)}")
    return 1 if any(row["errors"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
