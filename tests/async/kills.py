#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""SIGKILL after every k-th put of random programs, with a helper process: every put that was accepted is there.

    tests/async/kills.py [--quick] [--long] [--seed N] [--programs N] [--only FORMAT] [--every K]

A program (kills.c) defines and puts by its seed: every type of every format, ranks 0 to 11, one variable to 48,
values from one element to some megabytes, strides, conversions, groups, definitions between puts. After put k it kills
itself; the helper does the rest. The same program with the distribution's library puts as much and closes (with Zonda's own
where that library cannot read what it wrote). ncdump of the distribution, and h5py for netCDF-4, read both files, which must say the same.

Files of a failure are kept in out/async/kills. tests/rig/places.py has the settings.
"""
import os
import random
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

rig.needs("h5py", "numpy")
import h5py  # noqa: E402
import numpy  # noqa: E402

FORMATS = "1254c"
# Only hangs are bounded.
MOST_SECONDS = 900
# Budgets, and storage that lets puts run ahead.
SETTINGS = [("helper", None), ("helper", "cache,throttle:30M:20us,file"), ("helper,mem=1M", "cache,throttle:30M:20us,file"),
            ("helper,mem=64k", None), ("helper,mem=200k,threads=1", "cache,throttle:50M,file")]


def run(command, library=None, **env):
    done = rig.run(command, rig.environment(library, **env), text=False, seconds=MOST_SECONDS)
    return done.returncode, done.stdout, done.stderr


def plain(value):
    """Values of h5py in a form that can be compared."""
    if isinstance(value, numpy.ndarray) and value.dtype.kind == "O":
        return [plain(item) for item in value.ravel()]
    if isinstance(value, numpy.ndarray):
        return (value.shape, value.tobytes())
    return value


def contents(path):
    found = {}
    with h5py.File(path, "r", locking=False) as file:
        def visit(name, thing):
            if isinstance(thing, h5py.Dataset):
                found[name] = (thing.shape, str(thing.dtype), plain(thing[()]))
        file.visititems(visit)
    return found


def dump(path):
    """Its exit code, what it shows and what it complains of, by the distribution's ncdump."""
    return run([rig.tool("ncdump"), "-p", "9,17", "-n", "x", path])


def compare(expected, shown, got, is_hdf5):
    code, out, err = dump(got)
    if code:
        raise Wrong("ncdump: %s: %r" % (got, err[-300:]))
    if shown != out:
        one, other = (text.decode(errors="replace").splitlines() for text in (shown, out))
        at = next((k for k, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
        raise Wrong("line %d of ncdump: %r, and not %r" % (at + 1, other[at:at + 2], one[at:at + 2]))
    if is_hdf5:
        one, other = contents(expected), contents(got)
        different = [name for name in one if one[name] != other.get(name)]
        if different or len(one) != len(other):
            raise Wrong("h5py: %s" % (different or sorted(other)))


def case(program, scratch, fmt, seed, n_puts, setting):
    """A program that is killed, and one that is not: both leave the same."""
    expected, got = scratch / "expected.nc", scratch / "got.nc"
    for old in list(scratch.glob("*.nc*")) + list(scratch.glob(".*nc*")):
        old.unlink()
    how, storage = setting
    code, _, err = run([program, expected, fmt, seed, n_puts, "close"], rig.reference())
    if code:
        raise Wrong("the reference ends with %d: %r" % (code, err[-300:]))
    code, shown, _ = dump(expected)
    if code:
        # What 4.9.0 makes of strings that nobody put it cannot read itself.
        code, _, err = run([program, expected, fmt, seed, n_puts, "close"], rig.LIBDIR, ZONDA_ASYNC="off")
        if code:
            raise Wrong("without a helper it ends with %d: %r" % (code, err[-300:]))
        code, shown, err = dump(expected)
        if code:
            raise Wrong("ncdump: %s: %r" % (expected, err[-300:]))
    # Its standard error ends when the helper does.
    code, _, err = run([program, got, fmt, seed, n_puts, "kill"], rig.LIBDIR, ZONDA_ASYNC=how, ZONDA_IO=storage)
    if code != -9:
        raise Wrong("ends with %d: %r" % (code, err[-300:]))
    if b"lost" in err or b"not `off`" in err:
        raise Wrong("says %r" % err[-300:])
    compare(expected, shown, got, fmt in "4c")


def main():
    p = rig.parser(__doc__, seed=1, only=None)
    p.add_argument("--programs", type=int, help="of all formats together")
    p.add_argument("--every", type=int, help="kills after every so many puts")
    p.add_argument("--only", default=FORMATS, metavar="FORMATS")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="kills at a time")
    a, counts = rig.arguments(p), rig.Counts()
    n_programs, every = a.programs or a.by(5, 15, 400), a.every or a.by(16, 8, 2)
    if not rig.reference() or rig.missing("ncdump"):
        raise rig.Skip("the distribution's library is not installed")
    begin = time.monotonic()
    with rig.scratch() as scratch:
        program = rig.compile_c(scratch / "kills", HERE / "kills.c")
        kills = []
        for k in range(n_programs):
            fmt, seed = a.only[k % len(a.only)], a.seed * 100_000 + k
            n_all = int(run([program, "x", fmt, seed, 0, "-"], rig.LIBDIR)[1])
            chance = random.Random(seed)
            for n_puts in range(1 + chance.randrange(every), n_all + 1, every):
                kills.append((fmt, seed, n_puts, chance.choice(SETTINGS)))

        def some(first):
            """Every jobs-th kill, one after another, in a folder of their own."""
            folder = scratch / ("part-%d" % first)
            folder.mkdir()
            for kill in kills[first::a.jobs]:
                fmt, seed, n_puts, (how, storage) = kill
                files = "%s-%d-%d" % (fmt, seed, n_puts)
                name = "%s seed %d, %d puts, ZONDA_ASYNC=%s ZONDA_IO=%s (files in out/async/kills/%s)" % (fmt, seed, n_puts, how, storage, files)
                if not counts.attempt(name, case, program, folder, *kill):
                    for file in folder.glob("*.nc*"):
                        shutil.copy(file, rig.out("async", "kills", files))

        with ThreadPoolExecutor(a.jobs) as pool:
            list(pool.map(some, range(a.jobs)))
    print("%d programs (seeds from %d) killed %d times in %d s" % (n_programs, a.seed * 100_000, len(kills), time.monotonic() - begin))
    return counts


if __name__ == "__main__":
    rig.main(main)
