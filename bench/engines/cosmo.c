/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   mpiexec -n N cosmo FOLDER WAY STEPS COMPUTE MEGABYTES
 *
 * A weather model in miniature, as far as its output is concerned: six fields, each in a file of its own, a record a step. It computes for a while
 * (it sleeps: cores are not what is measured), and puts. The calls are those of netCDF; I/O servers are the business of who starts it, but for one way.
 *
 *   none       no output
 *   gather     rank 0 collects the levels of a field and puts them, as programs without parallel files do
 *   together   all ranks put their rows
 *   extra:SPEC the same, with servers as extra ranks of the program (`nc_zonda_servers`): `extra:groups=2`
 *
 * COMPUTE is the seconds of all steps, MEGABYTES the output of all. Prints a line: when it began (seconds of the clock of the day, when all ranks
 * were there), seconds of computing, of output, and of closing on rank 0. `bench/engines/cosmo.f90` is the same in Fortran.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIELDS = 6, LEVELS = 8, ROWS = 64 };
static const char *const names[FIELDS] = {"U", "V", "W", "T", "P", "QV"};
static int rank = -1, size;

static void check(int status, const char *call)
{
    if (status == NC_NOERR) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, call, nc_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define NC(call) check(call, #call)

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0) {}
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm comm = MPI_COMM_WORLD;
    int is_extra = strncmp(argv[2], "extra:", 6) == 0;
    if (is_extra) NC(nc_zonda_servers(MPI_COMM_WORLD, argv[2] + 6, &comm));
    if (comm == MPI_COMM_NULL) { /* a server, which has written all */
        MPI_Finalize();
        return 0;
    }
    if (is_extra) argv[2] = "together";
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int steps = atoi(argv[3]), gathers = strcmp(argv[2], "gather") == 0, together = strcmp(argv[2], "together") == 0;
    double pause = atof(argv[4]) / steps, bytes = 1e6 * atof(argv[5]) / steps / FIELDS;
    size_t columns = (size_t)(bytes / (LEVELS * ROWS * sizeof(float)));
    size_t first = (size_t)(ROWS * rank / size), rows = (size_t)(ROWS * (rank + 1) / size) - first;
    int writes = together || (gathers && rank == 0);
    int files[FIELDS], vars[FIELDS], counts[64], places[64];
    if (steps < 1 || columns < 1 || size > 64 || strlen(argv[1]) > 4000) MPI_Abort(MPI_COMM_WORLD, 2);
    float *own = malloc(LEVELS * rows * columns * sizeof *own);
    float *level = malloc(ROWS * columns * sizeof *level);
    if (!own || !level) MPI_Abort(MPI_COMM_WORLD, 3);
    memset(own, 0, LEVELS * rows * columns * sizeof *own);
    for (int r = 0; r < size; r++) {
        places[r] = (int)((size_t)(ROWS * r / size) * columns);
        counts[r] = (int)((size_t)(ROWS * (r + 1) / size) * columns) - places[r];
    }

    MPI_Barrier(comm);
    double began = seconds_of(CLOCK_REALTIME), computing = 0, output = 0, closing, t = seconds_of(CLOCK_MONOTONIC);
    for (int f = 0; writes && f < FIELDS; f++) {
        char path[4096];
        int dims[4];
        snprintf(path, sizeof path, "%s/%s.nc", argv[1], names[f]);
        if (gathers) NC(nc_create(path, NC_CLOBBER | NC_NETCDF4, &files[f]));
        else NC(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, comm, MPI_INFO_NULL, &files[f]));
        NC(nc_def_dim(files[f], "time", NC_UNLIMITED, &dims[0]));
        NC(nc_def_dim(files[f], "level", LEVELS, &dims[1]));
        NC(nc_def_dim(files[f], "rlat", ROWS, &dims[2]));
        NC(nc_def_dim(files[f], "rlon", columns, &dims[3]));
        NC(nc_def_var(files[f], names[f], NC_FLOAT, 4, dims, &vars[f]));
        NC(nc_enddef(files[f]));
        if (together) NC(nc_var_par_access(files[f], vars[f], NC_COLLECTIVE));
    }
    output += seconds_of(CLOCK_MONOTONIC) - t;

    for (int step = 0; step < steps; step++) {
        t = seconds_of(CLOCK_MONOTONIC);
        compute(pause);
        MPI_Barrier(comm); /* neighbours exchange their borders */
        computing += seconds_of(CLOCK_MONOTONIC) - t;
        t = seconds_of(CLOCK_MONOTONIC);
        for (int f = 0; (gathers || together) && f < FIELDS; f++) {
            own[0] = (float)(100 * step + f);
            if (together) {
                size_t start[] = {(size_t)step, 0, first, 0}, count[] = {1, LEVELS, rows, columns};
                NC(nc_put_vara_float(files[f], vars[f], start, count, own));
                continue;
            }
            for (size_t k = 0; k < LEVELS; k++) {
                size_t start[] = {(size_t)step, k, 0, 0}, count[] = {1, 1, ROWS, columns};
                MPI_Gatherv(own + k * rows * columns, (int)(rows * columns), MPI_FLOAT, level, counts, places, MPI_FLOAT, 0, comm);
                if (rank == 0) NC(nc_put_vara_float(files[f], vars[f], start, count, level));
            }
        }
        output += seconds_of(CLOCK_MONOTONIC) - t;
    }
    t = seconds_of(CLOCK_MONOTONIC);
    for (int f = 0; writes && f < FIELDS; f++) NC(nc_close(files[f]));
    closing = seconds_of(CLOCK_MONOTONIC) - t;
    double longest = 0;
    MPI_Reduce(&output, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    if (rank == 0) {
        printf("{\"began\": %.6f, \"compute\": %.6f, \"output\": %.6f, \"closing\": %.6f}\n", began, computing, longest, closing);
        fflush(stdout);
    }
    if (is_extra) MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
