"""Open files, shared by the lazy arrays that read them.

A `Handle` says how a file is opened and opens it when it is needed. Readers take the open file without a
lock: the current one is one attribute, read once. At most ``file_cache_maxsize`` (xarray's option) files
that are open for reading stay open; beyond that, the one used longest ago is let go. A reader that is still
in it keeps it alive by its own reference, so no read ever meets a file that was closed to make room.
"""

from __future__ import annotations

import io
import itertools
import os
import threading
import uuid
import warnings
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable

import xarray as xr

from zonda import _remote, _zonda

__all__ = ["Handle", "Opened", "Source"]


@dataclass(frozen=True)
class Source:
    """What is opened: ``kind`` is ``"path"``, ``"bytes"``, ``"object"`` or ``"sink"`` (a file in memory)."""

    kind: str
    value: Any

    @property
    def name(self) -> str:
        """What errors and ``encoding["source"]`` call it."""
        if self.kind == "path":
            return _remote.shown(self.value) if _remote.is_url(self.value) else os.fsdecode(self.value)
        if self.kind == "object":
            name = getattr(self.value, "path", None) or getattr(self.value, "name", None)
            return str(name) if name is not None else repr(self.value)
        return "<xarray-in-memory-read>" if self.kind == "bytes" else "<xarray-in-memory-write>"

    @classmethod
    def of(cls, target: Any) -> Source:
        """The source that an argument of `xarray.open_dataset` means.

        Raises
        ------
        TypeError
            If it is neither a path, nor bytes, nor an object that can be read and positioned.
        """
        if isinstance(target, os.PathLike):
            target = os.fspath(target)
        if isinstance(target, str):
            return cls("path", target)
        if isinstance(target, bytes):
            return cls("bytes", target)
        if isinstance(target, (bytearray, memoryview)):
            return cls("bytes", bytes(target))
        if isinstance(target, io.BytesIO):
            return cls("bytes", target.getvalue())
        if not hasattr(target, "read") and hasattr(target, "open"):
            target = target.open()  # fsspec's OpenFile
        if hasattr(target, "read") and hasattr(target, "seek"):
            return cls("object", target)
        raise TypeError(f"invalid filename for zonda backend: {target!r}")


@dataclass
class Opened:
    """A file that is open, with what is known of its groups.

    By paths of groups: ``groups`` has numbers and descriptions, ``places`` numbers and those of the variables by name.
    Both are filled by whoever looks something up; two threads that do it at once put the same values there.
    """

    file: _zonda.File
    groups: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    places: dict[str, tuple[int, dict[str, int]]] = field(default_factory=dict)


_CLOCK = itertools.count()
_LOCK = threading.Lock()
_BY_KEY: weakref.WeakValueDictionary[str, Handle] = weakref.WeakValueDictionary()
_READERS: dict[str, weakref.ref[Handle]] = {}


def _after_fork() -> None:
    # Another thread of the parent may have held the lock.
    global _LOCK
    _LOCK = threading.Lock()
    for handle in list(_BY_KEY.values()):
        handle._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Handle:
    """How a file is opened, and the open file while there is one.

    Parameters
    ----------
    source : Source
        What to open.
    mode : {"r", "a", "w", "x"}
        Read, change, create (an old file is overwritten), create a new one.
    format : str, optional
        Format of a file that is created, as the engine spells it (``"NETCDF4"``, ``"CDF-2"`` ...).
    options : dict, optional
        Further keywords of ``File.open`` and ``File.create``.

    Notes
    -----
    A pickled handle of a path opens the file again where it is unpickled. Within one process all copies of a
    handle are that handle.
    """

    def __init__(
        self,
        source: Source,
        mode: str = "r",
        *,
        format: str | None = None,
        options: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> None:
        self.source = source
        self.mode = mode
        self.format = format
        self.options = dict(options or {})
        self.key = key or uuid.uuid4().hex
        self.on_close: Callable[[bytes], None] | None = None
        self._opened: Opened | None = None
        self._used = 0
        self._lock = threading.Lock()
        with _LOCK:
            _BY_KEY[self.key] = self

    # ---- taking and giving back --------------------------------------------------------------------

    def acquire(self) -> Opened:
        """The open file; opens it if need be.

        Raises
        ------
        OSError
            If the file cannot be opened.
        """
        opened = self._opened
        if opened is not None and opened.file.is_open:
            self._used = next(_CLOCK)
            return opened
        return self._open_for_reading() if self.mode == "r" else self._open_for_writing()

    def _open_for_reading(self) -> Opened:
        # No lock is held meanwhile: if two threads open at once, one of the two files is dropped.
        kind, value = self.source.kind, self.source.value
        if kind == "path":
            file = _zonda.File.open(value, **self.options)
        elif kind == "bytes":
            file = _zonda.File.open_bytes(value)
        else:
            file = _zonda.File.open_object(value)
        fresh = Opened(file)
        with self._lock:
            opened = self._opened
            if opened is None or not opened.file.is_open:
                self._opened = opened = fresh
        if opened is not fresh:
            file.close()
        self._used = next(_CLOCK)
        if kind == "path":
            self._make_room()
        return opened

    def _open_for_writing(self) -> Opened:
        # Creating a file twice would empty it, so one thread does it and the others wait for this file alone.
        with self._lock:
            opened = self._opened
            if opened is not None and opened.file.is_open:
                return opened
            if self.mode == "a":
                file = _zonda.File.open(self.source.value, write=True, **self.options)
            elif self.source.kind == "sink":
                file = _zonda.File.create(
                    self.source.name, self.format or "NETCDF4", in_memory=True, **self.options
                )
            else:
                file = _zonda.File.create(
                    self.source.value,
                    self.format or "NETCDF4",
                    exclusive=self.mode == "x",
                    **self.options,
                )
                self.mode = "a"  # from now on, open what is there
            self._opened = Opened(file)
            return self._opened

    def _make_room(self) -> None:
        limit = int(xr.get_options()["file_cache_maxsize"])
        victims: list[Handle] = []
        with _LOCK:
            _READERS[self.key] = weakref.ref(self)
            if len(_READERS) > limit:
                alive = []
                for key, reference in list(_READERS.items()):
                    handle = reference()
                    if handle is None or handle._opened is None:
                        del _READERS[key]
                    else:
                        alive.append(handle)
                alive.sort(key=lambda handle: handle._used)
                victims = [handle for handle in alive[: max(0, len(alive) - limit)] if handle is not self]
                for handle in victims:
                    del _READERS[handle.key]
        for handle in victims:
            handle._opened = None  # closed by whoever held it last

    @property
    def is_open(self) -> bool:
        """Whether the file is open now."""
        opened = self._opened
        return opened is not None and opened.file.is_open

    def close(self) -> None:
        """Close the file. A later `acquire` opens it again.

        Raises
        ------
        OSError
            If what was written could not be brought to the disk.
        """
        with self._lock:
            opened, self._opened = self._opened, None
        with _LOCK:
            _READERS.pop(self.key, None)
        if opened is None:
            return
        if self.source.kind == "sink":
            if opened.file.is_open and self.on_close is not None:
                self.on_close(opened.file.take_bytes())
        else:
            opened.file.close()

    def abort(self) -> None:
        """Close a file that is being written without finishing it; what waits to be written is dropped."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.file.abort()

    def __del__(self) -> None:
        opened, self._opened = getattr(self, "_opened", None), None
        if opened is None or not opened.file.is_open:
            return
        if xr.get_options()["warn_for_unclosed_files"]:
            warnings.warn(
                f"deallocating {self}, but file is not already closed. This may indicate a bug.",
                RuntimeWarning,
                stacklevel=2,
            )
        if self.mode != "r" and self.source.kind == "path":
            opened.file.close()

    # ---- copies ------------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        if self.source.kind == "sink":
            raise TypeError("a netCDF file that is written to memory cannot be pickled")
        mode = "a" if self.mode in ("w", "x") else self.mode
        return _restore, (self.key, self.source, mode, self.format, self.options)

    def __copy__(self) -> Handle:
        return self

    def __deepcopy__(self, memo: Any) -> Handle:
        return self

    def __repr__(self) -> str:
        return f"Handle({self.source.name!r}, mode={self.mode!r})"


def _restore(
    key: str, source: Source, mode: str, format: str | None, options: dict[str, Any]
) -> Handle:
    with _LOCK:
        handle = _BY_KEY.get(key)
    return handle if handle is not None else Handle(source, mode, format=format, options=options, key=key)
