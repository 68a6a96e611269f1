# SPDX-License-Identifier: MIT OR Apache-2.0
"""Communicators and Infos of mpi4py as the engine takes them.

mpi4py is imported where it is asked for and not before: importing it starts MPI. It has loaded the MPI that the engine
then finds in the process, so Zonda needs it neither to be built nor to be installed.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

__all__ = ["handles"]

# By the bytes of a handle: numbers in MPICH's family, pointers in Open MPI and in the standard ABI.
_WORDS: dict[int, Any] = {4: ctypes.c_uint32, 8: ctypes.c_uint64}


def handles(comm: Any = None, info: Any = None) -> tuple[Any, int, int]:
    """The communicator, its handle and that of the Info, as words.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        None: ``MPI.COMM_WORLD``.
    info : mpi4py.MPI.Info
        None: ``MPI.INFO_NULL``.

    Raises
    ------
    ImportError
        Without mpi4py.
    TypeError
        For something else.
    """
    try:
        mpi: Any = importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(
            "parallel files need mpi4py, with the MPI whose mpiexec starts the program "
            f"(pip install mpi4py); it cannot be imported: {error}"
        ) from error
    comm = mpi.COMM_WORLD if comm is None else comm
    info = mpi.INFO_NULL if info is None else info
    if not isinstance(comm, mpi.Comm):
        raise TypeError(f"comm is a communicator (mpi4py.MPI.Comm), not {type(comm).__name__}")
    if not isinstance(info, mpi.Info):
        raise TypeError(f"info is an mpi4py.MPI.Info, not {type(info).__name__}")
    return comm, _word(mpi, comm), _word(mpi, info)


def _word(mpi: Any, of: Any) -> int:
    """What C has in the variable of this type."""
    return int(_WORDS[mpi._sizeof(of)].from_address(mpi._addressof(of)).value)
