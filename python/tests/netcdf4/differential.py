# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same call on the netCDF4 module and on zonda.netcdf4: equal results, or errors of a kind."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ma

FORMATS = ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
ALL_TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "S1")
CLASSIC_TYPES = ("i1", "i2", "i4", "f4", "f8", "S1")


# Errors of the netCDF4 module about itself, not about the call: a row that is broadcast to listed rows of an
# unlimited dimension runs out of its own tuple; an integer beside a negative step runs out of its array's axes.
REFERENCE_FAULTS = ("tuple index out of range", "too many indices for array")


def types_of(format: str) -> tuple[str, ...]:
    return ALL_TYPES if format in ("NETCDF4", "NETCDF3_64BIT_DATA") else CLASSIC_TYPES


def outcome(call: Callable[[], Any]) -> tuple[str, Any, list[str]]:
    """What a call does: its result or exception, and its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found: tuple[str, Any] = ("gives", call())
        except Exception as error:
            found = ("raises", error)
    return (*found, sorted({str(w.message) for w in told if issubclass(w.category, UserWarning)}))


def same_value(a: Any, b: Any) -> str:
    """What differs between two results, "" if nothing."""
    if (a is ma.masked) != (b is ma.masked):
        return f"masked: {a!r} and {b!r}"
    if a is ma.masked:
        return ""
    if ma.isMA(a) != ma.isMA(b):
        return f"one is a masked array: {type(a)} and {type(b)}"
    if isinstance(a, (list, tuple, dict, str, bytes, int, bool, type(None))):
        return "" if type(a) is type(b) and a == b else f"{a!r} and {b!r}"
    if not hasattr(a, "dtype"):
        return "" if a == b else f"{a!r} and {b!r}"
    if not hasattr(b, "dtype") or a.dtype != b.dtype or np.shape(a) != np.shape(b):
        return f"{type(a)} {getattr(a, 'dtype', '')}{np.shape(a)} and {type(b)} {getattr(b, 'dtype', '')}{np.shape(b)}"
    if isinstance(a, np.ndarray) != isinstance(b, np.ndarray):
        return f"{type(a)} and {type(b)}"
    if a.dtype == object:
        for x, y in zip(np.ravel(a), np.ravel(b), strict=True):
            told = same_value(x, y)
            if told:
                return told
        return ""
    if ma.isMA(a):
        if not np.array_equal(ma.getmaskarray(a), ma.getmaskarray(b)):
            return "masks"
        if (a.mask is ma.nomask) != (b.mask is ma.nomask):
            return "only one has a mask"
        # Scaled data keep the fill value in the type of the packed ones there.
        if not np.array_equal(a.fill_value, b.fill_value, equal_nan=a.dtype.kind == "f"):
            return f"fill values {a.fill_value!r} and {b.fill_value!r}"
        a, b = a.data, b.data
    if a.dtype.names:  # what is between the fields may be anything
        return "" if np.array_equal(a, b) else f"values {a!r} and {b!r}"
    # By bytes: NaN is NaN, and zeros have signs.
    return "" if np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes() else f"values {a!r} and {b!r}"


def compare(what: str, reference: Callable[[], Any], ours: Callable[[], Any]) -> tuple[str, Any, Any]:
    """Calls both.

    Raises
    ------
    AssertionError
        They differ: in value, type, warnings, or in that one raises. An exception of ours may be of a class
        that derives from the reference's.
    """
    kind, value, told = outcome(reference)
    if kind == "raises" and str(value).startswith(REFERENCE_FAULTS):
        return kind, value, None
    our_kind, our_value, our_told = outcome(ours)
    assert kind == our_kind, f"{what}: netCDF4 {kind} {value!r}, zonda {our_kind} {our_value!r}"
    if kind == "raises":
        # A wrong index or shape is told by one or the other.
        lenient = isinstance(value, (IndexError, ValueError)) and isinstance(our_value, (IndexError, ValueError))
        assert lenient or isinstance(our_value, type(value)), f"{what}: {value!r} and {our_value!r}"
    else:
        differs = same_value(value, our_value)
        assert not differs, f"{what}: {differs}"
        assert told == our_told, f"{what}: warnings {told} and {our_told}"
    return kind, value, our_value


def random_index(rng: random.Random, length: int, beyond: int = 0) -> Any:
    """An index of one axis: some are wrong."""
    reach = length + beyond
    kind = rng.randrange(9)
    if kind == 0:
        return rng.randint(-length - 1, reach)
    if kind in (1, 2, 3):
        ends = [None, *range(-length - 2, reach + 3)]
        step = rng.choice([None, 1, 1, 2, 3, -1, -2, 7])
        return slice(rng.choice(ends), rng.choice(ends), step)
    if kind == 4:
        return [rng.randint(-length, max(length - 1, 0)) for _ in range(rng.randint(1, 5))] if length else []
    if kind == 5:
        return np.array(sorted(rng.sample(range(max(reach, 1)), rng.randint(0, min(reach, 5)))), dtype=np.int64)
    if kind == 6:
        return np.array([rng.random() < 0.5 for _ in range(length)], dtype=bool)
    if kind == 7:
        return rng.choice([np.int32(0), np.uint8(0), 0.0, "0", np.array(0), True])
    return slice(None)


def random_key(rng: random.Random, shape: tuple[int, ...], beyond: int = 0) -> Any:
    """An index of a variable."""
    if not shape:
        return rng.choice([Ellipsis, slice(None), 0, -1, ()])
    number = rng.choice([len(shape)] * 4 + [1, len(shape) - 1])
    parts = [random_index(rng, shape[axis], beyond if axis == 0 else 0) for axis in range(max(number, 1))]
    if rng.random() < 0.2:
        parts[rng.randrange(len(parts))] = Ellipsis
    if len(parts) == 1 and rng.random() < 0.7:
        return parts[0]
    return tuple(parts)


def random_values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a type, with few different ones so that masks meet some."""
    if dtype == "S1":
        return rng.choice(np.array([b"a", b"b", b"", b"z"], "S1"), shape)
    values = np.asarray(rng.integers(0, 12, shape)).astype(dtype)
    if dtype[0] == "f":
        values = np.where(rng.random(shape) < 0.1, np.nan, values / 4)
    elif dtype[0] == "i":
        values = values - values.dtype.type(6)
    return values.astype(dtype)
