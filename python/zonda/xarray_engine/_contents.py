"""What a group contains, read in one call: names, types, dimensions, attributes and encodings of its variables."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Collection, NamedTuple

import numpy as np

from ._types import VariableType, filters_of, type_of

if TYPE_CHECKING:
    from ._handles import Opened
    from ._store import ZondaDataStore

__all__ = ["Contents", "Stored", "read"]


class Stored(NamedTuple):
    """A variable as it is in the file. Its dicts are the reader's own."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    kind: VariableType
    attrs: dict[str, Any]
    encoding: dict[str, Any]
    # What attributes ask for, as `File.contents` tells it: nothing, a decoding, or one that xarray has to do.
    rules: tuple[Any, ...] | None


class Contents(NamedTuple):
    """All of a group that `xarray.Dataset` shows of it."""

    variables: list[Stored]
    attrs: dict[str, Any]
    unlimited: set[str]


def read(store: ZondaDataStore, opened: Opened, drop: Collection[Any] = ()) -> Contents:
    """Read the definitions and attributes of the group of a store.

    An attribute that is damaged is left out with a warning, or all of an object where the list of them is.

    Parameters
    ----------
    drop : collection of str
        Variables that nobody wants: what is damaged of them is not told.

    Raises
    ------
    NetCDFError
        If a variable is damaged that is not in `drop`.
    """
    group = store.number(opened)
    *_, dims, found, _, attrs, faults = opened.file.contents(group)
    known: dict[Any, tuple[VariableType, dict[str, Any]]] = {}
    variables = [_stored(store, opened, var, known) for var in found if _is_wanted(var, drop)]
    opened.places[store.group] = group, {var[1]: var[0] for var in found}
    if faults:
        _warn(faults, {var[0]: var[1] for var in found}, drop)
    return Contents(variables, attrs, {name for _, name, _, unlimited in dims if unlimited})


def _is_wanted(var: tuple[Any, ...], drop: Collection[Any]) -> bool:
    storage = var[6]
    if isinstance(storage, str):
        return True
    if var[1] in drop:
        return False
    raise storage


def _stored(
    store: ZondaDataStore, opened: Opened, var: tuple[Any, ...], known: dict[Any, tuple[VariableType, dict[str, Any]]]
) -> Stored:
    _, name, typeid, _, shape, dims, _, chunks, filters, endian, attrs, rules = var
    # Most variables of a file are stored alike.
    key = typeid, endian, chunks, filters
    like = known.get(key)
    if like is None:
        like = known[key] = _like(store, opened, typeid, endian, chunks, filters)
    kind, encoding = like[0], like[1].copy()
    if chunks is not None and "chunksizes" in encoding:
        encoding["preferred_chunks"] = dict(zip(dims, chunks, strict=True))
    for nested in ("szip", "blosc"):
        if encoding.get(nested):
            encoding[nested] = dict(encoding[nested])
    if "least_significant_digit" in attrs:
        encoding["least_significant_digit"] = attrs.pop("least_significant_digit")
    encoding["source"] = store.handle.source.name
    encoding["original_shape"] = shape
    if kind.dtype.kind == "S" and isinstance(attrs.get("_FillValue"), str):
        attrs["_FillValue"] = np.bytes_(attrs["_FillValue"].encode())
    return Stored(name, dims, shape, kind, attrs, encoding, rules)


def _like(
    store: ZondaDataStore, opened: Opened, typeid: int, endian: str, chunks: Any, filters: Any
) -> tuple[VariableType, dict[str, Any]]:
    """Type and encoding of all variables that are stored so."""
    kind = type_of(opened.file, typeid, endian, store.auto_complex)
    encoding: dict[str, Any] = {"dtype": kind.encoded}
    if store.format.startswith("NETCDF4"):
        encoding.update(filters_of(filters))
        encoding.update(contiguous=chunks is None, chunksizes=chunks)
    return kind, encoding


def _warn(faults: list[tuple[int, str | None, Exception]], names: dict[int, str], drop: Collection[Any]) -> None:
    for number, attribute, error in faults:
        if names.get(number) in drop:
            continue
        of = f"variable {names[number]!r}" if number >= 0 else "the group"
        what = "all attributes" if attribute is None else f"attribute {attribute!r}"
        warnings.warn(f"{what} of {of} left out: {error}", RuntimeWarning, stacklevel=2)
