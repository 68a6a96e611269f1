"""Attributes of a group or variable, as a mutable mapping."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from . import _modes, types
from ._zonda import File
from .errors import NetCDFError, NotFound

__all__ = ["Attributes"]


class Attributes(MutableMapping[str, Any]):
    """The attributes of a group or variable: read when asked for, written when set.

    Text (NC_CHAR) is `str`, decoded as UTF-8 with ``surrogateescape``, so that any bytes survive a round trip.
    A single number is a NumPy scalar, several are an array; NC_STRING is a `str`, or an array of them (dtype
    object). What is set is stored as what it is: `str` and `bytes` as NC_CHAR, lists of `str` as NC_STRING, numbers
    with the type that NumPy gives them (in CDF-1 and CDF-2, which have no 64-bit integers, those that fit become 32-bit).
    `set` decides otherwise.

    Examples
    --------
    >>> import zonda
    >>> ds = zonda.create("attributes.nc", mode="w", memory=True)
    >>> ds.attrs["title"] = "a test"
    >>> ds.attrs.set("level", 3, "i2")
    >>> dict(ds.attrs)
    {'title': 'a test', 'level': np.int16(3)}
    >>> del ds.attrs["level"]
    >>> "level" in ds.attrs
    False
    >>> ds.close()
    """

    __slots__ = ("_file", "_group", "_var")

    def __init__(self, file: File, group: int, var: int) -> None:
        self._file, self._group, self._var = file, group, var

    def __getitem__(self, name: str) -> Any:
        return _value(*self._file.att(self._group, self._var, name))

    def __setitem__(self, name: str, value: Any) -> None:
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        _modes.define(self._file)
        self._file.del_att(self._group, self._var, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.att_names(self._group, self._var))

    def __len__(self) -> int:
        return len(self._file.att_names(self._group, self._var))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._file.att_names(self._group, self._var)

    def __repr__(self) -> str:
        return f"Attributes({self.as_dict()!r})"

    def as_dict(self) -> dict[str, Any]:
        """All of them, in one call of the engine; one that is damaged is left out with a warning."""
        found = {}
        for name, typeid, value in self._file.atts(self._group, self._var):
            if isinstance(value, NetCDFError):
                warnings.warn(f"attribute {name!r} left out: {value}", RuntimeWarning, stacklevel=2)
            else:
                found[name] = _value(typeid, value)
        return found

    def rename(self, name: str, new_name: str) -> None:
        """Gives an attribute another name."""
        _modes.define(self._file)
        self._file.rename_att(self._group, self._var, name, new_name)

    def type(self, name: str) -> types.TypeLike:
        """The type of an attribute: a dtype, ``"char"``, `str`, or a user-defined type."""
        return types.from_id(self._file, self._file.att(self._group, self._var, name)[0])

    def raw(self, name: str) -> Any:
        """The value as the engine has it: text as `bytes`, numbers always as an array."""
        return self._file.att(self._group, self._var, name)[1]

    def set(self, name: str, value: Any, dtype: types.TypeLike | None = None) -> None:
        """Sets an attribute, of a given type if `dtype` is not None.

        Parameters
        ----------
        name
            Its name.
        value
            Text, a number, a sequence of either, or an array.
        dtype
            ``"char"``, `str` (NC_STRING), anything NumPy takes for a dtype, or a user-defined type of the file.

        Raises
        ------
        TypeError
            For values that netCDF has no type for.
        NetCDFError
            What the engine reports.
        """
        classic = self._file.format in ("CDF-1", "CDF-2", "NETCDF4_CLASSIC")
        typeid, stored = _stored(self._file, value, dtype, classic)
        _modes.define(self._file)
        self._file.put_att(self._group, self._var, name, typeid, stored)

    def get_many(self, *names: str, default: Any = None) -> tuple[Any, ...]:
        """Several attributes at once, with `default` for those that are not there; one that is damaged raises."""
        found = {name: (typeid, value) for name, typeid, value in self._file.atts(self._group, self._var)}
        for name in names:
            if name in found and isinstance(found[name][1], NetCDFError):
                raise found[name][1]
        return tuple(_value(*found[name]) if name in found else default for name in names)

    def pop(self, name: str, *default: Any) -> Any:
        """Removes an attribute and returns its value."""
        if len(default) > 1:
            raise TypeError("pop takes a name and at most one default")
        try:
            value = self[name]
        except NotFound:
            if default:
                return default[0]
            raise
        del self[name]
        return value


def _value(typeid: int, value: Any) -> Any:
    if typeid == types.CHAR:
        return bytes(value).decode("utf-8", "surrogateescape")
    if typeid == types.STRING:
        texts = ["" if text is None else text for text in value]
        if len(texts) == 1:
            return texts[0]
        array = np.empty(len(texts), dtype=object)
        array[:] = texts
        return array
    if isinstance(value, np.ndarray) and value.size == 1:
        return value[0]
    return value


def _stored(file: File, value: Any, dtype: types.TypeLike | None, classic: bool) -> tuple[int, Any]:
    """Type and value as the engine takes them."""
    typeid = None if dtype is None else types.to_id(file, dtype)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (str, bytes, np.bytes_)) and typeid in (None, types.CHAR):
        return types.CHAR, value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
    if typeid is not None and typeid >= types.FIRST_USER_TYPE:
        if file.type_info(typeid)["class"] == "vlen":
            is_one = isinstance(value, np.ndarray) and value.dtype != object
            return typeid, [np.atleast_1d(np.asarray(one)) for one in ([value] if is_one else value)]
        return typeid, np.atleast_1d(np.asarray(value, dtype=file.type_info(typeid)["dtype"]))
    if isinstance(value, str):
        return types.STRING, [value]
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.kind in "OU" and all(isinstance(text, (str, np.str_)) for text in array.ravel()):
        texts = [str(text) for text in array.ravel()]
        if typeid == types.CHAR or (classic and typeid is None):
            # The classic model has no strings.
            return types.CHAR, "".join(texts).encode("utf-8", "surrogateescape")
        return types.STRING, texts
    if array.dtype.kind == "S":
        joined = b"".join(array.ravel().tolist())
        if typeid == types.STRING:
            return typeid, [text.decode("utf-8", "surrogateescape") for text in array.ravel().tolist()]
        return types.CHAR, joined
    array = types.plain_numbers(array.ravel(), "an attribute")
    if typeid is None:
        typeid = types.to_id(file, array.dtype)
        if classic and array.dtype.kind in "iu" and not _is_classic(typeid):
            typeid = _classic_integer(array)
    return typeid, array


def _is_classic(typeid: int) -> bool:
    return typeid <= types.DOUBLE


def _classic_integer(values: np.ndarray[Any, Any]) -> int:
    """The smallest type not below 32 bits that holds integers in a format without the wide and unsigned ones."""
    info = np.iinfo(np.int32)
    if values.size == 0 or (int(values.min()) >= info.min and int(values.max()) <= info.max):
        return types.INT
    raise TypeError(f"integers of type {values.dtype} that do not fit 32 bits have no type in this format")
