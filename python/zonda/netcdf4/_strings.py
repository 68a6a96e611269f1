# SPDX-License-Identifier: MIT OR Apache-2.0
"""Text to arrays of characters and back."""

from __future__ import annotations

from typing import Any

import numpy as np

RAW = ("none", "None", "bytes")


def _encoding(kind: str, encoding: str | None) -> str:
    if kind not in ("S", "U"):
        raise ValueError("type must string or unicode ('S' or 'U')")
    if encoding is None:
        return "ascii" if kind == "S" else "utf-8"
    return encoding


def stringtoarr(string: Any, NUMCHARS: int, dtype: str = "S") -> np.ndarray:
    """A text as an array of `NUMCHARS` characters, type S1, or U1 for `dtype="U"`; NUL behind it."""
    if dtype not in ("S", "U"):
        raise ValueError("dtype must string or unicode ('S' or 'U')")
    array = np.zeros(NUMCHARS, dtype + "1")
    array[: len(string)] = tuple(string)
    return array


def stringtochar(a: np.ndarray, encoding: str | None = None, n_strlen: int | None = None) -> np.ndarray:
    """An array of texts as one of characters with one more dimension.

    Parameters
    ----------
    a : array of kind S or U
    encoding : of the characters; by default ASCII for S and UTF-8 for U; "none" or "bytes": the bytes as they are
    n_strlen : characters per text, by default the bytes of an element

    Raises
    ------
    ValueError
        Neither S nor U.
    """
    kind = a.dtype.kind
    encoding = _encoding(kind, encoding)
    if n_strlen is None:
        n_strlen = a.dtype.itemsize
    if encoding in RAW:
        return np.frombuffer(a.tobytes(), "S1").copy()
    if encoding == "ascii":
        text = a.tobytes().decode(encoding)
        return np.array(tuple(text), kind + "1").reshape((*a.shape, n_strlen))
    if not a.ndim:
        a = a.reshape(1)
    rows = [element.encode(encoding)[:n_strlen].ljust(n_strlen, b"\0") for element in a.flat]
    return np.frombuffer(b"".join(rows), "S1").reshape((*a.shape, n_strlen)).copy()


def chartostring(b: np.ndarray, encoding: str | None = None) -> np.ndarray:
    """An array of characters as one of texts with one dimension less.

    Parameters
    ----------
    b : array of kind S or U
    encoding : by default ASCII for S and UTF-8 for U; "none" or "bytes" gives an array of kind S

    Raises
    ------
    ValueError
        Neither S nor U.
    """
    kind = b.dtype.kind
    if kind not in ("S", "U"):
        raise ValueError("type must be string or unicode ('S' or 'U')")
    encoding = _encoding(kind, encoding)
    data, width = b.tobytes(), int(b.shape[-1])
    starts = range(0, len(data), width) if width else range(0)
    if encoding in RAW:
        texts = np.array([data[at : at + width] for at in starts], f"S{width}")
    else:
        texts = np.array([data[at : at + width].decode(encoding) for at in starts], f"U{width}")
    return texts.reshape(b.shape[:-1])
