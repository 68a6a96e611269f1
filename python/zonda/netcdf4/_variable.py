# SPDX-License-Identifier: MIT OR Apache-2.0
"""Variables."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np
from numpy import ma

from . import _complex, _data, _masking
from ._attributes import as_name
from ._definition import Definition
from ._description import Described
from ._dimension import Dimension, find_dim
from ._errors import of_attributes
from ._handle import Handle
from ._object import WithAttributes, assign
from ._selection import FULL, Selection, is_int, reading, writing
from ._strings import chartostring, stringtochar
from ._tables import DTYPE_OF_TYPE, TYPE_OF_DTYPE, default_fillvals, plain
from ._types import CompoundType, EnumType, VLType, text_view

BYTE_ORDER = {"little": "<", "big": ">"}
UNSCALED = "invalid scale_factor or add_offset attribute, no unpacking done..."
FILL_AT_CREATION = (
    "_FillValue attribute must be set when variable is created (using fill_value keyword to createVariable)"
)


class Variable(WithAttributes, Described):
    """A variable: indexing reads and writes, attributes are those of the file.

    Made by `Dataset.createVariable`, which tells the parameters.
    """

    __slots__ = (
        "_handle", "_grpid", "_varid", "_grp", "_name", "_dims", "_dtype", "_user_type", "_complex", "ndim", "_lsd",
        "scale", "mask", "always_mask", "chartostring", "_ncstring_attrs__", "__orthogonal_indexing__", "_use_get_vars",
        "_rules_kept", "_fixed_shape", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, grp: Any, name: Any, datatype: Any, dimensions: Any = (), compression: Any = None, zlib: Any = False,
        complevel: Any = 4, shuffle: Any = True, szip_coding: Any = "nn", szip_pixels_per_block: Any = 8,
        blosc_shuffle: Any = 1, fletcher32: Any = False, contiguous: Any = False, chunksizes: Any = None,
        endian: Any = "native", least_significant_digit: Any = None, significant_digits: Any = None,
        quantize_mode: Any = "BitGroom", fill_value: Any = None, chunk_cache: Any = None,
    ) -> None:  # fmt: skip
        options = {
            "compression": compression, "zlib": zlib, "complevel": complevel, "shuffle": shuffle,
            "szip_coding": szip_coding, "szip_pixels_per_block": szip_pixels_per_block,
            "blosc_shuffle": blosc_shuffle, "fletcher32": fletcher32, "contiguous": contiguous,
            "chunksizes": chunksizes, "endian": endian, "least_significant_digit": least_significant_digit,
            "significant_digits": significant_digits, "quantize_mode": quantize_mode, "fill_value": fill_value,
            "chunk_cache": chunk_cache,
        }  # fmt: skip
        name = as_name(name)
        wanted = Definition(grp, name, datatype, options)
        varid, _ = wanted.make(tuple(dimensions))
        self._set(grp, name, varid, wanted.dtype, wanted.user_type, tuple(dimensions), wanted.complex)
        assign(self, "_lsd", least_significant_digit)

    @classmethod
    def _open(cls, grp: Any, name: str, varid: int, typeid: int, user_type: Any, dims: tuple[Dimension, ...], complex_as: Any) -> Variable:  # fmt: skip
        """A variable that the file has."""
        self = cls.__new__(cls)
        dtype: Any = None  # asked for when wanted: the byte order costs a call
        if complex_as is not None:
            dtype, complex_as = complex_as
        elif user_type is not None:
            dtype = user_type.dtype
        elif grp._handle.netcdf3:
            dtype = np.dtype(DTYPE_OF_TYPE[typeid])
        self._set(grp, name, varid, dtype if dtype is not None else typeid, user_type, dims, complex_as)
        return self

    def _set(self, grp: Any, name: str, varid: int, dtype: Any, user_type: Any, dims: tuple[Dimension, ...], complex_as: Any) -> None:  # fmt: skip
        assign(self, "_handle", grp._handle)
        assign(self, "_grpid", grp._grpid)
        assign(self, "_grp", weakref.proxy(grp) if grp.keepweakref else grp)
        assign(self, "_varid", varid)
        assign(self, "_name", name)
        assign(self, "_dims", dims)
        assign(self, "_dtype", dtype)
        assign(self, "_user_type", user_type)
        assign(self, "_complex", complex_as)
        assign(self, "ndim", len(dims))
        fixed = tuple(d._fixed for d in dims)
        assign(self, "_fixed_shape", None if None in fixed else fixed)
        assign(self, "_lsd", self)  # not known yet
        for flag in ("scale", "mask", "always_mask", "chartostring", "__orthogonal_indexing__", "_use_get_vars"):
            assign(self, flag, True)
        assign(self, "_ncstring_attrs__", grp._ncstring_attrs__)
        assign(self, "_rules_kept", (None, None, None))

    # ---- what it is --------------------------------------------------------------------------------

    def _owner(self) -> Any:
        return self._grp

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return self._all_attributes()

    @property
    def dtype(self) -> Any:
        """The NumPy type of an element; `str` for strings."""
        dtype = self._dtype
        if isinstance(dtype, int):
            order = BYTE_ORDER.get(self.endian(), "")
            name = DTYPE_OF_TYPE[dtype]
            dtype = np.dtype(name if name == "S1" else order + name)
            assign(self, "_dtype", dtype)
        return dtype

    @property
    def datatype(self) -> Any:
        """The NumPy type, or the CompoundType, VLType or EnumType."""
        return self.dtype if self._user_type is None else self._user_type

    @property
    def name(self) -> str:
        """Its name."""
        if not self._handle.is_open:
            self._info()
        return str(self._name)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of its dimensions."""
        if not self._handle.is_open:
            self._info()
        return tuple(dim._name for dim in self._dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its dimensions now."""
        if self._fixed_shape is not None and self._handle.is_open:
            return self._fixed_shape  # type: ignore[no-any-return]
        return tuple(len(dim) for dim in self._dims)

    @property
    def size(self) -> int:
        """Number of its elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    _iscompound = property(lambda self: isinstance(self._user_type, CompoundType))
    _isvlen = property(lambda self: isinstance(self._user_type, VLType))
    _isenum = property(lambda self: isinstance(self._user_type, EnumType))
    _isprimitive = property(lambda self: self._user_type is None)
    _cmptype = _vltype = _enumtype = property(lambda self: self._user_type)
    _nunlimdim = property(lambda self: sum(dim.isunlimited() for dim in self._dims))
    _has_lsd = property(lambda self: self._digit() is not None)

    def group(self) -> Any:
        """The group it is in."""
        return self._grp

    def get_dims(self) -> tuple[Dimension, ...]:
        """Its dimensions."""
        return tuple(find_dim(self._grp, name) for name in self.dimensions)

    def get_fill_value(self) -> Any:
        """What elements that were never written have; None if that is nothing, or not known."""
        if self._info()["no_fill"]:
            return None
        try:
            return self.getncattr("_FillValue")
        except AttributeError:
            if self._user_type is not None:
                return None
            return np.array(default_fillvals[plain(self.dtype)], self.dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        data = self[...]
        return data if dtype is None else np.asarray(data, dtype)

    def __repr__(self) -> str:
        return self.__str__()

    def __str__(self) -> str:
        if not dir(self._grp):
            return "Variable object no longer valid"
        kinds = {CompoundType: "compound", VLType: "vlen", EnumType: "enum"}
        kind = kinds.get(type(self._user_type))
        lines = [repr(type(self)), f"{kind or self.dtype} {self._name}({', '.join(self.dimensions)})"]
        lines += [f"    {name}: {self.getncattr(name)}" for name in self.ncattrs()]
        if kind is not None:
            lines.append(f"{kind} data type: {self.dtype}")
        if self._grp.path != "/":
            lines.append(f"path = {self._grp.path}")
        unlimited = [dim._name for dim in self._dims if dim.isunlimited()]
        lines.append(f"unlimited dimensions: {', '.join(unlimited)}")
        lines.append(f"current shape = {self.shape!r}")
        if self._user_type is None:
            lines.append(self._filling())
        return "\n".join(lines)

    def _filling(self) -> str:
        if self._info()["no_fill"]:
            return "filling off"
        if "_FillValue" in self.ncattrs():
            return "filling on"
        verb = "ignored" if plain(self.dtype) in ("u1", "i1") else "used"
        return f"filling on, default _FillValue of {default_fillvals[plain(self.dtype)]} {verb}"

    def __reduce__(self) -> Any:
        raise NotImplementedError("Variable is not picklable")

    # ---- attributes with rules of their own --------------------------------------------------------

    def setncattr(self, name: Any, value: Any) -> None:
        """Sets an attribute; `_FillValue` only when the variable is made."""
        if name == "_FillValue":
            raise AttributeError(FILL_AT_CREATION)
        self._digit()
        super().setncattr(name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("valid_min", "valid_max", "valid_range", "missing_value") and self._user_type is None:
            # Written as the variable's type, if that keeps the value.
            cast = np.array(value, self.dtype)
            if _masking.same_values(np.array(value), cast):
                value = cast
            else:
                warnings.warn(f"WARNING: {name} cannot be safely cast to variable dtype", stacklevel=2)
        super().__setattr__(name, value)

    def _attribute(self, name: str) -> Any:
        """An attribute's value, None if there is none."""
        if name not in self._handle.attributes_of(self._grpid, self._varid):
            return None
        return self.getncattr(name)

    def _digit(self) -> Any:
        """`least_significant_digit` as it was when the variable was made or opened."""
        if self._lsd is self:
            assign(self, "_lsd", self._attribute("least_significant_digit"))
        return self._lsd

    def _rules(self) -> _masking.Rules:
        """Masks and scaling by the attributes as they are now."""
        attributes = self._handle.attributes_of(self._grpid, self._varid)
        rules: _masking.Rules | None
        known, scales, rules = self._rules_kept
        if known is not attributes or scales is not self.scale or rules is None:
            scales = self.scale
            dtype = np.dtype(object) if self.dtype is str else self.dtype
            # Whether the default fill counts is asked only where bytes make a difference.
            is_filled = dtype.itemsize > 1 or "_FillValue" in attributes or not self._info()["no_fill"]
            # The rules of complex numbers are those of their parts; where there are no numbers, any do.
            part = _complex.part(dtype) if dtype.kind == "c" else plain(dtype)
            with of_attributes():
                found = self._handle.file.netcdf4_rules(
                    self._grpid, self._varid, TYPE_OF_DTYPE.get(part, TYPE_OF_DTYPE["f8"]),
                    scales=scales, is_filled=is_filled, by_value=_masking.BY_VALUE,
                )  # fmt: skip
            rules = _masking.Rules(found, self._attribute, dtype)
            assign(self, "_rules_kept", (attributes, scales, rules))
        return rules

    # ---- reading -----------------------------------------------------------------------------------

    def __getitem__(self, elem: Any) -> Any:
        handle: Handle = self._handle
        handle.data()
        shape = self.shape
        selection = reading(elem, shape)
        data = _data.read(self, selection)
        if selection.scalars:
            data = data[selection.squeezed()]
        elif not shape:
            data = data if not isinstance(data, np.ndarray) or data.ndim == 0 else data[0]
            if not isinstance(data, str):
                data = np.asarray(data)
        rules = self._rules()
        if self.scale and not rules.scales:
            warnings.warn(UNSCALED, stacklevel=2)
        primitive = self._user_type is None
        if self.mask and (primitive or self._isenum):
            data = rules.masked(data, self.always_mask)
        elif self.scale:
            data = rules.as_meant(data)
        if self.scale and (primitive or (self._isvlen and self.dtype is not str)):
            data = rules.scaled(data)
        if self.chartostring and primitive and rules.encoding is not None and self.dtype.kind == "S":
            data = self._joined(data, selection, shape, rules.encoding)
        elif self._iscompound and self._complex is None and self.chartostring:
            compound = self._user_type
            if compound.dtype != compound.dtype_view:
                data = data.view(compound.dtype_view)
        return data

    def _joined(self, data: Any, selection: Selection, shape: tuple[int, ...], encoding: str) -> Any:
        """Characters as text, where the whole of the last dimension was read by a slice."""
        if not data.shape or data.shape[-1] != shape[-1] or not selection.takes_whole(len(shape) - 1, shape[-1]):
            return data
        return chartostring(data, encoding=encoding)

    def getValue(self) -> Any:
        """The value of a scalar variable."""
        if self._dims:
            raise IndexError("to retrieve values from a non-scalar variable, use slicing")
        return self[FULL]

    # ---- writing -----------------------------------------------------------------------------------

    def __setitem__(self, elem: Any, data: Any) -> None:
        self._handle.data()
        if self._handle.is_parallel:
            # In a collective write all ranks take part, whatever becomes of it on this one.
            self._handle.file.put_with_ranks(self._grpid, self._varid, lambda: self._assign(elem, data))
        else:
            self._assign(elem, data)

    def _assign(self, elem: Any, data: Any) -> None:
        if self.chartostring and self._user_type is None and self.dtype.kind == "S":
            data = self._split(data)
        elif self._iscompound and self._complex is None and self.chartostring:
            data = self._without_text(data)
        if self._isvlen:
            data, single = self._rows(data)
            if single:
                _data.write_row(self, self._place(elem), data)
                return
        if not ma.isMA(data) and not isinstance(getattr(data, "data", None), memoryview):
            data = self._array(data)
        if self._isenum:
            values = data.filled() if ma.isMA(data) else data
            if not np.isin(values, list(self._user_type.enum_dict.values())).all():
                raise ValueError("trying to assign illegal value to Enum variable")
        unlimited = tuple(dim.isunlimited() for dim in self._dims)
        selection = writing(elem, self.shape, unlimited, data.shape)
        data = _data.fitted(data, selection)
        digit = self._digit()
        if digit is not None:
            data = _masking.quantized(data, digit)
        if self.scale and self._user_type is None:
            data = _masking.packed(data, self._rules(), self._attribute, self.dtype)
        _data.write(self, selection, data)

    def _array(self, data: Any) -> np.ndarray:
        """What is no array yet as one; numbers that will be packed stay floating."""
        rules = self._rules()
        dtype = self.dtype
        if (self.scale and dtype is not str and dtype.kind in "iu" and rules.scale_factor is not None) or rules.add_offset is not None:
            return np.array(data, np.float64)
        return np.array(data, object if dtype is str else dtype)

    def _split(self, data: Any) -> Any:
        """Text for characters with an `_Encoding`, as characters."""
        encoding = self._rules().encoding
        if encoding is None:
            return data
        width = self.shape[-1]
        if type(data) in (str, bytes):
            data = np.asarray(data, dtype=f"{'S' if encoding == 'ascii' else 'U'}{width}")
        if data.dtype.kind in "SU" and data.dtype.itemsize > 1:
            data = stringtochar(data, encoding=encoding, n_strlen=width)
        return data

    def _without_text(self, data: Any) -> Any:
        """Structures with text as the file's, with rows of characters."""
        compound = self._user_type
        if compound.dtype == compound.dtype_view or data.dtype.names is None:
            return data
        if text_view(data.dtype) == compound.dtype_view:
            data = data.astype(compound.dtype_view).view(compound.dtype)
        return data

    def _rows(self, data: Any) -> tuple[Any, bool]:
        """Data for strings or rows of numbers, and whether they are a single element's."""
        if self.dtype is str:
            if not isinstance(data, np.ndarray):
                return data, True
            if data.dtype.kind in "SU":
                if ma.isMA(data):
                    raise TypeError("masked arrays cannot be assigned by VLEN str slices")
                return data.astype(object), False
            if data.dtype.kind != "O":
                raise TypeError("only numpy string, unicode or object arrays can be assigned to VLEN str var slices")
            return data, False
        if isinstance(data, np.ndarray) and data.dtype.kind == "O":
            return data, False
        if self.scale:
            rules = self._rules()
            if rules.scale_factor is not None or rules.add_offset is not None or not hasattr(data, "dtype"):
                data = np.asarray(data)
            data = _masking.packed(data, rules, self._attribute, self.dtype)
        return data, True

    def _place(self, elem: Any) -> tuple[int, ...]:
        """The position of one element of a variable of rows.

        Raises
        ------
        IndexError
            Something that is not one integer per dimension.
        """
        if not self._dims:
            return ()
        only_integers = "data can only be assigned to VLEN variables using integer indices"
        shape = self.shape
        items = elem if isinstance(elem, tuple) else (elem,)
        if not all(is_int(item) for item in items) or (not isinstance(elem, tuple) and len(shape) > 1):
            raise IndexError(only_integers)
        if len(items) != len(shape):
            raise IndexError("Illegal index")
        place = tuple(int(i) + n if i < 0 else int(i) for i, n in zip(items, shape, strict=True))
        if min(place) < 0:
            raise IndexError("Illegal index")
        return place

    def assignValue(self, val: Any) -> None:
        """Sets the value of a scalar variable."""
        if self._dims:
            raise IndexError("to assign values to a non-scalar variable, use a slice")
        self[:] = val

    # ---- switches ----------------------------------------------------------------------------------

    def set_auto_chartostring(self, chartostring: Any) -> None:
        """Whether characters with an `_Encoding` are text to Python (default: yes)."""
        assign(self, "chartostring", bool(chartostring))

    def set_auto_maskandscale(self, maskandscale: Any) -> None:
        """Whether values are masked and scaled (default: yes)."""
        assign(self, "scale", bool(maskandscale))
        assign(self, "mask", bool(maskandscale))

    def set_auto_scale(self, scale: Any) -> None:
        """Whether values are scaled by `scale_factor` and `add_offset` (default: yes)."""
        assign(self, "scale", bool(scale))

    def set_auto_mask(self, mask: Any) -> None:
        """Whether missing and invalid values are masked (default: yes)."""
        assign(self, "mask", bool(mask))

    def set_always_mask(self, always_mask: Any) -> None:
        """Whether arrays without masked values are masked arrays, too (default: yes)."""
        assign(self, "always_mask", bool(always_mask))

    def set_ncstring_attrs(self, ncstring_attrs: Any) -> None:
        """Whether text attributes are written as NC_STRING (default: no)."""
        assign(self, "_ncstring_attrs__", bool(ncstring_attrs))

    def use_nc_get_vars(self, use_nc_get_vars: Any) -> None:
        """Of no effect: steps are read as fast either way."""
        assign(self, "_use_get_vars", bool(use_nc_get_vars))

    def set_collective(self, value: Any) -> None:
        """Whether all ranks write it together; at first each writes alone. Of no effect in files that are not parallel."""
        if self._handle.is_parallel:
            self._handle.file.set_collective(self._grpid, self._varid, bool(value))


