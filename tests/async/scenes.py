# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a program meets that knows nothing of write-behind: ends of all kinds, threads, fork, signals, budgets."""

import os
import random
import signal
import time

from bed import FORMATS, MOST_SECONDS, RECORD, WIDTH, Wrong, rig

MIB = 1 << 20
# On storage of 20 MB/s this takes a fifth of a second.
BEHIND = 300
# What the library may need besides its budget and one put, in bytes: threads, buffers for conversion.
ROOM = 12 * MIB


def started(world, fmt, path, **how):
    a = world.slow(**how)
    a.wants("create 0 %s %d %s" % (fmt, WIDTH, path))
    return a


# ---- Ends ------------------------------------------------------------------------------------------


def ends(world):
    def exits(fmt, last):
        path = world.path()
        a = started(world, fmt, path)
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        a.ends(last)
        world.same_bytes(path, fmt, "put 0 0 %d" % BEHIND, end=last or "exit 0")

    def dies(fmt, how):
        """What was synced is there, and the file opens; what was not is lost, in part."""
        path = world.path()
        a = started(world, fmt, path)
        a.wants("put 0 0 50")
        a.wants("sync 0")
        a.wants("put 0 50 %d" % BEHIND)
        a.until_pending()
        if how == "_exit":
            a.ends("_exit 0")
        else:
            a.kill()
        world.holds(path, 50, fmt, 50 + BEHIND)

    def killed(fmt):
        """At a random moment of puts, commits and changes of the header."""
        chance = random.Random(fmt)
        for turn in range(world.kills):
            path = world.path("kill-%d.nc" % turn)
            a = started(world, fmt, path, asynchronous="mem=%s,threads=2" % ("64k" if turn % 2 else "64M"), bandwidth="60M")
            for k in range(6):
                for line in ("put 0 %d 20" % (20 * k), "sync 0", "redef 0", "attribute 0 name%d" % k, "enddef 0", "sync 0"):
                    a.tell(line)
            after = chance.randrange(36)
            synced = 0
            for k in range(after):
                code = a.hear()[0]
                if code:
                    raise Wrong("code %d" % code)
                # The line that has been answered; syncs are the second and the sixth of six.
                if k % 6 in (1, 4, 5):
                    synced = 20 * (k // 6 + 1)
            time.sleep(chance.random() * 0.01)
            a.kill()
            world.holds(path, synced, fmt, 120)
            world.clear()

    for fmt in FORMATS:
        yield "exit/%s/return" % fmt, lambda f=fmt: exits(f, None)
        yield "exit/%s/exit" % fmt, lambda f=fmt: exits(f, "exit 0")
        yield "exit/%s/_exit" % fmt, lambda f=fmt: dies(f, "_exit")
        yield "exit/%s/SIGKILL" % fmt, lambda f=fmt: dies(f, "SIGKILL")
        yield "exit/%s/SIGKILL-anywhere" % fmt, lambda f=fmt: killed(f)


# ---- Threads, children, signals --------------------------------------------------------------------


def company(world):
    def forks(fmt, how):
        path, reading = world.path(), world.path("reading.nc")
        a = started(world, fmt, path)
        a.wants("create 1 %s %d %s" % (fmt, WIDTH, reading))
        a.wants("put 1 0 3")
        a.wants("close 1")
        a.wants("open 1 r %s" % reading)
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        a.wants("fork 0 1 %s %s" % (how, world.path("child.nc")))
        a.wants("put 0 %d 20" % BEHIND)
        a.wants("get 1 1 0 3", 0, [3, 0, 0])
        a.wants("close 0")
        a.ends()
        world.same_bytes(path, fmt, "put 0 0 %d" % BEHIND, "put 0 %d 20" % BEHIND)
        world.holds(path, BEHIND + 20, fmt)
        world.holds(world.path("child.nc"), 20, "5")

    def closer(fmt):
        path = world.path()
        a = started(world, fmt, path)
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        a.wants("closer 0")
        a.wants("close 0", -33)
        a.ends()
        world.same_bytes(path, fmt, "put 0 0 %d" % BEHIND)

    def threads(fmt, setting):
        path = world.path()
        a = started(world, fmt, path, asynchronous=setting)
        a.wants("put 0 0 4")
        a.wants("threads 0 4 4 %d" % BEHIND)
        a.wants("len 0", 0, [BEHIND + 4])
        a.wants("close 0")
        a.ends()
        world.holds(path, BEHIND + 4, fmt)
        if fmt in "125":  # elsewhere chunks lie in the order in which they were accepted
            world.same_bytes(path, fmt, "put 0 0 %d" % (BEHIND + 4))

    def signals(fmt):
        path = world.path()
        a = started(world, fmt, path)
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        a.wants("signals 0 0", 0, [0, 1, 0])
        a.wants("close 0")
        world.holds(path, BEHIND, fmt)

    def names(fmt):
        path = world.path()
        a = started(world, fmt, path)
        if a.wants("names"):
            raise Wrong("threads before the first put")
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        # A thread has the program's name until it has given itself another.
        time.sleep(0.05)
        found = a.wants("names")
        if not any(n.startswith("zonda-io") for n in found) or not all(n.startswith("zonda") for n in found):
            raise Wrong("threads are called %s" % found)
        a.wants("close 0")

    def none_without(fmt):
        a = world.agent(ZONDA_IO="throttle:20M,file")
        a.wants("create 0 %s %d %s" % (fmt, WIDTH, world.path()))
        a.wants("put 0 0 20")
        found = a.wants("names")
        if any(n.startswith("zonda-io") for n in found):
            raise Wrong("threads though nobody asked for write-behind: %s" % found)
        if a.pending() != (0, 0):
            raise Wrong("pending though nobody asked for write-behind")
        a.wants("close 0")

    for fmt in FORMATS:
        for how in ("exit", "_exit", "close"):
            yield "fork/%s/%s" % (fmt, how), lambda a=(fmt, how): forks(*a)
        yield "closer/" + fmt, lambda f=fmt: closer(f)
        for setting in ("mem=64k,threads=1", "mem=1M,threads=4", "mem=64M,threads=2"):
            yield "threads/%s/%s" % (fmt, setting), lambda a=(fmt, setting): threads(*a)
        yield "signals/" + fmt, lambda f=fmt: signals(f)
        yield "names/" + fmt, lambda f=fmt: names(f)
        yield "off/" + fmt, lambda f=fmt: none_without(f)


# ---- Budgets and waiting ---------------------------------------------------------------------------


def budgets(world):
    wide = 1 << 17  # a put of a is one MiB

    def of_one_put(fmt, budget):
        path = world.path()
        a = started(world, fmt, path, asynchronous="mem=%d,threads=2" % budget)
        a.wants("put 0 0 %d" % BEHIND)
        a.wants("fixed 0")
        a.wants("close 0")
        a.ends()
        world.same_bytes(path, fmt, "put 0 0 %d" % BEHIND, "fixed 0")

    def huge(fmt):
        path = world.path()
        a = started(world, fmt, path, asynchronous="mem=64k,threads=2", bandwidth="60M")
        a.wants("put 0 0 4")
        a.wants("big 0 4 %d" % BEHIND)
        if a.pending()[0] > 64 << 10:
            raise Wrong("%d bytes are pending, of a budget of 64 KiB" % a.pending()[0])
        a.wants("get 0 0 0 %d" % BEHIND, 0, [BEHIND, 0, 0])
        a.wants("close 0")
        a.ends()
        world.same_bytes(path, fmt, "put 0 0 4", "big 0 4 %d" % BEHIND)

    def peak(fmt, **env):
        a = world.agent(**env)
        a.wants("create 0 %s %d %s" % (fmt, wide, world.path()))
        most = 0
        for r in range(30):
            a.wants("put 0 %d 1" % r)
            if env["ZONDA_ASYNC"] != "off":
                most = max(most, a.pending()[0])
        (peak,) = a.wants("memory")
        a.wants("close 0")
        a.ends()
        return peak, most

    def memory(fmt, budget):
        storage = {"ZONDA_IO": "throttle:50M,file", "ZONDA_THREADS": "2"}
        without, _ = peak(fmt, ZONDA_ASYNC="off", **storage)
        world.clear()
        within, pending = peak(fmt, ZONDA_ASYNC="mem=%d,threads=2" % budget, **storage)
        if not pending and budget > MIB:
            raise Wrong("nothing was ever pending")
        if pending > budget + MIB:
            raise Wrong("%d bytes were pending, of a budget of %d and puts of 1 MiB" % (pending, budget))
        if within - without > budget + MIB + ROOM:
            raise Wrong("%d bytes more than without, of a budget of %d and puts of 1 MiB" % (within - without, budget))

    def of_many(fmt, budget):
        """Small puts count, too."""
        a = started(world, fmt, world.path(), asynchronous="mem=%d,threads=2" % budget, bandwidth="5M")
        for k in range(40):
            a.wants("put 0 %d %d" % (k * 5, 5))
            pending = a.pending()[0]
            if pending > budget + RECORD:
                raise Wrong("%d bytes are pending, of a budget of %d and puts of %d" % (pending, budget, RECORD))
        a.kill()

    def starts(fmt):
        """What was put is written while the program does something else, without any further call."""
        a = started(world, fmt, world.path())
        a.wants("put 0 0 %d" % BEHIND)
        begin = left = a.pending()[0]
        until = time.monotonic() + MOST_SECONDS
        # Some may be collected for a larger write. Between looks nothing is asked.
        while left > 256 << 10:
            if time.monotonic() > until:
                raise Wrong("of %d pending bytes %d are left after a long time" % (begin, left))
            time.sleep(BEHIND * RECORD / 20e6)
            left = a.pending()[0]
        a.kill()

    def never_wait(fmt):
        """Accepted puts show in inquiries at once, and inquiries do not wait for them."""
        path = world.path()
        # Compressed, it is little: it has to take its time on a busy machine, too.
        a = world.slow(bandwidth="200K")
        a.wants("create 0 %s %d %s" % (fmt, wide, path))
        a.wants("put 0 0 4")
        a.until_pending()
        began = time.monotonic()
        a.wants("len 0", 0, [4])
        # On a machine that stood still for longer nothing may be left.
        if a.pending()[0] == 0 and time.monotonic() - began < 0.1:
            raise Wrong("nothing is pending after an inquiry")
        a.kill()

    def reads(fmt):
        """A get waits for the puts it overlaps, and not for others."""
        path = world.path()
        a = world.slow(bandwidth="4M")
        a.wants("create 0 %s %d %s" % (fmt, wide, path))
        a.wants("put 0 0 1")
        a.wants("sync 0")
        began = time.monotonic()
        a.wants("put 0 1 10")  # 15 MiB: at least 3.9 s
        begin = a.pending()[0]
        a.wants("get 0 0 0 1", 0, [1, 0, 0])
        # On a machine that stood still for longer nothing may be left.
        if a.pending()[0] == 0 and time.monotonic() - began < begin / 4e6:
            raise Wrong("a get waited for puts that it does not overlap")
        a.wants("get 0 1 1 1", 0, [1, 0, 0])
        left = a.pending()[0]
        if left >= begin or (left == 0 and time.monotonic() - began < begin / 4e6):
            raise Wrong("of %d pending bytes %d are left after a get that overlaps some" % (begin, left))
        a.wants("get 0 0 0 11", 0, [11, 0, 0])
        a.wants("close 0")
        a.ends()
        world.path().unlink()

    def waits_when_full(fmt):
        """A full queue lets the program wait, not grow."""
        path = world.path()
        a = started(world, fmt, path, asynchronous="mem=%d,threads=1" % (4 * RECORD))
        seconds = a.ask("put 0 0 %d" % BEHIND)[1]
        least = (BEHIND - 6) * RECORD / 20e6
        if seconds < least * 0.9:
            raise Wrong("puts took %.3f s, and the device alone needs %.3f" % (seconds, least))
        a.wants("close 0")
        a.ends()
        world.holds(path, BEHIND, fmt)

    for fmt in FORMATS:
        for budget in (1, 4 * WIDTH, 8 * WIDTH, RECORD):
            yield "one-put/%s/%d" % (fmt, budget), lambda a=(fmt, budget): of_one_put(*a)
        yield "huge/" + fmt, lambda f=fmt: huge(f)
        for budget in (8 * MIB, MIB, 64 << 10):
            yield "memory/%s/%d" % (fmt, budget), lambda a=(fmt, budget): memory(*a)
        for budget in (64 << 10, MIB):
            yield "many/%s/%d" % (fmt, budget), lambda a=(fmt, budget): of_many(*a)
        yield "starts/" + fmt, lambda f=fmt: starts(f)
        yield "never-wait/" + fmt, lambda f=fmt: never_wait(f)
        if fmt != "z":  # deflated, this is too little to keep the device busy
            yield "reads/" + fmt, lambda f=fmt: reads(f)
            yield "full-queue/" + fmt, lambda f=fmt: waits_when_full(f)


# ---- Settings --------------------------------------------------------------------------------------


def settings(world):
    def fragment(fmt, word, env, behind):
        path = world.path()
        a = world.agent(ZONDA_IO="throttle:20M,file", **env)
        a.wants("create 0 %s %d %s#zonda.async=%s" % (fmt, WIDTH, path, word))
        a.wants("put 0 0 %d" % BEHIND)
        if (a.pending()[0] > 0) != behind:
            raise Wrong("%d bytes are pending" % a.pending()[0])
        a.wants("close 0")
        a.ends()
        world.same_bytes(path, fmt, "put 0 0 %d" % BEHIND)

    def word(text, fine):
        path = world.path()
        a = world.agent(ZONDA_ASYNC=text)
        a.wants("create 0 5 %d %s" % (WIDTH, path))
        a.wants("put 0 0 30")
        a.wants("nulls 0")
        a.wants("close 0")
        said = a.ends()[1].splitlines()
        if fine and said or not fine and (len(said) != 1 or "ZONDA_ASYNC" not in said[0]):
            raise Wrong("on standard error: %s" % said)
        world.same_bytes(path, "5", "put 0 0 30")

    for fmt in FORMATS:
        yield "fragment/%s/on" % fmt, lambda f=fmt: fragment(f, "on", {}, True)
        yield "fragment/%s/mem" % fmt, lambda f=fmt: fragment(f, "mem=32M,threads=1", {"ZONDA_ASYNC": "off"}, True)
        yield "fragment/%s/off" % fmt, lambda f=fmt: fragment(f, "off", {"ZONDA_ASYNC": "on"}, False)
    for text in ("", "off", "on", "mem=1M", "threads=3", "threads=1,mem=2G", "mem=99999999999999999999"):
        yield "word/" + text, lambda t=text: word(t, True)
    for text in ("perhaps", "mem=", "mem=x", "mem=-1", "threads=x", "on,colour=red"):
        yield "word/" + text, lambda t=text: word(t, False)


# ---- The helper process ----------------------------------------------------------------------------


def helper(world):
    def survives(fmt):
        """Nothing that a put accepted is lost by SIGKILL of the program."""
        path = world.path()
        a = started(world, fmt, path, asynchronous="helper")
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        a.kill()
        until = time.monotonic() + MOST_SECONDS
        while True:
            try:
                world.holds(path, BEHIND, fmt, BEHIND)
                return
            except Wrong:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def inherits(fmt):
        """Nor by SIGKILL of the helper."""
        path = world.path()
        a = started(world, fmt, path, asynchronous="helper")
        a.wants("put 0 0 %d" % BEHIND)
        a.until_pending()
        for pid in helpers(a.process.pid):
            os.kill(pid, signal.SIGKILL)
        a.wants("put 0 %d 20" % BEHIND)
        a.wants("close 0")
        a.ends()
        world.same_bytes(path, fmt, "put 0 0 %d" % BEHIND, "put 0 %d 20" % BEHIND)

    if not has_helper(world):
        return
    for fmt in FORMATS:
        yield "helper/%s/program-dies" % fmt, lambda f=fmt: survives(f)
        yield "helper/%s/helper-dies" % fmt, lambda f=fmt: inherits(f)


def has_helper(world):
    try:
        world.wants_helper()
    except rig.Skip:
        return False
    return True


def helpers(pid):
    """Helper processes of the program with this number, which are no children of it."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if entry.isdigit() and words[1:4] == [b"iod", b"--program", b"%d" % pid]:
            found.append(int(entry))
    if not found:
        raise Wrong("the program has no helper")
    return found


PARTS = (ends, company, budgets, settings, helper)
