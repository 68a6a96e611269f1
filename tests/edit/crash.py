# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every edit, cut off after each of its writes: what was there is there, what changes is old or new.

The log shim of tests/crash records the edit, and the folder is built after each change and at each
border of a page within one, as tests/crash does it. Where a journal lies beside the file, `zonda recover`
completes it, in turn with opening the file for writing; before that, Zonda may refuse the file, but not read it wrongly.
"""
import collections
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import traceback

import h5py
import numpy as np

import change
import child
import look
import matrix
import programs
import rig
import sources

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crash"))
import lab  # noqa: E402
import replay  # noqa: E402

CASES = 45          # in a short run
STATES = 10         # of one edit in a short run
STATES_LONG = 150
NAME = lab.FILE_NAME


class Version:
    """What the file holds at a commit: the look, and data of which an element may be of another one."""

    def __init__(self, path, touched, renamed):
        self.look = plain(look.look(path), renamed)
        self.data = {}
        with h5py.File(path, "r") as f:
            for name in touched:
                for at in (name, look.moved(name, renamed)):
                    if at in f and isinstance(f[at], h5py.Dataset) and f[at].dtype.kind in "iufO" and f[at].shape is not None:
                        self.data[name] = f[at][()]


def plain(found, renamed):
    """A look with the old names, and without what follows from several objects at once."""
    back = {new: old for old, new in renamed.items()}
    result = {}
    for path, keys in found.items():
        if look.PHONY.match(path):
            continue
        keys = {k: look.text_moved(v, back) for k, v in keys.items() if k != "scales"}
        if "links" in keys:
            keys["links"] = {look.moved(path.rstrip("/") + "/" + n, back): v for n, v in keys["links"].items()
                             if not look.PHONY.match(path.rstrip("/") + "/" + n)}
        result[look.moved(path, back)] = keys
    return result


def wrong(path, versions, touched, renamed, first, torn):
    """What is in the file that it had at no commit from `first` on, but for `torn` elements."""
    now, said = Version(path, touched, renamed), []
    allowed = versions[first:]
    for name in set.intersection(*(set(v.look) for v in allowed)):
        if name not in now.look:
            said.append("%s is lost" % name)
    for name, keys in now.look.items():
        known = [v for v in allowed if name in v.look]
        if not known:
            said.append("%s came" % name)
        elif not any(fits(name, keys, now, v, allowed, torn) for v in known):
            v = known[0]
            said.append("%s is as at no commit: %s" % (name, ", ".join(
                "%s: %.80r was %.80r" % (k, keys.get(k), v.look[name].get(k)) for k in sorted(set(keys) | set(v.look[name]), key=str)
                if keys.get(k) != v.look[name].get(k))))
    return said


def fits(name, keys, now, version, allowed, torn):
    then = version.look[name]
    if {k: v for k, v in keys.items() if k != "data"} != {k: v for k, v in then.items() if k != "data"}:
        return False
    if keys.get("data") == then.get("data"):
        return True
    if name not in now.data or name not in version.data:
        return False
    # Elements are of any commit, and none is of no commit.
    data, good = now.data[name], np.zeros(now.data[name].shape, bool)
    for v in allowed:
        other = v.data.get(name)
        if other is not None and other.ndim == data.ndim:
            both = tuple(slice(0, min(a, b)) for a, b in zip(data.shape, other.shape))
            good[both] |= data[both] == other[both]
    return int((~good).sum()) <= torn


class Job:
    """What replay.walk wants of one."""

    def __init__(self, folder, seed):
        self.folder, self.serial, self.random = folder, 0, random.Random(seed)

    def fresh(self, stem):
        self.serial += 1
        return str(self.folder / ("%s%d" % (stem, self.serial)))


class Case:
    def __init__(self, worker, shim, states):
        self.tools, self.worker, self.shim, self.states = worker.tools, worker, shim, states
        self.counts = collections.Counter()

    def run(self, name, operation, corpus):
        """(verdict, details)."""
        folder = self.worker.folder / "crash"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        job = Job(folder, "%s %s" % (name, operation))
        original, self.before = self.worker.of(name, corpus)
        work, kept, log = job.fresh("work"), job.fresh("versions"), job.fresh("log")
        os.mkdir(work)
        os.mkdir(kept)
        shutil.copy(original, os.path.join(work, NAME))
        done = subprocess.run(
            [sys.executable, change.__file__, self.tools.library, operation, os.path.join(work, NAME)], stdin=subprocess.DEVNULL,
            env={**self.tools.base, "EDIT_VERSIONS": kept, "CRASH_FOLDER": work, "CRASH_LOG": log, "LD_PRELOAD": str(self.shim)},
            capture_output=True, text=True, timeout=60)
        if done.returncode:
            return "FAILED", "the edit ends with %d: %s" % (done.returncode, done.stderr[-300:])
        what, result = change.json.loads(done.stdout)
        if what != "edited":
            return "refused", ""
        self.touched = sorted({path for path, key in result["touched"] if key in ("data", "shape")})
        self.renamed = result["renamed"]
        events, n_initial = lab.read_log(log)
        promise = lab.promises(events)
        files = [self.before.path] + [os.path.join(kept, "%d.nc" % k) for k in range(len(os.listdir(kept)))]
        self.versions = [child.call(Version, f, self.touched, self.renamed) for f in files]
        self.known = set().union(*(programs.bad(self.tools.digest(r, f)) | self.before.bad[r] for f in (files[0], files[-1])
                                   for r in ("netCDF-C", "Zonda")))
        failures = []

        def visit(state, i, is_cut):
            if len(failures) < 3:
                p = (replay.promise_before(events, promise, i) if is_cut else promise[i])[0]
                self.counts["states"] += 1
                # The data of others lie anywhere, so that the border of a page may be within one element.
                said = self.state(state, job, p + 1, 1 if is_cut else 0)
                if said:
                    failures.append("change %d%s of %d: %s" % (i - n_initial, ", cut" if is_cut else "", len(events) - n_initial, "; ".join(said[:3])))
                    self.keep(name, operation, state)

        last, _ = replay.walk(job, events, n_initial, self.states, visit)
        if lab.contents(last) != lab.contents(work):
            failures.append("the log does not give the file that was left: it has a hole")
        shutil.rmtree(folder, ignore_errors=True)
        return ("FAILED", " | ".join(failures)) if failures else ("edited", "")

    def state(self, folder, job, first, torn):
        """What is wrong with a folder."""
        path = os.path.join(folder, NAME)
        copy = None
        if lab.has_journal(folder):
            self.counts["journals"] += 1
            copy = job.fresh("copy")
            lab.copy_tree(folder, copy)
            path = os.path.join(copy, NAME)
            said = self.recover(path)
            if said:
                return [said]
        elif self.stale(path):
            # Nobody but Zonda takes the mark away.
            copy = job.fresh("copy")
            lab.copy_tree(folder, copy)
            path = os.path.join(copy, NAME)
            sources.mark(path)
        said = []
        try:
            said += ["h5py: " + x for x in child.call(wrong, path, self.versions, self.touched, self.renamed, first, torn)]
        except (child.Died, child.Failed) as why:
            said.append("h5py: %s" % str(why).split("\n")[0])
        for r in ("netCDF-C", "Zonda"):
            bad = programs.bad(self.tools.digest(r, path)) - self.known
            if bad:
                said.append("%s: %s" % (r, sorted(bad)[:2]))
        if copy:
            shutil.rmtree(copy)
        return said

    def stale(self, path):
        with open(path, "rb") as f:
            head = f.read(12)
        return head[:8] == b"\x89HDF\r\n\x1a\n" and head[8] == 3 and head[11] & 5

    def recover(self, path):
        """By command and by opening for writing, in turn."""
        if self.counts["journals"] % 2:
            done = subprocess.run([self.tools.command, "recover", path], env=self.tools.environment(self.tools.ours), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60)
            if done.returncode:
                return "zonda recover ends with %d: %s" % (done.returncode, done.stderr.strip()[:200])
        else:
            what, result = child.call(change.apply, self.tools.library, "nothing", path)
            if what != "edited":
                return "opening for writing, beside a journal: %s" % (result,)
        return "a journal is left" if lab.has_journal(os.path.dirname(path)) else None

    def keep(self, name, operation, state):
        keep = matrix.OUT / "failed" / ("crash %s %s" % (re.sub(r"[^\w.-]+", "_", name), operation))
        shutil.rmtree(keep, ignore_errors=True)
        keep.parent.mkdir(parents=True, exist_ok=True)
        lab.copy_tree(state, str(keep))


case = None


def prepare(o, tools, shim):
    global case
    case = Case(matrix.Worker(o, tools), shim, STATES_LONG if o.long else STATES)


def one(work):
    results = []
    for name, operation, corpus in work:
        case.counts.clear()
        try:
            results.append((name, operation, *case.run(name, operation, corpus), dict(case.counts)))
        except Exception:
            results.append((name, operation, "FAILED", "the test itself: " + traceback.format_exc(limit=-3), {}))
    return results


def run(o, tools, scratch):
    here = os.path.dirname(lab.__file__)
    shim = rig.compile_c(scratch / "log_shim.so", here + "/log_shim.c", here + "/log_core.c", link=None, flags=("-fPIC", "-shared"), libraries=("-ldl",))
    todo = collections.defaultdict(list)
    chosen = [c for c in matrix.cases(o, tools) if not c[2] and c[1] not in ("nothing", "redef-nothing")]
    # Files of the classic model are also committed by nc_enddef, before data are put; versions of a file are noted at its end only.
    chosen = [c for c in chosen if not ("classic-model" in c[0] and c[1].startswith("variable-add"))]
    if not o.long and not o.only:
        chosen = random.Random(7).sample(chosen, CASES)
    for c in chosen:
        todo[c[0]].append(c)
    counts = collections.Counter(passed=0, failed=0)
    with multiprocessing.Pool(o.jobs, prepare, (o, tools, shim)) as pool:
        for results in pool.imap_unordered(one, todo.values()):
            for name, operation, verdict, details, more in results:
                counts.update(more)
                counts[{"edited": "passed", "FAILED": "failed"}.get(verdict, verdict)] += 1
                if verdict == "FAILED":
                    print("FAIL crash %s %s: %s" % (name, operation, details), flush=True)
    return counts
