#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests of what runners stand on; and that each runner stands on it.

    tests/rig/run.py [--only REGEX]
"""
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(TESTS))
import rig  # noqa: E402
from rig import Wrong, places  # noqa: E402

# What is found here, and nowhere else.
FOUND_BY_RIG = re.compile(r"""environ(\.get\(|\[)["'](ZONDA_(LIBDIR|PREFIX|INCDIR|COMMAND|PYTHON|SCRATCH|CORPUS)|ORACLE_LIBDIR)\b
                              |ldconfig|find_library|["']dist["'/]|out/venv/|/dev/shm|CDLL\(str\((rig\.)?LIBRARY|print\(.*\bpassed,?\ .*\bfailed""", re.X)


def equal(got, wanted):
    if got != wanted:
        raise Wrong("%r, not %r" % (got, wanted))


def ran(text, *words, **env):
    """(exit status, last line on standard output) of a runner with this text."""
    head = "import sys\nsys.path.insert(1, %r)\nimport rig\n" % str(TESTS)
    done = subprocess.run([sys.executable, "-c", head + textwrap.dedent(text), *words], env={**os.environ, **env}, capture_output=True, text=True, check=False)
    lines = (done.stdout + (done.stderr if done.returncode == 1 else "")).strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def library_by_settings(_scratch):
    dist = (rig.ROOT / "dist").resolve()
    equal(places.under_test({}), places.Places(dist / "lib", dist / "include", dist / "bin/zonda"))
    moved = places.under_test({"ZONDA_LIBDIR": "/a/lib"})
    equal(moved, places.Places(Path("/a/lib"), Path("/a/include"), Path("/a/bin/zonda")))
    equal(places.under_test({"ZONDA_PREFIX": "/a", "ZONDA_LIBDIR": ""}), moved)
    equal(places.under_test({"ZONDA_PREFIX": "/b", "ZONDA_LIBDIR": "/a/lib"}), moved)
    equal(places.under_test({"ZONDA_LIBDIR": "/a/lib", "ZONDA_INCDIR": "/i", "ZONDA_COMMAND": "/c"}), places.Places(Path("/a/lib"), Path("/i"), Path("/c")))


def reference_by_setting(_scratch):
    equal(ran("print(rig.reference_library())", ORACLE_LIBDIR="/o"), (0, "/o/libnetcdf.so.19"))
    equal(ran("rig.main(rig.two_libraries)", ZONDA_LIBDIR="/nowhere")[0], 1)
    if rig.reference():
        equal(ran("rig.main(rig.two_libraries)", ZONDA_LIBDIR=str(rig.reference())), (1, "0 passed, 1 failed, 0 skipped"))


def python_that_has_it(scratch):
    equal(ran("rig.needs('sys', 'os'); print('goes on')", ZONDA_PYTHON=""), (0, "goes on"))
    equal(ran("rig.needs('no_such_module')"), (0, "0 passed, 0 failed, 1 skipped"))
    other = scratch / "python"
    other.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "began anew: $*"\n')
    other.chmod(0o755)
    runner = scratch / "runner.py"
    runner.write_text("import sys\nsys.path.insert(1, %r)\nimport rig\nrig.needs('no_such_module')\n" % str(TESTS))
    done = subprocess.run([sys.executable, runner, "--long"], env={**os.environ, "ZONDA_PYTHON": str(other)}, capture_output=True, text=True, check=False)
    equal(done.stdout, "began anew: %s --long\n" % runner)


def scratch_goes(scratch):
    text = """
        with rig.scratch() as folder:
            (folder / "file").write_text("x")
            %s
        print(folder.parent == rig.places.Path(sys.argv[1]), folder.exists())
    """
    equal(ran(text % "", str(scratch), ZONDA_SCRATCH=str(scratch)), (0, "True False"))
    equal(ran(text % "rig.keep(folder)", str(scratch), ZONDA_SCRATCH=str(scratch)), (0, "True True"))


def environment_without_settings(_scratch):
    os.environ.update(ZONDA_IO="file", LD_PRELOAD="", HDF5_X="y", MINE_A="b")
    env = rig.environment("/a/lib", without=["MINE_"], ZONDA_SYNC="full", ZONDA_N=3, PATH=None)
    equal({name for name in env if name.startswith(("ZONDA_", "LD_", "HDF5_", "MINE_"))}, {"ZONDA_SYNC", "ZONDA_N", "LD_LIBRARY_PATH"})
    equal((env["LD_LIBRARY_PATH"], env["ZONDA_N"], "PATH" in env), ("/a/lib", "3", False))
    equal("LD_LIBRARY_PATH" in rig.environment(), False)


def programs_are_bounded(scratch):
    source = scratch / "program.c"
    source.write_text("#include <stdlib.h>\nint main(void) { return malloc(64 << 20) ? 0 : 3; }\n")
    program = rig.compile_c(scratch / "program", source, link=None)
    equal(rig.run([program]).returncode, 0)
    equal(rig.run([program], preexec_fn=rig.bounds(memory=32 << 20)).returncode, 3)
    equal(rig.must(["cat"], input="said"), "said")
    # Where the library under test is missing, nothing is linked with another one.
    equal(ran("rig.main(lambda: rig.compile_c(sys.argv[1], sys.argv[2]))", str(program), str(source), ZONDA_LIBDIR="/nowhere")[0], 1)
    for text in ("int main(void) { int unused; }", "int main(void) {"):
        source.write_text(text)
        try:
            rig.compile_c(scratch / "program", source, link=None)
        except rig.Setup:
            continue
        raise Wrong("it compiles: %s" % text)


def tools_are_the_distributions(scratch):
    ours, theirs = rig.BIN, scratch / "theirs"
    theirs.mkdir()
    for name in ("ncdump", "only_here"):
        (theirs / name).write_text("")
        (theirs / name).chmod(0o755)
    os.environ["PATH"] = "%s:%s" % (ours, theirs)
    equal(rig.tool("ncdump"), str(theirs / "ncdump"))
    equal(rig.missing("only_here", "zonda"), ["zonda"])


def counts_add_up(_scratch):
    text = """
        def test(what):
            if what: raise what
            return 7
        def main():
            counts = rig.Counts()
            assert counts.attempt("right", test, None) == 7
            assert counts.attempt("nothing", lambda: None) is True and counts.attempt("no", test, rig.Skip("why")) is None
            for kind in sys.argv[1:]:
                counts.attempt(kind, test, {"wrong": rig.Wrong("x"), "skip": rig.Skip("y"), "defect": KeyError("z")}[kind])
            counts.check("fine", None), counts.check("fine", "")
            return counts
        rig.main(main)
    """
    equal(ran(text), (0, "4 passed, 0 failed, 1 skipped"))
    equal(ran(text, "skip", "skip"), (0, "4 passed, 0 failed, 3 skipped"))
    equal(ran(text, "wrong", "defect"), (1, "4 passed, 2 failed, 1 skipped"))


def ends_of_runners(_scratch):
    equal(ran("rig.main(lambda: rig.Counts())"), (1, "0 passed, 0 failed, 0 skipped"))
    equal(ran("rig.main(lambda: 0)"), (0, ""))
    equal(ran("rig.main(lambda: 3)")[0], 3)
    equal(ran("def main(): raise rig.Skip('nothing there')\nrig.main(main)"), (0, "0 passed, 0 failed, 1 skipped"))
    equal(ran("def main(): raise rig.Setup('no library')\nrig.main(main)"), (1, "0 passed, 1 failed, 0 skipped"))
    equal(ran("rig.main(lambda: rig.run([rig.BIN / 'ncdump']))", ZONDA_PREFIX="/nowhere"), (1, "0 passed, 1 failed, 0 skipped"))
    equal(ran("rig.main(rig.loaded)", ZONDA_PREFIX="/nowhere"), (1, "0 passed, 1 failed, 0 skipped"))
    equal(ran("rig.main(lambda: rig.must([rig.ZONDA]))", ZONDA_COMMAND="/nowhere/zonda"), (1, "0 passed, 1 failed, 0 skipped"))


def marks_and_parts(_scratch):
    def asked(*words):
        options = rig.arguments(rig.parser("about", parts={"one": rig.QUICK, "two": rig.FULL, "three": rig.LONG}, seed=5), words)
        return options.chosen(), options.by(1, 20, 300), options.seed

    equal(asked("--quick"), (["one"], 1, 5))
    equal(asked("--seed", "8"), (["one", "two"], 20, 8))
    equal(asked("--long"), (["one", "two", "three"], 300, 5))
    equal(asked("--quick", "--parts", "three,one"), (["three", "one"], 1, 5))
    options = rig.arguments(rig.parser("about"), ["--only", "^a(b|c)$"])
    equal([name for name in ("ab", "abc", "ac") if options.wants(name)], ["ab", "ac"])
    text = "rig.arguments(rig.parser('about', parts={'one': rig.QUICK}))"
    for words in (["--quick", "--long"], ["--parts", "four"], ["--only", "("]):
        equal(ran(text, *words)[0], 2)


def nobody_else_finds(_scratch):
    own = []
    for path in sorted(TESTS.glob("*/*.py")):
        lines = path.read_text().splitlines() if path.parent.name != "rig" else []
        own += ["%s:%d: %s" % (path.relative_to(TESTS), n, line) for n, line in enumerate(lines, 1) if FOUND_BY_RIG.search(line)]
    if own:
        raise Wrong("tests/rig does it:\n    " + "\n    ".join(own))


def runners_have_marks(_scratch):
    """Those that scripts/test.sh starts."""
    stages = (rig.ROOT / "scripts" / "test.sh").read_text()
    found = sorted(set(re.findall(r"(?<!python/)\btests/(\w+/\w+\.py)", stages)))
    if len(found) < 20:
        raise Wrong("only %s" % found)
    for name in found:
        said = rig.run([TESTS / name, "--help"], dict(os.environ))
        if said.returncode or "--quick" not in said.stdout and "no Python with" not in said.stdout:
            raise Wrong("%s --help ends with %d and says %s" % (name, said.returncode, (said.stderr or said.stdout)[-300:]))


def main():
    options = rig.arguments(rig.parser(__doc__))
    counts = rig.Counts()
    for test in (library_by_settings, reference_by_setting, python_that_has_it, scratch_goes, environment_without_settings, programs_are_bounded,
                 tools_are_the_distributions, counts_add_up, ends_of_runners, marks_and_parts, nobody_else_finds, runners_have_marks):  # fmt: skip
        if options.wants(test.__name__):
            before = dict(os.environ)
            with rig.scratch() as scratch:
                counts.attempt(test.__name__, test, scratch)
            os.environ.clear()
            os.environ.update(before)
    return counts


if __name__ == "__main__":
    rig.main(main)
