"""Which xarray the engine needs. Imported first, so that one that is too old is named, and not the first name that it lacks."""

from __future__ import annotations

import re

import xarray

__all__ = ["OLDEST", "check"]

#: The oldest release of xarray that is supported; pyproject.toml says the same.
OLDEST = "2024.10"


def _number(version: str) -> tuple[int, int]:
    """Year and month of a release; of what has another form, as builds of no release, all that there can be."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (9999, 0)


def check() -> None:
    """Raise ImportError where xarray is older than `OLDEST`."""
    if _number(xarray.__version__) < _number(OLDEST):
        raise ImportError(f"xarray {OLDEST} or newer is needed for the engine 'zonda', and this is {xarray.__version__}; zonda.open and zonda.netcdf4 need none")
