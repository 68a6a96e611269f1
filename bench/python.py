#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Python libraries on the same arrays in turns, each run in a process of its own (make bench-python).

    python.py                  everything, hours; a markdown table and a record
    python.py --quick          a tenth of the data, one round, some cases; not recorded
    python.py --only REGEX     by the name of the case
    python.py --peers REGEX    only these, and the reference
    python.py --list

Peers: xarray with the engines netcdf4 (the reference), h5netcdf, hidefix, zarr and zonda, and with netcdf4 on the
wheel's library replaced by `zonda run` (`preload-engine`); without xarray netCDF4 (and `preload`), h5py,
`zonda.netcdf4` and `zonda`. One that is not there is left out with a line, one whose values are other than the
reference's gets no time. Limits run in the same rounds: xarray on what is in memory already (`xarray-alone`:
what no engine can avoid), the chunks fetched and inflated with no library between (`codec`), the file's
bytes read, and copied in memory. ZONDA_PYTHON has the packages, ZONDA_DIST is what `make build` made.
ZONDA_PYTHON_BEFORE is a Python with an earlier
package (`before-engine`). See README.md.
"""

import argparse
import datetime
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import harness
import reads
from harness import BENCH, ROOT, Failed

REFERENCE, MINE, ALONE, BEFORE = "netcdf4-engine", "zonda-engine", "xarray-alone", "before-engine"
ENGINES = (REFERENCE, "preload-engine", "h5netcdf-engine", "hidefix", "zarr", BEFORE, MINE)
LIBRARIES = ("netcdf4", "preload", "h5py", "zonda.netcdf4", "zonda")
# Who a peer of ours is measured against.
RIVAL = {MINE: REFERENCE, "preload-engine": REFERENCE, "zonda": "netcdf4", "zonda.netcdf4": "netcdf4", "preload": "netcdf4"}
SLOW = 30.0  # seconds: who takes longer is not run again after the first round
MIB = 1 << 20
MEMORY = 2.5  # arrays' worth of memory that a process has at hand: values, and what is made of them


@dataclass(frozen=True)
class Layout:
    """How the array is stored."""

    name: str
    chunks: tuple[int, ...]  # empty: contiguous
    filter: str
    packed: bool = False
    zarr: str = ""  # the filter of the store that is compared with it, where there is one
    format: str = "NETCDF4"

    def like(self) -> bool:
        """Whether Zarr's data are compressed alike, so that times may be compared."""
        return self.zarr == self.filter


MAP, BLOCK = (1, 721, 1440), (24, 90, 180)
LAYOUTS = (
    Layout("maps, deflate 4", MAP, "deflate", zarr="default"),
    Layout("blocks, deflate 4", BLOCK, "deflate", zarr="default"),
    Layout("maps, zstd 3", MAP, "zstd", zarr="zstd"),
    Layout("blocks, zstd 3", BLOCK, "zstd", zarr="zstd"),
    Layout("blocks, blosc lz4", BLOCK, "blosc", zarr="blosc"),
    Layout("maps, packed short, deflate 4", MAP, "deflate", packed=True),
    Layout("contiguous", (), "none", zarr="none"),
    Layout("classic", (), "none", format="NETCDF3_64BIT_OFFSET"),
)
PLAIN = next(layout for layout in LAYOUTS if layout.name == "contiguous")


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    layout: Layout | None = None  # of what is read or written
    dask: bool = False
    more: tuple = ()  # further parts of the job, as pairs
    peers: tuple[str, ...] = ENGINES
    quick: bool = False

    def limited(self) -> bool:
        return self.op != "write"


def cases(files: int):
    """All cases; those on one layout follow each other and share its files."""
    yield Case("open, 10 variables", "open", more=(("variables", 10), ("cycles", 20)), peers=ENGINES + LIBRARIES, quick=True)
    yield Case("open, 1,000 variables", "open", more=(("variables", 1000), ("cycles", 1)), peers=ENGINES + LIBRARIES, quick=True)
    for parallel in (False, True):
        label = f"open_mfdataset, {files:,} files{', parallel' if parallel else ''}"
        yield Case(label, "open_many", dask=True, more=(("parallel", parallel),), quick=True)
    yield Case(f"open_mfdataset, {files:,} files, and mean of all", "open_many", dask=True,
               more=(("parallel", True), ("mean", True)), quick=True)  # fmt: skip
    for layout in LAYOUTS:
        few = layout.name in ("blocks, deflate 4", "maps, packed short, deflate 4", "blocks, zstd 3")
        for op, label in (("mean_time", "mean over time"), ("mean_space", "mean over space")):
            yield Case(f"{label}, numpy: {layout.name}", op, layout, peers=ENGINES + LIBRARIES, quick=few and op == "mean_time")
            yield Case(f"{label}, dask: {layout.name}", op, layout, dask=True, quick=few and op == "mean_space")
        yield Case(f"one point's series: {layout.name}", "series", layout, more=(("n", 1),), peers=ENGINES + LIBRARIES, quick=few)
        yield Case(f"eight points' series: {layout.name}", "series", layout, more=(("n", 8),), peers=ENGINES + LIBRARIES)
    for layout in LAYOUTS[1:2] + LAYOUTS[3:4] + (Layout("blocks, no filter", BLOCK, "none", zarr="none"),):
        writers = tuple(p for p in ENGINES if p != "hidefix")
        yield Case(f"write, numpy: {layout.name}", "write", layout, peers=writers + LIBRARIES, quick=True)
        yield Case(f"write, dask: {layout.name}", "write", layout, dask=True, peers=writers, quick=layout.filter == "deflate")


class Bench:
    """Files, peers and measurements of a run."""

    def __init__(self, options, scratch: Path):
        self.options, self.scratch = options, scratch
        self.maps, self.n_files = (24, 100) if options.quick else (240, 1000)
        self.shape = (self.maps, 721, 1440)
        self.bytes = 4 * math.prod(self.shape)  # of an array of floats
        self.python = os.environ.get("ZONDA_PYTHON", str(ROOT / "out" / "venv" / "bin" / "python"))
        self.before = os.environ.get("ZONDA_PYTHON_BEFORE", "")
        self.dist = Path(os.environ.get("ZONDA_DIST", ROOT / "dist"))
        self.bin = ROOT / "out" / "bench-bin"
        self.cores = len(os.sched_getaffinity(0))
        self.env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH")}
        # The checkout, if its module was built there, or what is installed.
        if any((ROOT / "python" / "zonda").glob("_zonda*.so")):
            self.env["PYTHONPATH"] = str(ROOT / "python")
        self.env.update(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS=str(self.cores))
        self.versions: dict[str, str] = {}
        self.small: dict[str, str] = {}
        self.made: dict[str, dict] = {}
        self.peers = self.there()

    # ---- peers ------------------------------------------------------------------------------------------

    def there(self) -> set[str]:
        """The peers that this machine has."""
        needs = {"h5netcdf-engine": "h5netcdf", "hidefix": "hidefix", "zarr": "zarr", "h5py": "h5py, hdf5plugin",
                 MINE: "zonda.xarray_engine", "zonda": "zonda._zonda", "zonda.netcdf4": "zonda.netcdf4"}  # fmt: skip
        found = set()
        for peer in ENGINES + LIBRARIES:
            if peer != REFERENCE and not re.search(self.options.peers, peer):
                continue
            why = ""
            if peer == BEFORE and not self.before:
                why = "ZONDA_PYTHON_BEFORE does not say where"
            elif peer.startswith("preload") and not (self.dist / "lib" / "libzonda-preload.so").exists():
                why = f"no libzonda-preload.so in {self.dist}/lib"
            elif peer in needs:
                out = subprocess.run([self.python, "-c", f"import {needs[peer]}"], env=self.env, capture_output=True, text=True)
                why = "" if out.returncode == 0 else (out.stderr.strip().splitlines() or ["cannot be imported"])[-1]
            if why:
                print(f"{peer}: left out: {why}", file=sys.stderr)
            else:
                found.add(peer)
        return found

    def call(self, command: list, patience: float | None = None, env: dict | None = None) -> dict:
        try:
            out = subprocess.run([str(w) for w in command], env=env or self.env, capture_output=True, text=True, timeout=patience)
        except subprocess.TimeoutExpired:
            raise Failed(f"> {patience:g} s") from None
        if out.returncode != 0 or not out.stdout.strip():
            lines = out.stderr.strip().splitlines() or ["no message"]
            raise Failed(f"ended with {out.returncode}: {lines[-1][:200]}")
        return json.loads(out.stdout.splitlines()[-1])

    def files(self, what: str, job: dict) -> dict:
        return self.call([self.python, BENCH / "engines" / "python_files.py", what, json.dumps(job)])

    def peer(self, name: str, job: dict) -> dict:
        prefix = [self.dist / "bin" / "zonda", "run", "--"] if name.startswith("preload") else []
        # An earlier package is on its own: what the checkout has must not come before it.
        env = {k: v for k, v in self.env.items() if k != "PYTHONPATH" or name != BEFORE}
        job = {**job, "peer": MINE if name == BEFORE else name}
        command = [*prefix, self.before if name == BEFORE else self.python, BENCH / "engines" / "python_peer.py", json.dumps(job)]
        line = self.call(command, self.options.patience, env)
        self.versions[name] = line["version"]
        return line

    # ---- files ------------------------------------------------------------------------------------------

    def data(self, case: Case) -> dict:
        """What the case reads: {"nc": [paths], "zarr": [paths], "bytes": of the netCDF files}."""
        more = dict(case.more)
        key = "many" if case.op == "open_many" else f"wide{more['variables']}" if case.op == "open" else str(case.layout)
        if case.op == "write":
            key = "plain"
        if key in self.made:
            return self.made[key]
        if case.op not in ("open", "open_many"):
            self.forget()
        zarr = "zarr" in self.peers
        if case.op == "open_many":
            folder = self.scratch / "many"
            folder.mkdir()
            job = {"folder": str(folder), "files": self.n_files, "shape": [1, 73, 144], "zarr": zarr}
            line = self.files("many", job)
            found = {"nc": line["paths"], "zarr": line["stores"], "bytes": line["bytes"]}
        elif case.op == "open":
            path = self.scratch / f"{key}.nc"
            store = str(path.with_suffix(".zarr")) if zarr else ""
            line = self.files("wide", {"path": str(path), "variables": more["variables"], "zarr": store})
            found = {"nc": [str(path)], "zarr": [store] if zarr else [], "bytes": line["bytes"]}
        else:
            found = self.array(case.layout if case.op != "write" else PLAIN, zarr and case.op != "write")
        self.made[key] = found
        return found

    def warmup(self) -> None:
        """A small array on which each process does its work once before the clock starts."""
        path = self.scratch / "small.nc"
        job = {"path": str(path), "shape": [4, 19, 36], "chunks": [1, 19, 36], "filter": "deflate"}
        self.files("make", job)
        self.small["nc"] = str(path)
        if "zarr" in self.peers:
            self.small["zarr"] = str(path.with_suffix(".zarr"))
            self.files("zarr", {**job, "path": self.small["zarr"], "source": str(path), "filter": "default"})

    def array(self, layout: Layout, zarr: bool) -> dict:
        path = self.scratch / "array.nc"
        chunks = [min(c, s) for c, s in zip(layout.chunks, self.shape)]
        line = self.files("make", {"path": str(path), "shape": self.shape, "chunks": chunks, "filter": layout.filter,
                                   "packed": layout.packed, "format": layout.format})  # fmt: skip
        found = {"nc": [str(path)], "zarr": [], "bytes": line["bytes"]}
        if zarr and layout.zarr:
            store = str(path.with_suffix(".zarr"))
            job = {"path": store, "source": str(path), "chunks": chunks or list(MAP), "filter": layout.zarr}
            found["zarr_bytes"] = self.files("zarr", job)["bytes"]
            found["zarr"] = [store]
        return found

    def forget(self) -> None:
        """Removes the large arrays: only one layout's files are kept at a time."""
        for name in ("array.nc", "array.zarr"):
            remove(self.scratch / name)
        self.made = {k: v for k, v in self.made.items() if k == "many" or k.startswith("wide")}

    # ---- a case -----------------------------------------------------------------------------------------

    def measure(self, case: Case) -> dict:
        """All rounds of a case; round 0 warms up, and is all there is of who is slow."""
        made, more = self.data(case), dict(case.more)
        memory = int(MEMORY * self.bytes) if case.layout else 0
        job = {"op": case.op, "threads": self.cores, "memory": memory, **more}
        if case.dask:
            job["chunks"] = {"time": 24}
        if case.op == "series":
            job["points"] = [[(97 * k + 331) % 721, (211 * k + 707) % 1440] for k in range(more["n"])]
        if case.op == "write":
            chunks = [min(c, s) for c, s in zip(case.layout.chunks, self.shape)]
            job["storage"] = {"filter": case.layout.filter, "chunks": chunks}
        names = [p for p in case.peers if p in self.peers and (p != "zarr" or made["zarr"] or case.op == "write")]
        limits = [ALONE] if case.limited() else []
        row = {"name": case.name, "op": case.op, "dask": case.dask, "layout": case.layout.name if case.layout else "",
               "like": bool(case.layout and case.layout.like()), "bytes": made["bytes"], "zarr_bytes": made.get("zarr_bytes"),
               "seconds": {}, "parts": {}, "peak_kib": {}, "errors": {}, "limit": {}, "written": {}}  # fmt: skip
        slow: set[str] = set()
        for number in range(self.options.repeat + 1):
            order = limits + names
            # The reference is first in round 0: it says what is right.
            for name in order if number % 2 == 0 else reversed(order):
                if name not in row["errors"] and name not in slow:
                    self.once(case, {**job, "paths": made["zarr" if name == "zarr" else "nc"]}, name, number, row, slow)
            if number > 0 and case.limited():
                self.machine(case, made, row)
        row["limit"][ALONE] = row["seconds"].pop(ALONE, [])
        return row

    def once(self, case: Case, job: dict, name: str, number: int, row: dict, slow: set) -> None:
        """One run of a peer, and whether what came out is right."""
        kind = "zarr" if name == "zarr" else "nc"
        job.update(small=self.small["nc" if case.op == "write" else kind], small_target=str(self.scratch / f"written-small.{kind}"))
        job["result"] = str(self.scratch / f"result-{name}.npy")
        target = self.scratch / f"written-{name}.{'zarr' if name == 'zarr' else 'nc'}"
        if case.op == "write":
            self.warm(self.bytes)
            job.update(target=str(target), paths=self.data(case)["nc"])
        try:
            line = self.peer(name, job)
            wrong = self.judge(case, job, name)
        except Failed as why:
            row["errors"][name] = str(why)[:160]
            print(f"{case.name}: {name}: {why}", file=sys.stderr)
            row["seconds"].pop(name, None)
            return
        finally:
            remove(target)
            remove(Path(job["small_target"]))
        if case.op == "write":
            row["written"][name] = wrong.pop("bytes", None)
        if wrong["wrong"]:
            row["errors"][name] = f"wrong: {wrong['wrong']}"
            row["seconds"].pop(name, None)
            return
        if line["seconds"] > SLOW:
            slow.add(name)
        if number > 0 or name in slow or self.options.repeat == 0:
            row["seconds"].setdefault(name, []).append(line["seconds"])
            row["peak_kib"].setdefault(name, []).append(line["peak_kib"])
            for part, seconds in line["parts"].items():
                row["parts"].setdefault(name, {}).setdefault(part, []).append(seconds)

    def judge(self, case: Case, job: dict, name: str) -> dict:
        if case.op == "write":
            return self.files("written", {"target": job["target"], "source": job["paths"][0], **job["storage"]})
        right = self.scratch / "right.npy"
        if name == REFERENCE or not right.exists():
            # xarray-alone comes before the reference, and is judged in the next round. Where the reference
            # fails, the others must agree with the first of them.
            if name != ALONE:
                shutil.copyfile(job["result"], right)
            return {"wrong": None}
        # Sums of float32 differ by their order; values that were only read do not, but for the unpacking.
        exact = case.op in ("open", "series") and not (case.layout and case.layout.packed)
        return self.files("same", {"mine": job["result"], "right": str(right), "tolerance": 0 if exact else 0.02})

    def warm(self, size: int) -> None:
        """Writes and removes as many bytes: their pages are at hand then for each run alike."""
        path = self.scratch / "warm"
        with open(path, "wb") as file:
            for _ in range(size // MIB):
                file.write(bytes(MIB))
        path.unlink()

    def machine(self, case: Case, made: dict, row: dict) -> None:
        """What the machine takes for the same bytes: read from the page cache, and, of arrays, inflated."""
        start = time.perf_counter()
        for path in made["nc"]:
            with open(path, "rb", buffering=0) as file:
                while file.read(MIB):
                    pass
        row["limit"].setdefault("read", []).append(time.perf_counter() - start)
        if case.op in ("open", "open_many") or case.layout.filter == "blosc" or case.layout.format != "NETCDF4":
            return
        start_of, count = [0, 0, 0], list(self.shape)
        slabs = [(start_of, count)]
        if case.op == "series":
            slabs = [([0, (97 * k + 331) % 721, (211 * k + 707) % 1440], [self.shape[0], 1, 1]) for k in range(dict(case.more)["n"])]
        listing = self.scratch / "codec.list"
        listing.write_text("".join(" ".join(map(str, [*s, *c, 1, 1, 1])) + "\n" for s, c in slabs))
        for op in ("memcpy",) if case.layout.filter == "none" else ("codec",):
            (line,) = harness.engine(self.bin, "codec", ["--file", made["nc"][0], "--var", "t", "--list", listing, "--op", op], self.env)
            row["limit"].setdefault(op, []).append(line["seconds"])


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---- the table ------------------------------------------------------------------------------------------


def ratio(row: dict, slow: str, fast: str) -> float | None:
    """How many times as fast: the median of the rounds' ratios."""
    a, b = row["seconds"].get(slow), row["seconds"].get(fast)
    return statistics.median(x / y for x, y in zip(a, b)) if a and b else None


def verdicts(row: dict) -> list[str]:
    """The targets of a row, and whether they are met."""
    said = []
    for mine, rival in RIVAL.items():
        times = ratio(row, rival, mine)
        if times is None:
            continue
        text = f"{mine} {times:.1f} x {rival} ({'met' if times >= 3 else 'missed'})"
        alone, base = row["limit"].get(ALONE), row["seconds"][rival]
        if times < 3 and alone and rival == REFERENCE:
            # An engine that takes no time at all would still leave what xarray and NumPy do.
            text += f", at most {statistics.median(base) / statistics.median(alone):.1f} with no engine at all"
        said.append(text)
    for rival in ("zarr", "hidefix"):
        times = ratio(row, rival, MINE)
        if times is not None:
            unlike = rival == "zarr" and row["layout"] and not row["like"]
            said.append(f"{times:.1f} x {rival} ({'other filters' if unlike else 'met' if times > 1 else 'missed'})")
    return said


def table(rows: list[dict], names: list[str]) -> str:
    head = ["case (ms)", *names, "limits", "targets: 3 x its rival; ahead of zarr and hidefix"]
    lines = [head, ["---"] * len(head)]
    show = lambda s: f"{statistics.median(s) * 1e3:.3g} ({min(s) * 1e3:.3g}-{max(s) * 1e3:.3g})"
    for row in rows:
        cells = [row["name"]]
        for name in names:
            cells.append(row["errors"].get(name) or (show(row["seconds"][name]) if row["seconds"].get(name) else ""))
        cells.append("; ".join(f"{name} {show(s)}" for name, s in row["limit"].items() if s))
        cells.append("; ".join(verdicts(row)))
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def memory(rows: list[dict], names: list[str]) -> str:
    lines = [["peak of memory (MiB)", *names], ["---"] * (len(names) + 1)]
    for row in rows:
        peaks = row["peak_kib"]
        lines.append([row["name"], *(f"{max(peaks[n]) / 1024:.0f}" if n in peaks else "" for n in names)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default=".")
    p.add_argument("--peers", default=".", help="only the peers whose name matches, and the reference")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--repeat", type=int, default=None, help="rounds (3; with --quick 1)")
    p.add_argument("--patience", type=float, default=600, metavar="SECONDS", help="a peer that takes longer is stopped (600)")
    p.add_argument("--no-record", action="store_true")
    options = p.parse_args()
    if options.repeat is None:
        options.repeat = 1 if options.quick else 3
    scratch = Path(os.environ.get("ZONDA_SCRATCH", ROOT / "out" / "bench")) / f"python-{os.getpid()}"
    n_files = 100 if options.quick else 1000
    chosen = [c for c in cases(n_files) if re.search(options.only, c.name) and (c.quick or not options.quick)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return 0
    reads.build(ROOT / "out" / "bench-bin")
    scratch.mkdir(parents=True)
    # A benchmark that is stopped leaves no gigabytes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    rows = []
    try:
        bench = Bench(options, scratch)
        bench.warmup()
        print(harness.heading(host, "", {}, started, f"{bench.shape} floats, warm files"), "\n", file=sys.stderr)
        for case in chosen:
            (scratch / "right.npy").unlink(missing_ok=True)
            try:
                rows.append(bench.measure(case))
            except Failed as why:
                print(f"{case.name}: not measured: {why}", file=sys.stderr)
                continue
            said = {n: f"{statistics.median(s) * 1e3:.4g}" for n, s in rows[-1]["seconds"].items() if s}
            print(f"{case.name}: {said} ms; {'; '.join(verdicts(rows[-1]))}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    names = [n for n in ENGINES + LIBRARIES if any(n in r["seconds"] or n in r["errors"] for r in rows)]
    print(table(rows, names))
    print("\n" + memory(rows, names))
    said = [v for row in rows for v in verdicts(row)]
    print(f"\n{sum('(met' in v for v in said)} targets met, {sum('(missed' in v for v in said)} missed")
    if not options.no_record and not options.quick:
        facts = {"cache": "warm", "repeat": options.repeat, "shape": bench.shape, "versions": bench.versions}
        print(f"\nraw figures: {harness.keep(host, started, '-python', facts, rows)}")
    for row in rows:
        for name, why in row["errors"].items():
            print(f"{row['name']}: {name}: {why}", file=sys.stderr)
    mine = (MINE, "preload-engine", "preload", "zonda.netcdf4", "zonda")
    return 1 if any(name in row["errors"] for row in rows for name in mine) else 0


if __name__ == "__main__":
    sys.exit(main())
