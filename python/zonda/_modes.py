"""Define mode and data mode, which the classic model has and users of Python need not know.

A file is put into the mode that a call needs, and stays there: many definitions in a row cost one change.
"""

from __future__ import annotations

from collections.abc import Callable

from ._zonda import File


def define(file: File) -> None:
    """Before a definition."""
    if file.format != "NETCDF4" and file.is_writable and not file.in_define_mode:
        file.redef()


def put(file: File, group: int, variable: int, call: Callable[[], None]) -> None:
    """Makes a put. In one of all ranks this one takes part, whatever becomes of it here."""
    if file.is_parallel:
        file.put_with_ranks(group, variable, call)
    else:
        call()


def data(file: File) -> None:
    """Before a transfer."""
    if file.format != "NETCDF4" and file.in_define_mode:
        file.enddef()
