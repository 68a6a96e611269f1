# SPDX-License-Identifier: MIT OR Apache-2.0
"""The suites' files: source distributions of what is installed, by name and version, through pip."""

import subprocess
import tarfile
from pathlib import Path


class Unavailable(Exception):
    """A suite that cannot be had here; the text says why."""


def version(python: str, package: str) -> str:
    """Of an installed package."""
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    out = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    if out.returncode != 0:
        raise Unavailable(f"{package} is not installed in {python}")
    return out.stdout.strip()


def installed(python: str, package: str) -> Path:
    """The folder of an installed package."""
    version(python, package)
    ask = f"import importlib.util as u; print(u.find_spec({package!r}).submodule_search_locations[0])"
    return Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())


def sdist(python: str, package: str, folder: Path) -> Path:
    """The unpacked source distribution of the installed version, fetched once."""
    wanted = version(python, package)
    target = folder / f"{package.lower()}-{wanted}"
    if (target / "PKG-INFO").exists():
        return target
    archives = folder / "sdist"
    archives.mkdir(parents=True, exist_ok=True)
    # pip asks a source for its metadata before it gives it away: some seconds.
    command = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-binary", package, "--dest", archives, f"{package}=={wanted}"]
    out = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    found = sorted(archives.glob(f"*-{wanted}.tar.gz"))
    found = [a for a in found if a.name.lower().startswith(package.lower() + "-")]
    if not found:
        said = (out.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"pip did not get the source of {package} {wanted}: {said}")
    with tarfile.open(found[0]) as archive:
        archive.extractall(folder, filter="data")
    if not (target / "PKG-INFO").exists():
        raise Unavailable(f"{found[0].name} holds no {target.name}")
    return target
