# SPDX-License-Identifier: MIT OR Apache-2.0
"""Write-behind on storage that fails: nothing that was promised is lost, errors are told, nothing hangs.

What is promised: when nc_sync or nc_close has given NC_NOERR, everything put before is in the file. A put that
gives an error was not accepted; one that was accepted stays until it could be written."""

import errno

from bed import FORMATS, WIDTH, Wrong

STACKS = ("fault:write:%d%s,file", "cache,fault:write:%d%s,file")
SETTINGS = ("mem=64k,threads=1", "mem=64M,threads=2")
RECORDS = 60


def numbers():
    """Which write fails: each of the first, then ever fewer."""
    n = 1
    while True:
        yield n
        n = n + 1 if n < 6 else n * 5 // 4


def full(world, fmt, stack, setting, code, n):
    """From write n on the device takes nothing. Whether it came to that."""
    path = world.path()
    path.unlink(missing_ok=True)
    a = world.agent(ZONDA_ASYNC=setting, ZONDA_IO=stack % (n, "+:" + errno.errorcode[code].lower()))
    codes, promised = [], None

    def say(line):
        got, _, said = a.ask(line)
        if got not in (0, code):
            raise Wrong("%r gives %d, not 0 or %d" % (line, got, code))
        codes.append(got)
        return got, said

    if say("create 0 %s %d %s" % (fmt, WIDTH, path))[0] == 0:
        promised = 0
        put, said = say("put 0 0 20")
        if say("sync 0")[0] == 0 and put == 0:
            promised = 20
        put2, said = say("put 0 20 %d" % (RECORDS - 20))
        for _ in range(2):
            if say("sync 0")[0] == 0 and put == put2 == 0:
                promised = RECORDS
        told = any(codes)
        if say("close 0")[0] == 0 and not told:
            promised = RECORDS
    a.ends()
    if promised is not None:
        world.holds(path, promised, fmt, RECORDS)
    return any(codes)


def once(world, fmt, stack, setting, n):
    """Write n fails and the next ones work: who goes on where it failed has a complete file."""
    path = world.path()
    path.unlink(missing_ok=True)
    a = world.agent(ZONDA_ASYNC=setting, ZONDA_IO=stack % (n, ":eio"))
    failed = 0

    def until_it_works(line):
        nonlocal failed
        for _ in range(4):
            code, _, said = a.ask(line)
            if code == 0:
                return
            if code != errno.EIO:
                raise Wrong("%r gives %d, not %d" % (line, code, errno.EIO))
            failed += 1
        raise Wrong("%r fails again and again, though one write failed" % line)

    code = a.ask("create 0 %s %d %s" % (fmt, WIDTH, path))[0]
    if code == errno.EIO:
        # The end of the definitions failed. A classic file is still defining, a netCDF-4 file as the reference's is not.
        failed += 1
        a.ask("enddef 0")
        until_it_works("sync 0")
    elif code:
        raise Wrong("nc_create and what follows give %d" % code)
    at = 0
    while at < RECORDS:
        # After an error the program syncs until that works, and puts what was not accepted.
        code, _, said = a.ask("put 0 %d %d" % (at, min(10, RECORDS - at)))
        if code not in (0, errno.EIO):
            raise Wrong("a put gives %d" % code)
        at += int(said[0]) // 2
        if code:
            failed += 1
            until_it_works("sync 0")
    until_it_works("sync 0")
    if world.behind and a.pending() != (0, 0):
        raise Wrong("after a sync that worked the status is %s" % (a.pending(),))
    until_it_works("close 0")
    status, said = a.ends()
    world.holds(path, RECORDS, fmt, RECORDS)
    return failed


def accepted_is_kept(world, fmt):
    """The device is full while puts are pending; a put that was accepted is written once there is room. The room
    comes because only one write fails, after the queue has filled."""
    met = 0
    for n in (2, 3, 4, 6, 9):
        path = world.path()
        a = world.agent(ZONDA_ASYNC="mem=64M,threads=2", ZONDA_IO="fault:write:%d:enospc,throttle:20M,file" % n)
        if a.ask("create 0 %s %d %s" % (fmt, WIDTH, path))[0] == 0:
            code, _, said = a.ask("put 0 0 %d" % RECORDS)
            accepted = int(said[0])
            codes = [code, a.ask("sync 0")[0], a.ask("sync 0")[0]]
            if codes[-1] or set(codes) - {0, errno.ENOSPC}:
                raise Wrong("write %d: codes of put, sync and sync are %s" % (n, codes))
            met += errno.ENOSPC in codes
            # The first half is not put again.
            again = min(accepted // 2, RECORDS // 2) if code == 0 else accepted // 2
            a.wants("put 0 %d %d" % (again, RECORDS - again))
            a.wants("close 0")
            a.ends()
            world.holds(path, RECORDS, fmt, RECORDS)
        world.clear()
    if not met:
        raise Wrong("no write failed")


def told_everywhere(world, fmt):
    """An error that nobody met yet is told by the next put, by nc_sync and by nc_close, again and again."""
    path = world.path()
    a = world.agent(ZONDA_ASYNC="mem=64M,threads=2", ZONDA_IO="fault:write:5+:enospc,throttle:20M,file")
    a.wants("create 0 %s %d %s" % (fmt, WIDTH, path))
    a.ask("put 0 0 20")
    a.wants("sync 0", errno.ENOSPC)
    if a.wants("status 0")[1] != errno.ENOSPC:
        raise Wrong("the status knows no error")
    if not a.pending()[0]:
        raise Wrong("what was accepted is not pending any more")
    for line, values in (("put 0 20 5", [0]), ("put 0 20 5", [0]), ("sync 0", None), ("close 0", None), ("close 0", None)):
        a.wants(line, errno.ENOSPC, values)
    # Reading what was put before, and inquiries, still work.
    a.wants("len 0")
    a.ends()
    world.holds(path, 0, fmt, 20)


def lost_sync(world, fmt, setting, n):
    """Sync n fails once, as a device's that then forgets what it lost: no later sync is a success, the close neither,
    and the file is closed all the same. What was promised before is there."""
    path = world.path()
    path.unlink(missing_ok=True)
    a = world.agent(ZONDA_ASYNC=setting, ZONDA_IO="cache,fault:sync:%d:eio,file" % n)
    codes, promised = [], None

    def say(line):
        code = a.ask(line)[0]
        if any(codes) and code == 0 and not line.startswith("put"):
            raise Wrong("%r succeeds after a sync that failed" % line)
        if code not in (0, errno.EIO):
            raise Wrong("%r gives %d, not 0 or %d" % (line, code, errno.EIO))
        codes.append(code)
        return code

    if say("create 0 %s %d %s" % (fmt, WIDTH, path)) == 0:
        promised = 0
        for at in range(0, RECORDS, 20):
            put = say("put 0 %d 20" % at)
            if say("sync 0") == 0 and put == 0:
                promised = at + 20
        say("close 0")
        if a.ask("close 0")[0] == 0:
            raise Wrong("a file is closed twice")
    a.ends()
    if promised is not None:
        world.holds(path, promised, fmt, RECORDS)
    return any(codes)


def scenes(world):
    for fmt in FORMATS:
        for code in (errno.ENOSPC, errno.EIO):
            for stack in STACKS:
                for setting in SETTINGS:
                    name = "%s/%s/%s/%s" % (errno.errorcode[code].lower(), fmt, "cached" if stack.startswith("cache") else "plain", setting)
                    yield "full/" + name, lambda a=(fmt, stack, setting, code): sweep(full, world, *a)
                    if code == errno.EIO:
                        yield "once/" + name, lambda a=(fmt, stack, setting): sweep(once, world, *a)
        for setting in SETTINGS:
            name = "lost/%s/%s" % (fmt, setting)
            yield name, lambda a=(fmt, setting): sweep(lost_sync, world, *a)
        if world.behind:
            yield "kept/" + fmt, lambda f=fmt: accepted_is_kept(world, f)
            yield "told/" + fmt, lambda f=fmt: told_everywhere(world, f)


def sweep(scene, world, *how):
    """Lets write after write fail, until there is no such write."""
    met = 0
    for n in numbers():
        try:
            failed = scene(world, *how, n)
        except Wrong as wrong:
            raise Wrong("write %d: %s" % (n, wrong)) from None
        finally:
            world.clear()
        if not failed:
            break
        met += 1
    if not met:
        raise Wrong("no write failed")
