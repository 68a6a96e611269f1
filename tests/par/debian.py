#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's parallel builds of netCDF-C, which are what parallel files are compared with, in out/par/debian.

    debian.py       gets them, and a parallel h5py, where they are not there yet (scripts/setup.sh --par)

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
# Python's h5py over the parallel HDF5: a reader that shares nothing with netCDF. It needs Debian's mpi4py and numpy.
READERS = ["python3-h5py", "python3-h5py-mpi", "python3-h5py-serial", "liblzf1"]
FOLDER = rig.ROOT / "out" / "par" / "debian"
MODULES = FOLDER / "usr" / "lib" / "python3" / "dist-packages"


def unpack(packages, into):
    """Downloads packages, and unpacks them into a folder."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise rig.Skip("no apt-get here to get Debian's parallel netCDF with")
    with rig.scratch() as scratch:
        done = rig.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages], cwd=scratch)
        if done.returncode:
            raise rig.Skip("%s cannot be fetched: %s" % (packages[0], done.stderr.strip()[-300:]))
        for package in sorted(glob.glob(str(scratch / "*.deb"))):
            rig.must(["dpkg-deb", "-x", package, into])


def get():
    """Unpacks what is missing, and gives the folder of the libraries."""
    there = rig.parallel_reference()
    if there:
        return there
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    partial = FOLDER.with_name("debian.partial")
    shutil.rmtree(partial, ignore_errors=True)
    unpack(PACKAGES, partial)
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.rename(partial, FOLDER)
    # What was found before is kept; there was nothing.
    rig.parallel_reference.cache_clear()
    return rig.parallel_reference()


def get_reader():
    """Unpacks the parallel h5py beside the libraries, if it is missing."""
    get()
    if not (MODULES / "h5py").exists():
        unpack(READERS, FOLDER)


if __name__ == "__main__":
    try:
        print("Debian's parallel netCDF is in %s" % get())
        get_reader()
    except rig.Skip as why:
        print("skip: %s" % why)
