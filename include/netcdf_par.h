/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * netcdf_par.h - files shared by the processes of an MPI program. Include netcdf.h first.
 *
 * The communicator travels as the machine word that the program's own MPI defines; the library
 * is linked to no MPI.
 */
#ifndef NETCDF_PAR_H
#define NETCDF_PAR_H 1

#include <mpi.h>

#define NC_INDEPENDENT 0 /* each process reads and writes on its own (the default) */
#define NC_COLLECTIVE 1  /* all processes of the file make the same call together */

#if defined(__cplusplus)
extern "C" {
#endif

/* Collective: all processes of comm call with the same path and mode. */
EXTERNL int nc_create_par(const char *path, int cmode, MPI_Comm comm, MPI_Info info,
                          int *ncidp);
EXTERNL int nc_open_par(const char *path, int mode, MPI_Comm comm, MPI_Info info, int *ncidp);
/* How puts are made. netCDF-4: to one variable; NC_GLOBAL is NC_ENOTVAR. Classic: to the whole file,
 * whichever variable is named. */
EXTERNL int nc_var_par_access(int ncid, int varid, int par_access);

/* The same with Fortran handles, for the Fortran library. */
EXTERNL int nc_create_par_fortran(const char *path, int cmode, int comm, int info, int *ncidp);
EXTERNL int nc_open_par_fortran(const char *path, int mode, int comm, int info, int *ncidp);

/* Zonda's own: I/O servers among the ranks, which write what the others create.
 *
 * All ranks of world call it once, with the same spec, between MPI_Init and the first file: "groups=2" makes
 * the last two ranks servers. The others get a communicator of their own in *compute, which they use in place of world,
 * and free; all files that they create from then on are written by servers. The servers stay in
 * this call until all others are in MPI_Finalize, and then get MPI_COMM_NULL: they should call
 * MPI_Finalize, too. With "groups=0", and under "zonda run --servers", all ranks compute.
 *
 * Further words of spec, after commas: size=2, servers of a group, which are on one node; out_*=1, the group of
 * files with such names; way=messages, which has ranks of the same node send messages, too, where they
 * otherwise share memory with their servers; read=on, which has servers also read variables with filters of
 * files that are opened for reading, once for all ranks and ahead of what these ask for; read=all: all variables.
 *
 * Returns NC_NOERR; NC_EINVAL on all ranks for another spec, or one that leaves no rank to compute;
 * NC_EIO on a server that could not write all; NC_EMPI, NC_EPARINIT, NC_ENOPAR as nc_create_par. */
EXTERNL int nc_zonda_servers(MPI_Comm world, const char *spec, MPI_Comm *compute);
/* The same with Fortran handles; zonda.f90, beside this file, has nf90_zonda_servers. */
EXTERNL int nc_zonda_servers_fortran(int world, const char *spec, int *compute);

#if defined(__cplusplus)
}
#endif

#endif /* NETCDF_PAR_H */
