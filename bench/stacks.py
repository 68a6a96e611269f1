#!/usr/bin/env python3
"""Is the default storage stack ever a bad choice? Every family of workloads, written and read in
four sizes, in the system's cache and on a slower device, through the default and through other
stacks in turn. See README.md beside this file.

Only the standard library is used (Python >= 3.11).
"""

import argparse
import datetime
import json
import math
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import harness
from harness import REFERENCE, ROOT, Failed

DEFAULT, AGAIN = "default", "default-again"  # the second shows how far chance goes
STACKS = [
    DEFAULT, "file", "cache:1:8", "cache:4:64", "cache:16:512", "cache:64:128", "cache:256:64",
    "cache:1024:32", "cache:29:141", "bufa:336:2", "bufa:64:8", "cachea:64:128:4",
    "cachea:29:141:2", "cache:29:141,eie.sds:4096:4:1", "cache,direct", "mmap",
]
# Of quick and brief runs.
LEFT_OUT = {"cache:29:141", "cache:1024:32", "bufa:64:8", "cachea:29:141:2", "cache:4:64"}
# What the device is like: a layer below every stack. The reference is not slowed: it tells the right
# values, and what it would take for a quarter of a million single reads nobody waits for.
PACES = {"cached": None, "throttled": "throttle:500M:100us"}
FAMILIES = {
    "in-order": "in order",
    "random-slices": "random slices",
    "tiles": "partial arrays out of order",
    "strided": "strided",
    "one-sequential": "one element, sequential",
    "one-random": "one element, random",
    "many-variables": "many variables x few records",
    "many-records": "few variables x many records",
    "whole-arrays": "whole arrays",
}
# Rounds in full, in quick and in brief runs; 0 leaves the size out.
SIZES = {"small": ("512 KB", 25, 5, 0), "eighth": ("8 MB", 9, 0, 5), "medium": ("64 MB", 5, 1, 3),
         "large": ("512 MB", 3, 0, 1)}
MOST = 1.15  # what the default may take, of the best stack's time
# Below this the slowest is no worse than the best: the order is chance.
DEAD_HEAT = 1.05


class Row:
    """One family, size, pace and direction: seconds of each stack in each round."""

    def __init__(self, family: str, size: str, pace: str, op: str):
        self.family, self.size, self.pace, self.op = family, size, pace, op
        self.seconds: dict[str, list[float]] = {}
        self.cut: set[str] = set()
        self.ran: dict[str, str] = {}
        self.reference: list[float] = []
        self.digests: set[str] = set()
        self.error = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.family, self.size, self.pace, self.op

    def to_json(self) -> dict:
        return {**vars(self), "digests": sorted(self.digests), "cut": sorted(self.cut)}

    @classmethod
    def of_json(cls, kept: dict) -> "Row":
        row = cls(kept["family"], kept["size"], kept["pace"], kept["op"])
        vars(row).update(kept, digests=set(kept["digests"]), cut=set(kept["cut"]))
        return row

    @property
    def name(self) -> str:
        pace = ", throttled" if self.pace == "throttled" else ""
        return f"{FAMILIES[self.family]}, {SIZES[self.size][0]}, {self.op}{pace}"

    def least(self) -> dict[str, float]:
        """Each stack's best time, fastest first: noise only ever adds. A run that was cut short
        might have taken any time."""
        some = [(s, min(t)) for s, t in self.seconds.items() if s != AGAIN]
        some += [(s, math.inf) for s in self.cut if s not in (AGAIN, *self.seconds)]
        return dict(sorted(some, key=lambda x: x[1]))

    def chance(self) -> float:
        """What the default took when run as if it were another stack."""
        return min(self.seconds.get(AGAIN, [math.inf])) / min(self.seconds[DEFAULT])

    def verdict(self) -> str:
        least = self.least()
        ratio = least[DEFAULT] / next(iter(least.values()))
        slowest = list(least)[-1] == DEFAULT and ratio > DEAD_HEAT
        return " and ".join(["slowest"] * slowest + [f"> {MOST}"] * (ratio > MOST)) or "ok"

    def cells(self) -> list[str]:
        if self.error:
            return [self.name, self.error] + [""] * 8
        least = self.least()
        best, mine = next(iter(least)), self.seconds[DEFAULT]
        worst = list(least)[-1]
        return [
            self.name,
            f"{1e3 * least[DEFAULT]:.3g} (median {1e3 * statistics.median(mine):.3g})",
            f"{best} {1e3 * least[best]:.3g}",
            f"{least[DEFAULT] / least[best]:.2f}",
            f"{self.chance():.2f}",
            f"{list(least).index(DEFAULT) + 1} of {len(least)}",
            f"{worst} {least[worst] / least[best]:.1f}".replace(" inf", " > 8"),
            f"{1e3 * min(self.reference):.3g}" if self.pace == "cached" else "",
            f"{least[DEFAULT] / min(self.reference):.2f}" if self.pace == "cached" else "",
            self.verdict(),
        ]


def measure(rows: list[Row], stacks: list[str], rounds: int, bin_dir: Path, libs: dict,
            folder: Path) -> None:
    """Both directions of one family and size."""
    reference, zonda = libs[REFERENCE]["env"], libs["zonda"]["env"]
    reference = {k: v for k, v in reference.items() if k != "ZONDA_IO"}
    size = ["--family", rows[0].family, "--size", rows[0].size]
    to_read, written = folder / "read.nc", folder / "written.nc"
    pace = PACES[rows[0].pace]
    below = ["--below", pace] if pace else []
    make = [*size, "--op", "input", "--file", to_read]
    try:
        harness.engine(bin_dir, "families", make, reference)
    except Failed as why:
        for row in rows:
            row.error = str(why)
        return
    for row in rows:
        file = written if row.op == "write" else to_read
        args = [*size, "--op", row.op, "--file", file]
        meaning = []  # of what each library left or got
        try:
            for env, wanted, n in ((reference, [DEFAULT], 1), (zonda, stacks, rounds)):
                args_of = [*args, "--stacks", " ".join(wanted), "--rounds", str(n)]
                args_of += below if env is zonda else []
                lines = harness.engine(bin_dir, "families", args_of, env)
                digests = {line["digest"] for line in lines if not line["params"]["cut"]}
                if len(digests) != 1:
                    raise Failed("wrong digest: not the same through every stack")
                if row.op == "write":
                    (line,) = harness.engine(bin_dir, "digest", ["--file", file], reference)
                    digests = {line["digest"]}
                meaning.append(digests)
                for line in lines:
                    p = line["params"]
                    if env is reference:
                        row.reference.append(line["seconds"])
                    elif p["round"] > 0:
                        row.ran[p["stack"]] = p["ran"]
                        if p["cut"]:
                            row.cut.add(p["stack"])
                        else:
                            row.seconds.setdefault(p["stack"], []).append(line["seconds"])
            row.digests = meaning[0] | meaning[1]
            if len(row.digests) != 1:
                raise Failed("wrong digest: not what the reference has")
        except Failed as why:
            row.error = str(why)
        written.unlink(missing_ok=True)
    to_read.unlink()


HEAD = ["workload", "default ms", "best ms", "default / best", "again / default", "rank",
        "slowest / best", "reference ms", "default / reference", f"<= {MOST}, not slowest"]


class Progress:
    """Rows that earlier calls measured, in a file with one line for each: what a machine that is quiet
    now and then needs. The first line says what was measured; another library or other stacks do
    not go into the same table."""

    def __init__(self, path: Path | None, what: dict):
        self.path, self.rows = path, {}
        if path is None:
            return
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(what) + "\n")
            return
        lines = path.read_text().splitlines()
        try:
            first, *kept = [json.loads(line) for line in lines]
            rows = [Row.of_json(row) for row in kept]
        except (ValueError, KeyError, TypeError) as why:
            sys.exit(f"stacks.py: {path} is no file of --resume: {why!r}")
        other = [name for name in what if first.get(name) != what[name]]
        if other:
            sys.exit(f"stacks.py: {path} was measured with another {' and '.join(other)}")
        # What failed is measured again.
        self.rows = {row.key: row for row in rows if not row.error}

    def keep(self, rows: list[Row]) -> None:
        self.rows.update({row.key: row for row in rows})
        if self.path is not None:
            with self.path.open("a") as file:
                file.writelines(json.dumps(row.to_json()) + "\n" for row in rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="environment: ZONDA_LIB (dist/lib), BENCH_MEMORY (/dev/shm). Exit status: 0 done, "
        "1 an engine failed or gave wrong values (times never decide), 2 wrong usage.",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="two sizes, fewer stacks and rounds")
    form.add_argument("--brief", action="store_true",
                      help="8, 64 and 512 MB with fewer stacks and rounds")
    parser.add_argument("--resume", type=Path, metavar="FILE",
                        help="keep each row in FILE when it is measured; measure only what it lacks")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="N",
                        help="begin no new row after so many minutes (for --resume)")
    parser.add_argument("--list", action="store_true",
                        help="say what would be measured, and what FILE has already")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    parser.add_argument("--sizes", default=",".join(SIZES), help=f"some of {','.join(SIZES)}")
    parser.add_argument("--paces", default=",".join(PACES), help="some of cached,throttled")
    parser.add_argument("--rounds", type=int, help="rounds of every size")
    parser.add_argument("--stacks", help="stacks beside the default, with blanks between them")
    parser.add_argument("--folder", type=Path, help="where the files go (BENCH_MEMORY)")
    parser.add_argument("--all", action="store_true", help="the times of every stack, too")
    parser.add_argument(
        "--record", action=argparse.BooleanOptionalAction,
        help="write bench/record (else only if everything was run)",
    )
    options = parser.parse_args()
    options.sizes = options.sizes.split(",")
    if not set(options.sizes) <= set(SIZES):
        parser.error(f"--sizes: some of {','.join(SIZES)}")
    options.paces = options.paces.split(",")
    if not set(options.paces) <= set(PACES):
        parser.error(f"--paces: some of {','.join(PACES)}")
    try:
        re.compile(options.only)
    except re.error as why:
        parser.error(f"--only: {why}")
    return options


def main() -> int:
    options = arguments()
    stacks = STACKS if options.stacks is None else [DEFAULT, *options.stacks.split()]
    if (options.quick or options.brief) and options.stacks is None:
        stacks = [s for s in stacks if s not in LEFT_OUT]
    stacks = [*stacks, AGAIN]
    form = 2 if options.quick else 3 if options.brief else 1
    jobs = []
    for size in options.sizes:
        rounds = options.rounds or SIZES[size][form]
        for pace in options.paces:
            # On a slow device times differ less from run to run, and each takes longer.
            often = rounds if pace == "cached" or options.rounds else (rounds + 2) // 3
            for family in FAMILIES if rounds else []:
                rows = [Row(family, size, pace, op) for op in ("write", "read")]
                jobs.append((often, [r for r in rows if re.search(options.only, r.name)]))
    jobs = [job for job in jobs if job[1]]

    bin_dir = ROOT / "out" / "bench-bin"
    gcc = harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        return 1
    host = harness.machine()
    started = datetime.datetime.now(datetime.UTC)
    rounds = {size: options.rounds or SIZES[size][form] for size in SIZES}
    what = {"machine": host["cpu"], "libraries": harness.identity(libs), "stacks": stacks,
            "rounds": rounds}
    progress = Progress(options.resume, what)
    wanted = [row for _, some in jobs for row in some]
    if options.list:
        for row in wanted:
            print("measured" if row.key in progress.rows else "lacking ", row.name)
        return 0

    parent = options.folder or Path(os.environ.get("BENCH_MEMORY", "/dev/shm"))
    folder = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=parent))
    begin = time.monotonic()
    try:
        for number, (rounds, rows) in enumerate(jobs):
            rows = [row for row in rows if row.key not in progress.rows]
            if not rows:
                continue
            if time.monotonic() - begin > 60 * options.minutes:
                break
            if sys.stderr.isatty():
                text = f"{100 * number // len(jobs):3d} %  {rows[0].name}"
                print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
            measure(rows, stacks, rounds, bin_dir, libs, folder)
            progress.keep(rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)

    rows = [progress.rows[row.key] for row in wanted if row.key in progress.rows]
    print(harness.heading(host, gcc, libs, started, "warm"))
    print(f"stacks: {' '.join(stacks)}")
    print(f"least of the rounds; slowest means slowest by more than {DEAD_HEAT} x the best\n")
    lines = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in rows)]
    print("\n".join("| " + " | ".join(cells) + " |" for cells in lines))
    if options.all:
        for row in rows:
            times = ", ".join(f"{s} {1e3 * t:.3g}" for s, t in row.least().items())
            print(f"\n{row.name} (ms): {times}", end="")
        print()
    good = [row for row in rows if not row.error]
    ran = sorted({row.ran[DEFAULT] for row in good})
    flagged = sum(row.verdict() != "ok" for row in good)
    print(f"\ndefault was {' and '.join(ran)}; {flagged} of {len(good)} rows flagged")
    if len(rows) < len(wanted):
        print(f"{len(wanted) - len(rows)} rows are still to be measured")
    complete = not (options.quick or options.brief or options.only or options.stacks)
    complete = complete and len(rows) == 2 * len(FAMILIES) * len(SIZES) * len(PACES)
    if options.record or (options.record is None and complete):
        facts = {"gcc": gcc, "libraries": harness.identity(libs), "most": MOST}
        path = harness.keep(host, started, "-stacks", facts, [r.to_json() for r in rows])
        print(f"raw figures: {path}")
    return 1 if len(good) < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
