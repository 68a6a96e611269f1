#!/usr/bin/env python3
"""Runs the benchmarks: every workload in turns on several netCDF libraries and beside the limit of
the machine. Prints one markdown table and keeps the raw figures. See README.md beside this file.

Only the standard library is used (Python >= 3.11).
"""

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
REFERENCE = "reference"
SECONDS_TO = {"ms": 1e3, "us": 1e6, "ns": 1e9}

# Engine -> source and compiler flags. Those that stand for a limit are allowed everything.
LIMIT_FLAGS = ["-O3", "-march=native", "-fno-trapping-math"]
ENGINES = {
    "history_model": ("examples/history_model.c", ["-std=c99", "-O2", "-lnetcdf", "-lm"]),
    "raw_write": ("examples/raw_write.c", ["-std=c99", *LIMIT_FLAGS]),
    "arrays": ("bench/engines/arrays.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "small": ("bench/engines/small.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "cycle": ("bench/engines/cycle.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "digest": ("bench/engines/digest.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "limits": ("bench/engines/limits.c", ["-std=c11", *LIMIT_FLAGS]),
}


class Failed(Exception):
    """An engine that did not do its work; the text says which and why."""


@dataclass
class Workload:
    """One row of the table: seconds per library (and of the limit), one entry per round."""

    name: str
    workload: str
    unit: str
    target: dict
    seconds: dict[str, list[float]] = field(default_factory=dict)
    limit: list[float] = field(default_factory=list)
    digests: dict[str, set[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    params: dict = field(default_factory=dict)
    bytes: int = 0
    calls: int = 1

    def value(self, seconds: float) -> float:
        """Seconds in the row's unit: milliseconds of the whole, or us or ns of one call."""
        return seconds * SECONDS_TO[self.unit] / (1 if self.unit == "ms" else self.calls)


# ---- definitions --------------------------------------------------------------------------------


def fill(value, names: dict):
    """Puts `names` into the braces of every string in `value`; {file} stays for later."""
    if isinstance(value, str):
        return value.format_map({"file": "{file}", **names})
    if isinstance(value, list):
        return [fill(v, names) for v in value]
    if isinstance(value, dict):
        return {k: fill(v, names) for k, v in value.items()}
    return value


def definitions(quick: bool, only: str) -> list[dict]:
    """All runs of bench/definitions, `each` expanded, those not wanted left out."""
    runs = []
    for path in sorted((BENCH / "definitions").glob("*.toml")):
        for run in tomllib.loads(path.read_text()).get("run", []):
            for names in run.pop("each", [{}]):
                one = fill(run, names)
                one["quick"] = names.get("quick", run.get("quick", False))
                if quick and not one["quick"]:
                    continue
                if any(re.search(only, r["name"]) for r in one["result"]):
                    runs.append(one)
    return runs


# ---- libraries and the machine ------------------------------------------------------------------


def resolved(program: Path, env: dict) -> Path | None:
    """The libnetcdf that `program` would load in `env`."""
    out = subprocess.run(["ldd", program], env=env, capture_output=True, text=True, check=True)
    found = re.search(r"libnetcdf\.so\S* => (\S+)", out.stdout)
    return Path(found[1]).resolve() if found else None


def libraries(bin_dir: Path) -> dict[str, dict]:
    """Name -> environment and identity of each library to run on; the reference comes first."""
    base = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    folders: dict[str, Path | None] = {REFERENCE: None}
    zonda = Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib"))
    if (zonda / "libnetcdf.so.19").exists():
        folders["zonda"] = zonda
    else:
        print(f"no libnetcdf.so.19 in {zonda}: only the reference is run", file=sys.stderr)
    for item in filter(None, os.environ.get("NETCDF_LIBS", "").split(":")):
        name, _, folder = item.partition("=")
        if not folder or name in folders or not Path(folder).is_dir():
            sys.exit(f'run.py: NETCDF_LIBS is "name=folder:name=folder", not "{item}"')
        folders[name] = Path(folder)

    found = {}
    for name, folder in folders.items():
        env = base if folder is None else {**base, "LD_LIBRARY_PATH": str(folder)}
        library = resolved(bin_dir / "arrays", env)
        if library is None or (folder and not library.samefile(folder / "libnetcdf.so.19")):
            sys.exit(f"run.py: {name}: the engines would load {library}, not one of {folder}")
        out = subprocess.run(
            [sys.executable, "-c", VERSION_OF, library], env=env, capture_output=True, text=True
        )
        found[name] = {
            "env": env,
            "version": out.stdout.strip() or "unknown",
            "file": library.name,
            "sha256": hashlib.sha256(library.read_bytes()).hexdigest()[:16],
        }
    return found


VERSION_OF = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.nc_inq_libvers.restype = ctypes.c_char_p
print(lib.nc_inq_libvers().decode().strip(' $'))
"""


def machine() -> dict:
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Model")):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu,
        "arch": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "load_at_start": os.getloadavg()[0],
    }


def slug(cpu: str) -> str:
    short = re.sub(r"\((r|tm)\)|cpu|processor|@.*|\d+-core", " ", cpu.lower())
    return re.sub(r"[^a-z0-9]+", "-", short).strip("-") or "unknown"


def commit() -> str:
    def git(*args: str) -> str:
        out = subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)
        return out.stdout.strip() if out.returncode == 0 else ""

    return (git("rev-parse", "--short=12", "HEAD") or "none") + (
        "-dirty" if git("status", "--porcelain") else ""
    )


def build(bin_dir: Path) -> str:
    """Compiles the engines against the distribution's header and library; gives gcc's version."""
    bin_dir.mkdir(parents=True, exist_ok=True)
    for name, (source, flags) in ENGINES.items():
        command = ["gcc", "-Wall", "-Wextra", ROOT / source, "-o", bin_dir / name, *flags]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"run.py: cannot compile {source}")
    out = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return out.stdout.strip()


# ---- running ------------------------------------------------------------------------------------


class Runner:
    def __init__(self, options: argparse.Namespace, bin_dir: Path, libs: dict, folders: dict):
        self.options, self.bin_dir, self.libs, self.folders = options, bin_dir, libs, folders

    def engine(self, what: dict, file: Path, env: dict) -> dict[str, dict]:
        """Runs one engine; gives its result lines by workload."""
        args = [a.replace("{file}", str(file)) for a in what["args"]]
        out = subprocess.run(
            [self.bin_dir / what["engine"], *args], env=env, capture_output=True, text=True
        )
        if out.returncode != 0:
            why = out.stderr.strip().splitlines()[-1:] or ["no message"]
            raise Failed(f"{what['engine']} ended with {out.returncode}: {why[0]}")
        lines = [json.loads(line) for line in out.stdout.splitlines()]
        return {line["workload"]: line for line in lines}

    def level_ground(self, file: Path, mb: int) -> None:
        """Makes the page cache alike for each run: what it needs was freed a moment ago. First
        touches of memory that a virtual machine has given back to its host are slow."""
        file.unlink(missing_ok=True)
        if mb:
            block = bytes(1 << 20)
            with file.open("wb", buffering=0) as f:
                for _ in range(mb):
                    f.write(block)
            file.unlink()

    def make_cold(self, file: Path) -> None:
        with file.open("rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def once(self, run: dict, file: Path, env: dict) -> dict[str, dict]:
        """One run of a workload's engine. What it wrote is read by the reference for the digest."""
        if run.get("output"):
            self.level_ground(file, run.get("warm_mb", 0))
        elif self.options.cold and file.exists() and run["place"] == "disk":
            self.make_cold(file)
        lines = self.engine(run, file, env)
        if run.get("output"):
            check = {"engine": "digest", "args": ["--file", "{file}"]}
            of_file = self.engine(check, file, self.libs[REFERENCE]["env"])["digest"]["digest"]
            for line in lines.values():
                line["digest"] = f"{line['digest'] or ''}/{of_file}"
            file.unlink()
        return lines

    def limit(self, run: dict, file: Path) -> float:
        """Seconds of the run's limit, in a file of its own or on the run's input."""
        env = self.libs[REFERENCE]["env"]
        limit = {**run["limit"], "place": run["place"]}
        if run.get("output"):
            self.level_ground(file, run.get("warm_mb", 0))
        elif self.options.cold and run["place"] == "disk":
            self.make_cold(file)
        (line,) = self.engine(limit, file, env).values()
        if run.get("output"):
            file.unlink()
        return line["seconds"]

    def measure(self, run: dict) -> list[Workload]:
        """All rounds of one run. Round 0 warms up and counts only for the digests."""
        rows = [
            Workload(r["name"], r["workload"], r["unit"], r.get("target", {}))
            for r in run["result"]
        ]
        names = ["machine"] if run.get("machine") else list(self.libs)
        file = self.folders[run["place"]] / "bench.nc"
        file.unlink(missing_ok=True)
        if "input" in run:
            self.engine(run["input"], file, self.libs[REFERENCE]["env"])
        failed: dict[str, str] = {}
        for number in range(self.options.repeat + 1):
            for name in names if number % 2 == 0 else reversed(names):
                if name in failed:
                    continue
                env = self.libs[REFERENCE if name == "machine" else name]["env"]
                try:
                    lines = self.once(run, file, env)
                    for row in rows:
                        self.keep(row, name, lines[row.workload], number > 0)
                except Failed as why:
                    failed[name] = str(why)
                except KeyError as missing:
                    failed[name] = f"no result {missing}"
            if "limit" in run:
                seconds = self.limit(run, file)
                if number > 0:
                    for row in rows:
                        row.limit.append(seconds)
        file.unlink(missing_ok=True)
        for row in rows:
            self.judge(row, names, failed)
        return rows

    def keep(self, row: Workload, name: str, line: dict, counts: bool) -> None:
        row.params, row.bytes, row.calls = line["params"], line["bytes"], max(line["calls"], 1)
        row.digests.setdefault(name, set()).add(str(line["digest"]))
        if counts:
            row.seconds.setdefault(name, []).append(line["seconds"])

    def judge(self, row: Workload, names: list[str], failed: dict[str, str]) -> None:
        """Takes away the times of whoever failed or gave other values than the reference."""
        row.errors.update(failed)
        right = row.digests.get(names[0], set())
        for name in names:
            if name not in failed and (len(right) != 1 or row.digests.get(name) != right):
                row.errors[name] = "wrong digest"
        for name in row.errors:
            row.seconds.pop(name, None)


# ---- output -------------------------------------------------------------------------------------


def median_and_spread(row: Workload, seconds: list[float]) -> str:
    values = sorted(row.value(s) for s in seconds)
    low, high = values[0], values[-1]
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{statistics.median(values):.3g} ({low:.3g}-{high:.3g})"


def ratio(a: list[float] | None, b: list[float] | None) -> str:
    return f"{statistics.median(a) / statistics.median(b):.2f}" if a and b else ""


def against_target(row: Workload, name: str) -> str:
    """The target, and whether the library's median meets it."""
    mine = row.seconds.get(name)
    for kind, most in row.target.items():
        text = f"<= {most} x limit" if kind == "limit" else f"<= {most} {kind}"
        if not mine or (kind == "limit" and not row.limit):
            return text
        value = statistics.median(mine)
        got = value / statistics.median(row.limit) if kind == "limit" else row.value(value)
        return f"{text}: {'met' if got <= most else 'missed'}"
    return ""


def table(rows: list[Workload], names: list[str]) -> str:
    others = names[1:]
    subject = others[0] if others else REFERENCE
    head = ["workload", "unit", *names, *(f"{n} / {REFERENCE}" for n in others), "limit"]
    head += [*(f"{n} / limit" for n in names), f"target ({subject})"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        times = [
            row.errors.get(n) or (median_and_spread(row, row.seconds[n]) if n in row.seconds else "")
            for n in names
        ]
        limit = row.seconds.get("machine") or row.limit
        cells = [row.name, row.unit, *times]
        cells += [ratio(row.seconds.get(n), row.seconds.get(REFERENCE)) for n in others]
        cells.append(median_and_spread(row, limit) if limit else row.errors.get("machine", ""))
        cells += [ratio(row.seconds.get(n), row.limit) for n in names]
        lines.append([*cells, against_target(row, subject)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="environment: ZONDA_LIB (dist/lib), NETCDF_LIBS (name=folder:...), "
        "ZONDA_SCRATCH (out/bench), BENCH_MEMORY (/dev/shm). Exit status: 0 done, 1 an engine "
        "failed or gave wrong values (times never decide), 2 wrong usage.",
    )
    parser.add_argument("--quick", action="store_true", help="a subset in under a minute")
    parser.add_argument("--repeat", type=int, help="rounds counted (7; quick 3)")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    parser.add_argument("--cold", action="store_true", help="drop inputs on disk from the cache")
    parser.add_argument("--list", action="store_true", help="names of the rows, no run")
    parser.add_argument(
        "--record", action=argparse.BooleanOptionalAction, help="write bench/record (not if quick)"
    )
    options = parser.parse_args()
    options.repeat = options.repeat or (3 if options.quick else 7)
    if options.repeat < 1:
        parser.error("--repeat is at least 1")
    try:
        re.compile(options.only)
    except re.error as why:
        parser.error(f"--only: {why}")
    return options


def main() -> int:
    options = arguments()
    runs = definitions(options.quick, options.only)
    if options.list:
        print("\n".join(r["name"] for run in runs for r in run["result"]))
        return 0
    bin_dir = ROOT / "out" / "bench-bin"
    gcc = build(bin_dir)
    libs = libraries(bin_dir)
    host = machine()
    started = datetime.datetime.now(datetime.UTC)
    disk = Path(os.environ.get("ZONDA_SCRATCH", ROOT / "out" / "bench"))
    memory = Path(os.environ.get("BENCH_MEMORY", "/dev/shm"))
    disk.mkdir(parents=True, exist_ok=True)
    rows: list[Workload] = []
    folders: dict[str, Path] = {}
    try:
        for place, parent in (("disk", disk), ("memory", memory)):
            folders[place] = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=parent))
        runner = Runner(options, bin_dir, libs, folders)
        for number, run in enumerate(runs):
            if sys.stderr.isatty():
                text = f"{100 * number // len(runs):3d} %  {run['result'][0]['name']}"
                print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
            rows += [r for r in runner.measure(run) if re.search(options.only, r.name)]
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)

    cache = "cold (inputs on disk)" if options.cold else "warm"
    print(f"{host['cpu']}, {host['cores']} cores, Linux {host['kernel']}, gcc {gcc}, {cache}")
    print(f"commit {commit()}, {started:%Y-%m-%d %H:%M} UTC, load {host['load_at_start']:.1f}")
    for name, lib in libs.items():
        print(f"{name}: {lib['version']} ({lib['file']}, sha256 {lib['sha256']})")
    print(f"median of {options.repeat} (quartiles; least-most below 4)\n")
    print(table(rows, list(libs)))

    if options.record or (options.record is None and not options.quick):
        folder = BENCH / "record" / slug(host["cpu"])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{started:%Y-%m-%dT%H%M}.json"
        record = {
            "started": started.isoformat(timespec="seconds"), "commit": commit(), "machine": host,
            "gcc": gcc, "cache": cache, "quick": options.quick, "repeat": options.repeat,
            "libraries": {n: {k: v for k, v in lib.items() if k != "env"} for n, lib in libs.items()},
            "workloads": [
                {**vars(row), "digests": {n: sorted(d) for n, d in row.digests.items()}}
                for row in rows
            ],
        }
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"\nraw figures: {path.relative_to(ROOT)}")
    for row in rows:
        for name, why in row.errors.items():
            print(f"{row.name}: {name}: {why}", file=sys.stderr)
    return 1 if any(row.errors for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
