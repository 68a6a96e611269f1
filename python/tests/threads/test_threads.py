# SPDX-License-Identifier: MIT OR Apache-2.0
"""Threads: 8 of them on 1,000 files, through each interface; and that nobody waits for another's I/O."""

import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from storm import expected, name  # noqa: E402

ROOT = HERE.parents[2]
DIST = Path(os.environ.get("ZONDA_DIST", ROOT / "dist"))
FILES, THREADS, READS = 1000, 8, 600
SECONDS = 300


def has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def run(command: list, most: float = SECONDS) -> str:
    """Runs storm.py; a crash and a hang are failures that say where."""
    # Children import what this process does.
    env = {**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    out = subprocess.run([str(w) for w in command], env=env, capture_output=True, text=True, timeout=most)
    assert out.returncode == 0, f"ended with {out.returncode}:\n{out.stderr[-4000:]}"
    return out.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("storm")
    run([sys.executable, HERE / "storm.py", "make", path, FILES])
    return path


@pytest.mark.parametrize("api", ["plain", "module", "engine"])
def test_storm(api, folder):
    pytest.importorskip("zonda")
    if api == "engine" and not has("xarray"):
        pytest.skip("no xarray")
    said = run([sys.executable, HERE / "storm.py", api, folder, FILES, THREADS, READS, "fork"])
    assert said == f"{THREADS * READS} reads\n"


@pytest.mark.parametrize("api", ["wheel", "wheel-engine"])
def test_storm_under_zonda_run(api, folder):
    """The netCDF4 wheel: on its own library this crashes."""
    if not has("netCDF4") or (api == "wheel-engine" and not has("xarray")):
        pytest.skip("no netCDF4, or no xarray")
    if not (DIST / "lib" / "libzonda-preload.so").exists():
        pytest.skip(f"no libzonda-preload.so in {DIST}/lib")
    start = [DIST / "bin" / "zonda", "run", "--"]
    # xarray takes most of the time, and its reads are those of the wheel.
    reads = READS // 3 if api == "wheel-engine" else READS
    said = run([*start, sys.executable, HERE / "storm.py", api, folder, FILES, THREADS, reads, "fork"])
    assert said == f"{THREADS * reads} reads\n"


def test_reads_of_slow_files_overlap(folder):
    """Eight threads that wait for their files wait at the same time: no lock, no GIL is held meanwhile."""
    zonda = pytest.importorskip("zonda")
    # Each read of the file takes so long; one thread alone measures what a whole access takes.
    slow = "throttle:1000000000:20ms,file"

    def read(number: int) -> None:
        with zonda.open(name(str(folder), number), io=slow) as ds:
            assert (ds["v"][:] == expected(number)).all()

    start = time.perf_counter()
    read(0)
    alone = time.perf_counter() - start
    assert alone > 0.04, "the files are not slow"
    ticks, done = 0, threading.Event()
    threads = [threading.Thread(target=read, args=(n,)) for n in range(1, 9)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    waiter = threading.Thread(target=lambda: ([t.join() for t in threads], done.set()))
    waiter.start()
    while not done.wait(0.001):
        ticks += 1
    together = time.perf_counter() - start
    assert together < 6 * alone, f"{together:.2f} s for eight, {alone:.2f} s for one"
    # This thread ran meanwhile: with the GIL held through one file's waits it would have stood still.
    assert ticks > 10, f"{ticks} turns in {together:.2f} s"


def test_a_file_that_blocks_holds_up_nobody(folder):
    """A Python file object that does not answer: other files are read, opened and closed meanwhile."""
    zonda = pytest.importorskip("zonda")
    blocked, go_on = threading.Event(), threading.Event()

    class Stuck:
        """A file whose reads wait for `go_on`."""

        def __init__(self, path):
            self.file = open(path, "rb")

        def seek(self, offset, whence=0):
            return self.file.seek(offset, whence)

        def tell(self):
            return self.file.tell()

        def read(self, n=-1):
            blocked.set()
            assert go_on.wait(60)
            return self.file.read(n)

    seen = []

    def read_stuck():
        with zonda.open(Stuck(name(str(folder), 0))) as ds:
            seen.append((ds["v"][:] == expected(0)).all())

    stuck = threading.Thread(target=read_stuck)
    stuck.start()
    try:
        assert blocked.wait(60)
        for number in range(1, 20):
            with zonda.open(name(str(folder), number)) as ds:
                assert (ds["v"][:] == expected(number)).all()
        assert not seen
    finally:
        go_on.set()
        stuck.join(60)
    assert seen == [True]
