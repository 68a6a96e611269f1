# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times through the package cftime, which is wanted only where they are."""

from __future__ import annotations

from typing import Any


def _cftime() -> Any:
    try:
        import cftime
    except ImportError as error:
        raise ImportError("times need the package cftime (pip install cftime)") from error
    return cftime


def date2num(*args: Any, **kwargs: Any) -> Any:
    """`cftime.date2num`: numbers of dates, units and a calendar."""
    return _cftime().date2num(*args, **kwargs)


def num2date(*args: Any, **kwargs: Any) -> Any:
    """`cftime.num2date`: dates of numbers, units and a calendar."""
    return _cftime().num2date(*args, **kwargs)


def date2index(*args: Any, **kwargs: Any) -> Any:
    """`cftime.date2index`: indices of dates in a time variable."""
    return _cftime().date2index(*args, **kwargs)
