/* Several ranks write one file together, or open one.
 *
 *     parallel WORKLOAD FILE MEGABYTES
 *
 * chunks, contiguous   a netCDF-4 variable without filters, step by step: each rank its rows, together
 * records              the same of CDF-5, along the unlimited dimension
 * deflate              as chunks, through shuffle and deflate 1: whole chunks with 1, 2, 4 and 8 ranks
 * deflate-shared       the same, with chunks of which two ranks have parts
 * deflate-alone        as deflate, each rank by itself (NC_INDEPENDENT)
 * serial-chunks, serial-contiguous, serial-records, serial-deflate, serial-deflate-shared
 *                      one rank, by nc_create
 * raw                  as contiguous, by pwrite: the limit
 * columns-W, blocks-W  any of these but the serial ones, where each rank has some columns of all rows, or a block of rows and columns
 * hidden-W             any of these but the serial ones, with 50 ms of sleep before each step: the time of the puts alone counts, that of the slowest rank
 * many                 makes a netCDF-4 file of 1,000 variables with 3 attributes each
 * open                 opens that file, and asks for all its variables
 *
 * Rank 0 prints the seconds from before the file is created (opened) until it is closed on all ranks, and for hidden-W those of the puts behind them. Built with Debian's compiler
 * wrapper and library of Open MPI; which library runs it, LD_LIBRARY_PATH says. */
#include <fcntl.h>
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 1000, COLUMNS = 1600, VARIABLES = 1000 };
static int rank, ranks, is_hidden;
/* Seconds in puts. */
static double in_puts;

static void check(int code, int line) {
    if (code != NC_NOERR) {
        fprintf(stderr, "rank %d, line %d: %d %s\n", rank, line, code, nc_strerror(code));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define CHECK(call) check(call, __LINE__)

/* What this rank has of each step. */
typedef struct { int row, rows, column, columns; } Part;

static void divide(int n, int part, int parts, int *start, int *count) {
    *start = n * part / parts;
    *count = n * (part + 1) / parts - *start;
}

/* The part of this rank; moves the name of the workload behind the division. */
static Part part_of(const char **workload) {
    int across = 1;   /* parts of the columns */
    if (strncmp(*workload, "columns-", 8) == 0) { across = ranks; *workload += 8; }
    else if (strncmp(*workload, "blocks-", 7) == 0) {
        while (across * across < ranks || ranks % across) across++;
        *workload += 7;
    }
    Part part;
    divide(ROWS, rank / across, ranks / across, &part.row, &part.rows);
    divide(COLUMNS, rank % across, across, &part.column, &part.columns);
    return part;
}

static void fill(float *values, int step, Part part) {
    for (int n = 0; n < part.rows * part.columns; n++) values[n] = (float)(step * 7 + part.row + n * 0.25);
}

static void write_file(const char *workload, const char *path, int steps) {
    const int is_serial = strncmp(workload, "serial-", 7) == 0;
    const char *kind = is_serial ? workload + 7 : workload;
    const Part part = part_of(&kind);
    const int is_records = strcmp(kind, "records") == 0, is_deflated = strncmp(kind, "deflate", 7) == 0,
              is_alone = strcmp(kind, "deflate-alone") == 0, is_chunked = strcmp(kind, "chunks") == 0 || is_deflated;
    const int mode = NC_CLOBBER | (is_records ? NC_64BIT_DATA : NC_NETCDF4);
    int file, dims[3], var;
    if (is_serial) CHECK(nc_create(path, mode, &file));
    else {
        MPI_Info info;
        MPI_Info_create(&info);
        if (is_alone) MPI_Info_set(info, "zonda_independent_filters", "true");
        CHECK(nc_create_par(path, mode, MPI_COMM_WORLD, info, &file));
        MPI_Info_free(&info);
    }
    int old;
    CHECK(nc_set_fill(file, NC_NOFILL, &old));
    CHECK(nc_def_dim(file, "time", is_records ? NC_UNLIMITED : (size_t)steps, &dims[0]));
    CHECK(nc_def_dim(file, "y", ROWS, &dims[1]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[2]));
    CHECK(nc_def_var(file, "v", NC_FLOAT, 3, dims, &var));
    /* Blocks of 125 rows begin where ranks begin; of 200 rows in the middle of what a rank has. */
    const size_t chunk[3] = {1, strcmp(kind, "deflate-shared") == 0 ? ROWS / 5 : ROWS / 8, COLUMNS};
    if (is_chunked) CHECK(nc_def_var_chunking(file, var, NC_CHUNKED, chunk));
    if (is_deflated) CHECK(nc_def_var_deflate(file, var, 1, 1, 1));
    CHECK(nc_enddef(file));
    if (!is_serial) CHECK(nc_var_par_access(file, var, is_alone ? NC_INDEPENDENT : NC_COLLECTIVE));
    float *values = malloc(sizeof *values * (size_t)part.rows * (size_t)part.columns);
    for (int step = 0; step < steps; step++) {
        fill(values, step, part);
        const size_t at[3] = {(size_t)step, (size_t)part.row, (size_t)part.column}, n[3] = {1, (size_t)part.rows, (size_t)part.columns};
        /* Ranks compute equally long. */
        if (is_hidden) {
            usleep(50000);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        const double begin = MPI_Wtime();
        CHECK(nc_put_vara_float(file, var, at, n, values));
        in_puts += MPI_Wtime() - begin;
    }
    CHECK(nc_close(file));
    free(values);
}

static void write_raw(const char *path, int steps, Part part) {
    if (rank == 0) unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    const int file = open(path, O_RDWR | O_CREAT, 0644);
    float *values = malloc(sizeof *values * (size_t)part.rows * (size_t)part.columns);
    const int is_one = part.columns == COLUMNS;
    const size_t run = sizeof(float) * (size_t)part.columns * (size_t)(is_one ? part.rows : 1);
    for (int step = 0; step < steps; step++) {
        fill(values, step, part);
        for (int row = 0; row < (is_one ? 1 : part.rows); row++) {
            const off_t at = (((off_t)step * ROWS + part.row + row) * COLUMNS + part.column) * (off_t)sizeof(float);
            if (pwrite(file, values + (size_t)row * (size_t)part.columns, run, at) != (ssize_t)run) MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    close(file);
    free(values);
}

static void make_many(const char *path) {
    int file, dim, var;
    char name[32];
    CHECK(nc_create(path, NC_CLOBBER | NC_NETCDF4, &file));
    CHECK(nc_def_dim(file, "x", 10, &dim));
    for (int n = 0; n < VARIABLES; n++) {
        snprintf(name, sizeof name, "variable_%04d", n);
        CHECK(nc_def_var(file, name, NC_FLOAT, 1, &dim, &var));
        CHECK(nc_put_att_text(file, var, "units", 3, "K/s"));
        CHECK(nc_put_att_text(file, var, "long_name", strlen(name), name));
        CHECK(nc_put_att_text(file, var, "cell_methods", 10, "time: mean"));
    }
    CHECK(nc_close(file));
}

static void open_many(const char *path) {
    int file, n;
    char name[NC_MAX_NAME + 1];
    CHECK(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    CHECK(nc_inq_nvars(file, &n));
    for (int var = 0; var < n; var++) CHECK(nc_inq_varname(file, var, name));
    CHECK(nc_close(file));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    const char *workload = argv[1], *path = argv[2];
    if (strncmp(workload, "hidden-", 7) == 0) { is_hidden = 1; workload += 7; }
    const int steps = (int)(atof(argv[3]) * 1e6 / (sizeof(float) * ROWS * COLUMNS) + 0.5);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    const char *kind = workload;
    const Part part = part_of(&kind);
    if (strcmp(kind, "raw") == 0) write_raw(path, steps, part);
    else if (strcmp(workload, "many") == 0) make_many(path);
    else if (strcmp(workload, "open") == 0) open_many(path);
    else write_file(workload, path, steps);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;
    if (rank == 0) printf("%.6f\n", seconds);
    if (is_hidden) {
        MPI_Allreduce(&in_puts, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) printf("%.6f\n", seconds);
    }
    MPI_Finalize();
    return 0;
}
