#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""SIGKILL after every k-th put of random programs, with a helper process: every put that was accepted is there.

    tests/async/kills.py [--long] [--seed N] [--programs N] [--only FORMAT] [--every K]

A program (kills.c) defines and puts by its seed: every type of every format, ranks 0 to 11, one variable to 48,
values from one element to some megabytes, strides, conversions, groups, definitions between puts. After put k it kills
itself; the helper does the rest. The same program with the distribution's library puts as much and closes (with Zonda's own
where that library cannot read what it wrote). ncdump of the distribution, and h5py for netCDF-4, read both files, which must say the same.

To be run by a Python with h5py (out/venv). ZONDA_LIBDIR (dist/lib) is the library under test. Files of a failure
are kept in out/async/kills.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FORMATS = "1254c"
# Only hangs are bounded.
MOST_SECONDS = 900
# Budgets, and storage that lets puts run ahead.
SETTINGS = [("helper", None), ("helper", "cache,throttle:30M:20us,file"), ("helper,mem=1M", "cache,throttle:30M:20us,file"),
            ("helper,mem=64k", None), ("helper,mem=200k,threads=1", "cache,throttle:50M,file")]


class Wrong(Exception):
    """Not what was promised; the text says what."""


def compile_program(scratch, lib):
    program = scratch / "kills"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", lib.parent / "include", HERE / "kills.c",
                    "-o", program, "-L", lib, "-l:libnetcdf.so.19"], check=True)
    return program


def reference():
    """The folder of the distribution's library, which the linker finds by itself."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        if "libnetcdf.so.19 " in line:
            return Path(line.split("=>")[1].strip()).parent
    return None


def run(command, **env):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **env}, capture_output=True, timeout=MOST_SECONDS)
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
    return run(["ncdump", "-p", "9,17", "-n", "x", path])


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


def case(world, fmt, seed, n_puts, setting):
    program, lib, distribution, scratch = world
    expected, got = scratch / "expected.nc", scratch / "got.nc"
    for old in list(scratch.glob("*.nc*")) + list(scratch.glob(".*nc*")):
        old.unlink()
    how, storage = setting
    env = {"ZONDA_IO": storage} if storage else {}
    code, _, err = run([program, expected, fmt, seed, n_puts, "close"], LD_LIBRARY_PATH=str(distribution))
    if code:
        raise Wrong("the reference ends with %d: %r" % (code, err[-300:]))
    code, shown, _ = dump(expected)
    if code:
        # What 4.9.0 makes of strings that nobody put it cannot read itself.
        code, _, err = run([program, expected, fmt, seed, n_puts, "close"], LD_LIBRARY_PATH=str(lib), ZONDA_ASYNC="off")
        if code:
            raise Wrong("without a helper it ends with %d: %r" % (code, err[-300:]))
        code, shown, err = dump(expected)
        if code:
            raise Wrong("ncdump: %s: %r" % (expected, err[-300:]))
    # Its standard error ends when the helper does.
    code, _, err = run([program, got, fmt, seed, n_puts, "kill"], LD_LIBRARY_PATH=str(lib), ZONDA_ASYNC=how, **env)
    if code != -9:
        raise Wrong("ends with %d: %r" % (code, err[-300:]))
    if b"lost" in err or b"not `off`" in err:
        raise Wrong("says %r" % err[-300:])
    compare(expected, shown, got, fmt in "4c")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--long", action="store_true", help="400 programs, a kill after every second put")
    p.add_argument("--programs", type=int, help="of all formats together")
    p.add_argument("--every", type=int, help="kills after every so many puts")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default=FORMATS)
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="kills at a time")
    a = p.parse_args()
    n_programs = a.programs or (400 if a.long else 15)
    every = a.every or (2 if a.long else 8)
    lib = Path(os.environ.get("ZONDA_LIBDIR", ROOT / "dist" / "lib")).resolve()
    distribution = reference()
    if distribution is None or not shutil.which("ncdump"):
        print("skipped: the distribution's library is not installed")
        return 0
    kept = ROOT / "out" / "async" / "kills"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=os.environ.get("ZONDA_SCRATCH")) as scratch:
        program = compile_program(Path(scratch), lib)
        kills = []
        for k in range(n_programs):
            fmt, seed = a.only[k % len(a.only)], a.seed * 100_000 + k
            n_all = int(run([program, "x", fmt, seed, 0, "-"], LD_LIBRARY_PATH=str(lib))[1])
            chance = random.Random(seed)
            for n_puts in range(1 + chance.randrange(every), n_all + 1, every):
                kills.append((fmt, seed, n_puts, chance.choice(SETTINGS)))

        def some(first):
            """Every jobs-th kill, one after another, in a folder of their own; how many failed."""
            folder, failed = Path(scratch) / ("part-%d" % first), 0
            folder.mkdir()
            for kill in kills[first::a.jobs]:
                try:
                    case((program, lib, distribution, folder), *kill)
                except (Wrong, subprocess.TimeoutExpired, OSError) as why:
                    failed += 1
                    fmt, seed, n_puts, (how, storage) = kill
                    files = kept / ("%s-%d-%d" % (fmt, seed, n_puts))
                    files.mkdir(parents=True, exist_ok=True)
                    for file in folder.glob("*.nc*"):
                        shutil.copy(file, files)
                    print("FAIL %s seed %d, %d puts, ZONDA_ASYNC=%s ZONDA_IO=%s (files in %s): %s"
                          % (fmt, seed, n_puts, how, storage, files.relative_to(ROOT), why), flush=True)
            return failed

        with ThreadPoolExecutor(a.jobs) as pool:
            failed = sum(pool.map(some, range(a.jobs)))
    n_kills = len(kills)
    print("%d programs (seeds from %d) killed %d times in %d s: %d passed, %d failed"
          % (n_programs, a.seed * 100_000, n_kills, time.monotonic() - begin, n_kills - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
