"""The data store: one group of a file, as xarray's conventions read and write it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping

import numpy as np
from xarray import Variable

from zonda import _remote, _zonda

from . import _attributes, _contents, _decode, _encoding
from ._arrays import ZondaTarget
from ._handles import Handle, Opened, Source
from ._types import (
    NC_STRING,
    VariableType,
    engine_format,
    file_name,
    is_classic_model,
    is_text,
    typeid_of,
    xarray_format,
)
from ._xarray import (
    ArrayWriter,
    CharacterArrayCoder,
    EncodedStringCoder,
    WritableCFDataStore,
    encode_nc3_attr_value,
    encode_nc3_variable,
)

__all__ = ["ZondaDataStore"]

_GLOBAL = -1


@dataclass
class _Context:
    """A group while variables are defined in it: numbers by name."""

    file: _zonda.File
    group: int
    variables: dict[str, int]
    dimensions: dict[str, int]


class ZondaDataStore(WritableCFDataStore):
    """One group of an open file.

    Parameters
    ----------
    handle : Handle
        The file.
    group : str, optional
        Path of the group, ``/`` between the names; None for the root.
    auto_complex : bool
        Give compounds of two reals as complex numbers, and write complex numbers as such.
    autoclose, lock
        For blocks that are written by several processes: each is written under the lock, and the file is
        closed after it. Without, blocks may be written by several threads at once.
    """

    __slots__ = ("auto_complex", "autoclose", "format", "group", "handle", "lock", "on_put")

    def __init__(
        self,
        handle: Handle,
        group: str | None = None,
        *,
        auto_complex: bool = False,
        autoclose: bool = False,
        lock: Any = None,
    ) -> None:
        if group is not None and not isinstance(group, str):
            raise ValueError("group must be a string or None")
        self.handle = handle
        self.group = "/" + group.strip("/") if group not in (None, "", "/") else "/"
        self.auto_complex = auto_complex
        self.autoclose = autoclose
        self.lock = lock
        self.on_put: Callable[[int], None] | None = None
        opened = handle.acquire()
        self.format = xarray_format(opened.file.format)
        if self.handle.mode != "r" or self.group != "/":
            self.number(opened)

    @classmethod
    def open(
        cls,
        filename: Any,
        mode: str = "r",
        format: str | None = None,
        group: str | None = None,
        clobber: bool = True,
        diskless: bool = False,
        persist: bool = False,
        auto_complex: bool | None = None,
        lock: Any = None,
        lock_maker: Any = None,
        autoclose: bool = False,
        write_behind: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> ZondaDataStore:
        """Open or create a file; the keywords are those of xarray's ``NetCDF4DataStore.open``.

        Parameters
        ----------
        filename : path, bytes, file object
            With mode ``"w"`` an object that can be written is given the whole file when it is closed.
        mode : {"r", "a", "r+", "w", "x"}
            ``"a"`` creates the file if there is none; ``"r+"`` does not.
        lock, lock_maker
            Accepted for likeness. No lock is taken, except with `autoclose`.
        write_behind : str, optional
            What ``File.create`` takes: ``"on"``, ``"off"``, ``"mem=512M"`` ...
        storage_options : mapping, optional
            For a URL: as of `zonda.open`; of other protocols than HTTP and S3 for fsspec.

        Raises
        ------
        OSError
            If the file cannot be opened, is no netCDF file, or has no such group.
        """
        if mode not in ("r", "a", "r+", "w", "x"):
            raise ValueError(f"unknown mode {mode!r}")
        options: dict[str, Any] = {"in_memory": True, "persist": persist} if diskless else {}
        on_close = None
        if hasattr(filename, "getbuffer") and hasattr(filename, "getvalue") and not hasattr(filename, "read"):
            source = Source("sink", None)  # xarray's BytesIOProxy
            proxy = filename

            def on_close(data: bytes) -> None:
                proxy.getvalue = lambda: memoryview(data)
        elif mode == "w" and hasattr(filename, "write"):
            source = Source("sink", None)
            file = filename

            def on_close(data: bytes) -> None:
                file.write(data)
        else:
            source = Source.of(filename)
        if mode != "r":
            if source.kind not in ("path", "sink"):
                raise TypeError(f"mode {mode!r} needs a path, not {filename!r}")
            if write_behind is not None and source.kind == "path" and not diskless:
                options["write_behind"] = write_behind
            if mode == "r+" or (mode == "a" and os.path.exists(source.value)):
                mode = "a"
            elif mode == "a" or (mode == "w" and not clobber):
                mode = "x"
        elif source.kind == "path" and _remote.is_url(source.value):
            options["remote"] = _remote.settings(storage_options)
        elif source.kind == "path" and "://" in str(source.value):
            source = _by_fsspec(source.value, storage_options)
        elif storage_options is not None:
            raise ValueError("storage_options are for URLs")
        handle = Handle(
            source, mode, format=engine_format(format) if mode in ("w", "x") else None, options=options
        )
        handle.on_close = on_close
        if autoclose and mode != "r" and lock is None:
            from ._streaming import lock_for

            lock = lock_for(source.name)
        try:
            return cls(handle, group, auto_complex=bool(auto_complex), autoclose=autoclose, lock=lock)
        except Exception:
            handle.close()
            raise

    def get_child_store(self, group: str) -> ZondaDataStore:
        """The store of a group below this one; it shares the file."""
        path = self.group.rstrip("/") + "/" + group.strip("/")
        return self._at(path)

    def _at(self, path: str) -> ZondaDataStore:
        child = type(self)(
            self.handle, path, auto_complex=self.auto_complex, autoclose=self.autoclose, lock=self.lock
        )
        child.on_put = self.on_put
        return child

    def group_stores(self) -> Iterable[ZondaDataStore]:
        """The stores of this group and of all below it, parents first."""
        yield self
        file = self.handle.acquire().file
        for child in self._locate(self.handle.acquire())[1][3]:
            name = file.group(child)[0]
            yield from self.get_child_store(name).group_stores()

    # ---- finding things ----------------------------------------------------------------------------

    def number(self, opened: Opened) -> int:
        """Number of the group; creates it in a file that is written.

        Raises
        ------
        OSError
            If a file that is read has no such group.
        """
        known = opened.places.get(self.group)
        if known is not None:
            return known[0]
        file, group = opened.file, 0
        for name in [part for part in self.group.split("/") if part]:
            children = {file.group(child)[0]: child for child in file.group(group)[3]}
            if name in children:
                group = children[name]
            elif self.handle.mode == "r":
                raise OSError(f"group not found: {name} in {self.handle.source.name!r}")
            else:
                group = file.def_group(group, name)
        opened.places[self.group] = group, {}
        return group

    def _locate(self, opened: Opened) -> tuple[int, tuple[Any, ...]]:
        """Number and description of the group; creates it in a file that is written."""
        found = opened.groups.get(self.group)
        if found is not None:
            return found  # type: ignore[return-value]
        group = self.number(opened)
        found = (group, opened.file.group(group))
        if self.handle.mode == "r":
            opened.groups[self.group] = found
        return found

    def find(self, opened: Opened, name: str) -> tuple[int, int]:
        """Numbers of the group and of a variable in it.

        Raises
        ------
        OSError
            If the file, opened again, has no such variable any more.
        """
        place = opened.places.get(self.group)
        if place is None or name not in place[1]:
            group, info = self._locate(opened)
            place = opened.places[self.group] = group, {var[1]: var[0] for var in info[5]}
            if name not in place[1]:
                raise OSError(f"no variable {name!r} in group {self.group!r} of {self.handle.source.name!r}")
        return place[0], place[1][name]

    def _dimensions(self, opened: Opened) -> dict[int, tuple[str, int, bool]]:
        """Every dimension that the group sees: name, length, whether unlimited."""
        seen: dict[int, tuple[str, int, bool]] = {}
        _, info = self._locate(opened)
        while True:
            for dim, name, length, unlimited in info[4]:
                seen.setdefault(dim, (name, length, unlimited))
            if info[2] is None:
                return seen
            info = opened.file.group(info[2])

    # ---- reading -----------------------------------------------------------------------------------
    # For who asks a store; the engine itself makes datasets in `_decode`.

    def get_variables(self) -> dict[str, Variable]:
        parts = _contents.read(self, self.handle.acquire()).variables
        return {part.name: _decode.variable(self, part) for part in parts}

    def get_attrs(self) -> dict[str, Any]:
        return dict(_contents.read(self, self.handle.acquire()).attrs)

    def get_dimensions(self) -> dict[str, int]:
        _, info = self._locate(self.handle.acquire())
        return {name: length for _, name, length, _ in info[4]}

    def get_parent_dimensions(self) -> dict[str, int]:
        opened = self.handle.acquire()
        own = self.get_dimensions()
        return {name: length for name, length, _ in self._dimensions(opened).values() if name not in own}

    def get_encoding(self) -> dict[str, Any]:
        _, info = self._locate(self.handle.acquire())
        return {"unlimited_dims": {name for _, name, _, unlimited in info[4] if unlimited}}

    # ---- writing -----------------------------------------------------------------------------------

    def _define(self) -> tuple[_zonda.File, int, tuple[Any, ...]]:
        opened = self.handle.acquire()
        file = opened.file
        if self.format != "NETCDF4" and not file.in_define_mode:
            file.redef()
        group, info = self._locate(opened)
        return file, group, info

    def set_dimension(self, name: Any, length: int | None, is_unlimited: bool = False) -> None:
        _no_slash(name)
        file, group, _ = self._define()
        file.def_dim(group, name, None if is_unlimited else length)

    def set_attribute(self, key: str, value: Any) -> None:
        if self.format != "NETCDF4":
            value = encode_nc3_attr_value(value)
        file, group, _ = self._define()
        _attributes.put(file, group, _GLOBAL, key, value)

    def encode_variable(self, variable: Variable, name: Any = None) -> Variable:
        dtype = variable.dtype
        if dtype.kind in "iufc" and not dtype.isnative:
            # The file keeps the byte order that the array has.
            encoding = {**variable.encoding}
            encoding.setdefault("endian", "big" if dtype.newbyteorder(">") == dtype else "little")
            data = variable.data.astype(dtype.newbyteorder("="))
            variable = Variable(variable.dims, data, variable.attrs, encoding, fastpath=True)
        if self.format != "NETCDF4":
            return encode_nc3_variable(variable, name=name)
        for coder in (EncodedStringCoder(allows_unicode=True), CharacterArrayCoder()):
            variable = coder.encode(variable, name=name)
        return variable

    def set_variables(
        self, variables: Any, check_encoding_set: Any, writer: ArrayWriter, unlimited_dims: Any = None
    ) -> None:
        # All definitions first: in a classic file each return to them could move the data.
        targets = []
        context = self._context()
        for key, variable in variables.items():
            name = file_name(key)
            target = self._define_variable(name, variable, key in check_encoding_set, unlimited_dims, context)
            targets.append((variable, target))
        self._end_definitions()
        for variable, target in targets:
            writer.add(variable.data, target)

    def _end_definitions(self) -> None:
        file = self.handle.acquire().file
        if self.format != "NETCDF4" and file.in_define_mode:
            file.enddef()

    def prepare_variable(
        self, name: str, variable: Variable, check_encoding: bool = False, unlimited_dims: Any = None
    ) -> tuple[ZondaTarget, Any]:
        target = self._define_variable(name, variable, check_encoding, unlimited_dims, self._context())
        self._end_definitions()
        return target, variable.data

    def _context(self) -> _Context:
        """What defining variables needs to know of the group; asked once for all of them."""
        file, group, info = self._define()
        seen = self._dimensions(self.handle.acquire())
        return _Context(
            file,
            group,
            {var[1]: var[0] for var in info[5]},
            # Of two dimensions of one name, the one of the inner group counts.
            {name: dim for dim, (name, _, _) in reversed(seen.items())},
        )

    def _define_variable(
        self, name: str, variable: Variable, check_encoding: bool, unlimited_dims: Any, context: _Context
    ) -> ZondaTarget:
        _no_slash(name)
        attributes = dict(variable.attrs)
        fill = attributes.pop("_FillValue", None)
        file, group = context.file, context.group
        kind, typeid = self._writable_type(file, group, name, variable, check_encoding)
        encoding = _encoding.extract(variable, check=check_encoding, unlimited_dims=unlimited_dims)
        digits = encoding.get("least_significant_digit")
        if name in context.variables:
            var = context.variables[name]
        else:
            var = file.def_var(group, name, typeid, tuple(context.dimensions[dim] for dim in variable.dims))
            context.variables[name] = var
            if self.format.startswith("NETCDF4"):
                size = 1 if kind.objects else kind.dtype.itemsize
                _encoding.apply(file, group, var, variable, encoding, size)
            if fill is False:
                file.def_var_fill(group, var, None)
            elif fill is not None:
                self._put_fill(file, group, var, typeid, kind, fill)
            if digits is not None:
                file.put_att(group, var, "least_significant_digit", 4, np.array([digits], "i4"))
        for key, value in attributes.items():
            _attributes.put(file, group, var, key, value)
        return ZondaTarget(self, name, variable.shape, kind, digits=None if digits is None else int(digits))

    def _put_fill(
        self, file: _zonda.File, group: int, var: int, typeid: int, kind: VariableType, fill: Any
    ) -> None:
        if typeid == NC_STRING:
            file.put_att(group, var, "_FillValue", typeid, [fill.decode() if isinstance(fill, bytes) else str(fill)])
        elif kind.dtype.kind == "S":
            # One character: an empty text is the null that ends it.
            text = fill if isinstance(fill, bytes) else str(fill).encode()
            file.put_att(group, var, "_FillValue", typeid, text[:1] or b"\0")
        elif kind.complex:
            half = f"f{kind.dtype.itemsize // 2}"
            value = np.array([fill], kind.dtype).view([("r", half), ("i", half)])
            file.put_att(group, var, "_FillValue", typeid, value)
        else:
            file.put_att(group, var, "_FillValue", typeid, np.array([fill], kind.dtype))

    def _writable_type(
        self,
        file: _zonda.File,
        group: int,
        name: str,
        variable: Variable,
        check_encoding: bool,
    ) -> tuple[VariableType, int]:
        """What the array is in the file; defines an enumeration or a complex number where it needs one."""
        dtype = variable.dtype
        wants_strings = variable.encoding.get("dtype") is str
        if self.format != "NETCDF4":
            if wants_strings and check_encoding:
                raise ValueError("encoding dtype=str for vlen strings is only supported with format='NETCDF4'.")
            return VariableType(dtype, dtype), typeid_of(dtype)
        if wants_strings or is_text(dtype):
            return VariableType(np.dtype(object), str, objects=True), NC_STRING
        metadata = dtype.metadata or {}
        if metadata.get("enum_name") and metadata.get("enum"):
            typeid = self._enumeration(file, group, name, dtype)
            return VariableType(np.dtype(dtype.str), dtype), typeid
        if dtype.kind == "c":
            if not self.auto_complex:
                raise ValueError(
                    f"variable {name!r}: netCDF has no complex numbers ({dtype}); auto_complex=True writes "
                    "them as compounds"
                )
            return VariableType(dtype, dtype, complex=True), self._complex_type(file, dtype)
        if dtype.kind not in "iufS":
            raise ValueError(f"unsupported dtype for netCDF4 variable: {dtype}")
        return VariableType(dtype, dtype), typeid_of(dtype)

    def _types_in_sight(self, file: _zonda.File, info: tuple[Any, ...]) -> Iterable[dict[str, Any]]:
        while True:
            yield from (file.type_info(typeid) for typeid in info[6])
            if info[2] is None:
                return
            info = file.group(info[2])

    def _enumeration(self, file: _zonda.File, group: int, name: str, dtype: np.dtype) -> int:
        metadata = dtype.metadata or {}
        enum_name, members = metadata["enum_name"], dict(metadata["enum"])
        for known in self._types_in_sight(file, file.group(group)):
            if known["class"] != "enum" or known["name"] != enum_name:
                continue
            if dict(known["members"]) != members:
                raise ValueError(
                    f"Cannot save variable `{name}` because an enum `{enum_name}` already exists in the Dataset "
                    "but has a different definition. To fix this error, give each enum a name of its own in "
                    "`encoding['dtype'].metadata`, or make enums of one name identical."
                )
            return int(known["id"])
        return file.def_enum(group, enum_name, typeid_of(np.dtype(dtype.str)), list(members.items()))

    def _complex_type(self, file: _zonda.File, dtype: np.dtype) -> int:
        # The names are those of the nc-complex library, which netCDF4-python uses.
        half = dtype.itemsize // 2
        name = "_PFNC_DOUBLE_COMPLEX_TYPE" if half == 8 else "_PFNC_FLOAT_COMPLEX_TYPE"
        for known in self._types_in_sight(file, file.group(0)):
            if known["name"] == name:
                return int(known["id"])
        real = 6 if half == 8 else 5
        return file.def_compound(0, name, dtype.itemsize, [("r", 0, real, ()), ("i", half, real, ())])

    def write(self, target: ZondaTarget, start: Any, count: Any, stride: Any, array: np.ndarray) -> None:
        """Write one block; called by any thread, or in the process to which dask sent the target."""
        if self.lock is None:
            target.put(self.handle.acquire(), start, count, stride, array)
        else:
            with self.lock:
                try:
                    target.put(self.handle.acquire(), start, count, stride, array)
                finally:
                    if self.autoclose:
                        self.handle.close()
        if self.on_put is not None:
            self.on_put(array.nbytes)

    def sync(self) -> None:
        if self.handle.is_open:
            self.handle.acquire().file.sync()

    def close(self, **kwargs: Any) -> None:
        self.handle.close()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.handle, self.group, self.auto_complex, self.autoclose, self.lock, self.format

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.handle, self.group, self.auto_complex, self.autoclose, self.lock, self.format = state
        self.on_put = None


def _no_slash(name: Any) -> None:
    if "/" in str(name):
        raise ValueError(
            f"Forward slashes '/' are not allowed in variable and dimension names (got {name!r}). "
            "Forward slashes are used as hierarchy-separators for "
            "HDF5-based files ('netcdf4'/'h5netcdf')."
        )


def _by_fsspec(url: str, options: Mapping[str, Any] | None) -> Source:
    try:
        import fsspec
    except ImportError as error:
        raise OSError(f"{url!r}: reading URLs needs the package fsspec") from error
    return Source("object", fsspec.open(url, "rb", **(options or {})).open())
