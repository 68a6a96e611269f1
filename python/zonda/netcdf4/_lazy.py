# SPDX-License-Identifier: MIT OR Apache-2.0
"""A dictionary of variables that makes each when it is asked for: most of a file's are not, and all cost."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, ValuesView
from typing import Any


class Variables(dict[str, Any]):
    """Variables by name, in the order of the file.

    A dictionary in all that can be done with it. `__iter__` is defined so that `dict(...)`, `update` and `|`
    ask for the values instead of copying what is stored.

    Parameters
    ----------
    make : gives the variable for what was stored with `later`
    """

    __slots__ = ("_make", "_later", "_made")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make
        self._later: dict[str, Any] = {}
        self._made: dict[str, Any] = {}

    def later(self, name: str, what: Any) -> None:
        """A variable that is made when it is asked for."""
        self._later[name] = what
        super().__setitem__(name, None)

    def _resolve(self, name: str, value: Any) -> Any:
        if value is not None or name not in self._later:
            return value
        # Of two threads that come here at once one wins, and both have its variable.
        made = self._made.setdefault(name, self._make(self._later[name]))
        super().__setitem__(name, made)
        return made

    def __getitem__(self, name: str) -> Any:
        return self._resolve(name, super().__getitem__(name))

    def __setitem__(self, name: str, value: Any) -> None:
        self._later.pop(name, None)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._later.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def pop(self, name: str, *default: Any) -> Any:
        if name not in self:
            return super().pop(name, *default)
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name = next(reversed(self), None)
        return super().popitem() if name is None else (name, self.pop(name))

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def clear(self) -> None:
        super().clear()
        self._later.clear()

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __eq__(self, other: object) -> bool:
        return dict(self) == (dict(other) if isinstance(other, Variables) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
