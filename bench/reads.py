#!/usr/bin/env python3
"""Reading netCDF-4: every case on several libraries in turns, beside what the machine allows.

    reads.py                   everything but the largest files; a markdown table and a record
    reads.py --quick           a few cases
    reads.py --long            also the file of 18.4 GB
    reads.py --only REGEX      by the name of the case
    reads.py --list

Peers: the distribution's netCDF-C (`reference`), Zonda, the library of the newest netCDF4 wheel
(`wheel`, from the Python that ZONDA_PYTHON names), h5py from the same, and the Rust readers of
bench/peers where they have been built (`cargo build --release` there). A peer that is not there is
left out with a line; one that gives other values than the reference gets no time. See README.md.
"""

import argparse
import datetime
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import harness
from harness import BENCH, REFERENCE, ROOT, Failed

HDF5 = "-I/usr/include/hdf5/serial -L/usr/lib/{triplet}/hdf5/serial -lhdf5".split()
MIB = 1 << 20
SLOW = 10.0  # seconds: who takes longer is not run again after the first round


@dataclass
class Case:
    """A file and what is read of it."""

    name: str
    make: list[str]
    reads: list[tuple] | None = None  # (start, count, stride) of each
    op: str = "read"
    more: list[str] = field(default_factory=list)
    limits: tuple = ("codec",)
    cycles: int = 1
    quick: bool = False
    long: bool = False
    threads: int = 1
    files: int = 1
    target: str = ""


def slabs(shape, kind, n=1, size=None, seed=1):
    """Hyperslabs of a pattern: `layers` along the first dimension, `series` along it at points that
    move through the rest, `blocks` of `size` at random places, `whole`, `strided`, `columns`."""
    rank, ones = len(shape), [1] * len(shape)
    chance = random.Random(seed)
    if kind == "whole":
        return [([0] * rank, list(shape), ones)]
    if kind == "layers":
        return [([k % shape[0]] + [0] * (rank - 1), [1, *shape[1:]], ones) for k in range(n)]
    if kind == "series":
        width = shape[-1]
        points = [divmod(i, width) for i in range(n)]
        return [([0] * (rank - 2) + [y % shape[-2], x], [*shape[:-2], 1, 1], ones) for y, x in points]
    if kind == "far series":
        points = [(chance.randrange(shape[-2]), chance.randrange(shape[-1])) for _ in range(n)]
        return [([0] * (rank - 2) + [y, x], [*shape[:-2], 1, 1], ones) for y, x in points]
    if kind == "blocks":
        size = [min(a, b) for a, b in zip(size, shape)]
        return [([chance.randrange(s - c + 1) for s, c in zip(shape, size)], size, ones) for _ in range(n)]
    if kind == "strided":
        step = size or [2] * rank
        return [([0] * rank, [-(-s // k) for s, k in zip(shape, step)], step)]
    raise ValueError(kind)


def data(shape, chunk, kind="float", deflate=0, shuffle=0, filter="none", pattern="smooth", n_vars=1):
    joined = lambda numbers: ",".join(map(str, numbers))
    return ["--set", "data", "--shape", joined(shape), "--chunk", joined(chunk) if chunk else "none",
            "--type", kind, "--deflate", str(deflate), "--shuffle", str(shuffle), "--filter", filter,
            "--data", pattern, "--vars", str(n_vars)]


def cases():
    """All cases, file by file: those that follow each other with equal `make` share the file."""
    for n in (10, 100, 1000, 10000):
        make = ["--set", "many", "--vars", str(n), "--atts", "5"]
        yield Case(f"open, {n} variables", make, op="open", cycles=max(2, 1000 // n), limits=(),
                   quick=n == 1000, target="us 100")
        yield Case(f"open + every inquiry, {n} variables x 5 attributes", make, op="inquire",
                   cycles=max(1, 1000 // n), limits=(), quick=n == 1000, target=f"us {18 * n}")
    yield Case("open + every inquiry, 10 variables x 1000 attributes",
               ["--set", "many", "--vars", "10", "--atts", "1000"], op="inquire", cycles=3, limits=())
    yield Case("open + every inquiry, 1000 groups x 2 variables",
               ["--set", "many", "--vars", "2", "--atts", "2", "--groups", "1000"], op="inquire", cycles=2,
               limits=())
    for n in (100, 10_000, 1_000_000):
        make = ["--set", "chunks", "--n", str(n)]
        yield Case(f"open, {n} chunks", make, op="open", cycles=20, limits=(), quick=n == 10_000, target="us 100")
        one = [([n // 2], [1], [1])]
        yield Case(f"open + one value, {n} chunks", make, one, limits=())
    yield Case("strings, 10^6", ["--set", "strings", "--n", "1000000"], op="strings", limits=(), quick=True,
               target="ns/call 100")

    shape = (256, 512, 512)  # 256 MB of float
    for chunk in ((256, 128, 256), (64, 128, 256), (1, 128, 256), (256, 16, 16)):
        make = data(shape, chunk, deflate=1, shuffle=1)
        text = "x".join(map(str, chunk))
        for cache, label in ((0, "default"), (MIB, "1 MiB"), (256 * MIB, "256 MiB")):
            more = ["--cache", str(cache)] if cache else []
            n = 256 if cache == 0 else 64
            yield Case(f"layers, chunks {text}, {label} cache", make, slabs(shape, "layers", n), more=more,
                       quick=chunk == (64, 128, 256) and not cache, target="limit 1.2")
            yield Case(f"time series, chunks {text}, {label} cache", make, slabs(shape, "series", 512),
                       more=more, target="limit 1.2")
        yield Case(f"far time series, chunks {text}", make, slabs(shape, "far series", 64))

    shape, chunk = (64, 721, 1440), (4, 240, 360)  # 266 MB of float, 1.4 MB a chunk
    for kind in ("float", "short"):
        for level, shuffle in ((1, 1), (4, 1), (9, 1), (1, 0), (4, 0)):
            make = data(shape, chunk, kind, level, shuffle)
            label = f"deflate {level}{' shuffle' if shuffle else ''}, {kind}"
            yield Case(f"whole, {label}", make, slabs(shape, "whole"), quick=(level, shuffle) == (4, 1),
                       target="limit 1.1")
            if (level, shuffle) == (4, 1):
                yield Case(f"2-D blocks, {label}", make, slabs(shape, "blocks", 64, (1, 200, 300)))
                yield Case(f"time series, {label}", make, slabs(shape, "series", 64))
                yield Case(f"strided 2, {label}", make, slabs(shape, "strided"))
                yield Case(f"strided 1x7x7, {label}", make, slabs(shape, "strided", size=[1, 7, 7]))
        for filter in ("zstd", "blosc"):
            make = data(shape, chunk, kind, 0, int(filter == "zstd"), filter)
            limits = ("codec",) if filter == "zstd" else ("pread",)
            yield Case(f"whole, {filter}, {kind}", make, slabs(shape, "whole"), limits=limits)
            if filter == "zstd":
                yield Case(f"2-D blocks, {filter}, {kind}", make, slabs(shape, "blocks", 64, (1, 200, 300)))
                yield Case(f"time series, {filter}, {kind}", make, slabs(shape, "series", 64))
    make = data(shape, (1, 64, 64), "float", 4, 1)
    yield Case("whole, deflate 4 shuffle, chunks of 16 KiB", make, slabs(shape, "whole"), target="limit 1.1")
    make = data(shape, (1, 721, 1440), "float", 4, 1)
    yield Case("time series, map-shaped chunks", make, slabs(shape, "series", 64), target="limit 1.2")

    shape = (20, 2000, 2000)  # stacks of tiles, 160 MB of short
    for time in (20, 5, 1):
        for space in (500, 200):
            for level in (1, 4, 9):
                make = data(shape, (time, space, space), "short", level, 1)
                label = f"tiles {time}x{space}x{space}, deflate {level}"
                yield Case(f"{label}, in space", make, slabs(shape, "layers", 20))
                yield Case(f"{label}, in time", make, slabs(shape, "far series", 100))

    shape = (64, 640, 640)  # 105 MB
    yield Case("whole, contiguous", data(shape, None), slabs(shape, "whole"), limits=("pread", "memcpy"),
               quick=True)
    yield Case("whole, unfiltered chunks 1x640x640", data(shape, (1, 640, 640)), slabs(shape, "whole"),
               limits=("pread", "memcpy"), target="limit 1.3", quick=True)
    yield Case("2-D blocks, unfiltered chunks", data(shape, (1, 640, 640)),
               slabs(shape, "blocks", 256, (1, 100, 100)), limits=())
    yield Case("time series, unfiltered chunks", data(shape, (1, 640, 640)), slabs(shape, "series", 64), limits=())
    make = data((64, 128, 256), (8, 128, 256), deflate=1, shuffle=1)
    yield Case("one value, 20000 random", make, slabs((64, 128, 256), "blocks", 20000, (1, 1, 1)), limits=(),
               target="ns/call 400", quick=True)
    yield Case("16 values in a row, 20000 random", make, slabs((64, 128, 256), "blocks", 20000, (1, 1, 16)), limits=())

    shape = (64, 721, 1440)
    make = data(shape, (4, 240, 360), "float", 4, 1)
    many = slabs(shape, "blocks", 10000, (4, 40, 60))
    yield Case("10,000 random hyperslabs, 1 thread, 1 file", make, many, limits=())
    yield Case("10,000 random hyperslabs, 4 threads, 1 file", make, many, threads=4, limits=())
    yield Case("10,000 random hyperslabs, 4 threads, 4 files", make, many, threads=4, files=4, limits=())

    shape = (1581, 11, 160, 320)
    make = data(shape, (1, 11, 160, 320), deflate=1, shuffle=1, pattern="flat", n_vars=8)
    yield Case("18.4 GB, open", make, op="open", cycles=20, long=True, limits=(), target="us 100")
    yield Case("18.4 GB, 100 records", make, slabs(shape, "layers", 100), long=True)
    yield Case("18.4 GB, one time series", make, slabs(shape, "series", 1), long=True)


# ---- peers ------------------------------------------------------------------------------------------


def build(folder: Path) -> None:
    triplet = subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True).stdout.strip()
    harness.ENGINES.update({
        "make4": ("bench/engines/make4.c", ["-std=c99", "-O2", "-lnetcdf", "-lm"]),
        "read4": ("bench/engines/read4.c", ["-std=c99", "-O2", "-lnetcdf", "-lpthread"]),
        "codec": ("bench/engines/codec.c",
                  [*harness.LIMIT_FLAGS, *(f.format(triplet=triplet) for f in HDF5), "-ldeflate", "-lzstd", "-lpthread"]),
    })
    harness.build(folder)


def wheel(python: str, folder: Path) -> Path | None:
    """A folder in which the wheel's library has the name that the engines ask for."""
    find = "import netCDF4, pathlib; print(pathlib.Path(netCDF4.__file__).parent.parent)"
    out = subprocess.run([python, "-c", find], capture_output=True, text=True)
    libs = Path(out.stdout.strip()) / "netcdf4.libs" if out.returncode == 0 else Path("none")
    found = sorted(libs.glob("libnetcdf-*.so*"))
    if not found:
        return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for lib in libs.iterdir():
        (folder / lib.name).symlink_to(lib)
    (folder / "libnetcdf.so.19").symlink_to(found[0])
    return folder


def add_wheel(folder: Path) -> str:
    """Puts the wheel's library, if there is one, among NETCDF_LIBS; gives the Python that has it."""
    python = os.environ.get("ZONDA_PYTHON", sys.executable)
    if "wheel=" not in os.environ.get("NETCDF_LIBS", ""):
        if path := wheel(python, folder / "wheel"):
            os.environ["NETCDF_LIBS"] = ":".join(filter(None, [os.environ.get("NETCDF_LIBS"), f"wheel={path}"]))
    return python


def add_plugins(python: str) -> None:
    """The reference has Zstandard only as a plugin: the one of the hdf5plugin package."""
    if "HDF5_PLUGIN_PATH" not in os.environ:
        out = subprocess.run([python, "-c", "import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)"],
                             capture_output=True, text=True)
        if out.returncode == 0:
            os.environ["HDF5_PLUGIN_PATH"] = out.stdout.strip()


class Libraries:
    """The libraries that can read: name -> (command in front of the options, environment, operations)."""

    def __init__(self, libs: dict, folder: Path, patience: float):
        self.libs, self.patience = libs, patience
        every = {"read", "open", "inquire", "strings", "threads"}
        self.all = {}
        for name, lib in libs.items():
            # The reference's library crashes when two threads use it.
            can = every if name == "zonda" else every - {"threads"}
            self.all[name] = ([folder / "read4"], lib["env"], can)

    def run(self, name: str, options: list) -> dict:
        command, env, _ = self.all[name]
        try:
            out = subprocess.run([*map(str, command), *map(str, options)], env=env, capture_output=True, text=True,
                                 timeout=self.patience)
        except subprocess.TimeoutExpired:
            raise Failed(f"> {self.patience:g} s") from None
        if out.returncode != 0 or not out.stdout.strip():
            raise Failed(f"ended with {out.returncode}: {(out.stderr.strip().splitlines() or ['no message'])[-1]}")
        return json.loads(out.stdout.splitlines()[-1])


class Peers(Libraries):
    """Everything that can read."""

    def __init__(self, folder: Path, patience: float):
        python = add_wheel(folder)
        add_plugins(python)
        super().__init__(harness.libraries(folder), folder, patience)
        if subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode == 0:
            self.all["h5py"] = ([python, BENCH / "engines" / "h5py_read.py"], dict(os.environ), {"read", "open", "inquire"})
        rust = BENCH / "peers" / "target" / "release" / "peers"
        if rust.exists():
            for name in ("hidefix", "netcdf-reader", "rust-hdf5"):
                self.all[name] = ([rust, name], dict(os.environ), {"read", "open"})
        for name in ("zonda", "wheel", "h5py", "hidefix"):
            if name not in self.all:
                print(f"{name}: not there, left out", file=sys.stderr)


# ---- running ----------------------------------------------------------------------------------------


def measure(case: Case, peers: Libraries, bin_dir: Path, files: list[Path], repeat: int) -> dict:
    """All rounds of one case; round 0 warms up, and is all there is of who is slow."""
    options = ["--file", files[0], "--op", case.op, *case.more]
    if case.reads:
        listing = files[0].with_suffix(".list")
        listing.write_text("".join(" ".join(map(str, [*a, *c, *s])) + "\n" for a, c, s in case.reads))
        options += ["--list", listing]
    if case.op in ("open", "inquire"):
        options += ["--cycles", case.cycles]
    if case.threads > 1:
        options += ["--threads", case.threads]
        if case.files > 1:
            options += ["--files", ",".join(map(str, files[: case.files]))]
    need = "threads" if case.threads > 1 else case.op
    names = [n for n, (_, _, can) in peers.all.items() if need in can]
    row = {"name": case.name, "target": case.target, "seconds": {}, "first": {}, "peak_kib": {}, "errors": {}, "limit": {}}
    digests, slow = {}, set()
    for number in range(repeat + 1):
        for name in harness.in_turn(names, number):
            if name in row["errors"] or name in slow:
                continue
            try:
                line = peers.run(name, options)
            except Failed as why:
                row["errors"][name] = str(why)[:120]
                continue
            digests.setdefault(name, line["digest"])
            row["bytes"], row["calls"] = line["bytes"], line["calls"]
            if line["seconds"] > SLOW:
                slow.add(name)
            if number > 0 or name in slow:
                row["seconds"].setdefault(name, []).append(line["seconds"])
                for fact in ("first", "peak_kib"):
                    if fact in line["params"]:
                        row[fact].setdefault(name, []).append(line["params"][fact])
        for op in case.limits if number > 0 else ():
            (line,) = harness.engine(bin_dir, "codec", ["--file", files[0], "--list", listing, "--op", op],
                                     peers.libs[REFERENCE]["env"])
            row["limit"].setdefault(op, []).append(line["seconds"])
    right = digests.get(REFERENCE) or digests.get("zonda")
    for name, digest in digests.items():
        if digest is not None and digest != right:
            row["errors"][name] = "wrong digest"
            row["seconds"].pop(name, None)
    return row


def verdict(row: dict) -> str:
    """The target, and whether the median of Zonda meets it."""
    mine = row["seconds"].get("zonda")
    if not row["target"] or not mine:
        return row["target"]
    kind, bound = row["target"].split()
    per_call = {"us": 1e6, "ns/call": 1e9}.get(kind)
    if per_call:
        got = statistics.median(mine) / row["calls"] * per_call
    else:
        limit = next(iter(row["limit"].values()), None)
        got = statistics.median(a / b for a, b in zip(mine, limit)) if limit else float("inf")
    return f"<= {bound} {'x limit' if kind == 'limit' else kind}: {'met' if got <= float(bound) else 'missed'}"


def table(rows: list[dict], names: list[str]) -> str:
    head = ["case", "unit", *names, "limit", "reference / zonda", "zonda / limit", "peak MiB " + ", ".join(names[:3]), "target"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        per_call = row["calls"] > 1 and not row["limit"]
        scale, unit = (1e6 / row["calls"], "us a call") if per_call else (1e3, "ms")
        show = lambda s: f"{statistics.median(s) * scale:.3g} ({min(s) * scale:.3g}-{max(s) * scale:.3g})"
        cells = [row["name"], unit]
        cells += [row["errors"].get(n) or (show(row["seconds"][n]) if n in row["seconds"] else "") for n in names]
        limit = next(iter(row["limit"].values()), None)
        cells.append(show(limit) if limit else "")
        both = [row["seconds"].get(n) for n in (REFERENCE, "zonda")]
        ratio = lambda a, b: f"{statistics.median(x / y for x, y in zip(a, b)):.2f}" if a and b else ""
        cells += [ratio(*both), ratio(both[1], limit)]
        cells.append(", ".join(f"{max(row['peak_kib'][n]) / 1024:.0f}" if n in row["peak_kib"] else "-" for n in names[:3]))
        cells.append(verdict(row))
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default=".")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--long", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--peers", default=".", help="only the peers whose name matches")
    p.add_argument("--patience", type=float, default=900, metavar="SECONDS",
                   help="a peer that takes longer over a case is stopped, and the table says so (900)")
    p.add_argument("--no-record", action="store_true")
    options = p.parse_args()
    chosen = [c for c in cases() if re.search(options.only, c.name) and (options.long or not c.long)
              and (c.quick or not options.quick)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return 0
    bin_dir = ROOT / "out" / "bench-bin"
    build(bin_dir)
    scratch = Path(os.environ.get("ZONDA_SCRATCH", ROOT / "out" / "bench")) / f"reads-{os.getpid()}"
    scratch.mkdir(parents=True, exist_ok=True)
    peers = Peers(bin_dir, options.patience)
    peers.all = {n: p for n, p in peers.all.items() if n == REFERENCE or re.search(options.peers, n)}
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    print(harness.heading(host, "", peers.libs, started, "warm files"), "\n", file=sys.stderr)
    rows, made = [], None
    files = [scratch / f"{n}.nc" for n in range(4)]
    try:
        for case in chosen:
            if case.make != made:
                made = case.make
                try:
                    harness.engine(bin_dir, "make4", ["--file", files[0], *made], peers.libs[REFERENCE]["env"])
                except Failed as why:
                    print(f"{case.name}: the reference cannot write it here: {why}", file=sys.stderr)
                    made = "none"
                    continue
            for other in files[1 : case.files]:
                shutil.copyfile(files[0], other)
            rows.append(measure(case, peers, bin_dir, files, options.repeat))
            show = {n: f"{statistics.median(s) * 1e3:.3g}" for n, s in rows[-1]["seconds"].items()}
            print(f"{case.name}: {show} ms, {verdict(rows[-1])}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    names = [n for n in peers.all if any(n in r["seconds"] or n in r["errors"] for r in rows)]
    print(table(rows, names))
    if not options.no_record and not options.quick:
        facts = {"cache": "warm", "repeat": options.repeat, "libraries": harness.identity(peers.libs)}
        print(f"\nraw figures: {harness.keep(host, started, '-reads', facts, rows)}")
    for row in rows:
        for name, why in row["errors"].items():
            print(f"{row['name']}: {name}: {why}", file=sys.stderr)
    return 1 if any("zonda" in row["errors"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
