"""Where the parts of the package are: library, tools, headers.

They are in the folder ``_dist`` of the package, laid out as an installation prefix. ``ZONDA_PREFIX`` names another
prefix, such as ``dist/`` of a checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["get_bin", "get_include", "get_lib", "get_preload", "get_prefix"]

_LIBRARY = "libnetcdf.so.19"


def get_prefix() -> Path:
    """The folder of ``lib``, ``bin`` and ``include``.

    Raises
    ------
    FileNotFoundError
        If the package was built without them.
    """
    given = os.environ.get("ZONDA_PREFIX")
    prefix = Path(given) if given else Path(__file__).resolve().parent / "_dist"
    if not (prefix / "lib" / _LIBRARY).is_file():
        hint = "" if given else "; this package was built without its libraries: ZONDA_PREFIX can name a prefix"
        raise FileNotFoundError(f"no lib/{_LIBRARY} in {prefix}{hint}")
    return prefix


def get_lib() -> str:
    """Path of the C library, for ``ctypes``, linkers, and programs that load libnetcdf.

    Examples
    --------
    >>> import ctypes, zonda
    >>> library = ctypes.CDLL(zonda.get_lib())
    >>> library.nc_inq_libvers.restype = ctypes.c_char_p
    >>> b"zonda" in library.nc_inq_libvers().lower()
    True
    """
    return str(get_prefix() / "lib" / _LIBRARY)


def get_preload() -> str:
    """Path of the library that goes in front of a program's own libnetcdf (``LD_PRELOAD``); see ``zonda run``."""
    return str(get_prefix() / "lib" / "libzonda-preload.so")


def get_include() -> str:
    """Folder of ``netcdf.h``."""
    return str(get_prefix() / "include")


def get_bin() -> str:
    """Path of the program ``zonda``, which is ncdump, ncgen, ncgen3 and nccopy, too, when called by these names."""
    return str(get_prefix() / "bin" / "zonda")
