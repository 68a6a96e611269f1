"""The console scripts: each becomes the program of its name, which then has the process for itself."""

from __future__ import annotations

import os
import sys

from .places import get_bin


def _become(name: str) -> None:
    try:
        program = get_bin()
        # The name decides what it is.
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {error}")


def zonda() -> None:
    """The command ``zonda``."""
    _become("zonda")


def ncdump() -> None:
    """The command ``ncdump``."""
    _become("ncdump")


def ncgen() -> None:
    """The command ``ncgen``."""
    _become("ncgen")


def ncgen3() -> None:
    """The command ``ncgen3``."""
    _become("ncgen3")


def nccopy() -> None:
    """The command ``nccopy``."""
    _become("nccopy")
