"""The xarray engine ``zonda``, and writing with xarray's encodings.

``xarray.open_dataset(path, engine="zonda")`` finds it by its entry point once the package is installed.
`to_netcdf` writes datasets and trees. ``Dataset.to_netcdf(engine="zonda")`` works once this module is loaded (`enable_writing`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zonda import _xarray_default

from . import _release

_release.check()

from ._entrypoint import ZondaBackendEntrypoint  # noqa: E402

if TYPE_CHECKING:
    from ._many import open_mfdataset
    from ._store import ZondaDataStore
    from ._writing import enable_writing, to_netcdf

__all__ = [
    "ZondaBackendEntrypoint",
    "ZondaDataStore",
    "enable_writing",
    "open_mfdataset",
    "to_netcdf",
]

# xarray loads this module before the first file that it opens: what that does not need is loaded when it is used.
_HOMES = {
    "ZondaDataStore": "_store",
    "enable_writing": "_writing",
    "open_mfdataset": "_many",
    "to_netcdf": "_writing",
}


# Checkers of types see the imports above, and no name besides.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_xarray_default.by_itself()
