#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts that nobody can mean, while memory is scarce: an error, never an end.

    tests/limits/run.py             every call with six sizes, 40 changed files, 40 random files of definitions
    tests/limits/run.py --quick     every call with six sizes, 8 changed files
    tests/limits/run.py --long      every call with 16 sizes, 5,000 changed files, 6,000 files of definitions
    tests/limits/run.py --store     asks the reference (minutes) and writes what it says to reference.txt
    tests/limits/run.py --parts LIST    of calls, files, define; --files N of each; --seed S

Three parts:
- absurd.c calls each function that takes a count, a size or a length with absurd ones, in a child that
  may have little memory, on the library under test and on the reference. No answer of ours may be a
  signal, a crash or NC_EINTERNAL, and the first code of each line must be the reference's, unless it
  died or exceptions.txt says why not. The reference takes minutes: only --long asks it, otherwise
  reference.txt has what netCDF-C 4.9.0 said.
- Files whose counts were made huge are read by `zonda check`, `zonda copy` and nc_open with all its
  inquiries and gets, with little memory: every one has to end by itself, by 0 or an error.
- define.py: each accepted definition survives close and reads back.

tests/rig/places.py has the settings.
"""
import os
import random
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import define  # noqa: E402
import rig  # noqa: E402

ROOT, OUT = rig.ROOT, define.OUT
STORED = HERE / "reference.txt"
INTERNAL = "-92"
# Address space of a reader. Without stacks of threads and libraries it has half of it.
ROOM = 400 << 20
MOST_SECONDS = 30


def lines_of(program, libdir, folder, quick):
    """What absurd.c says on a library: {(case, format, size): codes}."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [program, folder, "all", *(["quick"] if quick else [])]
    ran = rig.run(words, rig.environment(libdir, RUST_BACKTRACE=0), seconds=3000, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if ran.returncode:
        raise rig.Setup("absurd: exit %d on %s" % (ran.returncode, libdir))
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
    return rig.compile_c(OUT / "absurd", HERE / "absurd.c")


def calls(options, counts):
    """What absurd.c finds."""
    program, quick = built(), not options.long
    reference = None if quick else rig.reference()
    # Thousands of small files.
    with rig.scratch(in_memory=True) as scratch, ThreadPoolExecutor() as both:
        ours = both.submit(lines_of, program, rig.LIBDIR, scratch / "ours", quick)
        theirs = both.submit(lines_of, program, reference, scratch / "theirs", quick) if reference else None
        ours, theirs = ours.result(), theirs.result() if theirs else stored()
    rules = []
    for line in (HERE / "exceptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            rules.append([re.compile(part.strip()) for part in line.split(" | ")[:3]])
    n_wrong = 0
    for call, codes in ours.items():
        other = theirs.get(call, ["signal"])
        excused = any(all(rule.fullmatch(part) for rule, part in zip(three, call)) for three in rules)
        is_wrong = not codes or codes[0] in ("signal", "exit") or INTERNAL in codes
        is_wrong |= other[0] not in ("signal", "exit") and codes[0] != other[0] and not excused
        n_wrong += is_wrong
        counts.check(" ".join(call), "%s, reference %s" % (" ".join(codes), " ".join(other)) if is_wrong else None)
    print("calls with absurd counts: %d, %d of them wrong" % (len(ours), n_wrong))


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


def read_changed(sources, seed):
    """(name, faults) of one changed file."""
    rng = random.Random(seed)
    source = rng.choice(sources)
    data, length = change(source.read_bytes(), rng)
    path, copy = OUT / ("huge-%d.nc" % seed), OUT / ("huge-%d-copy.nc" % seed)
    path.write_bytes(data)
    if length > len(data):
        os.truncate(path, length)
    faults = []
    for command in ([rig.ZONDA, "check", path], [rig.ZONDA, "copy", path, copy], [rig.ZONDA, "dump", path]):
        limits = rig.bounds(memory=ROOM, file=64 << 20, seconds=MOST_SECONDS)
        try:
            ran = rig.run(command, rig.environment(RUST_BACKTRACE=0), preexec_fn=limits, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, seconds=4 * MOST_SECONDS)
            said = ran.stderr
            if ran.returncode < 0 and ran.returncode not in (-24, -25) or ran.returncode > 3 or "panicked" in said or "allocation" in said:
                faults.append("%s: exit %d: %s" % (command[1], ran.returncode, said[-200:].replace("\n", " ")))
            elif ran.returncode == -24 and length == 0:
                faults.append("%s: still working after %d s" % (command[1], MOST_SECONDS))
        except subprocess.TimeoutExpired:
            faults.append("%s: does not end" % command[1])
        copy.unlink(missing_ok=True)
    if not faults:
        path.unlink()
    return "seed %d (%s)" % (seed, source.name), "; ".join(faults)


def files(options, counts):
    """What becomes of changed files."""
    n, found = options.files or options.by(8, 40, 5_000), sources()
    with ThreadPoolExecutor(2) as pool:
        for name, wrong in pool.map(lambda seed: read_changed(found, seed), range(options.seed, options.seed + n)):
            counts.check(name, wrong)
    print("changed files: seeds %d to %d of %d sources" % (options.seed, options.seed + n - 1, len(found)))


def main():
    marks = {"calls": rig.QUICK, "files": rig.QUICK, "define": rig.FULL}
    parser = rig.parser(__doc__, parts=marks, seed=1, only=None)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--files", type=int)
    options = rig.arguments(parser)
    if options.store:
        with rig.scratch() as scratch:
            store(lines_of(built(), rig.reference(), scratch, True))
        return 0
    counts = rig.Counts()
    for part in options.chosen():
        {"calls": calls, "files": files, "define": lambda options, counts: define.files(options.by(40, 40, 6000), 1, counts)}[part](options, counts)
    return counts


if __name__ == "__main__":
    rig.main(main)
