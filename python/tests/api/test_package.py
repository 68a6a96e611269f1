"""What is in the package: library, tools, types."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import zonda

HAS_PARTS = (Path(zonda.__file__).parent / "_dist").is_dir() or "ZONDA_PREFIX" in os.environ
needs_parts = pytest.mark.skipif(not HAS_PARTS, reason="the package was built without its libraries")


@needs_parts
def test_the_library():
    library = ctypes.CDLL(zonda.get_lib())
    library.nc_inq_libvers.restype = ctypes.c_char_p
    assert b"zonda" in library.nc_inq_libvers().lower()
    assert (Path(zonda.get_include()) / "netcdf.h").is_file()


@needs_parts
def test_the_tools(tmp_path):
    """As console scripts where the package is installed, else by the functions behind them."""
    with zonda.create(tmp_path / "f.nc") as ds:
        ds.create_variable("v", data=np.arange(3), dims="x")
    scripts = Path(sysconfig.get_path("scripts"))
    for name, arguments, expected in [
        ("ncdump", ["-h", "f.nc"], "netcdf f {"), ("zonda", ["info", "f.nc"], "HDF5"), ("zonda", ["--version"], "zonda "),
        ("nccopy", ["f.nc", "g.nc"], ""), ("ncdump", ["-v", "v", "g.nc"], "v = 0, 1, 2"),
    ]:  # fmt: skip
        code = f"import sys; sys.argv[0] = {name!r}; from zonda import _commands; _commands.{name}()"
        installed = scripts / name
        command = [str(installed)] if installed.is_file() else [sys.executable, "-c", code]
        done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert expected.lower() in done.stdout.lower()
    done = subprocess.run(
        [sys.executable, "-c", "from zonda import _commands; _commands.ncdump()", "none.nc"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "none.nc" in done.stderr and done.stderr.startswith("ncdump: ")


@needs_parts
def test_where_things_are():
    done = subprocess.run([sys.executable, "-m", "zonda"], capture_output=True, text=True, check=True)
    assert zonda.get_lib() in done.stdout and zonda.__version__ in done.stdout


def test_a_prefix_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("ZONDA_PREFIX", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="libnetcdf"):
        zonda.get_lib()


def test_import_needs_numpy_only():
    code = (
        "import sys, zonda; wanted = {'xarray', 'dask', 'pandas', 'cftime', 'tqdm', 'netCDF4', 'h5py'};"
        "print(sorted(wanted & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_stubs_say_what_is_there(tmp_path):
    pytest.importorskip("mypy")
    # Types alone, for annotations.
    (tmp_path / "allowed").write_text("zonda\\._zonda\\.(Contents|Format|GroupInfo|__all__)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "zonda._zonda", "--allowlist", str(tmp_path / "allowed"), "--ignore-unused-allowlist"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_source_archive_has_what_is_compiled_in(monkeypatch):
    """Files outside of the crates that the compiler reads, such as pages of the documentation."""
    root = Path(__file__).resolve().parents[3]
    backend = root / "python" / "packaging" / "backend.py"
    if not backend.is_file():
        pytest.skip("not in a checkout")
    # The list of files needs nothing of it.
    stub = ModuleType("maturin")
    for kind in ("build", "metadata"):
        for wheel in ("editable", "wheel"):
            name = f"get_requires_for_build_{wheel}" if kind == "build" else f"prepare_metadata_for_build_{wheel}"
            setattr(stub, name, None)
    monkeypatch.setitem(sys.modules, "maturin", stub)
    spec = importlib.util.spec_from_file_location("zonda_backend", backend)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    archived = set(module._sources())
    included = {
        os.path.relpath(os.path.normpath(source.parent / name), root)
        for source in [*root.glob("crates/*/src/**/*.rs"), *root.glob("python/src/**/*.rs")]
        for name in re.findall(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"', source.read_text())
    }
    assert included and included <= archived, sorted(included - archived)
    assert {"Cargo.lock", "pyproject.toml", "scripts/link.sh"} <= archived


def test_threads_are_those_of_the_runtime():
    code = "from zonda import _zonda; print(_zonda.threads())"
    for said, expected in [("3", 3), ("1", 1), (None, len(os.sched_getaffinity(0)))]:
        env = {k: v for k, v in os.environ.items() if k != "ZONDA_THREADS"} | ({"ZONDA_THREADS": said} if said else {})
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        # A control group may leave fewer than the mask has.
        assert int(done.stdout) == expected if said else 1 <= int(done.stdout) <= expected
