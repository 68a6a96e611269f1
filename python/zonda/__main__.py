"""``python -m zonda`` tells where things are; with arguments it is the command ``zonda``."""

from __future__ import annotations

import sys

import zonda

from . import _commands, _zonda


def main() -> None:
    """Prints the versions and places."""
    if len(sys.argv) > 1:
        _commands.zonda()
    lines = [("zonda", _zonda.version()), ("netCDF interface", _zonda.netcdf_version())]
    lines.append(("module", str(_zonda.__file__)))
    for name, find in (
        ("library", zonda.get_lib),
        ("preload library", zonda.get_preload),
        ("headers", zonda.get_include),
        ("program", zonda.get_bin),
    ):
        try:
            lines.append((name, find()))
        except FileNotFoundError as error:
            lines.append((name, f"not there ({error})"))
    for name, text in lines:
        print(f"{name + ':':18}{text}")


if __name__ == "__main__":
    main()
