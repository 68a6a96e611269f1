#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Zonda writes, others read and change: the matrix of programs over a family of netCDF-4 files.

    tests/interop/run.py                  a sample of the edits; about two minutes
    tests/interop/run.py --long           every edit of every file by every program
    tests/interop/run.py --only PATTERN   cases whose name matches (a regular expression)
    tests/interop/run.py --parts LIST     of write, read, tools, structure, edit, return
    tests/interop/run.py --quick          without tools, and without changes

Each case of `write.c` is written by the library under test and by the reference (the distribution's
netCDF-C), and everybody must see the same in both files: the reference, the newest netCDF-C (of the
netCDF4 wheel), the library under test, h5py, netCDF4-python, h5netcdf, ncdump, h5dump, and the
reference again after h5repack. structure.py walks the bytes. Then each of them changes a copy of both
files, and both must still hold the same, to the reference and to the library under test; which
changes its files once more, and the reference reads them again.

Where the reference's own file cannot be read, anything that can be is right. What the reference does
wrong is in exceptions.txt, each with its reason.

Without a Python with h5py, netCDF4 and h5netcdf their parts are skipped. Files that fail are kept in
out/interop/failed. INTEROP_SELF=1 allows the library under test to be the reference or the newest
netCDF-C, to try the tests themselves. tests/rig/places.py has the settings.
"""
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

SOURCES = ["write", "types", "attributes", "shapes", "renames", "storage", "lives"]
# Much time for little: only some of the programs, unless --long.
HEAVY = {"variables-1000", "much-used", "groups-300", "large", "several-unlimited", "att-large"}
# Data that h5dump would print for minutes.
NO_DATA = {"several-unlimited", "large", "only-dims", "many-chunks"}
# These say for each variable how it is to be stored. Elsewhere, the shape of chunks is a library's choice.
CHUNKS_SAID = {"layouts", "pipelines", "plugins", "parts", "order-of-chunks", "many-chunks", "large", "incompressible", "variables-1000"}
# The reference keeps no order in memory, and attributes for which none was asked have none.
ANY_ORDER = {"in-memory", "att-no-order"}
# What a function says that is for later: here, changing structures that the library does not write.
NOT_BUILT = " -> -128"
EDITS = ["append", "overwrite", "define", "attributes"]
SECONDS = 300


def run(command, env):
    """(exit code or "timeout", output)."""
    try:
        done = rig.run(command, env, text=False, seconds=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    return done.returncode, done.stdout.decode(errors="backslashreplace")


def is_refusal(line):
    return "NetCDF: HDF error" in line or line.startswith("Location: file") or "!" in line and bool(re.search(r"(^|\s)!", line)) or line.endswith("Error")


def differs(want, got, shaped=False):
    """The first difference that counts, or None. Where the reference's file gives an error, the
    other may do better."""
    want, got = unshaped(want, shaped), unshaped(got, shaped)
    if want == got:
        return None
    a, b = want.splitlines(), got.splitlines()
    # One line that could not be read stands for all that is below it.
    if any(is_refusal(x) for x in a):
        good = {x for x in a if not is_refusal(x)}
        missing = [x for x in a if x in good and x not in set(b)]
        if not missing and not [x for x in b if is_refusal(x) and x not in a]:
            return None
        return "%.150s is not there" % missing[0] if missing else "refused: %.150s" % [x for x in b if is_refusal(x)][0]
    for x, y in zip(a, b):
        if x != y:
            at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            at = max(0, at - 60)
            return "%.160r, expected %.160r" % (y[at:], x[at:])
    return "%d lines, expected %d: %.150r" % (len(b), len(a), (a + b)[min(len(a), len(b)) - 1])


def unshaped(text, shaped):
    """What any reader said, without what is a library's choice: the shapes of chunks, if they are."""
    # The first two parameters of blosc are what its plugin puts there.
    text = re.sub(r"(32001[:,]|\(32001, \()\d+, ?\d+,", r"\1", text)
    if shaped:
        return text
    text = re.sub(r"( storage 0)( \d+)+", r"\1", text)                             # digest
    text = re.sub(r"(?m)^(  storage \()[\[(][\d, ]*[\])]", r"\1chunks", text)      # netCDF4, h5netcdf
    text = re.sub(r"chunks \([\d, ]*\)", "chunks", text)                          # h5py
    return re.sub(r"_ChunkSizes = [\d, ]+", "_ChunkSizes ", text)                  # ncdump


def by_h5py(text):
    """What h5py said, without what netCDF leaves to its writer: the length that a dimension without a
    variable had at first, ids that follow from the order anyway, and whether the order of attributes is
    kept, which netCDF-C does not do in what it adds to a file that was opened again."""
    text = re.sub(r"(?m)^  @(NAME .*This is a netCDF dimension but not a netCDF variable|_Netcdf4Dimid ).*\n?", "", text)
    return re.sub(r"(?m) order \d( \d)?$", "", text)


def loose(text):
    """A digest without the order of what is in a group or belongs to a variable."""
    blocks, group = [], ""
    for line in text.splitlines():
        if line.startswith("group"):
            group = line
        if line.startswith("  ") and blocks:
            blocks[-1][1].append(line)
        else:
            blocks.append((group + "\n" + line, []))
    return "\n".join("\n".join([head] + sorted(rest)) for head, rest in sorted(blocks))


def any_attributes(text):
    """A digest without the order of attributes: netCDF-C keeps none in what it adds to a file that was
    opened again."""
    out, some = [], []
    for line in text.splitlines():
        if re.match(r" +att ", line):
            some.append(line)
        else:
            out, some = out + sorted(some) + [line], []
    return "\n".join(out + sorted(some))


def settled(text):
    """A digest of a file that was never closed, as it is after it was: byte order and the parameters
    of filters are known then."""
    text = re.sub(r" endian \d", "", text)
    text = re.sub(r" filter (\d+)(:[0-9,]+)?", r" filter \1", text)
    return loose(re.sub(r" fill 256:", " fill 1:", text))


class Results(rig.Counts):
    def __init__(self, exceptions):
        super().__init__()
        self.allowed = self.not_built = 0
        self.exceptions = exceptions

    def check(self, case, what, why, keep=()):
        """Counts a check of a case; `why` says what is wrong with it, if anything."""
        for c, w, _ in self.exceptions:
            if fnmatch.fnmatchcase(case, c) and fnmatch.fnmatchcase(what, w):
                self.allowed += bool(why)
                return not why
        for f in keep if why else ():
            if os.path.exists(f):
                target = rig.out("interop", "failed", re.sub(r"\W+", "_", what))
                shutil.copy(f, target / ("%s-%s" % (Path(f).parent.name, Path(f).name)))
        return super().check("%s, %s" % (case, what), why)


def read_exceptions(itself):
    found = []
    for line in open(HERE / "exceptions.txt"):
        if line.strip() and not line.startswith("#"):
            who, case, what, why = (x.strip() for x in line.split("|", 3))
            if who == "all" or itself:
                found.append((case, what, why))
    return found


class Programs:
    """The libraries and programs there are."""

    def __init__(self, scratch):
        self.base = rig.environment(TZ="UTC", PYTHONDONTWRITEBYTECODE="1", HDF5_USE_FILE_LOCKING="FALSE")
        self.is_reference = os.environ.get("INTEROP_SELF", "") == "1"
        rig.two_libraries(may_be_one=self.is_reference)
        self.ours, self.reference = rig.LIBDIR, rig.reference()
        self.python = rig.python("h5py", "hdf5plugin", "netCDF4", "h5netcdf")
        self.newest = None
        if self.python:
            self.base["HDF5_PLUGIN_PATH"] = rig.must([self.python, "-c", "import hdf5plugin; print(hdf5plugin.PLUGINS_PATH)"]).strip()
            self.newest = rig.newest(scratch / "newest", self.python)

    def env(self, library):
        return {**self.base, "LD_LIBRARY_PATH": str(library)}

    def build(self, folder):
        for program, sources in (("write", SOURCES), ("digest", ["digest"]), ("edit", ["edit"])):
            rig.compile_c(folder / program, *(HERE / (s + ".c") for s in sources), link="reference", flags=["-Wno-unused-function"], libraries=["-lm"])


class Matrix:
    def __init__(self, options, programs, results, scratch):
        self.o, self.p, self.r, self.top = options, programs, results, scratch
        self.bin = scratch / "bin"
        self.sides = {"reference": programs.reference, "ours": programs.ours}
        for d in ("bin", "reference", "ours"):
            (scratch / d).mkdir()
        programs.build(self.bin)
        names = run([self.bin / "write", "list"], programs.env(programs.reference))[1].split()
        self.cases = [c for c in names if options.wants(c)]
        if not programs.python:
            self.cases = [c for c in self.cases if c != "plugins"]
        self.written = {}
        self.want = {}      # case -> digest of the reference's file by the reference

    def file(self, side, case):
        return self.top / side / (case + ".nc")

    def digest(self, library, path):
        code, text = run([self.bin / "digest", path], self.p.env(library))
        if not isinstance(code, int) or code < 0 or code > 1:
            text += "!crash %s\n" % code
        return text

    def each(self, function, cases):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(function, cases))

    # ---- Writing

    def write(self, case):
        said = {}
        for side, library in self.sides.items():
            code, text = run([self.bin / "write", case, self.top / side], self.p.env(library))
            opened = self.top / side / (case + ".open")
            said[side] = code, text, opened.read_text(errors="backslashreplace") if opened.exists() else ""
        want, got = said["reference"], said["ours"]
        self.written[case] = got[0] == 0
        why = None
        if got[0] != 0:
            why = "exit %s: %s" % (got[0], got[1].strip().splitlines()[-1:] or "")
        self.r.check(case, "write", why)
        if got[0] or want[0]:
            if want[0] == 0:
                self.want[case] = self.digest(self.p.reference, self.file("reference", case))
            return
        self.r.check(case, "transcript", differs(want[1], got[1]))
        if self.expected(case) == case:
            masked = [loose(x[2].replace(" fill 256:", " fill 1:")) for x in (want, got)]
            self.r.check(case, "open handle", differs(*masked, case in CHUNKS_SAID))
        self.want[case] = self.digest(self.p.reference, self.file("reference", case))
        seen = self.digest(self.p.ours, self.file("ours", case))
        if got[2]:
            self.r.check(case, "open handle and file", differs(settled(got[2]), settled(seen)), [self.file("ours", case)])

    def expected(self, case):
        """The case whose file by the reference says what there must be."""
        return re.sub(r"^(rename-.*)\..*", r"\1.expected", case)

    def order_of(self, case):
        """What to compare digests by: the order of things is not what some files are about."""
        if case.startswith("rename-") or case in ANY_ORDER:
            return loose
        return lambda text: text

    # ---- Reading

    def read(self, case):
        if not self.written.get(case):
            return
        twin = self.expected(case)
        same = self.order_of(case)
        opened = self.top / "ours" / (case + ".open")
        if twin != case and opened.exists():
            text = opened.read_text(errors="backslashreplace")
            self.r.check(case, "open handle", differs(settled(self.want[twin]), settled(text)))
        for name, library in (("reference", self.p.reference), ("newest", self.p.newest), ("ours", self.p.ours)):
            if library:
                theirs = self.digest(library, self.file("reference", twin)) if name != "reference" else self.want[twin]
                own = self.digest(library, self.file("ours", case))
                self.r.check(case, "read by " + name, differs(same(theirs), same(own), case in CHUNKS_SAID), [self.file("ours", case)])
                if name == "ours":
                    self.r.check(case, "values", differs(same(self.want[twin]), same(own), case in CHUNKS_SAID), [self.file("ours", case)])

    def by_python(self, reader):
        """{file: text} of a library's readers, which may end their process."""
        quick = not self.o.long
        cases = [c for c in self.cases if self.written.get(c) and self.expected(c) in self.want]
        if quick:
            cases = [c for c in cases if not (reader == "h5netcdf" and c in HEAVY or c.endswith((".define", ".reopen")))]
        files = {str(self.file("ours", c)) for c in cases} | {str(self.file("reference", self.expected(c))) for c in cases}
        return cases, self.batch("readers.py", reader, sorted(files))

    def batch(self, script, kind, files):
        found, left = {}, list(files)
        while left:
            try:
                r = subprocess.run([self.p.python, HERE / script, kind, *left], env=self.p.base, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS * 10)
                code, out = r.returncode, r.stdout
            except subprocess.TimeoutExpired as e:
                code, out = "timeout", e.stdout or b""
            for line in out.decode(errors="backslashreplace").splitlines():
                if line.endswith("]"):
                    path, text = json.loads(line)
                    found[path] = text
            left = [x for x in left if x not in found]
            if left:
                found[left[0]] = "!crash %s" % code
                left = left[1:]
        return found

    def read_by_python(self, reader):
        cases, texts = self.by_python(reader)
        for case in cases:
            twin = self.expected(case)
            want, got = texts[str(self.file("reference", twin))], texts[str(self.file("ours", case))]
            if reader == "h5py":
                want, got = by_h5py(want), by_h5py(got)
            if twin != case or case in ANY_ORDER or reader == "h5netcdf":
                want, got = loose_python(want), loose_python(got)
            self.r.check(case, "read by " + reader, differs(want, got, case in CHUNKS_SAID), [self.file("ours", case)])

    # ---- Tools

    def tools(self, case):
        if not self.written.get(case) or self.expected(case) != case:
            return
        sides = {s: self.file(s, case) for s in self.sides}
        said = {}
        for s, path in sides.items():
            code, text = run(["ncdump", "-s", "-n", "same", path], self.p.env(self.p.reference))
            text = re.sub(r"_NCProperties = .*", "_NCProperties", text) + ("" if code == 0 else "!exit %s\n" % code)
            said[s] = "\n".join(sorted(text.splitlines())) if case in ANY_ORDER else text
        self.r.check(case, "ncdump", differs(said["reference"], said["ours"], case in CHUNKS_SAID), [sides["ours"]])
        for s, path in sides.items():
            code, text = run(["h5dump", "-A" if case in NO_DATA else "-y", path], self.p.base)
            said[s] = "" if code == 0 else "!exit %s\n" % code
            if code == 0:
                said[s] = plain_dump(text)
        self.r.check(case, "h5dump", differs(said["reference"], said["ours"]), [sides["ours"]])
        for s, path in sides.items():
            packed = self.top / s / (case + ".packed")
            code, text = run(["h5repack", path, packed], self.p.base)
            said[s] = self.digest(self.p.reference, packed) if code == 0 else "!exit %s\n" % code
            # What is filled with text points nowhere afterwards.
            said[s] = loose(re.sub(r'(var "[^\n]*" string .*) fill -?\d+:.*', r"\1", said[s]))
            if packed.exists():
                packed.unlink()
        self.r.check(case, "h5repack", differs(said["reference"], said["ours"]), [sides["ours"]])

    def structure(self, path, case, what, strict):
        flags = (["--exact"] if strict else []) + (["--sectors"] if strict and not self.p.is_reference else [])
        code, text = run([sys.executable, HERE / "structure.py", *flags, path], self.p.base)
        lines = [x for x in text.splitlines() if x.startswith("FAIL")] or [text[-200:]]
        self.r.check(case, what, None if code == 0 else lines[0].replace(str(path), "file"), [path])

    def structures(self, case):
        if self.written.get(case):
            self.structure(self.file("ours", case), case, "structure", True)

    # ---- Changes by others, and what comes after

    def editors(self):
        found = [("reference", k) for k in EDITS + ["rename"]]
        if self.p.newest:
            found += [("newest", k) for k in EDITS + ["rename"]]
        if self.p.python:
            found += [("h5py", "python"), ("netcdf4", "python"), ("h5netcdf", "python")]
        return found

    def edit(self):
        cases = [c for c in self.cases if self.written.get(c) and c in self.want and self.expected(c) == c]
        cases += [c for c in self.cases if c.startswith("rename-") and c.endswith(".sync") and self.written.get(c) and c in self.want]
        editors, jobs = self.editors(), []
        for i, case in enumerate(cases):
            if self.o.long:
                jobs += [(case, *e) for e in editors]
            elif case not in HEAVY:
                # Each case meets two programs, and each program every sixth case or so.
                jobs += [(case, *editors[(2 * i + k * (len(editors) // 2)) % len(editors)]) for k in range(2)]
        copies = self.top / "edited"
        for case, who, kind in jobs:
            for side in self.sides:
                folder = copies / who / kind / side
                folder.mkdir(parents=True, exist_ok=True)
                source = self.file(side, self.expected(case) if side == "reference" else case)
                shutil.copy(source, folder / (case + ".nc"))
        texts = {}
        for who in ("h5py", "netcdf4", "h5netcdf"):
            files = [str(copies / who / "python" / s / (c + ".nc")) for c, w, _ in jobs if w == who for s in self.sides]
            if files:
                texts.update(self.batch("editors.py", who, files))
        self.each(lambda job: self.edited(copies, texts, *job), jobs)

    def edited(self, copies, texts, case, who, kind):
        what = "edit by %s, %s" % (who, kind)
        paths = {s: copies / who / kind / s / (case + ".nc") for s in self.sides}
        same = loose if kind == "rename" or case in ANY_ORDER else any_attributes
        said = {}
        for s, path in paths.items():
            if kind == "python":
                said[s] = texts[str(path)]
                continue
            library = self.p.reference if who == "reference" else self.p.newest
            code, said[s] = run([self.bin / "edit", "rename-safe" if kind == "rename" else kind, path], self.p.env(library))
            if code:
                said[s] += "!exit %s\n" % code
        if not self.r.check(case, what, differs(said["reference"], said["ours"]), [paths["ours"]]):
            return
        if any(is_refusal(x) for x in said["reference"].splitlines()):
            # What the reference made of its own file is no measure.
            return
        want = self.digest(self.p.reference, paths["reference"])
        got = self.digest(self.p.reference, paths["ours"])
        self.r.check(case, what + ", then read by reference", differs(same(want), same(got)), [paths["ours"]])
        own = self.digest(self.p.ours, paths["ours"])
        self.r.check(case, what + ", then read by ours", differs(same(want), same(own)), [paths["ours"]])
        if "return" in self.o.chosen():
            self.come_back(case, what, who, kind, paths, same)

    def come_back(self, case, what, who, kind, paths, same):
        """The library under test changes what others have changed; so does the reference."""
        second = EDITS[(len(case) + len(who) + len(kind)) % len(EDITS)]
        what += ", then %s by ours" % second
        code, text = run([self.bin / "edit", second, paths["reference"]], self.p.env(self.p.reference))
        if code or text:
            return
        code, text = run([self.bin / "edit", second, paths["ours"]], self.p.env(self.p.ours))
        if NOT_BUILT in text:
            self.r.not_built += 1
            return
        if not self.r.check(case, what, "exit %s: %.200s" % (code, text) if code or text else None, [paths["ours"]]):
            return
        want = self.digest(self.p.reference, paths["reference"])
        got = self.digest(self.p.reference, paths["ours"])
        self.r.check(case, what + ", then read by reference", differs(same(want), same(got)), [paths["ours"]])
        self.structure(paths["ours"], case, what + ", structure", False)

    def go(self):
        parts = self.o.chosen()
        self.each(self.write, self.cases)
        if "read" in parts:
            # A case without a twin of its own kind measures nothing.
            cases = [c for c in self.cases if self.expected(c) in self.want]
            self.each(self.read, cases)
            if self.p.python:
                self.each(self.read_by_python, ("h5py", "netcdf4", "h5netcdf"))
            else:
                self.r.skip("h5py, netCDF4-python, h5netcdf, the newest netCDF-C", "no Python that has them", 4)
        if "tools" in parts:
            missing = rig.missing("ncdump", "h5dump", "h5repack")
            if missing:
                self.r.skip(" ".join(missing), "not installed", len(missing))
            else:
                self.each(self.tools, [c for c in self.cases if c in self.want and (self.o.long or c not in HEAVY)])
        if "structure" in parts:
            self.each(self.structures, self.cases)
        if "edit" in parts:
            self.edit()


def loose_python(text):
    """As `loose`, for what the Python readers say."""
    blocks = []
    for line in text.splitlines():
        if line.startswith("  ") and blocks:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    # Where a thing lies in the file, and so how it was made, is nothing that renaming keeps.
    drop = re.compile(r"@(_Netcdf4Dimid|_Netcdf4Coordinates|NAME|CLASS|REFERENCE_LIST|DIMENSION_LIST)|^  (scale|members)")
    return "\n".join("\n".join(b[:1] + sorted(x for x in b[1:] if not drop.search(x))) for b in sorted(blocks))


def plain_dump(text):
    """h5dump without its file's name, addresses, and what by_h5py leaves out as well; references in
    the order of names."""
    text = re.sub(r'^HDF5 ".*"', "HDF5", text)
    text = re.sub(r"(DATASET|GROUP|DATATYPE) \d+ ", r"\1 ", text)
    out, lines = [], iter(text.splitlines())
    for line in lines:
        m = re.match(r'(\s*)ATTRIBUTE "(_NCProperties|_Netcdf4Dimid|NAME|REFERENCE_LIST)" \{$', line)
        if not m:
            out.append(line)
            continue
        block = [line]
        for line in lines:
            block.append(line)
            if line == m[1] + "}":
                break
        whole = "\n".join(block)
        if m[2] == "REFERENCE_LIST":
            entries = re.findall(r'DATASET\s+"(.*)",\s+(\d+)', whole)
            out += ["%sREFERENCE_LIST" % m[1]] + ["%s %s" % x for x in sorted(entries)]
        elif m[2] == "NAME" and "This is a netCDF dimension but" not in whole:
            out += block
    return "\n".join(out)


def main():
    marks = {part: rig.QUICK if part in ("write", "read", "structure") else rig.FULL for part in ("write", "read", "tools", "structure", "edit", "return")}
    parser = rig.parser(__doc__, parts=marks)
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder, and say where it is")
    options = rig.arguments(parser)
    rig.out("interop", "failed", anew=True)
    if not os.path.exists("/usr/include/netcdf.h"):
        raise rig.Skip("no header of the distribution")
    with rig.scratch(in_memory=True) as scratch:
        if options.keep:
            rig.keep(scratch)
        programs = Programs(scratch)
        results = Results(read_exceptions(programs.is_reference))
        matrix = Matrix(options, programs, results, scratch)
        matrix.go()
    print("%d cases; %d checks differ as exceptions.txt says; %d files of others could not be changed yet"
          % (len(matrix.cases), results.allowed, results.not_built))
    return results


if __name__ == "__main__":
    rig.main(main)
