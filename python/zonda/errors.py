"""Exceptions: one class for all, `NetCDFError`, and subclasses that are also what people catch."""

from __future__ import annotations

import os
from typing import Any

__all__ = [
    "ClosedError",
    "FileError",
    "FileExists",
    "FileMissing",
    "FilePermission",
    "NetCDFError",
    "NoMemory",
    "NotFound",
    "OutOfBounds",
    "WrongType",
]


class NetCDFError(RuntimeError):
    """What the library reports.

    Attributes
    ----------
    code : int
        The code as in ``netcdf.h`` (negative), or ``errno`` of the system (positive).
    path : str or None
        The file.
    offset : int or None
        The byte of the file where the trouble is, where it is known.
    """

    def __init__(self, code: int, text: str, path: str | None = None, offset: int | None = None) -> None:
        super().__init__(code, text, path, offset)
        self.code, self.text, self.path, self.offset = code, text, path, offset

    def __str__(self) -> str:
        return self.text if self.path is None else f"{self.text}: {self.path!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.text, self.path, self.offset)


class FileError(NetCDFError, OSError):
    """A file cannot be opened, read or written, or is not what it should be."""

    def __init__(self, code: int, text: str, path: str | None = None, offset: int | None = None) -> None:
        super().__init__(code, text, path, offset)
        # As an OSError has them: a code of netCDF is its number, as in netCDF4-python.
        self.errno, self.strerror, self.filename = code, text, path


class FileMissing(FileError, FileNotFoundError):
    """There is no such file."""


class FileExists(FileError, FileExistsError):
    """The file exists and may not be overwritten."""


class FilePermission(FileError, PermissionError):
    """The system or the mode of opening forbids it."""


class OutOfBounds(NetCDFError, IndexError):
    """A start, count or stride leaves the variable."""


class WrongType(NetCDFError, TypeError):
    """Types that do not convert into each other, or that there are not."""


class NotFound(NetCDFError, KeyError):
    """No such dimension, variable, attribute, group or type."""

    __str__ = NetCDFError.__str__


class NoMemory(NetCDFError, MemoryError):
    """There is not enough memory."""


class ClosedError(NetCDFError, ValueError):
    """The dataset is closed."""


_CLASSES: dict[int, type[NetCDFError]] = {
    -33: ClosedError,  # NC_EBADID
    -35: FileExists,  # NC_EEXIST
    -37: FilePermission,  # NC_EPERM
    -40: OutOfBounds,  # NC_EINVALCOORDS
    -43: NotFound,  # NC_ENOTATT
    -45: WrongType,  # NC_EBADTYPE
    -46: NotFound,  # NC_EBADDIM
    -49: NotFound,  # NC_ENOTVAR
    -51: FileError,  # NC_ENOTNC
    -56: WrongType,  # NC_ECHAR
    -57: OutOfBounds,  # NC_EEDGE
    -58: OutOfBounds,  # NC_ESTRIDE
    -61: NoMemory,  # NC_ENOMEM
    -66: FileError,  # NC_EDAP
    -67: FileError,  # NC_ECURL
    -70: FileError,  # NC_EDAPSVC
    -71: FileError,  # NC_EDAS
    -72: FileError,  # NC_EDDS
    -73: FileError,  # NC_EDATADDS
    -75: FileError,  # NC_EDAPCONSTRAINT
    -77: FilePermission,  # NC_EACCESS
    -78: FilePermission,  # NC_EAUTH
    -90: FileMissing,  # NC_ENOTFOUND
    -101: FileError,  # NC_EHDFERR
    -125: NotFound,  # NC_ENOGRP
}
_SYSTEM: dict[int, type[NetCDFError]] = {1: FilePermission, 2: FileMissing, 12: NoMemory, 13: FilePermission, 17: FileExists}

# EHOSTUNREACH stands for all that keeps a connection from being made, such as a certificate that is not trusted.
_TEXTS = {113: "No connection to the server"}


def make(code: int, text: str, why: str, path: str | bytes | None, offset: int | None) -> NetCDFError:
    """The exception for a code, the text that netCDF has for it, and what the engine says besides."""
    kind = _SYSTEM.get(code, FileError) if code > 0 else _CLASSES.get(code, NetCDFError)
    name = os.fsdecode(path) if path is not None else None
    # What the text and the path say already is not said twice.
    more = why.replace(text, "").removeprefix(f"{name}: ").strip(": ")
    if code > 0:
        text = _TEXTS.get(code) or os.strerror(code)
    return kind(code, f"{text}: {more}" if more else text, name, offset)
