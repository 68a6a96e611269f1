#!/usr/bin/env python3
"""Runs the benchmarks: every workload in turns on several netCDF libraries and beside the limit of
the machine. Prints one markdown table and keeps the raw figures. See README.md beside this file.

Only the standard library is used (Python >= 3.11).
"""

import argparse
import datetime
import itertools
import os
import re
import shutil
import statistics
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import harness
from harness import BENCH, REFERENCE, ROOT, Failed

SECONDS_TO = {"ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass
class Workload:
    """One measured thing: seconds per library (and of the limit), one entry per round."""

    name: str
    workload: str
    group: str
    unit: str
    target: dict
    summary: str = ""  # rows that share it are printed as one
    seconds: dict[str, list[float]] = field(default_factory=dict)
    limits: dict[str, list[float]] = field(default_factory=dict)  # by what was tried
    digests: dict[str, set[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    params: dict = field(default_factory=dict)
    bytes: int = 0
    calls: int = 1

    @property
    def limit(self) -> list[float]:
        """The times of the limit: of the best of those tried."""
        return min(self.limits.values(), key=statistics.median, default=[])

    def value(self, seconds: float) -> float:
        """Seconds in the row's unit: milliseconds of the whole, or us or ns of one call."""
        return seconds * SECONDS_TO[self.unit] / (1 if self.unit == "ms" else self.calls)


# ---- definitions --------------------------------------------------------------------------------


def fill(value, names: dict):
    """Puts `names` into the braces of every string in `value`; {file} stays for later. A string
    that is nothing but a name becomes what the name stands for, number or table."""
    if isinstance(value, str):
        whole = re.fullmatch(r"\{(\w+)\}", value)
        if whole and whole[1] in names:
            return names[whole[1]]
        return value.format_map({"file": "{file}", **names})
    if isinstance(value, list):
        return [fill(v, names) for v in value]
    if isinstance(value, dict):
        return {k: fill(v, names) for k, v in value.items()}
    return value


def expanded(run: dict) -> list[dict]:
    """The run once for each combination of its axes."""
    axes = run.pop("axes", [[{}]])
    run["result"] = [
        {**result, "workload": w, "name": result["name"].replace("{workload}", w)}
        for result in run["result"]
        for w in result.pop("workloads", [result.get("workload")])
    ]
    runs = []
    for combination in itertools.product(*axes):
        names = {k: v for table in combination for k, v in table.items()}
        one = fill(run, names)
        marks = [table["quick"] for table in combination if "quick" in table]
        one["quick"] = all(marks) if marks else run.get("quick", False)
        one["long"] = run.get("long", False) or any(t.get("long") for t in combination)
        runs.append(one)
    return runs


def definitions(options: argparse.Namespace) -> list[dict]:
    """All runs of bench/definitions that are wanted."""
    runs = []
    for path in sorted((BENCH / "definitions").glob("*.toml")):
        definition = tomllib.loads(path.read_text())
        for run in definition["run"]:
            for one in expanded({"group": definition["title"], **run}):
                if one["long"] and not options.long or options.quick and not one["quick"]:
                    continue
                if any(re.search(options.only, r["name"]) for r in one["result"]):
                    runs.append(one)
    return runs


# ---- running ------------------------------------------------------------------------------------


class Runner:
    def __init__(self, options: argparse.Namespace, bin_dir: Path, libs: dict, folders: dict):
        self.options, self.bin_dir, self.libs, self.folders = options, bin_dir, libs, folders

    def engine(self, what: dict, file: Path, env: dict, more: list = ()) -> list[dict]:
        """Runs one engine; gives its result lines."""
        args = [str(a).replace("{file}", str(file)) for a in (*what["args"], *more)]
        return harness.engine(self.bin_dir, what["engine"], args, env)

    def surroundings(self, run: dict, name: str, file: Path) -> dict:
        """The environment of a library, or of the limit, in a run."""
        env = {**self.libs[name]["env"], **run.get("env", {})}
        if "throttle" in run:
            env["LD_PRELOAD"] = str(self.bin_dir / "throttle.so")
            env["THROTTLE"], env["THROTTLE_FOLDER"] = run["throttle"], str(file.parent)
        return env

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

    def prepare(self, run: dict, name: str, file: Path) -> None:
        """What comes before each run: its file, or the space for it."""
        if run.get("fresh"):  # a file of its own for each run, which it will change
            maker = REFERENCE if run["fresh"] == "reference" else name
            self.engine(run["input"], file, self.libs[maker]["env"])
        elif run.get("output"):
            self.level_ground(file, run.get("warm_mb", 0))
        elif self.options.cold and file.exists() and run["place"] == "disk":
            self.make_cold(file)
        if run.get("durable"):
            os.sync()  # nobody else's dirty pages are on the way to the disk

    def once(self, run: dict, name: str, file: Path) -> list[dict]:
        """One run of a workload's engine. What it wrote is read by the reference for the digest."""
        self.prepare(run, name, file)
        more = run.get("args_for", {}).get(name, [])
        lines = self.engine(run, file, self.surroundings(run, name, file), more)
        if run.get("output"):
            check = {"engine": "digest", "args": ["--file", "{file}"]}
            (of_file,) = self.engine(check, file, self.libs[REFERENCE]["env"])
            for line in lines:
                line["digest"] = f"{line['digest'] or ''}/{of_file['digest']}"
            file.unlink()
        return lines

    def limit(self, run: dict, file: Path) -> dict[str, dict[str, dict]]:
        """Result lines of the run's limit by what was tried and workload, in a file of its own or
        on the run's input."""
        env = self.surroundings(run, REFERENCE, file)
        tried = {}
        for more in run["limit"].get("tries", [[]]):
            if not run.get("fresh"):
                self.prepare(run, REFERENCE, file)
            lines = self.engine(run["limit"], file, env, more)
            tried[" ".join(more)] = {line["workload"]: line for line in lines}
            if run.get("output"):
                file.unlink(missing_ok=True)
        return tried

    def row(self, run: dict, rows: dict[str, Workload], line: dict) -> Workload | None:
        """The row a line belongs to. A result whose workload ends in `*` stands for many, which
        are summed up by what `by` names."""
        name = line["workload"]
        for r in run["result"] if name not in rows else ():
            target = r.get("target", {})
            if r["workload"] == name:
                rows[name] = Workload(r["name"], name, run["group"], r["unit"], target)
            elif r["workload"].endswith("*") and name.startswith(r["workload"][:-1]):
                summary = f"{r['name']}, {line['params'][r['by']]}"
                one = f"{r['name']}, {name[len(r['workload']) - 1:]}"
                rows[name] = Workload(one, name, run["group"], r["unit"], target, summary)
        return rows.get(name)

    def measure(self, run: dict) -> list[Workload]:
        """All rounds of one run. Round 0 warms up and counts only for the digests."""
        names = ["machine"] if run.get("machine") else list(self.libs)
        file = self.folders[run["place"]] / "bench.nc"
        if "input" in run and not run.get("fresh"):
            self.engine(run["input"], file, self.libs[REFERENCE]["env"])
        rows: dict[str, Workload] = {}
        failed: dict[str, str] = {}
        repeat = min(self.options.repeat, run.get("repeat", self.options.repeat))
        for number in range(repeat + 1):
            for name in harness.in_turn(names, number):
                if name in failed:
                    continue
                try:
                    for line in self.once(run, REFERENCE if name == "machine" else name, file):
                        if row := self.row(run, rows, line):
                            self.keep(row, name, line, number > 0)
                except Failed as why:
                    failed[name] = str(why)
            if "limit" in run:
                for tried, lines in self.limit(run, file).items():
                    only = next(iter(lines.values())) if len(lines) == 1 else None
                    for row in rows.values() if number > 0 else ():
                        if line := lines.get(row.workload, only):
                            row.limits.setdefault(tried, []).append(line["seconds"])
                            self.check_limit(row, line)
        for left in file.parent.iterdir():
            left.unlink()
        for r in run["result"]:
            if not r["workload"].endswith("*") and r["workload"] not in rows:
                none = Workload(r["name"], r["workload"], run["group"], r["unit"], {})
                rows[r["workload"]] = none
        for row in rows.values():
            self.judge(row, names, failed)
        return list(rows.values())

    def keep(self, row: Workload, name: str, line: dict, counts: bool) -> None:
        row.params, row.bytes, row.calls = line["params"], line["bytes"], max(line["calls"], 1)
        row.digests.setdefault(name, set()).add(str(line["digest"]))
        if counts:
            row.seconds.setdefault(name, []).append(line["seconds"])

    def check_limit(self, row: Workload, line: dict) -> None:
        """A limit that knows what it moved must have moved what the reference does."""
        right = {d.split("/")[0] for d in row.digests.get(REFERENCE, ())}
        if line["digest"] and right and line["digest"] not in right:
            row.errors["limit"] = "wrong digest"

    def judge(self, row: Workload, names: list[str], failed: dict[str, str]) -> None:
        """Takes away the times of whoever failed or gave other values than the reference."""
        row.errors.update(failed)
        right = row.digests.get(names[0], set())
        for name in names:
            if name in failed:
                continue
            if name not in row.digests:
                row.errors[name] = "no result"
            elif len(right) != 1 or row.digests[name] != right:
                row.errors[name] = "wrong digest"
        for name in row.errors:
            row.seconds.pop(name, None)
        if "limit" in row.errors:
            row.limits.clear()


# ---- output -------------------------------------------------------------------------------------


def spread(values: list[float]) -> tuple[float, float, float]:
    """Least, median, most; quartiles instead of the ends from 4 values on."""
    values = sorted(values)
    low, high = values[0], values[-1]
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, statistics.median(values), high


def with_spread(values: list[float], form: str) -> str:
    low, middle, high = (format(v, form) for v in spread(values)) if values else ("", "", "")
    return f"{middle} ({low}-{high})" if values else ""


def times(row: Workload, seconds: list[float] | None) -> str:
    return with_spread([row.value(s) for s in seconds or []], ".3g")


def ratios(a: list[float] | None, b: list[float] | None) -> list[float]:
    """Round by round: both meet the same noise."""
    return [x / y for x, y in zip(a or [], b or [])]


def against_target(row: Workload, name: str) -> str:
    """The target, and whether the library's median meets it."""
    mine = row.seconds.get(name)
    for kind, bound in row.target.items():
        share = kind == "throughput"  # of the limit's: more is better
        text = f">= {bound} of the limit" if share else f"<= {bound} {kind}"
        text = text.replace("limit", "x limit") if kind == "limit" else text
        if not mine or (kind in ("limit", "throughput") and not row.limit):
            return text
        if kind in ("limit", "throughput"):
            got = statistics.median(ratios(mine, row.limit))
            met = got <= (1 / bound if share else bound)
        else:
            met = row.value(statistics.median(mine)) <= bound
        return f"{text}: {'met' if met else 'missed'}"
    return ""


def row_cells(row: Workload, names: list[str]) -> list[str]:
    cells = [row.name, row.unit]
    cells += [row.errors.get(n) or times(row, row.seconds.get(n)) for n in names]
    limit = row.seconds.get("machine") or row.limit
    cells += [
        with_spread(ratios(row.seconds.get(n), row.seconds.get(REFERENCE)), ".2f")
        for n in names[1:]
    ]
    cells.append(times(row, limit) or row.errors.get("machine", ""))
    cells += [with_spread(ratios(row.seconds.get(n), row.limit), ".2f") for n in names]
    return [*cells, against_target(row, names[-1] if len(names) == 1 else names[1])]


def summary_cells(rows: list[Workload], names: list[str]) -> list[str]:
    """Many rows as one: median of their medians (least-most)."""

    def over(a: str, b) -> str:
        pairs = [ratios(row.seconds.get(a), b(row)) for row in rows]
        middles = sorted(statistics.median(p) for p in pairs if p)
        low, high = (middles[0], middles[-1]) if middles else (0, 0)
        return f"{statistics.median(middles):.2f} ({low:.2f}-{high:.2f})" if middles else ""

    def middle(of) -> str:
        some = [statistics.median(of(row)) for row in rows if of(row)]
        return f"{rows[0].value(statistics.median(some)):.3g}" if some else ""

    wrong = {n: sum(n in row.errors for row in rows) for n in names}
    subject = names[-1] if len(names) == 1 else names[1]
    verdicts = [against_target(row, subject) for row in rows]
    met = sum(v.endswith("met") for v in verdicts)
    target = verdicts[0].split(":")[0]
    seconds = {n: middle(lambda r, n=n: r.seconds.get(n)) for n in names}
    return [
        f"{rows[0].summary} (of {len(rows)})", rows[0].unit,
        *(f"{wrong[n]} failed" if wrong[n] else seconds[n] for n in names),
        *(over(n, lambda r: r.seconds.get(REFERENCE)) for n in names[1:]),
        middle(lambda r: r.limit), *(over(n, lambda r: r.limit) for n in names),
        f"{target}: {met} of {len(rows)} met" if target else "",
    ]


def table(rows: list[Workload], names: list[str]) -> str:
    subject = names[-1] if len(names) == 1 else names[1]
    head = ["workload", "unit", *names, *(f"{n} / {REFERENCE}" for n in names[1:]), "limit"]
    head += [*(f"{n} / limit" for n in names), f"target ({subject})"]
    lines, group, done = [head, ["---"] * len(head)], "", set()
    for row in rows:
        if row.group != group:
            group = row.group
            lines.append([f"**{group}**", *[""] * (len(head) - 1)])
        if not row.summary:
            lines.append(row_cells(row, names))
        elif row.summary not in done:
            done.add(row.summary)
            lines.append(summary_cells([r for r in rows if r.summary == row.summary], names))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="environment: ZONDA_LIB (dist/lib), NETCDF_LIBS (name=folder:...), "
        "ZONDA_SCRATCH (out/bench), BENCH_MEMORY (/dev/shm). Exit status: 0 done, 1 an engine "
        "failed or gave wrong values (times never decide), 2 wrong usage.",
    )
    parser.add_argument("--quick", action="store_true", help="a subset, in about a minute")
    parser.add_argument("--long", action="store_true", help="also what takes hours")
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
    runs = definitions(options)
    if options.list:
        print("\n".join(r["name"] for run in runs for r in run["result"]))
        return 0
    bin_dir = ROOT / "out" / "bench-bin"
    gcc = harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    host = harness.machine()
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
            rows += [
                r for r in runner.measure(run)
                if re.search(options.only, r.name) or re.search(options.only, r.summary or r.name)
            ]
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)

    cache = "cold (inputs on disk)" if options.cold else "warm"
    print(harness.heading(host, gcc, libs, started, cache))
    print(f"median of {options.repeat} (quartiles; least-most below 4)\n")
    print(table(rows, list(libs)))

    if options.record or (options.record is None and not options.quick):
        facts = {
            "gcc": gcc, "cache": cache, "quick": options.quick, "repeat": options.repeat,
            "libraries": harness.identity(libs),
        }
        path = harness.keep(host, started, "", facts, [
            {**vars(r), "digests": {n: sorted(d) for n, d in r.digests.items()}} for r in rows
        ])
        print(f"\nraw figures: {path}")
    causes = Counter((row.summary or row.name, *e) for row in rows for e in row.errors.items())
    for (what, name, why), n in causes.items():
        print(f"{what}: {name}: {why}{f' ({n} times)' if n > 1 else ''}", file=sys.stderr)
    return 1 if any(row.errors for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
