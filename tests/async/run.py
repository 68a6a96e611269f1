#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Write-behind (ZONDA_ASYNC) against the same library without it, and when things go wrong.

    tests/async/run.py                  all
    tests/async/run.py --only REGEX     what has such a name
    tests/async/run.py --long           ten times as many random lives, each twice as long; 40 kills for each format
    tests/async/run.py --seed N         other lives
    tests/async/run.py --list

equal    random lives of files (life.c): what is printed, and the files, byte by byte
full     the device takes nothing from the n-th write on, for every n;  once: the n-th fails, the program goes on
others   ends, threads, fork, signals, budgets, settings (scenes.py, faults.py): the names say what

Everything goes through the public C interface, in processes of their own. ZONDA_LIBDIR (dist/lib) is the
library under test; the distribution's library and h5py (ZONDA_PYTHON, out/venv) read what is left.
ASYNC_SELF=1 runs it on a library that has no write-behind and leaves out what needs some: the tests
of the tests. ZONDA_SCRATCH (a temporary folder) takes the files.
"""
import argparse
import os
import re
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import bed
import equal
import faults
import scenes


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default="", help="a regular expression")
    p.add_argument("--long", action="store_true")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    only = re.compile(a.only)
    lib = os.environ.get("ZONDA_LIBDIR", bed.ROOT / "dist" / "lib")
    # Most scenes wait for a slow device.
    jobs = 2 * (os.cpu_count() or 1)
    results = Results()
    with tempfile.TemporaryDirectory(dir=os.environ.get("ZONDA_SCRATCH")) as scratch:
        world = bed.World(scratch, lib, 40 if a.long else 6)
        if not world.behind and "ASYNC_SELF" not in os.environ:
            print("FAIL %s has no nc_zonda_async_status" % world.lib)
            print("0 passed, 1 failed")
            return 1
        if not world.h5py:
            print("skip h5py: %s has none" % world.python)
        if not world.behind:
            print("skip what needs write-behind: %s has none" % world.lib)
        if not scenes.has_helper(world):
            print("skip helper: not built, by what the library says")
        if a.list:
            print("\n".join(name for name, _ in all_scenes(world)))
            return 0
        worlds = [bed.World(world.scratch / ("part-%d" % k), lib, world.kills, like=world) for k in range(jobs)]
        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(part_of, w, only, k, jobs, results) for k, w in enumerate(worlds)]:
                done.result()
        # Their names are known only when they run: --only with a name of these runs all.
        if not a.only or a.only.startswith("equal"):
            lives, steps = (2400, 240) if a.long else (240, 120)
            for name, why in equal.tests(world, only, range(a.seed, a.seed + lives), steps, jobs):
                results.add(name, why)
    print("%d passed, %d failed" % (results.passed, results.failed))
    return 1 if results.failed or not results.passed else 0


class Results:
    def __init__(self):
        self.passed, self.failed, self.lock = 0, 0, threading.Lock()

    def add(self, name, why):
        with self.lock:
            if why is None:
                self.passed += 1
            else:
                self.failed += 1
                print("FAIL %s: %s" % (name, why), flush=True)


def all_scenes(world):
    for part in [faults.scenes, *(scenes.PARTS if world.behind else ())]:
        yield from part(world)


def part_of(world, only, first, step, results):
    """Every so many-th of the scenes that were asked for, one after another."""
    chosen = [(name, test) for name, test in all_scenes(world) if only.search(name)]
    for name, test in chosen[first::step]:
        why = None
        try:
            test()
        except bed.Wrong as wrong:
            why = wrong
        world.clear(failed=why is not None)
        results.add(name, why)
    world.clear(failed=True)


if __name__ == "__main__":
    sys.exit(main())
