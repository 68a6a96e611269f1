"""Zonda among the engines that xarray writes with.

xarray finds engines that read by their entry points. Those that write are a fixed list of it, and so is the order in which it takes
one where the program names none: there is no hook for either. So two names of xarray's module of writing are replaced while the
process runs. No file of xarray changes, and `remove` puts back what was there.

This module asks for neither NumPy nor xarray: `zonda` looks at it when it is imported.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from types import ModuleType
from typing import Any, Literal, get_args

__all__ = ["add", "by_itself", "remove"]

# Where releases have what writes: from 2025.10 on, before that, and what writes trees before that.
_MODULES = ("xarray.backends.writers", "xarray.backends.api", "xarray.core.datatree_io")
_ORDER = ("netcdf4", "h5netcdf", "scipy")  # xarray's own; who asks for another gets that
_FORMATS = (None, "NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_64BIT", "NETCDF3_CLASSIC")
_SETTING = "ZONDA_XARRAY_WRITING"

# What was there: module, name, value.
_replaced: list[tuple[ModuleType, str, Any]] = []


def by_itself() -> None:
    """`add`, where xarray is loaded and the environment does not forbid it."""
    setting = os.environ.get(_SETTING, "on")
    if setting not in ("on", "off"):
        warnings.warn(f"{_SETTING}: {setting!r} is neither on nor off; taken for on", RuntimeWarning, stacklevel=2)
    if setting != "off" and _modules():
        add()


def add() -> None:
    """Let xarray write with Zonda: where it is named, and where xarray would take scipy or find nothing."""
    if _replaced:
        return
    for module in _modules():
        stores = getattr(module, "WRITEABLE_STORES", None)
        if stores is not None:
            stores.setdefault("zonda", _open)
        for name, other in (
            ("get_default_netcdf_write_engine", _of_target),
            ("_get_default_engine_netcdf", _of_none),  # before 2025.9
        ):
            own = getattr(module, name, None)
            if own is not None:
                _replace(module, name, other(own))
        engines = getattr(module, "T_DataTreeNetcdfEngine", None)
        if engines is not None and "zonda" not in get_args(engines):
            _replace(module, "T_DataTreeNetcdfEngine", Literal[(*get_args(engines), "zonda")])


def remove() -> None:
    """Put back what `add` replaced."""
    while _replaced:
        module, name, value = _replaced.pop()
        setattr(module, name, value)
    for module in _modules():
        stores = getattr(module, "WRITEABLE_STORES", {})
        if stores.get("zonda") is _open:
            del stores["zonda"]


def _modules() -> list[ModuleType]:
    found = []
    for name in _MODULES if "xarray" in sys.modules else ():
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError:
            pass  # another release
    return found


def _replace(module: ModuleType, name: str, value: Any) -> None:
    _replaced.append((module, name, getattr(module, name)))
    setattr(module, name, value)


def _open(*args: Any, **kwargs: Any) -> Any:
    """`ZondaDataStore.open`, loaded when it is called."""
    from .xarray_engine import ZondaDataStore

    return ZondaDataStore.open(*args, **kwargs)


def _of_target(own: Any) -> Any:
    def get_default_netcdf_write_engine(path_or_file: Any, format: Any = None) -> str:
        try:
            engine = own(path_or_file, format)
        except ValueError:
            wanted = format.upper() if isinstance(format, str) else format
            if wanted not in _FORMATS or (isinstance(path_or_file, str) and path_or_file.endswith("#mode=nczarr")):
                raise
            return "zonda"
        return "zonda" if engine == "scipy" and _is_order_xarrays() else str(engine)

    return get_default_netcdf_write_engine


def _of_none(own: Any) -> Any:
    def _get_default_engine_netcdf() -> str:
        try:
            engine = own()
        except ValueError:
            return "zonda"
        return "zonda" if engine == "scipy" else str(engine)

    return _get_default_engine_netcdf


def _is_order_xarrays() -> bool:
    import xarray

    options: Any = xarray.get_options()  # type: ignore[no-untyped-call, unused-ignore]
    return tuple(options.get("netcdf_engine_order", _ORDER)) == _ORDER
