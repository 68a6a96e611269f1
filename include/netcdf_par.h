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

#if defined(__cplusplus)
}
#endif

#endif /* NETCDF_PAR_H */
