# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all objects of one open file share: the engine's file, its mode, what is known of its attributes."""

from __future__ import annotations

from typing import Any

from .._zonda import File
from ..errors import NetCDFError
from ._tables import DATA_MODEL

NC_ENOTINDEFINE = -38

# In the place of a type number: the value is the error.
BROKEN = -1

# A type number and a value as the engine gives it.
Attribute = tuple[int, Any]


class Handle:
    """An open file.

    Formats of the classic model have a define mode. netCDF4-python leaves it after each definition; here it
    is left when data are wanted, which spares rewriting the header, and the data behind it, each time.
    """

    __slots__ = ("file", "data_model", "disk_format", "classic", "netcdf3", "defining", "attributes", "is_open", "path", "is_parallel", "__weakref__")

    def __init__(self, file: File, path: str | bytes, created: bool) -> None:
        self.file = file
        self.path = path
        self.data_model = DATA_MODEL[file.format]
        self.disk_format = str(file.format_extended)
        self.classic = self.data_model != "NETCDF4"
        self.netcdf3 = self.data_model.startswith("NETCDF3")
        # In define mode: an object of its own for each time, so that a thread which leaves the mode does not
        # take back what another has entered meanwhile.
        self.defining: object | None = object() if created else None
        self.is_open = True
        self.is_parallel = bool(file.is_parallel)
        # By group and variable (-1: the group's own).
        self.attributes: dict[tuple[int, int], dict[str, Attribute]] = {}

    def define(self) -> None:
        """Before a definition. Where the file does not allow it, the definition itself says so."""
        if self.classic and self.defining is None:
            try:
                self.file.redef()
            except NetCDFError:
                return
            self.defining = object()

    def defined(self) -> None:
        """After a definition: ranks leave define mode together, as in netCDF4-python, so that one alone may read and write."""
        if self.is_parallel:
            self.data()

    def data(self) -> None:
        """Before data are read or written.

        Raises
        ------
        NetCDFError
            What `nc_enddef` gives, such as a variable that is too large for the format.
        """
        entered = self.defining
        if entered is None or not self.classic:
            return
        try:
            self.file.enddef()
        except NetCDFError as error:
            # Another thread was faster.
            if error.code != NC_ENOTINDEFINE:
                raise
        if self.defining is entered:
            self.defining = None

    def attributes_of(self, group: int, variable: int) -> dict[str, Attribute]:
        """All attributes of a variable or, with -1, of a group: one call to the engine, then from memory."""
        if not self.is_open:
            raise AttributeError("NetCDF: Not a valid ID")
        known = self.attributes.get((group, variable))
        if known is None:
            # Of one that cannot be read the error is kept, for who asks for it.
            known = {
                name: (BROKEN, value) if isinstance(value, NetCDFError) else (typeid, value)
                for name, typeid, value in self.file.atts(group, variable)
            }
            self.attributes[group, variable] = known
        return known

    def forget(self, group: int, variable: int) -> None:
        """An attribute changed."""
        self.attributes.pop((group, variable), None)

    def close(self) -> None:
        """Closes the file; a file that is closed is an error, as it is for nc_close."""
        self.data()
        self.is_open = False
        self.file.close()
