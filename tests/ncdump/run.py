#!/usr/bin/env python3
"""`ncdump` beside the distribution's, byte by byte: on what ncgen makes of *.cdl here and in
tests/cli/dump, in every format, on files of tests/cli/odd_files.py, and on real files.

    run.py [--long]     every file of the large corpus, not a sample
    run.py [--quick]    each tenth file
    run.py [REGEX]      only files whose name the expression finds

    JOBS                comparisons at a time (default: 2)

tests/rig/places.py has the other settings.

Standard output, exit status and, where that is not 0, the first line on standard error have to be
those of the reference. Where they need not be:

  crash     the reference dies of a signal or takes more than 20 seconds; where it does so with -h,
            other options are not tried
  more      the reference refuses a file or gives up in the middle; Zonda goes on from the same text,
            to the end or to what it cannot read either
  unnamed   netCDF-C 4.9.0 leaves out variables of types without a name, which Zonda calls _Anonymous
  damaged   both refuse a damaged file, each for its own reason
  known     it is in exceptions.txt; a line of that which no file needs fails the test

One line per file with differences, then `N passed, N failed, N skipped`.
"""

import fnmatch
import os
import re
import subprocess
import sys
import tempfile
import threading
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import ROOT  # noqa: E402

OURS = rig.BIN / "ncdump"
ENV = rig.environment()
SECONDS = 20
# One of so many files of the large corpus is looked at, unless all are asked for.
SAMPLE = 20
BLOCK = 1 << 16
# Above it the long forms of output are left out, which would take minutes each.
LONG_FORMS_BYTES = 1 << 20

SETS = {
    "header": ["-h"],
    "full": [],
    "special": ["-s"],
    "filters": ["-h", "-s", "-F"],
    "coordinates": ["-c"],
    "times": ["-t", "-v", "COORDINATES"],
    "iso": ["-i", "-c"],
    "ncml": ["-x"],
    "ncml-header": ["-x", "-h"],
    "brief": ["-b", "c"],
    "brief-f": ["-b", "f"],
    "indices": ["-f", "c"],
    "name": ["-h", "-n", "other name"],
    "kind": ["-k"],
    "extended": ["-K"],
    "digits": ["-p", "3,5"],
    "all-digits": ["-p", "9,17"],
    "lines": ["-l", "40"],
}
LONG = ("brief", "brief-f", "indices", "all-digits", "lines")


# Calls on generated files: right and wrong ones.
CALLS = [
    "-g first nc4_groups-nc4.nc",
    "-g /first nc4_groups-nc4.nc",
    "-g first/own nc4_groups-nc4.nc",
    "-g / nc4_groups-nc4.nc",
    "-c -g first nc4_groups-nc4.nc",
    "-g nope nc4_groups-nc4.nc",
    "-g first,/nope nc4_groups-nc4.nc",
    "-g first fill-nc3.nc",
    "-v x nc4_groups-nc4.nc",
    "-v first/x nc4_groups-nc4.nc",
    "-v /first/b,still/own nc4_groups-nc4.nc",
    "-v nope fill-nc3.nc",
    "-x -v nope fill-nc3.nc",
    "-k -v nope fill-nc3.nc",
    "-x -c fill-nc3.nc",
    "-x -v time,noleap times-nc3.nc",
    "-t times-nc4.nc",
    "-i times-cdf5.nc",
    "-t -i times-nc3.nc",
    "-i -t -h times-nc3.nc",
    "-t -l 60 times-nc7.nc",
    "-d 3,5 numbers-nc3.nc",
    "-p ,5 numbers-nc3.nc",
    "-p 3,5 -p 4 formats-nc3.nc",
    "-d 3,5 formats-nc3.nc",
    "-p 20,20 numbers-nc4.nc",
    "-p 1,1 numbers-nc4.nc",
    "-p 0 numbers-nc3.nc",
    "-p 3,21 numbers-nc3.nc",
    "-p 3, numbers-nc3.nc",
    "-p x numbers-nc3.nc",
    "-l 9 numbers-nc3.nc",
    "-l 0x14 numbers-nc3.nc",
    "-l 011 numbers-nc3.nc",
    "-l 1000000 numbers-nc3.nc",
    "-b x fill-nc3.nc",
    "-f x fill-nc3.nc",
    "-b FORTRAN -f C shapes-nc3.nc",
    "-X q fill-nc3.nc",
    "-Xp -s -h fill-nc4.nc",
    "-Xm -h fill-nc3.nc",
    "-hk fill-nc7.nc",
    "-kK fill-nc6.nc",
    "fill-nc3.nc -h",
    "-h -- fill-nc3.nc",
    "-n 1x -h fill-nc3.nc",
    "-n a/b.c -h ./fill-nc3.nc",
    "no-such-file",
    ".",
    "/dev/null",
    "odd",
    "-- -h",
]
# How they are called wrongly: the text of that is our own.
MISUSES = ["", "-z fill-nc3.nc", "-v", "fill-nc3.nc fill-nc3.nc", "-h", "--help", "-l"]


@dataclass
class Subject:
    """A file and what is known of it."""

    name: str
    path: Path
    sets: list = field(default_factory=lambda: list(SETS))
    damaged: bool = False


@dataclass
class Run:
    """How one of the two ended."""

    status: int
    error: str


@dataclass
class Exception_:
    """A line of exceptions.txt."""

    pattern: str
    sets: set
    reason: str
    used: bool = False


def exceptions():
    found = []
    for number, line in enumerate((HERE / "exceptions.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            sys.exit(f"exceptions.txt:{number}: three parts with | between are meant")
        unknown = set(parts[1].split()) - set(SETS) - {"*"}
        if unknown:
            sys.exit(f"exceptions.txt:{number}: no sets {unknown}")
        found.append(Exception_(parts[0], set(parts[1].split()), parts[2]))
    return found


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def line_around(data, at):
    start = data.rfind(b"\n", 0, at) + 1
    return data[start : start + 100]


class Pair:
    """The two tools on one file with one set of options."""

    def __init__(self, reference, arguments, folder=None):
        self.command = ["ncdump", *arguments]
        self.folder = folder
        self.programs = (reference, str(OURS))
        self.late = False

    def run(self):
        """How both ended, whether the reference's text is the start of ours, whether they are equal, and
        where not."""
        errors = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        both = [
            subprocess.Popen(
                self.command, executable=program, env=ENV, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=error,
            )
            for program, error in zip(self.programs, errors)
        ]

        def stop():
            self.late = True
            for one in both:
                one.kill()

        clock = threading.Timer(SECONDS, stop)
        clock.start()
        ours, difference, is_start = both[1], "", True
        while True:
            expected, got = (one.stdout.read(BLOCK) for one in both)
            if expected == got:
                if not expected:
                    break
                continue
            is_start = got.startswith(expected)
            at = next((i for i, (a, b) in enumerate(zip(expected, got)) if a != b),
                      min(len(expected), len(got)))
            difference = f"{line_around(expected, at)!r} is {line_around(got, at)!r}"
            for one in both:
                while one.stdout.read(BLOCK):
                    pass
            break
        runs = [Run(one.wait(), text_of(error)) for one, error in zip(both, errors)]
        clock.cancel()
        for one, error in zip(both, errors):
            one.stdout.close()
            error.close()
        return runs, is_start, difference


def verdict(subject, reference, options):
    """What came of it, and why."""
    pair = Pair(reference, [*options, subject.path])
    (expected, got), is_start, difference = pair.run()
    if got.status < 0 and not pair.late or "panicked" in got.error:
        return "differs", f"ours ends with {got.status}: {got.error[:200]}"
    if expected.status < 0 or pair.late:
        return "crash", ""
    first = [run.error.splitlines()[0] if run.error else "" for run in (expected, got)]
    at_open = f"ncdump: {subject.path}: "
    if first[0].startswith(at_open) and not first[1].startswith(at_open):
        return "more", ""
    if not difference and expected.status == got.status:
        if expected.status == 0 or first[0] == first[1]:
            return "same", ""
        if subject.damaged:
            return "damaged", ""
        return "differs", f"{first[0]!r} is {first[1]!r}"
    if expected.status != 0 and difference and is_start:
        return "more", ""
    if expected.status != 0 and got.status != 0 and subject.damaged:
        return "damaged", ""
    if expected.status != got.status:
        return "differs", f"exit {expected.status} is {got.status}: {first[0]!r}, {first[1]!r}"
    return "differs", difference


def has_unnamed(path):
    text = subprocess.run([OURS, "-h", path], env=ENV, capture_output=True).stdout
    return b"_Anonymous" in text


def coordinates(reference, path):
    """Names of coordinate variables of the root group, as the reference's header shows them."""
    try:
        header = subprocess.run([reference, "-h", path], env=ENV, capture_output=True, timeout=SECONDS).stdout
    except subprocess.TimeoutExpired:
        return []
    header = header.decode(errors="replace").split("\ngroup:")[0]
    dims = set(re.findall(r"^\t([A-Za-z_]\w*) = (?:\d+|UNLIMITED) ;", header, re.M))
    return [name for name in re.findall(r"^\t\w+ ([A-Za-z_]\w*)\(", header, re.M) if name in dims]


def generated(folder):
    """Files of own CDL, in every kind that can hold it."""
    ncgen = rig.tool("ncgen")
    for cdl in sorted([*HERE.glob("*.cdl"), *(ROOT / "tests/cli/dump").glob("*.cdl")]):
        kinds = ["nc3", "nc6", "cdf5", "nc7", "nc4"]
        if cdl.stem == "types":  # a word of netCDF-4 is a name in it
            kinds.remove("nc4")
        if cdl.stem.startswith("cdf5_"):
            kinds = ["cdf5", "nc4"]
        if cdl.stem.startswith("nc4_"):
            kinds = ["nc4"]
        for kind in kinds:
            path = folder / f"{cdl.stem}-{kind}.nc"
            subprocess.run([ncgen, "-k", kind, "-o", path, cdl], check=True, env=ENV)
            yield Subject(path.name, path)
    subprocess.run([ROOT / "tests/cli/odd_files.py", folder / "odd"], check=True)
    for path in sorted((folder / "odd").glob("*.nc")):
        yield Subject(f"odd/{path.name}", path)


def real(every):
    for path in sorted((ROOT / "tests/corpus/files").rglob("*")):
        if path.is_file():
            yield Subject(f"corpus/{path.name}", path)
    for path in sorted((ROOT / "tests/corpus/bad").rglob("*")):
        if path.is_file():
            yield Subject(f"bad/{path.name}", path, damaged=True)
    corpus = rig.CORPUS
    if not corpus:
        return
    for line in (corpus / "MANIFEST.tsv").read_text().splitlines()[1:]:
        path, category, _, state = line.split("\t")[:4]
        if every > 1 and zlib.crc32(path.encode()) % every:
            continue
        if category in ("classic", "netcdf4", "hdf5", "malformed", "foreign"):
            damaged = category in ("malformed", "foreign") or state != "valid"
            yield Subject(path.removeprefix("files/"), corpus / path, damaged=damaged)


def check(subject, reference, known, count):
    """Lines about what is not as it should be."""
    lines = []
    unnamed = None
    size = subject.path.stat().st_size
    named = coordinates(reference, subject.path)
    for name in subject.sets:
        if size > LONG_FORMS_BYTES and name in LONG:
            continue
        options = list(SETS[name])
        if "COORDINATES" in options:
            options = ["-t", "-v", ",".join(named)] if named else ["-t", "-c"]
        result, why = verdict(subject, reference, options)
        if result == "differs":
            unnamed = has_unnamed(subject.path) if unnamed is None else unnamed
            found = [e for e in known if name in e.sets or "*" in e.sets]
            found = [e for e in found if fnmatch.fnmatch(subject.name, e.pattern)]
            if unnamed:
                result = "unnamed"
            elif found:
                found[0].used = True
                result = "known"
            else:
                lines.append(f"        {name}: {why}")
        count[result] += 1
        if name == "header" and result == "crash":
            break
    return lines


def calls(reference, folder, counts):
    """Calls must be answered in the same way."""
    for call in CALLS + MISUSES:
        (expected, got), _, difference = Pair(reference, call.split(), folder).run()
        first = [run.error.splitlines()[0] if run.error else "" for run in (expected, got)]
        if call in MISUSES and not first[0].startswith("ncdump: "):
            # The complaint is only there if something can be named.
            first = [run.error[:8] for run in (expected, got)]
        is_same = not difference and expected.status == got.status and first[0] == first[1]
        counts.check(f"ncdump {call}", None if is_same else f"exit {expected.status} is {got.status}: {difference or first}")


def main():
    parser = rig.parser(__doc__, only="files whose name the expression finds")
    parser.add_argument("name", nargs="?", metavar="REGEX", help="the same as --only")
    options = rig.arguments(parser)
    options.only = options.name or options.only
    every = 1 if options.only else options.by(100, SAMPLE, 1)
    reference = rig.tool("ncdump")
    if not OURS.exists():
        raise rig.Setup(f"no {OURS}: build it first")
    if rig.missing("ncdump", "ncgen"):
        raise rig.Skip("there is no ncdump or ncgen to compare with")
    known, count, counts = exceptions(), Counter(), rig.Counts()
    with rig.scratch() as folder, ThreadPoolExecutor(int(os.environ.get("JOBS", 2))) as pool:
        made = list(generated(folder))
        if not options.only:
            calls(reference, folder, counts)
        subjects = [s for s in [*made, *real(every)] if options.wants(s.name)]
        if options.mark == rig.QUICK:
            subjects = subjects[::10]
        for subject, lines in zip(subjects, pool.map(lambda s: check(s, reference, known, count), subjects)):
            counts.check(subject.name, "\n".join(["", *lines]) if lines else None)
    for line in known if not options.only and options.mark != rig.QUICK else []:
        # What is about the large corpus is not needed without it.
        is_whole = every == 1 and rig.CORPUS
        if not line.used and (is_whole or "/" not in line.pattern):
            counts.fail("exceptions.txt", f"no file needs {line.pattern} | {' '.join(line.sets)}")
    if not rig.CORPUS:
        counts.skip("the large corpus", "ZONDA_CORPUS is not set")
    print(", ".join(f"{n} {what}" for what, n in sorted(count.items())))
    return counts


if __name__ == "__main__":
    rig.main(main)
