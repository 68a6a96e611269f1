"""What is refused, and with which exception."""

from __future__ import annotations

import gc
import pickle
import sys

import numpy as np
import pytest
from zonda.errors import NetCDFError

from zonda import _zonda
from zonda._zonda import File


def raised(kind, call, *args, code=None, **keywords):
    with pytest.raises(kind) as caught:
        call(*args, **keywords)
    error = caught.value
    if code is not None:
        assert isinstance(error, NetCDFError) and isinstance(error, RuntimeError) and error.code == code
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.code, again.path, again.offset, str(again)) == (
            type(error), error.code, error.path, error.offset, str(error),
        )  # fmt: skip
    return error


def test_files(tmp_path, numbers):
    missing = raised(FileNotFoundError, File.open, tmp_path / "none.nc", code=2)
    assert missing.errno == 2 and missing.filename == str(tmp_path / "none.nc") == missing.path
    raised(FileExistsError, File.create, numbers, "CDF-1", exclusive=True, code=-35)
    (tmp_path / "text.nc").write_text("this is no netCDF file")
    odd = raised(OSError, File.open, tmp_path / "text.nc", code=-51)
    assert str(odd).startswith(_zonda.strerror(-51)) and "text.nc" in str(odd)
    raised(ValueError, File.create, tmp_path / "x.nc", "CDF-3")
    assert not (tmp_path / "x.nc").exists()
    raised(OSError, File.open, tmp_path)


def test_arrays(numbers):
    file = File.open(numbers)
    read = (file.get, 0, 0, (0, 0), (4, 6), None)
    raised(ValueError, *read, np.zeros((6, 4), "f4").T)
    raised(ValueError, *read, np.zeros((4, 12), "f4")[:, ::2])
    raised(ValueError, *read, np.frombuffer(bytes(96), "f4").reshape(4, 6))
    raised(TypeError, *read, np.zeros((4, 6), ">f4"))
    raised(TypeError, *read, np.empty((4, 6), object))
    raised(TypeError, *read, np.zeros((4, 6), "c16"))
    raised(TypeError, *read, np.zeros((4, 6), "M8[s]"))
    raised(TypeError, *read, [0] * 24)
    raised(ValueError, *read, np.zeros((4, 5), "f4"))
    unaligned = np.zeros(97, "u1")[1:].view("f4")
    raised(ValueError, *read, unaligned.reshape(4, 6))
    file.close()


def test_selections(numbers):
    file = File.open(numbers)
    out = np.zeros(1, "f4")
    raised(IndexError, file.get, 0, 0, (20, 0), (1, 1), None, out, code=-40)
    raised(IndexError, file.get, 0, 0, (19, 29), (1, 2), None, np.zeros(2, "f4"), code=-57)
    raised(IndexError, file.get, 0, 0, (0, 0), (1, 1), (0, 1), out, code=-58)
    raised(ValueError, file.get, 0, 0, (0,), (1,), None, out)
    raised(ValueError, file.get, 0, 0, (0, 0), (1,), None, out)
    raised(OverflowError, file.get, 0, 0, (-1, 0), (1, 1), None, out)
    # Sizes whose product overflows allocate nothing.
    raised(ValueError, file.get, 0, 0, (0, 0), (2**62, 2**62), None, out)
    raised(ValueError, file.get_objects, 0, 0, (0, 0), (2**62, 2**62), None, np.empty(1, object))
    file.close()


def test_names_and_ids(numbers):
    file = File.open(numbers)
    raised(KeyError, file.att, 0, 0, "none", code=-43)
    raised(KeyError, file.atts, 0, 9, code=-49)
    raised(NetCDFError, file.group, 9)
    raised(TypeError, file.type_info, 999, code=-45)
    raised(TypeError, file.att, 0, 0, b"none")
    file.close()
    raised(NetCDFError, _zonda.check_name, "a/b", code=-59)
    _zonda.check_name("ä b")


def test_writing_what_is_open_for_reading(tmp_path, numbers):
    # The codes are the reference's, which refuses them late in an HDF5 file.
    file = File.open(numbers)
    raised(OSError, file.put, 0, 0, (0, 0), (1, 1), None, np.zeros((1, 1), "f4"), code=-101)
    file.close()
    path = tmp_path / "classic.nc"
    file = File.create(path, "CDF-2")
    file.def_var(0, "v", 5, (file.def_dim(0, "n", 2),))
    file.close()
    file = File.open(path)
    raised(PermissionError, file.put, 0, 0, (0,), (1,), None, np.zeros(1, "f4"), code=-37)
    file.close()


def test_a_closed_file(numbers):
    file = File.open(numbers)
    file.close()
    file.close()
    assert not file.is_open
    for call in [lambda: file.group(0), lambda: file.atts(0, 0), file.sync, lambda: file.chunks(0, 0)]:
        raised(ValueError, call, code=-33)


def test_damage_tells_its_place(numbers):
    file = File.open(numbers)
    _, address, length, _ = file.chunks(0, 0)[3]
    file.close()
    data = bytearray(numbers.read_bytes())
    data[address : address + length] = b"\xff" * length
    numbers.write_bytes(data)
    file = File.open(numbers)
    out = np.zeros((20, 30), "f4")
    error = raised(NetCDFError, file.get, 0, 0, (0, 0), (20, 30), None, out)
    assert error.path == str(numbers) and error.offset == address
    # What is not damaged can be read.
    file.get(0, 0, (19, 29), (1, 1), None, out[:1, :1].copy())
    file.close()


def test_a_file_that_nobody_closed_is_closed(tmp_path, monkeypatch):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    path = tmp_path / "dropped.nc"
    file = File.create(path, "NETCDF4")
    file.put(0, file.def_var(0, "v", 4, ()), (), (), None, np.array(7, "i4"))
    del file
    gc.collect()
    assert not unraisable
    file = File.open(path)
    out = np.zeros((), "i4")
    file.get(0, 0, (), (), None, out)
    assert out == 7
    file.close()
