# SPDX-License-Identifier: MIT OR Apache-2.0
"""The committed lists: SUITE-SIDE.tsv, a test and the reason why it may fail there, with a tab between."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "exceptions"


class BadList(Exception):
    """A list that is not as this module describes it."""


def exceptions(suite: str, side: str) -> dict[str, str]:
    """{test: reason} of a suite on a side."""
    path = FOLDER / f"{suite}-{side}.tsv"
    found: dict[str, str] = {}
    if not path.exists():
        return found
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            raise BadList(f"{path.name}:{number}: no tab and reason behind the test")
        if test in found:
            raise BadList(f"{path.name}:{number}: {test} is there twice")
        found[test] = reason.strip()
    return found


def compare(own: dict, other: dict, allowed: dict[str, str]) -> tuple[int, list[str], list[str]]:
    """What passes on both; what is wrong, a line each; what was allowed, a line each.

    `own` and `other` are {test: (outcome, why)}. What passes on its own library must pass on the other.
    A test that is allowed to fail and passes is wrong as well, as is one that nobody knows.
    """
    good, wrong, excused = 0, [], []
    for test, (outcome, _) in own.items():
        if outcome != "passed":
            continue
        there, why = other.get(test, ("missing", "it was not collected"))
        if there == "passed":
            good += 1
            if test in allowed:
                wrong.append(f"{test}: passes, and is listed as an exception ({allowed[test]})")
        elif test in allowed:
            excused.append(f"{test}: {there}: {allowed[test]}")
        else:
            wrong.append(f"{test}: {there}: {why}")
    for test in allowed:
        if own.get(test, ("",))[0] != "passed":
            wrong.append(f"{test}: is listed as an exception, and does not pass on its own library")
    return good, wrong, excused
