/* Ranks put alone into a variable with filters, each as often as it likes, and all place that together.
 *
 *     alone FILE
 *
 * The Info asks for it (zonda_independent_filters). Element (t, y, x) of v becomes 1000 t + y + x / 16. Rank r begins with the rows that follow its
 * number, so that chunks are shared; in a second opening each rank replaces what it put last by the same values plus 0.5. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 6, ROWS = 10, NX = 300 };
static int rank, ranks;

static void check(int code, int line) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "rank %d, line %d: %d %s\n", rank, line, code, nc_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, __LINE__)

static float value(size_t t, size_t y, size_t x) { return (float)(1000 * t + y) + (float)x / 16; }

/* One row by this rank alone, which then reads it back. */
static void put_row(int file, int var, size_t t, size_t y, float more) {
    float row[NX], found[NX];
    const size_t start[3] = {t, y, 0}, count[3] = {1, 1, NX};
    for (size_t x = 0; x < NX; x++) row[x] = value(t, y, x) + more;
    CHECK(nc_put_vara_float(file, var, start, count, row));
    CHECK(nc_get_vara_float(file, var, start, count, found));
    for (size_t x = 0; x < NX; x++) check(found[x] == row[x] ? NC_NOERR : NC_EIO, __LINE__);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "zonda_independent_filters", "true");
    int file, dims[3], var;
    const size_t chunk[3] = {2, 7, NX / 2};
    CHECK(nc_create_par(argv[1], NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, info, &file));
    CHECK(nc_def_dim(file, "t", TIMES, &dims[0]));
    CHECK(nc_def_dim(file, "y", (size_t)(ROWS * ranks), &dims[1]));
    CHECK(nc_def_dim(file, "x", NX, &dims[2]));
    CHECK(nc_def_var(file, "v", NC_FLOAT, 3, dims, &var));
    CHECK(nc_def_var_chunking(file, var, NC_CHUNKED, chunk));
    CHECK(nc_def_var_deflate(file, var, 1, 1, 2));
    CHECK(nc_enddef(file));
    CHECK(nc_var_par_access(file, var, NC_INDEPENDENT));
    for (size_t t = 0; t < TIMES; t++) {
        for (int y = 0; y < ROWS; y++) put_row(file, var, t, (size_t)(y * ranks + rank), 0);
        if (t == 1 || t == 4) CHECK(nc_sync(file));
    }
    CHECK(nc_close(file));
    CHECK(nc_open_par(argv[1], NC_WRITE, MPI_COMM_WORLD, info, &file));
    CHECK(nc_inq_varid(file, "v", &var));
    CHECK(nc_var_par_access(file, var, NC_INDEPENDENT));
    put_row(file, var, TIMES - 1, (size_t)((ROWS - 1) * ranks + rank), 0.5f);
    CHECK(nc_close(file));
    /* Without the key it is refused, as by netCDF-C. */
    CHECK(nc_open_par(argv[1], NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    check(nc_var_par_access(file, var, NC_INDEPENDENT) == NC_EINVAL ? NC_NOERR : NC_EIO, __LINE__);
    CHECK(nc_close(file));
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}
