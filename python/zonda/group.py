"""Groups: what is in them, and how to define more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import _modes, _show, types as nctypes
from ._zonda import File
from .attributes import Attributes
from .dimension import Dimension
from .errors import NotFound
from .filters import FilterSpec, compression as compression_filter, parse
from .variable import Variable

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["Group"]

_GLOBAL = -1
_NC_EBADDIM, _NC_ENOTVAR, _NC_ENOGRP, _NC_EBADTYPE = -46, -49, -125, -45
_Item = TypeVar("_Item")
_UNSET: Any = type("_Unset", (), {"__repr__": lambda self: "<as the library has it>"})()


class Group:
    """A group of a file; the root group is the `Dataset`.

    ``group["name"]`` is a variable or group in it, ``group["a/b/name"]`` one further down, ``group["/name"]`` one seen
    from the root. As a collection it has its variables: ``for name in group``, ``len(group)``.
    """

    __slots__ = ("__weakref__", "_dataset", "_file", "_id")
    _dataset: Dataset
    _file: File
    _id: int

    def __init__(self, dataset: Dataset, number: int) -> None:
        self._dataset, self._id, self._file = dataset, number, dataset._file

    # ---- what it is ---------------------------------------------------------------------------------

    @property
    def dataset(self) -> Dataset:
        """The dataset that it is in."""
        return self._dataset

    @property
    def name(self) -> str:
        """Its name; ``"/"`` for the root. Setting it renames the group."""
        return str(self._dataset._describe(self._id)[0])

    @name.setter
    def name(self, name: str) -> None:
        _modes.define(self._file)
        self._file.rename_group(self._id, name)
        self._dataset._changed()

    @property
    def path(self) -> str:
        """Its full name, such as ``"/forecast/surface"``."""
        return str(self._dataset._describe(self._id)[1])

    @property
    def parent(self) -> Group | None:
        """The group that it is in; None for the root."""
        number = self._dataset._describe(self._id)[2]
        return None if number is None else self._dataset._group(number)

    @property
    def groups(self) -> dict[str, Group]:
        """Its groups by name."""
        found = (self._dataset._group(number) for number in self._dataset._describe(self._id)[3])
        return {group.name: group for group in found}

    @property
    def dims(self) -> dict[str, Dimension]:
        """The dimensions defined in it, by name. Its variables may have those of groups above, too."""
        return {entry[1]: Dimension(self, entry[0]) for entry in self._dataset._describe(self._id)[4]}

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the dimensions defined in it."""
        return {name: dim.size for name, dim in self.dims.items()}

    @property
    def variables(self) -> dict[str, Variable]:
        """Its variables by name, in the order of definition."""
        return {entry[1]: self._variable(entry) for entry in self._dataset._describe(self._id)[5]}

    @property
    def types(self) -> dict[str, nctypes.UserType]:
        """The user-defined types defined in it, by name."""
        found = (nctypes.from_id(self._file, number) for number in self._dataset._describe(self._id)[6])
        return {kind.name: kind for kind in found if isinstance(kind, nctypes.UserType)}

    @property
    def attrs(self) -> Attributes:
        """Its attributes."""
        return Attributes(self._file, self._id, _GLOBAL)

    def _variable(self, entry: tuple[Any, ...]) -> Variable:
        return Variable(self, entry[0], entry[2], tuple(entry[3]))

    def _missing(self, code: int, what: str, name: str, known: Iterable[str]) -> NotFound:
        text = f"no {what} {name!r} in group {self.path!r}"
        near = get_close_matches(name, known, 1)
        return NotFound(code, f"{text}; did you mean {near[0]!r}?" if near else text, self._file.path)

    def find_dimension(self, name: str) -> Dimension:
        """The dimension of that name here or in the nearest group above.

        Raises
        ------
        NotFound
            If there is none (a KeyError).
        """
        group: Group | None = self
        while group is not None:
            found = group.dims.get(name)
            if found is not None:
                return found
            group = group.parent
        raise self._missing(_NC_EBADDIM, "dimension", name, self.dims)

    def find_type(self, name: str) -> nctypes.UserType:
        """The user-defined type of that name here or in the nearest group above. Raises `NotFound`."""
        group: Group | None = self
        while group is not None:
            found = group.types.get(name)
            if found is not None:
                return found
            group = group.parent
        raise self._missing(_NC_EBADTYPE, "type", name, self.types)

    def __getitem__(self, path: str) -> Variable | Any:
        """The variable or group of that name or path; ``/`` is the root.

        To checkers of types it is a variable; a group with its type is in `groups`.

        Raises
        ------
        NotFound
            If there is none (a KeyError); it says which name is nearly the same.
        """
        found, group, missing = self._find(path)
        if found is not None:
            return found
        if not path.rstrip("/").endswith(missing):
            raise group._missing(_NC_ENOGRP, "group", missing, group.groups)
        raise group._missing(_NC_ENOTVAR, "variable or group", missing, [*group.variables, *group.groups])

    def _find(self, path: str) -> tuple[Any, Group, str]:
        """What a path leads to, or None, and the group and the name at which the way ends."""
        group: Group = self._dataset if path.startswith("/") else self
        parts = [part for part in path.split("/") if part]
        if not parts:
            return group, group, ""
        for part in parts[:-1]:
            inner = group.groups.get(part)
            if inner is None:
                return None, group, part
            group = inner
        entry = self._dataset._entry(group._id, parts[-1])
        found = group.groups.get(parts[-1]) if entry is None else group._variable(entry)
        return found, group, parts[-1]

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        return self._find(path)[0] is not None

    def __iter__(self) -> Iterator[str]:
        return iter([entry[1] for entry in self._dataset._describe(self._id)[5]])

    def __len__(self) -> int:
        return len(self._dataset._describe(self._id)[5])

    def __bool__(self) -> bool:
        return True

    def walk(self) -> Iterator[Group]:
        """This group and all below it, each before those in it."""
        waiting: list[Group] = [self]
        while waiting:
            group = waiting.pop()
            yield group
            waiting.extend(reversed(group.groups.values()))

    # ---- definitions --------------------------------------------------------------------------------

    def create_group(self, path: str) -> Group:
        """Defines a group, and those on the way to it that are not there. Returns it."""
        group: Group = self._dataset if path.startswith("/") else self
        parts = [part for part in path.split("/") if part]
        if not parts:
            raise ValueError("a name is needed")
        for number, part in enumerate(parts):
            inner = group.groups.get(part) if number < len(parts) - 1 else None
            if inner is None:
                _modes.define(self._file)
                inner = self._dataset._group(self._file.def_group(group._id, part))
                self._dataset._changed()
            group = inner
        return group

    def require_group(self, path: str) -> Group:
        """The group of that name, defined if it is not there."""
        found = self[path] if path in self else self.create_group(path)
        if not isinstance(found, Group):
            raise TypeError(f"{path!r} is a variable")
        return found

    def create_dimension(self, name: str, size: int | None) -> Dimension:
        """Defines a dimension of `size` elements, unlimited for None. Returns it."""
        _modes.define(self._file)
        number = self._file.def_dim(self._id, name, size)
        self._dataset._changed()
        return Dimension(self, number)

    def create_variable(
        self,
        name: str,
        dtype: nctypes.TypeLike | None = None,
        dims: Sequence[str | Dimension] | str = (),
        *,
        data: Any = None,
        sizes: Mapping[str, int | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = _UNSET,
        chunks: Sequence[int] | str | None = None,
        compression: str | None = None,
        level: int | None = None,
        shuffle: bool = False,
        fletcher32: bool = False,
        filters: Sequence[FilterSpec] = (),
        endian: str = "native",
        quantize: tuple[str, int] | None = None,
    ) -> Variable:
        """Defines a variable, and writes `data` into it.

        Parameters
        ----------
        name
            Its name.
        dtype
            Anything NumPy takes for a dtype, ``"char"``, `str` for strings, a `zonda.nctypes.UserType` or its name. That of
            `data` if not given.
        dims
            Names of its dimensions, slowest first, or `Dimension`.
        data
            Values to write.
        sizes
            Lengths (None: unlimited) of dimensions that are defined with it if they are not there.
            With `data`, their lengths need not be told.
        attrs
            Its attributes.
        fill_value
            What stands where nothing is written; None for nothing at all (whatever was there).
        chunks
            Chunk shape in elements, or ``"contiguous"``. By default the engine chooses.
        compression, level
            A filter by name (zlib, zstd, bzip2, ...) and its level.
        shuffle
            Bytes of the same weight side by side, before compression.
        fletcher32
            A checksum for each chunk.
        filters
            Further filters in the order of writing: a name, a number, or a pair of it and parameters.
        endian
            native, little or big: byte order in the file.
        quantize
            bitgroom, granularbr or bitround, and the digits (bits for bitround) that are kept.

        Raises
        ------
        ValueError
            For a filter or level that is not there.
        NetCDFError
            What the engine reports: a name in use, a format without filters, ...
        """
        array = None if data is None else np.asarray(data)
        kind = self._kind(name, dtype, array)
        names = (dims,) if isinstance(dims, str) else tuple(dims)
        if array is not None and array.ndim != len(names):
            raise ValueError(f"data of {name!r} have {array.ndim} dimensions, {len(names)} are named")
        # Whatever can be refused is refused before anything is defined.
        pipeline = parse(filters)
        main = None if compression is None else compression_filter(compression, level)
        if compression is None and level is not None:
            raise ValueError("a level is of no use without compression")
        numbers = tuple(self._dimension_id(dim, place, sizes or {}, array) for place, dim in enumerate(names))
        _modes.define(self._file)
        file, group = self._file, self._id
        number = file.def_var(group, name, nctypes.to_id(file, kind), numbers)
        self._dataset._changed()
        if chunks is not None:
            if isinstance(chunks, str) and chunks != "contiguous":
                raise ValueError(f"chunks are numbers or 'contiguous', not {chunks!r}")
            file.def_var_chunking(group, number, None if isinstance(chunks, str) else tuple(int(n) for n in chunks))
        if main is not None and main[0] == "deflate":
            file.def_var_deflate(group, number, main[1][0], shuffle)
            main = None
        elif shuffle:
            file.def_var_deflate(group, number, None, True)
        if fletcher32:
            file.def_var_fletcher32(group, number, True)
        for filter_name, params in [*pipeline, *([main] if main else [])]:
            file.def_var_filter(group, number, filter_name, params)
        if endian != "native":
            file.def_var_endian(group, number, endian)
        if quantize is not None:
            file.def_var_quantize(group, number, quantize[0], quantize[1])
        if fill_value is not _UNSET:
            file.def_var_fill(group, number, fill_value)
        variable = Variable(self, number, nctypes.to_id(file, kind), numbers)
        for key, value in (attrs or {}).items():
            variable.attrs[key] = value
        if data is not None:
            variable[...] = data
        return variable

    def _kind(self, name: str, dtype: nctypes.TypeLike | None, array: Any) -> nctypes.TypeLike:
        """The type of a new variable."""
        if dtype is None:
            if array is None:
                raise ValueError(f"variable {name!r}: a dtype or data are needed")
            if array.dtype.kind == "U" or (array.dtype == object and all(isinstance(one, str) for one in array.ravel())):
                return str
            return "char" if array.dtype.kind == "S" else np.dtype("i1") if array.dtype == bool else np.dtype(array.dtype)
        if isinstance(dtype, str):
            try:
                nctypes.to_id(self._file, dtype)
            except TypeError:
                # A name that NumPy does not know is one of the file's types.
                return self.find_type(dtype)
        return dtype

    def _dimension_id(self, dim: str | Dimension, place: int, sizes: Mapping[str, int | None], array: Any) -> int:
        if isinstance(dim, Dimension):
            return dim._id
        try:
            return self.find_dimension(dim)._id
        except NotFound:
            if dim in sizes:
                return self.create_dimension(dim, sizes[dim])._id
            if array is not None and place < array.ndim:
                return self.create_dimension(dim, array.shape[place])._id
            raise

    def create_compound(
        self, name: str, dtype: Any, fields: Mapping[str, nctypes.TypeLike] | None = None
    ) -> nctypes.CompoundType:
        """Defines a compound type from a structured dtype; `fields` gives the types of the file that fields have."""
        dtype = np.dtype(dtype)
        return self._defined(
            nctypes.CompoundType,
            lambda: self._file.def_compound(
                self._id, name, dtype.itemsize, nctypes.compound_fields(self._file, dtype, fields or {})
            ),
        )

    def create_vlen(self, name: str, base: nctypes.TypeLike) -> nctypes.VlenType:
        """Defines a type of sequences of variable length."""
        return self._defined(
            nctypes.VlenType, lambda: self._file.def_vlen(self._id, name, nctypes.to_id(self._file, base))
        )

    def create_opaque(self, name: str, size: int) -> nctypes.OpaqueType:
        """Defines a type of `size` bytes."""
        return self._defined(nctypes.OpaqueType, lambda: self._file.def_opaque(self._id, name, size))

    def create_enum(self, name: str, base: nctypes.TypeLike, members: Mapping[str, int]) -> nctypes.EnumType:
        """Defines names for integers of the type `base`."""
        return self._defined(
            nctypes.EnumType,
            lambda: self._file.def_enum(self._id, name, nctypes.to_id(self._file, base), list(members.items())),
        )

    def _defined(self, kind: type[_Item], define: Any) -> _Item:
        _modes.define(self._file)
        made = nctypes.from_id(self._file, define())
        self._dataset._changed()
        if not isinstance(made, kind):
            raise TypeError(f"the engine made a {type(made).__name__}, not a {kind.__name__}")
        return made

    # ---- shown --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return _show.group(self)

    def _repr_html_(self) -> str:
        return _show.group_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _inside, (self._dataset, self.path)


def _inside(dataset: Group, path: str) -> Any:
    """For pickles: what is at a path of a dataset."""
    return dataset[path]
