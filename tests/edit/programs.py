# SPDX-License-Identifier: MIT OR Apache-2.0
"""The libraries and programs that read and change files, and what they say of one."""
import ctypes
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

MEMORY = 4 << 30    # bytes that a reader may take: netCDF-C takes all there is for some files


def bounded():
    """In a reader's process: an end where it takes too much, and where the tests are ended."""
    rig.bounds(memory=MEMORY)()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Programs:
    def __init__(self, options, scratch):
        self.scratch = scratch
        build = rig.places.under_test({**os.environ, "ZONDA_LIBDIR": options.lib})
        self.ours, self.command, self.library = build.libdir, str(build.zonda), str(build.libdir / rig.SONAME)
        if not os.path.exists(self.library):
            raise rig.Setup("no %s in %s; run make build" % (rig.SONAME, self.ours))
        if not rig.reference():
            raise rig.Setup("no %s of the distribution to judge with" % rig.SONAME)
        self.reference, self.newest = rig.reference(), rig.newest(scratch / "newest", sys.executable)
        if not self.newest:
            raise rig.Setup("no libnetcdf in the netCDF4 of %s" % sys.executable)
        import hdf5plugin
        self.base = rig.environment(HDF5_USE_FILE_LOCKING="FALSE", HDF5_PLUGIN_PATH=hdf5plugin.PLUGINS_PATH)
        self.readers = {"netCDF-C": self.reference, "new netCDF-C": self.newest, "Zonda": self.ours}
        self.digest_program = rig.compile_c(scratch / "digest", HERE.parent / "interop" / "digest.c", link="reference",
                                            flags=["-Wno-unused-function"], libraries=["-lm"])
        self.h5dump = rig.tool("h5dump")

    def environment(self, library, **more):
        return {**self.base, "LD_LIBRARY_PATH": str(library), **more}

    def digest(self, reader, path, seconds=60, **more):
        """What a libnetcdf reads in the file, or !WHY."""
        try:
            done = rig.run([self.digest_program, path], self.environment(self.readers[reader], **more), text=False, seconds=seconds, preexec_fn=bounded)
        except subprocess.TimeoutExpired:
            return "!no answer in %d seconds" % seconds
        if done.returncode not in (0, 1):
            return "!ends with %d" % done.returncode
        return done.stdout.decode(errors="backslashreplace")

    def dumps(self, path):
        """Whether h5dump shows the file."""
        try:
            return rig.run([self.h5dump, path], self.base, seconds=60, preexec_fn=bounded, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def bad(text):
    """The lines of a digest that are errors."""
    return {re.sub(r"\d+", "#", x.strip()) for x in text.splitlines() if re.search(r"(^|[\s:])!", x) and '"' not in x.split("!")[0]}
