#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that end, or fork, when nobody expects it (sudden.c). With --long 500 random exits and 500 random forks, other ones each time.

    tests/async/sudden.py [--quick] [--long] [--seed N] [--lives N] [--only exit|fork]

A life is chosen by its seed: the format, ZONDA_ASYNC, ZONDA_SYNC, the storage, how many threads put, get, sync, redefine,
close and open, and when and how it ends: by exit in main, in a signal handler, in another thread, by return of main, by the
last thread, by quick_exit, by kill -9; or where it forks, and what the child does. The process and each child end in time and by themselves;
the child's calls answer; what was synced before is read by the distribution's library. Files of a failure are kept in
out/async/sudden, and the line says how to lead that life again.
"""
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

# An end may take 10 s on a machine that does nothing else; lives take up to half a second before it.
MOST_SECONDS = 30
# A helper process may have something left to do.
HELPER_SECONDS = 10


def environment(ours, **more):
    return rig.environment(rig.LIBDIR if ours else None, **more)


def stacks(pid):
    """What all threads of a process that hangs are at, if there is a debugger."""
    if not shutil.which("gdb"):
        return ""
    found = [pid, *(int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split())]
    said = []
    for one in found:
        done = subprocess.run(["gdb", "-p", str(one), "-batch", "-ex", "thread apply all bt 14"], capture_output=True, text=True,
                              timeout=120, check=False)
        said.append("\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))))
    return "\n---\n".join(said)


class Lives:
    def __init__(self, scratch, keep):
        self.scratch, self.keep = scratch, keep
        self.program = rig.compile_c(scratch / "sudden", HERE / "sudden.c", libraries=["-lpthread", "-lm"])
        self.has_reference = rig.reference() is not None
        self.n_mended, self.slowest = 0, 0.0

    def call(self, what, seed, kind, stem, ours):
        return rig.run([self.program, what, seed, kind, stem], environment(ours), seconds=120)

    def lead(self, seed, kind):
        folder = self.scratch / f"{kind}-{seed}"
        folder.mkdir()
        stem = folder / "life"
        shown = self.call("show", seed, kind, stem, True).stdout
        env = dict(line.split("=", 1) for line in shown.splitlines()[:3])
        env = {k: v for k, v in env.items() if v}
        try:
            self.one(seed, kind, stem, env, shown.splitlines()[3])
        except Wrong as why:
            kept = self.keep / folder.name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            where = " ".join(f"{k}={v}" for k, v in env.items())
            raise Wrong(f"{where}; {shown.splitlines()[3]}: {why}") from None
        finally:
            shutil.rmtree(folder)

    def one(self, seed, kind, stem, env, shown):
        began = time.monotonic()
        with open(f"{stem}.err", "wb") as errors:
            process = subprocess.Popen([self.program, "live", str(seed), kind, stem], env=environment(True, **env), stdin=subprocess.DEVNULL,
                                       stdout=errors, stderr=errors, start_new_session=True)
            try:
                status = process.wait(MOST_SECONDS)
            except subprocess.TimeoutExpired:
                at = stacks(process.pid)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Wrong(f"it does not end\n{at}") from None
        self.slowest = max(self.slowest, time.monotonic() - began)
        said = Path(f"{stem}.err").read_text(errors="replace").strip()[-400:]
        if status not in ((-signal.SIGKILL,) if shown.startswith("kill -9") else (0, 7)):
            raise Wrong(f"status {status}: {said}")
        if "not all kept" in said:
            raise Wrong(said)
        is_helper = env.get("ZONDA_ASYNC") == "helper"
        until = time.monotonic() + (HELPER_SECONDS if is_helper else 0)
        is_mended = False
        while True:
            # A change that was given up is completed by who opens the file for writing. That is the helper where it has puts
            # of the file's; of a file without any it may never have heard.
            if not is_mended and time.monotonic() >= until and list(stem.parent.glob("*.zonda-journal")):
                is_mended = True
                self.n_mended += 1
                done = self.call("mend", seed, kind, stem, True)
                if done.returncode:
                    raise Wrong(done.stdout[-600:] + said)
            looked = [self.call("look", seed, kind, stem, ours) for ours in ([False, True] if self.has_reference else [True])]
            if not any(done.returncode for done in looked):
                return
            if time.monotonic() >= until:
                raise Wrong("\n".join(done.stdout[-600:] for done in looked) + said)
            time.sleep(0.2)


def main():
    parser = rig.parser(__doc__, only=None)
    parser.add_argument("--seed", type=int, help="the first one; else 1, or with --long one that follows from the time")
    parser.add_argument("--lives", type=int)
    parser.add_argument("--only", choices=["exit", "fork"])
    parser.add_argument("--jobs", type=int, help="lives at once; with --long so many that they hinder each other")
    options, counts = rig.arguments(parser), rig.Counts()
    jobs = options.jobs or options.by(2, 2, 4) * (os.cpu_count() or 1)
    first = options.seed
    if first is None:
        first = int(time.time()) if options.long else 1
    n_lives = options.lives or options.by(4, 16, 500)
    kinds = [options.only] if options.only else ["exit", "fork"]
    todo = [(seed, kind) for seed in range(first, first + n_lives) for kind in kinds]
    with rig.scratch() as scratch:
        lives = Lives(scratch, rig.out("async", "sudden"))
        if not lives.has_reference:
            counts.skip("the distribution's library", "not installed: files are read by ours alone")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda life: counts.attempt("%s %d" % (life[1], life[0]), lives.lead, *life), todo))
        print(f"seeds {first} to {first + n_lives - 1}, {jobs} at once; the longest took {lives.slowest:.1f} s, {lives.n_mended} had a journal left")
    return counts


if __name__ == "__main__":
    rig.main(main)
