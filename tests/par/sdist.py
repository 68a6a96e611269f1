# SPDX-License-Identifier: MIT OR Apache-2.0
"""The source distribution of PyPI's netCDF4, built with mpi4py over dist/lib/netcdf/mpi: its examples for MPI, and its test suite.

It is built as its users do, once for each of Debian's MPIs, by the MPI's compiler and nc-config.mpi, in out/par/sdist; nothing is installed but
in an environment there. mpi4py is PyPI's, which takes MPICH by another name than Debian has for it.
"""
import hashlib
import os
import shutil
import tarfile
from pathlib import Path

import datasets
import launch
import rig

SECONDS = 300
PACKAGES = ["numpy", "cython", "setuptools>=77", "setuptools_scm[toml]", "mpi4py", "pytest", "cftime", "packaging", "certifi"]
# Where mpi4py finds an MPI: a name that its modules are linked with, and the library of Debian's that has it.
LIBRARIES = {"mpich": ("libmpi.so.12", "libmpich.so.12"), "openmpi": ("libmpi.so.40", "libmpi.so.40")}
NO_NET = {"NO_NET": "1"}
# It asks a server.
LEFT_OUT = "not test_dap"


def stepped(name, words, folder, **env):
    log = rig.out("par", "sdist") / (name + ".log")
    log.write_text("")
    if launch.ends_with(words, launch.environment(None, rig.LIBDIR, **env), folder, 2400, log) != 0:
        raise rig.Wrong("%s fails: %s (%s)" % (name, log.read_text(errors="replace").strip()[-500:], log))


def interpreter():
    """A Python with what the build needs; Skip where pip cannot get it."""
    top = rig.out("par", "sdist")
    python = top / "venv" / "bin" / "python"
    mark = top / "venv" / "made"
    if mark.exists() and mark.read_text() == " ".join(PACKAGES):
        return python
    shutil.rmtree(top / "venv", ignore_errors=True)
    try:
        stepped("venv", [launch.DEBIAN, "-m", "venv", top / "venv"], top)
        stepped("packages", [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], top)
    except (rig.Wrong, FileNotFoundError) as why:
        raise rig.Skip("no Python for it: %s" % why) from why
    mark.write_text(" ".join(PACKAGES))
    return python


def source():
    """The archive of the newest version."""
    top = rig.out("par", "sdist")
    found = sorted(top.glob("netcdf4-*.tar.gz"))
    if not found:
        python = rig.python("netCDF4") or interpreter()
        # pip asks a source distribution for its metadata before it gives it away, and that one looks for a netCDF.
        env = launch.environment(None, None)
        done = rig.run([python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", "netCDF4", "--dest", top, "netCDF4"],
                       env, seconds=600)  # fmt: skip
        found = sorted(top.glob("netcdf4-*.tar.gz"))
        if not found:
            raise rig.Skip("pip does not get the source distribution of netCDF4: %s" % done.stderr.strip()[-300:])
    return found[-1]


def built(mpi):
    """The folder of the sources, built in place for an MPI."""
    if not rig.tool(mpi.compiler):
        raise rig.Skip("no %s" % mpi.compiler)
    python, archive = interpreter(), source()
    top = rig.out("par", "sdist", mpi.name)
    stamp = hashlib.sha256(archive.name.encode())
    for header in sorted((rig.LIBDIR / "netcdf" / "mpi" / "include").glob("*.h")):
        stamp.update(header.read_bytes())
    mark = top / "made"
    if not (mark.exists() and mark.read_text() == stamp.hexdigest()):
        top = rig.out("par", "sdist", mpi.name, anew=True)
        with tarfile.open(archive) as tar:
            tar.extractall(top, filter="data")
        config = top / "bin"
        config.mkdir()
        (config / "nc-config").symlink_to(rig.BIN / "nc-config.mpi")
        folder = next(top.glob("netcdf4-*"))
        path = "%s:%s" % (config, os.environ.get("PATH", ""))
        stepped("build-" + mpi.name, [python, "setup.py", "build_ext", "--inplace"], folder, PATH=path, CC=rig.tool(mpi.compiler), CFLAGS="-O1 -w")
        if "has parallel functions" not in (rig.out("par", "sdist") / ("build-%s.log" % mpi.name)).read_text(errors="replace"):
            raise rig.Wrong("it was built without parallel functions")
        mark.write_text(stamp.hexdigest())
    return next(top.glob("netcdf4-*"))


def environment(mpi, folder, scratch, **more):
    """For a Python that imports the build."""
    name, library = LIBRARIES[mpi.name]
    shim = scratch / ("mpi4py-" + mpi.name)
    shim.mkdir(exist_ok=True)
    said = rig.must([mpi.compiler, "-print-file-name=%s" % library], launch.environment(mpi)).strip()
    found = Path(said).resolve()
    if not found.is_absolute() or not found.exists():
        raise rig.Skip("no %s" % library)
    if not (shim / name).is_symlink():
        (shim / name).symlink_to(found)
    env = launch.environment(mpi, rig.LIBDIR, PYTHONPATH=folder / "src", MPI4PY_LIBMPI=shim / name, ZONDA_PAR_TIMEOUT="60", **more)
    env["LD_LIBRARY_PATH"] += ":%s" % shim
    return env


def example(mpi, folder, name, words, scratch):
    """Runs one of its examples with the four ranks that it asks for."""
    work = scratch / "sdist-example"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    text = (folder / "examples" / name).read_text()
    # That the variable of a file that was closed is one of the next file holds where the library gives the next file its number.
    (work / name).write_text(text.replace(*datasets.STALE))
    log = work / "said"
    command = launch.command(mpi, 4, [interpreter(), work / name, *words])
    status = launch.ends_with(command, environment(mpi, folder, scratch), work, SECONDS, log)
    if status != 0:
        raise rig.Wrong("%s: %s" % ("it hangs" if status is None else "ends with %s" % status, log.read_text(errors="replace").strip()[-900:]))
    judge(next(work.glob("*.nc")))


def judge(file):
    """Debian's ncdump finds the numbers that the ranks put at last."""
    if not rig.tool("ncdump"):
        return
    said = rig.must([rig.tool("ncdump"), file], rig.environment(rig.reference()))
    wanted = "0, 2, 4, 6" if "compressed" in file.name else "0, 1, 2, 6"
    if "var = %s ;" % wanted not in said:
        raise rig.Wrong("the file has %s" % said[said.find("data:") :].strip())


def suite(mpi, folder, scratch):
    """Its test suite, in one process: what a build for MPI must do as any other."""
    log = rig.out("par", "sdist") / ("suite-%s.log" % mpi.name)
    log.write_text("")
    work = scratch / "sdist-suite"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / "test", work)
    words = [interpreter(), "-m", "pytest", "-q", "--maxfail=20", "-p", "no:cacheprovider", "-k", LEFT_OUT, "."]
    status = launch.ends_with(words, environment(mpi, folder, scratch, **NO_NET), work, 1800, log)
    said = log.read_text(errors="replace")
    if status != 0:
        lines = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))] or said.strip().splitlines()[-5:]
        raise rig.Wrong("%s: %s" % ("it hangs" if status is None else "ends with %s" % status, "; ".join(lines)[:900]))


def cases(mpi, options):
    """Names, tests and their arguments."""
    if mpi.name not in LIBRARIES:
        return
    folder = built(mpi)
    for form in datasets.FORMATS:
        yield "sdist of netCDF4, mpi_example.py, %s" % form, example, mpi, folder, "mpi_example.py", [form], options.scratch
    yield "sdist of netCDF4, mpi_example_compressed.py", example, mpi, folder, "mpi_example_compressed.py", [], options.scratch
    yield "sdist of netCDF4, its tests", suite, mpi, folder, options.scratch
