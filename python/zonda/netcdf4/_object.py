# SPDX-License-Identifier: MIT OR Apache-2.0
"""What Dataset, Group and Variable have in common: the file's attributes as Python attributes."""

from __future__ import annotations

from typing import Any

from . import _attributes
from ._handle import Handle
from ._tables import PRIVATE, PRIVATE_NAMES

assign = object.__setattr__


class WithAttributes:
    """An object with attributes in the file.

    `obj.units = "m"` writes one, `obj.units` reads it, `del obj.units` removes it, `obj.__dict__` is all of
    them. Names in `PRIVATE` are Python's only.
    """

    __slots__ = ()

    _handle: Handle
    _grpid: int
    _varid: int
    _ncstring_attrs__: bool

    def _owner(self) -> Any:
        """The group that the attributes are of or the variable is in."""
        raise NotImplementedError

    def ncattrs(self) -> list[str]:
        """Names of the attributes in the file."""
        return _attributes.names(self._handle, self._grpid, self._varid)

    def getncattr(self, name: Any, encoding: str = "utf-8") -> Any:
        """The value of an attribute, also where Python's own attributes hide it.

        Raises
        ------
        AttributeError
            There is none of this name.
        """
        return _attributes.read(self._handle, self._grpid, self._varid, name, encoding)

    def setncattr(self, name: Any, value: Any) -> None:
        """Sets an attribute, also where Python's own attributes hide it."""
        _attributes.write(self._owner(), self._varid, name, value, as_string=self._ncstring_attrs__)

    def setncattr_string(self, name: Any, value: Any) -> None:
        """Sets an attribute of type NC_STRING.

        Raises
        ------
        OSError
            The format has no strings.
        """
        if self._handle.classic:
            raise OSError("file format does not support NC_STRING attributes")
        _attributes.write(self._owner(), self._varid, name, value, as_string=True)

    def setncatts(self, attdict: Any) -> None:
        """Sets several attributes."""
        for name, value in attdict.items():
            _attributes.write(self._owner(), self._varid, name, value)

    def delncattr(self, name: Any) -> None:
        """Removes an attribute."""
        _attributes.delete(self._owner(), self._varid, name)

    def renameAttribute(self, oldname: Any, newname: Any) -> None:
        """Gives an attribute another name."""
        _attributes.rename(self._owner(), self._varid, oldname, newname)

    def _all_attributes(self) -> dict[str, Any]:
        return {name: self.getncattr(name) for name in self.ncattrs()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        # An object whose making failed has no handle to ask.
        if name in PRIVATE or name == "_handle":
            raise AttributeError(name)
        return _attributes.read(self._handle, self._grpid, self._varid, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in PRIVATE:
            self.setncattr(name, value)
        elif not name.endswith("__"):
            raise AttributeError(
                f"'{name}' is one of the reserved attributes {PRIVATE_NAMES}, cannot rebind. Use setncattr instead."
            )

    def __delattr__(self, name: str) -> None:
        if name in PRIVATE:
            raise AttributeError(
                f"'{name}' is one of the reserved attributes {PRIVATE_NAMES}, cannot delete. "
                "Use delncattr instead."
            )
        self.delncattr(name)
