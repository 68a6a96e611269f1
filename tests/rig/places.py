# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where things are, and how a caller says otherwise.

    ZONDA_LIBDIR    folder of the library under test (dist/lib), with bin and include beside it; or
    ZONDA_PREFIX    the folder of all three (dist)
    ZONDA_INCDIR    headers, where they are not beside it
    ZONDA_COMMAND   the command `zonda`, where it is not beside it
    ORACLE_LIBDIR   folder of the reference's library, by default where the system has it
    ZONDA_PYTHON    a Python with NumPy, h5py and the like (out/venv)
    ZONDA_CORPUS    a folder of further files
    ZONDA_SCRATCH   a folder for scratch, by default that of the system or one in memory
"""
import contextlib
import functools
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .counts import Setup, Skip, skip_all

ROOT = Path(__file__).resolve().parents[2]
SONAME = "libnetcdf.so.19"
# What Debian's parallel builds are called.
PARALLEL = ("libnetcdf_mpi.so.19", "libnetcdf_pnetcdf.so.19")
IN_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Places:
    """The build under test."""

    libdir: Path
    incdir: Path
    zonda: Path

    @property
    def prefix(self):
        return self.libdir.parent


def under_test(settings):
    """The build that the settings name."""
    def folder(name, default):
        return Path(settings.get(name) or default).resolve()

    libdir = folder("ZONDA_LIBDIR", folder("ZONDA_PREFIX", ROOT / "dist") / "lib")
    zonda = settings.get("ZONDA_COMMAND") or libdir.parent / "bin" / "zonda"
    return Places(libdir, folder("ZONDA_INCDIR", libdir.parent / "include"), Path(zonda))


HERE = under_test(os.environ)
PREFIX, LIBDIR, INCDIR, ZONDA = HERE.prefix, HERE.libdir, HERE.incdir, HERE.zonda
LIBRARY, BIN = LIBDIR / SONAME, PREFIX / "bin"
CORPUS = Path(os.environ["ZONDA_CORPUS"]).resolve() if os.environ.get("ZONDA_CORPUS") else None


# ---- The reference

@functools.cache
def reference():
    """The folder of the distribution's library, None where there is none."""
    if os.environ.get("ORACLE_LIBDIR"):
        return Path(os.environ["ORACLE_LIBDIR"])
    # Not everybody's path has it.
    env = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/sbin:/usr/sbin"}
    try:
        listed = subprocess.run(["ldconfig", "-p"], env=env, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return None
    found = re.search(r"^\s*%s .*=> (\S+)" % re.escape(SONAME), listed, re.M)
    return Path(found[1]).parent if found else None


def reference_library():
    """The distribution's library, None where there is none."""
    return reference() and reference() / SONAME


@functools.cache
def parallel_reference():
    """The folder of Debian's libnetcdf_mpi and libnetcdf_pnetcdf: the system's, or what tests/par/debian.py unpacked; None where there is none."""
    for system in ("/", ROOT / "out" / "par" / "debian"):
        for found in sorted(glob.glob(os.path.join(system, "usr/lib/*/netcdf/mpi/include/netcdf_par.h"))):
            folder = Path(found).parents[3]
            if all((folder / name).exists() for name in PARALLEL):
                return folder
    return None


def two_libraries(may_be_one=False):
    """Makes sure that there is a library under test and another one to compare it with."""
    if not LIBRARY.exists():
        raise Setup("no %s in %s; run make build" % (SONAME, LIBDIR))
    if not reference():
        raise Skip("no %s of the distribution to compare with" % SONAME)
    if not may_be_one and os.path.samefile(LIBRARY, reference_library()):
        raise Setup("both libraries are one file")


def newest(folder, interpreter):
    """Makes a folder in which the library of a Python's netCDF4 wheel has the usual name; None where it has none."""
    where = "import netCDF4, os; print(os.path.dirname(os.path.dirname(netCDF4.__file__)))"
    site = subprocess.run([interpreter, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    libraries = [Path(path) for name in ("netcdf4.libs", "netCDF4.libs") for path in glob.glob(os.path.join(site, name, "*.so*"))]
    own = [path for path in libraries if path.name.startswith("libnetcdf-")]
    if not own:
        return None
    folder.mkdir()
    for path in libraries:
        (folder / path.name).symlink_to(path)
    (folder / SONAME).symlink_to(own[0])
    return folder


# ---- Pythons

@functools.cache
def has(interpreter, modules):
    if interpreter == sys.executable:
        # Without a process, which each child of a runner would start anew.
        return all(importlib.util.find_spec(name) for name in modules)
    command = [interpreter, "-c", "import " + ", ".join(modules)]
    return os.path.exists(interpreter) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def python(*modules):
    """The Python that has these modules: ZONDA_PYTHON, this one, out/venv or Debian's; None where none has them."""
    for one in (os.environ.get("ZONDA_PYTHON"), sys.executable, str(ROOT / "out" / "venv" / "bin" / "python"), "/usr/bin/python3"):
        if one and has(one, modules):
            return one
    return None


def found_python(*modules):
    """Whether this Python has the modules; where another one does, the program begins anew in that one."""
    one = python(*modules)
    if one and one != sys.executable and os.environ.get("RIG_PYTHON") != one:
        os.environ["RIG_PYTHON"] = one
        sys.stdout.flush()
        os.execv(one, [one, *sys.argv])
    return one is not None


def needs(*modules):
    """As found_python, and without such a Python all tests are left out."""
    if not found_python(*modules):
        skip_all("no Python with %s" % ", ".join(modules))


# ---- Scratch

# Folders that stay, because what is in them explains a failure.
KEPT = set()


def keep(folder):
    KEPT.add(folder)


def top(in_memory):
    """Where scratch is made; None is where the system has it."""
    return os.environ.get("ZONDA_SCRATCH") or (IN_MEMORY if in_memory and os.access(IN_MEMORY, os.W_OK) else None)


@contextlib.contextmanager
def scratch(in_memory=False):
    """A folder for files, which is removed at the end; thousands of small ones are better in memory."""
    folder = Path(tempfile.mkdtemp(prefix="zonda-test-", dir=top(in_memory))).resolve()
    try:
        yield folder
    finally:
        if folder in KEPT:
            print("files are in %s" % folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def out(*parts, anew=False):
    """A folder in out/, for programs and for what is left of failures."""
    folder = ROOT.joinpath("out", *parts)
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
