"""What checkers of types see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import numpy as np
import xarray as xr
import zonda

with zonda.open("a.nc") as ds:
    v = ds["v"]
    reveal_type(ds.groups["g"])  # zonda.group.Group
    print(v.shape, v[0].mean(), v[:, 1].sum())
    ds["g"]["v"][:]
    v.shpe  # error
    ds.varibles  # error
zonda.opn("a.nc")  # error
zonda.open("a.nc", sahre=True)
x: None = zonda.to_netcdf(xr.Dataset(), "b.nc", group="g")
y: bytes = zonda.to_netcdf(xr.Dataset())
zonda.to_netcdf(xr.Dataset(), "b.nc", compute=False).compute()
zonda.to_netcdf(xr.Dataset(), "b.nc", unlimited="t")  # error
zonda.xarray_engine.nothing  # error
zonda.netcdf4.Dataset("a.nc")
print(zonda.__version__ + "")
"""


def test_unknown_names_are_errors(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(program)]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    errors = {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line}
    wanted = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}
    assert errors == wanted, said
    assert 'Revealed type is "zonda.group.Group"' in said
