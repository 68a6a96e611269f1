#!/usr/bin/env python3
"""Writing netCDF-4: every case on several libraries in turns, beside what the machine allows.

    writes.py                   everything; markdown tables and a record
    writes.py --quick           a few cases
    writes.py --only REGEX      by the name of the case
    writes.py --peers REGEX     the reference, and the libraries whose name matches
    writes.py --list

Peers: the distribution's netCDF-C (`reference`), Zonda, the library of the newest netCDF4 wheel
(`wheel`, from the Python that ZONDA_PYTHON names) and those of NETCDF_LIBS. The reference reads what
each wrote: other values or settings than its own, and there is no time. See README.md.
"""

import argparse
import datetime
import hashlib
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

import harness
from harness import REFERENCE, ROOT, Failed
from reads import add_plugins, add_wheel

MOST_SECONDS = 900
FLOAT, SHORT = (32, 721, 1440), (64, 721, 1440)  # 133 MB each
CHUNKS = {"64 KiB": (1, 103, 160), "1 MiB": (4, 103, 720), "4 MiB": (4, 721, 360)}  # of float
CODECS = {
    "uncompressed": [],
    "deflate 1 shuffle": ["--deflate", "1", "--shuffle", "1"],
    "deflate 4 shuffle": ["--deflate", "4", "--shuffle", "1"],
    "deflate 9 shuffle": ["--deflate", "9", "--shuffle", "1"],
    "zstd 3 shuffle": ["--zstd", "3", "--shuffle", "1"],
    "3 digits, deflate 1 shuffle": ["--quantize", "3", "--deflate", "1", "--shuffle", "1"],
}


@dataclass
class Case:
    """One way of writing a file."""

    name: str
    engine: str
    args: list[str]
    unit: str = "ms"  # of the whole; "us", "ns": of a call
    target: list[str] = field(default_factory=list)
    limits: dict[str, list] = field(default_factory=dict)  # name -> program and its arguments
    raw: str = ""  # what the limits read; equal for cases with the same chunks
    settings: int = 1  # whether chunks and filters are to be the reference's
    warm_mb: int = 0
    shape: tuple = ()  # of what the reference reads back for time
    quick: bool = False


# ---- cases ------------------------------------------------------------------------------------------


def array(kind: str, size: str, codec: str, puts="whole", memory="", target=(), quick=False) -> Case:
    """133 MB of float or short; `size` is that of the chunks."""
    shape, times = (SHORT, 2) if kind == "short" else (FLOAT, 1)
    joined = lambda numbers: ",".join(map(str, numbers))
    chunk = "none"
    if size in CHUNKS:
        first, *rest = CHUNKS[size]
        chunk = joined((first * times, *rest))
    args = ["--op", "data", "--shape", joined(shape), "--chunk", chunk, "--type", kind, "--puts", puts,
            "--unlimited", str(int(puts != "whole" and chunk != "none")), *CODECS[codec]]
    name = f"{puts}, {codec}, {kind}{f' from {memory}' if memory else ''}, "
    name += f"chunks of {size}" if chunk != "none" else "contiguous"
    filters = CODECS[codec]
    quantized = "--quantize" in filters
    if quantized:
        filters = filters[2:]
    if filters:
        other = "libzstd" if "--zstd" in filters else "libdeflate"
        limits = {"codec": ["encode_limit", *filters], other: ["encode", "--op", "codec", *filters]}
    else:
        limits = {"write": ["encode", "--op", "convert" if memory else "write"]}
    if memory:
        args += ["--memory", memory]
    return Case(name, "write4", args, target=list(target), limits=limits, quick=quick, warm_mb=140,
                raw=f"{kind} {chunk} {quantized}", shape=shape if filters and puts == "whole" else ())


def record_chunks(kind, codec):
    """134 MB, each record a chunk and a put: what libraries do by default with an unlimited dimension."""
    shape, chunk = ("32,1024,1024", "1,1024,1024") if kind == "float" else ("64,1024,1024", "1,1024,1024")
    args = ["--op", "data", "--shape", shape, "--chunk", chunk, "--type", kind, "--puts", "records", "--unlimited", "1", *CODECS[codec]]
    return Case(f"records, {codec}, {kind}, a chunk each", "write4", args, warm_mb=140, target=["reference 8"] if "deflate" in codec else [])


def cases():
    """All cases; those that follow each other with equal `raw` share it."""
    quick = {("float", "1 MiB", "deflate 1 shuffle"), ("short", "1 MiB", "deflate 9 shuffle"),
             ("float", "4 MiB", "uncompressed")}
    for kind in ("float", "short"):
        for size in CHUNKS:
            times = "reference 2.5" if size == "64 KiB" else "reference 8"
            for codec in CODECS:
                quantized = codec.startswith("3 digits")
                if quantized and kind == "short":
                    continue
                target = ["limit 1.3"] if codec == "uncompressed" else [] if quantized else ["limit 1.1"]
                if codec.startswith("deflate"):
                    target.append(times)
                yield array(kind, size, codec, target=target, quick=(kind, size, codec) in quick)
            for codec in ("uncompressed", "deflate 1 shuffle"):
                if kind == "short" and size != "1 MiB":
                    continue
                plain = codec == "uncompressed"
                yield array(kind, size, codec, memory="double", target=["limit 1.3" if plain else "limit 1.1"])
                for puts in ("records", "slices", "random", "bands"):
                    target = [] if plain else ["limit 1.1" if puts == "records" else "limit 1.2"]
                    yield array(kind, size, codec, puts, target=target,
                                quick=puts == "records" and not plain and size == "4 MiB")
        for codec in ("deflate 1 shuffle", "deflate 9 shuffle", "zstd 3 shuffle"):
            yield record_chunks(kind, codec)
        yield array(kind, "", "uncompressed", target=["limit 1.1"], quick=kind == "float")
        yield array(kind, "", "uncompressed", memory="double", target=["limit 1.1"])
        yield array(kind, "", "uncompressed", "slices")
    yield array("short", "1 MiB", "uncompressed", "records", "double", target=["limit 1.3"])
    for language, engine in (("C", "write4"), ("Fortran", "table")):
        for chunk in (0, 1, 10, 100, 1000):
            for slice in (1, 10, 100, 1000):
                args = ["--op", "table"] if engine == "write4" else []
                args += ["--n", "300000", "--chunk", str(chunk), "--slice", str(slice)]
                target = []
                if slice == 1 and chunk >= 10:
                    target = [f"over 150 {table_name(language, chunk, 1000)}"]
                yield Case(table_name(language, chunk, slice), engine, args, target=target, settings=int(chunk > 0),
                           quick=chunk == 100 and slice in (1, 1000))

    shape, chunk = "100,100,100", "10,50,50"
    one = ["--op", "one", "--shape", shape, "--chunk", chunk]
    for puts, n in (("sequence", "300000"), ("random", "100000")):
        yield Case(f"put_var1, {puts}, 8 MB, chunks 10x50x50", "write4", [*one, "--puts", puts, "--n", n], "ns",
                   ["ns/call 150"], quick=True)
    yield Case("put_var1, random, 8 MB, chunks 10x50x50, deflate 1 shuffle", "write4",
               [*one, "--puts", "random", "--n", "100000", "--deflate", "1", "--shuffle", "1"], "ns")
    yield Case("put_var1, random, 134 MB, chunks 8x128x128", "write4",
               ["--op", "one", "--shape", "64,512,512", "--chunk", "8,128,128", "--puts", "random", "--n", "10000"],
               "ns", warm_mb=140)

    def create(cycles):
        return {"create": ["limits", "--op", "create", "--bytes", "{size}", "--cycles", str(cycles)]}

    for n_vars, n_atts, target in ((1, 2, ["us/call 40"]), (10, 2, ["us/call 40"]), (1000, 5, [])):
        cycles = 2000 // n_vars or 2
        yield Case(f"create + define {n_vars} variables x {n_atts} attributes + close", "cycle",
                   ["--set", "create", "--format", "4", "--vars", str(n_vars), "--atts", str(n_atts),
                    "--cycles", str(cycles)], "us", target, create(cycles), quick=n_vars == 10)
    for n_vars, n_atts, n_groups in ((10000, 5, 0), (100, 1000, 0), (1, 60000, 0), (2, 2, 1000), (1, 0, 10000)):
        groups = f"{n_groups} groups x " if n_groups else ""
        yield Case(f"definitions, {groups}{n_vars} variables x {n_atts} attributes", "write4",
                   ["--op", "define", "--vars", str(n_vars), "--atts", str(n_atts), "--groups", str(n_groups)],
                   limits=create(1), quick=n_vars == 10000)
    yield Case("strings, 10^6", "write4", ["--op", "strings", "--n", "1000000"], "ns", ["ns/call 100"], quick=True)


def table_name(language: str, chunk: int, slice: int) -> str:
    return f"two variables, {language}, chunk {chunk or 'default'}, slice {slice}"


# ---- what is run ------------------------------------------------------------------------------------


def build(folder: Path) -> str:
    """Compiles what is run; gives gcc's version."""
    harness.ENGINES.update({
        "write4": ("bench/engines/write4.c", ["-std=c99", "-O2", "-lnetcdf", "-lm"]),
        "read4": ("bench/engines/read4.c", ["-std=c99", "-O2", "-lnetcdf", "-lpthread"]),
        "chunks": ("bench/engines/chunks.c", ["-std=c99", "-O2", "-lnetcdf"]),
        "encode": ("bench/engines/encode.c", [*harness.LIMIT_FLAGS, "-ldeflate", "-lzstd", "-lpthread"]),
    })
    if shutil.which("gfortran") and shutil.which("nf-config"):
        flags = subprocess.run(["nf-config", "--fflags"], capture_output=True, text=True).stdout.split()
        harness.ENGINES["table"] = ("bench/engines/table.f90", ["-O2", *flags, "-lnetcdff", "-lnetcdf"])
    gcc = harness.build(folder)
    if shutil.which("cargo"):
        subprocess.run(["cargo", "build", "--release", "--quiet", "--package", "zonda-chunk",
                        "--example", "encode_limit"], cwd=ROOT)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "encode_limit"
    if built.exists():
        shutil.copy2(built, folder / "encode_limit")
    return gcc


class Runner:
    def __init__(self, bin_dir: Path, libs: dict, folder: Path, repeat: int):
        self.bin_dir, self.libs, self.repeat = bin_dir, libs, repeat
        self.file, self.raw, self.list = folder / "bench.nc", folder / "raw", folder / "whole.list"
        self.raw_is, self.raw_facts = "", {}

    def engine(self, name: str, args: list, lib: str = REFERENCE) -> dict:
        (line,) = harness.engine(self.bin_dir, name, [str(a) for a in args], self.libs[lib]["env"], MOST_SECONDS)
        return line

    def level_ground(self, mb: int) -> None:
        """Pages of the file system were freed a moment ago, for each run alike."""
        self.file.unlink(missing_ok=True)
        block = bytes(1 << 20)
        with self.file.open("wb", buffering=0) as f:
            for _ in range(mb):
                f.write(block)
        self.file.unlink()

    def make_raw(self, case: Case) -> None:
        """The values chunk by chunk, as the reference wrote them."""
        if not case.raw or case.raw == self.raw_is:
            return
        self.engine(case.engine, [*case.args, "--file", self.file])
        line = self.engine("chunks", ["--file", self.file, "--raw", self.raw])
        self.raw_is, self.raw_facts = case.raw, line["params"]

    def limit(self, case: Case, what: list, size: int) -> dict:
        program, *args = what
        args = [str(size) if a == "{size}" else a for a in args]
        if case.raw:
            args += ["--raw", self.raw, "--chunk-bytes", self.raw_facts["chunk_bytes"],
                     "--elem", self.raw_facts["elem"]]
        self.level_ground(case.warm_mb)
        line = self.engine(program, [*args, "--file", self.file])
        self.file.unlink(missing_ok=True)
        return line

    def meaning(self, case: Case, known: dict) -> str:
        """The digest by the reference; a file with the bytes of one that was read is that one."""
        with self.file.open("rb") as f:
            same = hashlib.file_digest(f, "blake2b").hexdigest()
        if same not in known:
            known[same] = self.engine("digest", ["--file", self.file, "--settings", case.settings])["digest"]
        return known[same]

    def once(self, case: Case, name: str, row: dict, digests: dict, known: dict, counts: bool) -> None:
        """One library's turn."""
        self.level_ground(case.warm_mb)
        line = self.engine(case.engine, [*case.args, "--file", self.file], name)
        row["bytes"], row["calls"] = line["bytes"], max(line["calls"], 1)
        row["size"][name] = self.file.stat().st_size
        digests.setdefault(name, set()).add(self.meaning(case, known))
        if counts:
            row["seconds"].setdefault(name, []).append(line["seconds"])
            row["parts"].setdefault(name, []).append(line["params"])
        if case.shape:
            read = self.engine("read4", ["--file", self.file, "--op", "read", "--list", self.list])
            if counts:
                row["read_back"].setdefault(name, []).append(read["seconds"])

    def measure(self, case: Case) -> dict:
        """All rounds of one case; round 0 warms up."""
        row = {"name": case.name, "unit": case.unit, "target": case.target, "bytes": 0, "calls": 1}
        row |= {k: {} for k in ("seconds", "parts", "read_back", "size", "errors", "limit", "stored")}
        self.make_raw(case)
        if case.shape:
            numbers = [0] * len(case.shape) + list(case.shape) + [1] * len(case.shape)
            self.list.write_text(" ".join(map(str, numbers)) + "\n")
        limits = {n: w for n, w in case.limits.items() if (self.bin_dir / w[0]).exists()}
        digests, known = {}, {}
        for number in range(self.repeat + 1):
            # The wheel's library lacks a function that netCDF-Fortran calls.
            names = [n for n in self.libs if (case.engine, n) != ("table", "wheel")]
            for name in harness.in_turn(names, number):
                if name in row["errors"]:
                    continue
                try:
                    self.once(case, name, row, digests, known, number > 0)
                except Failed as why:
                    row["errors"][name] = str(why)[:150]
            for name, what in limits.items():
                if name in row["errors"]:
                    continue
                try:
                    line = self.limit(case, what, row["size"].get(REFERENCE, 0))
                except Failed as why:
                    row["errors"][name] = str(why)[:150]
                    continue
                if number > 0:
                    row["limit"].setdefault(name, []).append(line["seconds"])
                row["stored"][name] = line["params"].get("stored")
        self.file.unlink(missing_ok=True)
        right = digests.get(REFERENCE, set())
        for name in digests:
            if len(right) != 1 or digests[name] != right:
                row["errors"].setdefault(name, "wrong digest")
        for name in row["errors"]:
            for kind in ("seconds", "read_back", "limit"):
                row[kind].pop(name, None)
        return row


# ---- output -----------------------------------------------------------------------------------------


def ratios(a: list | None, b: list | None) -> list[float]:
    """Round by round: both meet the same noise."""
    return [x / y for x, y in zip(a or [], b or []) if y]


def with_spread(values: list, scale: float = 1) -> str:
    if not values:
        return ""
    return f"{statistics.median(values) * scale:.3g} ({min(values) * scale:.3g}-{max(values) * scale:.3g})"


def first_limit(row: dict) -> list:
    return next(iter(row["limit"].values()), [])


def verdict(row: dict, rows: dict) -> str:
    """The targets, and whether the median of Zonda meets them."""
    mine, said = row["seconds"].get("zonda"), []
    for target in row["target"]:
        kind, bound, *other = target.split(maxsplit=2)
        got, most = None, float(bound)
        text = f"<= {bound} {kind}"
        if kind == "limit":
            text = f"<= {bound} x limit"
            got = ratios(mine, first_limit(row))
        elif kind == "reference":
            text, most = f">= {bound} x the reference", -most
            got = [-x for x in ratios(row["seconds"].get(REFERENCE), mine)]
        elif kind == "over":
            text = f"<= {bound} ns a put over slices of 1000"
            sliced = rows.get(other[0], {"seconds": {}})["seconds"].get("zonda")
            got = [(a - b) / row["calls"] * 1e9 for a, b in zip(mine or [], sliced or [])]
        else:
            got = [s / row["calls"] * {"us/call": 1e6, "ns/call": 1e9}[kind] for s in mine or []]
        if got:
            text += f": {'met' if statistics.median(got) <= most else 'missed'}"
        said.append(text)
    return "; ".join(said)


def line_of(cells: list) -> str:
    return "| " + " | ".join(cells) + " |"


def table(rows: list[dict], names: list[str]) -> str:
    by_name = {row["name"]: row for row in rows}
    head = ["case", "unit", *names, "limit", "libdeflate, libzstd", "reference / zonda", "zonda / limit",
            "reference / limit", "MB, zonda / reference", "peak MiB " + ", ".join(names), "target"]
    lines = [line_of(head), line_of(["---"] * len(head))]
    for row in rows:
        scale = {"ms": 1e3, "us": 1e6 / row["calls"], "ns": 1e9 / row["calls"]}[row["unit"]]
        seconds, limit = row["seconds"], first_limit(row)
        cells = [row["name"], row["unit"]]
        cells += [row["errors"].get(n) or with_spread(seconds.get(n), scale) for n in names]
        beside = list(row["limit"].values())[1:]
        cells += [with_spread(limit, scale), with_spread(beside[0], scale) if beside else ""]
        cells.append(with_spread(ratios(seconds.get(REFERENCE), seconds.get("zonda"))))
        cells.append(with_spread(ratios(seconds.get("zonda"), limit)))
        cells.append(with_spread(ratios(seconds.get(REFERENCE), limit)))
        its, mine = row["size"].get(REFERENCE), row["size"].get("zonda")
        text = f"{its / 1e6:.3g}" if its else ""
        cells.append(f"{text}, {mine / its:.2f}" if its and mine else text)
        peaks = [[p.get("peak_kib") for p in row["parts"].get(n, [])] for n in names]
        cells.append(", ".join(f"{max(p) / 1024:.0f}" if p and None not in p else "-" for p in peaks))
        cells.append(verdict(row, by_name))
        lines.append(line_of(cells))
    return "\n".join(lines)


def read_back_table(rows: list[dict], names: list[str]) -> str:
    """How long the reference takes to read what each has written, and how large that is."""
    head = ["the reference reads, ms", *(f"{n}'s" for n in names), *(f"{n}'s / its own" for n in names[1:]),
            *(f"MB {n}" for n in names)]
    lines = [line_of(head), line_of(["---"] * len(head))]
    for row in rows:
        if not row["read_back"]:
            continue
        read, own = row["read_back"], row["read_back"].get(REFERENCE)
        cells = [row["name"], *(with_spread(read.get(n), 1e3) for n in names)]
        cells += [with_spread(ratios(read.get(n), own)) for n in names[1:]]
        cells += [f"{row['size'][n] / 1e6:.4g}" if n in row["size"] else "" for n in names]
        lines.append(line_of(cells))
    return "\n".join(lines) if len(lines) > 2 else ""


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="environment: ZONDA_LIB (dist/lib), "
                                "ZONDA_PYTHON, NETCDF_LIBS, BENCH_MEMORY (/dev/shm). Exit status: 0 done, 1 Zonda or "
                                "a limit failed or gave wrong values (times never decide), 2 wrong usage.")
    p.add_argument("--only", default=".", metavar="REGEX", help="cases whose name matches")
    p.add_argument("--quick", action="store_true", help="a few cases; not recorded")
    p.add_argument("--list", action="store_true", help="the names of the cases")
    p.add_argument("--repeat", type=int, default=3, help="rounds that count")
    p.add_argument("--peers", default=".", metavar="REGEX", help="only the peers whose name matches")
    p.add_argument("--no-record", action="store_true")
    return p.parse_args()


def main() -> int:
    options = arguments()
    chosen = [c for c in cases() if re.search(options.only, c.name) and (c.quick or not options.quick)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return 0
    bin_dir = ROOT / "out" / "bench-bin"
    gcc = build(bin_dir)
    add_plugins(add_wheel(bin_dir))
    libs = {n: lib for n, lib in harness.libraries(bin_dir).items() if n == REFERENCE or re.search(options.peers, n)}
    for missing, what in (("encode_limit", "the limit of the codec"), ("table", "the table in Fortran")):
        if not (bin_dir / missing).exists():
            print(f"{what} could not be built, left out", file=sys.stderr)
    chosen = [c for c in chosen if (bin_dir / c.engine).exists()]
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    heading = harness.heading(host, gcc, libs, started, "files in memory")
    print(heading, "\n", file=sys.stderr)
    folder = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")))
    runner, rows = Runner(bin_dir, libs, folder, options.repeat), []
    try:
        for case in chosen:
            try:
                rows.append(runner.measure(case))
            except Failed as why:
                print(f"{case.name}: the reference cannot write it here: {why}", file=sys.stderr)
                continue
            show = {n: f"{statistics.median(s) * 1e3:.3g}" for n, s in (rows[-1]["seconds"] | rows[-1]["limit"]).items()}
            said = verdict(rows[-1], {row["name"]: row for row in rows})
            show |= rows[-1]["errors"]
            print(f"{case.name}: {show} ms {said}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    names = list(libs)
    print(heading, table(rows, names), read_back_table(rows, names), sep="\n\n")
    if not options.no_record and not options.quick:
        facts = {"gcc": gcc, "cache": "memory", "repeat": options.repeat, "libraries": harness.identity(libs)}
        print(f"\nraw figures: {harness.keep(host, started, '-writes', facts, rows)}")
    for row in rows:
        for name, why in row["errors"].items():
            print(f"{row['name']}: {name}: {why}", file=sys.stderr)
    return 1 if any(row["errors"].keys() - (libs.keys() - {"zonda"}) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
