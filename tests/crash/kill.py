# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kills writers with SIGKILL at random moments and judges what they leave."""

import os
import shutil
import subprocess
import time

import lab
import parts
from lab import rig

# Scenarios long enough to be hit in the middle, with the rounds that make them so: of classic
# files, and of netCDF-4 files.
KILLED = {
    "append": 2000,
    "att-many": 60,
    "grow-fixed": 80,
    "grow-default": 60,
    "grow-many": 40,
    "grow-large": 20,
    "grow-linked": 60,
    "record-var": 40,
    "att-data": 150,
    "aligned": 200,
    "nofill": 60,
    "close-define": 60,
}
KILLED4 = {
    "append": 1000,
    "att-many": 60,
    "record-var": 40,
    "rename": 50,
    "model4": 60,
    "filtered": 700,
    "in-place": 700,
    "dense": 50,
    "scales": 40,
    "many4": 60,
    "strings": 200,
    "implicit": 50,
}


def start(job, folder, marks):
    return subprocess.Popen(
        [f"{lab.BIN}/writer", job.scenario, str(job.version), folder, str(job.rounds)],
        env=rig.environment(lab.WRITER_LIB, CRASH_MARKS=marks),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for_start(process, marks):
    """Until the writer has begun its first operation; when that was."""
    while not os.path.exists(marks) and process.poll() is None:
        time.sleep(0.0002)
    return time.monotonic()


def duration(job):
    """How long a writer is at work if nobody kills it, in seconds."""
    folder, marks = job.writer_folder(), job.fresh("marks")
    process = start(job, folder, marks)
    began = wait_for_start(process, marks)
    if process.wait(timeout=300) != 0:
        raise lab.Failure(f"the writer exits with {process.returncode}")
    took = time.monotonic() - began
    shutil.rmtree(folder)
    os.unlink(marks)
    return took


def kills(job, judge):
    took = duration(job)
    wanted = job.options.kills_of_each
    # A kill before anything was promised, or after the end, shows nothing: it does not count.
    for n in range(10 * wanted):
        if judge.count["killed midway"] == wanted:
            break
        folder, marks = job.writer_folder(), job.fresh("marks")
        process = start(job, folder, marks)
        wait_for_start(process, marks)
        time.sleep(took * job.random.random())
        process.kill()
        status = process.wait()
        promise = lab.last_promise(marks)
        midway = status < 0 and promise[0] >= 0
        judge.count["killed midway" if midway else "too early or too late"] += 1
        right = judge.state(folder, promise)
        # A torn element that moves cannot be told from a lost one any more.
        if right and right != "torn" and midway and n % 4 == 0:
            judge.life_goes_on(folder, promise)
        shutil.rmtree(folder)
        if os.path.exists(marks):
            os.unlink(marks)
    if judge.count["killed midway"] < wanted:
        raise lab.Failure("most kills came before or after the writer was at work")


def run(options, counts):
    classic = [(s, v) for s, v in lab.scenarios() if s in KILLED and v in lab.CLASSIC]
    if not options.long and "/" not in options.only:
        classic = lab.of_each_kind(classic, options.seed)
    for kind, rounds, chosen in (
        ("kill", KILLED, classic),
        ("kill netCDF-4", KILLED4, [(s, lab.NETCDF4) for s in KILLED4]),
    ):
        chosen = [(s, v) for s, v in chosen if options.wants(f"{s}/{v}")]
        if chosen:
            options.kills_of_each = max(1, -(-options.kills // len(chosen)))
            options.rounds = rounds
            parts.run(kind, kills, options, counts, chosen)
    # Other parts have rounds of their own.
    options.rounds = {}
