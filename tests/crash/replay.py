# SPDX-License-Identifier: MIT OR Apache-2.0
"""Replays the logged changes of a writer and judges the folder after each.

prefix: each scenario runs once under the log shim; every prefix of its changes is a state of the
folder that a killed process may leave, and so is each write cut at a page border of the file.
power: the same under ZONDA_SYNC=data, where a power cut may lose or reorder what lies between two
barriers (see power.py)."""

import os
import shutil

import lab
import parts
import power
from lab import rig


def cuts_of(e, unit=lab.PAGE):
    """Where a write may have stopped: at borders of pages of the file, as bytes from its start."""
    if e.kind != lab.WRITE:
        return []
    return list(range(unit - e.at % unit, len(e.data), unit))


def walk(job, events, n_initial, bound, visit):
    """Carries the events out in a folder and calls visit(folder, index, is_cut) at each state, or
    at `bound` of them chosen at random."""
    points = []
    for i in range(n_initial, len(events)):
        if events[i].kind in lab.CHANGES:
            points += [(i, cut) for cut in cuts_of(events[i])]
            points.append((i, None))
    chosen = set(points)
    if len(points) > bound:
        chosen = set(job.random.sample(points, bound)) | {points[0], points[-1]}
    tree = lab.Tree(job.fresh("state"))
    try:
        for i, e in enumerate(events):
            if e.kind not in lab.CHANGES:
                continue
            done = 0
            for cut in cuts_of(e) if i >= n_initial else []:
                if (i, cut) in chosen:
                    tree.apply(e, done, cut)
                    done = cut
                    visit(tree.folder, i, True)
            tree.apply(e, done)
            if (i, None) in chosen:
                visit(tree.folder, i, False)
        return tree.folder, len(points)
    finally:
        tree.close()


def prefix(job, judge):
    options = job.options
    folder, events, n_initial = job.logged_run()
    promise = lab.promises(events)
    interrupted = [options.interrupted]
    visits = [0]

    def visit(state, i, is_cut):
        at = promise[i - 1] if is_cut and i > 0 else promise[i]
        if is_cut:
            at = promise_before(events, promise, i)
        right = judge.state(state, at)
        if not right:
            return
        visits[0] += 1
        if (
            lab.has_journal(state)
            and interrupted[0] > 0
            and (options.long or job.random.random() < 0.3)
        ):
            interrupted[0] -= 1
            interrupted_recovery(job, judge, state, at)
        # A torn element that moves cannot be told from a lost one any more.
        if right != "torn" and at[0] >= 0 and visits[0] % options.go_on_every == 0:
            judge.life_goes_on(state, at)

    last, n_points = walk(job, events, n_initial, job.bound(options.bound, 10**9), visit)
    if lab.contents(last) != lab.contents(folder):
        raise lab.Failure("the log does not give the files that the writer left: it has a hole")
    untouched(job, judge, folder)
    judge.count["points"] += n_points
    judge.count["changes"] += sum(e.kind in lab.CHANGES for e in events[n_initial:])


def promise_before(events, promise, i):
    """What is promised while change i goes on."""
    for k in range(i - 1, -1, -1):
        if events[k].kind in lab.CHANGES or events[k].kind in lab.BARRIERS:
            return promise[k]
    return (-1, -1, 0)


def interrupted_recovery(job, judge, state, at):
    """A recovery that is itself cut off anywhere can be done again."""
    copy, log = job.fresh("work"), job.fresh("log")
    lab.copy_tree(state, copy)
    said = judge.replay(
        copy, "command", CRASH_FOLDER=copy, CRASH_LOG=log, LD_PRELOAD=f"{lab.BIN}/log_shim.so"
    )
    if said:
        judge.fail(state, at, f"recovery under the log shim: {said}")
        return
    events, n_initial = lab.read_log(log)
    judge.count["interrupted recoveries"] += 1
    last, _ = walk(
        job,
        events,
        n_initial,
        job.bound(12, 200),
        lambda folder, i, is_cut: judge.state(folder, at),
    )
    if lab.contents(last) != lab.contents(copy):
        judge.fail(state, at, "the log of a recovery has a hole")
    shutil.rmtree(copy)
    shutil.rmtree(last)
    for n in range(1, 10**6 if job.options.long else 8):
        if not failing_recovery(job, judge, state, at, n):
            break


def failing_recovery(job, judge, state, at, n):
    """A recovery whose n-th change fails with EIO loses nothing; whether there was such a change."""
    copy, log = job.fresh("work"), job.fresh("log")
    lab.copy_tree(state, copy)
    said = judge.replay(
        copy,
        "command",
        CRASH_FOLDER=copy,
        CRASH_LOG=log,
        CRASH_FAIL=f"{n}:eio",
        LD_PRELOAD=f"{lab.BIN}/log_shim.so",
    )
    with open(log) as f:
        failed = f.read().strip()
    judge.count["failed recoveries"] += 1
    judge.state(copy, at, note=f"\n    after a recovery with {failed or 'no fault'}: {said}")
    shutil.rmtree(copy)
    os.unlink(log)
    return bool(failed)


def untouched(job, judge, folder):
    """`zonda recover` on a file that needs none changes nothing."""
    if not job.options.recover_command:
        return
    before = lab.contents(folder)
    said = judge.replay(folder, "command")
    if said or lab.contents(folder) != before:
        judge.fail(folder, (-1, -1, 0), f"recover on a sound file: {said or 'it changed the file'}")


def prefixes(options, counts):
    parts.run("prefix", prefix, options, counts, parts.each_once(options) if options.mark == rig.QUICK else None)


def powers(options, counts):
    parts.run("power", power.pages, options, counts, parts.each_once(options))


def sectors(options, counts):
    parts.run("sector", power.sectors, options, counts, parts.each_once(options))
