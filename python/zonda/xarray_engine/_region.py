"""Writing into a part of variables that exist."""

from __future__ import annotations

from typing import Any, Hashable, Mapping

import numpy as np
import xarray as xr

from ._arrays import ZondaTarget
from ._entrypoint import ZondaBackendEntrypoint
from ._store import ZondaDataStore
from ._streaming import Progress, StreamingWriter, in_parts
from ._types import type_of

__all__ = ["write_region"]


def write_region(
    dataset: xr.Dataset,
    path: str,
    region: Mapping[Hashable, slice | str] | str,
    *,
    group: str | None,
    write_behind: str,
    progress: Progress,
) -> None:
    """Write the variables of a dataset into a region of a file.

    Values are encoded as the file's variables are (type, scale, units of time), whatever the encoding of the
    dataset says.

    Raises
    ------
    ValueError
        If the region names unknown dimensions or has another size than the dataset, if a variable has no
        dimension of the region, is not in the file, or has other dimensions there; and for ``"auto"`` if the
        coordinate of the dataset is not a run of the file's.
    """
    with xr.open_dataset(path, engine=ZondaBackendEntrypoint, group=group, decode_coords=False) as existing:
        slices = _slices(dataset, existing, region)
        outside = [name for name, v in dataset.variables.items() if not set(slices).intersection(v.dims)]
        if outside:
            raise ValueError(
                f"when setting `region`, all variables must have a dimension in common with it ({list(slices)}); "
                f"drop these: {outside}"
            )
        encodings = {}
        for name, variable in dataset.variables.items():
            if name not in existing.variables:
                raise ValueError(f"variable {name!r} is not in the file {path!r}, a region of it cannot be written")
            there = existing.variables[name]
            if there.dims != variable.dims:
                raise ValueError(f"variable {name!r} has dimensions {variable.dims}, in the file {there.dims}")
            encodings[name] = dict(there.encoding)

    variables, _ = xr.conventions.encode_dataset_coordinates(in_parts(dataset))
    for name, variable in variables.items():
        variable.encoding = encodings[name]
    store = ZondaDataStore.open(path, mode="r+", group=group, write_behind=write_behind)
    try:
        store.on_put = progress.put if progress.wanted else None
        encoded, _ = store.encode({name: variables[name] for name in dataset.variables}, {})
        opened = store.handle.acquire()
        _, info = store._locate(opened)
        there_now = {var[1]: var for var in info[5]}
        limits = _limits(store)
        writer = StreamingWriter()
        for name, variable in encoded.items():
            _, _, typeid, dims, shape = there_now[name]
            _check_sizes(name, variable, slices, dims, shape, limits)
            kind = type_of(opened.file, typeid, "native", store.auto_complex)
            # (where it begins, step) a dimension; character dimensions, which encoding added, are whole.
            place = tuple(
                (slices[dim].start, slices[dim].step) if dim in slices else (0, 1) for dim in variable.dims
            )
            writer.add(variable.data, ZondaTarget(store, name, variable.shape, kind, region=place))
        writer.compute()
    finally:
        store.close()


def _limits(store: ZondaDataStore) -> set[int]:
    """The numbers of the dimensions that may grow."""
    seen = store._dimensions(store.handle.acquire())
    return {dim for dim, (_, _, unlimited) in seen.items() if unlimited}


def _check_sizes(
    name: Any, variable: xr.Variable, slices: dict[Hashable, slice], dims: Any, shape: Any, unlimited: set[int]
) -> None:
    if len(dims) != variable.ndim:
        raise ValueError(f"variable {name!r} has {len(dims)} dimensions in the file, {variable.ndim} when encoded")
    for dim, number, size, there in zip(variable.dims, dims, variable.shape, shape, strict=True):
        if dim not in slices:
            if size != there:
                raise ValueError(f"variable {name!r}: dimension {dim!r} has {size} elements, in the file {there}")
            continue
        part = slices[dim]
        if size and part.start + (size - 1) * part.step >= there and number not in unlimited:
            raise ValueError(
                f"variable {name!r}: region {part} of dimension {dim!r} leaves the file's {there} elements, "
                "and the dimension is not unlimited"
            )


def _slices(
    dataset: xr.Dataset, existing: xr.Dataset, region: Mapping[Hashable, slice | str] | str
) -> dict[Hashable, slice]:
    """Every dimension of the region with whole numbers for start, stop and step."""
    if isinstance(region, str):
        if region != "auto":
            raise ValueError(f"region is a dict or 'auto', not {region!r}")
        region = {dim: "auto" for dim in dataset.dims if dim in existing.variables}
    unknown = [dim for dim in region if dim not in dataset.dims]
    if unknown:
        raise ValueError(f"dimensions of region that are not in the dataset: {unknown} (it has {list(dataset.dims)})")
    slices: dict[Hashable, slice] = {}
    for dim, part in region.items():
        size = dataset.sizes[dim]
        if part == "auto":
            slices[dim] = _place_of(dataset, existing, dim)
            continue
        if not isinstance(part, slice):
            raise TypeError(f"region of dimension {dim!r} is a slice or 'auto', not {part!r}")
        step = 1 if part.step is None else int(part.step)
        there = existing.sizes.get(dim, 0)
        start = 0 if part.start is None else int(part.start)
        start += there if start < 0 else 0
        stop = start + size * step if part.stop is None else int(part.stop)
        stop += there if stop < 0 else 0
        if step < 1 or start < 0:
            raise ValueError(f"region of dimension {dim!r} must go forward from 0 on, not {part}")
        if len(range(start, stop, step)) != size:
            raise ValueError(f"region {part} of dimension {dim!r} has not the {size} elements of the dataset")
        slices[dim] = slice(start, stop, step)
    return slices


def _place_of(dataset: xr.Dataset, existing: xr.Dataset, dim: Hashable) -> slice:
    if dim not in existing.variables or dim not in dataset.variables:
        raise ValueError(f"region='auto' for dimension {dim!r} needs a coordinate of that name on both sides")
    places = existing[dim].to_index().get_indexer(dataset[dim].to_index())
    if (places < 0).any():
        raise ValueError(f"region='auto': not all values of coordinate {dim!r} are in the file")
    if places.size > 1 and not (np.diff(places) == 1).all():
        raise ValueError(f"region='auto': the values of coordinate {dim!r} are not one run of the file's")
    start = int(places[0]) if places.size else 0
    return slice(start, start + int(places.size), 1)
