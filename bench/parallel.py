#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several ranks on one file: Zonda beside Debian's parallel build, and beside plain writes.

    bench/parallel.py [--ranks 1,4,8] [--rounds 5] [--mb 122] [--only REGEX]

One program, built for Debian's libnetcdf_pnetcdf.so.19 with Open MPI, runs on each library in turns: that of Debian (netCDF-C 4.9.0 over
HDF5 and PnetCDF), Zonda's stub of the same name, and without a library (pwrite: whole rows, which is the limit, and the runs that each rank
has where columns are divided). `hidden-*` is the time of puts between which ranks sleep, without and with write-behind. `tests/par/debian.py` gets Debian's. Times are those of rank 0, from
before the file is created until it is closed on all ranks. Reports MB/s (or ms), medians and spreads, and decides nothing.

environment: ZONDA_LIB (dist/lib), ZONDA_SCRATCH (out/bench/parallel)
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "tests" / "par")]
import debian  # noqa: E402
import launch  # noqa: E402
import rig  # noqa: E402

KINDS = ("chunks", "contiguous", "records")
HIDDEN = (*(f"hidden-{how}{kind}" for how in ("", "columns-") for kind in KINDS), "hidden-deflate", "hidden-deflate-shared")
WRITES = (*HIDDEN, *KINDS, "deflate", "deflate-shared", "deflate-alone", *(f"{how}-{kind}" for how in ("columns", "blocks") for kind in KINDS))
# What no other library has: Debian's answers NC_EINVAL. Beside it runs what all ranks do together.
BESIDE = {"deflate-alone": "deflate"}


def build(folder, libraries):
    """The program, for Debian's library."""
    mpi = next(mpi for mpi in launch.known() if mpi.name == "openmpi")
    if not mpi.there_is():
        raise rig.Skip("no Open MPI here")
    program = folder / "parallel"
    zonda = Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib")).resolve()
    source = ROOT / "bench" / "engines" / "parallel.c"
    include = zonda / "netcdf" / "mpi" / "include"
    rig.must([mpi.compiler, "-O2", "-I", include if include.is_dir() else zonda.parent / "include", source, "-o", program,
              f"-L{libraries}", "-l:libnetcdf_pnetcdf.so.19", "-Wl,--allow-shlib-undefined"], launch.environment(mpi, libraries))  # fmt: skip
    return mpi, program, zonda


def one(mpi, program, ranks, words, library, **env):
    """Seconds of one run."""
    command = launch.command(mpi, ranks, [program, *words])
    done = subprocess.run(command, env=launch.environment(mpi, library, **env), capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit("%s failed on %s: %s" % (words, library, done.stderr[-2000:]))
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", default="1,4,8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", type=float, default=122)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    scratch = Path(os.environ.get("ZONDA_SCRATCH", ROOT / "out" / "bench" / "parallel"))
    scratch.mkdir(parents=True, exist_ok=True)
    theirs = debian.get()
    mpi, program, zonda = build(scratch, theirs)
    libraries = {"Debian": theirs, "Zonda": zonda}
    file = scratch / "data.nc"
    cases = [(workload, ranks) for workload in WRITES for ranks in map(int, options.ranks.split(","))]
    cases += [("open", ranks) for ranks in map(int, options.ranks.split(","))]
    print("| workload | ranks | unit | limit | own runs by pwrite | Debian | Zonda | Zonda / Debian | Zonda serial | Zonda, ZONDA_ASYNC=on |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for workload, ranks in cases:
        if not re.search(options.only, f"{workload} {ranks}"):
            continue
        if workload == "open":
            one(mpi, program, 1, ["many", file, 0], theirs)
        is_hidden = workload.startswith("hidden-")
        seconds = {name: [] for name in (*libraries, "limit", "runs", "serial", "queued")}
        for turn in range(options.rounds + 1):
            found = {}
            for name, library in (*libraries.items(), ("limit", zonda), ("runs", zonda), ("serial", zonda), ("queued", zonda)):
                if is_hidden != (name == "queued") and name not in libraries:
                    continue
                alike = BESIDE.get(workload, workload)
                how, _, kind = alike.rpartition("-") if alike.startswith(("columns", "blocks")) else ("", "", alike)
                # The limit of any division is that of rows; "runs" are plain writes of what each rank has.
                words = {"limit": "raw", "runs": f"{how}-raw", "serial": f"serial-{kind}", "Debian": alike}.get(name, workload)
                if (workload == "open" and name not in libraries) or (name == "serial" and ranks > 1) or (name == "runs" and not how):
                    continue
                if workload != "open":
                    file.unlink(missing_ok=True)
                env = {"ZONDA_ASYNC": "on"} if name == "queued" else {}
                found[name] = one(mpi, program, ranks, [words, file, options.mb], library, **env)
            if turn:  # the first round warms up
                for name, value in found.items():
                    seconds[name].append(value)

        def shown(name):
            values = seconds[name]
            if not values:
                return ""
            figures = [value * 1e3 for value in values] if workload == "open" else [options.mb / value for value in values]
            return "%.0f (%.0f to %.0f)" % (statistics.median(figures), min(figures), max(figures))

        ratio = statistics.median(theirs / ours for theirs, ours in zip(seconds["Debian"], seconds["Zonda"]))
        unit = "ms" if workload == "open" else "MB/s"
        cells = [workload, ranks, unit, *map(shown, ("limit", "runs", "Debian", "Zonda")), "%.1f" % ratio, shown("serial"), shown("queued")]
        print("| %s |" % " | ".join(map(str, cells)), flush=True)
    shutil.rmtree(file, ignore_errors=True)
    file.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        main()
    except rig.Skip as why:
        print("skip: %s" % why)
