"""Threads, forks, files in memory, and objects that are read."""

from __future__ import annotations

import io
import multiprocessing
import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import netCDF4
import numpy as np
import pytest

from zonda._zonda import File, detect, detect_bytes


def total(file):
    out = np.zeros((20, 30), "f8")
    file.get(0, 0, (0, 0), (20, 30), None, out)
    return out.sum()


TOTAL = sum(range(600))


def test_threads_read_many_files(tmp_path):
    paths = []
    for i in range(40):
        paths.append(tmp_path / f"{i}.nc")
        file = File.create(paths[-1], "NETCDF4" if i % 2 else "CDF-5")
        var = file.def_var(0, "v", 6, (file.def_dim(0, "n", 500),))
        file.enddef()
        file.put(0, var, (0,), (500,), None, np.arange(500.0) + i)
        file.close()
    files = [File.open(path) for path in paths]

    def reader(seed):
        draw = random.Random(seed)
        for _ in range(200):
            i, at = draw.randrange(40), draw.randrange(490)
            out = np.zeros(10)
            files[i].get(0, 0, (at,), (10,), None, out)
            assert out[0] == at + i and out[9] == at + i + 9
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(reader, range(8)))
    for file in files:
        file.close()


def in_child(call):
    """What `call` gives in a forked child, which is ended where it hangs."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if call() else 1)
        finally:
            os._exit(2)
    timer = threading.Timer(30, os.kill, (pid, 9))
    timer.start()
    status = os.waitpid(pid, 0)[1]
    timer.cancel()
    return os.waitstatus_to_exitcode(status)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_reads_and_does_not_write(numbers, tmp_path):
    reading = File.open(numbers)
    assert total(reading) == TOTAL
    writing = File.create(tmp_path / "w.nc", "NETCDF4")
    var = writing.def_var(0, "v", 4, (writing.def_dim(0, "n", 2),))
    writing.put(0, var, (0,), (1,), None, np.array([1], "i4"))

    def child():
        assert total(reading) == TOTAL
        try:
            writing.put(0, var, (1,), (1,), None, np.array([99], "i4"))
        except OSError as error:
            writing.close()
            return error.errno == 10
        return False

    assert in_child(child) == 0
    # A second fork, and one in a child: hooks are made once.
    assert in_child(lambda: in_child(lambda: total(reading) == TOTAL) == 0) == 0
    writing.put(0, var, (1,), (1,), None, np.array([2], "i4"))
    writing.close()
    reading.close()
    with netCDF4.Dataset(tmp_path / "w.nc") as judge:
        assert judge["v"][:].tolist() == [1, 2]


def test_a_fork_ends():
    # In a process of its own, for a lock that is taken twice hangs the parent.
    code = "import os, zonda._zonda; pid = os.fork(); pid or os._exit(3); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "3\n", done.stderr


def read_by_path(path):
    file = File.open(path)
    try:
        return total(file)
    finally:
        file.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_processes(numbers, way):
    with multiprocessing.get_context(way).Pool(2) as pool:
        assert pool.map_async(read_by_path, [numbers] * 6).get(timeout=60) == [TOTAL] * 6


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_read(numbers, kind):
    file = File.open_bytes(kind(numbers.read_bytes()))
    assert total(file) == TOTAL and file.stack == "bytes"
    file.close()


def test_a_file_in_memory_gives_its_bytes(tmp_path, each_format):
    file = File.create(tmp_path / "memory.nc", each_format, in_memory=True)
    var = file.def_var(0, "v", 4, (file.def_dim(0, "n", 3),))
    file.enddef()
    file.put(0, var, (0,), (3,), None, np.array([1, 2, 3], "i4"))
    data = file.take_bytes()
    assert not file.is_open and not (tmp_path / "memory.nc").exists()
    # By a file: netCDF4-python does not open its own CDF-5 bytes in memory.
    (tmp_path / "judge.nc").write_bytes(data)
    with netCDF4.Dataset(tmp_path / "judge.nc") as judge:
        assert judge["v"][:].tolist() == [1, 2, 3]
    assert detect_bytes(data) == (each_format if each_format.startswith("CDF") else "HDF5")


def test_detect(numbers, tmp_path):
    assert detect(numbers) == detect(os.fsencode(numbers)) == "HDF5"
    (tmp_path / "text").write_text("text")
    assert detect(tmp_path / "text") is None and detect_bytes(b"") is None
    with pytest.raises(FileNotFoundError):
        detect(tmp_path / "none")


class Trickle(io.BytesIO):
    """Gives fewer bytes than are asked for, and fails where it is told to."""

    broken = False
    inside = 0
    most_inside = 0

    def read(self, n=-1):
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            if self.broken:
                raise LookupError("the network is gone")
            return super().read(min(n, 1000))
        finally:
            self.inside -= 1


def test_an_object_is_read(numbers):
    with open(numbers, "rb") as stream:
        file = File.open_object(stream)
        assert total(file) == TOTAL
        file.close()
    file = File.open_object(Trickle(numbers.read_bytes()))
    assert total(file) == TOTAL
    file.close()


def test_what_an_object_raises_comes_out(numbers):
    source = Trickle(numbers.read_bytes())
    file = File.open_object(source)
    source.broken = True
    with pytest.raises(LookupError, match="the network is gone"):
        total(file)
    source.broken = False
    assert total(file) == TOTAL
    file.close()
    source.broken = True
    with pytest.raises(LookupError, match="the network is gone"):
        File.open_object(source)


def test_threads_read_one_object(numbers):
    source = Trickle(numbers.read_bytes())
    file = File.open_object(source)

    def reader(i):
        # Calls that need the file's lock, beside those that need the GIL.
        return all(file.format == "NETCDF4" and total(file) == TOTAL for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(reader, range(8), timeout=60))
    assert source.most_inside == 1
    file.close()
