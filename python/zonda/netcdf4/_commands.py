# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands `ncinfo`, `nc3tonc4` and `nc4tonc3`."""

from __future__ import annotations

import getopt
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import utils
from ._dataset import Dataset

# What unpacked data have where packed ones were missing.
UNPACKED_MISSING = 1.0e30

NCINFO = """
 Tell what is in a netCDF file.

 usage: %s [-g GROUP] [-v VARIABLE] [-d DIMENSION] FILE

 -g GROUP, --group=GROUP           of this group (GROUP/GROUP...), not the root
 -v VARIABLE, --variable=VARIABLE  this variable
 -d DIMENSION, --dimension=DIM     this dimension
 -h, --help                        this text
"""
TO_CLASSIC = """
 Copy a netCDF-4 file of the classic model to a classic file.

 usage: %s [-o] [--format=FORMAT] [--chunk=N] [--quiet=0|1] NETCDF4-FILE NETCDF3-FILE

 -o               overwrite
 --format=FORMAT  NETCDF3_64BIT (default) or NETCDF3_CLASSIC
 --chunk=N        records at a time, 10 by default; 0: all
 --quiet=0|1      1: tell nothing
 -h, --help       this text
"""
TO_NETCDF4 = """
 Copy a classic file to a netCDF-4 file.

 usage: %s [-o] [--vars=A,B...] [--zlib=0|1] [--complevel=N] [--shuffle=0|1] [--fletcher32=0|1]
           [--unpackshort=0|1] [--quantize=A=DIGIT,B=DIGIT...] [--classic=0|1] [--chunk=N]
           [--istart=N] [--istop=N] [--quiet=0|1] NETCDF3-FILE NETCDF4-FILE

 -o               overwrite
 --vars           only these variables, and those named as dimensions
 --zlib ...       as createVariable's, by default zlib of level 6 with shuffle
 --unpackshort    packed integers become floats (default)
 --quantize       least_significant_digit of variables
 --classic        1: format NETCDF4_CLASSIC
 --chunk=N        records at a time, 10 by default; 0: all
 --istart, --istop  records to copy
 --quiet=0|1      1: tell nothing
 -h, --help       this text
"""


def _options(usage: str, short: str, long: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options and arguments of the command line; ends the program where they are none, or help is wanted."""
    text = usage % os.path.basename(sys.argv[0])
    try:
        options, arguments = getopt.getopt(sys.argv[1:], short, list(long))
    except getopt.GetoptError as error:
        print(error, file=sys.stderr)
        _refuse(text)
    found = dict(options)
    if "-h" in found or "--help" in found:
        sys.stderr.write(text)
        sys.exit(0)
    return found, arguments


def _refuse(text: str) -> None:
    sys.stderr.write(text)
    sys.exit(2)


def ncinfo() -> None:
    """Prints a file, or one of its groups, variables or dimensions."""
    found, arguments = _options(NCINFO, "hv:g:d:", ["help", "group=", "variable=", "dimension="])
    if not arguments:
        _refuse(NCINFO % os.path.basename(sys.argv[0]))
    variable = found.get("-v", found.get("--variable"))
    dimension = found.get("-d", found.get("--dimension"))
    with Dataset(arguments[-1]) as dataset:
        group = utils._getgrp(dataset, found.get("-g", found.get("--group", "")))
        if variable is not None:
            print(group.variables[variable])
        if dimension is not None:
            print(group.dimensions[dimension])
        if variable is None and dimension is None:
            print(group)


def _records(source: Any, target: Any, begin: int, end: int, step: int) -> None:
    """Copies records, some at a time."""
    if step <= 0:
        step = max(end - begin, 1)
    for at in range(begin, end, step):
        upto = min(at + step, end)
        target[at - begin : upto - begin] = source[at:upto]


def copy_to_classic(
    filename4: Any, filename3: Any, clobber: bool = False, nchunk: int = 10, quiet: bool = False, format: str = "NETCDF3_64BIT"
) -> None:
    """Copies a NETCDF4_CLASSIC file to a classic one.

    Raises
    ------
    OSError
        The source is of another format.
    """
    with Dataset(filename4) as source:
        if source.file_format != "NETCDF4_CLASSIC":
            raise OSError("input file must be in NETCDF4_CLASSIC format")
        with Dataset(filename3, "w", clobber=clobber, format=format) as target:
            target.setncatts(source._all_attributes())
            unlimited = _copy_dimensions(source, target)
            for name, variable in source.variables.items():
                if not quiet:
                    print(f"copying variable {name}")
                attributes = variable._all_attributes()
                fill = attributes.pop("_FillValue", None)
                made = target.createVariable(name, variable.dtype, variable.dimensions, fill_value=fill)
                made.setncatts(attributes)
                if unlimited in variable.dimensions:
                    _records(variable, made, 0, len(source.dimensions[unlimited]), nchunk)
                else:
                    made[:] = variable[:]


def _copy_dimensions(source: Any, target: Any) -> Any:
    """Makes the same dimensions; the name of the unlimited one, if there is one."""
    unlimited = None
    for name, dimension in source.dimensions.items():
        if dimension.isunlimited():
            unlimited = name
        target.createDimension(name, None if dimension.isunlimited() else len(dimension))
    return unlimited


def copy_to_netcdf4(
    filename3: Any, filename4: Any, unpackshort: Any = True, zlib: Any = True, complevel: int = 6, shuffle: Any = True,
    fletcher32: Any = False, clobber: Any = False, lsd_dict: Any = None, nchunk: int = 10, quiet: Any = False,
    classic: Any = 0, vars: Any = None, istart: int = 0, istop: int = -1,
) -> None:  # fmt: skip
    """Copies a classic file to a netCDF-4 one; packed integers become floats where wanted."""
    with Dataset(filename3) as source:
        with Dataset(filename4, "w", clobber=clobber, format="NETCDF4_CLASSIC" if classic else "NETCDF4") as target:
            target.setncatts(source._all_attributes())
            unlimited = _copy_dimensions(source, target)
            if unlimited is not None and istop == -1:
                istop = len(source.dimensions[unlimited])
            names = list(source.variables)
            if vars is not None:
                names = list(vars) + [n for n in source.dimensions if n in source.variables and n not in vars]
            for name in names:
                if not quiet:
                    print(f"copying variable {name}")
                variable = source.variables[name]
                attributes = variable._all_attributes()
                unpacks = unpackshort and "scale_factor" in attributes and "add_offset" in attributes
                fill = attributes.pop("_FillValue", attributes.get("missing_value"))
                if unpacks:
                    fill = None if fill is None else UNPACKED_MISSING
                    del attributes["scale_factor"], attributes["add_offset"]
                    if "missing_value" in attributes:
                        attributes["missing_value"] = fill
                made = target.createVariable(
                    name, "f4" if unpacks else variable.dtype, variable.dimensions, fill_value=fill,
                    least_significant_digit=(lsd_dict or {}).get(name), zlib=zlib, complevel=complevel,
                    shuffle=shuffle, fletcher32=fletcher32,
                )  # fmt: skip
                made.setncatts(attributes)
                if unlimited in variable.dimensions:
                    _records(variable, made, istart, istop, nchunk)
                else:
                    made[:] = variable[:]


def nc4tonc3() -> None:
    """The command: see `--help`."""
    found, arguments = _options(TO_CLASSIC, "ho", ["help", "format=", "chunk=", "quiet="])
    if len(arguments) != 2:
        _refuse(TO_CLASSIC % os.path.basename(sys.argv[0]))
    copy: Any = getattr(utils, "_nc4tonc3")  # noqa: B009  scripts replace it
    copy(
        *arguments,
        clobber="-o" in found,
        nchunk=int(found.get("--chunk", 10)),
        quiet=bool(int(found.get("--quiet", 0))),
        format=found.get("--format", "NETCDF3_64BIT"),
    )


def nc3tonc4() -> None:
    """The command: see `--help`."""
    numbers = {"unpackshort": 1, "zlib": 1, "complevel": 6, "shuffle": 1, "fletcher32": 0, "classic": 0, "quiet": 0,
               "istart": 0, "istop": -1}  # fmt: skip
    names = ["help", "quantize=", "chunk=", "vars=", *(f"{name}=" for name in numbers)]
    found, arguments = _options(TO_NETCDF4, "ho", names)
    if len(arguments) != 2:
        _refuse(TO_NETCDF4 % os.path.basename(sys.argv[0]))
    digits = dict(pair.split("=") for pair in found["--quantize"].split(",")) if "--quantize" in found else {}
    given: dict[str, Any] = {name: int(found.get(f"--{name}", default)) for name, default in numbers.items()}
    copy: Any = getattr(utils, "_nc3tonc4")  # noqa: B009  scripts replace it
    copy(
        *arguments,
        clobber="-o" in found,
        lsd_dict={name: int(digit) for name, digit in digits.items()} or None,
        nchunk=int(found.get("--chunk", 10)),
        vars=found["--vars"].split(",") if "--vars" in found else None,
        **given,
    )
