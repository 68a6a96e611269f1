/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* put MODE WAY PATH: writes a file and prints what nc_close, or nc_abort, says, and what a second one does. MODE is that of
 * nc_create; WAY is new, open (made before, then opened again), define (given up in define
 * mode), exit (without nc_close), wide (with long attributes, and room behind them). grow and move open what wide
 * has made, put a longer attribute in front of the others, for which data stay or have to move, and print what nc_enddef and
 * nc_close say. */
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

static int change(const char *path, size_t len)
{
    static char text[1 << 18];
    int id;
    memset(text, 'n', sizeof text);
    WANT(nc_open(path, NC_WRITE, &id));
    WANT(nc_redef(id));
    WANT(nc_put_att_text(id, NC_GLOBAL, "history", len, text));
    printf("%d", nc_enddef(id));
    printf(" %d\n", nc_close(id));
    return 0;
}

static int add_wide(int id)
{
    char text[500], name[32];
    memset(text, 'o', sizeof text);
    WANT(nc_put_att_text(id, NC_GLOBAL, "history", 100, text));
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "attribute%d", i);
        WANT(nc_put_att_text(id, NC_GLOBAL, name, sizeof text, text));
    }
    return 0;
}

int main(int n_args, char **args)
{
    if (n_args != 4)
        return 2;
    int mode = atoi(args[1]), id, dim, var, values[1000] = {0};
    const char *way = args[2], *path = args[3];
    if (!strcmp(way, "grow"))
        return change(path, 5000);
    if (!strcmp(way, "move"))
        return change(path, 200000);
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
        if (!strcmp(way, "wide") && add_wide(id))
            return 1;
        WANT(nc__enddef(id, !strcmp(way, "wide") ? 1 << 16 : 0, 4, 0, 4));
    }
    values[7] = 7;
    WANT(nc_put_var_int(id, var, values));
    if (!strcmp(way, "exit"))
        return 0;
    printf("%d", nc_close(id));
    printf(" %d\n", nc_close(id));
    return 0;
}
