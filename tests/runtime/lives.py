#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What C programs do to threads and libraries, and what is left of their files.

    tests/runtime/lives.py [--quick] [--long] [--seed N] [--only REGEX]

cancel   `pthread_cancel` of a thread that puts and syncs, after any time: all ends by itself, and every row that was synced is read by the
         distribution's library. Asynchronously, which may end a thread inside malloc, the process may also stay: it is killed, and the same is read
unload   `dlclose` while a file is open: the library stays, calls go on, the end of the program commits
fork     Python's multiprocessing, by fork, with write-behind at work: parent and children end, and each file has all rows

--long leads 250 lives of each cancel, 100 of the others. docs/dev/lifecycle.md has what must hold.
"""
import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

# Only hangs are bounded.
SECONDS = 120
# What may stay for ever is killed after this; what ends, ends in a hundredth of it.
STAYS_SECONDS = 20
WIDTH = 2000
FORMATS = {"classic": 0, "CDF-5": 32, "netCDF-4": 4096}

# Run by Python in a program of its own: ctypes, so that it needs nothing.
MULTIPROCESSING = """
import ctypes, multiprocessing, sys, threading
nc = ctypes.CDLL("libnetcdf.so.19")
size = ctypes.c_size_t

def write(path, mode, rows, go=None):
    ids = [ctypes.c_int() for _ in range(4)]
    f, t, x, v = ids
    def must(code):
        if code:
            raise SystemExit("%s: %d" % (path, code))
    must(nc.nc_create(path.encode(), mode, ctypes.byref(f)))
    must(nc.nc_def_dim(f, b"t", size(0), ctypes.byref(t)))
    must(nc.nc_def_dim(f, b"x", size(2000), ctypes.byref(x)))
    must(nc.nc_def_var(f, b"v", 4, 2, (ctypes.c_int * 2)(t.value, x.value), ctypes.byref(v)))
    must(nc.nc_enddef(f))
    for row in range(rows):
        values = (ctypes.c_int * 2000)(*range(row, row + 2000))
        must(nc.nc_put_vara_int(f, v, (size * 2)(row, 0), (size * 2)(1, 2000), values))
        if go and row == 2:
            go.set()
    must(nc.nc_close(f))

path, mode = sys.argv[1], int(sys.argv[2])
go = threading.Event()
mine = threading.Thread(target=write, args=(path, mode, 12, go))
mine.start()
go.wait()
with multiprocessing.get_context("fork").Pool(3) as pool:
    pool.starmap(write, [("%s.%d" % (path, k), mode, 4) for k in range(3)])
mine.join()
"""


def environment(**more):
    return rig.environment(rig.LIBDIR, **more)


def rows_of(path):
    """The rows of a file as the distribution's library reads them: a number, or None where it is not whole."""
    done = rig.run([rig.tool("ncdump"), "-v", "v", path], seconds=SECONDS)
    if done.returncode:
        raise Wrong("the distribution's ncdump: %s" % done.stderr.strip()[-300:])
    text = done.stdout.partition("v =")[2].strip().rstrip("};\n ")
    values = [word.strip() for word in text.replace(";", "").split(",") if word.strip()]
    rows = [values[at:at + WIDTH] for at in range(0, len(values), WIDTH)]
    return [row == [str(k + i) for i in range(WIDTH)] for k, row in enumerate(rows)]


def lost(path, said):
    """The rows among `said` that are not in the file."""
    rows = rows_of(path)
    return [row for row in said if row >= len(rows) or not rows[row]]


def cancel(program, folder, chance, asynchronous):
    name, mode = chance.choice(sorted(FORMATS.items()))
    path = folder / "cancel.nc"
    path.unlink(missing_ok=True)
    env = {"ZONDA_ASYNC": chance.choice(["off", "on"])}
    micros = int(10 ** chance.uniform(2, 5))
    what = "%s, %s, after %d us" % (name, env, micros)
    process = subprocess.Popen([program, "cancel", str(asynchronous), str(mode), str(micros), path], env=environment(**env), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=STAYS_SECONDS if asynchronous else SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        if not asynchronous:
            raise Wrong("%s: it does not end" % what) from None
    # Where glibc may not unwind the thread, the process ends as by a signal: what a kill would leave.
    if process.returncode not in ((0, -6, -11, -9) if asynchronous else (0, -6)):
        raise Wrong("%s: ends with %d: %s" % (what, process.returncode, err[-300:]))
    said = [int(line) for line in out.split()]
    if said and (gone := lost(path, said)):
        raise Wrong("%s: rows %s of %d that were synced are not there" % (what, gone[:5], len(said)))
    return process.returncode


def unload(program, folder, chance):
    name, mode = chance.choice(sorted(FORMATS.items()))
    env = {"ZONDA_ASYNC": chance.choice(["off", "on", "helper"])}
    path = folder / "unload.nc"
    path.unlink(missing_ok=True)
    done = rig.run([program, "unload", mode, path], environment(**env), seconds=SECONDS)
    if done.returncode or done.stdout.split() != ["0", "1"]:
        raise Wrong("%s, %s: ends with %d: %s" % (name, env, done.returncode, done.stderr[-300:]))
    if lost(path, [0, 1]):
        raise Wrong("%s, %s: what was put is not there" % (name, env))


def fork(folder, chance):
    name, mode = chance.choice(sorted(FORMATS.items()))
    env = {"ZONDA_ASYNC": chance.choice(["off", "on"])}
    path = folder / "fork.nc"
    done = rig.run([sys.executable, "-c", MULTIPROCESSING, path, mode], environment(**env), seconds=SECONDS)
    if done.returncode:
        raise Wrong("%s, %s: ends with %d: %s" % (name, env, done.returncode, done.stderr[-300:]))
    for file, rows in [(path, 12), *((Path("%s.%d" % (path, k)), 4) for k in range(3))]:
        if lost(file, range(rows)):
            raise Wrong("%s, %s: %s has not all rows" % (name, env, file.name))


def main():
    options = rig.arguments(rig.parser(__doc__, seed=1))
    counts, ends = rig.Counts(), {0: 0, -6: 0, -9: 0, -11: 0}
    if rig.missing("ncdump"):
        raise rig.Skip("there is no ncdump of the distribution")
    with rig.scratch() as folder:
        # It loads the library by itself.
        program = rig.compile_c(folder / "lives", HERE / "lives.c", link=None, flags=["-I", rig.INCDIR], libraries=["-ldl", "-pthread"])
        kinds = [("cancel", lambda chance: cancel(program, folder, chance, 0), options.by(3, 8, 250)),
                 ("cancel asynchronously", lambda chance: cancel(program, folder, chance, 1), options.by(2, 8, 250)),
                 ("unload", lambda chance: unload(program, folder, chance), options.by(2, 6, 100)),
                 ("fork", lambda chance: fork(folder, chance), options.by(2, 4, 100))]
        for kind, lead, times in kinds:
            for k in range(times if options.wants(kind) else 0):
                chance = random.Random("%s %d %d" % (kind, options.seed, k))
                end = counts.attempt("%s %d (--seed %d)" % (kind, k, options.seed), lead, chance)
                if end is not None and kind.startswith("cancel"):
                    ends[end] += 1
    print("%d of the threads that were cancelled took the process along, %d left it without an end" % (ends[-6] + ends[-11], ends[-9]))
    return counts


if __name__ == "__main__":
    rig.main(main)
