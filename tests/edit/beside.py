# SPDX-License-Identifier: MIT OR Apache-2.0
"""A writer that commits in a loop, and readers beside it that open, read all and close, or refresh.

    tests/edit/run.py --parts beside [--seconds N]

The library under test appends a record to each variable and calls nc_sync, again and again. The
readers are processes of their own: the library under test, opening each time or staying open with nc_sync;
netCDF-C; h5py with its locks and without. None may ever meet an error; record r of a variable
holds what follows from r, as a whole; all records that were committed before the file was opened are
there; and none goes away again.
"""
import collections
import ctypes
import multiprocessing
import os
import signal
import time

import h5py
import numpy as np

import child
import matrix
from change import nc

COLUMNS = 40
SECONDS, SECONDS_LONG = 6, 120      # of all files together; of each
CHUNK = 3                           # records in a chunk: most commits change a chunk that readers see
VARIABLES = {"deflated": "f8", "plain": "i4", "deep": "i2"}
RECORDS = 20000                     # at which a writer stops
AHEAD = 4                           # commits after which the file says an end ahead of what is used, for readers of libhdf5
FILL = {"f8": 9.9692099683868690e+36, "i4": -2147483647, "i2": -32767}


def record(name, r, n=1):
    """Records r to r + n of a variable."""
    kind = VARIABLES[name]
    base = (np.arange(r, r + n) * 7 + len(name))[:, None] + np.arange(COLUMNS)[None, :] * 3
    return (base % 30011).astype(kind)


# ---- Files

def by_library(path, library):
    lib = nc.Lib(library)
    f = lib.create(path, 0)
    dims = (ctypes.c_int * 2)()
    for i, (name, n) in enumerate(((b"time", 0), (b"x", COLUMNS))):
        d = ctypes.c_int()
        lib.call("nc_def_dim", f, name, ctypes.c_size_t(n), ctypes.byref(d))
        dims[i] = d.value
    for name, kind in VARIABLES.items():
        v = ctypes.c_int()
        lib.call("nc_def_var", f, name.encode(), {"f8": nc.DOUBLE, "i4": nc.INT, "i2": nc.SHORT}[kind], 2, dims, ctypes.byref(v))
        lib.call("nc_def_var_chunking", f, v, 0, nc.sizes([1 if name == "deep" else CHUNK, COLUMNS // 2]))
        if name == "deflated":
            lib.call("nc_def_var_deflate", f, v, 1, 1, 1)
    lib.call("nc_close", f)


def by_h5py(path, libver):
    with h5py.File(path, "w", libver=(libver, "v110"), track_order=libver != "earliest") as f:
        for name, kind in VARIABLES.items():
            more = {"compression": 1, "shuffle": True} if name == "deflated" else {}
            f.create_dataset(name, shape=(0, COLUMNS), maxshape=(None, COLUMNS), dtype=kind, chunks=(1 if name == "deep" else CHUNK, COLUMNS // 2),
                             fillvalue=FILL[kind], track_times=False, **more)


def files(tools):
    return {
        "Zonda": lambda path: by_library(path, tools.library),
        "netCDF-C": lambda path: by_library(path, str(tools.reference / "libnetcdf.so.19")),
        "new netCDF-C": lambda path: by_library(path, str(tools.newest / "libnetcdf.so.19")),
        "h5py v1": lambda path: by_h5py(path, "earliest"),
        "h5py v108": lambda path: by_h5py(path, "v108"),
        "h5py v110": lambda path: by_h5py(path, "v110"),
    }


# ---- Who writes

def write(library, path, pause, committed, begun, stop, answer):
    """Appends until it is told to stop; answer gets what went wrong, or how many records there are."""
    r = 0
    try:
        os.environ.pop("HDF5_USE_FILE_LOCKING", None)
        lib = nc.Lib(library)
        f = lib.open(path, nc.WRITE)
        ids = {name: lib.integer("nc_inq_varid", f, name.encode()) for name in VARIABLES}
        while not stop.is_set() and r < RECORDS:
            begun.value = r + 1
            for name, v in ids.items():
                data = record(name, r)
                lib.call("nc_put_vara", f, v, nc.sizes([r, 0]), nc.sizes(data.shape), data.ctypes.data_as(ctypes.c_void_p))
            lib.call("nc_sync", f)
            r += 1
            committed.value = r
            time.sleep(pause)
        lib.call("nc_close", f)
        answer.put(("written", r))
    except nc.NcError as why:
        said = lib.so.nc_zonda_last_error
        said.restype = ctypes.c_char_p
        answer.put(("refused" if r == 0 else "failed", "%s (record %d): %s" % (why, r, (said() or b"").decode(errors="replace"))))


# ---- Who reads

class Netcdf:
    """Any libnetcdf; `stays`: the file is opened once, and refreshed by nc_sync."""

    def __init__(self, library, path, stays=False):
        self.lib, self.path, self.stays, self.nc = nc.Lib(library), path, stays, None

    def read(self):
        if self.nc is None:
            self.nc = self.lib.open(self.path, 0)
        else:
            self.lib.call("nc_sync", self.nc)
        found = {}
        for name, kind in VARIABLES.items():
            v = self.lib.integer("nc_inq_varid", self.nc, name.encode())
            d = (ctypes.c_int * 2)()
            self.lib.call("nc_inq_vardimid", self.nc, v, d)
            n = ctypes.c_size_t()
            self.lib.call("nc_inq_dimlen", self.nc, d[0], ctypes.byref(n))
            data = np.empty((n.value, COLUMNS), kind)
            self.lib.call("nc_get_vara", self.nc, v, nc.sizes([0, 0]), nc.sizes(data.shape), data.ctypes.data_as(ctypes.c_void_p))
            found[name] = data
        if not self.stays:
            f, self.nc = self.nc, None
            self.lib.call("nc_close", f)
        return found


class H5py:
    def __init__(self, path, locking):
        self.path, self.locking = path, locking

    def read(self):
        with h5py.File(self.path, "r", locking=self.locking) as f:
            return {name: f[name][()] for name in VARIABLES}


def wrong(found, least, most, before):
    """What is wrong with records that were read; `before` is how many there were last time."""
    for name, data in found.items():
        n = len(data)
        # netCDF shows a dimension's length, which another variable may have reached first.
        good = (data == record(name, 0, n)).all(axis=1) if n else np.ones(0, bool)
        m = n if good.all() else int(np.argmin(good))
        if n > most:
            return "%s has %d records of %d" % (name, n, most)
        if m < least:
            return "%s: record %d of %d, with %d committed, holds %s..." % (name, m, n, least, data[m][:4] if m < n else "nothing")
        if not (data[m:] == FILL[VARIABLES[name]]).all():
            return "%s: record %d of %d holds a part of it: %s" % (name, m, n, data[m])
        if n < before.get(name, 0):
            return "%s has %d records, and had %d" % (name, n, before[name])
        before[name] = n
    return None


def watch(make, committed, begun, stop, answer):
    """Reads until it is told to stop; answer gets what was wrong, or how often it read."""
    rounds, before = 0, {}
    try:
        os.environ.pop("HDF5_USE_FILE_LOCKING", None)
        reader = make()
        while not stop.is_set() or rounds == 0:
            least = committed.value
            found = reader.read()
            said = wrong(found, least, begun.value, before)
            if said:
                answer.put(("failed", "round %d: %s" % (rounds, said)))
                return
            rounds += 1
        answer.put(("read", rounds))
    except Exception as why:
        answer.put(("failed", "round %d, %d records committed, %d begun: %s: %s" % (rounds, committed.value, begun.value, type(why).__name__, why)))


def readers(tools, path):
    return {
        "Zonda": lambda: Netcdf(tools.library, path),
        "Zonda that stays": lambda: Netcdf(tools.library, path, True),
        "netCDF-C": lambda: Netcdf(str(tools.reference / "libnetcdf.so.19"), path),
        "h5py": lambda: H5py(path, None),
        "h5py without locks": lambda: H5py(path, False),
    }


def one(tools, path, seconds, pause=0):
    """{who: (what, details)} of a writer and its readers."""
    context = multiprocessing.get_context("fork")
    committed, begun, stop = context.Value("q", 0), context.Value("q", 0), context.Event()
    answers, processes = {}, {}

    def start(who, function, *args):
        answers[who] = context.SimpleQueue()
        processes[who] = context.Process(target=function, args=(*args, committed, begun, stop, answers[who]))
        processes[who].start()

    start("the writer", write, tools.library, path, pause)
    end = time.monotonic() + 10
    while committed.value < AHEAD and processes["the writer"].is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    if committed.value >= AHEAD:
        for who, make in readers(tools, path).items():
            start(who, watch, make)
        end = time.monotonic() + seconds
        while time.monotonic() < end and all(p.is_alive() for p in processes.values()):
            time.sleep(0.05)
    stop.set()
    results = {}
    for who, p in processes.items():
        p.join(30)
        if p.is_alive():
            p.kill()
            p.join()
        if not answers[who].empty():
            results[who] = answers[who].get()
        elif p.exitcode and p.exitcode < 0:
            results[who] = "failed", "no answer: %s" % signal.Signals(-p.exitcode).name
        else:
            results[who] = "failed", "no answer"
    return results


def run(o, tools, scratch):
    made = files(tools)
    every = o.seconds or (SECONDS_LONG if o.long else max(1, SECONDS / len(made)))
    listed = matrix.read_list(matrix.HERE / "refused.txt")
    counts = collections.Counter(passed=0, failed=0)
    for name, make in made.items():
        path = str(scratch / "beside.nc")
        if os.path.exists(path):
            os.unlink(path)
        child.call(make, path)
        for who, (what, details) in one(tools, path, every, o.pause).items():
            if what == "refused":
                known = any(matrix.fnmatch.fnmatchcase("beside " + name, x[0]) and matrix.fnmatch.fnmatchcase(details, x[2]) for x in listed)
                counts["refused" if known else "failed"] += 1
                print("%s beside, file of %s, %s: %s" % ("    " if known else "FAIL", name, who, details))
            elif what == "failed":
                counts["failed"] += 1
                print("FAIL beside, file of %s, %s: %s" % (name, who, details), flush=True)
            else:
                counts["passed"] += 1
                counts["times read" if what == "read" else "records"] += details
    return counts
