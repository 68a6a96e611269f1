#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What threads do to each other, in counts and not in time: a count that grew beyond shared.txt is a failure.

    tests/counts/locked.py                 two minutes
    tests/counts/locked.py --only REGEX    rows with such a name
    tests/counts/locked.py --list          the counts, and the functions that they come from
    UPDATE=1 tests/counts/locked.py        shared.txt anew (with --only: of these rows)

Two threads do the same small work one after the other (shared.c), and valgrind's lackey tells each instruction and each access to memory. Of the second
thread are counted, for each call (of the rows `chunks`, a call is a chunk of 16 KiB):

    locked    instructions that lock a line: with a `lock` prefix, and `xchg` with memory
    lines     lines of 64 bytes that it touches and the other thread writes, or that it writes and the other touches, in one call of EVERY or more.
              Each of them is one that processors hand to each other where both threads are at work
    writes    stores to these lines, those of locked instructions among them

Without valgrind, and on other processors than x86-64, all is skipped. Limits are those of `make build`.
"""
import collections
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

LIMITS = HERE / "shared.txt"
MEASURES = ("locked", "lines", "writes")
# Row, calls that are counted. The names say what is done, whether at random places, and whether each thread has a file of its own.
ROWS = (
    ("get1", 512),
    ("get1-own", 512),
    ("get1-random", 512),
    ("get1-random-own", 512),
    ("put1", 512),
    ("put1-own", 512),
    ("put1-random-own", 512),
    ("get1chunked", 512),
    ("get1chunked-own", 512),
    ("get1chunked-random-own", 512),
    ("get1filtered", 512),
    ("get1filtered-own", 512),
    ("get1filtered-random-own", 512),
    ("put1chunked-own", 512),
    ("put1chunked-random-own", 512),
    ("chunks-get", 32),
    ("chunks-get-own", 32),
    ("chunks-put-own", 32),
)
EVERY = 8
# Counts are a little different where a call meets something that is not in each call: a tenth, and 0.3, more are let pass.
SHARE, MORE = 0.1, 0.3
LINE_BITS = 6
PREFIXES = {0x66, 0x67, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65, 0xF0, 0xF2, 0xF3}
LOCK = 0xF0


def is_locked(code):
    """Whether an instruction of x86-64 locks the line that it changes."""
    at = 0
    while at < len(code) and code[at] in PREFIXES:
        if code[at] == LOCK:
            return True
        at += 1
    if at < len(code) and 0x40 <= code[at] <= 0x4F:
        at += 1
    # xchg, with memory and not with a register.
    return at + 1 < len(code) and code[at] in (0x86, 0x87) and code[at + 1] < 0xC0


class Objects:
    """The libraries of a program, by where they are in it."""

    def __init__(self):
        self.places = []
        self.known = {}

    def add(self, base, path):
        if os.path.exists(path):
            self.places.append((base, path))
            self.places.sort()

    def place(self, address):
        """The library of an address, and where that is in its file."""
        found = [each for each in self.places if each[0] <= address]
        return (found[-1][1], address - found[-1][0]) if found else (None, 0)

    def code(self, address, size):
        path, at = self.place(address)
        if path is None:
            return b""
        if path not in self.known:
            self.known[path] = sections_of(path)
        for begin, end, data in self.known[path]:
            if begin <= at < end:
                return data[at - begin : at - begin + size]
        return b""

    def names(self, addresses):
        """Function and line of addresses, as far as they are known."""
        by_path, found = collections.defaultdict(list), {}
        for address in addresses:
            path, at = self.place(address)
            if path:
                by_path[path].append((address, at))
        for path, each in by_path.items():
            told = rig.run(["addr2line", "-Cfe", path, *[hex(at) for _, at in each]]).stdout.splitlines()
            for (address, _), function, line in zip(each, told[::2], told[1::2]):
                found[address] = "%s (%s)" % (re.sub(r"<.*?>::|::h[0-9a-f]{16}$", "", function), "/".join(line.split("/")[-2:]))
        return found


def sections_of(path):
    """The loaded segments with code of an ELF file of 64 bits: begin, end, bytes."""
    data, found = Path(path).read_bytes(), []
    first, size, count = int.from_bytes(data[32:40], "little"), int.from_bytes(data[54:56], "little"), int.from_bytes(data[56:58], "little")
    for n in range(count):
        head = data[first + n * size : first + (n + 1) * size]
        kind, flags = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:8], "little")
        offset, begin, length = (int.from_bytes(head[at : at + 8], "little") for at in (8, 16, 32))
        if kind == 1 and flags & 1:
            found.append((begin, begin + length, data[offset : offset + length]))
    return found


class Side:
    """What one thread did between the marks."""

    def __init__(self):
        self.locked = collections.Counter()
        # Line -> calls that touch it, and that store to it; the last call that did.
        self.touched, self.stored = collections.Counter(), collections.Counter()
        self.last_touch, self.last_store = {}, {}
        # (Line, instruction) -> stores, loads.
        self.stores, self.loads = collections.Counter(), collections.Counter()

    def access(self, call, kind, line, instruction):
        if self.last_touch.get(line) != call:
            self.last_touch[line] = call
            self.touched[line] += 1
        if kind == "L":
            self.loads[line, instruction] += 1
            return
        self.stores[line, instruction] += 1
        if self.last_store.get(line) != call:
            self.last_store[line] = call
            self.stored[line] += 1


def trace(command, env, folder, calls):
    """Runs a program by lackey: what its two threads did, and its libraries."""
    objects, sides, mark = Objects(), (Side(), Side()), None
    valgrind = ["valgrind", "-q", "--tool=lackey", "--basic-counts=no", "--trace-mem=yes"]
    program = subprocess.Popen([*valgrind, *map(str, command)], env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # What is before the marks is most of it, and sed is faster.
    lines = subprocess.Popen(["sed", "-n", "-e", "/^object /,${p;b}", "-e", "/^[^I ]/p"], stdin=program.stderr, stdout=subprocess.PIPE, text=True, errors="replace")
    program.stderr.close()
    n_marks, side, call, instruction, other, locks = 0, None, 0, 0, [], {}
    for text in lines.stdout:
        kind = text[:2]
        if kind not in ("I ", " L", " S", " M"):
            other.append(text)
            if text.startswith("object "):
                _, base, *path = text.split()
                objects.add(int(base, 16), path[0] if path else str(command[0]))
            elif text.startswith("mark "):
                mark = int(text.split()[1], 16)
            continue
        if mark is None:
            continue
        if kind == "I ":
            if side:
                address, size = text[3:].split(",")
                instruction = int(address, 16)
                if instruction not in locks:
                    locks[instruction] = is_locked(objects.code(instruction, int(size)))
                if locks[instruction]:
                    side.locked[instruction] += 1
            continue
        address, size = text[3:].split(",")
        begin = int(address, 16)
        if mark <= begin < mark + 256:
            # A mark before each call, and one at the end of each thread's.
            which, within = divmod(n_marks, calls + 1)
            n_marks += 1
            side, call = (sides[which] if within < calls else None), n_marks
        elif side:
            for line in range(begin >> LINE_BITS, (begin + int(size) - 1 >> LINE_BITS) + 1):
                side.access(call, kind[1], line, instruction)
    lines.wait()
    if program.wait() or n_marks != 2 * (calls + 1):
        raise rig.Wrong("%s: status %d, %d marks\n%s" % (command, program.returncode, n_marks, "".join(other[-20:])))
    return sides, objects


def counts_of(sides, calls):
    """The measures of the second thread, and the lines that the two share."""
    first, second = sides
    often = max(1, calls // EVERY)
    shared = {line for line, n in second.touched.items()
              if (first.stored[line] >= often and n >= often) or (second.stored[line] >= often and first.touched[line] >= often)}  # fmt: skip
    writes = sum(n for (line, _), n in second.stores.items() if line in shared)
    values = sum(second.locked.values()), sum(second.touched[line] for line in shared), writes
    return {measure: round(value / calls, 2) for measure, value in zip(MEASURES, values)}, shared


def explain(sides, objects, shared, calls):
    """Prints where counts come from."""
    second = sides[1]
    stores, loads = collections.Counter(), collections.Counter()
    for counter, of in ((stores, second.stores), (loads, second.loads)):
        for (line, instruction), n in of.items():
            if line in shared:
                counter[instruction] += n
    names = objects.names({*second.locked, *stores, *loads})
    for what, counter in (("locked", second.locked), ("stores to shared lines", stores), ("loads of shared lines", loads)):
        for instruction, n in counter.most_common(40):
            if n * EVERY >= calls:
                print("    %8.2f  %-24s %s" % (n / calls, what, names.get(instruction, hex(instruction))))


def read_limits():
    found = {}
    for line in LIMITS.read_text().splitlines() if LIMITS.exists() else ():
        words = line.split()
        if words and words[0] not in ("#", "row"):
            found[words[0]] = dict(zip(MEASURES, map(float, words[1:])))
    return found


def write_limits(measured, limits):
    lines = ["# What threads do to each other in a call: renewed by UPDATE=1 tests/counts/locked.py, which says what the columns are.",
             "%-24s" % "row" + "".join("%10s" % measure for measure in MEASURES)]  # fmt: skip
    for row, _ in ROWS:
        values = measured.get(row, limits.get(row))
        if values:
            lines.append("%-24s" % row + "".join("%10.2f" % values[measure] for measure in MEASURES))
    LIMITS.write_text("\n".join(lines) + "\n")


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("--list", action="store_true", help="the counts, and the functions that they come from")
    options, counts = rig.arguments(parser), rig.Counts()
    if platform.machine() != "x86_64":
        counts.skip("locked", "instructions are told apart on x86-64 only")
        return counts
    if not shutil.which("valgrind"):
        counts.skip("locked", "there is no valgrind")
        return counts
    limits, measured = read_limits(), {}
    env = rig.environment(rig.LIBDIR, ZONDA_MEMORY="1G", ZONDA_THREADS="1")
    with rig.scratch(in_memory=True) as folder:
        program = rig.compile_c(folder / "shared", HERE / "shared.c", libraries=["-lpthread"])
        for row, calls in ROWS:
            if not options.wants(row):
                continue
            rig.must([program, row, 0, "a.nc", "b.nc"], env, cwd=folder)
            for name in ("a.nc", "b.nc"):
                # What was changed a moment ago may be read once more.
                os.utime(folder / name, (1e9, 1e9))
            sides, objects = trace([program, row, calls, "a.nc", "b.nc"], env, folder, calls)
            measured[row], shared = counts_of(sides, calls)
            if options.list:
                print("%-24s" % row + "".join("%12s %.2f" % each for each in measured[row].items()), flush=True)
                explain(sides, objects, shared, calls)
    if os.environ.get("UPDATE"):
        write_limits(measured, limits)
        print("%s is written" % LIMITS.relative_to(rig.ROOT))
        counts.passes(len(measured))
        return counts
    for row, values in measured.items():
        for measure, value in values.items():
            limit = limits.get(row, {}).get(measure)
            if limit is None:
                counts.fail("%s, %s" % (row, measure), "%.2f, and shared.txt has no limit; UPDATE=1 tests/counts/locked.py writes one" % value)
                continue
            most = limit * (1 + SHARE) + MORE
            counts.check("%s, %s" % (row, measure), value > most and "%.2f a call, and %.2f were let pass" % (value, most))
    return counts


if __name__ == "__main__":
    rig.main(main)
