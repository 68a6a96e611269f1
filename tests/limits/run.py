#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts that nobody can mean, while memory is scarce: an error, never an end.

    tests/limits/run.py             every call with six sizes, 40 changed files, 40 random files of definitions
    tests/limits/run.py --long      every call with 16 sizes, 5,000 changed files, 6,000 files of definitions
    tests/limits/run.py --store     asks the reference (minutes) and writes what it says to reference.txt

Three parts:
- absurd.c calls each function that takes a count, a size or a length with absurd ones, in a child that
  may have little memory, on the library under test and on the reference. No answer of ours may be a
  signal, a crash or NC_EINTERNAL, and the first code of each line must be the reference's, unless it
  died or exceptions.txt says why not. The reference takes minutes: only --long asks it, otherwise
  reference.txt has what netCDF-C 4.9.0 said.
- Files whose counts were made huge are read by `zonda check`, `zonda copy` and nc_open with all its
  inquiries and gets, with little memory: every one has to end by itself, by 0 or an error.
- define.py: each accepted definition survives close and reads back.

ZONDA_LIBDIR (dist/lib), ZONDA_INCDIR (dist/include), ORACLE_LIBDIR (else the system's).
"""
import argparse
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import define

HERE = Path(__file__).resolve().parent
ROOT, OUT = define.ROOT, define.OUT
LIBDIR = Path(os.environ.get("ZONDA_LIBDIR", ROOT / "dist" / "lib")).resolve()
INCDIR = Path(os.environ.get("ZONDA_INCDIR", ROOT / "dist" / "include")).resolve()
STORED = HERE / "reference.txt"
ZONDA = LIBDIR.parent / "bin" / "zonda"
INTERNAL = "-92"
# Address space of a reader. Without stacks of threads and libraries it has half of it.
ROOM = 400 << 20
MOST_SECONDS = 30


def lines_of(program, libdir, folder, quick):
    """What absurd.c says on a library: {(case, format, size): codes}."""
    folder.mkdir(parents=True, exist_ok=True)
    env = dict(os.environ, LD_LIBRARY_PATH=str(libdir), RUST_BACKTRACE="0")
    ran = subprocess.run([program, str(folder), "all", *(["quick"] if quick else [])], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=3000)
    if ran.returncode:
        raise SystemExit("absurd: exit %d on %s" % (ran.returncode, libdir))
    found = {}
    for line in ran.stdout.splitlines():
        call, codes = line.split(":", 1)
        found[tuple(call.split())] = codes.split()
    return found


def stored():
    """What the reference said, from reference.txt: the first code of each line."""
    found = {}
    for line in STORED.read_text().splitlines():
        if line and not line.startswith("#"):
            case, form, *answers = line.split()
            for answer in answers:
                size, code = answer.split(":")
                found[case, form, size] = [code]
    return found


def store(answers):
    """Writes the first code of each line to reference.txt."""
    lines = {}
    for (case, form, size), codes in answers.items():
        lines.setdefault((case, form), []).append("%s:%s" % (size, codes[0]))
    head = "# The first answers of netCDF-C 4.9.0 to absurd.c: CASE FORMAT SIZE:CODE... (run.py --store).\n"
    STORED.write_text(head + "".join(" ".join([*key, *codes]) + "\n" for key, codes in lines.items()))


def built():
    """absurd.c as a program, which runs with any libnetcdf."""
    program = OUT / "absurd"
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I%s" % INCDIR, str(HERE / "absurd.c"), "-o", str(program), "-L%s" % LIBDIR, "-l:libnetcdf.so.19"], check=True)
    return program


def calls(quick):
    """(passed, faults) of absurd.c."""
    program = built()
    reference = None if quick else define.find_reference()
    # Thousands of small files: in memory where that can be.
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as scratch, ThreadPoolExecutor() as both:
        ours = both.submit(lines_of, program, LIBDIR, Path(scratch) / "ours", quick)
        theirs = both.submit(lines_of, program, os.path.dirname(reference), Path(scratch) / "theirs", quick) if reference else None
        ours, theirs = ours.result(), theirs.result() if theirs else stored()
    rules = []
    for line in (HERE / "exceptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            rules.append([re.compile(part.strip()) for part in line.split(" | ")[:3]])
    faults, passed = [], 0
    for call, codes in ours.items():
        other = theirs.get(call, ["signal"])
        excused = any(all(rule.fullmatch(part) for rule, part in zip(three, call)) for three in rules)
        if not codes or codes[0] in ("signal", "exit") or INTERNAL in codes:
            faults.append("%s: %s (reference: %s)" % (" ".join(call), " ".join(codes), " ".join(other)))
        elif other[0] not in ("signal", "exit") and codes[0] != other[0] and not excused:
            faults.append("%s: %s, reference %s" % (" ".join(call), " ".join(codes), " ".join(other)))
        else:
            passed += 1
    return passed, faults


# ---- Files

def sources():
    """Small files of every kind to change."""
    folders = [ROOT / "crates/zonda-classic/tests/data", ROOT / "crates/zonda-nc4/tests/data", ROOT / "crates/zonda-hdf5/tests/data", ROOT / "tests/corpus/files"]
    files = [f for folder in folders if folder.is_dir() for f in sorted(folder.rglob("*")) if f.is_file()]
    heads = (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF")
    return [f for f in files if f.stat().st_size < 200_000 and f.read_bytes()[:4] in heads]


HUGE = [1 << 28, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 48, (1 << 63) - 1, (1 << 64) - 8, (1 << 64) - 1]


def change(data, rng):
    """Makes one to three numbers huge: where small ones are, as counts are. Half of the files are long
    as well, so that what is compared with the length of the file passes."""
    data = bytearray(data)
    order = ">" if data[:3] == b"CDF" else "<"
    for _ in range(rng.choice([1, 1, 2, 3])):
        for _ in range(100):
            at = rng.randrange(4, max(5, min(len(data) - 8, 20_000)))
            width = rng.choice([1, 2, 4, 4, 8, 8])
            byte = data[at] if order == "<" else data[min(at + width - 1, len(data) - 1)]
            if 0 < byte < 128:
                break
        value = rng.choice(HUGE) & ((1 << 8 * width) - 1)
        code = {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
        data[at : at + width] = struct.pack(order + code, value or (1 << 8 * width) - 1)
    return bytes(data), rng.choice([0, 0, 1 << 28, 1 << 33])


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read_changed(seed):
    """The fault of one changed file, or nothing."""
    rng = random.Random(seed)
    source = rng.choice(SOURCES)
    data, length = change(source.read_bytes(), rng)
    path, copy = OUT / ("huge-%d.nc" % seed), OUT / ("huge-%d-copy.nc" % seed)
    path.write_bytes(data)
    if length > len(data):
        os.truncate(path, length)
    faults = []
    for command in ([ZONDA, "check", path], [ZONDA, "copy", path, copy], [ZONDA, "dump", path]):
        env = dict(os.environ, RUST_BACKTRACE="0")
        try:
            ran = subprocess.run([str(a) for a in command], preexec_fn=limits, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=4 * MOST_SECONDS)
            said = ran.stderr.decode("utf-8", "replace")
            if ran.returncode < 0 and ran.returncode not in (-24, -25) or ran.returncode > 3 or "panicked" in said or "allocation" in said:
                faults.append("%s: exit %d: %s" % (command[1], ran.returncode, said[-200:].replace("\n", " ")))
            elif ran.returncode == -24 and length == 0:
                faults.append("%s: still working after %d s" % (command[1], MOST_SECONDS))
        except subprocess.TimeoutExpired:
            faults.append("%s: does not end" % command[1])
        copy.unlink(missing_ok=True)
    if not faults:
        path.unlink()
    return ["seed %d (%s): %s" % (seed, source.name, fault) for fault in faults]


def main():
    global SOURCES
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--files", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if args.store:
        folder = os.path.dirname(define.find_reference())
        with tempfile.TemporaryDirectory() as scratch:
            store(lines_of(built(), folder, Path(scratch), True))
        return 0
    failed = 0
    passed, faults = calls(not args.long)
    for fault in faults[:200]:
        print("FAIL " + fault)
    failed += len(faults)
    print("calls with absurd counts: %d, %d of them wrong" % (passed + len(faults), len(faults)))
    n, SOURCES = args.files or (5_000 if args.long else 40), sources()
    with ThreadPoolExecutor(2) as pool:
        faults = [fault for found in pool.map(read_changed, range(args.seed, args.seed + n)) for fault in found]
    for fault in faults[:50]:
        print("FAIL " + fault)
    failed += len(faults)
    print("changed files: seeds %d to %d of %d sources, %d faults" % (args.seed, args.seed + n - 1, len(SOURCES), len(faults)))
    sys.stdout.flush()
    ran = subprocess.run([sys.executable, str(HERE / "define.py"), *(["--long"] if args.long else ["--files", "40"])], stdout=subprocess.PIPE, text=True)
    print(ran.stdout, end="")
    failed += ran.returncode != 0
    print("%d calls and %d files, %d failed" % (passed, n, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
