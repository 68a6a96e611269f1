#!/usr/bin/env python3
"""`nccopy` of Zonda beside the distribution's: the same options on the same files.

    nccopy.py                   options on made files; each kind of copy of each file of the corpus
    nccopy.py --only REGEX      by the name of the case
    nccopy.py --part options|corpus
    nccopy.py --long            every file of the corpus, not a sample

    ZONDA_PREFIX   where bin/nccopy is (default: dist)
    ZONDA_CORPUS   folder with `files`; without it that part is skipped

Exit statuses have to be the same, the first line that is said of a failure, and of copies what the distribution's ncdump
says: all values, and of made files also chunks, filters and fill modes (`-s`). What is meant to be otherwise is
in exceptions.txt beside this program: a word of the case, `|`, why.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 20
# One of so many files of the corpus is copied, unless all are asked for.
SAMPLE = 15
# Longer texts are not compared line by line.
MOST_BYTES = 64 << 20

MADE = {
    "classic": ("nc3", """netcdf a { dimensions: t = UNLIMITED; y = 40; x = 100; n = 5;
variables: float v(t, y, x); v:_FillValue = -9.f; v:units = "K"; double w(y, x); short s(n); char c(n); double t(t);
  int scalar; byte b(t, n); :title = "made";
data: t = 1, 2, 3; s = 1, 2, 3, 4, 5; c = "abcde"; scalar = 7; b = 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15; }"""),
    "nc4": ("nc4", """netcdf a { dimensions: t = UNLIMITED; u = UNLIMITED; y = 40; x = 100; n = 5;
variables: float v(t, y, x); v:_FillValue = -9.f; v:_ChunkSizes = 1, 20, 50; v:_DeflateLevel = 2; v:_Shuffle = "true";
  v:_Fletcher32 = "true"; double w(y, x); w:_ChunkSizes = 20, 100; int plain(y, x); int64 big(y, x); big:_ChunkSizes = 40, 50;
  big:_Fletcher32 = "true"; uint64 few(n); few:_ChunkSizes = 2; short nofill(y, x); nofill:_NoFill = "true"; int scalar;
  int be(y, x); be:_Endianness = "big"; be:_ChunkSizes = 10, 100; be:_DeflateLevel = 9; ubyte two(t, u); compact(n); compact:_Storage = "compact";
  :title = "made"; :many = 1LL, 2LL;
data: few = 1, 2, 3, 4, 5; scalar = 7; two = {1, 2}, {3, 4}, {5, 6}; compact = 1, 2, 3, 4, 5;
}""".replace("compact(n);", "short compact(n);")),
    "model": ("nc7", """netcdf a { dimensions: t = UNLIMITED; y = 40; x = 100;
variables: float v(t, y, x); v:_ChunkSizes = 1, 40, 100; v:_DeflateLevel = 1; double w(y, x); char name(y);
  w:_ChunkSizes = 40, 100; :title = "made";
data: name = "a name"; }"""),
    "groups": ("nc4", """netcdf a { types: compound pair { int a; float b; }; byte enum flag { no = 0, yes = 1 }; opaque(3) raw; int(*) list;
dimensions: x = 3; y = 2;
variables: int v(x); string s(x); pair p(x); flag f(x); raw r(x); list l(x); string :text = "one", "two"; pair :p = {1, 2.5};
data: v = 1, 2, 3; s = "a", "bc", ""; p = {1, 1.5}, {2, 2.5}, {3, 3.5}; f = no, yes, no; r = 0X010203, 0X040506, 0X070809;
  l = {1}, {2, 3}, {};
group: g { dimensions: z = 4; variables: double v(z, x); float x(z); :of = "g"; data: v = 1,2,3,4,5,6,7,8,9,10,11,12; x = 1,2,3,4;
  group: h { variables: short v(y); data: v = 8, 9; } }
group: k { variables: int q; data: q = 5; } }"""),
    "strings": ("nc4", """netcdf a { dimensions: n = 3; variables: string s(n); int v(n); string :one = "text";
data: s = "a", "b", "c"; v = 1, 2, 3; }"""),
}

# Options for every made file; some are refused for some.
OPTIONS = """

-k classic
-k nc6
-k cdf5
-k nc4
-k nc7
-3
-6
-4
-7
-5
-k 64-bit-offset
-k hdf5-nc3
-k whatever
-d 1
-d 5 -s
-d 0
-s
-d 10
-u
-u -k nc3
-w
-r
-m 1M -h 2M -e 11
-m 3Q
-x
-c /
-c / -u
-c y/10
-c y/10,x/50
-c y/10,x/50 -d 1
-c y/,x/20
-c t/2,y/20,x/50
-c n/2
-c v:1,40,100
-c w:20,50
-c w:20,50 -d 3
-c w: -d 3
-c w:
-c w:contiguous
-c w:compact
-c s:compact
-c w:20
-c w:99,99
-c y/1000
-c nope/1
-c nope:1
-c y
-c y/0
-c y/10,,x/5
-c w:20,50 -c x/10
-M 0 -c n/2
-M 10000000 -d 1
-F none
-F *,none
-F v,none
-F w,1,4
-F *,1,4
-F w,2|1,4
-F w&v,1,3
-F w,nonsense
-F w,40000,1
-F w,1,4 -d 2
-F none -d 2
-v v
-V v
-V v,w
-V w -d 1
-V nope
-v h/v
-V /g/v
-V g/v,/g/h/v
-g g
-G g
-G /g,/g/h
-G g,h
-G h
-G /
-g nope
-L 1
-Q
"""

# Who wrote it is no value, and shapes of chunks along records that nobody chose are those of the library
# (docs/dev/chunk-sizes.md): of `t` and `b` in the classic file.
OF_WRITER = re.compile(r"^\t\t(?::_(?:NCProperties|SuperblockVersion|IsNetcdf4)|[tb]:_ChunkSizes) = .*\n", re.M)


# Neither program writes a longer file, and larger ones of the corpus are left out.
MOST_FILE = 512 << 20
MOST_DATA = 64 << 20


def bounded():
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE, MOST_FILE))


def run(command, **more):
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS,
                              preexec_fn=bounded, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -99, "", "no end")


# What the reference says of HDF5 files that are no netCDF-4.
READS_LESS = ("NetCDF: HDF error", "NetCDF: Filter error", "NetCDF: Name contains", "NetCDF: Bad chunk sizes",
              "NetCDF: Can't open HDF5 attribute", "NetCDF: Not a valid data type")


class Tester:
    def __init__(self, only):
        self.theirs = os.environ.get("NCCOPY", "/usr/bin/nccopy")
        prefix = Path(os.environ.get("ZONDA_PREFIX", ROOT / "dist")).resolve()
        self.ours = str(prefix / "bin" / "nccopy")
        self.only, self.counts = re.compile(only), {"passed": 0, "failed": 0, "skipped": 0, "excepted": 0}
        self.exceptions = []
        for line in (HERE / "exceptions.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                word, _, why = line.rpartition(" | ")
                self.exceptions.append((re.compile(word.strip()), why.strip()))
        # What the programs say and do must not depend on the machine.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("ZONDA_", "LD_", "HDF5_PLUGIN"))}

    def dump(self, path, *options):
        done = run(["/usr/bin/ncdump", "-n", "same", *options, str(path)], env=self.env)
        text = done.stdout if len(done.stdout) < MOST_BYTES else str(hash(done.stdout))
        return done.returncode, OF_WRITER.sub("", text)

    def has_unnamed(self, path):
        """Whether there are variables of types without a name, which netCDF-C 4.9.0 leaves out."""
        done = run([str(Path(self.ours).parent / "ncdump"), "-h", str(path)], env=self.env)
        return "_Anonymous" in done.stdout

    def compare(self, name, source, options, folder, special):
        """What is different between both copies; None for nothing."""
        results = []
        for who, program in (("theirs", self.theirs), ("ours", self.ours)):
            target = folder / f"{who}.nc"
            target.unlink(missing_ok=True)
            done = run([program, *options, str(source), str(target)], env=self.env)
            said = done.stderr.strip().splitlines()
            line = said[0].replace(program, "nccopy") if said else ""
            results.append((done.returncode, line, target))
        (their_code, their_line, theirs), (our_code, our_line, ours) = results
        if their_code < 0:
            return "skip", f"the reference ends with {their_code}"
        if not special and self.has_unnamed(source):
            return "excepted", ""
        if not special and their_code and (our_code or their_line.startswith(READS_LESS)):
            # Of files that others made, the reference reads less, and stumbles elsewhere.
            return "excepted", ""
        if their_code != our_code:
            return "fail", f"exit status {our_code} ({our_line}), the reference {their_code} ({their_line})"
        if their_code:
            if ours.exists():
                return "fail", "leaves something where it fails"
            return ("pass", "") if their_line == our_line else ("fail", f"says {our_line!r}, the reference {their_line!r}")
        # What has no data has what memory had, there and here.
        shown = {"-v": "-v", "-g": "-g"}.get(options[0] if options else "")
        data = [shown, options[1].lstrip("/")] if shown else []
        for how in (["-hs"], data) if special else (data,):
            code, want = self.dump(theirs, *how)
            if code:
                return "skip", "the distribution's ncdump does not read the reference's copy"
            _, got = self.dump(ours, *how)
            if got != want:
                at = next((i for i, (a, b) in enumerate(zip(got.splitlines(), want.splitlines())) if a != b), -1)
                lines = [text.splitlines()[at:at + 1] for text in (got, want)]
                return "fail", f"ncdump {' '.join(how)}: line {at}: {lines[0]} instead of {lines[1]}"
        return "pass", ""

    def case(self, name, source, options, special=True):
        if not self.only.search(name):
            return
        with tempfile.TemporaryDirectory() as folder:
            verdict, why = self.compare(name, source, options, Path(folder), special)
        expected = next((why for word, why in self.exceptions if word.fullmatch(name)), None)
        if verdict == "pass":
            self.counts["passed"] += 1
            # Of a whole folder some may pass.
            if expected and not name.startswith("corpus"):
                print(f"passed  {name}, though listed in exceptions.txt")
        elif verdict == "excepted":
            self.counts["excepted"] += 1
        elif verdict == "skip":
            self.counts["skipped"] += 1
        elif expected:
            self.counts["excepted"] += 1
        else:
            self.counts["failed"] += 1
            print(f"FAILED  {name}: {why}")

    def options(self, folder):
        for label, (kind, cdl) in MADE.items():
            source, text = folder / f"{label}.nc", folder / f"{label}.cdl"
            text.write_text(cdl)
            made = run(["ncgen", "-k", kind, "-o", str(source), str(text)])
            if made.returncode:
                self.counts["failed"] += 1
                print(f"FAILED  making {label}: {made.stderr}")
                continue
            self.fill(source, label)
            lines = OPTIONS.strip("\n").split("\n")
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda line, s=source, n=label: self.case(f"{n} {line}".strip(), s, line.split()), lines))

    def fill(self, source, label):
        """Values for the large variables, which CDL would be long for."""
        script = (
            "import sys, netCDF4, numpy\n"
            "f = netCDF4.Dataset(sys.argv[1], 'a')\n"
            "for n, v in f.variables.items():\n"
            "    shape = [3 if d.isunlimited() else len(d) for d in v.get_dims()]\n"
            "    size = int(numpy.prod(shape)) if shape else 0\n"
            "    if size >= 4000 and v.dtype.kind in 'iuf': v[:] = numpy.arange(size).reshape(shape) % 119\n"
            "f.close()\n")
        python = os.environ.get("ZONDA_PYTHON", str(ROOT / "out" / "venv" / "bin" / "python"))
        if label in ("classic", "nc4", "model"):
            done = run([python, "-c", script, str(source)])
            if done.returncode:
                print(f"note    {label} keeps its fill values: {done.stderr.strip().splitlines()[-1:]}")

    def is_small(self, path):
        """Whether the data are few enough to be copied ten times; files say little of that by their length."""
        zonda = Path(self.ours).parent / "zonda"
        info = run([str(zonda), "info", "--json", str(path)], env=self.env)
        try:
            return sum(var["bytes"] for var in json.loads(info.stdout)["variables"]) < MOST_DATA
        except (ValueError, KeyError):
            return path.stat().st_size < MOST_DATA

    def corpus(self):
        corpus = os.environ.get("ZONDA_CORPUS")
        if not corpus:
            print("skipped the corpus: ZONDA_CORPUS is not set")
            return
        files = sorted(p for p in Path(corpus, "files").rglob("*") if p.is_file())
        files = [p for p in files if self.long or zlib.crc32(p.relative_to(corpus).as_posix().encode()) % SAMPLE == 0]
        files = [p for p in files if self.is_small(p)]
        jobs = [(f"corpus {kind} {path.relative_to(Path(corpus, 'files'))}", path, ["-k", kind])
                for path in files for kind in ("nc3", "nc6", "cdf5", "nc4", "nc7")]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: self.case(*job, special=False), jobs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--part", choices=("options", "corpus"))
    parser.add_argument("--long", action="store_true", help="every file of the corpus")
    args = parser.parse_args()
    tester = Tester(args.only)
    tester.long = args.long or bool(args.only)
    for program in (tester.theirs, tester.ours, "ncgen", "ncdump"):
        if not shutil.which(program):
            print(f"0 passed, 0 failed, 1 skipped: there is no {program}")
            return 1 if program == tester.ours else 0
    with tempfile.TemporaryDirectory() as folder:
        if args.part != "corpus":
            tester.options(Path(folder))
        if args.part != "options":
            tester.corpus()
    print(", ".join(f"{n} {what}" for what, n in tester.counts.items()))
    return 1 if tester.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
