"""The examples of docstrings and of the documentation run, each file in a folder of its own."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import zonda

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOT = Path(__file__).resolve().parents[3]
MODULES = [
    f"zonda.{info.name}" for info in pkgutil.iter_modules(zonda.__path__) if info.name not in ("__main__", "_zonda")
]


def needs_engine():
    """Skips where the package is used from a checkout: xarray finds the engine of an installed one only."""
    if not list(entry_points(group="xarray.backends", name="zonda")):
        pytest.skip("the package is not installed")


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "zonda.xarray_engine":
        pytest.importorskip("xarray")
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("name", ["docs/guides/python.md", "python/README.md"])
def test_documents(name, tmp_path, monkeypatch):
    for module in ("xarray", "dask", "cftime"):
        pytest.importorskip(module)
    needs_engine()
    monkeypatch.chdir(tmp_path)
    # The end of a fence is no output.
    text = re.sub("^```.*$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    result = runner.run(doctest.DocTestParser().get_doctest(text, {}, name, name, 0))
    assert result.attempted > 3, "no examples were found"
    assert result.failed == 0


def test_notebook(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for module in ("ipykernel", "xarray", "matplotlib"):
        pytest.importorskip(module)
    needs_engine()
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(ROOT / "examples" / "zonda.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})
    ]
    assert pictures, "the plot is missing"
