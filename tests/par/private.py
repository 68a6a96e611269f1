# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gives communicators of mpi4py, which loads MPI for itself, to the self-test. For run.py.

    private.py LIBRARY SEED ROUND_BYTES [private]

With the last word, it fails where all of the process sees that MPI, as mpi4py of Debian has it.
"""
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
# No MPI is there before it is imported.
if library.zonda_mpi_refused(ctypes.c_size_t(0)) != 1:
    sys.exit("an MPI before there is one")

from mpi4py import MPI  # noqa: E402

if "private" in sys.argv and hasattr(ctypes.CDLL(None), "MPI_Init"):
    sys.exit("MPI is not loaded privately: the test shows nothing")


def word(handle):
    of_bytes = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[MPI._sizeof(handle)]
    return ctypes.c_size_t(of_bytes.from_address(MPI._addressof(handle)).value)


world = MPI.COMM_WORLD
if library.zonda_mpi_selftest(word(world), ctypes.c_uint64(int(sys.argv[2])), ctypes.c_size_t(int(sys.argv[3]))):
    sys.exit("rank %d: a step is wrong" % world.rank)
if library.zonda_mpi_count_fortran(world.py2f()) != world.size:
    sys.exit("rank %d: Fortran's communicator" % world.rank)
if library.zonda_mpi_refused(word(MPI.COMM_NULL)) != 7:
    sys.exit("rank %d: no error for MPI_COMM_NULL" % world.rank)
info = MPI.Info.Create()
info.Set("zonda_x", "y z")
value = ctypes.create_string_buffer(256)
if library.zonda_mpi_info(word(info), 0, b"zonda_x", value) != 1 or value.value != b"y z":
    sys.exit("rank %d: Info" % world.rank)
print("ok", flush=True)
