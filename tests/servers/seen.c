/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   seen FIRST SECOND STEPS ROWS
 *
 * Two files at once, the second of which goes to another group of I/O servers: STEPS puts of ROWS x 256 floats to each. Then it says "put", and closes
 * them when it is told to by a line.
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status, const char *call) {
    if (status == NC_NOERR) return;
    printf("%s %d %s\n", call, status, nc_strerror(status));
    exit(1);
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv) {
    if (argc < 5) return 64;
    int steps = atoi(argv[3]), rows = atoi(argv[4]), files[2], dims[3], var;
    float *values = calloc((size_t)rows * 256, sizeof *values);
    if (!values) return 65;
    for (int i = 0; i < 2; i++) {
        CHECK(nc_create(argv[1 + i], NC_CLOBBER | (i ? NC_64BIT_DATA : NC_NETCDF4), &files[i]));
        CHECK(nc_def_dim(files[i], "time", NC_UNLIMITED, &dims[0]));
        CHECK(nc_def_dim(files[i], "y", rows, &dims[1]));
        CHECK(nc_def_dim(files[i], "x", 256, &dims[2]));
        CHECK(nc_def_var(files[i], "v", NC_FLOAT, 3, dims, &var));
        CHECK(nc_enddef(files[i]));
    }
    for (int step = 0; step < steps; step++) {
        size_t start[] = {(size_t)step, 0, 0}, count[] = {1, (size_t)rows, 256};
        for (int i = 0; i < 2; i++) CHECK(nc_put_vara_float(files[i], var, start, count, values));
    }
    puts("put");
    fflush(stdout);
    getchar();
    for (int i = 0; i < 2; i++) CHECK(nc_close(files[i]));
    return 0;
}
