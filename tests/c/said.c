/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What nc_zonda_last_error() says of calls that fail: which file, which object, and what does not fit
 * what. A code alone leaves its reader to guess, and some codes stand for many things. */
#include "check.h"
#include <zonda.h>

/* The call gives the code, and the line that explains it has each of these words. */
#define SAYS(call, code, ...) \
    do { \
        FAILS(call, code); \
        says(__LINE__, nc_zonda_last_error(), (const char *[]){__VA_ARGS__, NULL}); \
    } while (0)

static void says(int line, const char *text, const char **words) {
    const char *again = strstr(text, "said.nc");
    for (; *words != NULL; words++) {
        if (strstr(text, *words) == NULL) {
            fprintf(stderr, "said.c:%d: no \"%s\" in \"%s\"\n", line, *words, text);
            exit(1);
        }
    }
    if (again != NULL && strstr(again + 1, "said.nc") != NULL) {
        fprintf(stderr, "said.c:%d: the file is named twice: \"%s\"\n", line, text);
        exit(1);
    }
}

/* Selections and names, which both formats know. */
static void both(int nc, int v, int beyond) {
    const float values[16] = {0};
    const double large[4] = {1e9, 1, 1e9, 1};
    int id;
    size_t len;
    char text[8];
    SAYS(nc_put_vara_float(nc, v, (size_t[]){0, 5}, (size_t[]){1, 6}, values), NC_EEDGE, "said.nc", "v", "start 5 + count 6 is beyond the end of dimension 1 of length 10");
    SAYS(nc_put_vara_float(nc, v, (size_t[]){0, 11}, (size_t[]){1, 1}, values), NC_EINVALCOORDS, "said.nc", "v", "start 11 is outside dimension 1 of length 10");
    SAYS(nc_put_vars_float(nc, v, (size_t[]){0, 0}, (size_t[]){1, 2}, (ptrdiff_t[]){1, -1}, values), NC_ESTRIDE, "said.nc", "v", "stride -1 in dimension 1 is out of range");
    SAYS(nc_get_var1_float(nc, v, (size_t[]){7, 0}, &(float){0}), beyond, "said.nc", "v", "start 7", "dimension 0 of length 1");
    SAYS(nc_get_var_float(nc, 42, NULL), NC_ENOTVAR, "said.nc", "no variable 42");
    SAYS(nc_put_vara_double(nc, v, (size_t[]){0, 0}, (size_t[]){1, 4}, large), NC_ERANGE, "said.nc", "2 values do not fit");
    SAYS(nc_inq_varid(nc, "nowhere", &id), NC_ENOTVAR, "said.nc", "variable", "nowhere");
    SAYS(nc_inq_dimid(nc, "nowhere", &id), NC_EBADDIM, "said.nc", "dimension", "nowhere");
    SAYS(nc_inq_dimlen(nc, 42, &len), NC_EBADDIM, "said.nc", "no dimension 42");
    SAYS(nc_inq_varname(nc, 42, text), NC_ENOTVAR, "said.nc", "no variable 42");
    SAYS(nc_inq_attlen(nc, v, "nowhere", &len), NC_ENOTATT, "said.nc", "v", "no attribute nowhere");
    SAYS(nc_get_att_text(nc, v, "nowhere", text), NC_ENOTATT, "said.nc", "v", "no attribute nowhere");
}

int main(void) {
    const int kinds[] = {0, NC_NETCDF4};
    int nc, v, d[2], i, other;
    for (i = 0; i < 2; i++) {
        OK(nc_create("said.nc", NC_CLOBBER | kinds[i], &nc));
        OK(nc_def_dim(nc, "t", NC_UNLIMITED, &d[0]));
        OK(nc_def_dim(nc, "x", 10, &d[1]));
        OK(nc_def_var(nc, "v", NC_SHORT, 2, d, &v));
        if (kinds[i] == NC_NETCDF4) {
            SAYS(nc_def_dim(nc, "far", (size_t)1 << 62, &other), NC_EHDFERR, "said.nc", "/far", "4611686018427387904");
            SAYS(nc_def_var_deflate(nc, v, 0, 1, 12), NC_EINVAL, "said.nc", "/v", "not 12");
            SAYS(nc_def_var_deflate(nc, 42, 0, 1, 1), NC_ENOTVAR, "said.nc", "no variable 42");
            SAYS(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){1, 11}), NC_EBADCHUNK, "said.nc", "/v", "a chunk of 11 elements is longer than dimension 1, which has 10");
            SAYS(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL), NC_EINVAL, "said.nc", "/v", "unlimited");
            SAYS(nc_def_var_filter(nc, v, 54321, 0, NULL), NC_ENOFILTER, "said.nc", "/v", "filter 54321", "HDF5_PLUGIN_PATH");
            SAYS(nc_del_att(nc, v, "nowhere"), NC_ENOTATT, "said.nc", "/v", "nowhere");
            SAYS(nc_put_att_double(nc, v, "_FillValue", NC_DOUBLE, 1, &(double){0}), NC_EBADTYPE, "said.nc", "/v", "_FillValue");
        }
        OK(nc_enddef(nc));
        OK(nc_put_var1_short(nc, v, (size_t[]){0, 0}, &(short){1}));
        /* A record that is not there is another code in each format, as in the reference. */
        both(nc, v, kinds[i] ? NC_EINVALCOORDS : NC_EEDGE);
        OK(nc_close(nc));
        /* The codes differ, as in the reference; what is said does not. */
        OK(nc_open("said.nc", NC_NOWRITE, &nc));
        SAYS(nc_put_var1_short(nc, v, (size_t[]){0, 0}, &(short){1}), kinds[i] ? NC_EHDFERR : NC_EPERM, "said.nc", "opened for reading only");
        OK(nc_close(nc));
    }
    /* The text stays where it is until another call fails, also while it is asked for again. */
    FAILS(nc_open("nowhere.nc", NC_NOWRITE, &nc), 2);
    const char *first = nc_zonda_last_error(), *again = nc_zonda_last_error();
    OK(nc_open("said.nc", NC_NOWRITE, &nc));
    CHECK(first == again && first == nc_zonda_last_error() && strstr(first, "nowhere.nc"));
    OK(nc_close(nc));
    return 0;
}
