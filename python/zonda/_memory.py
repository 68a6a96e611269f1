"""Memory of large arrays that values are read into: used again when the last array in it is gone.

The first touch of fresh memory costs a quarter of what reading a classic array takes: the system clears each page. So memory of an array
of 4 MiB and more comes in blocks of huge pages, and is kept for the next array of about that size. What is kept the system may
take back at any time (``MADV_FREE``), and more than `KEPT_BYTES` is given back at once.
"""

from __future__ import annotations

import math
import mmap
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Bytes from which on an array gets such memory. NumPy's own arrays are on huge pages from here on, too.
LEAST_BYTES = 4 << 20
#: Bytes that are kept for later arrays, at most.
KEPT_BYTES = 256 << 20
_HUGE_PAGE = 2 << 20
#: A block may be longer than what is asked for by this part of it.
_SPARE_PART = 4

_kept: deque[mmap.mmap] = deque()


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.empty`. The array does not own its memory, so that it cannot be resized in place."""
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes < LEAST_BYTES or dtype.hasobject or not hasattr(mmap, "MADV_FREE"):
        return np.empty(shape, dtype)
    block = _take(n_bytes)
    if block is None:
        return np.empty(shape, dtype)
    return np.asarray(_Lease(block, shape, dtype)).view(dtype).reshape(shape)


def _take(n_bytes: int) -> mmap.mmap | None:
    """A block with so many bytes behind the first border of a huge page; None where the system gives none."""
    n_bytes += -n_bytes % _HUGE_PAGE
    for _ in range(len(_kept)):
        try:
            block = _kept.popleft()
        except IndexError:  # Another thread has taken it.
            break
        if n_bytes <= len(block) - _HUGE_PAGE <= n_bytes + n_bytes // _SPARE_PART:
            return block
        _kept.append(block)
    try:
        block = mmap.mmap(-1, n_bytes + _HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError):
        return None  # NumPy says what is wrong.
    _advise(block, "MADV_HUGEPAGE")
    return block


def _give_back(block: mmap.mmap) -> None:
    try:
        while _kept and sum(map(len, tuple(_kept))) + len(block) > KEPT_BYTES:
            _kept.popleft()
        if len(block) <= KEPT_BYTES:
            _advise(block, "MADV_FREE")
            _kept.append(block)
    except (AttributeError, IndexError, RuntimeError, TypeError):
        pass  # Another thread was faster, or Python ends: the block goes.


def _advise(block: mmap.mmap, advice: str) -> None:
    """Not every kernel has it, and values do not depend on it."""
    try:
        block.madvise(getattr(mmap, advice))
    except (AttributeError, OSError):
        pass


class _Lease:
    """A block of memory in the hands of an array and its views, which hold it by their `base`."""

    __slots__ = ("__array_interface__", "block")

    def __init__(self, block: mmap.mmap, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.block = block
        first = np.frombuffer(block, np.uint8).__array_interface__["data"][0]
        # A type of several members has no text form that says all of it: bytes here, and the type by a view.
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (math.prod(shape) * dtype.itemsize,),
            "data": (first + -first % _HUGE_PAGE, False),
        }

    def __del__(self, give_back: Callable[[mmap.mmap], None] = _give_back) -> None:
        # The function is at hand: names of the module may be gone when Python ends.
        give_back(self.block)
