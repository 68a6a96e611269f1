"""Variables: arrays of a file, read and written by NumPy's indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _memory, _modes, _show, _zonda, types
from ._progress import Meter
from ._zonda import File
from .attributes import Attributes
from .dimension import Dimension
from .errors import NetCDFError
from .selection import Selection, covering, select

if TYPE_CHECKING:
    from .group import Group

__all__ = ["Chunk", "Variable"]

_NC_ERANGE = -60
# Transfers above this many bytes go in parts where progress is shown.
_PART = 32 << 20


@dataclass(frozen=True)
class Chunk:
    """A chunk that is stored.

    Attributes
    ----------
    start : tuple of int
        Its first element.
    offset : int
        Byte of the file where it begins.
    size : int
        Bytes that it takes there, after filters.
    filter_mask : int
        Bit n is set if filter n was left out for it.
    """

    start: tuple[int, ...]
    offset: int
    size: int
    filter_mask: int


class Variable:
    """A variable: what ``ds["name"]`` gives.

    Values are those of the file: no masks, no scaling, no decoding of times (xarray and `zonda.netcdf4` do that).

    Examples
    --------
    >>> import numpy as np, zonda
    >>> ds = zonda.create("variable.nc", memory=True)
    >>> t = ds.create_dimension("time", None)
    >>> v = ds.create_variable("v", "f4", ("time", "x"), sizes={"x": 4}, compression="zstd", shuffle=True)
    >>> v[...] = np.arange(8.0).reshape(2, 4)
    >>> v[-1, ::-1]
    array([7., 6., 5., 4.], dtype=float32)
    >>> v[3] = 1                            # the unlimited dimension grows
    >>> v.shape
    (4, 4)
    >>> v[[0, 3], [True, False, True, False]]
    array([[0., 2.],
           [1., 1.]], dtype=float32)
    >>> out = np.empty((2, 2))
    >>> v.read_into(out, np.s_[:2, 2:])
    >>> out
    array([[2., 3.],
           [6., 7.]])
    >>> ds.close()
    """

    __slots__ = ("_dims", "_file", "_group", "_id", "_typeid")

    def __init__(self, group: Group, number: int, typeid: int, dims: tuple[int, ...]) -> None:
        self._group, self._id, self._typeid, self._dims = group, number, typeid, dims
        self._file: File = group._file

    # ---- what it is ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name; setting it renames the variable."""
        for number, name, *_ in self._group.dataset._describe(self._group._id)[5]:
            if number == self._id:
                return str(name)
        raise KeyError(f"group {self._group.path} has no variable with the number {self._id} any more; look it up by name again")

    @name.setter
    def name(self, name: str) -> None:
        _modes.define(self._file)
        self._file.rename_var(self._group._id, self._id, name)
        self._group.dataset._changed()

    @property
    def group(self) -> Group:
        """The group that it is in."""
        return self._group

    @property
    def datatype(self) -> types.TypeLike:
        """Its type: a dtype, ``"char"``, `str`, or a user-defined type."""
        return types.from_id(self._file, self._typeid)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of what is read, in native byte order."""
        return types.dtype_of(self._file, self._typeid)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of its dimensions."""
        return tuple(self._file.dim(self._group._id, number)[0] for number in self._dims)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Its dimensions."""
        return tuple(Dimension(self._group, number) for number in self._dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its dimensions now."""
        return tuple(self._file.dim(self._group._id, number)[1] for number in self._dims)

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths by name."""
        return dict(zip(self.dims, self.shape))

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self._dims)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes that its elements take in memory."""
        return self.size * self.dtype.itemsize

    @property
    def attrs(self) -> Attributes:
        """Its attributes."""
        return Attributes(self._file, self._group._id, self._id)

    @property
    def info(self) -> dict[str, Any]:
        """How it is stored, as the engine tells: chunks, storage, filters, endian, fill, quantize, chunk_cache."""
        return self._file.var_info(self._group._id, self._id)

    @property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Shape of its chunks in elements, None if it is not chunked."""
        chunks = self.info["chunks"]
        return None if chunks is None else tuple(chunks)

    @property
    def filters(self) -> list[tuple[str | int, tuple[int, ...]]]:
        """Its filters in the order of writing: name (number where there is no name) and parameters."""
        return [(number if name is None else name, tuple(params)) for number, name, params in self.info["filters"]]

    @property
    def endian(self) -> str:
        """Byte order in the file: native, little or big."""
        return str(self.info["endian"])

    @property
    def fill_value(self) -> Any:
        """What stands where nothing was written; None if that is undefined."""
        info = self.info
        if info["no_fill"]:
            return None
        return _zonda.default_fill(self._typeid) if info["fill"] is None and self._typeid <= types.STRING else info["fill"]

    def chunks(self) -> list[Chunk]:
        """Every chunk that is stored, with its place in the file; none if the variable is not chunked."""
        return [Chunk(tuple(start), *rest) for start, *rest in self._file.chunks(self._group._id, self._id)]

    def set_chunk_cache(self, size: int, slots: int = 4133, preemption: float = 0.75) -> None:
        """Sets the chunk cache: bytes, slots, and how soon chunks read whole go."""
        self._file.set_var_chunk_cache(self._group._id, self._id, size, slots, preemption)

    # ---- data ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self._dims:
            raise TypeError(f"{self.name!r} has no dimensions, and so no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("values are read from the file: a copy cannot be avoided")
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, key: Any) -> NDArray[Any] | Any:
        """The values that an index selects, as NumPy's basic and orthogonal indexing do: integers, slices with steps of either sign, ``...``, and
        lists or masks, each along its dimension. Read from the file at each call.

        Returns
        -------
        array
            A new one, in native byte order and of the variable's dtype; an element where only integers were given. Nothing is masked or scaled.

        Raises
        ------
        IndexError
            For an index out of range, or one with too many dimensions.
        NetCDFError
            What reading met.
        """
        selection = covering(select(key, self.shape))
        dtype = self.dtype
        buffer = _memory.empty(selection.counts, dtype)
        self._get(selection, buffer)
        picked = selection.pick(buffer)
        # As NumPy: an element, not an array, if only integers were given. `...` keeps the array.
        only_integers = not picked.ndim and not _has_ellipsis(key)
        return picked[()] if only_integers else picked

    def read_into(self, out: NDArray[Any], key: Any = ...) -> None:
        """Reads into an array that is there, converting numbers to its dtype on the way.

        Parameters
        ----------
        out
            Writable, of the selection's shape. Contiguous native arrays are filled directly.
        key
            The index, as between brackets; ``np.s_`` writes them.

        Raises
        ------
        ValueError
            If the shape is another, or `out` cannot be written.
        NetCDFError
            NC_ERANGE if values did not fit the dtype; all others are delivered.
        """
        selection = covering(select(key, self.shape))
        if tuple(out.shape) != selection.shape:
            raise ValueError(f"out has shape {tuple(out.shape)}, the selection {selection.shape}")
        if not out.flags.writeable:
            raise ValueError("out cannot be written")
        direct = selection.is_plain and out.flags.c_contiguous and out.dtype.isnative
        if direct:
            self._get(selection, out.reshape(selection.counts))
            return
        buffer = _memory.empty(selection.counts, out.dtype.newbyteorder("="))
        try:
            self._get(selection, buffer)
        except NetCDFError as error:
            if error.code == _NC_ERANGE:
                out[...] = selection.pick(buffer)
            raise
        out[...] = selection.pick(buffer)

    def set_collective(self, on: bool) -> None:
        """Whether all ranks of a parallel file write it together; at first each writes alone.

        Only collective writes make a variable of a netCDF-4 file longer, or go through filters. Of a classic file it is one
        switch for all variables. All ranks call it.

        Raises
        ------
        NetCDFError
            NC_ENOPAR for a file that was opened without a communicator; NC_EINVAL for single writes through filters.
        """
        self._file.set_collective(self._group._id, self._id, on)

    def __setitem__(self, key: Any, values: Any) -> None:
        # Before ranks part: ending the definitions takes all of them.
        _modes.data(self._file)
        _modes.put(self._file, self._group._id, self._id, lambda: self._assign(key, values))

    def _assign(self, key: Any, values: Any) -> None:
        array = self._prepared(values)
        shape = self.shape
        if self._typeid == types.CHAR:
            array = _characters(array, shape)
        unlimited = [self._file.dim(self._group._id, number)[2] for number in self._dims]
        selection = select(key, shape, unlimited, array.shape)
        spread = selection.spread(array)
        misfits = 0
        total = int(spread.size) * spread.dtype.itemsize
        with Meter(self._group.dataset.progress, f"writing {self.name}", total) as meter:
            for start, count, stride, where in self._parts(selection, spread.dtype.itemsize, meter.is_shown):
                # Not every array is aligned: messages between processes are not.
                part = np.require(spread[where] if where else spread, requirements=["C", "A"])
                if spread.dtype == object:
                    self._file.put_objects(self._group._id, self._id, start, count, stride, part)
                else:
                    misfits += self._file.put(self._group._id, self._id, start, count, stride, part)
                meter.add(part.nbytes)
        self._report(misfits, str(spread.dtype), "written")

    def _get(self, selection: Selection, buffer: NDArray[Any]) -> None:
        if any(count == 0 for count in selection.counts):
            return
        _modes.data(self._file)
        misfits = 0
        objects = self.dtype == object
        if objects and buffer.dtype != object:
            raise TypeError(f"{self.name!r} holds {types.text(self.datatype)}: read it into an array of objects")
        with Meter(self._group.dataset.progress, f"reading {self.name}", buffer.nbytes) as meter:
            for start, count, stride, where in self._parts(selection, buffer.itemsize, meter.is_shown):
                part = buffer[where] if where else buffer  # without dimensions an index would give the element
                target = part if part.flags.c_contiguous else np.empty(count, dtype=buffer.dtype)
                if objects:
                    self._file.get_objects(self._group._id, self._id, start, count, stride, target)
                else:
                    misfits += self._file.get(self._group._id, self._id, start, count, stride, target)
                if target is not part:
                    part[...] = target
                meter.add(part.nbytes)
        self._report(misfits, str(buffer.dtype), "read")

    def _report(self, misfits: int, dtype: str, done: str) -> None:
        if misfits:
            fit = "value does not fit" if misfits == 1 else "values do not fit"
            text = f"variable {self.name!r}: {misfits} {fit} between {types.text(self.datatype)} and {dtype}; all others are {done}"
            raise NetCDFError(_NC_ERANGE, text, self._file.path)

    def _parts(
        self, selection: Selection, itemsize: int, small: bool
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None, tuple[slice, ...]]]:
        """The hyperslabs; in parts of whole chunks along the first dimension where progress is to be seen."""
        chunks = self.chunk_shape if small else None
        for start, count, stride, where in selection.slabs():
            row = int(np.prod(count[1:], dtype=object)) * itemsize
            if not small or not count or row * count[0] <= _PART:
                yield start, count, stride, where
                continue
            step = max(_PART // max(row, 1), 1)
            pace = 1 if stride is None else stride[0]
            if chunks is not None and pace == 1:
                step = max(step // chunks[0], 1) * chunks[0]
            done = 0
            while done < count[0]:
                here = min(step, count[0] - done)
                if chunks is not None and pace == 1 and done == 0:
                    # To the next boundary of chunks first, so that each is filtered once.
                    here = min(here - start[0] % chunks[0], count[0])
                place = slice(where[0].start + done, where[0].start + done + here)
                yield (start[0] + done * pace, *start[1:]), (here, *count[1:]), stride, (place, *where[1:])
                done += here

    def _prepared(self, values: Any) -> NDArray[Any]:
        """Values as the engine takes them, but for their shape."""
        dtype = self.dtype
        if dtype == object:
            return _objects(values, self._typeid == types.STRING)
        if self._typeid == types.CHAR:
            if isinstance(values, str):
                values = values.encode("utf-8", "surrogateescape")
            array = np.asarray(values)
            if array.dtype.kind == "U":
                array = np.char.encode(array, "utf-8", "surrogateescape")
            if array.dtype.kind != "S":
                raise TypeError(f"variable {self.name!r} holds characters, not {array.dtype}")
            return array
        if isinstance(values, np.ma.MaskedArray):
            raise TypeError("a masked array: fill it first (values.filled(...)); masks are what zonda.netcdf4 handles")
        array = np.asarray(values)
        if dtype.fields is not None or dtype.kind == "V":
            return np.asarray(array, dtype=dtype)
        if array.dtype == object or (not isinstance(values, np.ndarray) and array.dtype.kind in "iu"):
            # Python's own integers take the type of the variable.
            array = np.asarray(values, dtype=dtype if dtype.kind in "iu" else "f8")
        if array.dtype.kind not in "iufb":
            types.plain_numbers(array[:0].ravel() if array.ndim else array.reshape(1), f"variable {self.name!r}")
        if array.dtype in (np.bool_, np.float16) or not array.dtype.isnative or array.dtype.itemsize > 8:
            array = types.plain_numbers(array, f"variable {self.name!r}").reshape(array.shape)
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_group, (self._group, self.name)

    # ---- shown --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return _show.variable(self)

    def _repr_html_(self) -> str:
        return _show.variable_html(self)


def _of_group(group: Group, name: str) -> Any:
    """For pickles."""
    return group[name]


def _has_ellipsis(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, tuple) and any(entry is Ellipsis for entry in key))


def _objects(values: Any, strings: bool) -> NDArray[Any]:
    """An array of objects; a sequence that stands for one element of variable length stays one."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        return values
    if strings:
        array = np.asarray(values)
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "surrogateescape")
        if array.dtype.kind not in "UO":
            raise TypeError(f"strings are wanted, not {array.dtype}")
        return array.astype(object)
    if isinstance(values, (np.ndarray, tuple)):
        one = np.empty((), dtype=object)
        one[()] = values
        return one
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = np.asarray(value) if isinstance(value, list) else value
    return array


def _characters(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Texts as characters along the last dimension, padded with null bytes."""
    if array.dtype.itemsize <= 1 or not shape:
        return array.astype("S1")
    width = shape[-1]
    if array.dtype.itemsize > width:
        raise ValueError(f"texts of {array.dtype.itemsize} bytes do not fit {width} characters")
    padded = np.ascontiguousarray(array, dtype=f"S{width}")
    return padded.view("S1").reshape(*array.shape, width)
