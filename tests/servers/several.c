/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   several FOLDER FORMAT N
 *
 * Makes N files one after the other, with a pause after each, and goes on after errors: what a model that makes a file a day does. Prints a line for each.
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zonda.h>

enum { COLUMNS = 5000 };

static int make(const char *path, int mode, int number) {
    int file, dim, var, status = nc_create(path, mode, &file);
    static double values[COLUMNS];
    if (status) return status;
    if (!(status = nc_def_dim(file, "x", COLUMNS, &dim)) && !(status = nc_def_var(file, "v", NC_DOUBLE, 1, &dim, &var))) status = nc_enddef(file);
    for (int i = 0; i < COLUMNS; i++) values[i] = number + i;
    if (!status) status = nc_put_var_double(file, var, values);
    if (!status) usleep(20000);
    int closed = nc_close(file);
    return status ? status : closed;
}

int main(int argc, char **argv) {
    if (argc < 4) return 64;
    int mode = argv[2][0] == '4' ? NC_NETCDF4 : NC_64BIT_DATA;
    for (int i = 0; i < atoi(argv[3]); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.nc", argv[1], i);
        int status = make(path, mode, i);
        printf("%d %d %s\n", i, status, status ? nc_zonda_last_error() : "");
        fflush(stdout);
        usleep(20000);
    }
    return 0;
}
