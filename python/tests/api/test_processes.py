"""Forks and exits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import zonda


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_reads_on(model):
    with zonda.open(model) as ds:
        expected = ds["temp"][...]
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                ds["temp"][...]

        # Forked while other threads are in the engine: no lock may stay taken.
        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    same = bool((ds["temp"][::-1] == expected[::-1]).all())
                    os._exit(0 if same else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_a_fork_leaves_writing_to_the_parent(tmp_path):
    path = tmp_path / "f.nc"
    with zonda.create(path) as ds:
        v = ds.create_variable("v", "f8", "x", sizes={"x": 1000})
        v[:500] = 1
        child = os.fork()
        if child == 0:
            # It ends with the file open.
            os._exit(0)
        os.waitpid(child, 0)
        v[500:] = 2
    with zonda.open(path) as ds:
        np.testing.assert_array_equal(ds["v"][...], np.repeat([1.0, 2.0], 500))


def test_an_exit_commits(tmp_path):
    code = (
        "import zonda; ds = zonda.create('e.nc', write_behind=True); v = ds.create_variable('v', data=[1.0, 2.0], dims='x');"
        "keep = [ds, v]; import sys; sys.modules['keep'] = keep"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with zonda.open(tmp_path / "e.nc") as ds:
        np.testing.assert_array_equal(ds["v"][...], [1, 2])


STUCK = """
import ctypes, signal, sys
import numpy as np

libc = ctypes.CDLL(None)
# Libraries of NumPy (libgfortran) free memory when they are unloaded, and so wait for the lock. They are not what is
# looked at: the process ends after all that is registered from here on, and before that.
libc.__cxa_atexit(libc._exit, ctypes.c_void_p(15), None)
import zonda

number = int(sys.argv[1])
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
# Memory is taken from the system each time, under the lock of the allocator.
libc.mallopt(-3, 32 << 20)
libc.mallopt(-1, 4096)
options = {"compression": "zlib", "level": 1, "shuffle": True, "chunks": (1, 20_000)} if number % 4 < 2 else {}
ds = zonda.create(f"stuck{number}.nc", format="NETCDF4" if number % 4 < 2 else "CDF-5")
v = ds.create_variable("v", "f8", ("t", "x"), sizes={"t": 20, "x": 200_000}, **options)
values = np.arange(200_000.0)
for given in values, values.astype("i4"):
    v[0] = given
v[1:, 3] = 1
v[0, ::2]
ds.sync()
# The handler is C's `exit` itself; Python's own handlers never run in the middle of anything.
libc.signal(signal.SIGALRM, ctypes.cast(libc.exit, ctypes.c_void_p))
print("ready", flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.03 + 0.0079 * number)
row = 0
while True:
    row = (row + 1) % 20
    v[row] = values
    for _ in range(2000 * (number % 2)):
        libc.free(libc.malloc(4 << 20))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system's allocator is glibc's")
def test_an_exit_in_the_middle_of_an_allocation_ends(tmp_path):
    """The lock of the allocator is never given back. Nothing that this package has at exit waits for it."""
    program = tmp_path / "stuck.py"
    program.write_text(STUCK)
    stuck = []
    for number in range(20):
        process = subprocess.Popen([sys.executable, program, str(number)], cwd=tmp_path, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        try:
            assert process.wait(10) == 15
        except subprocess.TimeoutExpired:
            stuck.append(number)
            process.kill()
            process.wait()
        process.stdout.close()
        with zonda.open(tmp_path / f"stuck{number}.nc") as ds:
            np.testing.assert_array_equal(ds["v"][0], np.arange(200_000.0))
    assert not stuck
