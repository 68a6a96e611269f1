"""Dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _modes

if TYPE_CHECKING:
    from .group import Group

__all__ = ["Dimension"]


class Dimension:
    """A dimension of a file.

    ``len(dim)`` is its length now, which grows as data are written if it is unlimited.
    """

    __slots__ = ("_group", "_id")

    def __init__(self, group: Group, number: int) -> None:
        self._group, self._id = group, number

    def _asked(self) -> tuple[str, int, bool, int]:
        return self._group._file.dim(self._group._id, self._id)

    @property
    def name(self) -> str:
        """Its name; setting it renames the dimension."""
        return self._asked()[0]

    @name.setter
    def name(self, name: str) -> None:
        _modes.define(self._group._file)
        self._group._file.rename_dim(self._group._id, self._id, name)
        self._group.dataset._changed()

    @property
    def size(self) -> int:
        """Its length now, in elements."""
        return self._asked()[1]

    @property
    def is_unlimited(self) -> bool:
        """Whether it grows."""
        return self._asked()[2]

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Dimension) and self._group.dataset is other._group.dataset and self._id == other._id
        )

    def __hash__(self) -> int:
        return hash((id(self._group.dataset), self._id))

    def __repr__(self) -> str:
        name, size, unlimited, _ = self._asked()
        return f"<zonda.Dimension {name!r}: {size}{' (unlimited)' if unlimited else ''}>"
