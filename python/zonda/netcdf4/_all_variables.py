# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a Dataset or Group does with all of its variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._object import assign


class AllVariables:
    """The methods of Dataset about all variables, those of its groups, too."""

    __slots__ = ()

    variables: dict[str, Any]
    groups: dict[str, Any]

    def _each_variable(self) -> Iterator[Any]:
        yield from self.variables.values()
        for group in self.groups.values():
            yield from group._each_variable()

    def set_auto_chartostring(self, value: Any) -> None:
        """`Variable.set_auto_chartostring` for all variables that are there, those of groups, too."""
        for variable in self._each_variable():
            variable.set_auto_chartostring(value)

    def set_auto_maskandscale(self, value: Any) -> None:
        """`Variable.set_auto_maskandscale` for all variables that are there."""
        for variable in self._each_variable():
            variable.set_auto_maskandscale(value)

    def set_auto_mask(self, value: Any) -> None:
        """`Variable.set_auto_mask` for all variables that are there."""
        for variable in self._each_variable():
            variable.set_auto_mask(value)

    def set_auto_scale(self, value: Any) -> None:
        """`Variable.set_auto_scale` for all variables that are there."""
        for variable in self._each_variable():
            variable.set_auto_scale(value)

    def set_always_mask(self, value: Any) -> None:
        """`Variable.set_always_mask` for all variables that are there."""
        for variable in self._each_variable():
            variable.set_always_mask(value)

    def set_ncstring_attrs(self, value: Any) -> None:
        """Whether text attributes, of groups and variables, are written as NC_STRING."""
        assign(self, "_ncstring_attrs__", bool(value))
        for variable in self.variables.values():
            variable.set_ncstring_attrs(value)
        for group in self.groups.values():
            group.set_ncstring_attrs(value)

    def get_variables_by_attributes(self, **kwargs: Any) -> list[Any]:
        """Variables of this group whose attributes have these values, or satisfy these functions.

        A function gets None where the attribute is missing.
        """
        return [var for var in self.variables.values() if kwargs and _matches(var, kwargs)]


def _matches(variable: Any, wanted: dict[str, Any]) -> bool:
    for name, value in wanted.items():
        found = getattr(variable, name, None)
        if callable(value):
            if value(found) is not True:
                return False
        elif not hasattr(variable, name) or not found == value:
            return False
    return True
