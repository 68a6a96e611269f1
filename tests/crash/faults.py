# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lets the n-th call that changes a file fail, for every n, and judges what is left.

stop: the disk is full (enospc, full) or broken (eio) from then on; the program closes the file, or
dies. Some call must have given an error, unless all is right; what was promised before must be there.
once: one call fails, the program makes its own call again, and everything must be right then.
short: from then on every write takes only half of what it is given. Nobody may notice.
lost: the n-th sync fails once, and what was written to its file since the last good one is gone. No later call may
say that all is well, unless it is."""

import os
import shutil

import lab
import parts

# (kind for the shim, what the writer does, under ZONDA_SYNC)
KINDS = (
    ("enospc", "stop", "none"),
    ("enospc", "die", "data"),
    ("full", "stop", "none"),
    ("full", "die", "none"),
    ("eio", "stop", "data"),
    ("enospc:once", "retry", "none"),
    ("eio:once", "retry", "data"),
    ("short", "stop", "none"),
    ("lost", "stop", "data"),
    ("lost", "retry", "data"),
    ("lost", "retry", "full"),
)

# Whether a program may call nc_close again after it gave an error.
CLOSE_CAN_BE_REPEATED = True


def one(job, judge, n, kind, on_error, sync):
    """Fails call n; whether there was such a call."""
    folder, marks, log = job.writer_folder(), job.fresh("marks"), job.fresh("log")
    status, said = job.write(
        folder,
        CRASH_FOLDER=folder,
        CRASH_LOG=log,
        CRASH_FAIL=f"{n}:{kind}",
        CRASH_MARKS=marks,
        LD_PRELOAD=f"{lab.BIN}/log_shim.so",
        WRITER_ON_ERROR=on_error,
        ZONDA_SYNC=sync,
    )
    promise = lab.last_promise(marks)
    with open(log) as f:
        failed = f.read().strip()
    judge.note = ""
    said = said.replace("\n", "; ")
    what = (
        f"{n}:{kind} ({failed or 'nothing failed'}), {on_error}, sync {sync}: exit {status} {said}"
    )
    silent = (0, 5) if on_error == "retry" else (0,)
    allowed = (0,) if kind == "short" else silent if on_error == "retry" else (0, 3)
    if failed.startswith(("failed fsync", "failed fdatasync")):
        # Somebody is told, always. Only a file beside ours can be written again, and then be synced.
        allowed = (3, 5) if on_error == "retry" else (3,)
    if not CLOSE_CAN_BE_REPEATED and "once more: NetCDF: Not a valid ID" in said:
        allowed = (3,)
    if not failed and status != 0:
        judge.fail(folder, promise, f"without a fault: {what}")
    elif status not in allowed:
        judge.fail(folder, promise, what)
    else:
        judge.state(folder, promise, note=f"\n    that was {what}")
        if failed and status in silent:
            judge.count["nobody noticed" if status == 0 else "done again"] += 1
        elif failed:
            judge.count["errors given"] += 1
    shutil.rmtree(folder)
    for path in (marks, log):
        if os.path.exists(path):
            os.unlink(path)
    return bool(failed)


def faults(job, judge):
    for kind, on_error, sync in KINDS:
        n = 1
        while one(job, judge, n, kind, on_error, sync):
            # Runs of many calls are sampled beyond the first twenty, and netCDF-4 files all along.
            every = job.options.long or (n < 20 and job.version != lab.NETCDF4)
            n += 1 if every else job.random.randint(1, 20)


def run(options, counts):
    # Scenarios that differ only in what they put add nothing here, and take long.
    skipped = () if options.long else lab.LARGE
    chosen = [(s, v) for s, v in parts.each_once(options) if s not in skipped]
    parts.run("faults", faults, options, counts, chosen)
