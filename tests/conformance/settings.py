"""Paths and constants that the other modules share.

The run has one `Settings`: which library is tested, with which headers, and where things are kept.
"""
import os
import subprocess
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
import rig  # noqa: E402
from rig import SONAME  # noqa: E402,F401

UPSTREAM = "4.9.0"              # the release that reference.txt was recorded with

REFERENCE = os.path.join(HERE, "reference.txt")
PASSING = os.path.join(HERE, "passing.txt")
EXCEPTIONS = os.path.join(HERE, "exceptions.txt")


SYSTEM_LIB = str(rig.reference() or "/usr/lib")
SYSTEM_INC = "/usr/include"
HDF5_INC = SYSTEM_INC + "/hdf5/serial"
HDF5_LIB = SYSTEM_LIB + "/hdf5/serial"


# The tests cannot be had here (no network, no package): the run is skipped, not failed.
Unavailable = rig.Skip
# A preparation step failed that should have worked: the run fails.
Broken = rig.Setup


@dataclass(frozen=True)
class Settings:
    label: str                  # "zonda" or "distribution": keeps the two roles apart on disk
    libdir: str
    incdir: str
    out: str
    jobs: int
    timeout: float
    large: bool
    keep: bool
    write_behind: str = ""      # ZONDA_ASYNC of the tests

    def path(self, *parts):
        return os.path.join(self.out, *parts)

    def folder(self, *parts):
        d = self.path(*parts)
        os.makedirs(d, exist_ok=True)
        return d


def run_step(cmd, log, cwd=None, env=None, timeout=1200):
    """Runs one preparation step with its output in `log`; returns its exit code."""
    with open(log, "w") as f:
        return subprocess.run(cmd, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=f,
                              stderr=subprocess.STDOUT, timeout=timeout).returncode


def tail(path, lines=15):
    """The last lines of a log, for an error message."""
    with open(path, errors="replace") as f:
        return "".join(f.readlines()[-lines:])
