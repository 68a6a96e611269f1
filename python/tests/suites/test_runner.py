# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runner of the suites finds what it is there to find: failures, crashes, hangs, exceptions that pass."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import execute
import lists

# Seconds without a sign of life that are taken for a hang. Only `test_hang` waits for so long; on a loaded machine the
# start of a process, or a test, may take many times what it does alone.
QUIET = 30

SUITE = """
import os, signal, time, unittest
import pytest

def test_good(): pass
def test_bad(): assert 1 == 2, "one is not two"
def test_crash(): os.kill(os.getpid(), signal.SIGSEGV)
def test_behind_the_crash(): pass
def test_hang(): time.sleep(600)
def test_skip(): pytest.skip("not today")
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.xfail
def test_unexpected(): pass
@pytest.fixture
def broken(): raise OSError("no fixture")
def test_setup(broken): pass
class Subtests(unittest.TestCase):
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    pytest.importorskip("netCDF4")
    tree = tmp_path_factory.mktemp("tree")
    (tree / "test_suite.py").write_text(SUITE)
    (tree / "test_other.py").write_text("import module_that_is_not_there\n")
    suite = execute.Suite("example", tree, (".",), shares=2)
    found = execute.run(suite, execute.Side("own"), sys.executable, tmp_path_factory.mktemp("out"), quiet_seconds=QUIET)
    return {test.removeprefix("test_suite.py::"): end for test, end in found.items()}


@pytest.mark.parametrize(
    "test, end, why",
    [
        ("test_good", "passed", ""),
        ("test_bad", "failed", "one is not two"),
        ("test_crash", "crashed", "-11"),
        ("test_behind_the_crash", "passed", ""),
        ("test_hang", "crashed", f"no end for {QUIET} s"),
        ("test_skip", "skipped", "not today"),
        ("test_expected", "xfailed", ""),
        ("test_unexpected", "passed", ""),
        ("test_setup", "failed", "no fixture"),
        ("Subtests::test_parts", "failed", ""),
        ("test_other.py", "failed", "module_that_is_not_there"),
    ],
)
def test_outcomes(results, test, end, why):
    assert results[test][0] == end
    assert why in results[test][1]


def test_compare():
    own = {"a": ("passed", ""), "b": ("passed", ""), "c": ("passed", ""), "d": ("failed", ""), "e": ("passed", "")}
    other = {"a": ("passed", ""), "b": ("failed", "why"), "c": ("passed", ""), "d": ("passed", "")}
    good, wrong, excused = lists.compare(own, other, {})
    assert (good, excused) == (2, [])
    assert wrong == ["b: failed: why", "e: missing: it was not collected"]
    good, wrong, excused = lists.compare(own, other, {"b": "reason", "c": "reason", "d": "reason", "e": "reason"})
    assert [line.split(":")[0] for line in wrong] == ["c", "d"] and [line.split(":")[0] for line in excused] == ["b", "e"]


def test_lists_want_reasons(tmp_path, monkeypatch):
    monkeypatch.setattr(lists, "FOLDER", tmp_path)
    (tmp_path / "suite-side.tsv").write_text("# a comment\ntest::one\tbecause\n")
    assert lists.exceptions("suite", "side") == {"test::one": "because"}
    for text in ("test::one\n", "test::one\t \n", "a\tx\na\ty\n"):
        (tmp_path / "suite-side.tsv").write_text(text)
        with pytest.raises(lists.BadList):
            lists.exceptions("suite", "side")


def test_the_lists_that_are_committed():
    for path in lists.FOLDER.glob("*.tsv"):
        suite, _, side = path.stem.partition("-")
        assert lists.exceptions(suite, side)
