"""The entry point ``zonda`` of the group ``xarray.backends``."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping

from xarray.backends import BackendEntrypoint

from zonda import _remote

from . import _decode
from ._store import ZondaDataStore

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

__all__ = ["ZondaBackendEntrypoint"]

_MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF\r\n\x1a\n")
# A URL, or a chain of fsspec's.
_ELSEWHERE = re.compile("[a-z][a-z0-9]*(://|::)")
_EXTENSIONS = {".nc", ".nc4", ".cdf", ".nc3", ".nc5"}


class ZondaBackendEntrypoint(BackendEntrypoint):
    """netCDF files (classic, 64-bit, CDF-5, netCDF-4) and most HDF5 files, read by the library Zonda.

    Paths, URLs (HTTP, S3, OPeNDAP), bytes, ``BytesIO`` and file objects that can be positioned (fsspec) can be opened.
    Files are read without a lock and without the GIL.

    Examples
    --------
    >>> import xarray as xr
    >>> ds = xr.open_dataset("air.nc", engine="zonda", chunks={})  # doctest: +SKIP
    """

    # xarray finds them out of a registered engine only; the class itself may be given as the engine, too.
    open_dataset_parameters = (
        "filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords", "drop_variables",
        "use_cftime", "decode_timedelta", "group", "mode", "format", "clobber", "diskless", "persist", "auto_complex",
        "lock", "autoclose", "storage_options",
    )  # fmt: skip
    description = "Open netCDF (.nc, .nc4 and .cdf) and most HDF5 files without locks using Zonda in Xarray"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it looks like a netCDF file, by its first bytes, else by its name.

        Of URLs all may be datasets of OPeNDAP but those of S3 and those that speak of Zarr, as for the engine ``netcdf4``.
        """
        if isinstance(filename_or_obj, (str, os.PathLike)) and _remote.is_url(filename_or_obj):
            place, _, fragment = os.fspath(filename_or_obj).partition("#")
            place = place.partition("?")[0]
            if os.path.splitext(place)[1] in _EXTENSIONS or "bytes" in fragment:
                return True
            return not place.lower().startswith("s3:") and "zarr" not in (place + fragment).lower()
        if isinstance(filename_or_obj, (str, os.PathLike)):
            if "://" in os.fspath(filename_or_obj):
                # Of another library.
                return False
            try:
                with open(filename_or_obj, "rb") as file:
                    return file.read(8).startswith(_MAGIC)
            except OSError:
                return os.path.splitext(os.fspath(filename_or_obj))[1] in _EXTENSIONS
        if isinstance(filename_or_obj, (bytes, bytearray, memoryview)):
            return bytes(filename_or_obj[:8]).startswith(_MAGIC)
        if hasattr(filename_or_obj, "read") and hasattr(filename_or_obj, "seek"):
            place = filename_or_obj.tell()
            start = filename_or_obj.read(8)
            filename_or_obj.seek(place)
            return isinstance(start, bytes) and start.startswith(_MAGIC)
        return False

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        mode: str = "r",
        format: str | None = None,
        clobber: bool = True,
        diskless: bool = False,
        persist: bool = False,
        auto_complex: bool | None = None,
        lock: Any = None,
        autoclose: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Open one group. The keywords are those of the engine ``netcdf4``; `lock` is not needed."""
        store = ZondaDataStore.open(
            _place(filename_or_obj),
            mode=mode,
            format=format,
            group=group,
            clobber=clobber,
            diskless=diskless,
            persist=persist,
            auto_complex=auto_complex,
            autoclose=autoclose,
            storage_options=storage_options,
        )
        with _closed_on_error(store):
            dataset = _decode.dataset(
                store,
                drop_variables,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
        if store.handle.source.kind == "path" and _remote.is_url(store.handle.source.value):
            # xarray would put the URL there with its secrets.
            dataset.encoding["source"] = store.handle.source.name
        return dataset

    def open_datatree(self, filename_or_obj: Any, **kwargs: Any) -> DataTree:
        """Open a group and all below it as a tree; the keywords are those of `open_dataset`."""
        from ._xarray import tree_of

        return tree_of(self.open_groups_as_dict(filename_or_obj, **kwargs))

    def open_groups_as_dict(  # type: ignore[override]
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        format: str | None = None,
        clobber: bool = True,
        diskless: bool = False,
        persist: bool = False,
        auto_complex: bool | None = None,
        lock: Any = None,
        autoclose: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> dict[str, Dataset]:
        """Open a group and all below it; names are relative to `group`, the root is ``/``."""
        store = ZondaDataStore.open(
            _place(filename_or_obj),
            group=group,
            diskless=diskless,
            persist=persist,
            auto_complex=auto_complex,
            storage_options=storage_options,
        )
        datasets: dict[str, Dataset] = {}
        with _closed_on_error(store):
            for node in store.group_stores():
                if group:
                    name = str(PurePosixPath(node.group).relative_to(store.group))
                else:
                    name = node.group
                datasets[name] = _decode.dataset(
                    node,
                    drop_variables,
                    mask_and_scale=mask_and_scale,
                    decode_times=decode_times,
                    concat_characters=concat_characters,
                    decode_coords=decode_coords,
                    use_cftime=use_cftime,
                    decode_timedelta=decode_timedelta,
                )
        return datasets


def _place(target: Any) -> Any:
    """A path as text, from the root; URLs and all others as they are."""
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    if isinstance(target, str) and not _ELSEWHERE.match(target):
        return os.path.abspath(os.path.expanduser(target))
    return target


@contextmanager
def _closed_on_error(store: ZondaDataStore) -> Iterator[None]:
    try:
        yield
    except Exception:
        store.close()
        raise
