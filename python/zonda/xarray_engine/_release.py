"""Which xarray the engine needs. Imported first, so that one that is too old is named, and not the first name that it lacks."""

from __future__ import annotations

import xarray

__all__ = ["OLDEST", "check"]

#: The oldest release of xarray that is supported; pyproject.toml says the same.
OLDEST = "2024.10"


def check() -> None:
    """Raise ImportError where xarray is older than `OLDEST`.

    That release brought trees. Its number does not tell: xarray says 999 where nothing says which one is installed, as in Debian 12.
    """
    if not hasattr(xarray, "DataTree"):
        raise ImportError(f"xarray {OLDEST} or newer is needed for the engine 'zonda', and this is {xarray.__version__}; zonda.open and zonda.netcdf4 need none")
