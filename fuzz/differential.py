#!/usr/bin/env python3
"""Reads damaged HDF5 and netCDF-4 files with Zonda and with a reference libnetcdf.

    fuzz/differential.py [--seconds N] [--seed N] [--ours LIB] [--reference LIB] [FOLDER...]

Every file of the folders (default: tests of the crates, and ZONDA_CORPUS/files) is compared as it
is, then with 1 to 8 bytes changed until the time is over. Failures, and exit status 1:

  died      Zonda's process crashed, hung or wanted more memory than the limit
  sound     nothing was changed, or raw data only, and the reference reads what Zonda does not, or
            another value

The reference is the library of Python's netCDF4 in out/venv, or else the distribution's, which is
older and reads some sound files otherwise. Where both read another value out of damaged metadata, neither is right: those are listed as
`damaged` and bind nobody. Files of failures stay in out/fuzz/differential, named by the number that
`--seed` and the order of the files give them. Without h5py nobody knows where raw data lie, and all
changed files count as damaged.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBE = ROOT / "fuzz" / "probe.py"
LARGEST = 256 << 10
# Sound files of the corpus whose answer differs, and why.
WIDE = ("a type that no variable of netCDF can have, listed by its size: the reference counts members as C's "
        "long double (16 bytes, what they are differs between machines), Zonda as the double that it would give")
KNOWN = {
    "tools/testfiles/tldouble_scalar.h5": WIDE,
    "testdata/hdf5_official/tcomplex.h5": WIDE,
    "testdata/hdf5_official/tcomplex_be.h5": WIDE,
}
SHOWN = 40      # lines of each sort


def newest_reference():
    """The library of Python's netCDF4, which is newer, or that of the distribution."""
    wheel = sorted((ROOT / "out" / "venv").glob("lib/python*/site-packages/netcdf4.libs/libnetcdf-*.so*"))
    if wheel:
        return wheel[-1]
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next((line.split()[-1] for line in listed.splitlines() if "libnetcdf.so.19 " in line), None)


def python_with_h5py():
    for python in (ROOT / "out" / "venv" / "bin" / "python", sys.executable):
        if os.path.exists(python) and subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode == 0:
            return python
    return None


class Library:
    """A process that answers for one library, begun again if it ends."""

    def __init__(self, path):
        self.path, self.process = path, None

    def ask(self, file):
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, str(PROBE), str(self.path)]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("%s\n" % file)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"died": "with its server"}


class Raw:
    """Where the raw data of a seed lie."""

    def __init__(self):
        self.python, self.known = python_with_h5py(), {}

    def of(self, seed):
        if seed not in self.known:
            self.known[seed] = []
            if self.python:
                run = subprocess.run([self.python, PROBE, "--raw", seed], capture_output=True, text=True)
                if run.returncode == 0:
                    size = seed.stat().st_size
                    self.known[seed] = [(at, n) for at, n in json.loads(run.stdout) if n and at + n <= size]
        return self.known[seed]


def change(data, places, rng):
    """Changes 1 to 8 bytes within one of the places."""
    at, n = rng.choice(places)
    for _ in range(rng.randint(1, 8)):
        i = at + rng.randrange(n)
        data[i] = rng.choice([0, 1, 0xFF, data[i] ^ (1 << rng.randrange(8)), (data[i] + 1) % 256, rng.randrange(256)])


def differences(reference, ours):
    """What the reference reads and we do not, or otherwise; what we read beside that is no matter."""
    for what, (code, value) in reference.items():
        if code != 0:
            continue
        mine = ours.get(what)
        if mine is None:
            yield "%s: missing" % what
        elif mine[0] != 0:
            yield "%s: code %d" % (what, mine[0])
        elif mine[1] != value:
            yield "%s: %s, the reference %s" % (what, mine[1], value)


def exceptions():
    """Sound files whose answer is known to differ."""
    lines = (ROOT / "tests" / "corpus" / "exceptions.txt").read_text().splitlines()
    return {*KNOWN, *(line.split("|")[0].strip() for line in lines if line.strip() and not line.startswith("#"))}


def malformed():
    """Files of the corpus that are damaged as they are."""
    table = pathlib.Path(os.environ.get("ZONDA_CORPUS") or "/nonexistent") / "MANIFEST.tsv"
    if not table.exists():
        return set()
    rows = (line.split("\t") for line in table.read_text().splitlines())
    return {str(table.parent.resolve() / row[0]) for row in rows if len(row) > 1 and row[1] == "malformed"}


def seeds(folders):
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and 0 < p.stat().st_size <= LARGEST):
            with open(path, "rb") as file:
                if b"\x89HDF\r\n\x1a\n" in file.read(4096):
                    yield path


class Run:
    def __init__(self, options):
        self.ours, self.reference = Library(options.ours), Library(options.reference)
        self.raw, self.counts, self.out = Raw(), collections.Counter(), ROOT / "out" / "fuzz" / "differential"
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        self.known, self.malformed = exceptions(), malformed()

    def tell(self, sort, name, text):
        self.counts[sort] += 1
        if self.counts[sort] <= SHOWN:
            print("%-8s %s: %s" % (sort, name, text), flush=True)

    def compare(self, file, name, sound):
        """True if the file is worth keeping."""
        self.counts["cases"] += 1
        mine, theirs = self.ours.ask(file), self.reference.ask(file)
        if "died" in theirs:
            self.counts["the reference died"] += 1
        if "died" in mine:
            self.tell("died", name, mine["died"])
            return True
        if "died" in theirs:
            return False
        self.counts["both read"] += mine["items"].get("open", [1])[0] == theirs["items"].get("open", [1])[0] == 0
        found = list(differences(theirs["items"], mine["items"]))
        if found:
            more = " (and %d more)" % (len(found) - 1) if len(found) > 1 else ""
            self.tell("sound" if sound else "damaged", name, found[0] + more)
        return bool(found) and sound

    def whole(self, seed):
        """True if the answers agree, so that a change of them tells something."""
        text = str(seed)
        if any(text.endswith("/" + known) for known in self.known):
            return False
        return not self.compare(seed, text, text not in self.malformed)

    def changed(self, seed, number, rng):
        data, places = bytearray(seed.read_bytes()), self.raw.of(seed)
        sound = bool(places) and str(seed) not in self.malformed and rng.random() < 0.4
        change(data, places if sound else [(0, len(data))], rng)
        file = self.out / ("%d%s" % (number, seed.suffix))
        file.write_bytes(data)
        if not self.compare(file, "%s (%s)" % (file.name, seed), sound):
            file.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ours", type=pathlib.Path, default=ROOT / "dist" / "lib" / "libnetcdf.so.19")
    parser.add_argument("--reference", type=pathlib.Path, default=newest_reference())
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if options.reference is None:
        print("differential: skipped, no libnetcdf to compare with")
        return 0
    if not options.ours.exists():
        sys.exit("differential: no %s: run make build" % options.ours)
    folders = options.folders or [ROOT / "crates", ROOT / "tests" / "corpus" / "files"]
    if not options.folders and os.environ.get("ZONDA_CORPUS"):
        folders.append(pathlib.Path(os.environ["ZONDA_CORPUS"]) / "files")
    files = [path.resolve() for path in seeds(folders)]
    if not files:
        sys.exit("differential: no HDF5 files in %s" % ", ".join(map(str, folders)))
    run, end, number = Run(options), time.monotonic() + options.seconds, 0
    files = [seed for seed in files if run.whole(seed)]
    while files and time.monotonic() < end:
        number += 1
        rng = random.Random(options.seed * 1_000_003 + number)
        run.changed(rng.choice(files), number, rng)
    counts = ", ".join("%s %d" % pair for pair in sorted(run.counts.items()))
    print("differential: %d seeds that agree%s; %s" % (len(files), "" if run.raw.python else ", no h5py", counts))
    return 1 if run.counts["died"] + run.counts["sound"] else 0


if __name__ == "__main__":
    sys.exit(main())
