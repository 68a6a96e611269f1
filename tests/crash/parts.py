# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the jobs of a part of the crash tests, and counts."""

import collections
import multiprocessing
import time
import traceback

import lab
from judge import Judge


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


def run(part, function, options, counts, chosen=None):
    """All jobs of a part."""
    jobs = [(function, part, s, v, options) for s, v in chosen or lab.scenarios() if options.wants(f"{s}/{v}")]
    total = collections.Counter()
    start = time.time()
    with multiprocessing.Pool(options.jobs) as pool:
        for name, count, reasons in pool.imap_unordered(attempt, jobs):
            total.update(count)
            wrong = count["failed"] or not count["states"]
            said = [f"{count['failed']} of {count['states']} states failed", *reasons]
            counts.check(f"{part} {name}", "\n    ".join(said) if wrong else None)
    details = ", ".join(
        f"{n} {what}" for what, n in sorted(total.items()) if what not in ("states", "failed")
    )
    print(
        f"crash: {part}: {len(jobs)} runs, {total['states']} states ({details}), {total['failed']} failed "
        f"[seed {options.seed}, {time.time() - start:.0f} s]",
        flush=True,
    )
