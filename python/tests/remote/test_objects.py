# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of fsspec: few calls for many ranges."""

from __future__ import annotations

import io

import numpy as np
import pytest
import zonda

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402


class Counting(MemoryFileSystem):
    """A file system that counts calls, and fails where it is told."""

    protocol = "counting"
    store: dict = {}
    pseudo_dirs = [""]
    cachable = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = []
        self.error = None
        self.cut = 0

    def cat_ranges(self, paths, starts, ends, max_gap=None, on_error="return", **kwargs):
        self.calls.append(list(zip(starts, ends)))
        if self.error is not None:
            raise self.error
        content = [self.store[path].getvalue() for path in paths]
        return [bytes(whole[start : end - self.cut]) for whole, start, end in zip(content, starts, ends)]


@pytest.fixture
def fs():
    Counting.store.clear()
    return Counting()


def put(fs, name, path):
    fs.pipe_file(name, path.read_bytes())
    return fs.open(name, "rb")


def test_values(fs, tmp_path, each_format, make):
    path = make(tmp_path / "a.nc", each_format)
    with zonda.open(put(fs, "/a.nc", path)) as ds, zonda.open(path) as local:
        np.testing.assert_array_equal(ds["v"][:], local["v"][:])
        np.testing.assert_array_equal(ds["plain"][3:4000:7], local["plain"][3:4000:7])
        assert ds.attrs["title"] == "on a server"
    assert fs.calls


def test_few_calls_and_few_bytes(fs, tmp_path):
    path = tmp_path / "many.nc"
    rng = np.random.default_rng(5)
    with zonda.create(path) as ds:
        for n in range(100):
            ds.create_variable(f"v{n}", "f8", ("t", "x"), sizes={"t": 100, "x": 200}, chunks=(10, 20))[:] = rng.random((100, 200))
    size = path.stat().st_size
    with zonda.open(put(fs, "/many.nc", path)) as ds:
        assert len(ds.variables) == 100
        opened = len(fs.calls)
        got = ds["v42"][:]
    asked = sum(end - start for call in fs.calls for start, end in call)
    assert got.shape == (100, 200)
    # All chunks of a variable in one call; the definitions in few.
    assert opened <= 12 and len(fs.calls) - opened <= 6, (opened, len(fs.calls))
    assert asked < size // 2, (asked, size)


def test_exceptions_come_out_unchanged_and_a_later_read_is_right(fs, tmp_path):
    with zonda.create(tmp_path / "big.nc", format="CDF-5") as ds:
        ds.create_variable("v", "f8", "x", sizes={"x": 500_000})[:] = np.arange(5e5)
    file = put(fs, "/big.nc", tmp_path / "big.nc")
    with zonda.open(file) as ds:
        fs.error = KeyError("of the file system")
        with pytest.raises(KeyError, match="of the file system"):
            ds["v"][400_000:]
        fs.error, fs.cut = None, 1
        with pytest.raises(OSError, match="cat_ranges gave"):
            ds["v"][400_000:]
        fs.cut = 0
        np.testing.assert_array_equal(ds["v"][400_000:], np.arange(4e5, 5e5))


def test_what_is_on_this_machine_is_read_by_positions(tmp_path, make):
    path = make(tmp_path / "a.nc")
    with fsspec.open(str(path), "rb") as file, zonda.open(file) as ds:
        assert ds["v"][1, 2] == 102
    with zonda.open(io.BytesIO(path.read_bytes())) as ds:
        assert ds["v"][1, 2] == 102


def test_xarray(fs, tmp_path, make):
    xr = pytest.importorskip("xarray")
    import zonda.xarray_engine

    path = make(tmp_path / "a.nc", chunked=True)
    engine = zonda.xarray_engine.ZondaBackendEntrypoint
    with xr.open_dataset(put(fs, "/a.nc", path), engine=engine) as ds, xr.open_dataset(path, engine=engine) as local:
        xr.testing.assert_identical(ds.load(), local.load())
    assert len(fs.calls) <= 6, fs.calls


def test_http_file_system(server, tmp_path, make):
    pytest.importorskip("aiohttp")
    make(server.folder / "a.nc", chunked=True)
    fs = fsspec.filesystem("http", skip_instance_cache=True)
    with fs.open(f"{server.url}/a.nc", "rb") as file, zonda.open(file) as ds:
        np.testing.assert_array_equal(ds["v"][:], np.arange(4000.0).reshape(40, 100))
    assert len([one for one in server.requests if one[0] == "GET"]) <= 6, server.requests
