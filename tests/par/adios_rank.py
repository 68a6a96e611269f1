# SPDX-License-Identifier: MIT OR Apache-2.0
"""A rank that writes its part of an array by ADIOS: adios_rank.py FOLDER-OF-THE-MODULE FILE. What goes through libnetcdf is up to its method NC4."""
import sys

import numpy
from mpi4py import MPI

sys.path.insert(0, sys.argv[1])
import adios_openmpi.adios_mpi as adios  # noqa: E402

EACH = 10
comm = MPI.COMM_WORLD
adios.init_noxml(comm)
adios.set_max_buffer_size(10)
group = adios.declare_group("temperature", "", adios.FLAG.YES)
adios.select_method(group, "NC4", "", "")
for name in ("each", "all", "first"):
    adios.define_var(group, name, "", adios.DATATYPE.integer, "", "", "")
adios.define_var(group, "temp", "", adios.DATATYPE.double, "each", "all", "first")
for step in range(2):
    file = adios.open("temperature", sys.argv[2] % step, "w", comm)
    adios.set_group_size(file, 3 * 4 + 8 * EACH)
    for name, value in (("each", EACH), ("all", EACH * comm.size), ("first", EACH * comm.rank)):
        adios.write_int(file, name, value)
    adios.write(file, "temp", numpy.arange(EACH, dtype=float) + 100 * comm.rank + 1000 * step)
    adios.close(file)
adios.finalize()
