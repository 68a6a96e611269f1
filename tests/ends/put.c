/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* put MODE WAY PATH: writes a file and prints what nc_close, or nc_abort, says, and what a second one does. MODE is that of
 * nc_create; WAY is new, open (made before, then opened again), define (given up in define
 * mode), exit (without nc_close). */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANT(call)                                                                                                     \
    do {                                                                                                               \
        int code = (call);                                                                                             \
        if (code) {                                                                                                    \
            printf("%s: %d\n", #call, code);                                                                           \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(int n_args, char **args)
{
    if (n_args != 4)
        return 2;
    int mode = atoi(args[1]), id, dim, var, values[1000] = {0};
    const char *way = args[2], *path = args[3];
    if (!strcmp(way, "open"))
        WANT(nc_open(path, NC_WRITE, &id));
    else
        WANT(nc_create(path, mode, &id));
    if (!strcmp(way, "open")) {
        WANT(nc_inq_varid(id, "v", &var));
    } else {
        WANT(nc_def_dim(id, "x", 1000, &dim));
        WANT(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
        if (!strcmp(way, "define")) {
            printf("%d", nc_abort(id));
            printf(" %d\n", nc_abort(id));
            return 0;
        }
        WANT(nc_enddef(id));
    }
    values[7] = 7;
    WANT(nc_put_var_int(id, var, values));
    if (!strcmp(way, "exit"))
        return 0;
    printf("%d", nc_close(id));
    printf(" %d\n", nc_close(id));
    return 0;
}
