# SPDX-License-Identifier: MIT OR Apache-2.0
"""CDL through `ncgen` and `ncdump`: those of this package, else those of the PATH."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

from ..places import get_bin

KINDS = {
    "NETCDF4": 4,
    "NETCDF4_CLASSIC": 7,
    "NETCDF3_CLASSIC": 3,
    "NETCDF3_64BIT": 6,
    "NETCDF3_64BIT_OFFSET": 6,
    "NETCDF3_64BIT_DATA": 5,
}


def run(name: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Runs a tool.

    Raises
    ------
    CalledProcessError
        It failed.
    """
    try:
        # The package's program is each tool when it is called by the tool's name.
        program = get_bin()
    except FileNotFoundError:
        program = name
    # What a tool has to say of its failure goes to the terminal.
    return subprocess.run([name, *arguments], executable=program, check=True, stdout=subprocess.PIPE, encoding="utf-8")


def generate(cdl: Any, target: Any, format: str) -> pathlib.Path:
    """Makes a file of CDL; its path."""
    source = pathlib.Path(cdl)
    made = source.with_suffix(".nc") if target is None else pathlib.Path(target)
    if format not in KINDS:
        raise ValueError("illegal format requested")
    if not source.exists():
        raise FileNotFoundError(source)
    if made.exists():
        raise FileExistsError(made)
    run("ncgen", f"-knc{KINDS[format]}", "-o", str(made), str(source))
    return made


def dump(path: str | bytes, coordvars: bool, data: bool, outfile: Any) -> str | None:
    """A file as CDL with its special attributes; None if it went into `outfile`."""
    flags = ("-cs" if coordvars else "-s") + ("" if data else "h")
    done = run("ncdump", flags, path)
    if outfile is None:
        return done.stdout
    pathlib.Path(outfile).write_text(done.stdout, encoding="utf-8")
    return None
