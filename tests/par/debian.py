#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's parallel builds of netCDF-C, which are what parallel files are compared with, in out/par/debian.

    debian.py       gets them, where they are not there yet (scripts/setup.sh --par)

They are unpacked and not installed: their development files would move what `hdf5.pc` and CMake's find_package mean on
the machine. Both are built for Open MPI. Libraries that they need beyond these packages are the serial one's, too.
"""
import glob
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

PACKAGES = """libnetcdf-mpi-19 libnetcdf-mpi-dev libnetcdf-pnetcdf-19 libnetcdf-pnetcdf-dev libhdf5-openmpi-103-1 libhdf5-openmpi-hl-100
libpnetcdf0d libpnetcdf-dev libexodusii5""".split()
FOLDER = rig.ROOT / "out" / "par" / "debian"


def get():
    """Unpacks what is missing, and gives the folder of the libraries."""
    there = rig.parallel_reference()
    if there:
        return there
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise rig.Skip("no apt-get here to get Debian's parallel netCDF with")
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with rig.scratch() as scratch:
        done = rig.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *PACKAGES], cwd=scratch)
        if done.returncode:
            raise rig.Skip("Debian's parallel netCDF cannot be fetched: %s" % done.stderr.strip()[-300:])
        partial = FOLDER.with_name("debian.partial")
        shutil.rmtree(partial, ignore_errors=True)
        for package in sorted(glob.glob(str(scratch / "*.deb"))):
            rig.must(["dpkg-deb", "-x", package, partial])
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.rename(partial, FOLDER)
    # What was found before is kept; there was nothing.
    rig.parallel_reference.cache_clear()
    return rig.parallel_reference()


if __name__ == "__main__":
    try:
        print("Debian's parallel netCDF is in %s" % get())
    except rig.Skip as why:
        print("skip: %s" % why)
