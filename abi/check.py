#!/usr/bin/env python3
"""Compares what a built library exports with abi/symbols.txt.

abi/check.py LIB [--preload]
abi/check.py STUB...

LIB must export exactly the symbols of the table, text as text and data as 4-byte objects, under
no version, and be called libnetcdf.so.19; no H5* symbol may leave it. With --preload the public
functions are meant, and the SONAME is libzonda-preload.so. It must need nothing but libc's own
libraries and libgcc_s.

STUB is a libnetcdf_mpi.so.19 or libnetcdf_pnetcdf.so.19: it must be called so, have the version nodes of abi/nodes.txt
in their order and no symbol, and need libnetcdf.so.19 beside it and nothing else. Where the distribution's library
of that name is there, its nodes must be those of the list.

The table itself is compared with the distribution's libnetcdf, when there is one: everything it
shares with a public header must be there, and everything said to be from 4.9.0 or before must be
in the distribution's library. And whatever the distribution's programs and libraries import from
that library, LIB must define (not asked with --preload, where that library stays loaded).
"""

import glob
import re
import subprocess
import sys
from pathlib import Path

import importers
import symbols

SONAME = {False: "libnetcdf.so.19", True: "libzonda-preload.so"}
MAY_NEED = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[\w-]*)\.so\.\d+")
DISTRIBUTION = "/usr/lib/*-linux-gnu/libnetcdf.so.19"
DISTRIBUTION_HEADERS = "/usr/include/netcdf*.h"
# Installed, or unpacked by tests/par/debian.py.
ROOT = Path(__file__).resolve().parents[1]
PARALLEL = ("/usr/lib/*-linux-gnu/", f"{ROOT}/out/par/debian/usr/lib/*-linux-gnu/")
STUB = re.compile(r"libnetcdf_(" + "|".join(symbols.FLAVOURS) + r")\.so\.19")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library: str) -> dict[str, tuple[str, int]]:
    """Name to (kind letter, size in bytes) of every dynamic symbol defined in `library`."""
    found = {}
    for line in run("nm", "-D", "-S", "--defined-only", library).splitlines():
        columns = line.split()
        size = int(columns[1], 16) if len(columns) == 4 else 0
        found[columns[-1]] = (columns[-2], size)
    return found


def check_library(library: str, preload: bool) -> list[str]:
    wrong = []
    table = {
        row.name: row
        for row in symbols.read()
        if not preload or (row.public and row.kind == "text")
    }
    found = exports(library)
    for name in sorted(table.keys() - found.keys()):
        wrong.append(f"{name} is missing ({table[name].family})")
    for name in sorted(found.keys() - table.keys()):
        wrong.append(f"{name} is exported, but not in abi/symbols.txt")
    for name in sorted(table.keys() & found.keys()):
        letter, size = found[name]
        if table[name].kind == "text" and letter not in "Ti":
            wrong.append(f"{name} should be a function, is {letter!r}")
        if table[name].kind == "data" and (letter not in "BD" or size != 4):
            wrong.append(f"{name} should be 4 writable bytes, is {letter!r} of {size} bytes")
    for name in sorted(found):
        if name.startswith("H5"):
            wrong.append(f"{name}: a program may hold a real libhdf5, export no H5* symbol")

    dynamic = run("readelf", "-dW", library)
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    if soname is None or soname.group(1) != SONAME[preload]:
        wrong.append(f"SONAME is {soname and soname.group(1)}, not {SONAME[preload]}")
    if "NODELETE" not in dynamic:
        wrong.append("not linked with -z nodelete: threads of the library must outlive dlclose")
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not MAY_NEED.fullmatch(needed):
            wrong.append(f"needs {needed}")
    return wrong


def nodes(library: str) -> list[str]:
    """The version nodes that a library defines, but its own name, each with the one that it is the heir of."""
    text = run("readelf", "-VW", library).partition("Version needs")[0]
    found = re.findall(r"(Flags: (?!BASE).*Name: (\S+)|Parent \d+: (\S+))", text)
    return [name or f"  of {parent}" for _, name, parent in found]


def check_stub(library: str) -> tuple[list[str], str]:
    """What is wrong with a stub, and what it was compared with."""
    name = Path(library).name
    names = symbols.nodes(STUB.fullmatch(name).group(1))
    expected = [names[0]]
    for parent, node in zip(names, names[1:]):
        expected += [node, f"  of {parent}"]
    wrong = []
    if nodes(library) != expected:
        wrong.append(f"the version nodes are {', '.join(nodes(library))}")
    dynamic = run("readelf", "-dW", library)
    for kind, value in (("SONAME", name), ("NEEDED", SONAME[False]), ("RUNPATH", "$ORIGIN")):
        found = re.findall(rf"\({kind}\).*\[(.*)\]", dynamic)
        if found != [value]:
            wrong.append(f"{kind} is {', '.join(found)}, not {value}")
    # The nodes themselves are absolute symbols.
    defined = [symbol for symbol, (letter, _) in exports(library).items() if letter != "A"]
    if defined:
        wrong.append(f"{len(defined)} symbols are exported, {defined[0]} is one of them")
    theirs = [found for place in PARALLEL for found in glob.glob(place + name) if not Path(found).samefile(library)]
    if theirs and nodes(theirs[0]) != expected:
        wrong.append(f"the version nodes of {theirs[0]} are {', '.join(nodes(theirs[0]))}")
    return wrong, "as the distribution's" if theirs else "skipped: no such library of the distribution"


def check_table() -> list[str] | None:
    """The table against the distribution's library, or None where there is none."""
    libraries = glob.glob(DISTRIBUTION)
    headers = glob.glob(DISTRIBUTION_HEADERS)
    if not libraries or not headers:
        return None
    theirs = exports(libraries[0])
    text = re.sub(r"/\*.*?\*/", "", "".join(Path(h).read_text() for h in headers), flags=re.S)
    declared = set(re.findall(r"EXTERNL\b[^;(]*?\b(\w+)\s*(?:\(|;)", text)) & theirs.keys()
    table = {row.name: row for row in symbols.read()}
    wrong = [
        f"{name}: public in the distribution, not in abi/symbols.txt"
        for name in sorted(declared - table.keys())
    ]
    for name, row in table.items():
        if row.release <= (4, 9, 0) and name not in theirs:
            wrong.append(f"{name}: since {row.since}, but not in {libraries[0]}")
    return wrong


def check_importers(library: str) -> tuple[list[str], int] | None:
    """What installed importers of the distribution's library would miss in `library`, and how many
    importers there are; None without that library."""
    libraries = glob.glob(DISTRIBUTION)
    if not libraries:
        return None
    wanted = importers.wanted(set(exports(libraries[0])))
    missing = sorted(wanted.keys() - exports(library).keys())
    wrong = [f"{name} is missing, {', '.join(wanted[name])} cannot start" for name in missing]
    return wrong, len({file for files in wanted.values() for file in files})


def check_stubs(libraries: list[str]) -> int:
    status = 0
    for library in libraries:
        wrong, compared = check_stub(library)
        for line in wrong:
            print(f"{library}: {line}", file=sys.stderr)
            status = 1
        if not wrong:
            print(f"{library}: the version nodes of abi/nodes.txt, no symbol, {compared}")
    return status


def main() -> int:
    preload = "--preload" in sys.argv[1:]
    libraries = [argument for argument in sys.argv[1:] if argument != "--preload"]
    if libraries and not preload and all(STUB.fullmatch(Path(library).name) for library in libraries):
        return check_stubs(libraries)
    if len(libraries) != 1 or libraries[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    library = libraries[0]
    wrong = check_library(library, preload)
    table = check_table()
    wrong += table or []
    compared = "skipped: no distribution library" if table is None else "agrees with the distribution"
    served = None if preload else check_importers(library)
    if served is not None:
        wrong += served[0]
        compared += f" and serves its {served[1]} importers here"
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(f"{library}: {len(wrong)} differences", file=sys.stderr)
        return 1
    print(f"{library}: {len(exports(library))} symbols as in abi/symbols.txt, {compared}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
