# SPDX-License-Identifier: MIT OR Apache-2.0
"""Automatic masks and scaling by netCDF4-python's rules, in as few passes over the data as they allow.

Which attributes count, what is masked, and the types of results is decided in Rust (``zonda_cf::values``, the profile
``NetCdf4Python``), once per variable and set of attributes. Here NumPy does what the rules say: the comparison runs over
blocks that fit the cache, and a mask exists only from the first masked element on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ma

from .. import _memory
from ._tables import default_fillvals, plain

# Elements of a block: one or two megabytes, which caches hold. With 2^15 the calls cost half as much as the
# comparisons (40 million floats: 29 ms, 19 ms with 2^18, the whole at once 39 ms).
BLOCK = 1 << 18


def same_values(a: Any, b: Any) -> bool:
    """Whether a cast kept all values (NaN is NaN)."""
    try:
        return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())
    except Exception:  # types that cannot be compared or have no NaN
        try:
            return bool((a == b).all())
        except Exception:
            return False


# NumPy 1 looks at the values of single numbers when it chooses the type of a result.
BY_VALUE = int(np.__version__.split(".")[0]) < 2
SCALES = ("scale_factor", "add_offset")


class Rules:
    """What an array of a variable is masked with, and how it is scaled.

    Parameters
    ----------
    found : what `File.netcdf4_rules` gives
    attribute : the value of an attribute of the variable, None if there is none
    dtype : of the variable
    """

    __slots__ = (
        "dtype", "taken", "missing", "fill", "fill_is_default", "fill_counts", "least", "most", "factor", "offset",
        "product", "result", "converts", "warned", "scales", "text", "scale_factor", "add_offset", "encoding", "fault",
    )  # fmt: skip

    def __init__(self, found: tuple[Any, ...], attribute: Callable[[str], Any], dtype: np.dtype) -> None:
        taken, missing, fill, least, most, self.factor, self.offset, product, result, unused, left = found
        self.dtype = dtype
        self.encoding = attribute("_Encoding")
        # As they are in the file: packing undoes them.
        self.scale_factor, self.add_offset = attribute("scale_factor"), attribute("add_offset")
        # The type that signed integers are viewed as, if they are meant unsigned.
        self.taken = None if dtype.kind != "i" or taken == plain(dtype) else taken
        self.missing = list(missing)
        self.fill, self.fill_is_default, self.fill_counts = _single(fill[0]), fill[1], fill[2]
        self.least, self.most = _single(least), _single(most)
        self.product, self.result = np.dtype(product), np.dtype(result)
        # Both are there, and change nothing: values get the type of the factor all the same.
        is_packed = self.scale_factor is not None and self.add_offset is not None
        self.converts = is_packed and self.factor is None and self.offset is None
        self.warned = [
            f"WARNING: {name} not used since it\ncannot be safely cast to variable data type"
            for name in unused
            if name not in SCALES
        ]
        self.text = any(name in left for name in SCALES)
        self.scales = not any(name in unused for name in SCALES) and (not self.text or self._are_numbers())
        self.fault: Exception | None = None
        for name in left:
            if name in SCALES or dtype.kind not in "iufcS":
                continue
            try:
                # What can only be an error is one of NumPy's, to the word.
                np.array(np.array(attribute(name)), dtype)
            except ValueError:
                pass
            except (OverflowError, TypeError) as error:
                # Of no consequence for who wants no masks.
                self.fault = error

    def _are_numbers(self) -> bool:
        """Whether text is a number to Python."""
        try:
            for factor in (self.scale_factor, self.add_offset):
                if factor is not None:
                    float(factor)
        except (TypeError, ValueError):
            return False
        return True

    def as_meant(self, data: np.ndarray) -> np.ndarray:
        """Signed integers that are meant unsigned, as such (`_Unsigned`)."""
        if self.taken is None or data.dtype.kind != "i":
            return data
        # Single elements have the byte order of the machine, arrays that of the file.
        return data.view(data.dtype.byteorder + self.taken)

    def masked(self, data: Any, always_mask: bool) -> Any:
        """Data as a masked array: missing, never written and invalid values masked."""
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        for text in self.warned:
            warnings.warn(text, stacklevel=4)
        data = self.as_meant(data)
        mask, is_missing = self._mask(data)
        if mask is None:
            if not always_mask:
                return np.asarray(data)
            return ma.masked_array(data)
        # The fill value of the result is that of the first rule that met a value.
        fill = self.missing[0] if is_missing else self.fill
        if not is_missing and self.fill_is_default and plain(self.dtype) in ("i1", "u1"):
            fill = int(fill)
        result = ma.masked_array(data, mask=mask, fill_value=fill)
        return result[()] if data.shape == () and result.mask.all() else result

    def _mask(self, data: Any) -> tuple[np.ndarray | None, bool]:
        """The mask, None if nothing is masked, and whether it is there for a missing value."""
        fill, low, high = self.fill if self.fill_counts else None, self.least, self.most
        array = np.asarray(data)
        found: np.ndarray | None = None
        is_missing = False
        if array.flags.c_contiguous and array.size > BLOCK:
            flat = array.reshape(-1)
            pieces = range(0, flat.size, BLOCK)
            size = BLOCK
        else:
            flat, pieces, size = array, range(1), 0
        for begin in pieces:
            part = flat[begin : begin + size] if size else flat
            mask: Any = None
            for value in self.missing:
                equal = _equal(part, value)
                if equal.any():
                    is_missing = True
                    mask = equal if mask is None else mask | equal
            if fill is not None:
                equal = _equal(part, fill)
                if equal.any():
                    mask = equal if mask is None else mask | equal
            for outside, bound in ((np.less, low), (np.greater, high)):
                if bound is not None:
                    out = outside(part, bound)
                    if out.any():
                        mask = out if mask is None else mask | out
            if mask is None:
                continue
            if not size:
                found = np.asarray(mask)
                break
            if found is None:
                found = np.zeros(flat.size, np.bool_)
            found[begin : begin + size] = mask
        if found is not None:
            found = found.reshape(array.shape)
        return found, is_missing

    def scaled(self, data: Any) -> Any:
        """Data times `scale_factor` plus `add_offset`."""
        if not self.scales:
            return data
        if self.text:
            # NumPy's error.
            data = data if self.scale_factor is None else data * self.scale_factor
            return data if self.add_offset is None else data + self.add_offset
        if self.factor is not None or self.offset is not None:
            return self._linear(data)
        return data.astype(self.result) if self.converts else data

    def _linear(self, data: Any) -> Any:
        """`data * factor + offset`; one of them may be None."""
        factor, offset = self.factor, self.offset
        mask = data.mask if ma.isMA(data) else None
        raw = np.asarray(data)
        if raw.dtype.kind not in "iuf" or raw.ndim == 0:
            data = data if factor is None else data * factor
            return data if offset is None else data + offset
        if self.product != self.result and factor is not None:
            result = raw * factor
            result = result + offset
        else:
            result = _memory.empty(raw.shape, self.result)
            _in_blocks(raw, result, factor, offset)
        if mask is None:
            return result
        if mask is ma.nomask:
            return ma.masked_array(result)
        # Under the mask the data stay what they were, as operations of masked arrays leave them.
        np.copyto(result, raw, where=mask, casting="unsafe")
        return ma.masked_array(result, mask=mask, fill_value=data.fill_value)


def _single(numbers: np.ndarray) -> Any:
    """One number as such, None of none."""
    return None if numbers.size == 0 else numbers[0] if numbers.size == 1 else numbers


def _equal(part: np.ndarray, value: np.ndarray) -> Any:
    """Where elements are a value; NaN is NaN."""
    if value.dtype.kind in "fc" and np.isnan(value):
        return np.isnan(part)
    return np.asarray(part == value)


def _in_blocks(raw: np.ndarray, result: np.ndarray, factor: Any, offset: Any) -> None:
    if raw.flags.c_contiguous and raw.size > BLOCK:
        flat, out = raw.reshape(-1), result.reshape(-1)
        bounds = [(begin, begin + BLOCK) for begin in range(0, flat.size, BLOCK)]
    else:
        flat, out, bounds = raw, result, [(0, 0)]
    for begin, end in bounds:
        part, to = (flat[begin:end], out[begin:end]) if end else (flat, out)
        if factor is None:
            np.add(part, offset, out=to)
        else:
            np.multiply(part, factor, out=to)
            if offset is not None:
                np.add(to, offset, out=to)


def packed(data: Any, rules: Rules, attribute: Callable[[str], Any], dtype: np.dtype) -> Any:
    """Values as the file stores them: unscaled, of the variable's type, missing ones filled in.

    Raises
    ------
    RuntimeError
        Masked values, and several `missing_value`s of which none is the one to write.
    """
    factor, offset = rules.scale_factor, rules.add_offset
    if factor is not None or offset is not None:
        if factor is not None and offset is not None:
            data = (data - offset) / factor
        elif factor is not None:
            data = data / factor
        else:
            data = data - offset
        if dtype.kind in "iu":
            data = np.around(data)
    if dtype != data.dtype:
        data = data.astype(dtype)
    if not ma.isMA(data):
        return data
    missing = attribute("missing_value")
    if missing is not None:
        if np.all(np.isin(data.data[data.mask], missing)):
            return data.data
        if np.ndim(missing) != 0:
            raise RuntimeError(
                "cannot assign fill_value for masked array when missing_value attribute is not a scalar"
            )
        fill = missing
    else:
        fill = attribute("_FillValue")
        if fill is None:
            fill = default_fillvals[plain(dtype)]
    if data.shape == (1,) and data.mask.all():
        return np.array([fill], dtype)
    return data.filled(fill_value=fill)


def quantized(data: Any, least_significant_digit: int) -> Any:
    """Data rounded to a power of two that keeps a decimal place: `around(scale * data) / scale`."""
    exponent = np.log10(10.0**-least_significant_digit)
    exponent = int(np.floor(exponent)) if exponent < 0 else int(np.ceil(exponent))
    scale = 2.0 ** np.ceil(np.log2(10.0**-exponent))
    rounded = np.around(scale * data) / scale
    if ma.isMA(rounded):
        rounded.set_fill_value(data.fill_value)
    return rounded
