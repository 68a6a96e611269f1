/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * able FILE: ends with 3 if the library has no parallel files at all. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

int main(int argc, char **argv) {
    int id, code;
    MPI_Init(&argc, &argv);
    code = nc_create_par(argc > 1 ? argv[1] : "able.nc", NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &id);
    if (code == NC_NOERR) code = nc_close(id);
    MPI_Finalize();
    return code == NC_ENOPAR ? 3 : 0;
}
