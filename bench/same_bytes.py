#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether two builds of Zonda write the same bytes.

    NETCDF_LIBS=before=DIR same_bytes.py    all cases of writes.py, files of the classic formats and a redef, by the build in DIR and the one in dist/lib
    --only REGEX                            cases with such a name
    --threads N,N                           ZONDA_THREADS (1,2): all files of a case have to be equal, whatever the number

Nothing is timed. Each difference is a line with the first byte that differs. Exit status: 0 all files are equal, 1 some differ or a program failed, 2 wrong usage.
"""

import argparse
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import harness
import writes
from harness import REFERENCE, Failed

BUILDS = ("before", "zonda")
FILE = "{file}"


@dataclass
class Written:
    """A file, by programs one after the other: the first by netCDF-C where it makes what the second changes."""

    name: str
    programs: list[tuple[str, list[str]]]
    made_by_reference: bool = False


def every():
    for case in writes.cases():
        yield Written(case.name, [(case.engine, [*case.args, "--file", FILE])])
    for format in ("1", "2", "5"):
        for order in ("sorted", "random"):
            args = ["--phase", "write", "--format", format, "--order", order, "--steps", "2", FILE]
            yield Written(f"history of CDF-{format}, {order}", [("history_model", args)])
    yield Written("redef whose 20 MB move", [("redef", [*args, "--file", FILE]) for args in (["--op", "make", "--mb", "20"], ["--op", "grow"])], True)


def first_difference(a: Path, b: Path) -> int | None:
    """The first byte that differs, or where the shorter one ends; None for equal files."""
    at = 0
    with a.open("rb") as one, b.open("rb") as other:
        while True:
            left, right = one.read(1 << 20), other.read(1 << 20)
            if left != right:
                both = zip(left, right)
                return at + next((i for i, (x, y) in enumerate(both) if x != y), min(len(left), len(right)))
            if not left:
                return None
            at += len(left)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--threads", default="1,2", metavar="N,N")
    options = p.parse_args()
    bin_dir = harness.ROOT / "out" / "bench-bin"
    writes.build(bin_dir)
    libs = harness.libraries(bin_dir)
    if not set(BUILDS) <= set(libs):
        print("same_bytes: NETCDF_LIBS=before=DIR names the other build; make build makes dist/lib", file=sys.stderr)
        return 2
    different = n = 0
    with tempfile.TemporaryDirectory(prefix="zonda-bytes-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        first, other = Path(folder, "first.nc"), Path(folder, "other.nc")
        for case in every():
            if not re.search(options.only, case.name) or not (bin_dir / case.programs[0][0]).exists():
                continue
            n += 1
            said = "equal"
            first.unlink(missing_ok=True)
            try:
                for build in BUILDS:
                    for threads in options.threads.split(","):
                        path = other if first.exists() else first
                        path.unlink(missing_ok=True)
                        for number, (program, args) in enumerate(case.programs):
                            maker = REFERENCE if case.made_by_reference and number == 0 else build
                            env = {**libs[maker]["env"], "ZONDA_THREADS": threads}
                            harness.engine(bin_dir, program, [str(path) if a == FILE else str(a) for a in args], env, writes.MOST_SECONDS)
                        at = first_difference(first, path) if path == other else None
                        if at is not None:
                            said = f"{build} with {threads} threads differs from {BUILDS[0]} at byte {at}"
            except Failed as why:
                said = str(why)[:200]
            different += said != "equal"
            print(f"{case.name}: {said}", flush=True)
    print(f"{n} files, {different} differ")
    return 1 if different or not n else 0


if __name__ == "__main__":
    sys.exit(main())
