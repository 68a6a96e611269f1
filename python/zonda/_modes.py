"""Define mode and data mode, which the classic model has and users of Python need not know.

A file is put into the mode that a call needs, and stays there: many definitions in a row cost one change.
"""

from __future__ import annotations

from ._zonda import File


def define(file: File) -> None:
    """Before a definition."""
    if file.format != "NETCDF4" and file.is_writable and not file.in_define_mode:
        file.redef()


def data(file: File) -> None:
    """Before a transfer."""
    if file.format != "NETCDF4" and file.in_define_mode:
        file.enddef()
