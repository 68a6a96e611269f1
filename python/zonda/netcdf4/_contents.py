# SPDX-License-Identifier: MIT OR Apache-2.0
"""The objects of a group of a file that is opened: dimensions, types, variables, groups."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import _complex
from ._dimension import Dimension
from ._lazy import Variables
from ._tables import DTYPE_OF_TYPE, FIRST_USER_TYPE, NC_STRING
from ._types import CompoundType, EnumType, Unsupported, VLType, compound_dtype, from_file
from ._variable import BYTE_ORDER, Variable


class Contents:
    """What a group has, from one call to the engine.

    Parameters
    ----------
    group : the Dataset or Group
    above : dimensions of the groups above, by number
    """

    def __init__(self, group: Any, above: dict[int, Dimension]) -> None:
        handle = group._handle
        _, _, _, self.groups, dims, variables, types = handle.file.group(group._grpid)
        self.compounds: dict[str, CompoundType] = {}
        self.rows: dict[str, VLType] = {}
        self.enums: dict[str, EnumType] = {}
        for typeid in types:
            self._add_type(group, typeid)
        self.dimensions: dict[str, Dimension] = {}
        self.by_number = dict(above)
        for dimid, name, length, is_unlimited in dims:
            made = Dimension(group, name, id=dimid, fixed=None if is_unlimited else length)
            self.dimensions[name] = self.by_number[dimid] = made
        by_number = self.by_number
        self.variables = Variables(lambda what: _make(group, by_number, *what))
        # Types of users are looked at now, since some are warned of. The group must not be held by its variables
        # where only weak references are wanted; then all are made.
        for varid, name, typeid, dimids, *_ in variables:
            if typeid < FIRST_USER_TYPE and not group.keepweakref:
                self.variables.later(name, (varid, name, typeid, dimids))
                continue
            made_variable = _make(group, by_number, varid, name, typeid, dimids)
            if made_variable is not None:
                self.variables[name] = made_variable
        if group.keepweakref:
            self.variables = dict(self.variables)  # type: ignore[assignment]

    def _add_type(self, group: Any, typeid: int) -> None:
        kinds = {"compound": ("Compound", self.compounds), "vlen": ("VLEN", self.rows), "enum": ("Enum", self.enums)}
        info = group._handle.file.type_info(typeid)
        if info["class"] not in kinds:
            return
        word, known = kinds[info["class"]]
        try:
            known[info["name"]] = from_file(group, typeid)  # type: ignore[index]
        except KeyError:
            warnings.warn(f"WARNING: unsupported {word} type, skipping...", stacklevel=6)


def _make(
    group: Any, by_number: dict[int, Dimension], varid: int, name: str, typeid: int, dimids: tuple[int, ...]
) -> Variable | None:
    """A variable, None if it is of a type without a form here."""
    dims = tuple(by_number[dimid] for dimid in dimids)
    user_type: Any = None
    complex_as: Any = None
    if typeid == NC_STRING:
        user_type = VLType(group, str, None, typeid=NC_STRING)
    elif typeid >= FIRST_USER_TYPE:
        info = group._handle.file.type_info(typeid)
        try:
            # Rows and enumerations have the byte order of the variable.
            order = ""
            if info["class"] in ("vlen", "enum"):
                order = BYTE_ORDER.get(group._handle.file.var_info(group._grpid, varid)["endian"], "")
            user_type = from_file(group, typeid, order)
        except Unsupported:
            kind = {"compound": "compound ", "vlen": "VLEN ", "enum": "Enum "}.get(info["class"], "")
            text = f"WARNING: variable '{name}' has unsupported {kind}datatype, skipping .."
            warnings.warn(text, stacklevel=6)
            return None
        if group.auto_complex and info["class"] == "compound":
            found = _complex.of_compound(compound_dtype(group._handle.file, info))
            complex_as = None if found is None else (found, _complex.COMPOUND)
    elif group.auto_complex and dims and _complex.is_dimension(dims[-1]) and DTYPE_OF_TYPE[typeid] in ("f4", "f8"):
        complex_as = (np.dtype("c16" if DTYPE_OF_TYPE[typeid] == "f8" else "c8"), _complex.DIMENSION)
        dims = dims[:-1]
    return Variable._open(group, name, varid, typeid, user_type, dims, complex_as)
