/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What every C test uses: OK(call) wants NC_NOERR, FAILS(call, code) another code, CHECK(condition)
 * anything. A failed check is printed with its place and ends the test. */
#ifndef CHECK_H
#define CHECK_H

#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define FAILS(call, code)                                                                 \
    do {                                                                                  \
        int got_ = (call);                                                                \
        if (got_ != (code)) {                                                             \
            fprintf(stderr, "%s:%d: %s is %d (%s), not %d\n", __FILE__, __LINE__, #call,  \
                    got_, nc_strerror(got_), (code));                                     \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define OK(call) FAILS(call, NC_NOERR)

/* A small file with a fixed, a record and a text variable, left in data mode. */
static inline int small_file(const char *path, int flags) {
    int nc, dims[2], v, data[6] = {1, 2, 3, 4, 5, 6};
    OK(nc_create(path, flags, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", 3, &dims[1]));
    OK(nc_def_var(nc, "r", NC_INT, 2, dims, &v));
    OK(nc_def_var(nc, "f", NC_DOUBLE, 1, dims + 1, &v));
    OK(nc_def_var(nc, "c", NC_CHAR, 1, dims + 1, &v));
    OK(nc_put_att_text(nc, 0, "units", 1, "m"));
    OK(nc_put_att_int(nc, NC_GLOBAL, "six", NC_SHORT, 6, data));
    OK(nc_enddef(nc));
    OK(nc_put_vara_int(nc, 0, (size_t[]){0, 0}, (size_t[]){2, 3}, data));
    OK(nc_put_var_int(nc, 1, data));
    OK(nc_put_var_text(nc, 2, "xyz"));
    return nc;
}

#endif
