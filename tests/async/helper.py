#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The helper process (ZONDA_ASYNC=helper, zonda iod): what is lost when somebody is killed, which is nothing.

    tests/async/helper.py [--quick] [--long] [--only REGEX] [--kills N] [--seed N]

A small model (helper.c) says each put that has returned; it or its helper is
killed at some moment, and netCDF-C and h5py read what is left. tests/rig/places.py has the settings.
"""
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

rig.needs("h5py", "netCDF4", "numpy")
import h5py  # noqa: E402
import netCDF4  # noqa: E402
import numpy  # noqa: E402

FORMATS = ("1", "2", "5", "4", "z")
MOST_SECONDS = 60
SLOW = {"ZONDA_IO": "throttle:20M:20us,file"}


class World:
    def __init__(self, scratch, like=None):
        self.scratch = scratch
        if like:
            scratch.mkdir()
        self.model = like.model if like else rig.compile_c(scratch / "model", HERE / "helper.c")
        self.beside = like.beside if like else rig.compile_c(scratch / "beside", HERE / "beside.c", libraries=["-lpthread"])

    def start(self, path, fmt, steps, width, *words, asynchronous="helper", stdin=None, limits=(), **env):
        env = rig.environment(rig.LIBDIR, ZONDA_ASYNC=asynchronous, **env)
        command = [self.model, path, fmt, steps, width, *words]
        limit = (lambda: [resource.setrlimit(*one) for one in limits]) if limits else None
        return subprocess.Popen([str(c) for c in command], env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=limit)

    def run(self, *args, status=0, said=b"", **kw):
        """Runs it to its end; its lines. What it says on standard error is to be that."""
        process = self.start(*args, **kw)
        out, err = ends(process)
        if process.returncode != status or said is not None and err != said:
            raise Wrong("ends with %d and says %r %r" % (process.returncode, out[-200:], err[-300:]))
        return out.decode().splitlines()


def ends(process, told=None):
    """What it said, when it and its helper have ended: both have its standard error."""
    try:
        return process.communicate(told, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Wrong("the program or its helper does not end") from None


def helpers(pid):
    """The helper processes of a program."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:4] == [b"iod", b"--program", b"%d" % pid]:
                found.append(int(entry))
    return found


def values(name, n, width):
    k = numpy.arange(width)
    if name in ("u", "g"):
        return (n * 1000.0 + k % 1000).astype("f4")
    if name == "v":
        return (n * 7 + k % 77).astype("f8")
    return ((n * 3 + k) % 30000).astype("i2")


def holds(path, lines, width, number=0):
    """Whether every put that returned is there, by netCDF-C and h5py."""
    puts = [(m[2], int(m[3])) for m in (re.fullmatch(r"put (\d) (\w) (\d+)", line) for line in lines) if m and int(m[1]) == number]
    if not puts:
        # Definitions alone, which nobody ended, are no file yet.
        return 0
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        for name, n in puts:
            var = file["g/u"] if name == "g" else file[name]
            if n >= var.shape[0]:
                raise Wrong("%s has %d records, and %d was put" % (name, var.shape[0], n))
            got = var[n]
            fine = got == "step %d" % n if name == "s" else (got == values(name, n, width)).all()
            if not fine:
                raise Wrong("record %d of %s is %r" % (n, name, got if name == "s" else got[:5]))
        is_hdf5 = file.data_model == "NETCDF4"
    if is_hdf5:
        with h5py.File(path, locking=False) as file:
            for name, n in puts:
                got = file["g/u" if name == "g" else name][n]
                if not (got == b"step %d" % n if name == "s" else (got == values(name, n, width)).all()):
                    raise Wrong("h5py: record %d of %s" % (n, name))
    return len(puts)


def scenes(world, kills, seed):
    def path(name="x.nc"):
        for old in world.scratch.glob(name + "*"):
            old.unlink()
        return world.scratch / name

    def equal(fmt, width, words, asynchronous, env):
        """The bytes are those without it."""
        one, other = path("off.nc"), path("on.nc")
        world.run(one, fmt, 40, width, *words, asynchronous="off")
        world.run(other, fmt, 40, width, *words, asynchronous=asynchronous, **env)
        if one.read_bytes() != other.read_bytes():
            raise Wrong("%d bytes, and %d without it" % (other.stat().st_size, one.stat().st_size))

    def same_values(fmt, words, asynchronous):
        file = path()
        lines = world.run(file, fmt, 40, 5000, *words, asynchronous=asynchronous)
        holds(file, lines, 5000)

    def program_dies(fmt, width, words, seed, env, asynchronous="helper"):
        """SIGKILL of the program at some moment."""
        file, chance = path(), random.Random(seed)
        process = world.start(file, fmt, 60, width, "end=wait", *words, asynchronous=asynchronous, **env)
        until = chance.choice(["put 0 u 0", "put 0 u 5", "put 0 v 20", "put 0 w 40", "all"])
        lines = []
        while not lines or lines[-1] != until:
            line = process.stdout.readline().decode()
            if not line:
                raise Wrong("ends early: %s %r" % (lines[-1:], process.stderr.read()[-300:]))
            lines.append(line.strip())
        time.sleep(chance.choice([0, 0, 0.0003, 0.003, 0.03]))
        process.kill()
        out, err = ends(process)
        # A line that was cut off was said after its put all the same; it is left out.
        lines += out.decode().split("\n")[:-1]
        if any(b"lost" in line for line in err.splitlines()):
            raise Wrong("says %r" % err[-300:])
        for number in range(2 if "two" in words else 1):
            holds(str(file) + ".2" if number else file, lines, width, number)

    def program_dies_anywhere(fmt, seed, words, env, asynchronous):
        """The same at any moment at all, before the first definition and after the close among them."""
        file, chance = path(), random.Random(seed)
        width = chance.choice([10, 3000, 50_000])
        begin = time.monotonic()
        world.run(path("whole.nc"), fmt, 30, width, *words, asynchronous=asynchronous, said=None, **env)
        whole = time.monotonic() - begin
        process = world.start(file, fmt, 30, width, *words, asynchronous=asynchronous, **env)
        # What it says fills no pipe.
        time.sleep(chance.uniform(0, whole))
        process.kill()
        out, err = ends(process)
        if b"lost" in err:
            raise Wrong("says %r" % err[-300:])
        lines = out.decode().split("\n")[:-1]
        for number in range(2 if "two" in words else 1):
            holds(str(file) + ".2" if number else file, lines, width, number)

    def kill_helper(pid):
        """Until it is gone, and all that it had open is closed."""
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + MOST_SECONDS
        while Path("/proc/%d/fd" % pid).exists() and Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] not in "ZX":
            if time.monotonic() > until:
                raise Wrong("the helper does not die")
            time.sleep(0.001)

    def lives_on(file, fmt, lines, process, err):
        """What is left of a program whose helper was killed: all of it."""
        if process.returncode or lines[-1] != "closed":
            raise Wrong("ends with %d: %s %r" % (process.returncode, lines[-1:], err))
        holds(file, lines, 5000)
        off = path("off.nc")
        world.run(off, fmt, 60, 5000, asynchronous="off")
        if off.read_bytes() != file.read_bytes():
            raise Wrong("other bytes than without a helper")

    def helper_dies(fmt, seed, env):
        """SIGKILL of the helper: the program goes on, says so once, and loses nothing."""
        file, chance = path(), random.Random(seed)
        # At the last step nothing but the close is left to find out.
        hold = chance.choice([0, 3, 30, 59])
        process = world.start(file, fmt, 60, 5000, "hold=%d" % hold, stdin=subprocess.PIPE, **env)
        lines = []
        while not lines or lines[-1] != "holds":
            lines.append(process.stdout.readline().decode().strip())
        found = helpers(process.pid)
        if len(found) != 1:
            process.kill()
            raise Wrong("%d helpers" % len(found))
        kill_helper(found[0])
        out, err = ends(process, b"x")
        lines += out.decode().splitlines()
        if err.count(b"\n") != 1 or b"has ended" not in err:
            raise Wrong("says %r" % err)
        lives_on(file, fmt, lines, process, err)

    def helper_dies_anywhere(fmt, seed, env):
        """The same while the program runs: it may have closed its file before it could notice."""
        file, chance = path(), random.Random(seed)
        process = world.start(file, fmt, 60, 5000, "pause=%d" % chance.choice([0, 1000]), **env)
        lines = [process.stdout.readline().decode().strip()]
        time.sleep(chance.uniform(0, 0.15))
        for pid in helpers(process.pid):
            try:
                kill_helper(pid)
            except (ProcessLookupError, FileNotFoundError):
                pass
        out, err = ends(process)
        lines += out.decode().splitlines()
        # Killed while it starts, it was none.
        expected = b"has ended" in err or b"puts are carried out by this process alone" in err
        if err and (err.count(b"\n") != 1 or not expected):
            raise Wrong("says %r" % err)
        lives_on(file, fmt, lines, process, err)

    def both_die(fmt, seed):
        """The program, and its helper while that does the rest: what is there is a file, and what was synced is in it."""
        file, chance = path(), random.Random(seed)
        process = world.start(file, fmt, 60, 5000, "end=wait", "sync", **SLOW)
        lines = []
        while not lines or lines[-1] != "put 0 w 40":
            lines.append(process.stdout.readline().decode().strip())
        found = helpers(process.pid)
        process.kill()
        time.sleep(chance.uniform(0, 0.3))
        for pid in found:
            try:
                kill_helper(pid)
            except (ProcessLookupError, FileNotFoundError):
                pass
        ends(process)
        # Step 39 synced all that was put until then.
        holds(file, [line for line in lines if not line.endswith(" 40")], 5000)

    def ending(fmt, end, status):
        """Ends that are no close."""
        file = path()
        process = world.start(file, fmt, 30, 5000, "end=" + end, **SLOW)
        out, err = ends(process)
        if process.returncode != status or b"lost" in err:
            raise Wrong("ends with %d and says %r" % (process.returncode, err))
        if holds(file, out.decode().splitlines(), 5000) < 90:
            raise Wrong("too few puts")

    def no_program():
        """Where the helper cannot be started, that is told once, and all is as with `on`."""
        for named in ("/nowhere/zonda", "/bin/true", "/bin/false"):
            file = path()
            process = world.start(file, "4", 20, 1000, ZONDA_IOD=named)
            out, err = ends(process)
            if process.returncode or err.count(b"\n") != 1 or named.encode() not in err:
                raise Wrong("%s: ends with %d and says %r" % (named, process.returncode, err))
            holds(file, out.decode().splitlines(), 1000)

    def by_hand():
        done = rig.run([rig.ZONDA, "iod"])
        if done.returncode != 2 or "ZONDA_ASYNC=helper" not in done.stderr:
            raise Wrong("%d %r" % (done.returncode, done.stderr))

    def is_apart():
        """It is no child of the program, has a session of its own, and ends with it; signals pass."""
        process = world.start(path(), "5", 5, 100, "end=wait")
        while process.stdout.readline() != b"all\n":
            pass
        (pid,) = helpers(process.pid)
        with open("/proc/%d/stat" % pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        if int(fields[1]) == process.pid or int(fields[3]) != pid:
            raise Wrong("stat %s" % fields[:4])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(pid, number)
        time.sleep(0.1)
        if helpers(process.pid) != [pid]:
            raise Wrong("it ends with a signal")
        process.terminate()
        ends(process)
        if helpers(process.pid):
            raise Wrong("it stays")

    def another_file():
        """What has taken the place of the file meanwhile is left alone."""
        file = path()
        process = world.start(file, "5", 200, 5000, "end=wait", **SLOW)
        while process.stdout.readline() != b"put 0 w 40\n":
            pass
        file.unlink()
        file.write_bytes(b"precious")
        process.kill()
        _, err = ends(process)
        if file.read_bytes() != b"precious" or b"lost" not in err or str(file).encode() not in err:
            raise Wrong("says %r" % err)

    def moved_away():
        """A program that changes its folder."""
        file = path()
        os.chdir(world.scratch)
        process = world.start("x.nc", "4", 60, 5000, "end=wait", **SLOW)
        while process.stdout.readline() != b"all\n":
            pass
        process.kill()
        ends(process)
        with netCDF4.Dataset(file) as data:
            if data["u"].shape[0] != 60:
                raise Wrong("%d records" % data["u"].shape[0])

    def renamed(fmt, how, words):
        """The file gets another name while it is written, and another file its name: what the killed program
        had put is in its file, and nothing in the other one."""
        folder = world.scratch / "season"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(world.scratch / "done", ignore_errors=True)
        folder.mkdir()
        file = folder / "x.nc"
        world.run(path("other.nc"), fmt, 30, 5000, *words, asynchronous="off")
        other = (world.scratch / "other.nc").read_bytes()
        process = world.start(file, fmt, 30, 5000, "hold=10", "end=wait", *words, stdin=subprocess.PIPE, **SLOW)
        lines = []

        def until(what):
            while not lines or lines[-1] != what:
                lines.append(process.stdout.readline().decode().strip())
                if not lines[-1]:
                    raise Wrong("ends after %r and says %r" % (lines[-2:], ends(process)[1]))

        until("holds")
        now = folder / "y.nc"
        if how == "renamed":
            file.rename(now)
        elif how == "linked":
            now.hardlink_to(file)
            file.unlink()
        else:
            folder.rename(world.scratch / "done")
            now = world.scratch / "done" / "x.nc"
            folder.mkdir()
        file.write_bytes(other)
        process.stdin.write(b"x")
        process.stdin.flush()
        until("all")
        process.kill()
        _, err = ends(process)
        if file.read_bytes() != other:
            raise Wrong("another file was changed, and it says %r" % err)
        if b"lost" in err:
            raise Wrong("says %r" % err)
        holds(now, lines, 5000)

    def half_moved(fmt):
        """The program is killed while its data move inside the file, which has two names: the helper completes that."""
        file, second = path(), path("second.nc")
        journal = file.with_name("x.nc.zonda-journal")
        process = world.start(file, fmt, 40, 50_000, "redef", **SLOW)
        until = time.monotonic() + MOST_SECONDS
        while not (file.exists() and file.stat().st_size):
            time.sleep(0.001)
        second.hardlink_to(file)
        while not journal.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise Wrong("nothing has moved: %r" % (ends(process),))
            time.sleep(0.001)
        process.kill()
        out, err = ends(process)
        if journal.exists() or b"complete" in err and b"is complete" not in err:
            raise Wrong("its journal is there, and it says %r" % err)
        if b"is complete" not in err and b"puts that the program left" not in err:
            raise Wrong("the helper says %r" % err)
        holds(file, out.decode().splitlines(), 50_000)

    def beside(what, fmt, *words, looked=""):
        """Threads and files beside each other, at the moment of a kill (beside.c)."""
        file, mode = path(), {"1": 0, "2": 0x200, "5": 0x20, "4": 0x1000, "z": 0x1000}[fmt]
        env = rig.environment(rig.LIBDIR, ZONDA_ASYNC="helper,mem=%s" % ("1M" if what == "threads" else "64M"))
        process = subprocess.Popen([str(c) for c in (world.beside, what, file, mode, *words)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = ends(process)
        if process.returncode != -signal.SIGKILL or b"lost" in err:
            raise Wrong("ends with %d and says %r %r" % (process.returncode, out, err))
        # By the distribution's library; an attribute that was being put may have left a change for the helper.
        done = rig.run([world.beside, "look", str(file) + looked], seconds=MOST_SECONDS)
        if done.returncode:
            raise Wrong("%s %s; the helper says %r" % (done.stdout.strip(), done.stderr.strip(), err))

    def limited(fmt):
        """`ulimit -f` below the memory that is shared: the program goes on without a helper."""
        file = path()
        lines = world.run(file, fmt, 20, 1000, said=None, limits=[(resource.RLIMIT_FSIZE, (32 << 20, 32 << 20))])
        holds(file, lines, 1000)

    def full(fmt):
        """The device is full for both: it is told, and what is there can be read."""
        file = path()
        most = 3 << 20
        process = subprocess.Popen(
            [str(c) for c in (world.model, file, fmt, 500, 1000)],
            env=rig.environment(rig.LIBDIR, ZONDA_ASYNC="helper"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: (resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)))
        out, err = ends(process)
        if process.returncode != 1 or b"failed" not in out:
            raise Wrong("ends with %d: %r %r" % (process.returncode, out[-200:], err))
        with netCDF4.Dataset(file):
            pass

    def full_for_a_while(fmt, n):
        """The device has no room for the n-th write of the helper, and has some later: it says so, and loses nothing."""
        file, named = path(), world.scratch / "iod"
        named.write_text('#!/bin/sh\nZONDA_IO=cache,fault:write:%d:enospc,file exec "%s" "$@"\n' % (n, rig.ZONDA))
        named.chmod(0o755)
        process = world.start(file, fmt, 20, 50_000, "end=wait", ZONDA_IOD=str(named), **SLOW)
        lines = []
        while not lines or lines[-1] != "all":
            lines.append(process.stdout.readline().decode().strip())
        process.kill()
        _, err = ends(process)
        if b"lost" in err or err.count(b"it is tried again for") != 1 or str(file).encode() not in err:
            raise Wrong("says %r" % err)
        holds(file, lines, 50_000)

    for fmt in "1254":
        for words in ("a", "s", "ap", "sp", "r", "as", "R", "Rs"):
            for k in range(max(1, kills // 4)):
                yield "beside/%s/%s/%d" % (fmt, words, k), lambda f=fmt, w=words, k=k: beside("threads", f, 3 + 17 * k, w)
        yield "beside/%s/files" % fmt, lambda f=fmt: beside("files", f, looked=".c")
    for fmt in "125":
        yield "half-moved/%s" % fmt, lambda f=fmt: half_moved(f)
    for fmt in FORMATS:
        for width in (10, 5000, 300_000):
            yield "equal/%s/%d" % (fmt, width), lambda a=(fmt, width, (), "helper", {}): equal(*a)
        yield "equal/%s/slow" % fmt, lambda f=fmt: equal(f, 5000, (), "helper,threads=1", SLOW)
        yield "equal/%s/sync" % fmt, lambda f=fmt: equal(f, 5000, ("sync", "gets"), "helper", SLOW)
        yield "equal/%s/redef" % fmt, lambda f=fmt: equal(f, 5000, ("redef", "gets"), "helper", {})
        yield "equal/%s/two" % fmt, lambda f=fmt: equal(f, 5000, ("two", "fork"), "helper", {})
        if fmt in "125":
            yield "equal/%s/tiny" % fmt, lambda f=fmt: equal(f, 50_000, (), "helper,mem=64k", {})
        yield "values/%s/tiny" % fmt, lambda f=fmt: same_values(f, ("gets",), "helper,mem=16k")
        yield "values/%s/loose" % fmt, lambda f=fmt: same_values(f, ("loose", "gets") if f in "4z" else ("gets",), "helper,mem=1M")
        for k in range(kills):
            words = [(), ("two",), ("redef", "sync"), ("gets",), ("fork",), ("loose",) if fmt in "4z" else ()][k % 6]
            env, how = [({}, "helper"), (SLOW, "helper"), (SLOW, "helper,mem=1M"), (SLOW, "helper,mem=64k")][k % 4]
            width = 50_000 if k % 7 == 3 else 3000
            yield ("program-dies/%s/%d" % (fmt, k),
                   lambda a=(fmt, width, words, seed + k, env, how): program_dies(*a))
            yield ("program-dies-anywhere/%s/%d" % (fmt, k),
                   lambda a=(fmt, 1000 * seed + k, words, env, how): program_dies_anywhere(*a))
        for k in range(max(1, kills // 4)):
            yield "helper-dies/%s/%d" % (fmt, k), lambda a=(fmt, seed + k, SLOW if k % 2 else {}): helper_dies(*a)
            yield ("helper-dies-anywhere/%s/%d" % (fmt, k),
                   lambda a=(fmt, 1000 * seed + k, SLOW if k % 2 else {}): helper_dies_anywhere(*a))
            yield "both-die/%s/%d" % (fmt, k), lambda a=(fmt, 1000 * seed + k): both_die(*a)
        for end, status in (("exit", 0), ("_exit", 0), ("abort", -signal.SIGABRT)):
            yield "ends/%s/%s" % (fmt, end), lambda a=(fmt, end, status): ending(*a)
        for how in ("renamed", "linked", "folder"):
            for words in ((), ("redef",)):
                yield "%s/%s%s" % (how, fmt, "/redef" * bool(words)), lambda a=(fmt, how, words): renamed(*a)
        yield "limited/" + fmt, lambda f=fmt: limited(f)
        yield "full/" + fmt, lambda f=fmt: full(f)
        for n in (1, 3):
            yield "full-for-a-while/%s/%d" % (fmt, n), lambda a=(fmt, n): full_for_a_while(*a)
    yield "no-program", no_program
    yield "by-hand", by_hand
    yield "apart", is_apart
    yield "another-file", another_file
    yield "moved-away", moved_away


def part(world, options, first, step):
    """Every so many-th of the scenes, one after another, in a process of its own: libraries that read are not for several threads."""
    counts = rig.Counts()
    for name, scene in list(scenes(world, options.kills or options.by(1, 12, 100), options.seed))[first::step]:
        if options.wants(name):
            counts.attempt(name, scene)
    os.chdir("/")
    return counts.passed, counts.failed, counts.skipped


def main():
    p = rig.parser(__doc__, seed=1)
    p.add_argument("--kills", type=int, help="for each format (1, 12, 100 by the mark)")
    options, counts = rig.arguments(p), rig.Counts()
    # Most scenes wait for a slow device.
    jobs = 2 * (os.cpu_count() or 1)
    with rig.scratch() as scratch:
        world = World(scratch)
        worlds = [World(scratch / ("part-%d" % k), like=world) for k in range(jobs)]
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
            for done in [pool.submit(part, w, options, k, jobs) for k, w in enumerate(worlds)]:
                passed, failed, skipped = done.result()
                counts.passed, counts.failed, counts.skipped = counts.passed + passed, counts.failed + failed, counts.skipped + skipped
    return counts


if __name__ == "__main__":
    rig.main(main)
