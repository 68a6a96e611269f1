#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How files end. What close(2) reports of a file that was written (NFS and quotas tell only there that it could not be
kept) reaches nc_close and the exit status of each tool, for each way to write a file; and nothing that was there
before and is no ordinary file (devices, pipes, links) is removed where a file is given up.

    tests/ends/run.py [--quick] [--parts library,journals,tools,special]

tests/rig/places.py has the settings.
"""

import errno
import itertools
import os
import shlex
import stat
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import BIN  # noqa: E402

CLOBBER, DISKLESS, CDF5, CLASSIC, OFFSET, PERSIST, NC4, SHARE = 0, 8, 0x20, 0x100, 0x200, 0x4000, 0x1000, 0x800
LINKED = 1 << 20
FORMATS = {"classic": 0, "64-bit offset": OFFSET, "cdf5": CDF5, "netcdf4": NC4, "netcdf4 classic": NC4 | CLASSIC}
CAUSES = [errno.EIO, errno.EDQUOT, errno.ENOSPC]
CDL = "netcdf x { dimensions: y = 4 ; x = 5 ; variables: float v(y, x) ; data: v = %s ; }" % ", ".join(map(str, range(20)))

counts = rig.Counts()


def check(label, is_right, said):
    counts.check(label, None if is_right else said or "it says nothing")


def run(command, **more):
    return rig.run(command, rig.environment(rig.LIBDIR, **more), seconds=60)


class Place:
    """A folder whose files cannot be closed in peace."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.out = scratch / "out"
        self.out.mkdir()
        self.shim = rig.compile_c(scratch / "close_fails.so", HERE / "close_fails.c", link=None, flags=("-shared", "-fPIC"))
        self.put = rig.compile_c(scratch / "put", HERE / "put.c")
        (scratch / "x.cdl").write_text(CDL)
        rig.must([BIN / "ncgen", "-o", scratch / "in.nc", scratch / "x.cdl"])

    def failing(self, cause):
        return {"LD_PRELOAD": self.shim, "CLOSE_FAILS": str(self.out) + "/", "CLOSE_ERRNO": str(cause)}

    def clean(self):
        for path in self.out.iterdir():
            path.unlink()


def library(place):
    ways = {
        "new": ({}, 0),
        "open": ({}, 0),
        "shared": ({}, SHARE),
        "diskless": ({}, DISKLESS | PERSIST),
        "unbuffered": ({"ZONDA_IO": "file"}, 0),
        "many layers": ({"ZONDA_IO": "cache:4:4,event,throttle:1G,file"}, 0),
        "synced": ({"ZONDA_SYNC": "full"}, 0),
        "write-behind": ({"ZONDA_ASYNC": "on"}, 0),
    }
    path = str(place.out / "x.nc")
    for (format, mode), (way, (more, flags)), cause in itertools.product(FORMATS.items(), ways.items(), CAUSES):
        place.clean()
        how = "open" if way == "open" else "new"
        if way == "open":
            run([place.put, str(mode), "new", path])
        failing = place.failing(cause)
        if way == "diskless" and cause != errno.EIO:
            # Where there is no room for another file it is written in place of the old one.
            failing["CLOSE_ALWAYS"] = "1"
        done = run([place.put, str(mode | flags), how, path], **more, **failing)
        # The reported cause, and then no such file: it has ended. What is in memory is there still, and is tried again.
        again = -33 if way != "diskless" else cause if "CLOSE_ALWAYS" in failing else 0
        check(f"nc_close of {format}, {way}, {errno.errorcode[cause]}", done.stdout == f"{cause} {again}\n",
              f"{done.stdout.strip()} {done.stderr.strip()}")  # fmt: skip
        place.clean()
        if way == "open":
            run([place.put, str(mode), "new", path])
        done = run([place.put, str(mode | flags), how, path], **more)
        check(f"nc_close of {format}, {way}", done.stdout == "0 -33\n", done.stdout + done.stderr)
    for format, mode in FORMATS.items():
        place.clean()
        done = run([place.put, str(mode), "exit", path], **place.failing(errno.EDQUOT))
        check(f"exit without nc_close of {format}", "Disk quota exceeded" in done.stderr and "x.nc" in done.stderr, done.stderr)


def journals(place):
    """A journal that could not be kept is not relied on: the change is refused, whatever is in the file is as it was, and the
    next call makes the change with another journal."""
    if rig.missing("ncgen", "ncdump"):
        counts.skip("journals", "there is no ncdump of the distribution")
        return
    path = place.out / "x.nc"

    def shown():
        return rig.must([rig.tool("ncdump"), path])

    def others(text):
        return [line for line in text.splitlines() if ":history" not in line]

    def make(mode):
        place.clean()
        run([place.put, str(mode & ~LINKED), "wide", path])
        if mode & NC4:
            # A file of the reference: the headers of its objects may cross sectors.
            made = path.with_suffix(".cdl")
            made.write_text(shown())
            path.unlink()
            rig.must([rig.tool("ncgen"), "-4", "-o", path, made])
            made.unlink()
        if mode & LINKED:
            # No copy takes the place of a file with two names.
            os.link(path, place.out / "y")

    # Which call of close of the journal fails: behind its description, behind the room for what moves, behind a batch.
    kinds = [("netcdf4", NC4, "grow", 1)]
    for format in ("classic", "64-bit offset", "cdf5"):
        kinds += [(format, FORMATS[format], "grow", 1), (f"{format}, data move", FORMATS[format] | LINKED, "move", 3)]
    for (name, mode, way, n_asked), (level, more), cause in itertools.product(
        kinds, {"": {}, ", synced": {"ZONDA_SYNC": "full"}}.items(), CAUSES):
        for nth, always in itertools.product(range(n_asked), (False, True)):
            make(mode)
            before = shown()
            failing = place.failing(cause) | {"CLOSE_SUFFIX": ".zonda-journal", "CLOSE_AFTER": str(nth)} | more
            if always:
                failing["CLOSE_ALWAYS"] = "1"
            done = run([place.put, "0", way, path], **failing)
            label = f"the journal of {name}{level}, {errno.errorcode[cause]} at its close {nth}, {'always' if always else 'once'}"
            # Where there is no room for a large one, the move tries smaller ones before it gives up.
            retried = way == "move" and cause != errno.EIO and nth < 2
            said = f"{cause} {cause}" if always else "0 0" if retried else f"{cause} 0"
            check(label, done.stdout == f"{said}\n", f"{done.stdout.strip()} {done.stderr.strip()}")
            left = [file.name for file in place.out.iterdir() if "zonda" in file.name]
            if always and nth < 2:
                check(label + ": the file", shown() == before and not left, f"it was changed, or there is {left}")
                # Later it can be kept.
                done = run([place.put, "0", way, path], **more)
                check(label + ": later", done.stdout == "0 0\n", done.stdout + done.stderr)
            elif always:
                # Data may have begun to move: who opens the file next completes it.
                done = run([place.put, "0", way, path], **more)
                check(label + ": later", done.stdout == "0 0\n", done.stdout + done.stderr)
            left = [file.name for file in place.out.iterdir() if "zonda" in file.name]
            after = shown()
            check(label + ": the change", "nnnn" in after and others(after) == others(before) and not left,
                  f"it is not whole, or there is {left}")  # fmt: skip


def tools(place):
    out, source, trace = place.out, place.scratch / "in.nc", place.scratch / "run.trace"
    made = run([BIN / "zonda", "copy", "-k", "netcdf4", "-d", "1", source, place.scratch / "copied.nc"], ZONDA_TRACE=str(trace))
    check("files to work on", made.returncode == 0 and trace.exists(), made.stderr)
    zonda = f"{BIN}/zonda"
    commands = [
        f"{BIN}/ncdump {source} > {out}/a",
        f"{BIN}/ncdump -h {source} > {out}/a",
        f"{BIN}/ncgen -o {out}/a.nc {place.scratch}/x.cdl",
        f"{BIN}/ncgen -4 -o {out}/a.nc {place.scratch}/x.cdl",
        f"{BIN}/ncgen -d -o {out}/a.nc {place.scratch}/x.cdl",
        f"{BIN}/ncgen -lc {place.scratch}/x.cdl > {out}/a.c",
        f"{BIN}/ncgen3 -o {out}/a.nc {place.scratch}/x.cdl",
        f"{BIN}/nccopy {source} {out}/a.nc",
        f"{BIN}/nccopy -4 -d 1 {source} {out}/a.nc",
        f"{BIN}/nccopy -w {source} {out}/a.nc",
        f"{zonda} copy {source} {out}/a.nc",
        f"{zonda} copy -k netcdf4 -d 1 {source} {out}/a.nc",
        f"{zonda} recover --to {out}/a.nc {source}",
        f"{zonda} dump {source} > {out}/a",
        f"{zonda} dump --help > {out}/a",
        f"{zonda} info {source} > {out}/a",
        f"{zonda} check {source} > {out}/a",
        f"{zonda} man > {out}/a",
        f"{zonda} completions bash > {out}/a",
        f"{zonda} view {source} v > {out}/a",
        f"{zonda} view {source} v -o {out}/a.png",
        f"{zonda} view {source} v -o {out}/a.svg",
    ]
    commands += [f"{zonda} trace {kind} {out}/a.svg {trace}" for kind in ("--html", "--chrome", "-o")]
    for command in commands:
        place.clean()
        # The shell has the file open, too: what it says of it is not looked at.
        done = run(["sh", "-c", f"exec {command}"], **place.failing(errno.EDQUOT))
        said = f"{done.returncode} {done.stderr.strip()}"
        words = command.replace(str(place.scratch), "").replace(f"{BIN}/", "")
        check(words, done.returncode not in (0, 127) and "Disk quota exceeded" in done.stderr, said)
        place.clean()
        done = run(["sh", "-c", f"exec {command}"])
        check(words + ", nothing wrong", done.returncode == 0, done.stderr)


def special(place):
    """Targets that are no files, and failures that give them up."""
    out, source = place.out, place.scratch / "in.nc"
    (place.scratch / "bad.cdl").write_text(CDL.replace("v = 0", "v = nonsense"))
    zonda = f"{BIN}/zonda"
    commands = [
        f"{BIN}/ncgen -o @ {place.scratch}/x.cdl",
        f"{BIN}/ncgen -o @ {place.scratch}/bad.cdl",
        f"{BIN}/ncgen3 -o @ {place.scratch}/bad.cdl",
        f"{BIN}/nccopy {source} @",
        f"{BIN}/nccopy {place.scratch}/bad.cdl @",
        f"{zonda} copy -f {source} @",
        f"{zonda} copy -f {place.scratch}/bad.cdl @",
        f"{zonda} recover -f --to @ {source}",
        f"{zonda} recover @",
        f"{zonda} view {source} v -o @.png",
        f"{place.put} 0 define @",
        f"{place.put} {NC4} define @",
        f"{place.put} {DISKLESS | PERSIST} define @",
        f"{place.put} 0 new @",
        f"{place.put} {NC4} new @",
    ]

    def device(path):
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))  # /dev/full

    def link(path):
        (place.scratch / "meant.nc").write_bytes(b"")
        path.symlink_to(place.scratch / "meant.nc")

    makers = {"link": link, "link to /dev/full": lambda path: path.symlink_to("/dev/full")}
    if os.geteuid() == 0:
        makers["device"] = device
    for command, (kind, make) in itertools.product(commands, makers.items()):
        place.clean()
        target = out / ("t.png" if "@.png" in command else "t")
        try:
            make(target)
        except PermissionError:
            continue
        before = os.lstat(target)
        done = run(shlex.split(command.replace("@.png", str(target)).replace("@", str(target))))
        now = os.lstat(target) if os.path.lexists(target) else None
        same = now is not None and (now.st_ino, stat.S_IFMT(now.st_mode)) == (before.st_ino, stat.S_IFMT(before.st_mode))
        check(f"{command.replace(str(place.scratch), '').replace(f'{BIN}/', '')} on a {kind}", same and done.returncode >= 0,
              f"exit {done.returncode}, {'gone or replaced' if not same else ''} {done.stderr.strip()}")  # fmt: skip
    # What was made is removed; not another file that has its name by then.
    place.clean()
    for mode in (0, NC4, DISKLESS | PERSIST):
        done = run([place.put, str(mode), "define", str(out / "x.nc")])
        check(f"nc_abort of a new file, mode {mode}", done.stdout == "0 -33\n" and not (out / "x.nc").exists(), done.stdout)


def main():
    parts = {"library": library, "journals": journals, "tools": tools, "special": special}
    marks = {name: rig.QUICK if name in ("tools", "special") else rig.FULL for name in parts}
    options = rig.arguments(rig.parser(__doc__, parts=marks, only=None))
    with rig.scratch() as folder:
        place = Place(folder)
        for part in options.chosen():
            parts[part](place)
    return counts


if __name__ == "__main__":
    rig.main(main)
