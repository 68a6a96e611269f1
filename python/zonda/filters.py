"""Filters by name, as `Group.create_variable` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Union

from . import _zonda

__all__ = ["FilterSpec", "available", "parse"]

FilterSpec = Union[str, int, "tuple[Union[str, int], Union[int, Sequence[int]]]"]

# Parameters of a filter from a level, where it is no single number: see docs/status/filters.md.
_LEVELS = {"zlib": (0, 9), "deflate": (0, 9), "zstd": (-131072, 22), "bzip2": (1, 9)}
_DEFAULT_LEVELS = {"zlib": 4, "deflate": 4, "zstd": 3, "bzip2": 9}
_ALIASES = {"zlib": "deflate", "gzip": "deflate", "zstandard": "zstd"}


def available(name: str | int) -> bool:
    """Whether data can be filtered so, reading and writing.

    Examples
    --------
    >>> import zonda
    >>> zonda.filters.available("zstd")
    True
    """
    return _zonda.has_filter(_ALIASES.get(name, name) if isinstance(name, str) else name)


def parse(filters: Iterable[FilterSpec]) -> list[tuple[str | int, list[int]]]:
    """Filters and their parameters, from names, numbers, and pairs.

    Raises
    ------
    ValueError
        For a filter that is not there, or parameters that are no unsigned 32-bit numbers.
    """
    if isinstance(filters, (str, int)):
        filters = [filters]
    result: list[tuple[str | int, list[int]]] = []
    for entry in filters:
        name, given = (entry, ()) if isinstance(entry, (str, int)) else entry
        # One parameter may stand alone: ("zstd", 3).
        params: Iterable[Any] = given if isinstance(given, Iterable) else (given,)
        if isinstance(name, str):
            name = _ALIASES.get(name, name)
        if not _zonda.has_filter(name):
            raise ValueError(f"there is no filter {name!r}")
        numbers = [int(number) & 0xFFFFFFFF if -(2**31) <= int(number) < 2**32 else -1 for number in params]
        if -1 in numbers:
            raise ValueError(f"filter {name!r}: parameters are 32-bit numbers, not {list(params)}")
        result.append((name, numbers))
    return result


def compression(name: str, level: int | None) -> tuple[str | int, list[int]]:
    """The filter that ``compression=name, level=level`` means.

    Raises
    ------
    ValueError
        For a filter that is not there, or a level that it does not have.
    """
    if name not in _LEVELS and _ALIASES.get(name) in _LEVELS:
        name = _ALIASES[name]
    if name in _LEVELS:
        low, high = _LEVELS[name]
        chosen = _DEFAULT_LEVELS[name] if level is None else int(level)
        if not low <= chosen <= high:
            raise ValueError(f"compression {name!r} has levels from {low} to {high}, not {chosen}")
        params: Sequence[Any] = [chosen]
    elif level is not None:
        raise ValueError(f"compression {name!r} has no level; give its parameters by filters=[({name!r}, [...])]")
    else:
        params = []
    return parse([(name, params)])[0]
