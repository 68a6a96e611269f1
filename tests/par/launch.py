# SPDX-License-Identifier: MIT OR Apache-2.0
"""The MPIs that may be there, and programs that are started in ranks of them."""
import contextlib
import os
import pathlib
import signal
import subprocess
import time
from dataclasses import dataclass, field

import rig

SECONDS = 240
# Seconds that a launcher may take after its last rank.
ALONE = 15
# As root, Open MPI wants to be asked twice.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
DEBIAN = "/usr/bin/python3"
OPEN_MPI = ["--oversubscribe"]


@dataclass
class Mpi:
    name: str
    compiler: str
    launcher: list
    python: str = None
    fortran: str = None
    programs: dict = field(default_factory=dict)

    def there_is(self):
        return all(map(rig.tool, (self.compiler, self.launcher[0])))


def known():
    mpich, openmpi = (rig.ROOT / "out" / name / "bin" for name in ("venv-mpich", "venv-openmpi"))
    return [
        Mpi("mpich", "mpicc.mpich", ["mpiexec.hydra"], fortran="mpif90.mpich"),
        Mpi("openmpi", "mpicc.openmpi", ["mpirun.openmpi", *OPEN_MPI], DEBIAN, fortran="mpif90.openmpi"),
        Mpi("mpich-pypi", str(mpich / "mpicc"), [str(mpich / "mpiexec")], str(mpich / "python")),
        Mpi("standard-pypi", str(mpich / "mpicc_abi"), [str(mpich / "mpiexec")]),
        Mpi("openmpi-pypi", str(openmpi / "mpicc"), [str(openmpi / "mpirun"), *OPEN_MPI], str(openmpi / "python")),
    ]


def environment(_mpi, library=None, **more):
    # MPICH of PyPI compiles with the compiler of its makers' machine otherwise.
    return rig.environment(library, ("OMPI_", "MPICH_", "PMI"), **AS_ROOT, MPICH_CC="gcc", OMPI_CC="gcc", **more)


def command(mpi, count, words):
    return [rig.tool(mpi.launcher[0]), *mpi.launcher[1:], "-n", str(count), *map(str, words)]


def stop(child, patience):
    """Waits for a launcher, and ends it with its ranks. Whether it had to be ended while ranks lived."""
    end, had_ranks, alone_since = time.monotonic() + (patience or 0.1), False, None
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.2)
            return False
        has_ranks = any(is_alive(pid) for pid in descendants(child.pid))
        had_ranks |= has_ranks
        alone_since = None if has_ranks or not had_ranks else alone_since or time.monotonic()
        if alone_since is not None and time.monotonic() > alone_since + ALONE:
            # Open MPI's waits for ever, now and then, for ranks that failed in the same moment. Ours have ended.
            print("note %s waits for ranks that have ended: it is killed" % os.path.basename(child.args[0]))
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return False
    # It ends its ranks; those that it does not reach have an alarm, or are of its group.
    child.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return True


def is_alive(pid):
    """Whether a process runs; one that has ended and is not yet waited for does not."""
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def parents():
    """Each process of the machine: its parent and its session."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            found[int(path.parent.name)] = (int(words[1]), int(words[3]))
    return found


def descendants(pid, of=None):
    """Processes that a process has started, and those that these have."""
    of = parents() if of is None else of
    found, more = set(), {pid}
    while more:
        more = {child for child, (parent, _) in of.items() if parent in more} - found
        found |= more
    return found


def ends_with(words, env, folder, seconds, log):
    """Runs a command in a group of its own, with what it says in a file; its exit status, or None where it had to be ended."""
    with open(log, "ab") as said:
        child = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=env, cwd=folder, start_new_session=True)
    return None if stop(child, seconds) else child.returncode
