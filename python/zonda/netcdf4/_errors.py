# SPDX-License-Identifier: MIT OR Apache-2.0
"""The exceptions that scripts for netCDF4-python catch, made from the engine's.

netCDF4-python raises `RuntimeError` with the text of `nc_strerror` wherever nothing else is said;
`NetCDFError` is a `RuntimeError` whose text begins with that, so those pass unchanged. Opening raises
`OSError` with errno and file name, attributes `AttributeError`, positions outside `IndexError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from .. import _zonda
from ..errors import NetCDFError

NC_EEXIST = -35


def code_text(error: NetCDFError) -> str:
    """What `nc_strerror` says of the error's code, without file and place."""
    return os.strerror(error.code) if error.code > 0 else str(_zonda.strerror(error.code))


@contextmanager
def opening(path: str) -> Iterator[None]:
    """Errors of open and create: `OSError` with errno, text and file, as the netCDF4 module has them."""
    try:
        yield
    except NetCDFError as error:
        # Python finds the class for numbers of the system; netCDF's for a file that is there is not one of them.
        kind = FileExistsError if error.code == NC_EEXIST else OSError
        # What is wrong with a server or its certificate no code says.
        text = str(error.strerror) if "://" in path else code_text(error)
        raise kind(error.code, text, path) from error


@contextmanager
def of_attributes() -> Iterator[None]:
    """Errors about attributes: `AttributeError`."""
    try:
        yield
    except NetCDFError as error:
        raise AttributeError(str(error)) from error


@contextmanager
def about(what: str) -> Iterator[None]:
    """Errors of a definition say which object it was about."""
    try:
        yield
    except NetCDFError as error:
        if what not in error.text:
            error.text = f"{error.text}: {what}"
        raise
