#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several programs on one netCDF-4 file at the same time: locks, and what a reader's nc_sync sees.

    tests/beside/run.py                  all
    tests/beside/run.py --only PATTERN   cases whose name matches (a regular expression)
    tests/beside/run.py --parts LIST     of locks, words, processes, refresh; all but the last are --quick

Each program is a process with files open that does what it is told: agent.c on the library under
test ("zonda") and on the distribution's netCDF-C ("netcdf"), agent.py on h5py. Without h5py its
cases are skipped.

tests/rig/places.py has the settings.
"""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

HDF, ACCES = -101, 13
# What is refused: by code, in h5py by an exception.
WRITTEN = {"zonda": HDF, "netcdf": HDF, "h5py": -1}
IN_USE = {"zonda": ACCES, "netcdf": ACCES, "h5py": -1}


class Agent:
    """A program that waits for commands."""

    def __init__(self, world, who, **env):
        self.who = who
        self.process = subprocess.Popen(
            world.commands[who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**world.env(who), **env})

    def ask(self, line):
        """(code, what it said before)."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Wrong("%s ended at %r: %s" % (self.who, line, self.process.stderr.read()[-300:]))
        said, _, end = answer.rpartition(" : ") if " : " in answer else ("", "", answer)
        return int(end.split()[0]), said.strip()

    def wants(self, line, code=0, said=None):
        got = self.ask(line)
        if got[0] != code or (said is not None and got[1] != said):
            raise Wrong("%s: %r is %r, not %r" % (self.who, line, got, (code, said)))

    def end(self):
        """What it said on standard error."""
        try:
            return self.process.communicate("quit 0\n", timeout=60)[1]
        except BrokenPipeError:
            return ""

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class World:
    def __init__(self, scratch, counts):
        self.scratch = scratch
        agent = [rig.compile_c(scratch / "agent", HERE / "agent.c")]
        rig.compile_c(scratch / "no_locks.so", HERE / "no_locks.c", link=None, flags=("-shared", "-fPIC"), libraries=("-ldl",))
        self.commands = {"zonda": agent, "netcdf": agent}
        python = rig.python("h5py")
        if python:
            self.commands["h5py"] = [python, HERE / "agent.py"]
        else:
            counts.skip("h5py", "no Python that has it")
        self.who = list(self.commands)
        self.agents = []

    def env(self, who):
        return rig.environment(rig.LIBDIR if who == "zonda" else None)

    def agent(self, who, **env):
        agent = Agent(self, who, **env)
        self.agents.append(agent)
        return agent

    def file(self, who="zonda", records=3):
        """A file of some records, all 1."""
        path = self.scratch / "file.nc"
        path.unlink(missing_ok=True)
        maker = self.agent(who)
        maker.wants("create 0 %s" % path)
        if records:
            maker.wants("append 0 %d 1" % records)
        maker.wants("close 0")
        maker.end()
        return path

    def clear(self):
        for agent in self.agents:
            agent.process.kill()
            agent.process.communicate()
        self.agents = []


def opens(how, path):
    return "create 0 %s" % path if how == "c" else "open 0 %s %s" % (how, path)


def expected(first, how, second, then):
    """What the second gets while the first has the file open."""
    if second != "zonda" and first != "zonda":
        return None  # libhdf5 among itself
    if (first, how) == ("h5py", "c") and then == "r":
        return None  # nothing of it need be in the file yet
    if first == "zonda" and how == "r":
        return 0  # nobody knows of it
    if then == "r":
        return 0
    if then == "c":
        return IN_USE[second]
    return 0 if how == "r" else WRITTEN[second]


def locks(world):
    """The matrix: who has it open, and how; who opens it then, and how."""
    for first in world.who:
        for how in "rwc":
            for second in world.who:
                for then in "rwc":
                    want = expected(first, how, second, then)
                    if want is not None:
                        yield "locks/%s-%s-%s-%s" % (first, how, second, then), lambda a=(first, how, second, then, want): one_lock(world, *a)


def one_lock(world, first, how, second, then, want):
    path = world.file()
    a, b = world.agent(first), world.agent(second)
    a.wants(opens(how, path))
    b.wants(opens(then, path), want)
    if want:
        # Nothing happened to the file, and it is free when the first is done.
        # libhdf5, which is refused when it creates, has emptied the file before.
        if how != "c" and (second == "zonda" or then != "c"):
            a.wants("records 0", 0, "n 3 | 1 | 1")
        a.wants("close 0")
        b.wants(opens(then, path))
    b.wants("close 0")


def words(world):
    """HDF5_USE_FILE_LOCKING, and file systems that have no locks."""
    def off():
        path = world.file()
        a, b = world.agent("netcdf"), world.agent("zonda", HDF5_USE_FILE_LOCKING="FALSE")
        a.wants("open 0 w %s" % path)
        b.wants("open 0 w %s" % path)

    def takes_none():
        path = world.file()
        a, b = world.agent("zonda", HDF5_USE_FILE_LOCKING="0"), world.agent("netcdf")
        a.wants("open 0 w %s" % path)
        b.wants("open 0 w %s" % path)

    def refused(errno, word, code, warnings):
        path = world.file()
        env = {"LD_PRELOAD": str(world.scratch / "no_locks.so"), "NO_LOCKS": str(errno)}
        if word:
            env["HDF5_USE_FILE_LOCKING"] = word
        a = world.agent("zonda", **env)
        for _ in range(2):
            got, _ = a.ask("open 0 w %s" % path)
            if code and got <= 0 or not code and got:
                raise Wrong("open is %d" % got)
            if not got:
                a.wants("append 0 1 1")
                a.wants("close 0")
        said = a.end().splitlines()
        if len([s for s in said if "cannot be locked" in s]) != warnings or len(said) != warnings:
            raise Wrong("on standard error: %s" % said)

    yield "words/FALSE", off
    yield "words/0", takes_none
    for errno in (37, 38, 95):  # ENOLCK, ENOSYS, EOPNOTSUPP
        for word, code, warnings in (("", 0, 1), ("BEST_EFFORT", 0, 0), ("TRUE", 1, 0), ("FALSE", 0, 0)):
            yield "words/refused-%d-%s" % (errno, word), lambda a=(errno, word, code, warnings): refused(*a)


def processes(world):
    """Locks and the lives of processes."""
    def dies():
        path = world.file()
        a, b = world.agent("zonda"), world.agent("netcdf")
        a.wants("open 0 w %s" % path)
        b.wants("open 0 w %s" % path, HDF)
        a.kill()
        b.wants("open 0 w %s" % path)

    def child_keeps_nothing():
        path = world.file()
        a, b = world.agent("zonda"), world.agent("zonda")
        a.wants("open 0 w %s" % path)
        a.wants("fork 0")
        b.wants("open 0 w %s" % path, HDF)
        a.wants("close 0")
        b.wants("open 0 w %s" % path)
        a.wants("reap 0")

    def child_drops_nothing():
        path = world.file()
        a = world.agent("zonda")
        a.wants("open 0 w %s" % path)
        a.wants("fork 0")
        a.wants("reap 0")
        for who in world.who:
            world.agent(who).wants("open 0 w %s" % path, WRITTEN[who])

    def two_ids():
        path = world.file()
        a, b = world.agent("zonda"), world.agent("zonda")
        a.wants("open 0 w %s" % path)
        a.wants("open 1 w %s" % path)
        a.wants("append 0 1 2")
        # Not while the other id has something that is not in the file.
        a.wants("append 1 1 3", HDF)
        a.wants("sync 0")
        a.wants("sync 1")
        a.wants("append 1 1 3")
        a.wants("close 0")
        b.wants("open 0 w %s" % path, HDF)
        a.wants("close 1")
        b.wants("open 0 w %s" % path)
        b.wants("records 0", 0, "n 5 | 1 2 3 | 1 2 3")

    def end_of_two():
        # Who commits often says that the file is longer than it is, and cuts that off at the end.
        # What another id has written since is not to be cut off.
        path = world.file()
        a, b = world.agent("zonda"), world.agent("netcdf")
        a.wants("open 0 w %s" % path)
        a.wants("open 1 w %s" % path)
        for _ in range(6):
            a.wants("append 0 1 2")
            a.wants("sync 0")
        a.wants("sync 1")
        a.wants("append 1 40 3")
        a.wants("sync 1")
        a.wants("close 0")
        a.wants("records 1", 0, "n 49 | 1 2 3 | 1 2 3")
        a.wants("close 1")
        b.wants("open 0 r %s" % path)
        b.wants("records 0", 0, "n 49 | 1 2 3 | 1 2 3")

    def reader_and_writer():
        path = world.file()
        a = world.agent("zonda")
        a.wants("open 0 r %s" % path)
        a.wants("open 1 w %s" % path)
        a.wants("create 2 %s" % path, ACCES)
        a.wants("append 1 1 2")
        a.wants("sync 1")
        a.wants("sync 0")
        a.wants("records 0", 0, "n 4 | 1 2 | 1 2")
        a.wants("close 1")
        a.wants("records 0", 0, "n 4 | 1 2 | 1 2")

    def in_memory():
        # A copy in memory has no lock, and what is written under a temporary name has its own.
        path = world.file()
        a = world.agent("zonda")
        a.wants("open 0 w %s" % path)
        tool = rig.ZONDA
        done = subprocess.run([tool, "copy", path, world.scratch / "copy.nc"], env=world.env("zonda"), capture_output=True)
        if done.returncode:
            raise Wrong("copy: %s" % done.stderr)
        a.wants("open 1 w %s" % (world.scratch / "copy.nc"))

    for test in (dies, child_keeps_nothing, child_drops_nothing, two_ids, end_of_two, reader_and_writer, in_memory):
        yield "processes/" + test.__name__.replace("_", "-"), test


def refresh(world):
    """A reader of the library under test beside a writer of each kind."""
    def follows(writer, maker):
        path = world.file(maker)
        r, w = world.agent("zonda"), world.agent(writer)
        r.wants("open 0 r %s" % path)
        r.wants("records 0", 0, "n 3 | 1 | 1")
        w.wants("open 0 w %s" % path)
        for step in range(2, 12):
            w.wants("append 0 %d %d" % (step, step))
            w.wants("sync 0")
            r.wants("sync 0")
            seen = " ".join(map(str, range(1, step + 1)))
            r.wants("records 0", 0, "n %d | %s | %s" % (3 + sum(range(2, step + 1)), seen, seen))
        w.wants("overwrite 0 77")
        w.wants("sync 0")
        r.wants("sync 0")
        r.wants("records 0", 0, "n 68 | 77 | 77")
        w.wants("close 0")
        r.wants("sync 0")
        r.wants("records 0", 0, "n 68 | 77 | 77")

    def without_sync(writer):
        # What a reader has seen of a variable it goes on seeing, or what came after it.
        path = world.file(records=0)
        r, w = world.agent("zonda"), world.agent(writer)
        w.wants("open 0 w %s" % path)
        r.wants("open 0 r %s" % path)
        w.wants("append 0 5 1")
        w.wants("sync 0")
        r.wants("records 0", 0, "n 5 | 1 | 1")

    def keeps_ids(writer):
        path = world.file()
        w = world.agent(writer)
        w.wants("open 0 w %s" % path)
        for name in ("one", "two"):
            w.wants("group 0 %s" % name)
        w.wants("sync 0")
        r = world.agent("zonda")
        r.wants("open 0 r %s" % path)
        before = r.ask("names 0")[1]
        # Comes before "two" in the order in which groups are met.
        w.wants("group 0 inner /one")
        w.wants("variable 0 more")
        w.wants("sync 0")
        r.wants("sync 0")
        after = r.ask("names 0")[1]
        ids = dict(re.findall(r"(\w+):(\d+)", before))
        now = dict(re.findall(r"(\w+):(\d+)", after))
        if any(now.get(name) != number for name, number in ids.items()) or "inner" not in now or len(set(now.values())) != 3:
            raise Wrong("ids %s, then %s" % (before, after))
        if after.split()[:3] != ["a", "b", "more"]:
            raise Wrong("variables: %s" % after)
        r.wants("records 0", 0, "n 3 | 1 | 1")

    for maker in world.who:
        for writer in world.who:
            yield "refresh/%s-on-%s" % (writer, maker), lambda a=(writer, maker): follows(*a)
    for writer in ("zonda", "netcdf"):
        yield "refresh/late-%s" % writer, lambda a=writer: without_sync(a)
        yield "refresh/ids-%s" % writer, lambda a=writer: keeps_ids(a)


def main():
    parts = {"locks": locks, "words": words, "processes": processes, "refresh": refresh}
    options = rig.arguments(rig.parser(__doc__, parts={name: rig.FULL if name == "refresh" else rig.QUICK for name in parts}))
    counts = rig.Counts()
    with rig.scratch() as scratch:
        world = World(scratch, counts)
        for part in options.chosen():
            for name, test in parts[part](world):
                if options.wants(name):
                    counts.attempt(name, test)
                    world.clear()
    return counts


if __name__ == "__main__":
    rig.main(main)
