#!/usr/bin/env python3
"""Small changes of large netCDF-4 files: every case on several libraries in turns, beside what the
machine allows.

    edits.py                   everything; a markdown table and a record
    edits.py --quick           smaller files; not recorded
    edits.py --only REGEX      by the name of the case
    edits.py --list

Peers: the distribution's netCDF-C (`reference`), Zonda and h5py (from the Python that ZONDA_PYTHON
names). The reference reads what each left: what it does not find right has no time. See README.md.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import BENCH, REFERENCE, ROOT, Failed
from writes import line_of, ratios, with_spread

MOST_SECONDS = 900


@dataclass
class Case:
    """One change of one file."""

    name: str
    op: str
    make: list  # what makes the file: a library's name, and arguments
    n: int
    quick_n: int


CHUNKS = ["--make", "chunks"]
CASES = [
    Case("append 1 record, 10^5 chunks, by netCDF-C", "append", [REFERENCE, *CHUNKS], 100_000, 10_000),
    Case("append 1 record, 10^5 chunks, by h5py, earliest", "append",
         ["h5py", *CHUNKS, "--libver", "earliest"], 100_000, 10_000),
    # The newest that the distribution's HDF5 1.10 reads.
    Case("append 1 record, 10^5 chunks, by h5py, latest (v110)", "append",
         ["h5py", *CHUNKS, "--libver", "v110"], 100_000, 10_000),
    Case("change 1 attribute, 10 GB (sparse)", "attribute", [REFERENCE, "--make", "sparse"], 1, 1),
    Case("add 1 variable to 10,000", "variable", [REFERENCE, "--make", "variables"], 10_000, 1_000),
]


class Runner:
    def __init__(self, bin_dir: Path, libs: dict, python: str, folder: Path, repeat: int, quick: bool):
        self.bin_dir, self.libs, self.python = bin_dir, libs, python
        self.repeat, self.quick = repeat, quick
        self.base, self.file, self.list = folder / "base.nc", folder / "bench.nc", folder / "list"

    def engine(self, name: str, lib: str, args: list) -> dict:
        env = self.libs[lib]["env"]
        (line,) = harness.engine(self.bin_dir, name, [str(a) for a in args], env, MOST_SECONDS)
        return line

    def by(self, peer: str, args: list) -> dict:
        """One result line of `edit4`, or of what does the same with h5py."""
        if peer != "h5py":
            return self.engine("edit4", peer, args)
        command = [self.python, BENCH / "engines" / "h5py_edit.py", *map(str, args)]
        out = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
        if out.returncode != 0:
            raise Failed(f"h5py: {(out.stderr.strip().splitlines() or ['no message'])[-1]}")
        return json.loads(out.stdout)

    def anew(self) -> None:
        """The file as it was made, in the page cache; holes stay holes."""
        self.file.unlink(missing_ok=True)
        subprocess.run(["cp", "--sparse=auto", self.base, self.file], check=True)

    def trace(self, case: Case) -> list[str]:
        """What Zonda reads and writes of the file, as `replay` wants it."""
        self.anew()
        trace = self.list.with_suffix(".trace")
        trace.unlink(missing_ok=True)
        env = {**self.libs["zonda"]["env"], "ZONDA_IO": f"cache,event:{trace},file"}
        harness.engine(self.bin_dir, "edit4", ["--file", str(self.file), "--op", case.op], env, MOST_SECONDS)
        steps = []
        for line in trace.read_text().splitlines():
            words = line.split()
            if not line.startswith("#") and len(words) > 4 and words[2] in ("read", "readv", "write", "writev"):
                steps.append(f"{words[2][0]} {words[3]} {words[4]}")
        return steps

    def measure(self, case: Case) -> dict:
        """All rounds of one case; round 0 warms up."""
        row = {"name": case.name, "seconds": {}, "errors": {}, "limit": [], "grown": {}, "steps": 0, "written": 0}
        maker, *args = case.make
        self.base.unlink(missing_ok=True)
        self.by(maker, ["--file", self.base, "--n", self.quick and case.quick_n or case.n, *args])
        row["bytes"] = self.base.stat().st_size
        peers = [*self.libs, *(["h5py"] if self.python else [])]
        check = ["--file", self.file, "--op", case.op, "--check", "1"]
        digests = {}
        for number in range(self.repeat + 1):
            for peer in peers if number % 2 == 0 else reversed(peers):
                if peer in row["errors"]:
                    continue
                try:
                    self.anew()
                    line = self.by(peer, ["--file", self.file, "--op", case.op])
                    row["grown"][peer] = self.file.stat().st_size - row["bytes"]
                    digests.setdefault(peer, set()).add(self.engine("edit4", REFERENCE, check)["digest"])
                except Failed as why:
                    row["errors"][peer] = str(why)[:150]
                    continue
                if number > 0:
                    row["seconds"].setdefault(peer, []).append(line["seconds"])
            if "zonda" not in self.libs or "zonda" in row["errors"]:
                continue
            if number == 0:
                self.list.write_text("\n".join(self.trace(case)) + "\n")
            self.anew()
            line = self.engine("replay", REFERENCE, ["--file", self.file, "--list", self.list])
            row["steps"], row["written"] = line["params"]["steps"], line["params"]["written"]
            if number > 0:
                row["limit"].append(line["seconds"])
        # The reference may be unable to do it; whoever can must agree.
        right = digests.get(REFERENCE) or digests.get("h5py", set())
        for peer in digests:
            if len(right) != 1 or digests[peer] != right:
                row["errors"].setdefault(peer, "wrong digest")
        for peer in row["errors"]:
            row["seconds"].pop(peer, None)
        return row


def table(rows: list[dict], names: list[str]) -> str:
    head = ["case", "MB", *(f"{n}, ms" for n in names), "limit, ms", "reference / zonda", "zonda / limit",
            "reads and writes", "bytes written", "bytes the file grows by, " + ", ".join(names)]
    lines = [line_of(head), line_of(["---"] * len(head))]
    for row in rows:
        seconds = row["seconds"]
        cells = [row["name"], f"{row['bytes'] / 1e6:.4g}"]
        cells += [row["errors"].get(n) or with_spread(seconds.get(n), 1e3) for n in names]
        cells.append(with_spread(row["limit"], 1e3))
        cells.append(with_spread(ratios(seconds.get(REFERENCE), seconds.get("zonda"))))
        cells.append(with_spread(ratios(seconds.get("zonda"), row["limit"])))
        cells += [str(row["steps"] or ""), str(row["written"] or "")]
        cells.append(", ".join(str(row["grown"].get(n, "-")) for n in names))
        lines.append(line_of(cells))
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="environment: ZONDA_LIB (dist/lib), "
                                "ZONDA_PYTHON, NETCDF_LIBS, BENCH_MEMORY (/dev/shm). Exit status: 0 done, 1 Zonda "
                                "failed or left wrong values (times never decide), 2 wrong usage.")
    p.add_argument("--only", default=".", metavar="REGEX", help="cases whose name matches")
    p.add_argument("--quick", action="store_true", help="smaller files; not recorded")
    p.add_argument("--list", action="store_true", help="the names of the cases")
    p.add_argument("--repeat", type=int, default=5, help="rounds that count")
    p.add_argument("--no-record", action="store_true")
    return p.parse_args()


def main() -> int:
    options = arguments()
    chosen = [case for case in CASES if re.search(options.only, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    harness.ENGINES.update({
        "edit4": ("bench/engines/edit4.c", ["-std=c99", "-O2", "-lnetcdf"]),
        "replay": ("bench/engines/replay.c", ["-std=c99", "-O2"]),
    })
    bin_dir = ROOT / "out" / "bench-bin"
    gcc = harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    python = os.environ.get("ZONDA_PYTHON", str(ROOT / "out" / "venv" / "bin" / "python"))
    if not Path(python).exists() or subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode:
        print(f"{python} has no h5py: left out, with the files that it makes", file=sys.stderr)
        python, chosen = "", [case for case in chosen if case.make[0] != "h5py"]
    started, host = datetime.datetime.now(datetime.UTC), harness.machine()
    heading = harness.heading(host, gcc, libs, started, "files in memory")
    print(heading, "\n", file=sys.stderr)
    folder = Path(tempfile.mkdtemp(prefix="zonda-bench-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")))
    runner, rows = Runner(bin_dir, libs, python, folder, options.repeat, options.quick), []
    try:
        for case in chosen:
            try:
                rows.append(runner.measure(case))
            except Failed as why:
                print(f"{case.name}: its file cannot be made here: {why}", file=sys.stderr)
                continue
            show = {n: f"{statistics.median(s) * 1e3:.3g}" for n, s in rows[-1]["seconds"].items() if s}
            print(f"{case.name}: {show | rows[-1]['errors']} ms", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    names = [*libs, *(["h5py"] if python else [])]
    print(heading, table(rows, names), sep="\n\n")
    if not options.no_record and not options.quick:
        facts = {"gcc": gcc, "cache": "memory", "repeat": options.repeat, "libraries": harness.identity(libs)}
        print(f"\nraw figures: {harness.keep(host, started, '-edits', facts, rows)}")
    return 1 if any("zonda" in row["errors"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
