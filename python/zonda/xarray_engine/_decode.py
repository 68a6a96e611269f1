"""Datasets of groups: xarray's decoding, without the parts of it that change nothing.

`xarray.conventions.decode_cf_variables` sends every variable through a dozen decoders, most of which find that they
have nothing to do, and `Dataset(...)` aligns what comes from one file and fits. For a variable of numbers whose
attributes ask at most for a mask and a scale, the result is known beforehand, and made at once; masks and scales are
applied by the array that reads. All others (times, text, ``_Unsigned``, fill values that disagree, ...), and all
variables where options differ from one to the other, go through xarray's functions. Both ways give the same dataset
(``test_decoding.py`` compares them).

What a mask and a scale do to the values of a variable is decided in Rust, while the file is read (``zonda_cf::values``,
the profile ``Xarray``); ``_arrays.Decoding`` does the arithmetic of it. The installed xarray is asked once for each
combination of types whether it agrees about the dtype; where it does not, it decodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Coordinates, Dataset, Variable, conventions
from xarray.backends import AbstractDataStore, StoreBackendEntrypoint
from xarray.core import indexing

from ._arrays import Decoding, ZondaArray
from ._contents import Contents, Stored, read
from ._types import python_name
from ._xarray import choose_float_dtype, decode_cf_datetime, dtypes, elementwise_array, makes_indexes

if TYPE_CHECKING:
    from ._store import ZondaDataStore

__all__ = ["dataset", "variable"]

_MASKS = ("missing_value", "_FillValue")  # in xarray's order
_SCALES = ("scale_factor", "add_offset")
_MASKS_ALONE = frozenset(_MASKS)
_MASKS_AND_SCALES = frozenset(_MASKS + _SCALES)
# Decoders of xarray's go by these; so they do by units of time.
_ODD = frozenset({"_Encoding", "_Unsigned", "dtype"})
_TIMES = frozenset({"days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"})

_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_NANOSECONDS = np.dtype("M8[ns]")
_FEW = 1024  # dates: more are read when they are needed

# What xarray is asked for once.
_WHOLE: dict[int, indexing.BasicIndexer] = {}
_AGREED: dict[tuple[Any, ...], bool] = {}
# By units and calendar: a number, the nanoseconds that it means, and those from one number to the next. None after the first time.
_CLOCKS: dict[tuple[str, str | None], tuple[int, int, int] | None] = {}
_DTYPES = {"f4": np.dtype("f4"), "f8": np.dtype("f8")}


def dataset(store: ZondaDataStore, drop_variables: str | Iterable[Any] | None, **options: Any) -> Dataset:
    """Read a group and decode it by CF conventions, as xarray's engines do.

    Parameters
    ----------
    drop_variables, **options
        As of `xarray.open_dataset`: ``mask_and_scale``, ``decode_times``, ``concat_characters``, ``decode_coords``,
        ``use_cftime``, ``decode_timedelta``.

    Raises
    ------
    NetCDFError
        If a variable is damaged that is not dropped.
    ValueError
        If a variable cannot be decoded.
    """
    drop = {drop_variables} if isinstance(drop_variables, str) else set(() if drop_variables is None else drop_variables)
    contents = read(store, store.handle.acquire(), drop)
    if not _are_plain(**options):
        return StoreBackendEntrypoint().open_dataset(_Read(store, contents), drop_variables=drop_variables, **options)
    return _dataset(store, contents, drop, options)


class _Read(AbstractDataStore):
    """What was read already, for xarray's own decoding."""

    __slots__ = ("contents", "store")

    def __init__(self, store: ZondaDataStore, contents: Contents) -> None:
        self.store, self.contents = store, contents

    def load(self) -> tuple[dict[Any, Variable], dict[str, Any]]:
        parts = self.contents.variables
        return {python_name(part.name): variable(self.store, part) for part in parts}, self.contents.attrs

    def get_encoding(self) -> dict[str, Any]:
        return {"unlimited_dims": self.contents.unlimited}

    def close(self) -> None:
        self.store.close()


def _are_plain(
    *,
    mask_and_scale: Any,
    decode_times: Any,
    concat_characters: Any,
    decode_coords: Any,
    use_cftime: Any,
    decode_timedelta: Any,
) -> bool:
    """Whether each option is one for all variables, and none is left that has to look at several."""
    each = (mask_and_scale, decode_times, concat_characters, decode_timedelta)
    if decode_coords not in (True, False, "coordinates") or any(isinstance(option, Mapping) for option in each):
        return False
    # Without times it says nothing: so it comes with `decode_cf=False`.
    return use_cftime is None or not decode_times


def _dataset(store: ZondaDataStore, contents: Contents, drop: set[Any], options: dict[str, Any]) -> Dataset:
    found = {python_name(part.name): part for part in contents.variables}
    if options["decode_times"]:
        _share_units(found)
    variables: dict[Any, Variable] = {}
    coord_names: set[Any] = set()
    for name, part in found.items():
        if name in drop:
            continue
        decoded = _decoded(store, part, options["mask_and_scale"])
        if decoded is None and part.dims == (name,) and options["decode_times"] is True:
            decoded = _times(store, part)
        if decoded is None:
            decoded = _decoded_by_xarray(store, name, part, found, options)
        if options["decode_coords"]:
            attrs = decoded.attrs
            if "coordinates" in attrs:
                decoded.encoding["coordinates"] = attrs["coordinates"]
                coord_names.update(c for c in attrs.pop("coordinates").split() if c in found)
        variables[name] = decoded
    attrs = contents.attrs
    if options["decode_coords"] and isinstance(attrs.get("coordinates"), str):
        coord_names.update(attrs.pop("coordinates").split())
    made = _assembled(variables, coord_names, attrs)
    made.set_close(store.close)
    made.encoding = {"unlimited_dims": contents.unlimited}
    return made


def _share_units(found: dict[Any, Stored]) -> None:
    """Bounds of times have the units of the times (CF 7.1)."""
    for part in found.values():
        attrs = part.attrs
        if "bounds" not in attrs:
            continue
        units, bounds = attrs.get("units"), attrs["bounds"]
        if isinstance(units, str) and "since" in units and bounds in found:
            given = found[bounds].attrs
            given.setdefault("units", units)
            if "calendar" in attrs:
                given.setdefault("calendar", attrs["calendar"])


class _Dates(elementwise_array):  # type: ignore[misc, valid-type]
    """Dates that were decoded already; parts of them are decoded when they are asked for, as xarray does it."""

    dates: np.ndarray | None = None

    def get_duck_array(self) -> np.ndarray:
        return super().get_duck_array() if self.dates is None else self.dates.copy()


# ---- one variable ------------------------------------------------------------------------------------


def variable(store: ZondaDataStore, part: Stored, decoding: Decoding | None = None) -> Variable:
    """A variable that reads when it is indexed, as it is in the file or decoded."""
    array = ZondaArray(store, part.name, part.shape, part.kind, decoding)
    rank = len(part.shape)
    key = _WHOLE.get(rank)
    if key is None:
        key = _WHOLE[rank] = indexing.BasicIndexer((slice(None),) * rank)
    data = indexing.LazilyIndexedArray(array, key)
    return Variable(part.dims, data, part.attrs, part.encoding, fastpath=True)


def _decoded(store: ZondaDataStore, part: Stored, mask_and_scale: Any) -> Variable | None:
    """The variable as xarray would decode it; None where xarray has to."""
    attrs, kind = part.attrs, part.kind
    if kind.objects or kind.dtype.kind not in "iuf" or not _ODD.isdisjoint(attrs):
        return None
    units = attrs.get("units")
    if units is not None and (not isinstance(units, str) or "since" in units or units in _TIMES):
        return None
    if not mask_and_scale or _MASKS_AND_SCALES.isdisjoint(attrs):
        return variable(store, part)
    decoding = _decoding(part)
    if decoding is None:
        return None
    for name in _MASKS + _SCALES:
        if name in attrs:
            part.encoding[name] = attrs.pop(name)
    return variable(store, part, decoding)


def _decoding(part: Stored) -> Decoding | None:
    """What `CFMaskCoder` and `CFScaleOffsetCoder` would do; None where they have to."""
    rules, stored = part.rules, part.kind.dtype
    if not rules:
        return None
    result, fill, scale, offset = rules
    is_nan_alone = fill is None and not _MASKS_ALONE.isdisjoint(part.attrs)
    key = stored, result, fill is None, is_nan_alone, type(scale), type(offset)
    agrees = _AGREED.get(key)
    if agrees is None:
        agrees = _AGREED[key] = _agrees(part, *rules, is_nan_alone)
    if not agrees:
        return None
    dtype = _DTYPES[result]
    return Decoding(dtype, fill, None if fill is None else dtype.type(np.nan), scale, offset)


def _agrees(part: Stored, result: str, fill: Any, scale: Any, offset: Any, is_nan_alone: bool) -> bool:
    """Whether the installed xarray gives decoded values the same type."""
    stored = part.kind.dtype
    if scale is None and offset is None:
        wanted = stored if fill is None else dtypes.maybe_promote(stored)[0]
    elif choose_float_dtype is None:
        return False
    elif is_nan_alone:
        # Fill values that are NaN mask nothing, and then the type stays.
        wanted = stored
    else:
        wanted = choose_float_dtype(stored, part.attrs)
    return bool(np.dtype(wanted) == result)


def _times(store: ZondaDataStore, part: Stored) -> Variable | None:
    """A coordinate of few dates, decoded at once; None where xarray has to.

    xarray decodes the first and the last date for the dtype, and all of them for the index a moment later.
    """
    attrs, encoding = part.attrs, part.encoding
    units, calendar = attrs.get("units"), attrs.get("calendar")
    is_plain = part.kind.dtype.kind in "iuf" and _ODD.isdisjoint(attrs) and _MASKS_AND_SCALES.isdisjoint(attrs)
    if not is_plain or not isinstance(units, str) or "since" not in units:
        return None
    if calendar is not None and not (isinstance(calendar, str) and calendar in _CALENDARS):
        return None
    if not 0 < part.shape[0] <= _FEW or choose_float_dtype is None:
        return None
    data = variable(store, part)._data
    decode = partial(decode_cf_datetime, units=units, calendar=calendar, use_cftime=None)
    try:
        numbers = data.get_duck_array()
        dates = _counted(numbers, _CLOCKS.get((units, calendar)))
        if dates is None:
            dates = decode(numbers)
    except Exception:
        return None  # told by xarray
    if dates.dtype != _NANOSECONDS:
        # The first and the last alone could have another.
        return None
    _learn(numbers, decode, units, calendar)
    encoding["units"] = attrs.pop("units")
    if calendar is not None:
        encoding["calendar"] = attrs.pop("calendar")
    known = _Dates(data, decode, dates.dtype)
    known.dates = dates
    return Variable(part.dims, known, attrs, encoding, fastpath=True)


def _learn(numbers: np.ndarray, decode: Any, units: str, calendar: str | None) -> None:
    """Keeps the clock of units when they are met the second time: files that are opened one after the other have the same ones, and pandas takes
    them apart anew each time."""
    key = units, calendar
    if key not in _CLOCKS:
        if len(_CLOCKS) < _FEW:
            _CLOCKS[key] = None
        return
    if _CLOCKS[key] is not None:
        return
    number = float(numbers[0])
    if not number.is_integer() or abs(number) >= 2**31:
        return
    try:
        # Near a number that was decoded: xarray would warn of others that are no dates.
        dates = decode(np.array([int(number), int(number) + 1]))
    except Exception:
        return  # the last date there is
    if dates.dtype == _NANOSECONDS:
        first, second = dates.view("i8").tolist()
        _CLOCKS[key] = int(number), first, second - first


def _counted(numbers: np.ndarray, clock: tuple[int, int, int] | None) -> np.ndarray | None:
    """The dates of whole numbers; None where xarray has to decode them."""
    if clock is None:
        return None
    at, first, step = clock
    first -= at * step
    if numbers.dtype.kind == "f":
        with np.errstate(all="ignore"):
            whole = numbers.astype("i8")
            # Some versions of xarray multiply as floats: only where that makes no difference.
            is_exact = (whole == numbers) & ((numbers.astype("f8") * step).astype("i8") == whole * step)
        if not is_exact.all():
            return None
        numbers = whole
    ends = [int(end) * step for end in (numbers.min(), numbers.max())]
    # The least of all numbers is no date.
    if not all(-(2**63) < number < 2**63 for end in ends for number in (end, end + first, first)):
        return None
    return (numbers.astype("i8") * step + first).view(_NANOSECONDS)


def _decoded_by_xarray(
    store: ZondaDataStore, name: Any, part: Stored, found: dict[Any, Stored], options: dict[str, Any]
) -> Variable:
    concat, kind = options["concat_characters"], part.kind.dtype
    stack = bool(concat) and kind == "S1" and bool(part.dims) and _is_stackable(part.dims[-1], found)
    if options["decode_timedelta"] is None and part.attrs.get("units") in _TIMES:
        # What some versions of xarray say of it, they say once.
        warnings.filterwarnings("once", "decode_timedelta", FutureWarning)
    encoded = variable(store, part)
    try:
        return conventions.decode_cf_variable(
            name,
            encoded,
            concat_characters=concat,
            mask_and_scale=options["mask_and_scale"],
            decode_times=options["decode_times"],
            stack_char_dim=stack,
            decode_timedelta=options["decode_timedelta"],
        )
    except Exception as error:
        if hasattr(error, "add_note"):
            error.add_note(f"Raised while decoding variable {name!r} with value {encoded!r}")
        raise


def _is_stackable(dim: str, found: dict[Any, Stored]) -> bool:
    """Whether a dimension is one of characters only."""
    if dim in found:
        return False
    users = (part for part in found.values() if dim in part.dims)
    return all(part.kind.dtype.kind == "S" and part.dims[-1] == dim for part in users)


# ---- the dataset -------------------------------------------------------------------------------------


def _assembled(variables: dict[Any, Variable], coord_names: set[Any], attrs: dict[str, Any]) -> Dataset:
    """A dataset, without indexes where `xarray.open_dataset` makes those."""
    coords = {name: var for name, var in variables.items() if name in coord_names or var.dims == (name,)}
    data = {name: var for name, var in variables.items() if name not in coords}
    if not makes_indexes:
        return Dataset(data, coords=coords, attrs=attrs)
    ordered = {**data, **coords}  # as the constructor has them
    sizes: dict[Any, int] = {}
    for var in ordered.values():
        for dim, length in zip(var.dims, var.shape, strict=True):
            if sizes.setdefault(dim, length) != length:
                sizes[dim] = -1
    fits = -1 not in sizes.values() and all(ordered[dim].dims == (dim,) for dim in sizes if dim in ordered)
    if fits and hasattr(Dataset, "_construct_direct"):
        # All is of one group, has no indexes, and nothing is to be aligned.
        return Dataset._construct_direct(ordered, set(coords), dims=sizes, attrs=attrs or None)
    return Dataset(data, coords=Coordinates(coords, indexes={}), attrs=attrs)
