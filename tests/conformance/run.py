#!/usr/bin/env python3
"""The reference's own tests against Zonda's library.

    run.py              the classic tests, and what Zonda lacks of them
    run.py --allowed    only the names in passing.txt; any failure is a regression (make test)
    run.py --update     after the run, adds newly passing names to passing.txt (removes none)
    run.py --report     no run: passes on both / exceptions with reason / unexplained
    run.py --all        also the tests of netCDF-4 and of remote access
    run.py --quick      as --allowed, in the folder nc_test alone
    run.py --long       as --all --large
    run.py --async on   (or other settings) with write-behind, see tests/async
    run.py --baseline   everything on the distribution's library; writes reference.txt

Fetches the Debian source package `netcdf`, configures it once, compiles the test programs against
the headers under test and runs each on the library under test, the distribution's ncdump, ncgen,
ncgen3 and nccopy included. Everything lands in out/conformance; a log for each test is kept in
out/conformance/logs. One line per test, then `N passed, N failed, N skipped`.
"""
import fcntl
import os

import lists
from build import Builder
from execute import Executor
from plan import Plan
from settings import SONAME, SYSTEM_INC, SYSTEM_LIB, Broken, Settings, rig
from source import configure, unpack


def arguments():
    p = rig.parser(__doc__)
    p.add_argument("--allowed", action="store_true", help="run the names of passing.txt only")
    p.add_argument("--update", action="store_true", help="add newly passing names to passing.txt")
    p.add_argument("--report", action="store_true", help="print where things stand, run nothing")
    p.add_argument("--all", action="store_true", help="also the netCDF-4 and remote tests")
    p.add_argument("--baseline", action="store_true", help="record reference.txt")
    p.add_argument("--large", action="store_true", help="also tests that write several GiB")
    p.add_argument("--async", dest="write_behind", metavar="SETTING", default="", help="run the tests under ZONDA_ASYNC=SETTING")
    p.add_argument("--libdir", default=str(rig.LIBDIR))
    p.add_argument("--incdir", default=str(rig.INCDIR))
    p.add_argument("--tools", default="/usr/bin", help="folder of ncdump, ncgen, ncgen3, nccopy")
    p.add_argument("--out", default=str(rig.ROOT / "out" / "conformance"))
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=float, default=120, help="seconds for one test")
    p.add_argument("--keep", action="store_true", help="keep the folders of passing tests too")
    a = rig.arguments(p)
    a.allowed |= a.mark == rig.QUICK
    a.all, a.large = a.all or a.long, a.large or a.long
    if a.mark == rig.QUICK and not a.only:
        a.only = "^nc_test/"
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
    return [n for n in names if a.wants(n)]


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
        raise rig.Skip("passing.txt holds no name yet")
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
    counts = rig.Counts()
    counts.passed, counts.failed, counts.skipped = (sum(r.status == k for r in results.values()) for k in ("PASS", "FAIL", "SKIP"))
    if a.baseline:
        kept = lists.write_reference(results, plan.tests)
        print("reference.txt: " + ", ".join("%d %s" % (list(kept.values()).count(c), c) for c in lists.CLASSES))
    if a.update:
        new = lists.add_passing(results, list(plan.tests))
        print("passing.txt: %d added" % len(new))
    code = exit_code(a, plan, results)
    print(counts.line())
    return code


def main():
    a = arguments()
    if a.report:
        return 1 if lists.report(a.all) else 0
    return run(a)


if __name__ == "__main__":
    rig.main(main)
