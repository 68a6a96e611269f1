# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a suite on a side: shares of it in processes of their own, started again after a crash."""

import json
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WRONG_LIBRARY = 70  # of plugins/zonda_outcomes.py


class Broken(Exception):
    """A suite that could not be run at all."""


@dataclass(frozen=True)
class Suite:
    """Tests that run by pytest in a folder of their own."""

    name: str
    tree: Path | None  # copied as the folder to run in
    targets: tuple[str, ...]  # what pytest is given
    together: str = "none"  # file, class: what must run in one process
    shares: int = 2
    options: tuple[str, ...] = ()
    only: str = ""  # an expression of pytest's -k
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """Whose code the tests run on."""

    name: str
    prefix: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    netcdf4: str = ""  # whose code answers to the name netCDF4, as plugins/zonda_outcomes.py says it; "": its own
    env: dict[str, str] = field(default_factory=dict)


def sides(dist: Path) -> dict[str, Side]:
    """All sides; `dist` is what `make build` made."""
    return {
        "own": Side("own"),
        "preload": Side("preload", prefix=(str(dist / "bin" / "zonda"), "run", "--"), netcdf4="preload"),
        "module": Side("module", path=(str(HERE / "shim"), *package()), netcdf4="module"),
        "engine": Side("engine", path=package(), plugins=("zonda_engine",)),
    }


def package() -> tuple[str, ...]:
    """Where `zonda` is imported from: this checkout, if its module was built here, or what is installed."""
    built = any((ROOT / "python" / "zonda").glob("_zonda*.so"))
    return (str(ROOT / "python"),) if built else ()


def run(suite: Suite, side: Side, python: str, out: Path, only: str = "", quiet_seconds: float = 300) -> dict:
    """{test: (outcome, why)} of a suite. The order of tests is that of the suite within each share."""
    jobs = min(suite.shares, len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(jobs) as pool:
        parts = [pool.submit(_share, suite, side, python, out, n + 1, only, quiet_seconds) for n in range(suite.shares)]
        found: dict[str, tuple[str, str]] = {}
        for part in parts:
            found.update(part.result())
    return found


def _share(suite: Suite, side: Side, python: str, out: Path, number: int, only: str, quiet_seconds: float) -> dict:
    label = f"{suite.name}-{side.name}-{number}"
    work, journal, log = out / "run" / label, out / "logs" / f"{label}.jsonl", out / "logs" / f"{label}.log"
    shutil.rmtree(work, ignore_errors=True)
    if suite.tree is None:
        work.mkdir(parents=True)
    else:
        shutil.copytree(suite.tree, work, ignore=shutil.ignore_patterns("__pycache__"))
        # Else pytest takes the settings of this repository, above, and names tests by their way from here.
        (work / "pytest.ini").touch()
    log.parent.mkdir(parents=True, exist_ok=True)
    journal.unlink(missing_ok=True)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "HDF5_PLUGIN_PATH")}
    # A folder for temporary files of their own: names that suites choose at random may meet.
    scratch = out / "run" / f"{label}.tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    env.update(
        suite.env, **side.env, PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(scratch), LC_ALL="C.UTF-8",
        PYTHONPATH=os.pathsep.join([str(HERE / "plugins"), *side.path]),
        ZONDA_SUITES_JOURNAL=str(journal), ZONDA_SUITES_EXPECT=side.netcdf4 or "own",
        ZONDA_SUITES_SHARE=f"{number}/{suite.shares}/{suite.together}",
    )  # fmt: skip
    chosen = " and ".join(f"({expression})" for expression in (suite.only, only) if expression)
    command = [*side.prefix, python, "-m", "pytest", "-q", "-p", "zonda_outcomes", "-p", "no:cacheprovider", "--tb=short",
               "-p", "no:xdist", "--continue-on-collection-errors",
               "--import-mode=prepend", *(word for plugin in side.plugins for word in ("-p", plugin)), *suite.options, *(["-k", chosen] if chosen else []), *suite.targets]
    with open(log, "wb") as said:
        while True:
            before = _ended(journal)
            code = _process(command, work, env, said, journal, quiet_seconds)
            if code == WRONG_LIBRARY:
                raise Broken(f"{label}: {log.read_text(errors='replace').strip().splitlines()[-1]}")
            ended = _ended(journal)
            killed = {line["test"] for line in _lines(journal)} - ended
            if not killed:
                # 0: all passed, 1: some failed, 5: none was chosen
                if code in (0, 1, 5):
                    break
                if ended == before:
                    raise Broken(f"{label}: pytest ended with {code}: {log}")
                continue  # it died between two tests: on with the next
            why = "no end for %g s" % quiet_seconds if code is None else "the process ended with %d" % code
            with open(journal, "a", encoding="utf-8") as more:
                for test in killed:
                    more.write(json.dumps({"test": test, "end": "crashed", "why": why}) + "\n")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)
    return {line["test"]: (line["end"], line["why"]) for line in _lines(journal) if "end" in line}


def _lines(journal: Path) -> list[dict]:
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def _ended(journal: Path) -> set[str]:
    return {line["test"] for line in _lines(journal) if "end" in line}


def _process(command, work: Path, env: dict, said, journal: Path, quiet_seconds: float) -> int | None:
    """Runs pytest; None if its journal did not grow for so long that it was stopped."""
    process = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=said,
                               stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
    size, since = -1, time.monotonic()
    while True:
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            now = journal.stat().st_size if journal.exists() else 0
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > quiet_seconds:
                os.killpg(process.pid, signal.SIGKILL)  # its own process group, nothing else
                process.wait()
                return None
