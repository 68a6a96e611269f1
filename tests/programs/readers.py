# SPDX-License-Identifier: MIT OR Apache-2.0
"""The field's readers over many netCDF-4 files, on the distribution's libnetcdf and on Zonda's.

    run.py --parts readers [--only REGEX] [--category netcdf4] [--programs ncdump,cdo]

ZONDA_CORPUS is a corpus with MANIFEST.tsv. Each program prints each file twice: on its own library, and on
Zonda's (by LD_LIBRARY_PATH; the netCDF4 wheel, which compare.py finds, by `zonda run`). Exit code and
standard output must agree, except where the distribution's library itself crashes or does not end.
Pairs of program and file (its name without folders) that are allowed to differ are in
readers-exceptions.txt, each with its reason; one that does not differ any more fails.

A program that is not installed is left out with a line. One line per difference.
"""
import os
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import compare
from compare import HERE, rig

# Only hangs are bounded.
SECONDS = 600
# Of what a program prints so much is compared: one file of a corpus gives 861 MB.
MOST_BYTES = 32 << 20

# Reads every variable of every group, and prints what the module makes of it.
PYTHON_READER = """
import sys, zlib, netCDF4, numpy as np
def show(g, indent=''):
    print(indent, 'group', g.path, list(g.ncattrs()))
    for n in g.ncattrs():
        print(indent, ' att', n, repr(g.getncattr(n))[:200])
    for d in g.dimensions.values():
        print(indent, ' dim', d.name, len(d), d.isunlimited())
    for t in (g.cmptypes, g.vltypes, g.enumtypes):
        print(indent, ' types', sorted(t))
    for v in g.variables.values():
        print(indent, ' var', v.name, v.dtype, v.dimensions, v.shape, v.chunking(), v.filters())
        for n in v.ncattrs():
            print(indent, '   att', n, repr(v.getncattr(n))[:200])
        v.set_auto_maskandscale(False)
        try:
            a = v[...]
            h = zlib.crc32(np.ascontiguousarray(a).tobytes()) if a.dtype.kind != 'O' else zlib.crc32(repr(a.tolist()).encode())
            print(indent, '   data', a.shape, a.dtype, h)
        except Exception as e:
            print(indent, '   error', type(e).__name__)
    for s in g.groups.values():
        show(s, indent + ' ')
with netCDF4.Dataset(sys.argv[1]) as f:
    print(f.data_model)
    show(f)
"""

PROGRAMS = {
    "ncdump": ["ncdump", "{file}"],
    "ncdump -s": ["ncdump", "-h", "-s", "{file}"],
    "ncdump -x": ["ncdump", "-x", "{file}"],
    "ncdump -k": ["ncdump", "-k", "{file}"],
    "ncks": ["ncks", "--cdl", "{file}"],
    "ncks -m": ["ncks", "-m", "--hdn", "{file}"],
    "cdo": ["cdo", "-s", "infon", "{file}"],
    "gdalinfo": ["gdalinfo", "NETCDF:{file}"],
}
MASKS = [
    (re.compile(rb"\[[0-9.]+s [0-9]+MB\]"), b"[time]"),
    (re.compile(rb"pid\d+"), b"pid"),
    (re.compile(rb"0x[0-9a-f]{6,}"), b"0x"),
    # A guess, and netCDF-C after 4.9.0 guesses better.
    (re.compile(rb"\t:_IsNetcdf4 = [01] ;"), b"\t:_IsNetcdf4"),
]


def run(command, env, folder):
    with subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        out = process.stdout.read(MOST_BYTES)
        is_long = len(out) == MOST_BYTES
        if is_long:
            process.kill()
        code = process.wait()
        if not timer.is_alive():
            return "timeout", b""
        timer.cancel()
    if is_long:
        code = "more than %d bytes" % MOST_BYTES
    for mask, plain in MASKS:
        out = mask.sub(plain, out)
    return code, out


def exceptions():
    found = {}
    path = os.path.join(HERE, "readers-exceptions.txt")
    for line in open(path) if os.path.exists(path) else ():
        if line.strip() and not line.startswith("#"):
            program, file, why = (x.strip() for x in line.split("|", 2))
            found[program, file] = why
    return found


def first_difference(a, b):
    for x, y in zip(a.splitlines(), b.splitlines()):
        if x != y:
            return "%.90s / %.90s" % (x.decode(errors="replace"), y.decode(errors="replace"))
    return "%d and %d lines" % (len(a.splitlines()), len(b.splitlines()))


def options(parser):
    parser.add_argument("--category", default="netcdf4", help="of readers: which files of the corpus")
    parser.add_argument("--programs", default="", help="of readers: which ones")


def over_a_corpus(options, counts):
    """What all readers say of all files."""
    if not rig.CORPUS:
        counts.skip("readers over a corpus", "ZONDA_CORPUS names none")
        return
    with rig.scratch() as scratch:
        read(options, counts, scratch)


def read(options, counts, scratch):
    python, why = compare.wheel_python()
    programs = dict(PROGRAMS)
    if python:
        script = str(scratch / "reader.py")
        (scratch / "reader.py").write_text(PYTHON_READER)
        programs["netCDF4 wheel"] = [python, script, "{file}"]
    else:
        counts.skip("netCDF4 wheel", why)
    if options.programs:
        programs = {n: c for n, c in programs.items() if n in options.programs.split(",")}
    for name in [n for n, c in programs.items() if not shutil.which(c[0])]:
        counts.skip(name, "not installed")
        del programs[name]
    rows = [l.rstrip("\n").split("\t") for l in open(os.path.join(rig.CORPUS, "MANIFEST.tsv"))]
    files = [r[0] for r in rows if re.fullmatch(options.category, r[1]) and r[3] == "valid" and options.wants(r[0])]
    base = rig.environment(TZ="UTC", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    ours = {**base, "LD_LIBRARY_PATH": str(rig.LIBDIR)}
    allowed = exceptions()

    def one(job):
        name, file = job
        full = os.path.join(rig.CORPUS, file)
        command = [w.replace("{file}", full) for w in programs[name]]
        want = run(command, base, os.path.dirname(full))
        if want[0] == "timeout" or isinstance(want[0], int) and (want[0] < 0 or want[0] > 128):
            return job, "SKIP", "the distribution's library: %s" % want[0]
        if name == "netCDF4 wheel":
            got = run([str(rig.ZONDA), "run", "--", *command], base, os.path.dirname(full))
        else:
            got = run(command, ours, os.path.dirname(full))
        if got == want:
            return job, "PASS", ""
        if got[0] != want[0]:
            return job, "FAIL", "exit %s, expected %s" % (got[0], want[0])
        return job, "FAIL", first_difference(want[1], got[1])

    jobs = [(n, f) for f in files for n in programs]
    if not (options.long or options.only or options.programs):
        # Each file by three programs, others for each file; and what is meant to differ, which has to.
        order = list(programs)
        turns = {(order[(i + k * 3) % len(order)], f) for i, f in enumerate(files) for k in range(3)}
        jobs = [job for job in jobs if job in turns or (job[0], os.path.basename(job[1])) in allowed]
    with ThreadPoolExecutor(2) as pool:
        for (name, file), status, why in pool.map(one, jobs):
            pair = name, os.path.basename(file)
            if pair in allowed and status != "SKIP":
                differs = status == "FAIL"
                status, why = ("PASS", "") if differs else ("FAIL", "agrees, though it is an exception")
            if status == "SKIP":
                counts.skip("%s %s" % (name, file), why)
            else:
                counts.check("%s %s" % (name, file), why)
    if not jobs:
        counts.fail("readers", "no file was read")
