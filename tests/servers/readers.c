/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   mpiexec -n N readers PATH [servers SPEC]
 *
 * Ranks read a file that `read make` made: all of them the same steps, then each its own rows, alone and together, by nc_open_par and by nc_open. Rank 0
 * prints a digest of what each rank got. With `servers` some ranks are I/O servers.
 */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zonda.h>

enum { COLUMNS = 256 };
static int rank, size;

static void check(int status, const char *call) {
    if (status == NC_NOERR) return;
    printf("rank %d: %s %d %s\n", rank, call, status, nc_zonda_last_error());
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)

static unsigned long long digest(unsigned long long hash, const void *bytes, size_t n) {
    for (const unsigned char *p = bytes; n; n--, p++) hash = (hash ^ *p) * 0x100000001b3u;
    return hash;
}

static unsigned long long read_all(int file, unsigned long long hash) {
    size_t steps, rows;
    CHECK(nc_inq_dimlen(file, 0, &steps));
    CHECK(nc_inq_dimlen(file, 1, &rows));
    double *values = malloc(rows * COLUMNS * sizeof *values);
    if (!values) MPI_Abort(MPI_COMM_WORLD, 65);
    for (int is_own = 0; is_own < 2; is_own++) {
        size_t first = is_own ? rows * (size_t)rank / (size_t)size : 0, end = is_own ? rows * (size_t)(rank + 1) / (size_t)size : rows;
        for (size_t step = 0; step < steps; step++)
            for (int var = 0; var < 2; var++) {
                CHECK(nc_get_vara_double(file, var, (size_t[]){step, first, 0}, (size_t[]){1, end - first, COLUMNS}, values));
                hash = digest(hash, values, (end - first) * COLUMNS * sizeof *values);
            }
    }
    free(values);
    return hash;
}

int main(int argc, char **argv) {
    MPI_Comm compute = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 3) CHECK(nc_zonda_servers(MPI_COMM_WORLD, argv[3], &compute));
    if (compute != MPI_COMM_NULL) {
        MPI_Comm_rank(compute, &rank);
        MPI_Comm_size(compute, &size);
        unsigned long long hash = 0;
        int file;
        CHECK(nc_open_par(argv[1], NC_NOWRITE, compute, MPI_INFO_NULL, &file));
        hash = read_all(file, hash);
        for (int var = 0; var < 2; var++) CHECK(nc_var_par_access(file, var, NC_COLLECTIVE));
        hash = read_all(file, hash);
        CHECK(nc_close(file));
        CHECK(nc_open(argv[1], NC_NOWRITE, &file));
        hash = read_all(file, hash);
        /* One rank in two leaves it to the end of the program to close the file. */
        if (rank % 2 == 0) CHECK(nc_close(file));
        unsigned long long *all = calloc((size_t)size, sizeof *all);
        MPI_Gather(&hash, 1, MPI_UNSIGNED_LONG_LONG, all, 1, MPI_UNSIGNED_LONG_LONG, 0, compute);
        for (int r = 0; rank == 0 && r < size; r++) printf("rank %d: %016llx\n", r, all[r]);
    }
    MPI_Finalize();
    return 0;
}
