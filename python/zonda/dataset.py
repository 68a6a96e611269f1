"""Files: opened, made, committed and closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Union, cast

from . import _parallel, _remote
from ._zonda import File
from .errors import NetCDFError
from .group import Group

if TYPE_CHECKING:
    from ._zonda import Format, GroupInfo

__all__ = ["Dataset", "Source", "create", "open"]

Source = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", bytearray, memoryview, IO[bytes]]

_FORMATS: dict[str, Format] = {
    "NETCDF4": "NETCDF4",
    "NETCDF4_CLASSIC": "NETCDF4_CLASSIC",
    "NETCDF3_CLASSIC": "CDF-1",
    "NETCDF3_64BIT": "CDF-2",
    "NETCDF3_64BIT_OFFSET": "CDF-2",
    "NETCDF3_64BIT_DATA": "CDF-5",
    "NETCDF3": "CDF-1",
    "CDF-1": "CDF-1",
    "CDF-2": "CDF-2",
    "CDF-5": "CDF-5",
    "npy": "npy",
}
# First bytes of files: what tells the bytes of a file from the bytes of a path.
_MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF\r\n\x1a\n")


class Dataset(Group):
    """A file, and its root group. `zonda.open` and `zonda.create` make it.

    Threads may share it: reads run side by side, without Python's lock. A dataset of a path that is open for reading
    may be pickled; it is opened again where it arrives.

    Attributes
    ----------
    progress : bool
        Whether long transfers show a bar (with tqdm, if that is installed).
    """

    __slots__ = ("_again", "_cache", "_token", "progress")

    def __init__(self, file: File, progress: bool = False, again: tuple[Any, ...] | None = None) -> None:
        if not hasattr(file, "is_open"):
            raise TypeError(f"zonda.open(path) and zonda.create(path) make a Dataset; {type(file).__name__!r} is none of its parts")
        self._file, self._id, self._dataset = file, 0, self
        self.progress = progress
        # How to open it once more: for pickles.
        self._again = again
        # Descriptions of groups, each with the token that was valid when it was asked for: a definition makes a new
        # token, and with that all of them old. No lock is needed.
        self._token = object()
        self._cache: dict[int, tuple[object, GroupInfo, dict[str, tuple[Any, ...]]]] = {}

    def _changed(self) -> None:
        self._token = object()

    def _cached(self, number: int) -> tuple[object, GroupInfo, dict[str, tuple[Any, ...]]]:
        found = self._cache.get(number)
        # Asked for with the token from before, so that a definition meanwhile is not missed.
        token = self._token
        if found is not None and found[0] is token and self._file.is_open:
            return found
        info = self._file.group(number)
        made = (token, info, {entry[1]: entry for entry in info[5]})
        self._cache[number] = made
        return made

    def _describe(self, number: int) -> GroupInfo:
        return self._cached(number)[1]

    def _entry(self, number: int, name: str) -> tuple[Any, ...] | None:
        return self._cached(number)[2].get(name)

    def _group(self, number: int) -> Group:
        return self if number == 0 else Group(self, number)

    # ---- the file -----------------------------------------------------------------------------------

    @property
    def file_path(self) -> str:
        """The path that it was opened by."""
        return self._file.path

    @property
    def format(self) -> Format:
        """CDF-1, CDF-2, CDF-5, NETCDF4, NETCDF4_CLASSIC or npy."""
        return self._file.format

    @property
    def is_open(self) -> bool:
        """Whether it was not closed yet."""
        return self._file.is_open

    @property
    def is_writable(self) -> bool:
        """Whether it is open for writing."""
        return self._file.is_writable

    @property
    def storage(self) -> str:
        """The layers between library and file, as a spec string."""
        return self._file.stack

    def sync(self) -> None:
        """Commits: what was written until now survives a crash of the program (see ``ZONDA_SYNC`` for power cuts)."""
        self._file.sync()

    def close(self) -> None:
        """Commits and closes. A second call does nothing.

        Raises
        ------
        NetCDFError
            If something that was written did not reach the file.
        """
        self._file.close()

    def abort(self) -> None:
        """Closes without what was not committed; a file that was being made goes away."""
        self._file.abort()

    def to_bytes(self) -> bytes:
        """Closes a file made with ``memory=True`` and returns what would be in it."""
        return self._file.take_bytes()

    def set_write_behind(self, how: str | bool) -> None:
        """Turns write-behind on or off: writes then return when their values are copied. See `open`."""
        self._file.set_write_behind(_behind(how) or "off")

    def write_behind_status(self) -> tuple[int, str | None]:
        """Bytes that wait to be written, and what went wrong with those that no longer do."""
        return self._file.write_behind_status()

    def set_fill(self, on: bool) -> bool:
        """Whether new space is filled with fill values before it is written. Returns what was before."""
        return self._file.set_fill(on)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except NetCDFError as second:
            # The first error is the one to be told; this one goes with it.
            error.__context__ = second

    def __reduce__(self) -> tuple[Any, ...]:
        if self._again is None:
            raise TypeError("only datasets of a path, open for reading, can be pickled")
        return _open_again, self._again


def open(  # noqa: A001 - the name that people expect after `zonda.`
    source: Source,
    mode: str = "r",
    *,
    share: bool = False,
    io: str | None = None,
    memory: bool = False,
    write_behind: str | bool | None = None,
    progress: bool = False,
    comm: Any = None,
    info: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **creation: Any,
) -> Dataset:
    """Opens a file.

    Parameters
    ----------
    source
        A path; the URL of a file on a server (``http://``, ``https://``, ``s3://``), or of a dataset of OPeNDAP (also ``dods://``,
        ``dap4://``), for reading; the bytes of a file (for
        reading, or in memory); or an open binary file or anything else with ``read`` and ``seek``, for reading. Of files of
        fsspec many ranges are asked for at once.
    mode
        ``"r"`` to read, ``"r+"`` or ``"a"`` to read and write what is there, ``"w"`` and ``"x"`` as `create`.
    share
        Other programs write it meanwhile: look again instead of remembering (classic formats).
    io
        Storage layers, such as ``"cache:64:256,file"``.
    memory
        Read it into memory whole.
    write_behind
        True, or settings such as ``"mem=512M,threads=2"``: writes return when their values are copied.
    progress
        Show a bar for long transfers, if tqdm is installed.
    comm
        A communicator of mpi4py, whose ranks all make this call and share the file.
    info
        An ``mpi4py.MPI.Info`` with hints.
    storage_options
        For a URL: keys as of fsspec (``key``, ``secret``, ``token``, ``anon``, ``profile``, ``endpoint_url``, ``username``,
        ``password``, ``headers``, ``client_kwargs``, ...). They hold for this file alone.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        For keys of `storage_options` that mean nothing here.
    FileNotFoundError, PermissionError, OSError
        As of the system. What is no file of netCDF is an OSError, too. All are `zonda.NetCDFError`.

    Examples
    --------
    >>> import zonda
    >>> with zonda.open("example.nc", "w") as ds:
    ...     v = ds.create_variable("x", data=[1.0, 2.0], dims="x")
    >>> with zonda.open("example.nc") as ds:
    ...     ds["x"][:]
    array([1., 2.])
    """
    if mode in ("w", "x"):
        if not isinstance(source, (str, bytes, os.PathLike)):
            raise TypeError(f"mode {mode!r} needs a path")
        path = cast(Union[str, bytes, "os.PathLike[str]"], source)
        return create(
            path, mode, share=share, io=io, memory=memory, write_behind=write_behind, progress=progress, comm=comm, info=info,
            **creation,
        )
    if creation:
        raise TypeError(f"only for new files: {', '.join(sorted(creation))}")
    if mode not in ("r", "r+", "a"):
        raise ValueError(f"mode is r, r+, a, w or x, not {mode!r}")
    write = mode != "r"
    if storage_options is not None and not _remote.is_url(source):
        raise ValueError("storage_options are for URLs (http://, https://, s3://, dods://, dap4://)")
    remote = _remote.settings(storage_options)
    if comm is not None or info is not None:
        ranks = _with_ranks(comm, info, share=share, memory=memory, write_behind=write_behind)
        if storage_options is not None:
            raise ValueError("a file of several ranks takes no storage_options: write them into .ncrc")
        if not isinstance(source, (str, bytes, os.PathLike)):
            raise TypeError(f"a file of several ranks needs a path, not {type(source).__name__}")
        path = cast(Union[str, bytes, "os.PathLike[str]"], source)
        return Dataset(File.open_parallel(os.fspath(path), *ranks, write=write, io=io), progress)
    if isinstance(source, (bytearray, memoryview)) or (isinstance(source, bytes) and source.startswith(_MAGIC)):
        return Dataset(File.open_bytes(source, write=write), progress)
    if isinstance(source, (str, bytes, os.PathLike)):
        place = os.fspath(source)
        if not isinstance(place, (str, bytes)):
            raise TypeError(f"no path: {place!r}")
        behind = _behind(write_behind)
        file = File.open(place, write=write, share=share, io=io, in_memory=memory, write_behind=behind, remote=remote)
        lasting = place if _remote.is_url(place) else os.path.abspath(place)
        again = None if write else (lasting, share, io, memory, progress, storage_options)
        return Dataset(file, progress, again)
    if not (hasattr(source, "read") and hasattr(source, "seek")):
        raise TypeError(f"a path, bytes or an open file is needed, not {type(source).__name__}")
    if write:
        raise ValueError("an open file can only be read: give its path to write")
    return Dataset(File.open_object(source), progress)


def create(
    path: str | bytes | os.PathLike[str],
    mode: str = "w",
    *,
    format: str = "NETCDF4",
    share: bool = False,
    io: str | None = None,
    memory: bool = False,
    persist: bool = False,
    write_behind: str | bool | None = None,
    progress: bool = False,
    comm: Any = None,
    info: Any = None,
) -> Dataset:
    """Makes a new file.

    Parameters
    ----------
    path
        Its place; just a name with ``memory=True``.
    mode
        ``"w"`` replaces a file that is there, ``"x"`` fails then.
    format
        NETCDF4, NETCDF4_CLASSIC, CDF-1, CDF-2 or CDF-5, or netCDF4-python's names (NETCDF3_CLASSIC, ...).
    memory
        Make it in memory; `Dataset.to_bytes` gives what would be in the file.
    persist
        With ``memory=True``: write it to `path` when it is closed.
    share, io, write_behind, progress, comm, info
        As for `open`.

    Returns
    -------
    Dataset

    Raises
    ------
    FileExistsError
        With mode ``"x"``, if it is there.
    OSError
        As of the system.

    Examples
    --------
    >>> import zonda
    >>> ds = zonda.create("in memory", format="CDF-5", memory=True)
    >>> v = ds.create_variable("x", "u8", "x", sizes={"x": 3}, attrs={"units": "m"})
    >>> v[:] = [1, 2, 3]
    >>> content = ds.to_bytes()
    >>> zonda.open(content)["x"][::-1]
    array([3, 2, 1], dtype=uint64)
    """
    if mode not in ("w", "x"):
        raise ValueError(f"mode is w or x, not {mode!r}")
    kind = _FORMATS.get(format)
    if kind is None:
        raise ValueError(f"no format {format!r}; there are {', '.join(_FORMATS)}")
    if comm is not None or info is not None:
        ranks = _with_ranks(comm, info, share=share, memory=memory or persist, write_behind=write_behind)
        return Dataset(File.create_parallel(os.fspath(path), kind, *ranks, exclusive=mode == "x", io=io), progress)
    file = File.create(
        os.fspath(path),
        kind,
        exclusive=mode == "x",
        share=share,
        io=io,
        in_memory=memory,
        persist=persist,
        write_behind=_behind(write_behind),
    )
    return Dataset(file, progress)


def _with_ranks(comm: Any, info: Any, **alone: Any) -> tuple[int, int]:
    """The handles of a communicator and an Info, and the keywords that no file of several ranks has."""
    given = [name for name, value in alone.items() if value]
    if given:
        raise ValueError(f"a file of several ranks cannot have {', '.join(given)}")
    return _parallel.handles(comm, info)[1:]


def _behind(how: str | bool | None) -> str | None:
    return ("on" if how else "off") if isinstance(how, bool) else how


def _open_again(
    path: str | bytes, share: bool, io: str | None, memory: bool, progress: bool, storage_options: Mapping[str, Any] | None = None
) -> Dataset:
    """For pickles."""
    opener: Callable[..., Dataset] = open
    return opener(path, share=share, io=io, memory=memory, progress=progress, storage_options=storage_options)
