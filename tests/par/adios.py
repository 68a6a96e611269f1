# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's ADIOS for Python and Open MPI, whose method NC4 writes parallel netCDF-4 files: the same ranks on dist/lib and on Debian's libnetcdf_mpi.

The package was built against libnetcdf_mpi.so.19, and finds it in dist/lib. It is unpacked in out/par/adios, and not installed.
"""
import re
from pathlib import Path

import debian
import launch
import rig
import upstream

HERE = Path(__file__).resolve().parent
SECONDS = 120


def module():
    """The folder with its module."""
    top = rig.ROOT / "out" / "par" / "adios"
    modules = top / "usr" / "lib" / "python3" / "dist-packages"
    if not (modules / "adios_openmpi").exists():
        top.mkdir(parents=True, exist_ok=True)
        debian.unpack(["python3-adios"], top)
    return modules


def written(mpi, count, library, folder):
    """What ranks leave with a library, in a folder."""
    folder.mkdir(parents=True)
    words = [mpi.python, HERE / "adios_rank.py", module(), folder / "step%d.nc"]
    # The other libraries that it needs are beside Debian's libnetcdf_mpi.
    env = launch.environment(mpi, "%s:%s" % (library, rig.parallel_reference()), ZONDA_PAR_TIMEOUT="60")
    log = folder / "said"
    status = launch.ends_with(launch.command(mpi, count, words), env, folder, SECONDS, log)
    if status != 0:
        raise rig.Wrong("ends with %s on %s: %s" % (status, library, log.read_text(errors="replace").strip()[:600]))
    return folder


def both(mpi, count, scratch):
    top = scratch / ("adios-%d" % count)
    ours = written(mpi, count, rig.LIBDIR, top / "zonda")
    theirs = written(mpi, count, rig.parallel_reference(), top / "debian")
    for name in ("step0.nc", "step1.nc"):
        # Each rank puts its own number into the scalar `first`, and nobody knows whose is the last.
        texts = [re.sub(r"^ first = .*", "", upstream.dump(folder / name), flags=re.M) for folder in (ours, theirs)]
        if texts[0] != texts[1] or " temp = " not in texts[0]:
            raise rig.Wrong("%s has other values: %s, and on Debian's library %s" % (name, *texts))


def cases(mpi, options):
    """Names, tests and their arguments."""
    if mpi.name != "openmpi":
        return
    debian.get()
    if not rig.tool("ncdump") or rig.run([mpi.python, "-c", "import mpi4py, numpy"]).returncode:
        raise rig.Skip("no ncdump, or no mpi4py and NumPy in %s (scripts/setup.sh --par)" % mpi.python)
    module()
    for count in (1, 3):
        yield "ADIOS, method NC4, %d ranks" % count, both, mpi, count, options.scratch
