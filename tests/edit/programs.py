# SPDX-License-Identifier: MIT OR Apache-2.0
"""The libraries and programs that read and change files, and what they say of one."""
import ctypes
import glob
import os
import re
import resource
import signal
import subprocess
from pathlib import Path

import netCDF4

HERE = Path(__file__).resolve().parent


MEMORY = 4 << 30    # bytes that a reader may take: netCDF-C takes all there is for some files


def bounded():
    """In a reader's process: an end where it takes too much, and where the tests are ended."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Setup(Exception):
    """The tests cannot be run at all."""


class Programs:
    def __init__(self, options, scratch):
        self.scratch = scratch
        self.ours = Path(options.lib).resolve()
        self.library = str(self.ours / "libnetcdf.so.19")
        if not os.path.exists(self.library):
            raise Setup("no libnetcdf.so.19 in %s; run make build" % self.ours)
        self.command = os.environ.get("ZONDA_COMMAND") or str(self.ours.parent / "bin" / "zonda")
        self.reference = self.find_reference()
        self.newest = self.find_newest()
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "NETCDF_", "HDF5_", "ZONDA_", "CRASH_"))}
        self.base["HDF5_USE_FILE_LOCKING"] = "FALSE"
        import hdf5plugin
        self.base["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGINS_PATH
        self.readers = {"netCDF-C": self.reference, "new netCDF-C": self.newest, "Zonda": self.ours}
        self.digest_program = self.compile("digest", HERE.parent / "interop" / "digest.c")
        self.h5dump = subprocess.run(["sh", "-c", "command -v h5dump"], capture_output=True).returncode == 0

    def find_reference(self):
        folder = os.environ.get("ORACLE_LIBDIR")
        if not folder:
            listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
            found = re.search(r"libnetcdf\.so\.19 .*=> (\S+)", listed)
            if not found:
                raise Setup("no libnetcdf.so.19 of the distribution to judge with")
            folder = os.path.dirname(found[1])
        return Path(folder)

    def find_newest(self):
        """A folder in which the netCDF4 wheel's library has the usual name."""
        site = os.path.dirname(os.path.dirname(netCDF4.__file__))
        folder = self.scratch / "newest"
        folder.mkdir()
        for x in glob.glob(os.path.join(site, "netcdf4.libs", "*.so*")):
            os.symlink(x, folder / os.path.basename(x))
            if os.path.basename(x).startswith("libnetcdf-"):
                os.symlink(x, folder / "libnetcdf.so.19")
        if not (folder / "libnetcdf.so.19").exists():
            raise Setup("no libnetcdf in %s" % site)
        return folder

    def compile(self, name, *sources, flags=(), libraries=("-l:libnetcdf.so.19", "-lm")):
        program = self.scratch / name
        command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", *flags,
                   *map(str, sources), "-o", str(program), "-L", str(self.reference), *libraries]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Setup("%s does not compile:\n%s" % (name, done.stderr))
        return program

    def environment(self, library, **more):
        return {**self.base, "LD_LIBRARY_PATH": str(library), **more}

    def digest(self, reader, path, seconds=60, **more):
        """What a libnetcdf reads in the file, or !WHY."""
        try:
            done = subprocess.run([self.digest_program, path], env=self.environment(self.readers[reader], **more),
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, preexec_fn=bounded)
        except subprocess.TimeoutExpired:
            return "!no answer in %d seconds" % seconds
        if done.returncode not in (0, 1):
            return "!ends with %d" % done.returncode
        return done.stdout.decode(errors="backslashreplace")

    def dumps(self, path):
        """Whether h5dump shows the file."""
        try:
            return subprocess.run(["h5dump", path], env=self.base, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=60, preexec_fn=bounded).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def bad(text):
    """The lines of a digest that are errors."""
    return {re.sub(r"\d+", "#", x.strip()) for x in text.splitlines() if re.search(r"(^|[\s:])!", x) and '"' not in x.split("!")[0]}
