# SPDX-License-Identifier: MIT OR Apache-2.0
"""Automatic masks and scaling: netCDF4-python's rules, in as few passes over the data as they allow.

What to compare with is worked out once per variable and set of attributes (`Rules`). The comparison runs over
blocks that fit the cache, and a mask exists only from the first masked element on.

Why these rules are not those of `zonda_cf::values`, which `zonda view` and the tools have (the NetCDF Users Guide):
they are said in terms of NumPy, and of the NumPy that is installed. An attribute counts if NumPy's cast to the variable's type keeps
its value (the text "5" does); a default fill value is compared by NumPy's promotion; what is scaled has the type that
NumPy gives the product, which is another one since NumPy 2; what is under a mask, its fill value, and what raises or
warns are those of masked arrays. In Rust this would be a copy of NumPy for each of its versions. All of these rules are
in this module; `python/tests/decoding` compares them with netCDF4-python on a table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ma

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


class Rules:
    """What an array of a variable is masked with, and how it is scaled.

    Parameters
    ----------
    attribute : the value of an attribute of the variable, None if there is none
    dtype : of the variable
    fills : whether the variable's default fill value counts (when it has no `_FillValue`)
    """

    __slots__ = ("dtype", "warned", "missing", "fill", "fill_is_given", "minimum", "maximum", "default", "signed_as_unsigned", "scale_factor", "add_offset", "scales", "encoding", "fault")  # fmt: skip

    def __init__(self, attribute: Callable[[str], Any], dtype: np.dtype, fills: bool, is_vlen: bool) -> None:
        self.dtype = dtype
        self.warned: list[str] = []
        self.missing: list[Any] = []
        self.fill: Any = None
        self.fill_is_given = False
        self.minimum: Any = None
        self.maximum: Any = None
        self.default: Any = None
        self.encoding = attribute("_Encoding")
        self.signed_as_unsigned = str(attribute("_Unsigned")) in ("true", "True")
        self.scale_factor, self.add_offset = attribute("scale_factor"), attribute("add_offset")
        self.scales = True
        try:
            for factor in (self.scale_factor, self.add_offset):
                if factor is not None:
                    float(factor)
        except (TypeError, ValueError):
            self.scales = False
        self.fault: Exception | None = None
        if is_vlen or dtype.kind not in "iufcS":
            return
        try:
            self._read_masks(attribute, fills)
        except (OverflowError, TypeError) as error:
            # Of no consequence for who wants no masks.
            self.fault = error

    def _read_masks(self, attribute: Callable[[str], Any], fills: bool) -> None:
        dtype = self.dtype
        missing = self._cast(attribute, "missing_value")
        if missing is not None:
            self.missing = [missing[()]] if missing.shape == () else list(missing)
        fill = self._cast(attribute, "_FillValue")
        is_byte = plain(dtype) in ("u1", "i1")
        if fill is not None:
            self.fill = self.default = fill
            self.fill_is_given = True
        else:
            default = np.array(default_fillvals[plain(dtype)], dtype)
            if fills or not is_byte:
                self.fill = default
            self.default = None if is_byte else default
        valid = self._cast(attribute, "valid_range")
        low, high = self._cast(attribute, "valid_min"), self._cast(attribute, "valid_max")
        if valid is not None and valid.size == 2:
            low, high = np.array(valid.flat[0], dtype), np.array(valid.flat[1], dtype)
        if dtype.kind not in "Sc":
            self.minimum, self.maximum = low, high

    def _cast(self, attribute: Callable[[str], Any], name: str) -> np.ndarray | None:
        """An attribute as the variable's type, if that keeps its value."""
        given = attribute(name)
        if given is None:
            return None
        array = np.array(given)
        try:
            cast = np.array(array, self.dtype)
            if same_values(array, cast):
                return cast
        except ValueError:
            pass
        self.warned.append(f"WARNING: {name} not used since it\ncannot be safely cast to variable data type")
        return None

    def unsigned(self, data: np.ndarray) -> np.ndarray:
        """Signed integers that are meant unsigned, as such (`_Unsigned`)."""
        if self.signed_as_unsigned and data.dtype.kind == "i":
            return data.view(f"{data.dtype.byteorder}u{data.dtype.itemsize}")
        return data

    def masked(self, data: Any, scale: bool, always_mask: bool) -> Any:
        """Data as a masked array: missing, never written and invalid values masked."""
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        for text in self.warned:
            warnings.warn(text, stacklevel=4)
        unsigned = scale and self.signed_as_unsigned and data.dtype.kind == "i"
        if unsigned:
            data = self.unsigned(data)
        as_data: Callable[[Any], Any] = self.unsigned if unsigned else _same
        mask, hit = self._mask(data, as_data)
        if mask is None:
            if not always_mask:
                return np.asarray(data)
            return ma.masked_array(data)
        # The fill value of the result is that of the first rule that met a value.
        fill: Any = None
        if hit == "missing":
            fill = as_data(np.array(self.missing[0], self.dtype))
        elif hit == "fill":
            fill = as_data(self.fill) if self.fill_is_given else self.fill
        elif self.default is not None:
            fill = as_data(self.default) if self.fill_is_given else self.default
        else:
            fill = default_fillvals[plain(self.dtype)]
        result = ma.masked_array(data, mask=mask, fill_value=fill)
        return result[()] if data.shape == () and result.mask.all() else result

    def _mask(self, data: Any, as_data: Callable[[Any], Any]) -> tuple[np.ndarray | None, str]:
        """The mask, None if nothing is masked, and which kind of rule gives the fill value."""
        values = [as_data(np.array(value, self.dtype)) for value in self.missing]
        # A default fill value is compared with as it is: of data that are meant unsigned it masks nothing.
        fill = as_data(self.fill) if self.fill_is_given else self.fill
        low = None if self.minimum is None else as_data(self.minimum)
        high = None if self.maximum is None else as_data(self.maximum)
        array = np.asarray(data)
        found: np.ndarray | None = None
        met_missing = met_fill = False
        if array.flags.c_contiguous and array.size > BLOCK:
            flat = array.reshape(-1)
            pieces = range(0, flat.size, BLOCK)
            size = BLOCK
        else:
            flat, pieces, size = array, range(1), 0
        for begin in pieces:
            part = flat[begin : begin + size] if size else flat
            mask: Any = None
            for value in values:
                equal = _equal(part, value)
                if equal.any():
                    met_missing = True
                    mask = equal if mask is None else mask | equal
            if fill is not None:
                equal = _equal(part, fill)
                if equal.any():
                    met_fill = True
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
        return found, "missing" if met_missing else "fill" if met_fill else "range"

    def scaled(self, data: Any) -> Any:
        """Data times `scale_factor` plus `add_offset`."""
        factor, offset = self.scale_factor, self.add_offset
        if not self.scales:
            return data
        if factor is not None and offset is not None:
            if offset == 0.0 and factor == 1.0:
                return data.astype(factor.dtype)
            return _linear(data, factor, offset)
        if factor is not None and factor != 1.0:
            return _linear(data, factor, None)
        if offset is not None and offset != 0.0:
            return _linear(data, None, offset)
        return data


def _same(value: Any) -> Any:
    return value


def _equal(part: np.ndarray, value: np.ndarray) -> Any:
    """Where elements are a value; NaN is NaN."""
    if value.dtype.kind in "fc" and np.isnan(value):
        return np.isnan(part)
    return np.asarray(part == value)


def _linear(data: Any, factor: Any, offset: Any) -> Any:
    """`data * factor + offset`; both may be None. The result's type is NumPy's for these operations."""
    mask = data.mask if ma.isMA(data) else None
    plain_data = mask is None or mask is ma.nomask
    raw = np.asarray(data)
    scalar_factors = all(np.ndim(x) == 0 for x in (factor, offset) if x is not None)
    if raw.dtype.kind not in "iuf" or not scalar_factors or raw.ndim == 0:
        if factor is not None:
            data = data * factor
        return data if offset is None else data + offset
    dtype = raw.dtype
    for x in (factor, offset):
        if x is not None:
            dtype = np.result_type(np.empty(0, dtype), x)
    inner = dtype if factor is None else np.result_type(np.empty(0, raw.dtype), factor)
    if inner != dtype:
        result = raw * factor
        result = result + offset
    else:
        result = np.empty(raw.shape, dtype)
        _in_blocks(raw, result, factor, offset)
    if mask is None:
        return result
    if plain_data:
        return ma.masked_array(result)
    # Under the mask the data stay what they were, as operations of masked arrays leave them.
    np.copyto(result, raw, where=mask, casting="unsafe")
    return ma.masked_array(result, mask=mask, fill_value=data.fill_value)


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
