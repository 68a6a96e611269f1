/* Ranks put columns of a table, some of them nobody's.
 *
 *     columns KIND FILE HINT SEED
 *
 * KIND is records (CDF-5), fixed (CDF-2), contiguous or chunks (netCDF-4); HINT is that of romio_cb_write. What is in the file does not
 * depend on the number of ranks. Each rank that is content says "ok". */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, COLUMNS = 3000, STEPS = 3 };

static void check(int code, int line) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, __LINE__)

/* Where the columns of a rank begin: the same bounds for all ranks, in no regular order. */
static int bound(int rank, int ranks, unsigned seed) {
    if (rank == 0 || rank == ranks) return rank ? COLUMNS : 0;
    return COLUMNS * rank / ranks + (int)(seed * 7919u * (unsigned)rank % (COLUMNS / 16)) / ranks;
}

int main(int argc, char **argv) {
    int rank, ranks, file, dims[3], var, beside;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
    const unsigned seed = (unsigned)atoi(argv[4]);
    const int is_records = strcmp(argv[1], "records") == 0, is_chunked = strcmp(argv[1], "chunks") == 0;
    const int mode = is_records ? NC_64BIT_DATA : strcmp(argv[1], "fixed") == 0 ? NC_64BIT_OFFSET : NC_NETCDF4;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", argv[3]);
    CHECK(nc_create_par(argv[2], mode | NC_CLOBBER, MPI_COMM_WORLD, info, &file));
    MPI_Info_free(&info);
    CHECK(nc_def_dim(file, "time", is_records || is_chunked ? NC_UNLIMITED : STEPS, &dims[0]));
    CHECK(nc_def_dim(file, "y", ROWS, &dims[1]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[2]));
    CHECK(nc_def_var(file, "beside", NC_SHORT, 1, dims, &beside));
    CHECK(nc_def_var(file, "v", NC_FLOAT, 3, dims, &var));
    const size_t chunk[3] = {1, 1 + seed % 300, 900};
    if (is_chunked) CHECK(nc_def_var_chunking(file, var, NC_CHUNKED, chunk));
    CHECK(nc_enddef(file));
    CHECK(nc_var_par_access(file, var, NC_COLLECTIVE));
    const int first = bound(rank, ranks, seed), columns = bound(rank + 1, ranks, seed) - first;
    double *values = malloc(sizeof *values * ROWS * (size_t)columns + 1);
    for (int step = 0; step < STEPS; step++) {
        /* Some rows are nobody's. */
        const int row = step * 5, rows = ROWS - 9 * step;
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < columns; x++) values[y * columns + x] = step + (row + y) * 0.25 + (first + x) * 8;
        const size_t start[3] = {(size_t)step, (size_t)row, (size_t)first}, count[3] = {1, (size_t)rows, (size_t)columns};
        CHECK(nc_put_vara_double(file, var, start, count, values));
    }
    float got = 0;
    const size_t at[3] = {STEPS - 1, 20, (size_t)first};
    if (columns) CHECK(nc_get_var1_float(file, var, at, &got));
    CHECK(nc_close(file));
    if (columns && got != (float)(STEPS - 1 + 20 * 0.25 + first * 8)) fprintf(stderr, "rank %d: %g\n", rank, (double)got);
    else puts("ok");
    free(values);
    MPI_Finalize();
    return 0;
}
