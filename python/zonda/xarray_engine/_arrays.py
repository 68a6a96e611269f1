"""Lazy arrays: variables of files that are read, or written, when they are indexed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from .. import _memory
from . import _selection
from ._types import VariableType

if TYPE_CHECKING:
    from ._handles import Opened
    from ._store import ZondaDataStore

__all__ = ["Decoding", "ZondaArray", "ZondaTarget"]

# Points are read one by one where the box around them would be this many times larger.
_SPARSE = 16
_SPARSE_LEAST = 1 << 16


# Values that are decoded at a time: they stay in the processor's cache from the mask to the offset.
_BLOCK = 1 << 16


class Decoding(NamedTuple):
    """A mask and a scale: what xarray's `CFMaskCoder` and `CFScaleOffsetCoder` do to values, in one go.

    ``dtype`` is that of the result; where values equal ``fill`` (None: nowhere) they become ``missing``; they are
    multiplied by ``scale``, and ``offset`` is added.
    """

    dtype: np.dtype
    fill: Any = None
    missing: Any = None
    scale: Any = None
    offset: Any = None

    def by_engine(self, dtype: np.dtype) -> tuple[float | None, float | None, float | None] | None:
        """What the engine is to do to values of a dtype while it reads them; None where NumPy does it.

        The engine calculates in the type of the values. NumPy does so, too, where none of the numbers is of a wider type, and compares as it does
        where the fill value is a number of that type.
        """
        if dtype != self.dtype or dtype.kind != "f" or dtype.itemsize not in (4, 8) or not dtype.isnative:
            return None
        factors = [number for number in (self.scale, self.offset) if number is not None]
        if not all(np.can_cast(np.asarray(number).dtype, dtype, "safe") for number in factors):
            return None
        if self.fill is not None:
            with np.errstate(all="ignore"):
                if dtype.type(self.fill) != self.fill:
                    return None
        fill, scale, offset = (None if number is None else float(number) for number in (self.fill, self.scale, self.offset))
        return fill, scale, offset

    def apply(self, values: np.ndarray) -> np.ndarray:
        """The decoded values, in the same memory if they have the dtype already."""
        if values.dtype != self.dtype:
            values = values.astype(self.dtype)
        if values.size <= _BLOCK or not values.flags.c_contiguous:
            self._apply(values)
            return values
        flat = values.reshape(-1)
        for first in range(0, flat.size, _BLOCK):
            self._apply(flat[first : first + _BLOCK])
        return values

    def _apply(self, values: np.ndarray) -> None:
        if self.fill is not None:
            mask = values == self.fill
            if mask.any():
                values[mask] = self.missing
        if self.scale is not None:
            values *= self.scale
        if self.offset is not None:
            values += self.offset


class ZondaArray(BackendArray):
    """A variable of a file, read when it is indexed.

    No lock is taken: several threads may read through one array, and through arrays of one file. It can be
    pickled; the copy opens the file again in its process.
    """

    __slots__ = ("_by_engine", "decoding", "dtype", "name", "shape", "store", "stored", "type")

    def __init__(
        self,
        store: ZondaDataStore,
        name: str,
        shape: tuple[int, ...],
        kind: VariableType,
        decoding: Decoding | None = None,
    ) -> None:
        self.store = store
        self.name = name
        self.shape = shape
        self.type = kind
        self.decoding = decoding
        self.dtype = self.stored = kind.dtype
        if decoding is not None:
            self.dtype = decoding.dtype
            # Integers come out of the engine as the floats that are wanted: NumPy would take a pass more. Those of
            # enumerations cannot.
            if kind.dtype.kind in "iu" and kind.encoded.metadata is None:
                self.stored = decoding.dtype
        # What the engine decodes; False until the first values are read.
        self._by_engine: Any = False

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if isinstance(key, indexing.VectorizedIndexer):
            points = _sparse_points(key.tuple, self.shape)
            if points is not None:
                return self._read_points(*points)
        else:
            box = _selection.box(key.tuple, self.shape)
            if box is not None:
                start, count, stride, shape = box
                out = _memory.empty(shape, self.stored)
                if out.size:
                    self._fill(start, count, stride, out)
                return self._decoded(out)
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        return self._decoded(_selection.read(_selection.plan(key, self.shape), self.stored, self._fill))

    def _decoding_of_engine(self) -> tuple[float | None, float | None, float | None] | None:
        if self._by_engine is False:
            self._by_engine = None if self.decoding is None else self.decoding.by_engine(self.stored)
        return self._by_engine  # type: ignore[no-any-return]

    def _decoded(self, values: np.ndarray) -> np.ndarray:
        """What `_fill` has read, decoded by NumPy unless the engine has done it."""
        if self.decoding is None or self._decoding_of_engine() is not None:
            return values
        return self.decoding.apply(values)

    def _fill(self, start: Any, count: Any, stride: Any, out: np.ndarray) -> None:
        """Read one hyperslab into an array of its size."""
        while True:
            opened = self.store.handle.acquire()
            group, var = self.store.find(opened, self.name)
            try:
                if self.type.objects:
                    opened.file.get_objects(group, var, start, count, stride, out)
                else:
                    if self.type.complex:
                        half = f"f{out.itemsize // 2}"
                        out = out.view([("r", half), ("i", half)])
                    opened.file.get(group, var, start, count, stride, out, self._decoding_of_engine())
                return
            except Exception:
                # Somebody closed the dataset meanwhile: the file is opened again, as xarray has it.
                if opened.file.is_open:
                    raise

    def _read_points(self, shape: tuple[int, ...], rows: np.ndarray) -> np.ndarray:
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        values = np.empty(len(unique), self.dtype)
        for number, row in enumerate(unique.tolist()):
            values[number] = self._read(tuple(row))
        return values[inverse.ravel()].reshape(shape)

    def __dask_tokenize__(self) -> Any:
        store = self.store
        decoding = None if self.decoding is None else tuple(self.decoding)
        return type(self).__name__, store.handle.key, store.group, self.name, self.shape, decoding


def _sparse_points(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Points as rows of numbers, if every dimension has an array and the box around them is far larger."""
    if not key or not all(isinstance(part, np.ndarray) for part in key):
        return None
    parts = np.broadcast_arrays(*key)
    count = parts[0].size
    box = math.prod(len(np.unique(part)) for part in key)
    if count == 0 or box < _SPARSE_LEAST or box < _SPARSE * count:
        return None
    return parts[0].shape, np.stack([part.ravel() for part in parts], axis=1)


class ZondaTarget:
    """A variable that is being written: what ``dask.array.store`` assigns blocks to.

    Blocks may be assigned from several threads at once.
    """

    __slots__ = ("digits", "members", "name", "region", "shape", "store", "type")

    def __init__(
        self,
        store: ZondaDataStore,
        name: str,
        shape: tuple[int, ...],
        kind: VariableType,
        *,
        digits: int | None = None,
        region: tuple[tuple[int, int], ...] | None = None,
    ) -> None:
        self.store = store
        self.name = name
        self.shape = shape
        self.type = kind
        self.digits = digits  # least_significant_digit
        self.region = region  # (start, step) a dimension, where a part of the variable is written
        metadata = getattr(kind.encoded, "metadata", None) or {}
        self.members = np.array(list(metadata["enum"].values())) if metadata.get("enum") else None

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self._encode(np.asarray(value))
        start, count, stride = _hyperslab(key, self.shape)
        if array.shape != count:
            array = array.reshape(count) if array.size == math.prod(count) else np.broadcast_to(array, count)
        if self.region is not None:
            start = tuple(base + step * first for (base, step), first in zip(self.region, start, strict=True))
            stride = tuple(step * every for (_, step), every in zip(self.region, stride, strict=True))
        # Blocks that come from other processes may not be aligned.
        array = np.require(array, requirements=["C", "A"]).reshape(count)
        every = None if all(step == 1 for step in stride) else stride
        self.store.write(self, start, count, every, array)

    def put(self, opened: Opened, start: Any, count: Any, stride: Any, array: np.ndarray) -> None:
        """Write one hyperslab to the open file."""
        group, var = self.store.find(opened, self.name)
        if self.type.objects:
            opened.file.put_objects(group, var, start, count, stride, array)
        else:
            opened.file.put(group, var, start, count, stride, array)

    def _encode(self, array: np.ndarray) -> np.ndarray:
        if self.type.objects:
            return array if array.dtype.kind == "O" else array.astype(object)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if self.members is not None and not np.isin(array, self.members).all():
            # The text that the reference's users see.
            raise ValueError("trying to assign illegal value to Enum variable")
        if self.digits is not None and array.dtype.kind == "f":
            array = _quantize(array, self.digits)
        if self.type.complex:
            half = f"f{self.type.dtype.itemsize // 2}"
            array = np.ascontiguousarray(array, self.type.dtype)
            array = array.view([("r", half), ("i", half)])
        elif array.dtype.kind == "b":
            array = array.astype("i1")
        return array


def _quantize(array: np.ndarray, digits: int) -> np.ndarray:
    """Round to the power of two that keeps ``digits`` decimals, as the attribute promises.

    The rule is that of the documentation of netCDF4-python: ``around(scale * data) / scale`` with a scale of
    ``2**bits``, bits enough for a precision of ``10**-digits``.
    """
    scale = 2.0 ** math.ceil(math.log2(10.0**digits))
    return (np.around(scale * array) / scale).astype(array.dtype)


def _hyperslab(key: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    parts = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [part for part in parts if not isinstance(part, np.ndarray)]:
        at = next(number for number, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    parts += [slice(None)] * (len(shape) - len(parts))
    start, count, stride = [], [], []
    for part, size in zip(parts, shape, strict=True):
        if isinstance(part, slice):
            first, stop, step = part.indices(size)
            if step < 1:
                raise IndexError("a variable cannot be written with a negative step")
            numbers = range(first, stop, step)
            start.append(first)
            count.append(len(numbers))
            stride.append(step)
        else:
            start.append(range(size)[int(part)])
            count.append(1)
            stride.append(1)
    return tuple(start), tuple(count), tuple(stride)
