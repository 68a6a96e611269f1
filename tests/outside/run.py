#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Data in other files: what external data, virtual datasets and external links read, for every way to name
the other file, and for every `ZONDA_EXTERNAL`.

    tests/outside/run.py                  all
    tests/outside/run.py --only PATTERN   cases whose name matches (a regular expression)
    tests/outside/run.py --parts LIST     of table, symbolic, prefixes, parts, changes, tools, secure; --quick leaves out the table

h5py makes the files (make.py); without it all is skipped. The library under test reads them through the C
interface (look.py), and so does the distribution's netCDF-C, where there is one: what Zonda reads must be
what netCDF-C and h5py read, and what it does not read must be an error that names file, object and source.
Unreadable files and set-user-id programs are looked at by another user, so only if root runs this.

tests/rig/places.py has the settings.
"""
import json
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import LIBRARY, environment  # noqa: E402
from rig import reference_library as reference  # noqa: E402

PYTHON = rig.python("h5py")
N, FILL = 4, -9.0
EPERM, EACCES, NOTVAR, HDF = 1, 13, -49, -101
BASES = {"in": 10.0, "sub": 20.0, "out": 30.0, "twin": 40.0, "elsewhere": 50.0}
NOBODY = 65534
LIMIT = 120


def values(base):
    return [BASES[base] + i for i in range(N)]


# How the source is named: the name, what comes of it by ZONDA_EXTERNAL (not set, the folder, "/"), for links
# and virtual datasets and then, if it is another, for external data. `@` is the ending of sources.
# "out" and the like are the source that is read.
REFUSED, MISSING, KIND, DENIED = "refused", "missing", "kind", "denied"
PLACES = {
    "relative": ("src@", ["in"] * 3),
    "relative in a folder": ("sub/src@", ["sub"] * 3),
    "absolute inside": ("{home}/src@", ["in"] * 3),
    "absolute outside": ("{out}/src@", [REFUSED, "out", "out"]),
    "absolute beside, a name that begins alike": ("{twin}/src@", [REFUSED, REFUSED, "twin"]),
    ".. out": ("../out/src@", [REFUSED, "out", "out"]),
    ".. that comes back": ("../home/src@", ["in"] * 3),
    "link inside": ("to-in@", ["in"] * 3),
    "link out": ("to-out@", [REFUSED, "out", "out"]),
    "folder link out": ("folder-out/src@", [REFUSED, "out", "out"]),
    "hard link to outside": ("hard@", ["out"] * 3),
    "dangling link": ("dangling", [MISSING] * 3),
    "link to itself": ("self", [MISSING] * 3),
    "percent signs": ("100%b%@", ["in"] * 3),
    "missing": ("nope@", [MISSING] * 3),
    "missing outside": ("{out}/nope@", [MISSING] * 3),
    "missing in what is no folder": ("src@/nope", [MISSING] * 3),
    # Files that moved: only libhdf5's links and virtual datasets keep the last part of a name.
    "moved": ("/nonexistent/src@", ["in"] * 3, [MISSING] * 3),
    "FIFO": ("fifo", [KIND] * 3),
    "FIFO outside": ("{out}/fifo", [KIND] * 3),
    "link to a FIFO": ("to-fifo", [KIND] * 3),
    "device": ("/dev/zero", [KIND] * 3),
    "link to a device": ("to-zero", [KIND] * 3),
    "folder": ("sub", [KIND] * 3),
    "unreadable": ("secret@", [DENIED] * 3),
    "in an unreadable folder": ("closed/src@", [DENIED] * 3),
}
ENDINGS = {"external": ".bin", "virtual": ".h5", "link": ".h5"}


class Test(rig.Counts):
    """Counts what was asked for."""

    def __init__(self, options):
        super().__init__()
        self.options = options

    def check(self, name, wrong):
        if self.options.wants(name):
            super().check(name, wrong)


def other_user():
    """Another user who can run what this needs: what nobody may read, root reads."""
    if os.geteuid():
        return None
    try:
        seen = rig.run([PYTHON, "-c", "import sys; [open(path).close() for path in sys.argv[1:]]", HERE / "look.py", LIBRARY], user=NOBODY)
    except OSError:
        return None
    return None if seen.returncode else NOBODY


def look(library, files, cwd, user=None, **env):
    """What look.py says of each file."""
    said = rig.must([PYTHON, HERE / "look.py", library, *files], environment(**env), cwd=cwd, user=user, seconds=LIMIT)
    return [json.loads(line) for line in said.splitlines()]


def by_h5py(files, cwd):
    text = """
import h5py, json, sys
for path in sys.argv[1:]:
    try:
        with h5py.File(path) as f: print(json.dumps(f['v'][:].tolist()))
    except Exception as e: print(json.dumps(str(e)))
"""
    return [json.loads(line) for line in rig.must([PYTHON, "-c", text, *files], cwd=cwd, seconds=LIMIT).splitlines()]


def judge(kind, path, name, expected, got):
    """What is wrong with what the library said, if anything is."""
    if got["open"] or got.get("inq"):
        return "opening or inquiries fail: %r" % got
    if got["own"] != [1.0, 2.0] or got["close"]:
        return "what else the group has does not read: %r" % got
    if kind == "link" and expected not in BASES:
        if got["varid"] != NOTVAR:
            return "a link that leads nowhere is a variable: %r" % got
        told = got["left out"]
        what = "external link to"
        if '"%s"' % name not in got["why"]:
            return "that the variable is not there does not say why: %r" % got["why"]
    elif expected in BASES:
        if got["varid"] or got["get"] or got["values"] != values(expected) or any(got["ones"]):
            return "expected %r, got %r" % (values(expected), got)
        return "" if not got["left out"] else "told of %r" % got["left out"]
    else:
        code = {REFUSED: EPERM, KIND: EPERM, DENIED: EACCES, MISSING: HDF}[expected]
        if expected == MISSING and kind == "virtual":
            ok = not got["get"] and got["values"] == [FILL] * N
            return "" if ok else "missing is not fill: %r" % got
        if got["varid"] or got["get"] != code or set(got["ones"]) != {code}:
            return "expected code %d of all gets, got %r" % (code, got)
        if got["far"] != -40:
            return "coordinates are checked after data: %r" % got["far"]
        told = got["error"]
        what = {"external": "external data in", "virtual": "virtual dataset with the source"}[kind]
    # File, object, source, and what to do.
    needs = [str(path), "/v", what, '"%s"' % name]
    needs += {REFUSED: ["refused", "ZONDA_EXTERNAL"], KIND: ["refused"], DENIED: ["Permission denied"],
              MISSING: ["no such file"]}[expected]
    lacks = [need for need in needs if need not in told]
    return "%r does not say %r" % (told, lacks) if lacks else ""


class Bed:
    """The folders and files."""

    def __init__(self, top):
        self.top = Path(top)
        os.chmod(top, 0o755)
        self.home, self.out, self.twin = self.top / "home", self.top / "out", self.top / "home-too"
        self.linked = self.top / "linked"
        for folder in (self.home / "sub", self.home / "closed", self.out, self.twin, self.linked):
            folder.mkdir(parents=True)
        self.names = {"home": self.home, "out": self.out, "twin": self.twin}
        self.cases = []
        self.sources = [(self.home / "src", "in"), (self.home / "sub/src", "sub"), (self.home / "sub/only", "sub"),
                        (self.out / "src", "out"), (self.out / "only-out", "out"), (self.twin / "src", "twin"),
                        (self.home / "secret", "in"), (self.home / "closed/src", "in"),
                        (self.linked / "named", "elsewhere"), (self.out / "n0", "out"), (self.home / "n0", "in"),
                        (self.home / "n1", "sub"), (self.home / "100%b%", "in")]

    def case(self, path, kind, name):
        self.cases.append((str(path), kind, name))
        return Path(path)

    def make(self):
        sources = [(str(path), BASES[base]) for path, base in self.sources]
        rig.must([PYTHON, HERE / "make.py", self.top, json.dumps({"sources": sources, "cases": self.cases})], seconds=LIMIT)
        for end in (".h5", ".bin"):
            (self.home / ("to-in" + end)).symlink_to(self.home / ("src" + end))
            (self.home / ("to-out" + end)).symlink_to(self.out / ("src" + end))
            os.link(self.out / ("src" + end), self.home / ("hard" + end))
            os.chmod(self.home / ("secret" + end), 0)
        (self.home / "folder-out").symlink_to(self.out)
        (self.home / "dangling").symlink_to("nowhere")
        (self.home / "self").symlink_to("self")
        os.mkfifo(self.home / "fifo")
        os.mkfifo(self.out / "fifo")
        (self.home / "to-fifo").symlink_to("fifo")
        (self.home / "to-zero").symlink_to("/dev/zero")
        (self.home / "junk.h5").write_bytes(b"no HDF5 file" * 100)
        os.chmod(self.home / "closed", 0)


def table(test, bed, files, user):
    """Every way to name a source, for each ZONDA_EXTERNAL."""
    zonda = LIBRARY
    paths = [path for path, *_ in files]
    for setting, allowed in enumerate((None, bed.out, "/")):
        # From another folder and from that of the files.
        for cwd in ("/", bed.home):
            found = look(zonda, paths, cwd, user, ZONDA_EXTERNAL=allowed)
            for (path, kind, place, name, expected), got in zip(files, found):
                label = "%s, %s, ZONDA_EXTERNAL=%s, in %s" % (kind, place, allowed, cwd)
                test.check(label, judge(kind, path, name, expected[setting], got))
    # What is read where all is allowed is what others read; FIFOs hang them.
    others = [it for it in files if "FIFO" not in it[2]]
    paths = [path for path, *_ in others]
    theirs = look(reference(), paths, bed.home, user) if reference() else [None] * len(others)
    h5py = by_h5py(paths, bed.home)
    for (path, kind, place, name, expected), netcdf, other in zip(others, theirs, h5py):
        wanted = values(expected[2]) if expected[2] in BASES else None
        if netcdf is not None:
            got = netcdf["values"] if not netcdf["open"] and not netcdf.get("get") else None
            if wanted is None and kind == "virtual":
                # It reads fill values for whatever it cannot open.
                wanted_of_netcdf = [FILL] * N
            elif kind == "external" and expected[2] == KIND and "device" in place:
                wanted_of_netcdf = [0.0] * N
            else:
                wanted_of_netcdf = wanted
            wrong = "" if got == wanted_of_netcdf else "expected %r, netCDF-C has %r" % (wanted_of_netcdf, netcdf)
            test.check("netCDF-C: %s, %s" % (kind, place), wrong)
        if wanted is not None:
            test.check("h5py: %s, %s" % (kind, place), "" if other == wanted else "%r, not %r" % (other, wanted))


def symbolic(test, bed, files):
    """The file itself opened by way of a symbolic link in another folder."""
    zonda = LIBRARY
    # A name that is in the folder of the link, and one that is in the folder of the file.
    for kind, end in ENDINGS.items():
        for name, expected in (("named", "elsewhere"), ("src", "in")):
            path = bed.linked / ("%s-%s.h5" % (kind, name))
            path.symlink_to(files[kind, name])
            got = look(zonda, [path], "/")[0]
            test.check("by a link: %s, %s" % (kind, name), judge(kind, path, name + end, expected, got))
            if reference() and kind != "external":
                theirs = look(reference(), [path], "/")[0]
                same = theirs.get("values") == values(expected)
                test.check("by a link, netCDF-C: %s, %s" % (kind, name), "" if same else repr(theirs))


def prefixes(test, bed, files):
    """The variables of libhdf5, inside of what is allowed."""
    zonda = LIBRARY
    variables = {"external": "HDF5_EXTFILE_PREFIX", "virtual": "HDF5_VDS_PREFIX", "link": "HDF5_EXT_PREFIX"}
    for kind, end in ENDINGS.items():
        path, name = files[kind, "only"], "only" + end
        settings = [("%s/sub" % bed.home, None, "sub")]
        if kind != "external":
            settings.append(("/nonexistent:%s/sub" % bed.home, None, "sub"))
        if kind != "link":
            settings.append(("${ORIGIN}/sub", None, "sub"))
        for prefix, allowed, expected in settings:
            got = look(zonda, [path], "/", ZONDA_EXTERNAL=allowed, **{variables[kind]: prefix})[0]
            test.check("prefix: %s, %s" % (kind, prefix), judge(kind, path, name, expected, got))
            if reference():
                theirs = look(reference(), [path], "/", **{variables[kind]: prefix})[0]
                same = theirs.get("values") == values(expected)
                test.check("prefix, netCDF-C: %s, %s" % (kind, prefix), "" if same else repr(theirs))
        path, name = files[kind, "only-out"], "only-out" + end
        for allowed, expected in ((None, REFUSED), (bed.out, "out")):
            got = look(zonda, [path], "/", ZONDA_EXTERNAL=allowed, **{variables[kind]: bed.out})[0]
            label = "prefix to outside: %s, ZONDA_EXTERNAL=%s" % (kind, allowed)
            test.check(label, judge(kind, path, name, expected, got))


def parts(test, bed, files):
    """Only who asks for what is refused gets the error."""
    zonda = LIBRARY
    for kind, end in (("halves", ".h5"), ("slots", ".bin")):
        got = look(zonda, [files[kind]], "/")[0]
        ok = got["get"] == EPERM and got["ones"] == [0] * N + [EPERM] * N
        test.check("parts: %s" % kind, "" if ok else repr(got))
        got = look(zonda, [files[kind]], "/", ZONDA_EXTERNAL="/")[0]
        ok = not got["get"] and got["values"] == values("in") + values("out")
        test.check("parts, allowed: %s" % kind, "" if ok else repr(got))
    # Whose length depends on what is refused: nobody may take it for empty.
    for kind in ("endless", "numbered"):
        got = look(zonda, [files[kind]], "/")[0]
        ok = not got["open"] and not got["inq"] and not got["varid"] and got["get"] == EPERM
        ok = ok and "/v" in got["left out"] and "ZONDA_EXTERNAL" in got["error"]
        test.check("length: %s" % kind, "" if ok else repr(got))
        got = look(zonda, [files[kind]], "/", ZONDA_EXTERNAL=bed.out)[0]
        # The second number is found beside the file.
        wanted = values("out") + (values("sub") if kind == "numbered" else [])
        test.check("length, allowed: %s" % kind, "" if got.get("values") == wanted else repr(got))
        if reference():
            theirs = look(reference(), [files[kind]], "/")[0]
            same = theirs.get("values") == got.get("values")
            test.check("length, netCDF-C: %s" % kind, "" if same else "%r, %r" % (theirs, got))
    # Names count from the file that has them.
    for kind in ENDINGS:
        got = look(zonda, [files["nested", kind]], "/")[0]
        test.check("nested: %s" % kind, "" if got.get("values") == values("sub") else repr(got))
        if reference() and kind != "external":
            theirs = look(reference(), [files["nested", kind]], "/")[0]
            same = theirs.get("values") == values("sub")
            test.check("nested, netCDF-C: %s" % kind, "" if same else repr(theirs))
    got = look(zonda, [files["junk"]], "/")[0]
    test.check("a source that is no HDF5 file", "" if got["get"] == HDF and "junk.h5" in got["error"] else repr(got))


def changes(test, bed, files):
    """A file with a link that is left out can be changed: the link stays, and nothing gets its name."""
    zonda = LIBRARY
    path = bed.home / "changed.nc"
    for place, name in (("absolute outside", "%s/src.h5" % bed.out), ("missing", "nope.h5")):
        shutil.copy(files["link", place], path)
        got = look(zonda, ["--change", path], "/")[0]
        wanted = {"open": 0, "redef": 0, "names": [-42] * 4, "rest": [0] * 3}
        test.check("change: %s" % place, "" if got == wanted else repr(got))
        text = "import h5py, sys; f = h5py.File(sys.argv[1]); print(sorted(f), f.get('v', getlink=True).filename)"
        ran = rig.run([PYTHON, "-c", text, path], seconds=LIMIT)
        test.check("changed, h5py: %s" % place,
                   "" if ran.stdout == "['own', 'v', 'w'] %s\n" % name else ran.stdout + ran.stderr)


def tools(test, bed, files):
    """Nothing is dropped in silence."""
    def run(name, *args, **env):
        return rig.run([rig.BIN / name, *args], environment(**env), seconds=LIMIT, cwd=bed.top)

    for kind, end in ENDINGS.items():
        path = files[kind, "absolute outside"]
        source = '"%s/src%s"' % (bed.out, end)
        ran = run("ncdump", "-h", path)
        test.check("ncdump -h: %s" % kind, "" if ran.returncode == 0 and "own" in ran.stdout else repr(ran))
        for tool in (["ncdump"], ["zonda", "dump"]):
            ran = run(*tool, path)
            ok = source in ran.stderr if kind == "link" else ran.returncode != 0
            test.check("%s: %s" % (" ".join(tool), kind), "" if ok else repr(ran))
        ran = run("zonda", "diff", path, path)
        test.check("zonda diff: %s" % kind, "" if ran.returncode == 2 and source in ran.stderr else repr(ran))
        ran = run("zonda", "info", path)
        ok = ran.returncode == 0 and (kind != "link" or (source in ran.stdout and "ZONDA_EXTERNAL" in ran.stdout))
        test.check("zonda info: %s" % kind, "" if ok else repr(ran))
        ran = run("zonda", "info", "--json", path)
        left = json.loads(ran.stdout).get("left_out", [])
        test.check("zonda info --json: %s" % kind, "" if [it["path"] for it in left] == ["/v"] * (kind == "link") else repr(ran))
        ran = run("zonda", "check", path)
        said = ran.stdout + ran.stderr
        ok = source in said and "damage" not in said
        test.check("zonda check: %s" % kind, "" if ok else repr(ran))
        for copy in (["zonda", "copy"], ["nccopy"]):
            target = bed.top / "copy.nc"
            ran = run(*copy, path, target)
            ok = ran.returncode != 0 and source in ran.stderr and not target.exists()
            test.check("%s: %s" % (" ".join(copy), kind), "" if ok else repr(ran))
            ran = run(*copy, path, target, ZONDA_EXTERNAL=bed.out)
            ok = ran.returncode == 0 and by_h5py([target], "/") == [values("out")]
            test.check("%s, allowed: %s" % (" ".join(copy), kind), "" if ok else repr(ran))
            target.unlink(missing_ok=True)


def secure(test, bed, files, user):
    """A program that runs with more rights than its caller has does not believe the environment."""
    if user is None:
        test.skip("set-user-id", "no other user")
        return
    program = rig.compile_c(bed.top / "secure", HERE / "secure.c", link=None, libraries=["-ldl"])
    path = files["external", "absolute outside"]

    def run(**env):
        return rig.run([program, LIBRARY, path], environment(ZONDA_EXTERNAL="/", **env), user=user, seconds=LIMIT).stdout.split()

    got = run()
    test.check("not set-user-id", "" if got == ["0", "0", "30"] else repr(got))
    os.chmod(program, 0o4755)
    got = run()
    if got and got[0] == "0":
        test.skip("set-user-id", "the file system ignores the bit")
        return
    test.check("set-user-id", "" if got[1:2] == [str(EPERM)] else repr(got))


def main():
    marks = {part: rig.FULL if part == "table" else rig.QUICK for part in ("table", "symbolic", "prefixes", "parts", "changes", "tools", "secure")}
    options = rig.arguments(rig.parser(__doc__, parts=marks))
    test = Test(options)
    if not PYTHON:
        raise rig.Skip("no Python with h5py")
    with rig.scratch() as top:
        bed = Bed(top)
        rows, files, user = [], {}, other_user()
        for kind, end in ENDINGS.items():
            for number, (place, (name, outcome, *external)) in enumerate(PLACES.items()):
                if DENIED in outcome and user is None:
                    test.skip("%s, %s" % (kind, place), "root must run this, and another user be able to")
                    continue
                name = name.replace("@", end).format(**bed.names)
                # In names of sources %b is a number, and %% a percent sign.
                name = name.replace("%", "%%") if kind == "virtual" else name
                path = bed.case(bed.home / ("%s-%d.nc" % (kind, number)), kind, name)
                rows.append((path, kind, place, name, external[0] if external and kind == "external" else outcome))
                files[kind, place] = path
            for name in ("src", "named", "only", "only-out"):
                files[kind, name] = bed.case(bed.home / ("%s-%s.nc" % (kind, name)), kind, name + end)
            bed.case(bed.home / "sub" / ("near-%s.nc" % kind), kind, "only" + end)
            files["nested", kind] = bed.case(bed.home / ("nested-%s.nc" % kind), "link in", "sub/near-%s.nc" % kind)
        files["halves"] = bed.case(bed.home / "halves.nc", "halves", str(bed.out / "src.h5"))
        files["slots"] = bed.case(bed.home / "slots.nc", "slots", str(bed.out / "src.bin"))
        files["endless"] = bed.case(bed.home / "endless.nc", "endless", str(bed.out / "src.h5"))
        files["numbered"] = bed.case(bed.home / "numbered.nc", "numbered", str(bed.out) + "/n%b.h5")
        files["junk"] = bed.case(bed.home / "of-junk.nc", "virtual", "junk.h5")
        bed.make()
        chosen = options.chosen()
        for part in (symbolic, prefixes, parts, changes, tools):
            if part.__name__ in chosen:
                part(test, bed, files)
        if "table" in chosen:
            table(test, bed, rows, user)
        if "secure" in chosen:
            secure(test, bed, files, user)
        os.chmod(bed.home / "closed", 0o755)
    if not reference():
        test.skip("netCDF-C", "it is not installed")
    return test


if __name__ == "__main__":
    rig.main(main)
