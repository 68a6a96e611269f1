#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Write-behind (ZONDA_ASYNC) against the same library without it, and when things go wrong.

    tests/async/run.py                  all
    tests/async/run.py --only REGEX     what has such a name
    tests/async/run.py --quick          a twelfth of the random lives, and every fourth scene
    tests/async/run.py --long           ten times as many random lives, each twice as long; 40 kills for each format
    tests/async/run.py --seed N         other lives
    tests/async/run.py --list

equal    random lives of files (life.c): what is printed, and the files, byte by byte
full     the device takes nothing from the n-th write on, for every n;  once: the n-th fails, the program goes on
others   ends, threads, fork, signals, budgets, settings (scenes.py, faults.py): the names say what

Everything goes through the public C interface, in processes of their own; the distribution's library and
h5py read what is left. ASYNC_SELF=1 runs it on a library that has no write-behind and leaves out what needs
some: the tests of the tests. tests/rig/places.py has the settings.
"""
import os
from concurrent.futures import ThreadPoolExecutor

import bed
import equal
import faults
import scenes
from bed import rig


def main():
    p = rig.parser(__doc__, seed=1)
    p.add_argument("--list", action="store_true")
    options, counts = rig.arguments(p), rig.Counts()
    # Most scenes wait for a slow device.
    jobs = 2 * (os.cpu_count() or 1)
    with rig.scratch() as scratch:
        world = bed.World(scratch, options.by(2, 6, 40))
        if not world.behind and "ASYNC_SELF" not in os.environ:
            raise rig.Setup("%s has no nc_zonda_async_status" % rig.LIBDIR)
        if not world.h5py:
            counts.skip("h5py", "no Python that has it")
        if not world.behind:
            counts.skip("what needs write-behind", "%s has none" % rig.LIBDIR)
        if not scenes.has_helper(world):
            counts.skip("helper", "not built, by what the library says")
        if options.list:
            print("\n".join(name for name, _ in all_scenes(world)))
            return 0
        worlds = [bed.World(world.scratch / ("part-%d" % k), world.kills, like=world) for k in range(jobs)]
        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(part_of, w, options, k, jobs, counts) for k, w in enumerate(worlds)]:
                done.result()
        # Their names are known only when they run: --only with a name of these runs all.
        if not options.only or options.only.startswith("equal"):
            lives, steps = options.by((20, 120), (240, 120), (2400, 240))
            for name, why in equal.tests(world, options, range(options.seed, options.seed + lives), steps, jobs):
                counts.check(name, why)
    return counts


def all_scenes(world):
    for part in [faults.scenes, *(scenes.PARTS if world.behind else ())]:
        yield from part(world)


def part_of(world, options, first, step, counts):
    """Every so many-th of the scenes that were asked for, one after another."""
    chosen = [(name, test) for name, test in all_scenes(world) if options.wants(name)]
    if not options.only:
        chosen = chosen[::options.by(4, 1, 1)]
    for name, test in chosen[first::step]:
        world.clear(failed=counts.attempt(name, test) is None)
    world.clear(failed=True)


if __name__ == "__main__":
    rig.main(main)
