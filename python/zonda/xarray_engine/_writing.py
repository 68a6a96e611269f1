"""Datasets and trees to netCDF files."""

from __future__ import annotations

import os
import shutil
import uuid
from typing import TYPE_CHECKING, Any, Callable, Hashable, Iterable, Literal, Mapping, overload

import xarray as xr

from zonda import _remote, _xarray_default

from ._handles import Handle
from ._region import write_region
from ._store import ZondaDataStore
from ._streaming import Progress, StreamingWriter, in_parts
from ._xarray import array_names, checked, dask_scheduler, delayed_close, dump_to_store, unlimited

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack
    from xarray import DataTree

    Source = xr.Dataset | xr.DataArray | DataTree

    class Options(TypedDict, total=False):
        """The options of `to_netcdf`, which are said there."""

        format: str | None
        group: str | None
        encoding: Mapping[Hashable, Mapping[str, Any]] | None
        unlimited_dims: Iterable[Hashable] | str | None
        region: Mapping[Hashable, slice | str] | str | None
        progress: bool | Callable[[int], Any]
        write_behind: str
        write_inherited_coords: bool
        auto_complex: bool | None

__all__ = ["enable_writing", "to_netcdf"]


class _Bytes:
    """Is given the bytes of a file that was written to memory."""

    def __init__(self) -> None:
        self.getvalue: Callable[[], memoryview] | None = None

    def getbuffer(self) -> memoryview:
        if self.getvalue is None:
            raise ValueError("the file was not finished")
        return self.getvalue()


@overload
def to_netcdf(dataset: Source, path: None = ..., mode: str = ..., *, compute: bool = ..., **options: Unpack[Options]) -> bytes: ...


@overload
def to_netcdf(dataset: Source, path: Any, mode: str = ..., *, compute: Literal[False], **options: Unpack[Options]) -> Any: ...


@overload
def to_netcdf(dataset: Source, path: Any, mode: str = ..., *, compute: Literal[True] = ..., **options: Unpack[Options]) -> None: ...


def to_netcdf(
    dataset: xr.Dataset | xr.DataArray | DataTree,
    path: Any = None,
    mode: str = "w",
    *,
    format: str | None = None,
    group: str | None = None,
    encoding: Mapping[Hashable, Mapping[str, Any]] | None = None,
    unlimited_dims: Iterable[Hashable] | str | None = None,
    compute: bool = True,
    region: Mapping[Hashable, slice | str] | str | None = None,
    progress: bool | Callable[[int], Any] = False,
    write_behind: str = "on",
    write_inherited_coords: bool = False,
    auto_complex: bool | None = None,
) -> Any:
    """Write a dataset, an array or a tree to a netCDF file.

    Dask arrays are streamed, and so are lazy arrays above 64 MiB where dask is installed: threads put their blocks at once and without a lock; under processes and
    distributed the blocks are computed there and written by this process.

    Parameters
    ----------
    dataset : Dataset, DataArray or DataTree
        What to write.
    path : path or file object, optional
        Where to. A file object (opened for writing bytes) gets the whole file at the end; None returns it.
    mode : {"w", "a", "r+"}
        New file (an old one is replaced), add to a file or create it, add to a file that must exist.
    format : str, optional
        ``"NETCDF4"`` (default), ``"NETCDF4_CLASSIC"``, ``"NETCDF3_CLASSIC"``, ``"NETCDF3_64BIT"``,
        ``"NETCDF3_64BIT_DATA"``.
    group : str, optional
        Path of the group to write to; it is made if need be.
    encoding : dict, optional
        ``{name: {key: value}}``, for trees ``{path: {name: {key: value}}}``; the keys of xarray's netCDF4
        engine.
    unlimited_dims : str or iterable of str, optional
        Dimensions that may grow; default those of ``dataset.encoding``.
    compute : bool
        False defines everything, writes what is in memory, and gives a `dask.delayed.Delayed` that writes
        the rest and closes the file.
    region : dict or "auto", optional
        Write into a part of variables that exist: ``{"time": slice(0, 10)}``, or ``"auto"`` (for all or one
        dimension) to find the place by the coordinate. An unlimited dimension may grow by it.
    progress : bool or callable
        Show a tqdm bar; a function is called with the bytes of each block.
    write_behind : str
        ``"on"``: writing goes on in the background with bounded memory and is finished when this returns.
        ``"off"``, ``"mem=512M"`` and ``"threads=2"`` as in the library.
    write_inherited_coords : bool
        For trees: write coordinates that a node has from its parents to the node, too.
    auto_complex : bool, optional
        Write complex numbers as compounds of two reals.

    Returns
    -------
    None, memoryview or Delayed
        The file if `path` is None; a Delayed with ``compute=False``.

    Raises
    ------
    ValueError
        For encoding keys that are unknown, or a region that does not fit.
    OSError
        If the file cannot be written.

    Notes
    -----
    With mode ``"w"`` and ``compute=True`` the file is written beside its name and takes the name when it is
    complete: a write that fails leaves no half file, and an old file as it was. So a dataset may be written
    to the file that it is read from. With ``compute=False``, and with the other modes, the file itself is
    written to.
    """
    if isinstance(dataset, xr.DataArray):
        dataset = _as_dataset(dataset)
    if mode not in ("w", "a", "r+"):
        raise ValueError(f"unknown mode {mode!r}: modes are 'w', 'a' and 'r+'")
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if region is not None:
        if not compute or not isinstance(path, str) or not isinstance(dataset, xr.Dataset):
            raise ValueError("a region is written from a Dataset to a path, with compute=True")
        if encoding:
            raise ValueError("encoding cannot be given with region: the variables exist")
        bar = Progress(progress, dataset.nbytes, os.path.basename(path))
        try:
            write_region(dataset, path, region, group=group, write_behind=write_behind, progress=bar)
        finally:
            bar.close()
        return None
    if isinstance(path, str):
        path = _xarray_path(path)
        if mode == "a" and not os.path.exists(path):
            mode = "w"
        if not compute:
            return _delayed(dataset, path, mode, format, group, encoding, unlimited_dims, auto_complex)
        if mode == "w" and _may_be_replaced(path):
            return _replace(
                path,
                lambda part: _write(
                    dataset, part, "w", format, group, encoding, unlimited_dims, progress,
                    write_behind, write_inherited_coords, auto_complex, name=path,
                ),
            )
        _write(
            dataset, path, mode, format, group, encoding, unlimited_dims, progress, write_behind,
            write_inherited_coords, auto_complex, name=path,
        )
        return None
    if not compute:
        raise NotImplementedError("to_netcdf() with compute=False needs a path")
    if mode != "w":
        raise ValueError(f"mode {mode!r} needs a path")
    sink = _Bytes()
    _write(
        dataset, sink, "w", format, group, encoding, unlimited_dims, progress, "off",
        write_inherited_coords, auto_complex, name="memory",
    )
    if path is None:
        return sink.getbuffer()
    path.write(sink.getbuffer())
    return None


def _xarray_path(path: str) -> str:
    if _remote.is_url(path):
        raise ValueError("a file on a server can only be read: write to a path, and copy it to s3:// with zonda.copy")
    return os.path.abspath(os.path.expanduser(path))


def _may_be_replaced(path: str) -> bool:
    real = os.path.realpath(path)
    return not os.path.exists(real) or os.path.isfile(real)


def _replace(path: str, write: Callable[[str], None]) -> None:
    """Write beside the name, then rename; links stay links and permissions stay."""
    real = os.path.realpath(path)
    folder, base = os.path.split(real)
    part = os.path.join(folder, f".{base}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
    try:
        write(part)
        if os.path.exists(real):
            shutil.copymode(real, part)
        os.replace(part, real)
    except BaseException as error:
        _name(error, part, path)
        try:
            os.unlink(part)
        except FileNotFoundError:
            pass
        raise


def _name(error: BaseException | None, part: str, path: str) -> None:
    """Let an error, and those that led to it, name the file that was asked for and not the one beside it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.args = tuple(arg.replace(part, path) if isinstance(arg, str) else arg for arg in error.args)
        for name in ("path", "text", "filename", "filename2", "strerror"):
            said = getattr(error, name, None)
            if isinstance(said, str) and part in said:
                setattr(error, name, said.replace(part, path))
        error = error.__cause__ or error.__context__


def _as_dataset(array: xr.DataArray) -> xr.Dataset:
    """As `DataArray.to_netcdf`: a name is invented where the array's own would not come back."""
    variable, attribute = array_names()
    if array.name is None:
        return array.to_dataset(name=variable)
    if array.name in array.coords or array.name in array.dims:
        dataset = array.to_dataset(name=variable)
        dataset.attrs[attribute] = array.name
        return dataset
    return array.to_dataset()


def _nodes(
    dataset: Any, group: str | None, encoding: Any, unlimited_dims: Any, inherited: bool
) -> list[tuple[str | None, xr.Dataset, dict[Any, Any], Any]]:
    """What is written: path of the group, dataset, encoding, unlimited dimensions."""
    encoding = dict(encoding or {})
    if isinstance(dataset, xr.Dataset):
        unknown = [name for name in encoding if name not in dataset.variables]
        if unknown:
            raise ValueError(f"encoding of variables that are not in the dataset: {unknown!r}")
        return [(group, dataset, encoding, unlimited_dims)]
    if encoding and (unknown := set(encoding) - set(dataset.groups)):
        raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")
    nodes = []
    for node in dataset.subtree:
        at_root = node is dataset
        path = "/" + (group or "").strip("/") + "/" + node.relative_to(dataset).strip("./")
        limits = unlimited_dims.get(node.path) if isinstance(unlimited_dims, Mapping) else unlimited_dims
        nodes.append((path, node.to_dataset(inherit=inherited or at_root), encoding.get(node.path, {}), limits))
    return nodes


def _write(
    dataset: Any,
    target: Any,
    mode: str,
    format: str | None,
    group: str | None,
    encoding: Any,
    unlimited_dims: Any,
    progress: bool | Callable[[int], Any],
    write_behind: str,
    inherited: bool,
    auto_complex: bool | None,
    *,
    name: str,
) -> None:
    nodes = _nodes(dataset, group, encoding, unlimited_dims, inherited)
    for _, part, _, _ in nodes:
        checked(part)
    limits = [unlimited(part, dims) for _, part, _, dims in nodes]
    bar = Progress(progress, sum(part.nbytes for _, part, _, _ in nodes), os.path.basename(name))
    try:
        root = ZondaDataStore.open(
            target, mode=mode, format=format, auto_complex=auto_complex, write_behind=write_behind
        )
        if bar.wanted:
            root.on_put = bar.put
        writer = StreamingWriter()
        try:
            for (path, part, keys, _), limit in zip(nodes, limits, strict=True):
                store = root if path in (None, "", "/") else root.get_child_store(path)
                dump_to_store(in_parts(part), store, writer, encoding=_copied(keys), unlimited_dims=limit)
            writer.compute()
        except BaseException:
            _give_up(root.handle, created=mode == "w")
            raise
        root.close()
    finally:
        bar.close()


def _give_up(handle: Handle, created: bool) -> None:
    # What went wrong first is what the caller must see.
    try:
        if created:
            handle.abort()
        else:
            handle.close()
    except Exception:
        pass


def _copied(encoding: Mapping[Any, Mapping[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {name: dict(keys) for name, keys in encoding.items()}


def _delayed(
    dataset: Any,
    path: str,
    mode: str,
    format: str | None,
    group: str | None,
    encoding: Any,
    unlimited_dims: Any,
    auto_complex: bool | None,
) -> Any:
    """As xarray does it: the tasks write; by several processes under a lock that they share."""
    if not isinstance(dataset, xr.Dataset):
        raise NotImplementedError("compute=False is there for datasets only")
    nodes = _nodes(dataset, group, encoding, unlimited_dims, False)
    checked(dataset)
    limits = unlimited(dataset, unlimited_dims)
    several = dask_scheduler() in ("distributed", "multiprocessing")
    root = ZondaDataStore.open(
        path, mode=mode, format=format, auto_complex=auto_complex, autoclose=several
    )
    writer = StreamingWriter()
    try:
        store = root if group is None else root.get_child_store(group)
        dump_to_store(dataset, store, writer, encoding=_copied(nodes[0][2]), unlimited_dims=limits)
        if several:
            root.close()
        else:
            root.sync()
        return delayed_close(writer.sync(compute=False), store)
    except BaseException:
        _give_up(root.handle, created=False)
        raise


def enable_writing(enable: bool = True) -> None:
    """Make ``to_netcdf(..., engine="zonda")`` of datasets, arrays and trees, and ``save_mfdataset``, work.

    xarray has a fixed list of engines that write; this adds one to it, for this process. It also becomes the one that is taken
    where no engine is named and neither netCDF4 nor h5netcdf is installed: xarray would take scipy, or raise. Both happen by
    themselves when xarray opens its first file, or when `zonda` is imported after xarray, unless the variable
    ``ZONDA_XARRAY_WRITING`` is ``off``. Calling it twice does no harm.

    Parameters
    ----------
    enable : bool
        False takes both back.
    """
    if enable:
        _xarray_default.add()
    else:
        _xarray_default.remove()
