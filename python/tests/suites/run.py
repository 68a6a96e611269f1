#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Test suites of other libraries, on their own library and on Zonda: what passes there passes here.

    run.py                     every suite on every side (make python-suites)
    run.py --quick             what CI runs
    run.py --suites netcdf4,h5netcdf --sides preload
    run.py --only 'vlen or enum'        as pytest's -k
    run.py --fresh             runs them on their own library again, too
    run.py --list              the suites and sides

Suites: `netcdf4` and `h5netcdf`, of the source distributions on PyPI of the versions that are installed;
`xarray`, the tests about files of the installed xarray, where they are. Nothing of them is kept in this
repository: all of it lands in out/suites.

Sides: `own`, as its authors run it. `preload`: the netCDF4 wheel under `zonda run`. `module`:
`zonda.netcdf4` by the name of netCDF4. `engine`: xarray's engine zonda by the name of netcdf4. h5netcdf's suite writes with one library and reads with another,
netCDF4 being one of them. Before a side counts, the process is asked whose code answers.

A test that passes on `own` and not on the other side is a failure, unless exceptions/SUITE-SIDE.tsv says why
it may; a test listed there that passes is one, too. Results of `own` are kept for as long as the versions of
the packages stay as they are. ZONDA_PYTHON (out/python/bin/python, or that of out/venv) has the packages, and `zonda`
where its module was not built in this checkout; ZONDA_DIST (dist) has the library. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import execute
import lists
from execute import ROOT, Broken, Suite
from fetch import Unavailable, installed, sdist, version

SUITES = ("netcdf4", "h5netcdf", "xarray")
SIDES = ("preload", "module", "engine")
# The engine is for xarray alone.
NO_SUCH = {("netcdf4", "engine"), ("h5netcdf", "engine")}
# What CI leaves to `make python-suites`: the same calls reach the library by another side of another suite.
NOT_QUICK = {("xarray", "module"), ("xarray", "preload"), ("h5netcdf", "module")}
# What decides about results of `own`.
PACKAGES = ("netCDF4", "h5netcdf", "h5py", "xarray", "numpy", "cftime", "dask", "pytest", "pandas")
XARRAY = ("test_backends.py", "test_backends_datatree.py", "test_backends_api.py", "test_backends_file_manager.py", "test_distributed.py")


def suite(name: str, python: str, out: Path, quick: bool) -> Suite:
    """A suite, fetched if need be."""
    version(python, "pytest")
    version(python, "netCDF4")
    if name == "netcdf4":
        tree = sdist(python, "netCDF4", out) / "test"
        # Without the network: one test reads from a server that is not ours.
        return Suite(name, tree, ("--ignore=__init__.py", "."), "file", env={"NO_NET": "1"})
    if name == "h5netcdf":
        return Suite(name, sdist(python, "h5netcdf", out), ("h5netcdf/tests",), options=("-c", "h5netcdf/tests/pytest.ini"))
    home = installed(python, "xarray")
    # What has to do with netCDF4 by its name, or everything that does not name another's format. Each of the
    # distributed tests starts a cluster, ten seconds.
    only = "not zarr and not pydap and not scipy"
    if quick:
        only = "TestNetCDF4Data or TestNetCDF4ViaDaskData or roundtrip[True-netcdf4-NETCDF4]"
    return Suite(name, None, tuple(str(home / "tests" / file) for file in XARRAY), "class",
                 options=(f"--rootdir={home.parent}",), only=only)  # fmt: skip


def interpreter() -> str:
    """The Python that has the package installed, where the tests made one, or that of the other tests."""
    return next((str(p) for n in ("python", "venv") if (p := ROOT / "out" / n / "bin" / "python").exists()), sys.executable)


def facts(python: str) -> dict[str, str]:
    """Versions of the packages, for who reads the results."""
    found = {"python": subprocess.run([python, "-VV"], capture_output=True, text=True).stdout.strip()}
    for package in PACKAGES:
        try:
            found[package] = version(python, package)
        except Unavailable:
            found[package] = "none"
    return found


def own(chosen: Suite, a, known: dict[str, str]) -> dict:
    """Results on its own library, from the last time if nothing has changed since."""
    key = hashlib.sha256(json.dumps([known, sorted(Path(t).name for t in chosen.targets), chosen.only, a.only]).encode()).hexdigest()[:12]
    kept = a.out / "own" / f"{chosen.name}-{key}.json"
    if kept.exists() and not a.fresh:
        return json.loads(kept.read_text())
    found = execute.run(chosen, a.sides_of["own"], a.python, a.out, a.only)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found, indent=0))
    return {test: tuple(end) for test, end in found.items()}


def counted(results: dict) -> str:
    ends = [end for end, _ in results.values()]
    return ", ".join(f"{ends.count(end)} {end}" for end in sorted(set(ends), key=lambda e: (e != "passed", e)))


def judge(chosen: Suite, side: str, a, base: dict) -> tuple[int, int]:
    """Runs a suite on a side and says what is wrong; (passed, failed)."""
    allowed = lists.exceptions(chosen.name, side)
    if a.only or a.quick:  # those of tests that were not asked for say nothing
        allowed = {test: why for test, why in allowed.items() if test in base}
    start = time.monotonic()
    found = execute.run(chosen, a.sides_of[side], a.python, a.out, a.only)
    good, wrong, excused = lists.compare(base, found, allowed)
    for line in wrong:
        print(f"FAIL {chosen.name} on {side}: {line}")
    if a.verbose:
        for line in excused:
            print(f"     {chosen.name} on {side}: {line}")
    more = sum(end == "passed" and base.get(test, ("",))[0] in ("failed", "crashed") for test, (end, _) in found.items())
    print(f"{chosen.name} on {side}: {good} of {sum(e == 'passed' for e, _ in base.values())} that pass on its own library, "
          f"{len(excused)} excused, {len(wrong)} wrong; {more} that fail there pass; {counted(found)}; "
          f"{time.monotonic() - start:.0f} s", flush=True)  # fmt: skip
    return good, len(wrong)


def ready(side: str, a) -> None:
    """Whether a side can be had here."""
    if side == "preload" and not (a.dist / "lib" / "libzonda-preload.so").exists():
        raise Unavailable(f"no libzonda-preload.so in {a.dist}/lib: make build")
    module = {"module": "zonda.netcdf4", "engine": "zonda.xarray_engine"}.get(side)
    if module:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(execute.package())}
        ask = subprocess.run([a.python, "-c", f"import {module}"], capture_output=True, text=True, env=env)
        if ask.returncode != 0:
            raise Unavailable(f"{module} cannot be imported: {ask.stderr.strip().splitlines()[-1]}")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--suites", default=",".join(SUITES))
    p.add_argument("--sides", default=",".join(SIDES))
    p.add_argument("--only", default="", metavar="EXPRESSION", help="as pytest's -k")
    p.add_argument("--quick", action="store_true", help="what CI runs")
    p.add_argument("--fresh", action="store_true", help="run them on their own library again")
    p.add_argument("--verbose", action="store_true", help="show the exceptions, too")
    p.add_argument("--list", action="store_true")
    p.add_argument("--python", default=os.environ.get("ZONDA_PYTHON") or interpreter())
    p.add_argument("--dist", type=Path, default=Path(os.environ.get("ZONDA_DIST", ROOT / "dist")))
    p.add_argument("--out", type=Path, default=ROOT / "out" / "suites")
    a = p.parse_args()
    for given, there in ((a.suites, SUITES), (a.sides, SIDES)):
        for name in given.split(","):
            if name not in there:
                p.error(f"no {name}; there are {', '.join(there)}")
    a.dist, a.out = a.dist.resolve(), a.out.resolve()
    a.sides_of = execute.sides(a.dist)
    return a


def main() -> int:
    a = arguments()
    if a.list:
        print("suites: " + ", ".join(SUITES) + "\nsides: " + ", ".join(SIDES))
        return 0
    a.out.mkdir(parents=True, exist_ok=True)
    lock = open(a.out / "lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # two runs would share folders
    passed = failed = skipped = 0
    known = facts(a.python)
    print(", ".join(f"{k} {v}" for k, v in known.items()), flush=True)
    for name in a.suites.split(","):
        try:
            chosen = suite(name, a.python, a.out, a.quick)
            base = own(chosen, a, known)
        except Unavailable as why:
            print(f"skipped: {name}: {why}")
            skipped += 1
            continue
        print(f"{name} on own: {counted(base)}", flush=True)
        for side in a.sides.split(","):
            if (name, side) in NO_SUCH or (a.quick and (name, side) in NOT_QUICK):
                continue
            try:
                ready(side, a)
                good, wrong = judge(chosen, side, a, base)
            except Unavailable as why:
                print(f"skipped: {name} on {side}: {why}")
                skipped += 1
                continue
            passed, failed = passed + good, failed + wrong
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Broken, lists.BadList) as why:
        print(f"suites: {why}", file=sys.stderr)
        sys.exit(2)
