"""What the engine takes from xarray and xarray does not promise to keep. No other module imports such a name.

Documented are `xarray` itself with `xarray.conventions`, `xarray.backends` (of which an engine is made) and
`xarray.core.indexing` ("How to add a new backend"): those are imported where they are used. All else is here, each name with
what is done where a release has none. `python/tests/engine/test_releases.py` runs the engine on the oldest release that is
supported (`_release.OLDEST`) and on the newest.
"""

from __future__ import annotations

import inspect
from typing import Any, Iterable

from xarray import open_dataset
from xarray.backends.common import ArrayWriter, WritableCFDataStore
from xarray.backends.netcdf3 import encode_nc3_attr_value, encode_nc3_variable as _encode_nc3_variable
from xarray.coding.strings import CharacterArrayCoder, EncodedStringCoder
from xarray.coding.times import decode_cf_datetime
from xarray.core import dtypes

try:
    from xarray.backends import writers
except ImportError:  # before 2025.10
    from xarray.backends import api as writers  # type: ignore[no-redef]

try:
    from xarray.coding.common import _ElementwiseFunctionArray
    from xarray.coding.variables import _choose_float_dtype
except ImportError:  # another xarray: it decodes itself what is packed, and dates
    _ElementwiseFunctionArray = object
    _choose_float_dtype = None

__all__ = [
    "ArrayWriter", "CharacterArrayCoder", "EncodedStringCoder", "WritableCFDataStore", "array_names",
    "checked", "choose_float_dtype", "dask_scheduler", "decode_cf_datetime", "delayed_close", "dtypes", "dump_to_store",
    "elementwise_array", "encode_nc3_attr_value", "encode_nc3_variable", "makes_indexes", "tree_of", "unlimited", "write_lock", "writers",
]  # fmt: skip

#: The base of arrays that are decoded when they are indexed; `object` where there is none.
elementwise_array = _ElementwiseFunctionArray
#: Which float packed integers become; None where it cannot be asked.
choose_float_dtype = _choose_float_dtype
dump_to_store = writers.dump_to_store

#: Whether `xarray.open_dataset` makes the indexes of what an engine gives it. Older releases leave it to the engine.
makes_indexes = "create_default_indexes" in inspect.signature(open_dataset).parameters

# Before 2025, messages had no names of variables.
_HAS_NAME = "name" in inspect.signature(_encode_nc3_variable).parameters


def encode_nc3_variable(variable: Any, name: Any) -> Any:
    """A variable as a classic file can have it."""
    return _encode_nc3_variable(variable, name=name) if _HAS_NAME else _encode_nc3_variable(variable)


def dask_scheduler() -> str | None:
    """``"threaded"``, ``"multiprocessing"`` or ``"distributed"``; None without dask."""
    from xarray.backends import locks

    # The older name is that of releases before 2025.7.
    ask = getattr(locks, "get_dask_scheduler", None) or getattr(locks, "_get_scheduler")
    return ask()  # type: ignore[no-any-return]


def write_lock(path: str) -> Any:
    """The lock that xarray's own engines take to write a file under the scheduler that dask uses now."""
    from xarray.backends.locks import get_write_lock

    return get_write_lock(path)


def checked(dataset: Any) -> None:
    """Check names and attributes as `Dataset.to_netcdf` does.

    Raises
    ------
    ValueError, TypeError
        If one cannot be in a file.
    """
    writers._validate_dataset_names(dataset)
    writers._validate_attrs(dataset, "zonda")


def unlimited(dataset: Any, dims: Any) -> Any:
    """The unlimited dimensions of a file: those given, else those that the dataset had in its file.

    Raises
    ------
    ValueError
        If a dimension that is given is not in the dataset.
    """
    own = getattr(writers, "_sanitize_unlimited_dims", None)
    if own is not None:
        return own(dataset, dims)
    given = dims is not None
    dims = dims if given else dataset.encoding.get("unlimited_dims")
    if dims is None:
        return None
    names = set([dims] if isinstance(dims, str) or not isinstance(dims, Iterable) else dims)
    unknown = names - set(dataset.dims)
    if unknown and given:
        raise ValueError(f"unlimited dimensions that are not in the dataset: {sorted(map(str, unknown))}")
    return names - unknown


def delayed_close(writes: Any, store: Any) -> Any:
    """A Delayed that closes a store when all has been written."""
    from xarray.backends import api

    own = getattr(api, "delayed_close_after_writes", None)
    if own is not None:
        return own(writes, store)
    import dask

    return dask.delayed(_close_after)(writes, store)


def _close_after(writes: Any, store: Any) -> None:
    store.close()


def tree_of(datasets: dict[str, Any]) -> Any:
    """A tree of datasets by their paths, which closes their files when it is closed."""
    from xarray.backends import common

    own = getattr(common, "datatree_from_dict_with_io_cleanup", None)
    if own is not None:
        return own(datasets)
    from xarray import DataTree

    tree = DataTree.from_dict(datasets)
    for path, dataset in datasets.items():
        tree[path].set_close(dataset._close)
    return tree


def array_names() -> tuple[str, str]:
    """How `DataArray.to_netcdf` calls a variable without a name, and the attribute that has the name of the array."""
    from xarray.backends import api

    return getattr(api, "DATAARRAY_VARIABLE"), getattr(api, "DATAARRAY_NAME")
