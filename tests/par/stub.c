/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * stub FILE: a program for Debian's parallel library, which stubs.py compiles with that one's headers. It uses functions of several
 * versions, and data. */
#include <netcdf.h>
#include <netcdf_filter.h>
#include <stdio.h>

#define TRY(call)                                               \
    do {                                                        \
        int code = call;                                        \
        if (code) return printf("%s: %d\n", #call, code), 1;    \
    } while (0)

int main(int argc, char **argv) {
    int id, dim, var, four[4] = {1, 2, 3, 4}, mode;
    size_t filters;
    if (argc != 2) return 2;
    ncopts = 0;
    TRY(nc_create(argv[1], NC_NETCDF4, &id));
    TRY(nc_def_dim(id, "x", 4, &dim));
    TRY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    TRY(nc_def_var_deflate(id, var, 1, 1, 1));
    TRY(nc_def_var_quantize(id, var, NC_NOQUANTIZE, 0));
    TRY(nc_inq_var_filter_ids(id, var, &filters, NULL));
    TRY(nc_put_var_int(id, var, four));
    TRY(nc_inq_format_extended(id, NULL, &mode));
    TRY(nc_close(id));
    TRY(nc_open(argv[1], NC_NOWRITE, &id));
    four[3] = 0;
    TRY(nc_get_var_int(id, var, four));
    TRY(nc_close(id));
    printf("%d %s\n", four[3], nc_inq_libvers());
    return four[3] != 4;
}
