# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files and groups: `Dataset` and `Group`."""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Iterator
from typing import Any

from .. import _parallel, _remote, _zonda
from . import _cdl
from ._all_variables import AllVariables
from ._attributes import as_name
from ._contents import Contents
from ._dimension import Dimension, find_dim
from ._errors import opening
from ._handle import Handle
from ._object import WithAttributes, assign
from ._tables import ENGINE_FORMAT, FILTER_BLOSC, FILTER_BZIP2, FILTER_SZIP, FILTER_ZSTD, NC_GLOBAL
from ._types import CompoundType, EnumType, VLType
from ._variable import Variable


class Dataset(WithAttributes, AllVariables):
    """A netCDF file, and its root group.

    Parameters
    ----------
    filename : path; with `memory` only a name
    mode : `r`, `w`, `x` (w that does not overwrite), `a` or `r+`; `s` behind it: unbuffered (classic formats)
    clobber : whether `w` overwrites
    format : NETCDF4, NETCDF4_CLASSIC, NETCDF3_CLASSIC, NETCDF3_64BIT_OFFSET or NETCDF3_64BIT_DATA
    diskless : keep the file in memory
    persist : with `diskless` and `w`, write it to disk when it is closed
    keepweakref : dimensions and variables do not keep the Dataset alive
    memory : with `r` the bytes of a file; with `w` a size, and `close` gives the bytes
    encoding : of the file's name
    auto_complex : show complex numbers as such
    parallel : open on all ranks of a communicator; `comm` and `info` are of mpi4py, COMM_WORLD and none by default

    Raises
    ------
    OSError
        With errno, or netCDF's number, and the file's name.
    ValueError
        Keywords that are not possible.
    """

    __slots__ = (
        "_handle", "_grpid", "groups", "dimensions", "variables", "path", "parent", "cmptypes", "vltypes", "enumtypes",
        "__orthogonal_indexing__", "keepweakref", "_ncstring_attrs__", "auto_complex", "_inmemory", "_buffer", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, filename: Any, mode: str = "r", clobber: bool = True, format: str = "NETCDF4", diskless: bool = False,
        persist: bool = False, keepweakref: bool = False, memory: Any = None, encoding: str | None = None,
        parallel: bool = False, comm: Any = None, info: Any = None, auto_complex: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if memory is not None and mode not in ("r", "w"):
            raise ValueError("if memory kwarg specified, mode must be 'r' or 'w'")
        ranks = _with_ranks(comm, info, in_memory=diskless or memory is not None) if parallel else None
        path = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
        path = os.fsdecode(path) if isinstance(path, bytes) else str(path)
        name: str | bytes = path if encoding is None else path.encode(encoding)
        mode, clobber = _plain_mode(mode, clobber, filename, ranks)
        write, share = mode[0] == "w", mode.endswith("s")
        with opening(_remote.shown(path)):
            if not write and memory is not None:
                file = _zonda.File.open_bytes(memory)
            elif write and format not in ENGINE_FORMAT:
                raise ValueError("unrecognized format requested")
            elif ranks is not None and write:
                file = _zonda.File.create_parallel(name, ENGINE_FORMAT[format], *ranks[1:], exclusive=not clobber)
            elif ranks is not None:
                file = _zonda.File.open_parallel(name, *ranks[1:], write=mode[0] == "a")
            elif write:
                file = _zonda.File.create(
                    name,
                    ENGINE_FORMAT[format],
                    exclusive=not clobber,
                    share=share,
                    in_memory=diskless or memory is not None,
                    persist=bool(diskless and persist),
                )
            else:
                file = _zonda.File.open(name, write=mode[0] == "a", share=share, in_memory=diskless)
        handle = Handle(file, file.path if _remote.is_url(name) else name, created=write)
        self._begin(handle, 0, "/", None, keepweakref, False, auto_complex)
        assign(self, "_inmemory", write and memory is not None)
        # The buffer of a file that is read from memory lives as long as the file.
        assign(self, "_buffer", memory)
        if write:
            self._fill_empty()
        else:
            self._fill({})

    def _begin(self, handle: Handle, grpid: int, path: str, parent: Any, weak: bool, ncstrings: bool, complexes: bool) -> None:
        for name, value in (
            ("_handle", handle), ("_grpid", grpid), ("path", path), ("parent", parent), ("keepweakref", weak),
            ("_ncstring_attrs__", ncstrings), ("auto_complex", complexes), ("__orthogonal_indexing__", True),
            ("_inmemory", False), ("_buffer", None),
        ):  # fmt: skip
            assign(self, name, value)

    def _fill_empty(self) -> None:
        for name in ("cmptypes", "vltypes", "enumtypes", "dimensions", "variables", "groups"):
            assign(self, name, {})

    def _fill(self, above: dict[int, Dimension]) -> None:
        """The objects that the file has."""
        contents = Contents(self, above)
        assign(self, "cmptypes", contents.compounds)
        assign(self, "vltypes", contents.rows)
        assign(self, "enumtypes", contents.enums)
        assign(self, "dimensions", contents.dimensions)
        assign(self, "variables", contents.variables)
        groups = {}
        for number in contents.groups:
            name = self._handle.file.group(number)[0]
            groups[name] = Group(self, name, id=number, above=contents.by_number)
        assign(self, "groups", groups)

    # ---- what it is --------------------------------------------------------------------------------

    _varid = property(lambda self: NC_GLOBAL)
    _isopen = property(lambda self: int(self._handle.is_open))

    def _owner(self) -> Any:
        return self

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return self._all_attributes()

    @property
    def data_model(self) -> str:
        """The format, such as NETCDF4."""
        return self._handle.data_model

    @property
    def file_format(self) -> str:
        """The format, by its older name."""
        return self._handle.data_model

    @property
    def disk_format(self) -> str:
        """NETCDF3, HDF5, DAP2 or DAP4."""
        return self._handle.disk_format

    @property
    def name(self) -> str:
        """The name of the group, `/` for the root."""
        return str(self._handle.file.group(self._grpid)[0])

    def filepath(self, encoding: str | None = None) -> str:
        """The path that the file was opened by."""
        path = self._handle.path
        return os.fsdecode(path) if encoding is None else os.fsencode(path).decode(encoding)

    def isopen(self) -> bool:
        """Whether the file is open."""
        return self._handle.is_open

    def __getitem__(self, elem: Any) -> Any:
        path, last = posixpath.split(posixpath.normpath(elem))
        group = self
        for part in path.split("/"):
            if part:
                group = group.groups[part]
        if last in group.groups:
            return group.groups[last]
        if last in group.variables:
            return group.variables[last]
        raise IndexError(f"{last} not found in {group.path}")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Dataset is not iterable. Consider iterating on Dataset.variables.")

    def __contains__(self, key: Any) -> bool:
        raise TypeError(
            "Dataset does not support membership operations. Perhaps try 'varname in dataset.variables' or "
            "'dimname in dataset.dimensions'."
        )

    def __repr__(self) -> str:
        return self.__str__()

    def __str__(self) -> str:
        lines = [repr(type(self))]
        if self.path == "/":
            lines.append(f"root group ({self.data_model} data model, file format {self.disk_format}):")
        else:
            lines.append(f"group {self.path}:")
        lines += [f"    {name}: {self.getncattr(name)}" for name in self.ncattrs()]
        dims = ", ".join(f"{name}({len(dim)})" for name, dim in self.dimensions.items())
        variables = ", ".join(
            f"{var.dtype} {name}({', '.join(var.dimensions)})" for name, var in self.variables.items()
        )
        lines.append(f"    dimensions(sizes): {dims}")
        lines.append(f"    variables(dimensions): {variables}")
        lines.append(f"    groups: {', '.join(map(str, self.groups))}")
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        raise NotImplementedError("Dataset is not picklable")

    # ---- end ---------------------------------------------------------------------------------------

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> Any:
        """Closes the file; one that was made in memory gives its bytes.

        Raises
        ------
        RuntimeError
            It is closed already, or what was not written yet cannot be.
        """
        handle = self._handle
        if not handle.is_open:
            raise RuntimeError("NetCDF: Not a valid ID")
        if self._inmemory:
            handle.data()
            handle.is_open = False
            return memoryview(handle.file.take_bytes())
        handle.close()
        assign(self, "_buffer", None)
        return None

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None) if type(self) is not Group else None
        if handle is None or not handle.is_open:
            return
        try:
            handle.close()
        except Exception as error:  # nobody can catch it
            warnings.warn(f"{handle.path}: {error}", RuntimeWarning, stacklevel=1)

    def sync(self) -> None:
        """Writes what is buffered."""
        self._handle.data()
        self._handle.file.sync()

    def _redef(self) -> None:
        self._handle.define()

    def _enddef(self) -> None:
        self._handle.data()

    def set_fill_on(self) -> None:
        """Elements that are not written have the fill value (default)."""
        self._handle.file.set_fill(True)

    def set_fill_off(self) -> None:
        """Elements that are not written have any value."""
        self._handle.file.set_fill(False)

    # ---- definitions -------------------------------------------------------------------------------

    def createDimension(self, dimname: Any, size: Any = None) -> Dimension:
        """Makes a dimension; without a size, or of size 0, it is unlimited."""
        made = Dimension(self, dimname, size)
        self.dimensions[dimname] = made
        return made

    def renameDimension(self, oldname: Any, newname: Any) -> None:
        """Gives a dimension another name."""
        if oldname not in self.dimensions:
            raise KeyError(f"{oldname} not a valid dimension name")
        dim = self.dimensions[oldname]
        self._handle.define()
        self._handle.file.rename_dim(self._grpid, dim._dimid, as_name(newname))
        self._handle.defined()
        dim._name = as_name(newname)
        self.dimensions[newname] = self.dimensions.pop(oldname)

    def createCompoundType(self, datatype: Any, datatype_name: Any) -> CompoundType:
        """Makes a compound type of a structured NumPy type."""
        made = CompoundType(self, datatype, datatype_name)
        self.cmptypes[datatype_name] = made
        return made

    def createVLType(self, datatype: Any, datatype_name: Any) -> VLType:
        """Makes a type of rows of any length."""
        made = VLType(self, datatype, datatype_name)
        self.vltypes[datatype_name] = made
        return made

    def createEnumType(self, datatype: Any, datatype_name: Any, enum_dict: Any) -> EnumType:
        """Makes an enumeration of the values of a dictionary."""
        made = EnumType(self, datatype, datatype_name, enum_dict)
        self.enumtypes[datatype_name] = made
        return made

    def createVariable(
        self, varname: Any, datatype: Any, dimensions: Any = (), compression: Any = None, zlib: Any = False,
        complevel: Any = 4, shuffle: Any = True, szip_coding: Any = "nn", szip_pixels_per_block: Any = 8,
        blosc_shuffle: Any = 1, fletcher32: Any = False, contiguous: Any = False, chunksizes: Any = None,
        endian: Any = "native", least_significant_digit: Any = None, significant_digits: Any = None,
        quantize_mode: Any = "BitGroom", fill_value: Any = None, chunk_cache: Any = None,
    ) -> Variable:  # fmt: skip
        """Makes a variable; groups on its path that are not there are made, too.

        Parameters
        ----------
        varname : name, or path
        datatype : NumPy type, `str`, or a type of this file
        dimensions : names or Dimensions; none: a scalar
        compression : zlib, szip, zstd, bzip2, blosc_lz, blosc_lz4, blosc_lz4hc, blosc_zlib or blosc_zstd
        zlib : compression="zlib", as it used to be called
        complevel : 0 (none) to 9
        shuffle : reorder bytes before zlib
        szip_coding, szip_pixels_per_block : `nn` or `ec`; even, up to 32
        blosc_shuffle : 0 none, 1 bytes, 2 bits
        fletcher32 : checksums
        contiguous : not in chunks
        chunksizes : lengths of a chunk
        endian : byte order in the file
        least_significant_digit : decimal place that values are rounded to when written
        significant_digits, quantize_mode : digits kept; BitGroom, GranularBitRound, BitRound (bits)
        fill_value : of elements not written; False: any value
        chunk_cache : bytes of the chunk cache while the file is open

        Raises
        ------
        ValueError, TypeError, RuntimeError
            What does not fit, or what the engine says.
        """
        path, name = posixpath.split(posixpath.normpath(varname))
        group = self.createGroup(path) if path else self
        if isinstance(dimensions, (str, bytes, Dimension)):
            dimensions = (dimensions,)
        dims = tuple(find_dim(group, d) if isinstance(d, (str, bytes)) else d for d in dimensions)
        made = Variable(
            group, name, datatype, dims, compression, zlib, complevel, shuffle, szip_coding, szip_pixels_per_block,
            blosc_shuffle, fletcher32, contiguous, chunksizes, endian, least_significant_digit, significant_digits,
            quantize_mode, fill_value, chunk_cache,
        )  # fmt: skip
        group.variables[name] = made
        return made

    def renameVariable(self, oldname: Any, newname: Any) -> None:
        """Gives a variable another name."""
        if oldname not in self.variables:
            raise KeyError(f"{oldname} not a valid variable name")
        var = self.variables[oldname]
        self._handle.define()
        self._handle.file.rename_var(self._grpid, var._varid, as_name(newname))
        self._handle.defined()
        assign(var, "_name", as_name(newname))
        self.variables[newname] = self.variables.pop(oldname)

    def createGroup(self, groupname: Any) -> Any:
        """Makes a group, and those above it that are not there; gives the one that is there."""
        group = self
        for part in posixpath.normpath(groupname).split("/"):
            if not part:
                continue
            if part not in group.groups:
                group.groups[part] = Group(group, part)
            group = group.groups[part]
        return group

    def renameGroup(self, oldname: Any, newname: Any) -> None:
        """Gives a group another name."""
        if oldname not in self.groups:
            raise KeyError(f"{oldname} not a valid group name")
        group = self.groups[oldname]
        self._handle.file.rename_group(group._grpid, as_name(newname))
        self.groups[newname] = self.groups.pop(oldname)

    # ---- text and filters --------------------------------------------------------------------------

    @staticmethod
    def fromcdl(cdlfilename: Any, ncfilename: Any = None, mode: str = "a", format: str = "NETCDF4") -> Any:
        """Makes a file of CDL with `ncgen` and opens it.

        Raises
        ------
        FileNotFoundError, FileExistsError
            No CDL, or the file is there.
        """
        return Dataset(_cdl.generate(cdlfilename, ncfilename, format), mode=mode)

    def tocdl(self, coordvars: bool = False, data: bool = False, outfile: Any = None) -> str | None:
        """The file as CDL by `ncdump`, with the data of coordinates or all; into a file if one is named."""
        self.sync()
        return _cdl.dump(self._handle.path, coordvars, data, outfile)

    def has_blosc_filter(self) -> bool:
        """Whether blosc is there."""
        return bool(_zonda.has_filter(FILTER_BLOSC))

    def has_zstd_filter(self) -> bool:
        """Whether zstd is there."""
        return bool(_zonda.has_filter(FILTER_ZSTD))

    def has_bzip2_filter(self) -> bool:
        """Whether bzip2 is there."""
        return bool(_zonda.has_filter(FILTER_BZIP2))

    def has_szip_filter(self) -> bool:
        """Whether szip is there."""
        return bool(_zonda.has_filter(FILTER_SZIP))


def _with_ranks(comm: Any, info: Any, in_memory: bool) -> tuple[Any, int, int]:
    """The communicator, and the handles that the engine takes.

    Raises
    ------
    ValueError
        A file in memory, or no mpi4py, as the netCDF4 module without MPI.
    TypeError
        No communicator, or no Info.
    """
    if in_memory:
        raise ValueError("a file in memory (diskless, memory) cannot be parallel")
    try:
        return _parallel.handles(comm, info)
    except ImportError as error:
        raise ValueError(str(error)) from error


def _plain_mode(mode: str, clobber: bool, filename: Any, ranks: tuple[Any, int, int] | None) -> tuple[str, bool]:
    """The mode as one of r, w, a, with an s behind it or not, and whether `w` overwrites."""
    if mode == "x":
        mode, clobber = "w", False
    mode = mode.replace("r+", "a")
    if mode in ("a", "as") and not _exists(filename, ranks):
        mode = mode.replace("a", "w")
    if mode not in ("r", "rs", "w", "ws", "a", "as"):
        raise ValueError(f"mode must be 'w', 'x', 'r', 'a' or 'r+', got '{mode}'")
    return mode, clobber


def _exists(filename: Any, ranks: tuple[Any, int, int] | None) -> bool:
    """Whether there is a file; of ranks, what the first one finds: another may have made it meanwhile."""
    if ranks is None:
        # What is on a server can be opened, and is refused by who opens it.
        return _remote.is_url(filename) or os.path.exists(filename)
    comm = ranks[0]
    return bool(comm.bcast(os.path.exists(filename) if comm.rank == 0 else None))


class Group(Dataset):
    """A group of a file; made by `Dataset.createGroup`.

    Parameters
    ----------
    parent : the Dataset or Group that it is in
    name : its name
    """

    __slots__ = ()

    def __init__(self, parent: Any, name: Any, **kwargs: Any) -> None:
        handle = parent._handle
        name = as_name(name)
        number = kwargs.get("id")
        if number is None:
            number = handle.file.def_group(parent._grpid, name)
        self._begin(handle, number, posixpath.join(parent.path, name), parent, parent.keepweakref,
                    parent._ncstring_attrs__, parent.auto_complex)  # fmt: skip
        if "id" in kwargs:
            self._fill(kwargs["above"])
        else:
            self._fill_empty()

    def close(self) -> Any:
        """Not for groups.

        Raises
        ------
        OSError
            Always.
        """
        raise OSError("cannot close a `Group` (only applies to Dataset)")
