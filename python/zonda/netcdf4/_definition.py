# SPDX-License-Identifier: MIT OR Apache-2.0
"""Defining a variable: createVariable's keywords as the engine's calls."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from . import _attributes, _complex
from ._errors import about
from ._handle import Handle
from ._tables import (
    BLOSC_CODECS,
    COMPRESSIONS,
    ENDIAN_OF_BYTEORDER,
    FILTER_BLOSC,
    FILTER_BZIP2,
    FILTER_SZIP,
    FILTER_ZSTD,
    QUANTIZE_MODES,
    SZIP_CODINGS,
    TYPE_OF_DTYPE,
    default_fillvals,
    dtype_is_complex,
    plain,
)
from ._types import CompoundType, EnumType, VLType

DEFAULT_FILL_UNKNOWN = """
WARNING: there is no default fill value for this data type, so fill_value='default'
does not do anything."""


class Definition:
    """The keywords of createVariable, checked.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As createVariable.
    """

    def __init__(self, grp: Any, name: str, datatype: Any, options: dict[str, Any]) -> None:
        self.grp = grp
        self.name = name
        self.options = options
        self.handle: Handle = grp._handle
        self.where = f"(variable '{name}', group '{grp.name}')"
        self.compression = self._compression()
        self._check_endian()
        self.user_type: Any = None
        self.complex: str | None = None
        self.dtype, self.typeid = self._type(datatype)

    def _compression(self) -> str | None:
        compression = self.options["compression"]
        if self.options["zlib"] and not compression:
            compression = "zlib"
        if not self.options["complevel"] or not compression:
            return None
        if compression not in COMPRESSIONS:
            raise ValueError(f"Unsupported value for compression kwarg {self.where}")
        return str(compression)

    def _check_endian(self) -> None:
        endian = self.options["endian"]
        if self.handle.netcdf3 and endian != "native":
            raise RuntimeError(f"only endian='native' allowed for NETCDF3 files, got '{endian}' {self.where}")
        if endian not in ("little", "big", "native"):
            raise ValueError(
                f"'endian' keyword argument must be 'little','big' or 'native', got '{endian}' {self.where}"
            )

    def _type(self, datatype: Any) -> tuple[Any, int]:
        """The type as Python has it and its number in the file."""
        if not isinstance(datatype, (CompoundType, VLType, EnumType)) and datatype is not str:
            datatype = np.dtype(datatype)
            if datatype.kind == "U" or (datatype.kind == "S" and datatype.itemsize > 1):
                datatype = str
        if datatype is str:
            if self.handle.classic:
                raise ValueError(
                    "Variable length strings are only supported for the NETCDF4 format. For other formats, "
                    "consider using netCDF4.stringtochar to convert string arrays into character arrays with "
                    f"an additional dimension. {self.where}"
                )
            datatype = VLType(self.grp, str, None)
        if isinstance(datatype, (CompoundType, VLType, EnumType)):
            self.user_type = datatype
            return datatype.dtype, datatype._nc_type
        is_complex = dtype_is_complex(datatype)
        if is_complex and not self.grp.auto_complex:
            raise ValueError(f"complex datatypes ({datatype}) are only supported with `auto_complex=True`")
        self._compare_endian(datatype)
        if is_complex:
            return self._complex_type(datatype)
        if plain(datatype) not in TYPE_OF_DTYPE:
            raise TypeError(
                f"Illegal primitive data type, must be one of {TYPE_OF_DTYPE.keys()}, got {datatype} {self.where}"
            )
        return datatype, TYPE_OF_DTYPE[plain(datatype)]

    def _compare_endian(self, datatype: np.dtype) -> None:
        endian = self.options["endian"]
        of_type = ENDIAN_OF_BYTEORDER[datatype.byteorder]
        if of_type is None or of_type == endian or (of_type == "native" and endian == sys.byteorder):
            return
        warnings.warn("endian-ness of dtype and endian kwarg do not match, using endian kwarg", stacklevel=5)

    def _complex_type(self, datatype: np.dtype) -> tuple[Any, int]:
        if self.handle.classic:
            self.complex = _complex.DIMENSION
            return datatype, TYPE_OF_DTYPE[_complex.part(datatype)]
        self.complex = _complex.COMPOUND
        self.user_type = _complex.compound_for(self.grp, datatype)
        return datatype, self.user_type._nc_type

    def make(self, dimensions: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        """Defines the variable and sets all that has to be set before data; its number and dimensions."""
        handle, group = self.handle, self.grp._grpid
        stored = dimensions
        if self.complex == _complex.DIMENSION:
            stored = (*dimensions, _complex.dimension_for(self.grp))
        # Checks that need no variable come first: one that is refused is not left half made.
        self._check_chunks(dimensions)
        handle.define()
        with about(self.where):
            variable = handle.file.def_var(group, self.name, self.typeid, tuple(d._dimid for d in stored))
            if not handle.netcdf3:
                self._set_storage(variable, dimensions)
        self._set_fill(variable)
        digit = self.options["least_significant_digit"]
        if digit is not None:
            _attributes.write(self.grp, variable, "least_significant_digit", digit)
        handle.defined()
        return variable, stored

    def _check_chunks(self, dimensions: tuple[Any, ...]) -> None:
        options = self.options
        chunks = options["chunksizes"]
        if self.handle.netcdf3:
            return
        if options["significant_digits"] is not None and options["quantize_mode"] not in QUANTIZE_MODES:
            raise ValueError(
                "'quantize_mode' keyword argument must be 'BitGroom','GranularBitRound' or 'BitRound', "
                f"got '{options['quantize_mode']}'"
            )
        if not dimensions or chunks is None:
            return
        if options["contiguous"]:
            raise ValueError("cannot specify chunksizes for a contiguous dataset")
        if len(chunks) != len(dimensions):
            raise ValueError("chunksizes must be a sequence with the same length as dimensions")
        for dimension, chunk in zip(dimensions, chunks, strict=True):
            if not dimension.isunlimited() and chunk > len(dimension):
                raise ValueError("chunksize cannot exceed dimension size")

    def _set_storage(self, variable: int, dimensions: tuple[Any, ...]) -> None:
        file, group, options = self.handle.file, self.grp._grpid, self.options
        if options["chunk_cache"] is not None:
            _, slots, preemption = file.var_info(group, variable)["chunk_cache"]
            file.set_var_chunk_cache(group, variable, int(options["chunk_cache"]), slots, preemption)
        if dimensions:
            self._set_compression(variable)
            if options["fletcher32"]:
                file.def_var_fletcher32(group, variable, True)
            if options["contiguous"]:
                file.def_var_chunking(group, variable, None)
            elif options["chunksizes"] is not None:
                chunks = tuple(int(chunk) for chunk in options["chunksizes"])
                if self.complex == _complex.DIMENSION:
                    chunks = (*chunks, 2)
                file.def_var_chunking(group, variable, chunks)
        if options["endian"] != "native":
            file.def_var_endian(group, variable, options["endian"])
        if options["significant_digits"] is not None:
            file.def_var_quantize(group, variable, options["quantize_mode"], int(options["significant_digits"]))

    def _set_compression(self, variable: int) -> None:
        file, group, options = self.handle.file, self.grp._grpid, self.options
        level = int(options["complevel"])
        if self.compression == "zlib":
            file.def_var_deflate(group, variable, level, bool(options["shuffle"]))
        elif self.compression == "szip":
            if options["szip_coding"] not in SZIP_CODINGS:
                raise ValueError("unknown szip coding ('ec' or 'nn' supported)")
            coding = SZIP_CODINGS[options["szip_coding"]]
            file.def_var_filter(group, variable, FILTER_SZIP, [coding, int(options["szip_pixels_per_block"])])
        elif self.compression == "zstd":
            file.def_var_filter(group, variable, FILTER_ZSTD, [level & 0xFFFF_FFFF])
        elif self.compression == "bzip2":
            file.def_var_filter(group, variable, FILTER_BZIP2, [level])
        elif self.compression is not None:
            codec = BLOSC_CODECS[self.compression]
            # The first three are the filter's own, then the size of a block (0: the filter chooses).
            params = [0, 0, 0, 0, level, int(options["blosc_shuffle"]), codec]
            file.def_var_filter(group, variable, FILTER_BLOSC, params)

    def _set_fill(self, variable: int) -> None:
        fill = self.options["fill_value"]
        if fill is None:
            return
        primitive = self.user_type is None
        if fill is False:
            if primitive:
                self.handle.file.def_var_fill(self.grp._grpid, variable, None)
        elif isinstance(fill, str) and fill == "default":
            if primitive:
                value = np.array(default_fillvals[plain(self.dtype)])
                _attributes.write(self.grp, variable, "_FillValue", value, typeid=self.typeid)
            else:
                warnings.warn(DEFAULT_FILL_UNKNOWN, stacklevel=6)
        elif self.dtype is str:
            _attributes.write(self.grp, variable, "_FillValue", str(fill), as_string=True)
        elif primitive or isinstance(self.user_type, EnumType):
            value = np.array(fill, self.dtype)
            _attributes.write(self.grp, variable, "_FillValue", value, typeid=self.typeid)
        else:
            raise AttributeError("cannot set _FillValue attribute for VLEN or compound variable")
