# SPDX-License-Identifier: MIT OR Apache-2.0
"""pytest plugin of the suites' runner: a journal of tests, a share of them, and a look at the library.

ZONDA_SUITES_JOURNAL  a file: one JSON line when a test begins and one when it has ended, so that a
                      crash loses nothing. Tests that it names already are left out: a process
                      that is started again goes on behind the test that killed the last one.
ZONDA_SUITES_SHARE    "2/5/file": the second of five shares; tests of a file, a class, or none, stay
                      together
ZONDA_SUITES_EXPECT   own, module or preload: whose code answers to the name netCDF4
"""

import json
import os

import pytest

# What a test is, is the worst of its phases and subtests.
RANK = ["passed", "xfailed", "skipped", "failed"]


def library() -> str:
    """Whose code answers to `import netCDF4` in this process."""
    import netCDF4

    if netCDF4.Dataset.__module__.startswith("zonda"):
        return "module"
    return "preload" if "Zonda" in netCDF4.getlibversion() else "own"


# Now: a suite's conftest.py puts folders before ours.
FOUND = library() if "ZONDA_SUITES_EXPECT" in os.environ else ""


def pytest_configure(config):
    expected, found = os.environ["ZONDA_SUITES_EXPECT"], FOUND
    if found != expected:
        pytest.exit(f"netCDF4 is that of side {found!r}, wanted was {expected!r}", returncode=70)
    config.pluginmanager.register(Journal(os.environ["ZONDA_SUITES_JOURNAL"]), "zonda-journal")


def shares(groups: dict[str, int], n: int) -> dict[str, int]:
    """Each group's share: the largest first, each to the share that has least."""
    load, of = [0] * n, {}
    for name in sorted(groups, key=lambda g: (-groups[g], g)):
        of[name] = min(range(n), key=lambda i: (load[i], i))
        load[of[name]] += groups[name]
    return of


class Journal:
    def __init__(self, path):
        self.path, self.worst = path, {}
        self.done = set()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                self.done = {json.loads(line)["test"] for line in lines}

    def write(self, **line):
        with open(self.path, "a", encoding="utf-8") as journal:
            journal.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        number, n, together = os.environ.get("ZONDA_SUITES_SHARE", "1/1/none").split("/")
        parts = {"file": 1, "class": 2, "none": 99}[together]
        group = lambda item: "::".join(item.nodeid.split("[")[0].split("::")[:parts]) if parts < 99 else item.nodeid
        sizes = {}
        for item in items:
            sizes[group(item)] = sizes.get(group(item), 0) + 1
        of = shares(sizes, int(n))
        mine = [i for i in items if of[group(i)] == int(number) - 1 and i.nodeid not in self.done]
        config.hook.pytest_deselected(items=[i for i in items if i not in set(mine)])
        items[:] = mine

    def pytest_collectreport(self, report):
        if report.failed:
            # A file that cannot be imported is one test that fails.
            self.write(test=report.nodeid, end="failed", why=last(report))

    def pytest_runtest_logstart(self, nodeid, location):
        self.worst[nodeid] = ("passed", "")
        self.write(test=nodeid)

    def pytest_runtest_logreport(self, report):
        outcome = "xfailed" if report.skipped and hasattr(report, "wasxfail") else report.outcome
        why = "" if report.passed else last(report)
        old = self.worst.get(report.nodeid, ("passed", ""))
        if RANK.index(outcome) > RANK.index(old[0]):
            self.worst[report.nodeid] = (outcome, why)

    def pytest_runtest_logfinish(self, nodeid, location):
        outcome, why = self.worst.pop(nodeid)
        self.write(test=nodeid, end=outcome, why=why)


def last(report) -> str:
    """One line of what a report says."""
    text = report.longrepr
    crash = getattr(text, "reprcrash", None)
    if crash is not None:
        text = crash.message
    elif isinstance(text, tuple):
        text = text[2]
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return (lines[0] if crash is not None else lines[-1])[:300] if lines else ""
