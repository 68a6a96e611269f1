# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the jobs of a part of the crash tests, and counts."""

import argparse
import collections
import multiprocessing
import os
import sys
import time
import traceback

import lab
from judge import Judge


def arguments(about, **defaults):
    """The options all parts have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--long", action="store_true", help="everything, not samples")
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="scenarios whose SCENARIO/VERSION has this in it",
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="of all random choices (printed; default: the time)"
    )
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="processes")
    for name, (kind, value, what) in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, default=value, help=what)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time())
    options.h5py = lab.python_with_h5py()
    options.h5py_every = 1 if options.long else 4
    options.recoveries = 10**9 if options.long else 40
    if lab.ORACLE is None:
        print(
            "tests/crash: no libnetcdf.so.19 of the distribution to judge with\n0 passed, 0 failed, 1 skipped"
        )
        sys.exit(0)
    return options


def attempt(work):
    """One job in a process of the pool: (name, counts, reasons)."""
    function, part, scenario, version, options = work
    job = lab.Job(scenario, version, options, getattr(options, "rounds", {}).get(scenario, 0))
    judge = Judge(job, part)
    try:
        function(job, judge)
    except lab.Failure as why:
        judge.count["failed"] += 1
        judge.reasons.append(str(why))
    except Exception as why:  # a defect of the test must not look like a pass
        judge.count["failed"] += 1
        where = traceback.extract_tb(why.__traceback__)[-1]
        judge.reasons.append(f"{type(why).__name__}: {why} ({where.filename}, line {where.lineno})")
    finally:
        judge.close()
        job.done()
    return str(job), judge.count, judge.reasons


def each_once(options):
    """Every scenario in one classic version and in netCDF-4; with --long in all."""
    if options.long or "/" in options.only:
        return lab.scenarios()
    return lab.of_each_kind(lab.scenarios(), options.seed)


def run(part, function, options, chosen=None):
    """All jobs of a part: its lines, and (passed, failed)."""
    jobs = [
        (function, part, s, v, options)
        for s, v in chosen or lab.scenarios()
        if options.only in f"{s}/{v}"
    ]
    total, passed, failed = collections.Counter(), 0, 0
    start = time.time()
    with multiprocessing.Pool(options.jobs) as pool:
        for name, count, reasons in pool.imap_unordered(attempt, jobs):
            total.update(count)
            if count["failed"] or not count["states"]:
                failed += 1
                print(f"FAIL {part} {name}: {count['failed']} of {count['states']} states failed")
                for reason in reasons:
                    print(f"    {reason}")
            else:
                passed += 1
            sys.stdout.flush()
    details = ", ".join(
        f"{n} {what}" for what, n in sorted(total.items()) if what not in ("states", "failed")
    )
    print(
        f"crash: {part}: {len(jobs)} runs, {total['states']} states ({details}), {total['failed']} failed "
        f"[seed {options.seed}, {time.time() - start:.0f} s]"
    )
    sys.stdout.flush()
    return passed, failed


def finish(results):
    passed, failed = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
