# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module `zonda._zonda`: every call, every type, every format; read and written by netCDF4-python and h5py."""

from __future__ import annotations

import gc
import io
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from zonda import errors
from zonda._zonda import (
    File,
    check_name,
    default_fill,
    detect,
    detect_bytes,
    filter_id,
    filter_name,
    get_chunk_cache,
    has_filter,
    set_chunk_cache,
    strerror,
)

FORMATS = {"CDF-1": "NETCDF3_CLASSIC", "CDF-2": "NETCDF3_64BIT_OFFSET", "CDF-5": "NETCDF3_64BIT_DATA",
           "NETCDF4": "NETCDF4", "NETCDF4_CLASSIC": "NETCDF4_CLASSIC"}  # fmt: skip
NUMBERS = {1: "i1", 3: "i2", 4: "i4", 5: "f4", 6: "f8", 7: "u1", 8: "u2", 9: "u4", 10: "i8", 11: "u8"}
OLD = (1, 3, 4, 5, 6)
ROOT, GLOBAL = 0, -1


def types_of(format: str) -> tuple[int, ...]:
    return tuple(NUMBERS) if format in ("CDF-5", "NETCDF4") else OLD


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "file.nc")


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_of_all_types_in_all_formats(path: str, format: str) -> None:
    file = File.create(path, format)
    assert file.format == format and file.is_writable and file.in_define_mode
    time, x = file.def_dim(ROOT, "time", None), file.def_dim(ROOT, "x", 4)
    variables = {t: file.def_var(ROOT, f"v{t}", t, (time, x)) for t in types_of(format)}
    text = file.def_var(ROOT, "text", 2, (x,))
    file.put_att(ROOT, GLOBAL, "title", 2, "Größe".encode())
    for t, var in variables.items():
        file.put_att(ROOT, var, "some", t, np.array([1, 2, 3]))
    file.enddef()
    for t, var in variables.items():
        assert file.put(ROOT, var, (0, 0), (3, 4), None, values(NUMBERS[t], (3, 4))) == 0
    file.put(ROOT, text, (0,), (4,), None, np.array([b"a", b"b", b"", b"d"], "S1"))
    file.close()
    file.close()
    assert not file.is_open

    with netCDF4.Dataset(path) as other:
        assert other.data_model == FORMATS[format] and other.title == "Größe"
        assert len(other.dimensions["time"]) == 3 and other.dimensions["time"].isunlimited()
        for t in variables:
            found = other[f"v{t}"]
            assert found.dtype == NUMBERS[t] and found.some.tolist() == [1, 2, 3]
            np.testing.assert_array_equal(found[:], values(NUMBERS[t], (3, 4)))
    assert detect(path) == (format if format.startswith("CDF") else "HDF5")

    file = File.open(path)
    name, _, parent, groups, dims, found, types = file.group(ROOT)
    assert (name, parent, groups, types) == ("/", None, [], [])
    assert dims == [(time, "time", 3, True), (x, "x", 4, False)]
    assert [entry[1] for entry in found] == [f"v{t}" for t in variables] + ["text"]
    assert file.dim(ROOT, x) == ("x", 4, False, ROOT)
    for t, var in variables.items():
        for dtype in ("f8", "f4", "i4", "u8"):  # converted
            out = np.zeros((2, 2), dtype)
            file.get(ROOT, var, (1, 0), (2, 2), (1, 2), out)
            np.testing.assert_array_equal(out, values(NUMBERS[t], (3, 4))[1:, ::2].astype(dtype))
    out = np.empty(4, "S1")
    file.get(ROOT, text, (0,), (4,), None, out)
    assert out.tolist() == [b"a", b"b", b"", b"d"]
    assert file.att(ROOT, GLOBAL, "title") == (2, "Größe".encode())
    assert file.att_names(ROOT, text) == []


def test_values_that_do_not_fit_are_counted(path: str) -> None:
    file = File.create(path, "NETCDF4")
    x = file.def_dim(ROOT, "x", 3)
    var = file.def_var(ROOT, "v", 1, (x,))
    assert file.put(ROOT, var, (0,), (3,), None, np.array([1.0, 300.0, -500.0])) == 2
    assert file.put(ROOT, var, (0,), (3,), None, np.array([1, -1, 2], "i1")) == 0
    assert file.get(ROOT, var, (0,), (3,), None, np.empty(3, "u8")) == 1


def test_groups_types_and_objects(path: str) -> None:
    file = File.create(path, "NETCDF4")
    x = file.def_dim(ROOT, "x", 3)
    sub = file.def_group(ROOT, "sub")
    strings = file.def_var(sub, "strings", 12, (x,))
    pair = file.def_compound(ROOT, "pair", 16, [("a", 0, 4, ()), ("b", 8, 5, (2,))])
    pairs = file.def_var(ROOT, "pairs", pair, (x,))
    ragged = file.def_vlen(ROOT, "ragged", 3)
    rows = file.def_var(ROOT, "rows", ragged, (x,))
    colour = file.def_enum(ROOT, "colour", 7, [("red", 1), ("blue", 255)])
    colours = file.def_var(ROOT, "colours", colour, (x,))
    blob = file.def_opaque(ROOT, "blob", 5)
    blobs = file.def_var(ROOT, "blobs", blob, (x,))
    named = file.def_compound(ROOT, "named", 32, [("id", 0, 4, ()), ("name", 8, 12, ()), ("row", 16, ragged, ())])
    both = file.def_var(ROOT, "both", named, (x,))
    texts = np.array(["", "ü", "long " * 100], object)
    file.put_objects(sub, strings, (0,), (3,), None, texts)
    dtype = file.type_info(pair)["dtype"]
    table = np.zeros(3, dtype)
    table["a"], table["b"] = [1, 2, 3], [[1, 2], [3, 4], [5, 6]]
    file.put(ROOT, pairs, (0,), (3,), None, table)
    lists = np.empty(3, object)
    lists[:] = [np.array([], "i2"), np.array([1], "i2"), np.arange(9, dtype="i2")]
    file.put_objects(ROOT, rows, (0,), (3,), None, lists)
    file.put(ROOT, colours, (0,), (3,), None, np.array([1, 255, 1], "u1"))
    file.put(ROOT, blobs, (0,), (3,), None, np.frombuffer(b"abcde" * 3, "V5"))
    records = np.empty(3, object)
    records[:] = [(1, "one", [1]), {"id": 2, "name": "two", "row": []}, (3, None, np.arange(3))]
    file.put_objects(ROOT, both, (0,), (3,), None, records)
    file.put_att(ROOT, GLOBAL, "words", 12, ["a", "b"])
    file.put_att(ROOT, GLOBAL, "row", ragged, [np.array([7, 8])])
    file.put_att(ROOT, GLOBAL, "pair", pair, table[1:2])
    file.close()

    with netCDF4.Dataset(path) as other:
        assert other["sub/strings"][:].tolist() == texts.tolist()
        assert [row.tolist() for row in other["rows"][:]] == [row.tolist() for row in lists]
        assert other["pairs"][:]["a"].tolist() == [1, 2, 3] and other["pairs"][:]["b"][2].tolist() == [5, 6]
        assert other["colours"][:].data.tolist() == [1, 255, 1] and other.words == ["a", "b"]

    file = File.open(path)
    assert file.group(sub)[:3] == ("sub", "/sub", ROOT)
    out = np.empty(3, object)
    file.get_objects(sub, strings, (0,), (3,), None, out)
    assert out.tolist() == texts.tolist()
    file.get_objects(ROOT, rows, (2,), (1,), None, out[:1])
    assert out[0].dtype == "i2" and out[0].tolist() == list(range(9))
    # As a compiler lays fields out, which need not be as they were declared.
    back = np.empty(3, file.type_info(pair)["dtype"])
    file.get(ROOT, pairs, (0,), (3,), None, back)
    assert back.itemsize == 12 and (back["a"] == table["a"]).all() and (back["b"] == table["b"]).all()
    file.get_objects(ROOT, both, (0,), (3,), None, out)
    assert [(one[0], one[1], one[2].tolist()) for one in out] == [(1, "one", [1]), (2, "two", []), (3, "", [0, 1, 2])]
    raw = np.empty(3, "V5")
    file.get(ROOT, blobs, (0,), (3,), None, raw)
    assert raw[0].tobytes() == b"abcde"
    info = file.type_info(colour)
    assert (info["class"], info["base"], info["members"]) == ("enum", 7, [("red", 1), ("blue", 255)])
    assert file.type_info(named)["dtype"] is None and file.type_info(12)["name"] == "string"
    attributes = {name: value for name, _, value in file.atts(ROOT, GLOBAL)}
    assert attributes["words"] == ["a", "b"] and attributes["row"][0].tolist() == [7, 8]
    assert attributes["pair"]["a"].tolist() == [2]


def test_storage_of_variables(path: str) -> None:
    file = File.create(path, "NETCDF4")
    y, x = file.def_dim(ROOT, "y", 6), file.def_dim(ROOT, "x", 8)
    var = file.def_var(ROOT, "v", 5, (y, x))
    file.def_var_chunking(ROOT, var, (3, 8))
    file.def_var_deflate(ROOT, var, 4, True)
    file.def_var_fletcher32(ROOT, var, True)
    file.def_var_endian(ROOT, var, "big")
    file.def_var_fill(ROOT, var, -9.0)
    plain = file.def_var(ROOT, "plain", 4, (y,))
    file.def_var_chunking(ROOT, plain, None)
    file.def_var_fill(ROOT, plain, None)
    zstd = file.def_var(ROOT, "zstd", 4, (y,))
    file.def_var_filter(ROOT, zstd, "zstd", [3])
    round = file.def_var(ROOT, "round", 5, (y,))
    file.def_var_quantize(ROOT, round, "BitRound", 7)
    assert file.chunks(ROOT, var) == []
    file.put(ROOT, var, (3, 0), (3, 8), None, np.ones((3, 8), "f4"))
    (start, address, stored, mask), = file.chunks(ROOT, var)
    assert (start, mask) == ((3, 0), 0) and address > 0
    info = file.var_info(ROOT, var)
    assert info["shape"] == (6, 8) and info["chunks"] == (3, 8) and info["storage"] == "chunked" and info["endian"] == "big"
    assert {filter[1] for filter in info["filters"]} == {"shuffle", "deflate", "fletcher32"} and info["fill"].tolist() == [-9.0]
    assert file.var_info(ROOT, plain)["storage"] == "contiguous" and file.var_info(ROOT, plain)["no_fill"]
    assert file.var_info(ROOT, zstd)["filters"] == [(32015, "zstd", (3,))]
    assert file.var_info(ROOT, round)["quantize"] == (3, 7)
    file.set_var_chunk_cache(ROOT, var, 1 << 20, 101, 0.5)
    assert file.var_info(ROOT, var)["chunk_cache"] == (1 << 20, 101, 0.5)
    file.close()
    # What lies there is the chunk: the checksum of the whole is at its end.
    raw = Path(path).read_bytes()[address : address + stored]
    import h5py

    with h5py.File(path) as other:
        offset, size = other["v"].id.get_chunk_info(0).byte_offset, other["v"].id.get_chunk_info(0).size
        assert (offset, size) == (address, stored) == (address, len(raw))
        assert (other["v"][:3] == -9).all() and (other["v"][3:] == 1).all()


def test_files_in_memory_and_objects(path: str, tmp_path: Path) -> None:
    for format in ("CDF-2", "NETCDF4"):
        made = File.create("name.nc", format, in_memory=True)
        x = made.def_dim(ROOT, "x", 1000)
        var = made.def_var(ROOT, "v", 6, (x,))
        made.enddef()
        made.put(ROOT, var, (0,), (1000,), None, np.arange(1000.0))
        data = made.take_bytes()
        assert not made.is_open and not Path("name.nc").exists() and detect_bytes(data) is not None
        with netCDF4.Dataset("x", memory=data) as other:
            assert other["v"][999] == 999
        kept = tmp_path / "kept.nc"
        kept.write_bytes(data)
        for file in (
            File.open_bytes(data),
            File.open_bytes(bytearray(data)),
            File.open_bytes(memoryview(data)),
            File.open_object(io.BytesIO(data)),
            File.open_object(kept.open("rb")),
        ):
            out = np.empty(1000)
            file.get(ROOT, var, (0,), (1000,), None, out)
            assert (out == np.arange(1000)).all()
            with pytest.raises(errors.NetCDFError):
                file.put_att(ROOT, GLOBAL, "a", 2, b"b")
            file.close()
        file = File.open_bytes(data, write=True)
        file.put(ROOT, var, (0,), (1,), None, np.array([5.0]))
        assert File.open_bytes(file.take_bytes()).group(ROOT)[5][0][1] == "v"


def test_what_an_object_raises_comes_out(path: str) -> None:
    class Broken(io.BytesIO):
        def read(self, n: int = -1) -> bytes:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        File.open_object(Broken(b"CDF\x01" + bytes(1000)))


def test_what_is_raised_in_one_thread_is_for_that_one(path: str) -> None:
    file = File.create(path, "NETCDF4")
    var = file.def_var(ROOT, "v", 6, (file.def_dim(ROOT, "x", 1000),))
    file.def_var_chunking(ROOT, var, None)
    file.put(ROOT, var, (0,), (1000,), None, np.arange(1000.0))
    file.close()

    class Odd(io.FileIO):
        def read(self, n: int = -1) -> bytes:
            if threading.current_thread().name == "odd":
                raise ZeroDivisionError("mine")
            return super().read(n)

    file = File.open_object(Odd(path))
    file.group(ROOT)
    file.get(ROOT, var, (0,), (1000,), None, np.empty(1000))
    met: list[type[BaseException]] = []

    def work() -> None:
        for _ in range(300):
            try:
                file.get(ROOT, var, (0,), (1000,), None, np.empty(1000))
            except Exception as error:  # noqa: BLE001
                met.append(type(error))

    threads = [threading.Thread(target=work, name=name) for name in ("odd", "even", "even", "even")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [ZeroDivisionError] * 300


def test_errors_say_what_and_where(path: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        File.open(str(tmp_path / "none.nc"))
    assert caught.value.code == 2 and caught.value.errno == 2 and caught.value.filename == str(tmp_path / "none.nc")
    bad = tmp_path / "bad.nc"
    bad.write_bytes(b"no such format")
    with pytest.raises(OSError, match="Unknown file format") as caught:
        File.open(str(bad))
    assert caught.value.code == -51 and caught.value.path == str(bad)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.code) == (type(caught.value), str(caught.value), -51)
    file = File.create(path, "NETCDF4")
    x = file.def_dim(ROOT, "x", 3)
    var = file.def_var(ROOT, "v", 5, (x,))
    text = file.def_var(ROOT, "text", 2, (x,))
    out = np.empty(3)
    for wrong, kind in {
        lambda: file.get(ROOT, var, (1,), (3,), None, out): IndexError,
        lambda: file.get(ROOT, var, (4,), (3,), None, out): IndexError,
        lambda: file.get(ROOT, 99, (0,), (3,), None, out): KeyError,
        lambda: file.get(ROOT, text, (0,), (3,), None, out): TypeError,
        lambda: file.att(ROOT, var, "none"): KeyError,
        lambda: file.def_dim(ROOT, "x", 4): errors.NetCDFError,
        lambda: file.def_dim(ROOT, "a/b", 4): errors.NetCDFError,
        lambda: File.create(path, "NETCDF4", exclusive=True): FileExistsError,
        lambda: file.group(7): errors.NetCDFError,
        lambda: file.type_info(99): TypeError,
        lambda: file.def_var_filter(ROOT, var, "none such", []): errors.NetCDFError,
        lambda: check_name("/"): errors.NetCDFError,
    }.items():
        with pytest.raises(kind) as caught:
            wrong()
        assert isinstance(caught.value, errors.NetCDFError), caught.value
        assert str(caught.value).startswith(strerror(caught.value.code).split(" (os")[0]), caught.value
    file.close()
    with pytest.raises(ValueError, match="Not a valid ID") as caught:
        file.group(ROOT)
    assert caught.value.code == -33
    (tmp_path / "cut.nc").write_bytes(Path(path).read_bytes()[:60])
    with pytest.raises(OSError, match="60 bytes") as caught:
        File.open(str(tmp_path / "cut.nc")).group(ROOT)
    assert caught.value.path == str(tmp_path / "cut.nc")


def test_arrays_that_do_not_fit_are_refused(path: str) -> None:
    file = File.create(path, "NETCDF4")
    x = file.def_dim(ROOT, "x", 4)
    var = file.def_var(ROOT, "v", 6, (x,))
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    odd = np.zeros(33, "u1")[1:].view("f8")
    for wrong, kind in ((np.zeros(8)[::2], ValueError), (np.zeros(3), ValueError), (frozen, ValueError), (odd, ValueError),
                        (np.zeros(4, ">f8"), TypeError), (np.zeros(4, object), TypeError), (np.zeros(4, "U3"), TypeError),
                        (np.zeros(4, "c16"), TypeError), (np.zeros(4, "f2"), TypeError), ([0.0] * 4, TypeError)):  # fmt: skip
        with pytest.raises(kind):
            file.get(ROOT, var, (0,), (4,), None, wrong)
    for start, count, stride in (((0, 0), (4, 1), None), ((0,), (4, 1), None), ((0,), (4,), (1, 1)), ((), (), None)):
        with pytest.raises(ValueError):
            file.get(ROOT, var, start, count, stride, np.zeros(4))
    with pytest.raises((OverflowError, ValueError)):
        file.get(ROOT, var, (-1,), (4,), None, np.zeros(4))
    with pytest.raises(errors.NetCDFError):
        file.get(ROOT, var, (0,), (4,), (0,), np.zeros(4))
    with pytest.raises(IndexError):
        file.get(ROOT, var, (2**63,), (0,), None, np.zeros(0))


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.nc"
    file = File.create(path, "CDF-1")
    file.def_dim(ROOT, "größe", 2)
    file.put_att(ROOT, GLOBAL, "bytes", 2, b"\xff\xfe")
    file.close()
    assert os.path.exists(path)
    file = File.open(os.fsdecode(path))
    assert os.fsencode(file.path) == path and file.group(ROOT)[4][0][1] == "größe"
    assert file.att(ROOT, GLOBAL, "bytes")[1] == b"\xff\xfe"


def test_words_about_filters_and_fill() -> None:
    assert filter_id("zstd") == 32015 and filter_name(32015) == "zstd" and filter_id("none such") is None
    assert has_filter("deflate") and has_filter(32015) and not has_filter(65535)
    for t, dtype in NUMBERS.items():
        assert default_fill(t) == netCDF4.default_fillvals[dtype] and default_fill(t).dtype == dtype
    assert default_fill(2) == b"\0" and default_fill(12) == ""
    before = get_chunk_cache()
    set_chunk_cache(1 << 20, 11, 0.25)
    assert get_chunk_cache() == (1 << 20, 11, 0.25)
    set_chunk_cache(*before)


def test_threads_read_through_an_object_and_others_work(tmp_path: Path) -> None:
    """Nobody who has the GIL waits for one who wants it."""
    path = str(tmp_path / "file.nc")
    file = File.create(path, "NETCDF4")
    x = file.def_dim(ROOT, "x", 400_000)
    var = file.def_var(ROOT, "v", 4, (x,))
    file.def_var_chunking(ROOT, var, (10_000,))
    file.def_var_deflate(ROOT, var, 1, False)
    file.put(ROOT, var, (0,), (400_000,), None, np.arange(400_000, dtype="i4"))
    file.close()

    class Slow(io.FileIO):
        def read(self, n: int = -1) -> bytes:
            threading.Event().wait(0.0005)  # gives the GIL away
            return super().read(n)

    file = File.open_object(Slow(path))
    sums = []

    def work(begin: int) -> None:
        out = np.empty(100_000, "i4")
        file.get(ROOT, var, (begin,), (100_000,), None, out)
        sums.append(int(out[0]) - begin)

    threads = [threading.Thread(target=work, args=(begin,)) for begin in (0, 100_000, 200_000, 300_000) * 2]
    for thread in threads:
        thread.start()
    for _ in range(5):
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    for thread in threads:
        thread.join()
    assert sums == [0] * 8


def test_getters_do_not_wait_for_a_file_with_the_gil(path: str) -> None:
    file = File.create(path, "NETCDF4")
    var = file.def_var(ROOT, "v", 6, (file.def_dim(ROOT, "x", 40_000),))
    file.def_var_chunking(ROOT, var, (500,))
    file.put(ROOT, var, (0,), (40_000,), None, np.arange(40_000.0))
    file.close()

    class Slow(io.FileIO):
        def read(self, n: int = -1) -> bytes:
            threading.Event().wait(0.0005)
            return super().read(n)

    file = File.open_object(Slow(path))
    end = threading.Event()

    def until_the_end(step: Callable[[], object]) -> threading.Thread:
        def work() -> None:
            while not end.is_set():
                step()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def read() -> None:
        file.get(ROOT, var, (0,), (40_000,), None, np.zeros(40_000))

    steps = [read, read, file.sync, lambda: (file.format, file.in_define_mode, file.is_open)]
    threads = [until_the_end(step) for step in steps]
    threading.Event().wait(1)
    end.set()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_a_file_that_nobody_closes_is_closed(path: str) -> None:
    file = File.create(path, "CDF-5")
    var = file.def_var(ROOT, "v", 10, (file.def_dim(ROOT, "x", 3),))
    file.enddef()
    file.put(ROOT, var, (0,), (3,), None, np.array([1, 2, 2**60]))
    del file
    gc.collect()
    with netCDF4.Dataset(path) as found:
        assert found["v"][:].tolist() == [1, 2, 2**60]


def test_write_behind(path: str) -> None:
    file = File.create(path, "NETCDF4", write_behind="mem=1M")
    var = file.def_var(ROOT, "v", 5, (file.def_dim(ROOT, "t", None), file.def_dim(ROOT, "x", 10_000)))
    file.enddef()
    for step in range(50):
        file.put(ROOT, var, (step, 0), (1, 10_000), None, np.full((1, 10_000), step, "f4"))
    assert file.dim(ROOT, 0)[1] == 50
    out = np.empty((1, 10_000), "f4")
    file.get(ROOT, var, (49, 0), (1, 10_000), None, out)
    assert (out == 49).all() and file.write_behind_status()[1] is None
    file.close()
    with pytest.raises(ValueError, match="write_behind"):
        File.create(path, "NETCDF4", write_behind="perhaps")
