# SPDX-License-Identifier: MIT OR Apache-2.0
"""Dimensions."""

from __future__ import annotations

import weakref
from typing import Any

from ._attributes import as_name
from ._handle import Handle


class Dimension:
    """A dimension of a group; `len` is its length now.

    Parameters
    ----------
    grp : the group
    name : its name
    size : its length; None or 0: unlimited
    """

    __slots__ = ("_dimid", "_grpid", "_data_model", "_name", "_grp", "_handle", "_fixed", "__weakref__")

    def __init__(self, grp: Any, name: Any, size: Any = None, **kwargs: Any) -> None:
        self._grpid: int = grp._grpid
        self._grp: Any = weakref.proxy(grp) if grp.keepweakref else grp
        self._data_model: str = grp.data_model
        self._handle: Handle = grp._handle
        self._name = as_name(name)
        if "id" in kwargs:
            self._dimid: int = kwargs["id"]
            # The length, where it cannot change; None: unlimited.
            self._fixed: int | None = kwargs.get("fixed")
            return
        length = None if size is None else int(size)
        if length is not None and length < 0:
            raise OverflowError("can't convert negative value to size_t")
        self._handle.define()
        self._dimid = self._handle.file.def_dim(self._grpid, self._name, length or None)
        self._handle.defined()
        self._fixed = length or None

    @property
    def name(self) -> str:
        """Its name in the file."""
        return str(self._handle.file.dim(self._grpid, self._dimid)[0])

    @name.setter
    def name(self, value: Any) -> None:
        raise AttributeError("name cannot be altered")

    @property
    def size(self) -> int:
        """Its length now."""
        return len(self)

    @size.setter
    def size(self, value: Any) -> None:
        raise AttributeError("size cannot be altered")

    def __len__(self) -> int:
        if self._fixed is not None and self._handle.is_open:
            return self._fixed
        return int(self._handle.file.dim(self._grpid, self._dimid)[1])

    def group(self) -> Any:
        """The group it belongs to."""
        return self._grp

    def isunlimited(self) -> bool:
        """Whether it is unlimited."""
        if not self._handle.is_open:
            return bool(self._handle.file.dim(self._grpid, self._dimid)[2])
        return self._fixed is None

    def __repr__(self) -> str:
        return self.__str__()

    def __str__(self) -> str:
        if not dir(self._grp):
            return "Dimension object no longer valid"
        kind = " (unlimited)" if self.isunlimited() else ""
        return f'"{type(self)!r}"{kind}: name = \'{self._name}\', size = {len(self)}'


def find_dim(group: Any, name: Any) -> Dimension:
    """The dimension of a name in a group or the nearest group above.

    Raises
    ------
    ValueError
        There is none.
    """
    above = group
    while above is not None:
        found = above.dimensions.get(name)
        if found is not None:
            return found  # type: ignore[no-any-return]
        above = above.parent
    raise ValueError(f"cannot find dimension {name} in this group or parent groups")
