# SPDX-License-Identifier: MIT OR Apache-2.0
"""Versions and settings of the library under the module."""

from __future__ import annotations

from typing import Any

from .. import _zonda

# Of the netCDF4 module whose names these are; scripts compare it.
COMPATIBLE_VERSION = "1.7.5"
# Of the HDF5 library whose files are written alike.
HDF5_VERSION = "1.14.6"


class NetCDF4MissingFeatureException(Exception):
    """Something that the library was built without."""

    def __init__(self, feature: str, version: str) -> None:
        super().__init__(f"{feature} requires netCDF lib >= {version} (using {getlibversion().split()[0]}).")


def getlibversion() -> str:
    """What `nc_inq_libvers` says."""
    return str(_zonda.netcdf_version())


# Settings of `.ncrc` are about files on servers, which this module does not open: they are kept, for who asks.
_SETTINGS: dict[str, str] = {}


def rc_get(key: Any) -> str | None:
    """A setting that `rc_set` made, None if there is none."""
    return _SETTINGS.get(str(key))


def rc_set(key: Any, value: Any) -> None:
    """Keeps a setting as of `.ncrc`; of no effect on files."""
    _SETTINGS[str(key)] = str(value)


def get_chunk_cache() -> tuple[int, int, float]:
    """Size in bytes, number of slots and preemption of the chunk cache that variables begin with."""
    size, slots, preemption = _zonda.get_chunk_cache()
    return int(size), int(slots), float(preemption)


def set_chunk_cache(size: Any = None, nelems: Any = None, preemption: Any = None) -> None:
    """Sets the chunk cache that variables begin with; what is None stays."""
    now = get_chunk_cache()
    _zonda.set_chunk_cache(
        now[0] if size is None else int(size),
        now[1] if nelems is None else int(nelems),
        now[2] if preemption is None else float(preemption),
    )


def get_alignment() -> tuple[int, int]:
    """From which size on, and to which multiple, objects of new files are aligned."""
    threshold, alignment = _zonda.get_alignment()
    return int(threshold), int(alignment)


def set_alignment(threshold: int, alignment: int) -> None:
    """Sets the alignment of new files, in bytes."""
    _zonda.set_alignment(threshold, alignment)
