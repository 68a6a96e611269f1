#!/usr/bin/env python3
"""Makes the version scripts netcdf.map and preload.map, and the list preload_names.h, from symbols.txt, the scripts of the stubs from nodes.txt.

abi/generate.py          writes all of them
abi/generate.py --check  writes nothing, exits 1 if one is not what would be written

netcdf.map is for libnetcdf.so.19 and has every symbol, without a version, since the library it
stands in for has none.

preload.map is for libzonda-preload.so, which is put before a libnetcdf that stays loaded (the one
inside a Python wheel, say). It has the functions of the public headers only:
  - no internal function. The other libnetcdf calls its own nclist*, ncuri* and *_ints functions
    through the dynamic linker too; handed ours, it would mix two kinds of the same structure.
  - no data. A program that reads ncopts or ncerr is linked to a libnetcdf by name, and the loader gives its variables
    to libnetcdf.so.19, too.
preload_names.h numbers the same functions for crates/zonda-capi/csrc/preload.S: they jump to libnetcdf.so.19.

netcdf_mpi.map and netcdf_pnetcdf.map are for the stubs of these names, which have no symbol at all: their nodes
are empty. The loader asks a library for the nodes, and takes a symbol of a node from any library that has no
nodes, so that libnetcdf.so.19, which the stubs need, serves programs that ask for nc_open@NETCDF_MPI_3.6.1.
"""

import sys
from pathlib import Path

import symbols

HERE = Path(__file__).parent


def version_script(names: list[str]) -> str:
    body = "".join(f"    {name};\n" for name in names)
    return f"# Made by abi/generate.py from abi/symbols.txt.\n{{\n  global:\n{body}  local:\n    *;\n}};\n"


def numbered(names: list[str]) -> str:
    body = "".join(f"ZONDA_NAME({name}, {index})\n" for index, name in enumerate(names))
    return f"/* Made by abi/generate.py from abi/symbols.txt. */\n{body}"


def empty_nodes(names: list[str]) -> str:
    text, parent = "# Made by abi/generate.py from abi/nodes.txt.\n", ""
    for name in names:
        # The first one keeps what the linker itself defines out of the list of symbols.
        text += f"{name} {{{'' if parent else ' local: *; '}}}{parent};\n"
        parent = f" {name}"
    return text


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    table = symbols.read()
    functions = [row.name for row in table if row.public and row.kind == "text"]
    wanted = {
        HERE / "netcdf.map": version_script([row.name for row in table]),
        HERE / "preload.map": version_script(functions),
        HERE / "preload_names.h": numbered(functions),
    }
    for flavour in symbols.FLAVOURS:
        wanted[HERE / f"netcdf_{flavour}.map"] = empty_nodes(symbols.nodes(flavour))
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if sys.argv[1:] == ["--check"]:
        for path in stale:
            print(f"{path.name} is not what its table says; run abi/generate.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path])
        print(f"wrote abi/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
