#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Readers that look definitions up long after they opened the file, beside a writer that moves them.

    tests/beside/late.py [--quick] [--long] [--seed N]

A writer (late.c on the library under test) defines, renames, changes and deletes, commits, closes and
opens again; nc_close moves lists of names and attributes to the front of the file. Readers (late.c on
the library under test and on the distribution's netCDF-C, h5py) opened the file before, have looked at
little of it, and look at the rest between the changes or while they are made.

They may meet errors: what they look for may be elsewhere by now. They may not end, hang, or read a
value that was never there: each name, attribute and value says whose it is. Who opens the file anew
afterwards finds all of it without an error.
"""
import argparse
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

SECONDS = 60


class Agent:
    def __init__(self, who, program):
        self.who, self.said = who, b""
        env = rig.environment(rig.LIBDIR if who in ("zonda", "the writer") else None)
        command = [rig.python("h5py"), __file__, "--h5py"] if who == "h5py" else [str(program)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def answer(self):
        out, end = self.process.stdout.fileno(), time.monotonic() + SECONDS
        while b"\n" not in self.said:
            if not select.select([out], [], [], max(0, end - time.monotonic()))[0]:
                raise Wrong("%s hangs" % self.who)
            more = os.read(out, 4096)
            if not more:
                break
            self.said += more
        line, _, self.said = self.said.partition(b"\n")
        said = line.decode(errors="replace").strip()
        if not said:
            code = self.process.wait()
            raise Wrong("%s ended: %s" % (self.who, signal.Signals(-code).name if code < 0 else code))
        if "WRONG" in said or "FAILED" in said:
            raise Wrong("%s: %s" % (self.who, said))
        return said

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.communicate()


def one(program, path, seed, found):
    """One file, and how readers of each kind fare with it."""
    rng = random.Random(seed)
    path.unlink(missing_ok=True)
    agents = []

    def agent(who):
        agents.append(Agent(who, program))
        return agents[-1]

    def looked(said):
        right, errors = map(int, re.match(r"(\d+) right (\d+) errors", said).groups())
        found["right"] += right
        found["errors"] += errors
        return errors

    try:
        writer = agent("the writer")
        n = rng.choice((3, 12, 40, 120))
        writer.ask("make %d %s" % (n, path))
        if rng.random() < 0.5:
            writer.ask("close")
            writer.ask("open w %s" % path)
        readers = {}
        for who in found["who"]:
            readers[who] = agent(who)
            readers[who].ask("open r %s" % path)
            if rng.random() < 0.5:
                looked(readers[who].ask("look 0 %d" % rng.randint(0, n)))
        for _ in range(rng.randint(1, 5)):
            line = "change %d %d" % (rng.choice((1, 2, 3, 10, 60)), rng.randrange(1 << 30))
            together = rng.random() < 0.5
            writer.tell(line)
            if not together:
                writer.answer()
            if rng.random() < 0.6:
                # While the writer closes, where it goes on meanwhile.
                writer.tell("close")
                writer.tell("open w %s" % path)
                if not together:
                    writer.answer(), writer.answer()
                waiting = 2
            else:
                waiting = 0
            for reader in readers.values():
                begin = rng.randint(0, n)
                reader.tell("look %d %d" % (begin, rng.randint(begin, n)))
            for reader in readers.values():
                looked(reader.answer())
            if together:
                for _ in range(1 + waiting):
                    writer.answer()
        said = writer.ask("close")
        if not said.startswith("0 "):
            raise Wrong("the writer cannot close: " + said)
        last = int(said.split()[1])
        for who, reader in readers.items():
            # Once more with the file closed, then anew.
            looked(reader.ask("look 0 %d" % n))
            reader.ask("close")
            reader.ask("open r %s" % path)
            said = reader.ask("look 0 %d" % last)
            if looked(said):
                raise Wrong("%s finds errors in the file that was closed: %s" % (who, said))
    finally:
        for each in agents:
            each.end()


# ---- The reader by h5py

def by_h5py():
    import h5py

    f, good, errors, wrong = None, 0, 0, ""

    def check(of, me):
        nonlocal good, errors, wrong
        names = ["me", "gen", "a10"]
        try:
            attrs = of.attrs
            names += list(attrs)
        except Exception:
            errors += 1
            return
        for name in names:
            try:
                value = attrs[name]
            except Exception:
                errors += 1
                continue
            good += 1
            if name.startswith("_") or name in ("CLASS", "NAME"):
                continue
            if name == "gen":
                value = value.decode() if isinstance(value, bytes) else str(value)
                fits = re.fullmatch(r"%d:(.?)\1*" % me, value)
            else:
                fits = int(value[0]) == (me if name == "me" else 100 * me + int(name[1:]))
            if not fits:
                wrong = wrong or "%d %s is %.40s" % (me, name, value)

    for line in sys.stdin:
        word, *rest = line.split()
        if word == "open":
            f = h5py.File(rest[1], "r")
        elif word == "close":
            f.close()
        elif word == "look":
            good, errors, wrong = 0, 0, ""
            wanted = set(range(*map(int, rest)))
            try:
                names = list(f)
            except Exception:
                names, errors = [], errors + 1
            numbers = {int(name[1:]) for name in names}
            # Names that are not in the list, which may be an old one, too.
            names = [name for name in names if name[0] == "g" or int(name[1:]) in wanted]
            names += ["v%d" % i for i in wanted - numbers]
            for name in names:
                try:
                    found = f[name]
                    if name[0] != "g":
                        value, me = int(found[()]), int(name[1:])
                        if value not in (me, -2147483647):
                            wrong = wrong or "%s holds %d" % (name, value)
                    else:
                        me = 5000 + int(name[1:])
                    good += 1
                except Exception:
                    errors += 1
                    continue
                check(found, me)
            check(f, 99999)
            print("%d right %d errors %s" % (good, errors, "WRONG " + wrong if wrong else ""), flush=True)
            continue
        print("0 open", flush=True)


def main():
    parser = rig.parser(__doc__, only=None)
    parser.add_argument("--seed", type=int, help="one file")
    parser.add_argument("--h5py", action="store_true", help=argparse.SUPPRESS)
    options = rig.arguments(parser)
    if options.h5py:
        return by_h5py()
    counts, found = rig.Counts(), {"who": ["zonda", "netcdf"], "right": 0, "errors": 0}
    if rig.python("h5py"):
        found["who"].append("h5py")
    else:
        counts.skip("h5py", "no Python that has it")
    seeds = [options.seed] if options.seed is not None else range(options.by(4, 25, 400))
    with rig.scratch() as scratch:
        program = rig.compile_c(scratch / "late", HERE / "late.c")
        begin = time.monotonic()
        for seed in seeds:
            counts.attempt("seed %d" % seed, one, program, scratch / "late.nc", seed, found)
    print("%d files; %d lookups right, %d errors; %.0f s" % (len(seeds), found["right"], found["errors"], time.monotonic() - begin))
    return counts


if __name__ == "__main__":
    rig.main(main)
