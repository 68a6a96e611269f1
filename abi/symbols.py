"""Reads abi/symbols.txt and abi/nodes.txt; shared by generate.py, check.py and tests/c/header_parity.py."""

import sys
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("symbols.txt")
KINDS = {"text", "data"}
NODES = Path(__file__).with_name("nodes.txt")
# The parallel builds of the distribution, by the names of their libraries (libnetcdf_mpi.so.19).
FLAVOURS = ("mpi", "pnetcdf")


class Symbol(NamedTuple):
    """One row of the table, in the order of its columns."""

    name: str
    kind: str
    since: str
    family: str
    importers: str
    prototype: str
    header: str

    @property
    def public(self) -> bool:
        """Whether a public header declares it."""
        return self.header != "internal"

    @property
    def release(self) -> tuple[int, ...]:
        """`since` as numbers to compare; Zonda's own functions come after every release."""
        if self.since == "zonda":
            return (sys.maxsize,)
        return tuple(map(int, self.since.removeprefix("<=").split(".")))


def read() -> list[Symbol]:
    """All rows, checked: seven columns, known kinds, sorted, no name twice."""
    rows = []
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split(" | ")]
        if len(columns) != len(Symbol._fields):
            raise SystemExit(f"{TABLE}:{number}: {len(columns)} columns, 7 expected")
        row = Symbol(*columns)
        if row.kind not in KINDS:
            raise SystemExit(f"{TABLE}:{number}: kind is {row.kind!r}, not text or data")
        if rows and row.name <= rows[-1].name:
            raise SystemExit(f"{TABLE}:{number}: {row.name} is out of order or there twice")
        rows.append(row)
    return rows


def nodes(flavour: str) -> list[str]:
    """The version nodes of a parallel build, each one the heir of the one before it."""
    lines = NODES.read_text().splitlines()
    return [f"NETCDF_{flavour.upper()}_{line}" for line in lines if line and not line.startswith("#")]
