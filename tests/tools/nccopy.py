#!/usr/bin/env python3
"""`nccopy` of Zonda beside the distribution's: the same options on the same files.

    nccopy.py                   options on made files; each kind of copy of each file of the corpus
    nccopy.py --only REGEX      by the name of the case
    nccopy.py --part options|corpus
    nccopy.py --quick           made files of two kinds
    nccopy.py --long            every file of the corpus, not a sample

    NCCOPY         the distribution's (/usr/bin/nccopy)
tests/rig/places.py has the other settings.

Exit statuses have to be the same, the first line that is said of a failure, and of copies what the distribution's ncdump
says: all values, and of made files also chunks, filters and fill modes (`-s`). What is meant to be otherwise is
in exceptions.txt beside this program: a word of the case, `|`, why.
"""

import json
import os
import re
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

SECONDS = 20
# One of so many files of the corpus is copied, unless all are asked for.
SAMPLE = 30
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


def run(command):
    try:
        return rig.run(command, seconds=SECONDS, preexec_fn=rig.bounds(file=MOST_FILE))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -99, "", "no end")


# What the reference says of HDF5 files that are no netCDF-4.
READS_LESS = ("NetCDF: HDF error", "NetCDF: Filter error", "NetCDF: Name contains", "NetCDF: Bad chunk sizes",
              "NetCDF: Can't open HDF5 attribute", "NetCDF: Not a valid data type")


class Tester:
    def __init__(self, options):
        self.theirs = os.environ.get("NCCOPY") or rig.tool("nccopy")
        self.ours = str(rig.BIN / "nccopy")
        self.asked, self.counts, self.n_excepted = options, rig.Counts(), 0
        self.exceptions = []
        for line in (HERE / "exceptions.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                word, _, why = line.rpartition(" | ")
                self.exceptions.append((re.compile(word.strip()), why.strip()))

    def dump(self, path, *options):
        done = run([rig.tool("ncdump"), "-n", "same", *options, str(path)])
        text = done.stdout if len(done.stdout) < MOST_BYTES else str(hash(done.stdout))
        return done.returncode, OF_WRITER.sub("", text)

    def has_unnamed(self, path):
        """Whether there are variables of types without a name, which netCDF-C 4.9.0 leaves out."""
        done = run([rig.BIN / "ncdump", "-h", path])
        return "_Anonymous" in done.stdout

    def compare(self, name, source, options, folder, special):
        """What is different between both copies; None for nothing."""
        results = []
        for who, program in (("theirs", self.theirs), ("ours", self.ours)):
            target = folder / f"{who}.nc"
            target.unlink(missing_ok=True)
            done = run([program, *options, str(source), str(target)])
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
        if not self.asked.wants(name):
            return
        with rig.scratch() as folder:
            verdict, why = self.compare(name, source, options, folder, special)
        expected = next((why for word, why in self.exceptions if word.fullmatch(name)), None)
        if verdict == "pass":
            self.counts.passes()
            # Of a whole folder some may pass.
            if expected and not name.startswith("corpus"):
                print(f"passed  {name}, though listed in exceptions.txt")
        elif verdict == "excepted" or verdict == "fail" and expected:
            self.n_excepted += 1
        elif verdict == "skip":
            self.counts.skip(name, why)
        else:
            self.counts.fail(name, why)

    def options(self, folder):
        for label, (kind, cdl) in list(MADE.items())[:self.asked.by(2, None, None)]:
            source, text = folder / f"{label}.nc", folder / f"{label}.cdl"
            text.write_text(cdl)
            made = run([rig.tool("ncgen"), "-k", kind, "-o", source, text])
            if made.returncode:
                self.counts.fail(f"making {label}", made.stderr)
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
        python = rig.python("netCDF4", "numpy")
        if label in ("classic", "nc4", "model"):
            done = run([python, "-c", script, str(source)]) if python else None
            if not done or done.returncode:
                print(f"note    {label} keeps its fill values: {done.stderr.strip().splitlines()[-1:] if done else 'no Python with netCDF4'}")

    def is_small(self, path):
        """Whether the data are few enough to be copied ten times; files say little of that by their length."""
        info = run([rig.ZONDA, "info", "--json", path])
        try:
            return sum(var["bytes"] for var in json.loads(info.stdout)["variables"]) < MOST_DATA
        except (ValueError, KeyError):
            return path.stat().st_size < MOST_DATA

    def corpus(self):
        corpus = rig.CORPUS
        if not corpus:
            self.counts.skip("the corpus", "ZONDA_CORPUS is not set")
            return
        files = sorted(p for p in Path(corpus, "files").rglob("*") if p.is_file())
        files = [p for p in files if self.asked.long or self.asked.only or zlib.crc32(p.relative_to(corpus).as_posix().encode()) % SAMPLE == 0]
        files = [p for p in files if self.is_small(p)]
        jobs = [(f"corpus {kind} {path.relative_to(Path(corpus, 'files'))}", path, ["-k", kind])
                for path in files for kind in ("nc3", "nc6", "cdf5", "nc4", "nc7")]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: self.case(*job, special=False), jobs))


def main():
    # One part may be named by --part, too.
    parser = rig.parser(__doc__, parts={"options": rig.QUICK, "corpus": rig.FULL})
    parser.add_argument("--part", dest="parts", type=lambda part: [part])
    options = rig.arguments(parser)
    tester = Tester(options)
    if not os.path.exists(tester.ours):
        raise rig.Setup(f"no {tester.ours}: build it first")
    if not tester.theirs or rig.missing("ncgen", "ncdump"):
        raise rig.Skip("there is no nccopy, ncgen or ncdump of the distribution")
    with rig.scratch() as folder:
        if "options" in options.chosen():
            tester.options(folder)
        if "corpus" in options.chosen():
            tester.corpus()
    print(f"{tester.n_excepted} differ as exceptions.txt says, or where the reference reads less")
    return tester.counts


if __name__ == "__main__":
    rig.main(main)
