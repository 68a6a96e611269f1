"""The build backend (PEP 517, PEP 660): libraries and tools first, then maturin builds the module around them.

cargo builds the C library and the program, scripts/link.sh links them into an installation prefix, and what belongs into
a wheel goes to python/zonda/_dist. Where dist/ of this checkout is complete and no source is newer, it is taken as it is, and the
module is compiled as that was. `ZONDA_DIST` names another prefix that is there already, `ZONDA_PROFILE` how to compile: `fast`
(the default: the time until the first run counts) or `release`.

Wanted: cargo, a C compiler, binutils, bash. They are looked for before anything is built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
]  # fmt: skip

# Without build isolation, the programs of this environment need not be on the path.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")])

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "zonda"
# What of an installation prefix a wheel carries. A wheel has no symbolic links: the tools' names are console scripts,
# and libnetcdf.so.19 is the one name of the library.
SHARED = ("libnetcdf.so.19", "libzonda-preload.so", "libzonda-hdf5-version.so", "libzonda-h5shim.so", "libzonda-tls.so.1")


def build_wheel(folder: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """A wheel with everything. Its name."""
    profile = _fill()
    return str(maturin.build_wheel(folder, _settings(config_settings, profile), metadata_directory))


def build_editable(folder: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """A wheel that points here. Its name."""
    profile = _fill()
    return str(maturin.build_editable(folder, _settings(config_settings, profile), metadata_directory))


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    """Nothing but what pyproject.toml names."""
    return []


def build_sdist(folder: str, config_settings: Any = None) -> str:
    """The sources that a wheel is built from. maturin's own archive has only the crates that the module needs."""
    scratch = Path(folder) / ".metadata"
    metadata = scratch / str(maturin.prepare_metadata_for_build_wheel(str(scratch), config_settings)) / "METADATA"
    version = next(line[9:] for line in metadata.read_text().splitlines() if line.startswith("Version: "))
    base = f"zonda-{version}"
    with tarfile.open(Path(folder) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.add(metadata, f"{base}/PKG-INFO")
        for name in _sources():
            archive.add(ROOT / name, f"{base}/{name}", recursive=False)
    shutil.rmtree(scratch)
    return f"{base}.tar.gz"


def _sources() -> list[str]:
    """Files of the project that building wants: of a checkout those that git knows, else those that are there."""
    tops = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "LICENSE-MIT", "LICENSE-APACHE", "README.md")
    folders = ("crates", "python", "abi", "docs", "include", "scripts")
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--", *tops, *folders], cwd=ROOT, check=True, capture_output=True
        )
        return sorted(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name and (ROOT / os.fsdecode(name)).is_file())
    found = [name for name in tops if (ROOT / name).is_file()]
    for top in folders:
        for path in (ROOT / top).rglob("*"):
            is_made = "_dist" in path.parts or "__pycache__" in path.parts or path.name.startswith("_zonda.")
            if path.is_file() and not (is_made and path.suffix != ".pyi"):
                found.append(str(path.relative_to(ROOT)))
    return sorted(found)


def _settings(given: Any, profile: str) -> dict[str, Any]:
    """Settings for maturin that also say how to compile, unless the caller says it."""
    settings = dict(given or {})
    arguments = maturin.get_maturin_pep517_args(settings)
    if not any(word in ("--release", "-r", "--profile") or word.startswith("--profile=") for word in arguments):
        arguments = ["--profile", profile, *arguments]
    settings.pop("build-args", None)
    settings["maturin.build-args"] = arguments
    _say(f"compiling the module (profile {profile})")
    return settings


def _say(text: str) -> None:
    """Tells what goes on, also where pip keeps all that a build prints until it fails."""
    print(f"zonda: {text}", file=sys.stderr, flush=True)
    if not sys.stderr.isatty():
        try:
            with open("/dev/tty", "w") as terminal:
                terminal.write(f"\r  zonda: {text}\n")
        except OSError:
            pass  # no terminal: nobody waits at one


def _version() -> str:
    """The version that Cargo.toml has."""
    lines = (ROOT / "Cargo.toml").read_text().partition("[workspace.package]")[2].splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("version = "))


def _about(prefix: Path) -> dict[str, str]:
    """What scripts/link.sh noted of a prefix: version and profile."""
    try:
        lines = (prefix / "share" / "zonda" / "build.txt").read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split(" ", 1) for line in lines if " " in line)


def _newer(prefix: Path) -> str | None:
    """A source that is newer than the library of a prefix."""
    built = (prefix / "lib" / SHARED[0]).stat().st_mtime
    inputs = ("Cargo.toml", "Cargo.lock", "crates/", "abi/", "include/", "scripts/link.sh", "scripts/dist/")
    for name in _sources():
        if name.startswith(inputs) and not name.endswith(".md") and (ROOT / name).stat().st_mtime > built:
            return name
    return None


def _engine() -> tuple[Path, str]:
    """The prefix with the library and the tools, and how the module is to be compiled."""
    wanted = os.environ.get("ZONDA_PROFILE")
    given = os.environ.get("ZONDA_DIST")
    if given:
        prefix = Path(given).resolve()
        return prefix, wanted or _about(prefix).get("profile", "fast")
    prefix = ROOT / "dist"
    about = _about(prefix)
    if about.get("version") == _version() and (prefix / "lib" / SHARED[0]).is_file() and wanted in (None, about.get("profile")):
        newer = _newer(prefix)
        if newer is None:
            _say(f"taking the library and the tools from dist/ (profile {about['profile']})")
            return prefix, about["profile"]
        _say(f"dist/ is older than {newer}, so it is not taken")
    profile = wanted or "fast"
    return _built(profile), profile


def _fill() -> str:
    """Fills python/zonda/_dist, which the wheel takes in as it is. How the module is to be compiled."""
    given = os.environ.get("ZONDA_DIST")
    prefix, profile = _engine()
    for name in (f"lib/{SHARED[0]}", "bin/zonda", "include/netcdf.h"):
        if not (prefix / name).is_file():
            raise SystemExit(f"zonda: no {name} in {prefix}" + (" (ZONDA_DIST)" if given else ""))
    fresh = PACKAGE / f".dist-{os.getpid()}"
    try:
        for name in SHARED:
            _copy(prefix / "lib" / name, fresh / "lib" / name, "--strip-unneeded")
        _copy(prefix / "bin" / "zonda", fresh / "bin" / "zonda", "--strip-all")
        for header in sorted((prefix / "include").glob("*.h")):
            _copy(header, fresh / "include" / header.name)
        for document in sorted((prefix / "share" / "doc" / "zonda").glob("*")):
            _copy(document, fresh / "share" / "doc" / "zonda" / document.name)
        target = PACKAGE / "_dist"
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return profile


def _copy(source: Path, target: Path, strip: str | None = None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    if strip is not None:
        # Another one for another machine.
        subprocess.run([os.environ.get("STRIP", "strip"), strip, str(target)], check=True)
        target.chmod(0o755)


def _built(profile: str) -> Path:
    """Builds the C library and the program, and links them into a prefix."""
    missing = [tool for tool in ("cargo", os.environ.get("CC", "gcc"), "strip", "objcopy", "bash") if not shutil.which(tool)]
    if missing:
        raise SystemExit(
            f"zonda: {', '.join(missing)} needed to build: Rust from https://rustup.rs, the others by the distribution "
            "(Debian: apt-get install gcc libc6-dev binutils)"
        )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "ZONDA_BUILT": str(target / profile)}
    prefix = target / "prefix"

    def run(*command: str) -> None:
        # What they say is not the backend's answer.
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=sys.stderr)

    _say(f"compiling the library and the tools (profile {profile}); some minutes, `pip install -v .` shows each crate")
    run("cargo", "build", "--profile", profile, "--locked", "-p", "zonda-capi", "-p", "zonda-cli", "-p", "zonda-tls-engine")
    _say("linking")
    run("bash", "scripts/link.sh", str(prefix))
    return prefix
