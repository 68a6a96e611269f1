# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random lives (life.c) with write-behind and without: what they print and what they leave is the same."""

import itertools
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bed import rig
from scenes import has_helper

MOST_SECONDS = 120
FORMATS = ("1", "2", "5", "3", "4", "4")  # as life.c has them; netCDF-4 has most to try
# A put of life.c has at most so many bytes.
ONE_PUT = 1 << 20
BUDGETS = {"64k": 64 << 10, "1M": 1 << 20, "512M": 512 << 20}
# On slow storage puts run ahead; on storage as it is, the queue is mostly short.
STORAGE = (None, "throttle:60M:20us,file")


@dataclass
class Variant:
    asynchronous: str
    storage: str | None
    most: int = 0      # bytes that may be pending, by its budget
    behind: int = 0    # most bytes that were
    threads: int = 0   # most threads of the library seen at once
    runs: int = 0

    def __str__(self):
        return self.asynchronous + (" on slow storage" if self.storage else "")


def variants(world):
    found = []
    for threads, (name, budget) in itertools.product((1, 2, 3, 4), BUDGETS.items()):
        for storage in STORAGE:
            found.append(Variant("mem=%s,threads=%d" % (name, threads), storage, budget))
    found.append(Variant("on", None))
    if has_helper(world):
        found += [Variant("helper", storage) for storage in STORAGE]
    return found


class Lives:
    def __init__(self, world, steps):
        self.world, self.steps, self.variants = world, steps, variants(world)
        self.lock, self.puts = threading.Lock(), 0

    def live(self, seed, fmt, folder, variant):
        """Runs a life; (its log, {name: path} of the files it left)."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        env = {**self.world.env("zonda"), "ZONDA_ASYNC": variant.asynchronous if variant else "off"}
        if variant and variant.storage:
            env["ZONDA_IO"] = variant.storage
        command = [self.world.bin / "life", str(seed), fmt, str(self.steps), "x.nc"]
        with open(folder / "log", "wb") as log:
            try:
                done = subprocess.run(command, cwd=folder, env=env, stdout=log, stderr=subprocess.PIPE, timeout=MOST_SECONDS)
                status, said = done.returncode, done.stderr.decode(errors="replace").strip()
            except subprocess.TimeoutExpired:
                status, said = "a time-out", ""
        seen = re.fullmatch(r"behind (\d+) threads (\d+)", said)
        if status != 0 or not seen:
            return None, "ends with %s and says %r" % (status, said[-300:])
        if variant:
            with self.lock:
                variant.behind, variant.threads = max(variant.behind, int(seen[1])), max(variant.threads, int(seen[2]))
                variant.runs += 1
        return (folder / "log").read_bytes(), {f.name: f for f in folder.iterdir() if f.name != "log"}

    def one(self, number, seed):
        """A life without write-behind and some with; [(name, what is wrong or None)]."""
        fmt, results = FORMATS[number % len(FORMATS)], []
        place = self.world.scratch / "lives" / str(seed)
        log, files = self.live(seed, fmt, place / "sync", None)
        if log is None:
            return [("equal/%s/%d/off" % (fmt, seed), files)]
        self.puts += log.count(b" put ")
        for k in range(3):
            variant = self.variants[(3 * number + k) % len(self.variants)]
            again, others = self.live(seed, fmt, place / "async", variant)
            # Definitions that nobody ended, and some renames, are committed earlier with a helper: values are the
            # same, places are not.
            has_places = not (fmt in "34" and variant.asynchronous.startswith("helper"))
            why = others if again is None else different(log, files, again, others, has_places)
            if why:
                why += self.keep(seed, fmt, place, variant)
            results.append(("equal/%s/%d/%s" % (fmt, seed, variant), why))
        shutil.rmtree(place, ignore_errors=True)
        return results

    def keep(self, seed, fmt, place, variant):
        folder = rig.out("async", "seed-%d" % seed, anew=True)
        shutil.copytree(place, folder, dirs_exist_ok=True)
        return "\n    both kept in %s; life %d %s %d, ZONDA_ASYNC=%s%s" % (
            folder, seed, fmt, self.steps, variant.asynchronous, " ZONDA_IO=" + variant.storage if variant.storage else "")

    def was_behind(self):
        """A run in which everything was written at once shows nothing; [(name, what is wrong or None)]."""
        for v in self.variants:
            if not v.runs:
                continue
            why = None
            if v.most and v.behind > v.most + ONE_PUT:
                why = "%d bytes were pending at once" % v.behind
            elif v.storage and not v.behind:
                why = "nothing was ever pending in %d runs" % v.runs
            elif v.storage and not v.threads and v.asynchronous != "helper":
                why = "no thread zonda-io in %d runs" % v.runs
            yield "behind/%s" % v, why


def different(log, files, again, others, has_places):
    if log != again:
        for a, b in itertools.zip_longest(log.splitlines(), again.splitlines(), fillvalue=b"nothing"):
            if a != b:
                return "says %r, and must say %r" % (b.decode()[:200], a.decode()[:200])
    if files.keys() != others.keys():
        return "leaves %s, and must leave %s" % (sorted(others), sorted(files))
    for name, path in files.items() if has_places else ():
        a, b = path.read_bytes(), others[name].read_bytes()
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return "%s: %d bytes, and must be %d; another from byte %d on" % (name, len(b), len(a), at)
    return None


def tests(world, options, seeds, steps, jobs):
    """All results, as they come."""
    lives = Lives(world, steps)
    with ThreadPoolExecutor(jobs) as pool:
        for results in pool.map(lives.one, itertools.count(), seeds):
            yield from ((n, w) for n, w in results if options.wants(n))
    if world.behind and not options.only and options.mark != rig.QUICK:
        yield from lives.was_behind()
    print("equal: %d lives, %d puts, %d runs with write-behind" % (len(seeds), lives.puts, sum(v.runs for v in lives.variants)), flush=True)
