# SPDX-License-Identifier: MIT OR Apache-2.0
"""User-defined types: `CompoundType`, `VLType`, `EnumType`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._attributes import as_name
from ._tables import DTYPE_OF_TYPE, INTEGER_TYPES, NC_STRING, TYPE_OF_DTYPE, plain


class Unsupported(KeyError):
    """A type that netCDF4-python's interface has no form for."""


def aligned(dtype: np.dtype) -> np.dtype:
    """A structured type laid out as a C compiler does, text of n bytes as n characters."""
    formats = []
    for name in dtype.names or ():
        field = dtype.fields[name][0]  # type: ignore[index]
        if field.kind == "V" and field.shape == ():
            formats.append(aligned(field))
        elif field.subdtype is not None and field.subdtype[0].kind == "V":
            raise TypeError("nested structured dtype arrays not supported")
        elif field.kind == "S" and field.itemsize != 1:
            formats.append(np.dtype(("S1", (field.itemsize,))))
        else:
            formats.append(field)
    return np.dtype({"names": list(dtype.names or ()), "formats": formats}, align=True)


def text_view(dtype: np.dtype) -> np.dtype:
    """The same type with rows of characters as text."""
    formats = []
    for name in dtype.names or ():
        field = dtype.fields[name][0]  # type: ignore[index]
        if field.kind == "V" and field.shape == ():
            formats.append(text_view(field))
        elif field.subdtype is not None and field.subdtype[0].kind == "V":
            raise TypeError("nested structured dtype arrays not supported")
        elif field.subdtype is not None and field.subdtype[0].kind == "S" and len(field.shape) == 1:
            formats.append(np.dtype(f"S{field.shape[0]}"))
        else:
            formats.append(field)
    return np.dtype({"names": list(dtype.names or ()), "formats": formats}, align=True)


class _UserType:
    """A type with a number in the file."""

    __slots__ = ("_nc_type", "dtype", "name")

    _nc_type: int
    dtype: Any
    name: str | None

    def __repr__(self) -> str:
        return self.__str__()

    def __reduce__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is not picklable")


class CompoundType(_UserType):
    """A compound type, for structured arrays.

    Parameters
    ----------
    grp : the group it is defined in
    dt : a structured NumPy type; inner structures must be types of the file already
    dtype_name : its name
    """

    __slots__ = ("dtype_view", "_file_dtype")

    def __init__(self, grp: Any, dt: Any, dtype_name: Any, **kwargs: Any) -> None:
        given = np.dtype(dt)
        self.dtype = aligned(given)
        self.dtype_view = text_view(self.dtype)
        if "typeid" in kwargs:
            self._nc_type = kwargs["typeid"]
            # How the engine hands over values: the offsets are those of the file's type in memory.
            self._file_dtype = given
        else:
            self._nc_type = _define_compound(grp, self.dtype, dtype_name)
            self._file_dtype = self.dtype
        self.name = dtype_name

    def stored(self, array: np.ndarray) -> np.ndarray:
        """Values as the engine takes them: text as rows of characters, the file's offsets."""
        if array.dtype not in (self.dtype, self._file_dtype) and text_view(aligned(array.dtype)) == self.dtype_view:
            array = array.astype(self.dtype_view).view(self.dtype)
        return array if array.dtype == self._file_dtype else array.astype(self._file_dtype)

    def __str__(self) -> str:
        return f"{type(self)!r}: name = '{self.name}', numpy dtype = {self.dtype}"


class VLType(_UserType):
    """A type of rows of any length of a base type, or of text (`str`).

    Parameters
    ----------
    grp : the group it is defined in
    dt : the base type, a NumPy number, or `str`
    dtype_name : its name; of no use for `str`
    """

    __slots__ = ()

    def __init__(self, grp: Any, dt: Any, dtype_name: Any, **kwargs: Any) -> None:
        if "typeid" in kwargs:
            self._nc_type = kwargs["typeid"]
            self.dtype = dt
        elif dt is str:
            self._nc_type = NC_STRING
            self.dtype = str
        else:
            self.dtype = np.dtype(dt)
            base = TYPE_OF_DTYPE.get(plain(self.dtype))
            if base is None:
                raise KeyError("unsupported datatype specified for VLEN")
            grp._handle.define()
            self._nc_type = grp._handle.file.def_vlen(grp._grpid, as_name(dtype_name), base)
        self.name = None if self.dtype is str else dtype_name

    def __str__(self) -> str:
        if self.dtype is str:
            return f"{type(self)!r}: string type"
        return f"{type(self)!r}: name = '{self.name}', numpy dtype = {self.dtype}"


class EnumType(_UserType):
    """An enumeration.

    Parameters
    ----------
    grp : the group it is defined in
    dt : the base type, an integer
    dtype_name : its name
    enum_dict : values by name
    """

    __slots__ = ("enum_dict",)

    def __init__(self, grp: Any, dt: Any, dtype_name: Any, enum_dict: Any, **kwargs: Any) -> None:
        self.dtype = np.dtype(dt)
        if "typeid" in kwargs:
            self._nc_type = kwargs["typeid"]
        else:
            if plain(self.dtype) not in INTEGER_TYPES:
                raise KeyError("unsupported datatype specified for ENUM (must be integer)")
            members = [(as_name(name), int(np.array(value, self.dtype))) for name, value in enum_dict.items()]
            grp._handle.define()
            self._nc_type = grp._handle.file.def_enum(
                grp._grpid, as_name(dtype_name), TYPE_OF_DTYPE[plain(self.dtype)], members
            )
        self.name = dtype_name
        self.enum_dict = enum_dict

    def __str__(self) -> str:
        return (
            f"{type(self)!r}: name = '{self.name}', numpy dtype = {self.dtype}, fields/values ={self.enum_dict}"
        )


def _define_compound(grp: Any, dtype: np.dtype, name: Any) -> int:
    fields = []
    for field_name, (field, offset, *_) in sorted(dtype.fields.items(), key=lambda item: item[1][1]):  # type: ignore[union-attr]
        shape: tuple[int, ...] = ()
        if field.kind == "V" and field.shape == ():
            typeid = find_compound(grp, field)._nc_type
        else:
            base, shape = field.subdtype if field.subdtype is not None else (field, ())
            if plain(base) not in TYPE_OF_DTYPE:
                raise ValueError("Unsupported compound type element")
            typeid = TYPE_OF_DTYPE[plain(base)]
        fields.append((as_name(field_name), offset, typeid, tuple(shape)))
    grp._handle.define()
    return int(grp._handle.file.def_compound(grp._grpid, as_name(name), dtype.itemsize, fields))


def find_compound(grp: Any, dtype: np.dtype) -> CompoundType:
    """The compound type of this group or one above that has these names and formats.

    Raises
    ------
    ValueError
        There is none.
    """
    wanted = [field[0] for field in dtype.fields.values()]  # type: ignore[union-attr]
    while grp is not None:
        for compound in grp.cmptypes.values():
            fields = compound.dtype.fields
            formats = [field[0] for field in fields.values()]
            texts = [field[0] for field in compound.dtype_view.fields.values()]
            if (dtype.names == compound.dtype.names and wanted == formats) or wanted == texts:
                return compound  # type: ignore[no-any-return]
        grp = getattr(grp, "parent", None)
    raise ValueError("cannot find compound type in this group or parent groups")


def from_file(grp: Any, typeid: int, byte_order: str = "") -> CompoundType | VLType | EnumType:
    """The object for a type of the file.

    Raises
    ------
    Unsupported
        An opaque type, or a compound or rows of something else than numbers.
    """
    info = grp._handle.file.type_info(typeid)
    kind = info["class"]
    if kind == "compound":
        return CompoundType(grp, compound_dtype(grp._handle.file, info), info["name"], typeid=typeid)
    if kind == "vlen":
        if info["base"] not in DTYPE_OF_TYPE:
            raise Unsupported("unsupported component type for VLEN")
        return VLType(grp, np.dtype(byte_order + DTYPE_OF_TYPE[info["base"]]), info["name"], typeid=typeid)
    if kind == "enum":
        if info["base"] not in DTYPE_OF_TYPE:
            raise Unsupported("unsupported component type for ENUM")
        dtype = np.dtype(byte_order + DTYPE_OF_TYPE[info["base"]])
        return EnumType(grp, dtype, info["name"], dict(info["members"]), typeid=typeid)
    raise Unsupported("unsupported datatype")


def compound_dtype(file: Any, info: dict[str, Any]) -> np.dtype:
    """The NumPy type of a compound's values as they are in memory."""
    names, formats, offsets = [], [], []
    for name, offset, typeid, shape in sorted(info["fields"], key=lambda field: field[1]):
        if typeid in DTYPE_OF_TYPE:
            dtype: Any = np.dtype(DTYPE_OF_TYPE[typeid])
        else:
            inner = file.type_info(typeid) if typeid != NC_STRING else {"class": "string"}
            if inner["class"] != "compound":
                raise Unsupported("compound field of an unsupported data type")
            dtype = compound_dtype(file, inner)
        names.append(name)
        formats.append((dtype, tuple(shape)) if shape else dtype)
        offsets.append(offset)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": info["size"]})
