# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the cases of cases.txt on both libraries and compares what they do. See run.py.

A case passes when exit code, output and the set of files agree, and each file holds the same
according to the distribution's own ncdump. Whether the bytes agree as well is counted apart: a
library may lay out a file in another way. Time stamps are masked on both sides first.
"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
import rig  # noqa: E402
from rig import SONAME, Setup  # noqa: E402

OUT = str(rig.out("programs"))
LIBDIR, PRELOAD = str(rig.LIBDIR), "libzonda-preload.so"
FILES = os.path.join(os.path.dirname(HERE), "corpus")
# Only hangs are bounded.
TIMEOUT, JOBS = 600, 2

# A file of fill values whose text has 861 MB took half the time of all cases: tests/corpus reads it, readers.py compares a part.
LONG_TEXTS = ["tlayouto.h5"]
STAMPS = [
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}",
    rb"\[\d+\.\d+s \d+MB\]",
    rb"\bpid\d+\b",
]


@dataclass
class Case:
    name: str
    command: str

    @property
    def fails(self):
        return self.name.endswith("!")

    @property
    def program(self):
        """What loads the library: the word that decides whether the case can run."""
        return re.match(r"(?:(?:cp|ncks) [^&]*&& )*(?:for .*?; do (?:echo \S+; )?)?(\S+)", self.command)[1]


def read_cases(options):
    found = []
    with open(os.path.join(HERE, "cases.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, command = (x.strip() for x in line.split("|", 1))
                if options.wants(name):
                    found.append(Case(name, command))
    return found if options.only else found[::options.by(4, 1, 1)]


def base_environment():
    return rig.environment(TZ="UTC", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", CDO_HISTORY_INFO="1")


def prepare():
    """Inputs by the distribution's ncgen, the Fortran program; returns the cases' variables."""
    shutil.rmtree(os.path.join(OUT, "in"), ignore_errors=True)
    inputs = os.path.join(OUT, "in")
    shutil.copytree(os.path.join(HERE, "cdl"), inputs)
    for stem, kinds in (("grid", "12345"), ("odd", "125"), ("wide", "5"), ("rich", "3")):
        for k in kinds:
            r = rig.run(["ncgen", "-k", k, "-o", "%s%s.nc" % (stem, k), stem + ".cdl"], base_environment(), cwd=inputs)
            if r.returncode:
                raise Setup("ncgen -k %s %s.cdl: %s" % (k, stem, r.stderr))
    for name, source in (("real", "files"), ("bad", "bad")):
        shutil.rmtree(os.path.join(OUT, name), ignore_errors=True)
        shutil.copytree(os.path.join(FILES, source), os.path.join(OUT, name), ignore=shutil.ignore_patterns(*LONG_TEXTS))
    # Relative to the folder of a case (OUT/<library>/<case>), so that both record the same words.
    return {"IN": "../../in", "REAL": "../../real", "BAD": "../../bad", "HERE": HERE}


def build_fortran(stem="fortran_roundtrip"):
    """A compiled Fortran program, or the reason why there is none."""
    if not shutil.which("gfortran"):
        return None, "gfortran is not installed"
    exe = os.path.join(OUT, stem)
    r = subprocess.run(["gfortran", "-O1", "-I/usr/include", "-J" + OUT, os.path.join(HERE, stem + ".f90"),
                        "-o", exe, "-lnetcdff"], capture_output=True, text=True)
    if r.returncode:
        if "netcdf.mod" in r.stderr or "-lnetcdff" in r.stderr:
            return None, "the distribution's libnetcdff is not installed"
        raise Setup(stem + ".f90:\n" + r.stderr)
    return exe, ""


def wheel_python():
    """A Python with the netCDF4 wheel, or the reason why there is none."""
    if not os.path.exists(os.path.join(LIBDIR, PRELOAD)):
        return None, "no %s in %s" % (PRELOAD, LIBDIR)
    own = os.path.join(OUT, "wheel", "bin", "python")
    for python in (os.environ.get("ZONDA_WHEEL_PYTHON", ""), str(rig.ROOT / "out" / "venv" / "bin" / "python"), own):
        if rig.places.has(python, ("netCDF4",)):
            return python, ""
    rig.places.has.cache_clear()
    shutil.rmtree(os.path.join(OUT, "wheel"), ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", os.path.join(OUT, "wheel")], capture_output=True)
    if made.returncode == 0:
        subprocess.run([own, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                        "--only-binary", ":all:", "netCDF4"], capture_output=True, timeout=600)
    return (own, "") if rig.places.has(own, ("netCDF4",)) else (None, "the netCDF4 wheel cannot be installed here")


def system_python():
    python = "/usr/bin/python3"
    return (python, "") if rig.places.has(python, ("netCDF4", "numpy")) else (None, "python3-netcdf4 is not installed")


def mask(data):
    """Replaces time stamps by as many X: lengths, and so offsets in headers, stay."""
    for stamp in STAMPS:
        data = re.sub(stamp, lambda m: b"X" * len(m[0]), data)
    return data


@dataclass
class Outcome:
    code: object
    output: bytes
    files: dict         # name -> path


class Runner:
    def __init__(self, variables):
        self.variables = variables

    def run(self, case, label, debug):
        """One run in an empty folder. `debug` makes the loader write down what it loads."""
        folder = os.path.join(OUT, label, case.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        env = dict(base_environment(), **self.variables)
        if label == "zonda":
            if case.program == "$WHEEL":
                env["LD_PRELOAD"] = os.path.join(LIBDIR, PRELOAD)
            else:
                env["LD_LIBRARY_PATH"] = LIBDIR
            if debug:
                env.update(LD_DEBUG="libs", LD_DEBUG_OUTPUT=folder + ".loader")
        try:
            p = subprocess.run(["/bin/sh", "-c", case.command], cwd=folder, env=env, timeout=TIMEOUT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            code, output = p.returncode, p.stdout
        except subprocess.TimeoutExpired as e:
            code, output = "timed out", e.stdout or b""
        with open(folder + ".out", "wb") as f:
            f.write(output)
        files = {}
        for d, _, names in os.walk(folder):
            for n in names:
                path = os.path.join(d, n)
                files[re.sub(r"\bpid\d+\b", "pid", os.path.relpath(path, folder))] = path
        return Outcome(code, mask(output), files)

    @staticmethod
    def loaded(case):
        """True if a process of the case initialised the library of LIBDIR and no other one."""
        name = PRELOAD if case.program == "$WHEEL" else SONAME
        ours, other = False, False
        top = os.path.join(OUT, "zonda")
        for f in os.listdir(top):
            if not f.startswith(case.name + ".loader."):
                continue
            with open(os.path.join(top, f), errors="replace") as handle:
                for m in re.finditer(r"calling init: (\S+)", handle.read()):
                    if m[1] == os.path.join(LIBDIR, name):
                        ours = True
                    elif os.path.basename(m[1]) == SONAME and name == SONAME:
                        other = True
            os.unlink(os.path.join(top, f))
        return ours and not other


def content(path):
    """What the distribution's library reads in a file; None if it is no netCDF file."""
    kind = rig.run([rig.tool("ncdump"), "-k", path], text=False)
    # How netCDF-4 data is stored is content as well; who stored it is not.
    storage = ["-s"] if kind.stdout.startswith(b"netCDF-4") else []
    r = rig.run([rig.tool("ncdump"), *storage, "-n", "same", path], text=False, seconds=TIMEOUT)
    text = re.sub(rb"\t:_NCProperties = .*", b"\t:_NCProperties", r.stdout)
    # Nor are shapes of chunks, which both choose where nobody does (docs/dev/chunk-sizes.md).
    text = re.sub(rb".*:_ChunkSizes = .*\n", b"", text)
    return mask(kind.stdout + text) if r.returncode == 0 else None


def first_difference(a, b):
    """A short account of the first line in which two outputs differ."""
    x, y = a.decode(errors="replace").splitlines(), b.decode(errors="replace").splitlines()
    for i in range(max(len(x), len(y))):
        p, q = (v[i] if i < len(v) else "(end)" for v in (x, y))
        if p != q:
            return "line %d: %.60r, expected %.60r" % (i + 1, q.strip(), p.strip())
    return "white space"


def compare(want, got, fails):
    """(what differs or "", files with equal bytes, files)."""
    if (want.code != 0) != fails:
        return "the case itself ends with %s on the distribution's library" % want.code, 0, 0
    if got.code != want.code:
        last = got.output.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
        return "exit %s, expected %s: %.120s" % (got.code, want.code, last[0]), 0, 0
    if got.output != want.output:
        return "output differs, " + first_difference(want.output, got.output), 0, 0
    if set(got.files) != set(want.files):
        return "files %s, expected %s" % (sorted(got.files), sorted(want.files)), 0, 0
    same = 0
    for n in sorted(want.files):
        with open(want.files[n], "rb") as f, open(got.files[n], "rb") as g:
            a, b = mask(f.read()), mask(g.read())
        if a == b:
            same += 1
            continue
        a, b = content(want.files[n]), content(got.files[n])
        if a is None or b is None:
            return "%s differs" % n, same, len(want.files)
        if a != b:
            return "%s differs, %s" % (n, first_difference(a, b)), same, len(want.files)
    return "", same, len(want.files)


def cases(options, counts):
    """All cases that were asked for."""
    if rig.missing("ncgen", "ncdump"):
        raise Setup("missing " + " ".join(rig.missing("ncgen", "ncdump")))
    rig.two_libraries()
    found = read_cases(options)
    variables, absent = prepare(), {}
    for word, find in (("FORTRAN", build_fortran), ("FORTRAN4", lambda: build_fortran("fortran_nc4")), ("PYTHON", system_python), ("WHEEL", wheel_python)):
        if any(c.program == "$" + word for c in found):
            path, why = find()
            variables[word] = path or ""
            if path is None:
                absent["$" + word] = why
    for c in found:
        if not c.program.startswith("$") and not shutil.which(c.program):
            absent[c.program] = "%s is not installed" % c.program
    runner, first = Runner(variables), {}
    for c in found:
        first.setdefault(c.program, c.name)

    def one(case):
        if case.program in absent:
            counts.skip(case.name, absent[case.program])
            return 0, 0
        check = first[case.program] == case.name
        want, got = runner.run(case, "distribution", False), runner.run(case, "zonda", check)
        loaded = not check or runner.loaded(case)
        why, same, files = compare(want, got, case.fails)
        if not why and not loaded:
            why = "%s did not load the library of %s, or not only that one" % (case.program, LIBDIR)
        if counts.check(case.name, why):
            print("PASS %s" % case.name, flush=True)
        return same, files

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(one, found))
    same, files = (sum(column) for column in zip(*results)) if results else (0, 0)
    print("files: %d of %d equal byte for byte, the others by content" % (same, files))
