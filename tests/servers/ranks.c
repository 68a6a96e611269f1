/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   mpiexec -n N ranks PATH FORMAT STEPS [kill|leave|go-on RANK STEP] [servers|twice SPEC]
 *
 * Ranks put rows of record variables together, 97 rows divided as they come; one variable goes through a filter, one is put by each rank alone. With
 * `kill` a rank ends itself by SIGKILL when all have put that step; with `leave` it makes no further call of netCDF, and with
 * `go-on` neither, while the others go on after errors and close the file. With `servers` some ranks are I/O servers; `twice` asks for them twice.
 */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zonda.h>

enum { ROWS = 97, COLUMNS = 300 };
static int rank, size, goes_on;

static void check(int status, const char *call) {
    if (status == NC_NOERR) return;
    printf("rank %d: %s %d %s\n", rank, call, status, nc_zonda_last_error());
    fflush(stdout);
    /* Not MPI_Abort: where several ranks call it at once, the mpirun of Open MPI may wait for ever. */
    if (!goes_on) {
        /* Time for the launcher to pass the line on; and not all at once: the mpirun of Open MPI may wait for ever for ranks that fail at the same time. */
        usleep(300000 * (1 + (unsigned)rank));
        _exit(1);
    }
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv) {
    MPI_Comm compute = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_twice = argc > 5 && strcmp(argv[argc - 2], "twice") == 0;
    if (is_twice || (argc > 5 && strcmp(argv[argc - 2], "servers") == 0)) {
        CHECK(nc_zonda_servers(MPI_COMM_WORLD, argv[argc - 1], &compute));
        if (is_twice && compute != MPI_COMM_NULL) CHECK(nc_zonda_servers(compute, argv[argc - 1], &compute));
        argc -= 2;
    }
    if (compute == MPI_COMM_NULL) {
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_rank(compute, &rank);
    MPI_Comm_size(compute, &size);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 64);
    int steps = atoi(argv[3]), who = argc > 6 ? atoi(argv[5]) : -1, last = argc > 6 ? atoi(argv[6]) : -1;
    goes_on = argc > 6 && argv[4][0] == 'g';
    int is_netcdf4 = argv[2][0] == '4', file, dims[3], vars[2], alone;
    static float values[ROWS * COLUMNS];
    int first = ROWS * rank / size, rows = ROWS * (rank + 1) / size - first;
    CHECK(nc_create_par(argv[1], is_netcdf4 ? NC_NETCDF4 : NC_64BIT_DATA, compute, MPI_INFO_NULL, &file));
    CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "y", ROWS, &dims[1]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[2]));
    CHECK(nc_def_var(file, "a", NC_FLOAT, 3, dims, &vars[0]));
    CHECK(nc_def_var(file, "b", NC_DOUBLE, 3, dims, &vars[1]));
    CHECK(nc_def_var(file, "alone", NC_INT, 2, dims + 1, &alone));
    if (is_netcdf4) CHECK(nc_def_var_deflate(file, vars[1], 1, 1, 1));
    CHECK(nc_enddef(file));
    CHECK(nc_var_par_access(file, vars[0], NC_COLLECTIVE));
    CHECK(nc_var_par_access(file, vars[1], NC_COLLECTIVE));
    if (is_netcdf4) {
        size_t start[] = {(size_t)first, 0}, count[] = {(size_t)rows, COLUMNS};
        static int numbers[ROWS * COLUMNS];
        for (int i = 0; i < rows * COLUMNS; i++) numbers[i] = first * COLUMNS + i;
        CHECK(nc_put_vara_int(file, alone, start, count, numbers));
    }
    for (int step = 0; step < steps; step++) {
        size_t start[] = {(size_t)step, (size_t)first, 0}, count[] = {1, (size_t)rows, COLUMNS};
        for (int i = 0; i < rows * COLUMNS; i++) values[i] = (float)(100 * step + first + i % 11);
        for (int v = 0; v < 2; v++) CHECK(nc_put_vara_float(file, vars[v], start, count, values));
        /* Now all have told this step: puts wait for nobody, so the others might be anywhere. */
        if (step == last) MPI_Barrier(compute);
        if (rank == who && step == last) {
            if (argv[4][0] == 'k') kill(getpid(), SIGKILL);
            MPI_Finalize();
            return 0;
        }
        if (step % 4 == 3) CHECK(nc_sync(file));
    }
    size_t length = 0;
    CHECK(nc_inq_dimlen(file, dims[0], &length));
    if (length != (size_t)steps) printf("rank %d: the length is %zu\n", rank, length);
    CHECK(nc_close(file));
    MPI_Finalize();
    return 0;
}
