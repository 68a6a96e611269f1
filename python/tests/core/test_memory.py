"""Memory of large arrays, used again."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

from zonda import _memory

SHAPE = (3, 1000, 1000)


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    _memory._kept.clear()
    yield
    _memory._kept.clear()


def test_an_array_is_like_that_of_numpy():
    for dtype in ("f4", "i8", "S5", np.dtype([("a", "f4"), ("b", "i8")]), "M8[s]"):
        array = _memory.empty(SHAPE, dtype)
        assert (array.shape, array.dtype) == (SHAPE, np.dtype(dtype))
        assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
        array[...] = np.zeros((), dtype)
    assert _memory.empty((2, 3), "f4").base is None
    assert _memory.empty((0, 10**9), "f4").size == 0
    with pytest.raises((MemoryError, ValueError, OverflowError)):
        _memory.empty((1 << 40, 1 << 20), "f8")


def test_memory_comes_back_when_the_last_view_is_gone():
    array = _memory.empty(SHAPE, "f8")
    array[:] = 7
    view = array[1, ::2].T
    del array
    gc.collect()
    assert not _memory._kept
    other = _memory.empty(SHAPE, "f8")
    other[:] = 8
    assert (view == 7).all()
    del view, other
    gc.collect()
    assert len(_memory._kept) == 2
    first = _memory.empty(SHAPE, "f8")
    second = _memory.empty(SHAPE, "f8")
    assert not _memory._kept and not np.shares_memory(first, second)


def test_not_more_than_the_limit_is_kept(monkeypatch):
    monkeypatch.setattr(_memory, "KEPT_BYTES", 60 << 20)
    arrays = [_memory.empty(SHAPE, "f8") for _ in range(5)]  # 24 MB each
    del arrays
    gc.collect()
    assert 0 < sum(map(len, _memory._kept)) <= 60 << 20
    too_long = _memory.empty((9, 1000, 1000), "f8")
    del too_long
    gc.collect()
    assert sum(map(len, _memory._kept)) <= 60 << 20


def test_a_much_longer_block_is_left_for_a_longer_array():
    long = _memory.empty((8, 1000, 1000), "f8")
    del long
    gc.collect()
    short = _memory.empty((1, 1000, 1000), "f8")
    assert len(_memory._kept) == 1
    again = _memory.empty((7, 1000, 1000), "f8")
    assert not _memory._kept
    del short, again


def test_threads_never_share_a_block():
    failures = []

    def work(number: int) -> None:
        for turn in range(50):
            array = _memory.empty((1 << 20,), "f8")
            value = number * 1000 + turn
            array[:] = value
            if not (array == value).all():
                failures.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_forked_child_has_its_own():
    array = _memory.empty(SHAPE, "f8")
    array[:] = 1
    del array
    gc.collect()
    child = os.fork()
    if child == 0:
        mine = _memory.empty(SHAPE, "f8")
        mine[:] = 2
        os._exit(0 if (mine == 2).all() else 1)
    mine = _memory.empty(SHAPE, "f8")
    mine[:] = 3
    _, status = os.waitpid(child, 0)
    assert status == 0 and (mine == 3).all()
