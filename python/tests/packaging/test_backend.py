# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the build backend takes for the library: dist/ where it is complete and newer than all sources, else what it builds."""

import importlib.util
import os
from pathlib import Path

import pytest

pytest.importorskip("maturin")
BACKEND = Path(__file__).resolve().parents[2] / "packaging" / "backend.py"


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """The backend, for a checkout with a library in dist/ that is newer than its one source."""
    spec = importlib.util.spec_from_file_location("zonda_backend", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("ZONDA_DIST", "ZONDA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    built = []
    monkeypatch.setattr(module, "_built", lambda profile: built.append(profile) or tmp_path / "built")
    module.built = built
    for name, text in {
        "Cargo.toml": '[workspace.package]\nversion = "1.2.3"\n',
        "crates/zonda/src/lib.rs": "",
        "dist/lib/libnetcdf.so.19": "",
        "dist/share/zonda/build.txt": "version 1.2.3\nprofile release\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1000, 2000 if "dist" in path.parts else 1000))
    return module


def test_a_library_that_is_there_is_taken(backend, tmp_path, capfd):
    assert backend._engine() == (tmp_path / "dist", "release")
    assert backend.built == []
    assert "dist/" in capfd.readouterr().err


def test_a_newer_source_is_built(backend, tmp_path, capfd):
    os.utime(tmp_path / "crates/zonda/src/lib.rs", (1000, 3000))
    assert backend._engine() == (tmp_path / "built", "fast")
    assert "crates/zonda/src/lib.rs" in capfd.readouterr().err


def test_documents_are_no_sources(backend, tmp_path):
    (tmp_path / "crates/zonda/README.md").write_text("new")
    assert backend._engine()[0] == tmp_path / "dist"


@pytest.mark.parametrize("about", ["version 1.2.2\nprofile release\n", "", "profile release\n"])
def test_another_version_is_not_taken(backend, tmp_path, about):
    (tmp_path / "dist/share/zonda/build.txt").write_text(about)
    assert backend._engine() == (tmp_path / "built", "fast")


def test_a_profile_that_is_asked_for_decides(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("ZONDA_PROFILE", "release")
    assert backend._engine() == (tmp_path / "dist", "release")
    monkeypatch.setenv("ZONDA_PROFILE", "fast")
    assert backend._engine() == (tmp_path / "built", "fast")
    assert backend.built == ["fast"]


def test_a_prefix_that_is_named_is_taken(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("ZONDA_DIST", str(tmp_path / "elsewhere"))
    assert backend._engine() == (tmp_path / "elsewhere", "fast")


def test_the_module_is_compiled_as_the_library(backend):
    assert backend._settings(None, "release")["maturin.build-args"] == ["--profile", "release"]
    given = {"build-args": "--target x -- -C linker=cc"}
    assert backend._settings(given, "fast")["maturin.build-args"] == ["--profile", "fast", "--target", "x", "--", "-C", "linker=cc"]
    assert backend._settings({"build-args": "--profile dev"}, "fast")["maturin.build-args"] == ["--profile", "dev"]
