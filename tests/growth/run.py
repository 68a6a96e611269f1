#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What grows with use: files, work, and the room that a change needs.

    tests/growth/run.py             a minute
    tests/growth/run.py --quick     the shortest loops of files, and kills
    tests/growth/run.py --long      longer loops, more definitions
    tests/growth/run.py --table     the lengths beside the reference's, as a table

Files: loops of small changes, each with a commit (bench/engines/growth.c), on files of ours and on files
that netCDF-C made; the file that is left is at most twice as long as the reference's after the same
calls, and the reference's ncdump shows the same of both. Loops of data are held to what readers
beside the writer are promised (docs/dev/nc4-commits.md): 4 MiB, or half of the file, more.

Killed: sessions of commits, each ended by SIGKILL, on one file. What such a writer had ahead is not added up, and goes
with the next session that ends well.

Work: many.c defines, asks, renames, overwrites and deletes n and 4n objects. Processor time is allowed
to grow twelvefold, work that grows with the square does sixteenfold; what takes less than a tenth of a
second is not judged, and everything has a generous bound.

Room: a redef that moves data, on a device (tmpfs, by root alone) that holds no copy of the file; and a file in memory
that is written to such a device, or to one that does not even hold what is new, where the file stays as it was. Chunks that
wait for more data leave the room to the data, whatever memory there is.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

SCRATCH = rig.out("growth")
# Loops on objects with many attributes, which are run for longer.
MANY = {"att": 3000, "var_att": 3000, "att_one_of_many": 1000, "att_del": 1000}
DATA = {"chunk", "record", "string", "vlen"}
PROMISED = 4 << 20
# Where a few bytes are a multiple: ours and the reference's have other least lengths.
SLACK = 4096
SLOWER, JUDGED_SECONDS, MOST_SECONDS = 12.0, 0.1, 60
MOVED_KB, LEAST_MORE_KB = 6 << 10, 48

counts = rig.Counts()


def say(ok, what):
    name, _, why = what.partition(": ")
    counts.check(name, None if ok else why or "not so")


def compile_program(source):
    return rig.compile_c(SCRATCH / source.stem, source)


def run(ours, *command, check=True, **more):
    done = rig.run(command, rig.environment(rig.LIBDIR if ours else None, **more), seconds=600)
    if check:
        done.check_returncode()
    return done


def shown(file):
    """All that the reference's ncdump shows of a file, but its name and the order of attributes."""
    return sorted(run(False, "ncdump", file).stdout.split("\n")[1:])


# ---- Killed

def killed(options):
    program = compile_program(HERE / "killed.c")
    file = SCRATCH / "killed.nc"
    file.unlink(missing_ok=True)
    for n in range(options.by(12, 12, 60)):
        run(True, program, file, 100 + n, "kill", check=False)
        if n == 0:
            first = file.stat().st_size
    say(file.stat().st_size <= first, f"killed: {file.stat().st_size} bytes, {first} after the first kill")
    values = 200
    run(True, program, file, values, "close")
    n = file.stat().st_size
    say(n <= 100 << 10, f"killed: {n} bytes after a session that ended well")
    text = run(False, "ncdump", file).stdout
    say(text.count(",") == values + 18 and "a = 19., 0" in text, f"killed: the reference reads {text[:200]}")


# ---- Files

def lengths(program, loop, n, kind):
    """The lengths of our file and of the reference's after a loop; both show the same."""
    found = []
    for ours in True, False:
        file = SCRATCH / f"{loop}-{'ours' if ours else 'theirs'}.nc"
        file.unlink(missing_ok=True)
        more = []
        if kind != "new":
            # Made by the reference, and gone on with by either.
            run(False, program, loop, 10, file)
            more = ["keep"] if kind == "theirs" else ["reopen"]
        found.append(int(run(ours, program, loop, n, file, *more).stdout))
    ours, theirs = (shown(SCRATCH / f"{loop}-{who}.nc") for who in ("ours", "theirs"))
    say(ours == theirs, f"{loop} {n} {kind}: the reference shows something else of our file ({SCRATCH / loop}-ours.nc)")
    return found


def files(options):
    program = compile_program(rig.ROOT / "bench/engines/growth.c")
    loops = run(False, program).stdout.split()
    rows = []
    kinds = options.by({"new": [10], "theirs": [10]}, {"new": [10, 100, 300], "theirs": [100], "reopened": [30]}, None)
    if options.long or options.table:
        kinds = {"new": [10, 100, 1000, 3000] if options.long else [10, 100, 1000], "theirs": [10, 300], "reopened": [10, 30, 100, 300]}
    for kind, lengths_of_loops in kinds.items():
        for n in lengths_of_loops:
            for loop in loops:
                if not options.wants(loop):
                    continue
                if n == max(lengths_of_loops) and kind == "new" and options.mark != rig.QUICK:
                    n = max(n, MANY.get(loop, n))
                ours, theirs = lengths(program, loop, n, kind)
                rows.append((kind, n, loop, ours, theirs))
                most = 2 * theirs + SLACK
                if loop in DATA:
                    most += PROMISED + ours // 2
                say(ours <= most, f"{loop} {n} {kind}: {ours} bytes, and {theirs} by the reference")
    if options.table:
        print("| File | n | Loop | ours | netCDF-C | ratio |\n|---|---|---|---|---|---|")
        for kind, n, loop, ours, theirs in rows:
            print(f"| {kind} | {n} | {loop} | {ours} | {theirs} | {ours / theirs:.2f} |")


# ---- Work

def times(program, mode, n, what):
    """Processor seconds of each step; the steps are named and numbered by the program."""
    result = run(True, program, mode, n, SCRATCH / "many.nc", what)
    return {line.split()[0]: float(line.split()[1]) for line in result.stdout.splitlines()}


def work(options):
    program = compile_program(HERE / "many.c")
    sizes = (4000, 16000)
    for mode in "classic", "cdf5", "netcdf4":
        for what in run(False, program).stdout.split():
            if not options.wants(what):
                continue
            # A commit of a classic file writes its whole header, as the reference does.
            if mode != "netcdf4" and what in ("grp", "type", "commits"):
                continue
            few, many = (times(program, mode, n, what) for n in sizes)
            for step, seconds in many.items():
                # What others did to a time meanwhile, they seldom do twice.
                if seconds > JUDGED_SECONDS and seconds > SLOWER * few[step]:
                    few, again = (times(program, mode, n, what) for n in sizes)
                    seconds = again[step]
                grows = seconds / max(few[step], 1e-4)
                say(seconds <= JUDGED_SECONDS or grows <= SLOWER,
                    f"{mode} {what} {step}: {few[step]:.3f} s for {sizes[0]}, {seconds:.3f} s for {sizes[1]}")
        for what in ("global", "var_atts"):
            n = 1000000 if mode != "netcdf4" else 65000
            for step, seconds in times(program, mode, n if options.long else n // 5, what).items():
                say(seconds <= MOST_SECONDS, f"{mode} {what} {step}: {seconds:.1f} s for {n} attributes")


# ---- Room

def room(options):
    if not options.wants("room"):
        return
    folder = SCRATCH / "small"
    folder.mkdir(exist_ok=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder]).returncode != 0:
        counts.skip("room", "no tmpfs can be mounted (who is not root cannot)")
        return

    def place(made, more_kb):
        for file in folder.iterdir():
            file.unlink()
        file = folder / "f.nc"
        shutil.copy(made, file)
        free = os.statvfs(folder)
        fill = free.f_bavail * free.f_frsize - (more_kb << 10)
        (folder / "fill").write_bytes(b"x" * max(0, fill))
        return file

    def left(name):
        there = sorted(found.name for found in folder.iterdir())
        say(there == ["f.nc", "fill"], f"{name}: left behind: {there}")

    try:
        program = compile_program(HERE / "room.c")
        for memory in ("0", "512K", "1M", "1G"):
            for file in folder.iterdir():
                file.unlink()
            # The device has 16 MiB.
            done = run(True, program, "waits", folder / "f.nc", 13 << 10, check=False, ZONDA_MEMORY=memory)
            say(done.returncode == 0, f"room, chunks that wait, ZONDA_MEMORY={memory}: {done.stdout}{done.stderr}")
        for how in "fixed", "records":
            made = SCRATCH / "room.nc"
            run(True, program, "make", how, made, MOVED_KB)
            for more_kb in (0, LEAST_MORE_KB, 400, 3000, 9 << 10):
                file = place(made, more_kb)
                name = f"room {how}, in memory, {more_kb} KB free"
                changed = run(True, program, "persist", how, file, MOVED_KB, check=False)
                if more_kb < 300:
                    say("No space left" in changed.stdout, f"{name}: {changed.stdout}{changed.stderr}")
                    say(file.read_bytes() == made.read_bytes(), f"{name}: the file is not as it was")
                else:
                    say(changed.returncode == 0, f"{name}: {changed.stdout}{changed.stderr}")
                    whole = run(False, program, "check", how, file, MOVED_KB, check=False)
                    say(whole.returncode == 0, f"{name}: {whole.stdout}{whole.stderr}")
                left(name)
            for more_kb in (LEAST_MORE_KB, 96, 700, 3000, 8 << 10, 10 << 10):
                for ours in False, True:
                    file = place(made, more_kb)
                    name = f"room {how}, {more_kb} KB free, {'ours' if ours else 'reference'}"
                    changed = run(ours, program, "redef", how, file, MOVED_KB, check=False)
                    say(changed.returncode == 0, f"{name}: {changed.stdout}{changed.stderr}")
                    whole = run(False, program, "check", how, file, MOVED_KB, check=False)
                    say(whole.returncode == 0, f"{name}: {whole.stdout}{whole.stderr}")
                    left(name)
    finally:
        subprocess.run(["umount", folder], check=True)


def main():
    marks = {"files": rig.QUICK, "killed": rig.QUICK, "work": rig.FULL, "room": rig.FULL}
    parser = rig.parser(__doc__, parts=marks, only="a pattern of loops, kinds of objects, or `room`")
    parser.add_argument("--table", action="store_true")
    options = rig.arguments(parser)
    rig.two_libraries()
    if rig.missing("ncdump"):
        raise rig.Skip("there is no ncdump of the distribution")
    for part in options.chosen():
        {"files": files, "killed": killed, "work": work, "room": room}[part](options)
    return counts


if __name__ == "__main__":
    rig.main(main)
