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
