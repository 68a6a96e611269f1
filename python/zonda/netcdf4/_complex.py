# SPDX-License-Identifier: MIT OR Apache-2.0
"""Complex numbers (`auto_complex`): a compound of two parts, or a last dimension of length two.

The conventions, and the names of what is made, are those of the library nc-complex, which the netCDF4 module
has inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._dimension import Dimension
from ._types import CompoundType

COMPOUND = "compound"
DIMENSION = "dimension"

COMPOUND_NAMES = {"c16": "_PFNC_DOUBLE_COMPLEX_TYPE", "c8": "_PFNC_FLOAT_COMPLEX_TYPE"}
DIMENSION_NAMES = ("_pfnc_complex", "complex", "ri")
PARTS = {"c16": "f8", "c8": "f4"}


def part(dtype: np.dtype) -> str:
    """The type of the real part."""
    return PARTS[dtype.str[1:]]


def of_compound(dtype: np.dtype | None) -> np.dtype | None:
    """The complex type that a compound is, None if it is none: two numbers `r...` and `i...` of one type."""
    if dtype is None or dtype.names is None or len(dtype.names) != 2:
        return None
    real, imaginary = (dtype.fields[name][0] for name in dtype.names)  # type: ignore[index]
    names = [name[:1].lower() for name in dtype.names]
    if names != ["r", "i"] or real != imaginary or real.str[1:] not in ("f4", "f8") or dtype.itemsize != 2 * real.itemsize:
        return None
    return np.dtype("c16" if real.itemsize == 8 else "c8")


def is_dimension(dimension: Dimension) -> bool:
    """Whether a dimension is that of the two parts: of length two, named so or as the begin of such a name."""
    return len(dimension) == 2 and any(name.startswith(dimension._name) for name in DIMENSION_NAMES)


def compound_for(group: Any, dtype: np.dtype) -> CompoundType:
    """The compound type for complex numbers in a group, made if there is none."""
    above = group
    while above is not None:
        for known in above.cmptypes.values():
            if of_compound(known.dtype) == dtype:
                return known  # type: ignore[no-any-return]
        above = above.parent
    name = COMPOUND_NAMES[dtype.str[1:]]
    return CompoundType(group, [("r", part(dtype)), ("i", part(dtype))], name)


def dimension_for(group: Any) -> Dimension:
    """The dimension of the two parts, made if there is none."""
    for dimension in group.dimensions.values():
        if is_dimension(dimension):
            return dimension  # type: ignore[no-any-return]
    made = Dimension(group, DIMENSION_NAMES[0], 2)
    group.dimensions[DIMENSION_NAMES[0]] = made
    return made
