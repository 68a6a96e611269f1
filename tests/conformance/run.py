#!/usr/bin/env python3
"""The reference's own tests against Zonda's library.

    run.py              the classic tests, and what Zonda lacks of them
    run.py --allowed    only the names in passing.txt; any failure is a regression (make test)
    run.py --update     after the run, adds newly passing names to passing.txt (removes none)
    run.py --report     no run: passes on both / exceptions with reason / unexplained
    run.py --all        also the tests of netCDF-4 and of remote access
    run.py --async on   (or other settings) with write-behind, see tests/async
    run.py --baseline   everything on the distribution's library; writes reference.txt

Fetches the Debian source package `netcdf`, configures it once, compiles the test programs against
the headers under test and runs each on the library under test, the distribution's ncdump, ncgen,
ncgen3 and nccopy included. Everything lands in out/conformance; a log for each test is kept in
out/conformance/logs. One line per test, then `N passed, N failed, N skipped`.
"""
import argparse
import fcntl
import os
import re
import sys

import lists
from build import Builder
from execute import Executor
from plan import Plan
from settings import ROOT, SONAME, SYSTEM_INC, SYSTEM_LIB, Broken, Settings, Unavailable
from source import configure, unpack


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--allowed", action="store_true", help="run the names of passing.txt only")
    p.add_argument("--update", action="store_true", help="add newly passing names to passing.txt")
    p.add_argument("--report", action="store_true", help="print where things stand, run nothing")
    p.add_argument("--all", action="store_true", help="also the netCDF-4 and remote tests")
    p.add_argument("--baseline", action="store_true", help="record reference.txt")
    p.add_argument("--large", action="store_true", help="also tests that write several GiB")
    p.add_argument("--only", metavar="REGEX", help="only the tests whose name matches")
    p.add_argument("--async", dest="write_behind", metavar="SETTING", default="", help="run the tests under ZONDA_ASYNC=SETTING")
    p.add_argument("--libdir", default=os.environ.get("ZONDA_LIBDIR", os.path.join(ROOT, "dist", "lib")))
    p.add_argument("--incdir", default=os.environ.get("ZONDA_INCDIR", os.path.join(ROOT, "dist", "include")))
    p.add_argument("--tools", default="/usr/bin", help="folder of ncdump, ncgen, ncgen3, nccopy")
    p.add_argument("--out", default=os.path.join(ROOT, "out", "conformance"))
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=float, default=120, help="seconds for one test")
    p.add_argument("--keep", action="store_true", help="keep the folders of passing tests too")
    a = p.parse_args()
    if a.baseline and (a.allowed or a.update or a.only or a.write_behind):
        p.error("--baseline runs everything and touches reference.txt only")
    return a


def choose(a, plan):
    """The names to run."""
    if a.allowed:
        names = lists.passing()
        for n in names:
            if n not in plan.tests:
                raise Broken("passing.txt names %s, which is no test of this package" % n)
    elif a.baseline:
        names = list(plan.tests)
    else:
        ref = lists.reference()
        names = [n for n in plan.tests if a.all or ref.get(n) in ("classic", "internal")]
    return [n for n in names if not a.only or re.search(a.only, n)]


def exit_code(a, plan, results):
    failed = [n for n, r in results.items() if r.status == "FAIL"]
    if a.baseline:
        return 0                # what fails on the distribution's library is simply not recorded
    if a.allowed:               # a test that passed once and is left out now has fallen back too
        lost = [n for n, r in results.items() if r.status == "SKIP" and not plan.tests[n].large]
        for n in lost:
            print("lost: %s is in passing.txt and was skipped" % n)
        return 1 if failed or lost else 0
    known, ref = lists.exceptions(), lists.reference()
    return 1 if [n for n in failed if n not in known and n in ref] else 0


def run(a):
    s = Settings(label="distribution" if a.baseline else "zonda",
                 libdir=os.path.abspath(SYSTEM_LIB if a.baseline else a.libdir),
                 incdir=os.path.abspath(SYSTEM_INC if a.baseline else a.incdir),
                 out=os.path.abspath(a.out), jobs=a.jobs, timeout=a.timeout, large=a.large,
                 keep=a.keep, write_behind=a.write_behind)
    if a.allowed and not lists.passing():
        print("passing.txt holds no name yet")
        print("0 passed, 0 failed, 0 skipped")
        return 0
    if not os.path.exists(os.path.join(s.libdir, SONAME)):
        raise Broken("no %s in %s: build it first" % (SONAME, s.libdir))
    os.makedirs(s.out, exist_ok=True)
    lock = open(s.path("lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)        # two runs would share folders
    src = unpack(s)
    builds = configure(s, src)
    plan = Plan(src, builds)
    builder = Builder(s, src, builds, plan.sources)
    witness = builder.shared_object("witness") if a.baseline else None
    executor = Executor(s, src, builds, plan, builder, os.path.abspath(a.tools), witness)
    probe = builder.program("classic", "nc_test", "tst_names")
    if probe.error:
        raise Broken("nc_test/tst_names " + probe.error)
    executor.check_library_is_used(probe.path)
    results = executor.run(choose(a, plan))
    count = {k: sum(r.status == k for r in results.values()) for k in ("PASS", "FAIL", "SKIP")}
    if a.baseline:
        kept = lists.write_reference(results, plan.tests)
        print("reference.txt: " + ", ".join("%d %s" % (list(kept.values()).count(c), c) for c in lists.CLASSES))
    if a.update:
        new = lists.add_passing(results, list(plan.tests))
        print("passing.txt: %d added" % len(new))
    code = exit_code(a, plan, results)
    print("%d passed, %d failed, %d skipped" % (count["PASS"], count["FAIL"], count["SKIP"]))
    return code


def main():
    a = arguments()
    if a.report:
        return 1 if lists.report(a.all) else 0
    try:
        return run(a)
    except Unavailable as why:
        print("skipped: the reference's tests cannot be had here: %s" % why)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    except Broken as why:
        print("conformance: %s" % why, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
