#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Crash tests, from outside: what a library has promised must be in the file whenever its process dies,
whenever the power fails, and whichever call meets a full disk.

    tests/crash/run.py                  samples, about two minutes on two cores
    tests/crash/run.py --quick          few states of the parts prefix and tools
    tests/crash/run.py --long           every state, 500 kills, every call made to fail
    tests/crash/run.py --only PATTERN   scenarios with PATTERN in SCENARIO/VERSION (4: netCDF-4)
    tests/crash/run.py --seed N         the random choices of an earlier run
    tests/crash/run.py --parts LIST     of prefix, power, sector, kill, faults, tools

CRASH_WRITER_LIB is the folder of another library to write with: that of the distribution shows what it
loses. Without a Python with h5py netCDF-4 states have two readers. States that fail are kept in
out/crash/failed. tests/rig/places.py has the other settings.
"""
import os
import time
from pathlib import Path

import faults
import kill
import lab
import replay
import tools
from lab import rig

HERE = Path(__file__).resolve().parent
PARTS = {"prefix": replay.prefixes, "power": replay.powers, "sector": replay.sectors, "kill": kill.run, "faults": faults.run, "tools": tools.run}


def arguments():
    """The options, with what follows from them."""
    parser = rig.parser(__doc__, parts={part: rig.QUICK if part in ("prefix", "tools") else rig.FULL for part in PARTS})
    parser.add_argument("--seed", type=int, help="of all random choices (printed; default: the time)")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="processes")
    parser.add_argument("--kills", type=int, help="how many (default 30, 500 with --long)")
    parser.add_argument("--bound", type=int, help="states of one run, beyond which they are sampled (default 150, 400 with --long)")
    parser.add_argument("--power-bound", type=int, help="random states of one run under ZONDA_SYNC=data (default 60, 150 with --long)")
    options = rig.arguments(parser)
    if options.seed is None:
        options.seed = int(time.time())
    options.kills = options.kills or options.by(10, 30, 500)
    options.power_bound = options.power_bound or options.by(30, 60, 150)
    options.bound = options.bound or options.by(30, 150, 400)
    # Recoveries of one run that are interrupted; one of so many states is written to again, is read by h5py.
    options.interrupted, options.go_on_every, options.h5py_every = options.by(1, 3, 6), options.by(15, 15, 5), options.by(4, 4, 1)
    options.recoveries = options.by(40, 40, 10**9)
    options.h5py = rig.python("h5py")
    options.recover_command = rig.run([lab.COMMAND, "recover", "--help"]).returncode == 0
    return options


def build():
    """The writer, what judges its files, and the shim."""
    def program(name, *sources, link="reference", flags=(), **how):
        rig.compile_c(rig.out("crash", "bin") / name, *(HERE / source for source in sources), link=link, flags=("-O2", *flags), **how)

    plan = ("plan.c", "scenes.c", "scenes4.c", "values.c")
    judge = ("check.c", "shows.c", "model.c", *plan)
    program("log_shim.so", "log_shim.c", "log_core.c", link=None, flags=("-fPIC", "-shared"), libraries=["-ldl"])
    program("writer", "writer.c", *plan, libraries=["-ldl"])
    program("check", *judge)
    program("check_plain", *judge, "plain.c")


def main():
    options, counts = arguments(), rig.Counts()
    rig.two_libraries()
    if not options.h5py:
        counts.skip("h5py", "no Python that has it, so netCDF-4 states have two readers")
    rig.out("crash", "failed", anew=True)
    build()
    for part in options.chosen():
        PARTS[part](options, counts)
    return counts


if __name__ == "__main__":
    rig.main(main)
