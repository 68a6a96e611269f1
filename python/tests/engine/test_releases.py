# SPDX-License-Identifier: MIT OR Apache-2.0
"""The engine where it alone is installed, with the oldest release of xarray that is supported and with the newest.

Each has an environment of its own with xarray, what that needs, and the package as it is installed here; alone.py runs in it.
"""

import importlib.metadata
import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

import zonda
from zonda.xarray_engine import _release

ALONE = Path(__file__).with_name("alone.py")
CHECKS = re.findall(r"^def check_(\w+)", ALONE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module", params=["oldest", "newest"])
def python(request, tmp_path_factory):
    """The interpreter of an environment with one release of xarray."""
    folder = tmp_path_factory.mktemp(request.param)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    # It does not say that it is too old for pandas 3, which loses the types of its text.
    wanted = [f"xarray=={_release.OLDEST}.*", "pandas<3"] if request.param == "oldest" else ["xarray"]
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"{wanted[0]} cannot be had: {done.stderr.strip().splitlines()[-1]}")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip())
    (site / "zonda").symlink_to(Path(zonda.__file__).parent)
    # By this xarray finds the engine.
    entry = site / "zonda-0.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: zonda\nVersion: 0\n")
    points = importlib.metadata.entry_points(group="xarray.backends", name="zonda")
    where = {point.value for point in points} or {"zonda.xarray_engine:ZondaBackendEntrypoint"}
    (entry / "entry_points.txt").write_text(f"[xarray.backends]\nzonda = {where.pop()}\n")
    yield python
    shutil.rmtree(folder)


@pytest.mark.parametrize("check", CHECKS)
def test_alone(python, check, tmp_path):
    done = subprocess.run([python, ALONE, check, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_oldest_release_is_the_one_of_the_package():
    pyproject = Path(__file__).resolve().parents[3] / "pyproject.toml"
    if not pyproject.is_file():
        pytest.skip("not in a checkout")
    assert set(re.findall(r"xarray>=([\d.]+)", pyproject.read_text())) == {_release.OLDEST}


def test_an_older_release_is_named(monkeypatch):
    _release.check()
    monkeypatch.delattr("xarray.DataTree")
    monkeypatch.setattr("xarray.__version__", "2023.01.0")
    with pytest.raises(ImportError, match="xarray 2024.10 or newer is needed .* this is 2023.01.0"):
        _release.check()


def test_private_names_are_in_one_place():
    """`from xarray...` of other modules takes what xarray documents."""
    documented = {"xarray", "xarray.backends", "xarray.core"}
    for source in Path(zonda.__file__).parent.rglob("*.py"):
        if source.name != "_xarray.py":
            for module, names in re.findall(r"^\s*from (xarray[\w.]*) import (.+)$", source.read_text(), re.MULTILINE):
                assert module in documented and (module != "xarray.core" or names == "indexing"), (source.name, module, names)
                assert " _" not in f" {names}", (source.name, names)
