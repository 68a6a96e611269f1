#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random lives of netCDF-4 files, through a library and in a plain model that must agree.

    tests/model/run.py                    20 thousand steps and 20 kills, about a minute on two cores
    tests/model/run.py --quick            2 thousand and 4
    tests/model/run.py --long             100 thousand, and 200; walks of 250 steps and of a thousand
    tests/model/run.py --steps N --seed S --each N
    tests/model/run.py --only SEED        one file, with its steps printed; --each N with that many

A walk defines, writes, renames, deletes, gives up, closes and opens one file (walk.py). The library
under test is asked on the open handle and after opening again; the reference, in a process of its
own, reads every file that was closed and copies made while it was open; h5py reads some of them. Some
walks run in a child that is killed: then each object must be as at the last commit, or as at the one
that was under way, and elements that nobody put in between must not have changed.

Everything follows from the seed. A failure prints it and the steps, and keeps the file in out/model.

tests/rig/places.py has the settings. MODEL_SELF=1 allows both to be one library, and leaves out what the
reference is known to get wrong: renames, taking back what was deleted, and what model.py lists.
"""
import argparse
import json
import os
import pickle
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

# One Python for all parts, because they hand each other arrays: one that has h5py, or at least numpy.
HAS_H5PY = rig.found_python("h5py", "numpy")
if not HAS_H5PY:
    rig.needs("numpy")
import model  # noqa: E402
import nc  # noqa: E402
import walk  # noqa: E402

SECONDS = 300


class Reader:
    """A reader in another process, which may die without harm."""

    def __init__(self, python, what):
        self.command, self.process = [python, str(Path(__file__).parent / "reader.py"), what], None

    def read(self, path):
        if not self.process or self.process.poll() is not None:
            env = {**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"}
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        try:
            self.process.stdin.write(os.fsencode(path) + b"\n")
            self.process.stdin.flush()
            size = self.process.stdout.readline()
            if not size:
                return "error", "the reader died"
            return pickle.loads(self.process.stdout.read(int(size)))
        except BrokenPipeError:
            return "error", "the reader died"

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


class Options:
    """What a walk does at certain moments, and which steps it takes."""
    on_commit = on_close = on_copy = on_step = None

    def __init__(self, settings):
        self.renames = self.bold = not settings["self"]
        # The reference's file is right only just after a commit.
        self.careful = settings["self"]
        self.aloud = settings["aloud"]
        self.forgive = model.ALL if settings["self"] else set()


def h5py_difference(snapshot, found, forgive, path=""):
    """What h5py does not see as the model has it."""
    for name, v in snapshot["vars"].items():
        key = (path + "/" + name).lstrip("/")
        if key not in found:
            return "h5py: %s is not there" % key
        atts, data = found[key]
        if atts != set(v["atts"]):
            return "h5py: %s has the attributes %s, and must have %s" % (key, sorted(atts), sorted(v["atts"]))
        if isinstance(data, str):
            if not forgive & v["faults"]:
                return "h5py: %s cannot be read: %s" % (key, data)
        elif data is not None and v["kind"] != nc.STRING and len(data.shape) == len(v["data"].shape):
            # The dataset may be shorter than its dimensions.
            common = tuple(slice(0, n) for n in data.shape) + (Ellipsis,)
            if not nc.equal(v["data"][common].astype(data.dtype), data, v["sure"][common]):
                return "h5py: %s has other values" % key
    for name, g in snapshot["groups"].items():
        why = h5py_difference(g, found, forgive, path + "/" + name)
        if why:
            return why
    return None


def dirty_elements(root):
    """{number of a variable: which elements were put since the last commit}."""
    return {v.number: v.dirty.copy() for g in root.all_groups() for v in g.vars}


class Runner:
    def __init__(self, settings):
        self.s = settings
        self.folder = tempfile.mkdtemp(dir=settings["scratch"])
        self.lib = nc.Lib(settings["lib"])
        self.reference = Reader(sys.executable, settings["reference"])
        self.own = Reader(sys.executable, settings["lib"])
        self.h5py = Reader(settings["python"], "h5py") if settings["python"] else None
        self.counts = {"steps": 0, "reads": 0, "copies": 0, "h5py": 0, "kills": 0, "killed midway": 0}

    def forgive(self, reader):
        return model.ALL if self.s["self"] else model.READER if reader is self.reference else set()

    def by_reference(self, w):
        """A file that was just closed."""
        self.counts["reads"] += 1
        state, dump = self.reference.read(w.path)
        why = dump if state == "error" else model.difference(w.states[-1], dump, self.forgive(self.reference))
        if why:
            raise walk.Broken("read by the reference after closing: %s" % why)
        if self.h5py and self.counts["reads"] % 7 == 0:
            self.counts["h5py"] += 1
            state, found = self.h5py.read(w.path)
            why = found if state == "error" else h5py_difference(w.states[-1], found, {"unwritten"})
            if why:
                raise walk.Broken("read by h5py after closing: %s" % why)

    def copy(self, w):
        """A copy of an open file: what was committed is in it, whatever was done since."""
        self.counts["copies"] += 1
        path = w.path + ".copy"
        shutil.copy(w.path, path)
        for name, reader in (("the reference", self.reference), ("the library", self.own)):
            state, dump = reader.read(path)
            why = dump if state == "error" else model.between(w.states, dirty_elements(w.root), dump, self.forgive(reader))
            if why:
                raise walk.Broken("a copy of the open file, read by %s: %s" % (name, why))
        os.unlink(path)

    def one(self, seed, steps):
        """A walk from its beginning to its end; what is wrong, or None."""
        o = Options(self.s)
        o.on_close = self.by_reference
        o.on_copy = self.copy
        path = os.path.join(self.folder, "walk-%d.nc" % seed)
        w = walk.Walk(seed, path, steps, self.lib, o)
        try:
            w.run()
            why = None
        except (walk.Broken, nc.NcError) as broken:
            why = "%s: %s" % (type(broken).__name__, broken)
        self.counts["steps"] += w.step
        for name, n in w.counts.items():
            self.counts[name] = self.counts.get(name, 0) + n
        if why:
            return self.failure(seed, w, why)
        os.unlink(path)
        return None

    def failure(self, seed, w, why):
        kept, log = rig.out("model") / ("seed-%d.nc" % seed), rig.out("model") / ("seed-%d.txt" % seed)
        if os.path.exists(w.path):
            shutil.copy(w.path, kept)
        log.write_text("\n".join(w.log) + "\n%s\n" % why)
        return "seed %d, step %d: %.600s\n    file %s, steps %s; the last ones:\n%s" % (
            seed, w.step, why, kept, log, "\n".join("    " + x for x in w.log[-8:]))

    # ---- Killed writers

    def killed(self, seed):
        """A walk in a child that is killed; what is wrong, or None."""
        path = os.path.join(self.folder, "killed-%d.nc" % seed)
        # Killed after one of the times at which define mode ends, of which the same walk without a
        # library tells how many there are: a moment by the clock would be too late on a fast machine.
        ends, o = [], Options(self.s)
        o.on_commit = lambda w, promised, snapshot: ends.append(promised)
        walk.Walk(seed, path, self.s["each"], None, o).run()
        chance = random.Random(seed)
        wait_for, then = chance.randrange(1, max(len(ends), 2)), chance.random() * 0.003
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        child = subprocess.Popen([sys.executable, __file__, "--child", json.dumps({**self.s, "seed": seed, "path": path})],
                                 stdout=subprocess.PIPE, env=env)
        first = b"".join(child.stdout.readline() for _ in range(wait_for))
        time.sleep(then)
        child.kill()
        said = [x == b"p" for x in (first + child.stdout.read()).split()]
        status = child.wait()
        self.counts["kills"] += 1
        if status >= 0 and status != 0:
            return "seed %d: the child of a kill test exits with %s" % (seed, status)
        if True not in said:
            return None
        self.counts["killed midway"] += status == -signal.SIGKILL
        # The same walk without a library tells what the file held at the last commit that was promised,
        # whenever define mode ended after it, and what would have come next.
        states, dirty, ended = [], {}, []

        class Enough(Exception):
            pass

        def on_commit(w, promised, snapshot):
            if promised and len(ended) < len(said):
                states.clear()
            states.append(snapshot)
            ended.append(promised)
            if len(ended) > len(said):
                dirty.update(dirty_elements(w.root))
                if promised:
                    raise Enough

        def on_step(w):
            if len(ended) > len(said):
                dirty.update(dirty_elements(w.root))
                raise Enough
        o = Options(self.s)
        o.on_commit, o.on_step = on_commit, on_step
        try:
            walk.Walk(seed, path, self.s["each"], None, o).run()
        except Enough:
            pass
        for name, reader in (("the library", self.own), ("the reference", self.reference)):
            state, dump = reader.read(path)
            why = dump if state == "error" else model.between(states, dirty, dump, self.forgive(reader))
            if why and self.s["self"]:
                # It overwrites what it has committed, and sometimes dies in between.
                self.counts["killed and broken"] = self.counts.get("killed and broken", 0) + 1
                return None
            if why:
                kept = rig.out("model") / ("killed-%d.nc" % seed)
                shutil.copy(path, kept)
                return "seed %d, killed after end %d of define mode, read by %s: %.600s\n    file %s" % (seed, len(said), name, why, kept)
        return None


def child(settings):
    """Walks and says whenever define mode has ended: `p` if that was promised, else `i`."""
    o = Options(settings)
    o.on_commit = lambda w, promised, snapshot: os.write(1, b"p\n" if promised else b"i\n")
    walk.Walk(settings["seed"], settings["path"], settings["each"], nc.Lib(settings["lib"]), o).run()


def worker(settings):
    """Takes jobs from standard input, one a line, and answers each with a line."""
    answers, runner = os.fdopen(os.dup(1), "w"), Runner(settings)
    os.dup2(2, 1)       # whatever a library prints
    for line in sys.stdin:
        kind, seed, *steps = json.loads(line)
        before = dict(runner.counts)
        try:
            why = runner.one(seed, *steps) if kind == "walk" else runner.killed(seed)
        except Exception as broken:
            why = "seed %d: the test itself: %s: %s" % (seed, type(broken).__name__, broken)
        answers.write(json.dumps([why, {k: n - before.get(k, 0) for k, n in runner.counts.items()}]) + "\n")
        answers.flush()


class Worker:
    """Walks in another process: a library that crashes or hangs there is a failure like any other."""

    def __init__(self, settings):
        self.command, self.process, self.each = [sys.executable, __file__, "--worker", json.dumps(settings)], None, settings["each"]

    def do(self, job):
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        watch = threading.Timer(SECONDS, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        watch.cancel()
        if line:
            return json.loads(line)
        self.process.wait()
        return ["seed %d: the library crashed or hung (exit %s); its steps: --only %d --each %d" % (job[1], self.process.returncode, job[1], job[2] if len(job) > 2 else self.each), {}]

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def walks(steps, seed, each, long):
    """Jobs: files of `each` steps; of a long run, half of the steps go through files of four times as many."""
    jobs, left = [], steps
    while left > 0:
        n = each * 4 if long and left > steps // 2 else each
        jobs.append(("walk", seed + len(jobs), n))
        left -= n
    return jobs


def main():
    p = rig.parser(__doc__, seed=1, only=None)
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--each", type=int, default=250, help="steps of one file")
    p.add_argument("--kills", type=int, default=-1)
    p.add_argument("--only", type=int, help="the walk of one seed, with its steps")
    p.add_argument("--child", help=argparse.SUPPRESS)
    p.add_argument("--worker", help=argparse.SUPPRESS)
    o, counts = rig.arguments(p), rig.Counts()
    if o.child:
        return child(json.loads(o.child))
    if o.worker:
        return worker(json.loads(o.worker))
    itself = os.environ.get("MODEL_SELF", "") == "1"
    rig.two_libraries(may_be_one=itself)
    if not HAS_H5PY:
        counts.skip("h5py", "no Python that has it")
    settings = {"lib": str(rig.LIBRARY), "reference": str(rig.reference_library()), "python": sys.executable if HAS_H5PY else "",
                "each": o.each, "self": itself, "aloud": o.only is not None}
    rig.out("model", anew=True)
    steps = o.steps or o.by(2000, 20000, 100000)
    kills = o.kills if o.kills >= 0 else o.by(4, 20, 200)
    if o.only is not None:
        jobs = [("walk", o.only, o.each)]
    else:
        jobs = walks(steps, o.seed, o.each, o.long) + [("kill", o.seed + i) for i in range(kills)]
    total = {}
    with rig.scratch(in_memory=True) as top:
        settings["scratch"] = str(top)
        workers = queue.SimpleQueue()
        for _ in range(2):
            workers.put(Worker(settings))

        def work(job):
            w = workers.get()
            try:
                return w.do(job)
            finally:
                workers.put(w)
        with ThreadPoolExecutor(2) as pool:
            for why, found in pool.map(work, jobs):
                for k, n in found.items():
                    total[k] = total.get(k, 0) + n
                name, _, wrong = (why or "").partition(": ")
                counts.check(name, why and (wrong or "wrong"))
        for _ in range(2):
            workers.get().stop()
    print("seeds %d to %d; %s" % (o.seed, o.seed + len(jobs) - 1, ", ".join("%s %d" % x for x in sorted(total.items(), key=lambda x: -x[1]))))
    if kills and o.only is None and total.get("killed midway", 0) * 4 < kills:
        counts.fail("kills", "most came too late")
    return counts


if __name__ == "__main__":
    rig.main(main)
