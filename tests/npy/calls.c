/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A folder of arrays through the C interface: calls.c URL FOLDER. Says what is not as it should be. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 3
#define L 4

static int failures;

#define IS(call, wanted)                                                                                   \
    do {                                                                                                   \
        int is_ = (call);                                                                                  \
        if (is_ != (wanted)) {                                                                             \
            printf("line %d: %s gives %d (%s)\n", __LINE__, #call, is_, nc_strerror(is_));                 \
            failures++;                                                                                    \
        }                                                                                                  \
    } while (0)
#define OK(call) IS(call, NC_NOERR)
#define HOLDS(what)                                                                                        \
    do {                                                                                                   \
        if (!(what)) {                                                                                     \
            printf("line %d: not %s\n", __LINE__, #what);                                                  \
            failures++;                                                                                    \
        }                                                                                                  \
    } while (0)

static const nc_type types[] = {NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE,
                                NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64};
#define N_TYPES ((int)(sizeof types / sizeof *types))

static void define(int ncid)
{
    int time, x, dims[2], id, again;
    OK(nc_def_dim(ncid, "time", NC_UNLIMITED, &time));
    IS(nc_def_dim(ncid, "more", NC_UNLIMITED, &again), NC_EUNLIMIT);
    OK(nc_def_dim(ncid, "x", N, &x));
    IS(nc_def_dim(ncid, "x", N, &again), NC_ENAMEINUSE);
    IS(nc_def_dim(ncid, "a/b", N, &again), NC_EBADNAME);
    dims[0] = time, dims[1] = x;
    for (int i = 0; i < N_TYPES; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", types[i]);
        OK(nc_def_var(ncid, name, types[i], 2, dims, &id));
        HOLDS(id == i);
    }
    OK(nc_def_var(ncid, "fixed", NC_INT, 1, &x, &id));
    OK(nc_def_var(ncid, "scalar", NC_DOUBLE, 0, NULL, &id));
    IS(nc_def_var(ncid, "s", NC_STRING, 0, NULL, &id), NC_EBADTYPE);
    dims[0] = x, dims[1] = time;
    IS(nc_def_var(ncid, "late", NC_INT, 2, dims, &id), NC_EUNLIMPOS);
    IS(nc_def_grp(ncid, "g", &id), NC_ENOTNC4);
    IS(nc_def_var_deflate(ncid, 0, 1, 1, 1), NC_ENOTNC4);
    OK(nc_def_var_fill(ncid, N_TYPES, NC_FILL, &(int){-7}));
    OK(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "arr\xc3\xa9"));
    double numbers[] = {0.1, 1e300, -2};
    OK(nc_put_att_double(ncid, 0, "numbers", NC_DOUBLE, 3, numbers));
    OK(nc_put_att_double(ncid, 0, "floats", NC_FLOAT, 1, numbers));
    unsigned long long most = 18446744073709551615ull;
    OK(nc_put_att_ulonglong(ncid, 0, "most", NC_UINT64, 1, &most));
    IS(nc_put_att_double(ncid, 0, "narrow", NC_BYTE, 1, &numbers[1]), NC_ERANGE);
    OK(nc_del_att(ncid, 0, "narrow"));
    OK(nc_put_att_text(ncid, 0, "old", 0, ""));
    OK(nc_rename_att(ncid, 0, "old", "empty"));
    IS(nc_put_var1_double(ncid, 0, (size_t[]){0, 0}, numbers), NC_EINDEFINE);
}

static void values(int ncid)
{
    double all[2][N] = {{1, 2, 3}, {4, 5, 6}}, back[4][N], one;
    size_t start[2] = {0, 0}, count[2] = {2, N};
    for (int i = 0; i < N_TYPES; i++)
        if (types[i] == NC_CHAR)
            OK(nc_put_vara_text(ncid, i, start, count, "abcdef"));
        else
            OK(nc_put_vara_double(ncid, i, start, count, &all[0][0]));
    IS(nc_put_vara_text(ncid, 0, start, count, "abcdef"), NC_ECHAR);
    count[1] = N + 1;
    IS(nc_put_vara_double(ncid, 0, start, count, &all[0][0]), NC_EEDGE);
    /* record 3, of one variable: the others are filled there */
    size_t at[2] = {3, 1};
    OK(nc_put_var1_double(ncid, 3, at, &(double){42}));
    size_t len;
    OK(nc_inq_dimlen(ncid, 0, &len));
    HOLDS(len == 4);
    count[0] = 4, count[1] = N;
    OK(nc_get_vara_double(ncid, 3, start, count, &back[0][0]));
    HOLDS(!memcmp(back, all, sizeof all) && back[2][0] == NC_FILL_INT && back[3][1] == 42 && back[3][2] == NC_FILL_INT);
    OK(nc_get_var1_double(ncid, 5, at, &one));
    HOLDS(one == NC_FILL_DOUBLE);
    OK(nc_get_var1_double(ncid, N_TYPES, (size_t[]){2}, &one));
    HOLDS(one == -7);
    /* strides and maps, there and back */
    ptrdiff_t stride[2] = {2, 2}, map[2] = {1, 2};
    int few[4] = {10, 11, 12, 13}, got[4] = {0};
    start[0] = 1, count[0] = 2, count[1] = 2;
    OK(nc_put_varm_int(ncid, 9, start, count, stride, map, few));
    OK(nc_get_vars_int(ncid, 9, start, count, stride, got));
    HOLDS(got[0] == 10 && got[1] == 12 && got[2] == 11 && got[3] == 13);
    OK(nc_get_varm_int(ncid, 9, start, count, stride, map, got));
    HOLDS(!memcmp(got, few, sizeof few));
    stride[0] = 0;
    IS(nc_get_vars_int(ncid, 9, start, count, stride, got), NC_ESTRIDE);
    IS(nc_put_var1_int(ncid, 0, at, &(int){300}), NC_ERANGE);
    OK(nc_put_var1_int(ncid, 0, at, &(int){-3}));
    OK(nc_put_var_int(ncid, N_TYPES, (int[]){7, 8, 9}));
    OK(nc_put_var_double(ncid, N_TYPES + 1, &(double){0.5}));
}

static void inquire(int ncid, const char *url)
{
    int n_dims, n_vars, n_atts, unlimited, format, extended, mode, dims[NC_MAX_VAR_DIMS];
    char text[1024];
    nc_type type;
    size_t len;
    double numbers[3];
    OK(nc_inq(ncid, &n_dims, &n_vars, &n_atts, &unlimited));
    HOLDS(n_dims == 2 && n_vars == N_TYPES + 2 && n_atts == 1 && unlimited == 0);
    OK(nc_inq_format(ncid, &format));
    HOLDS(format == NC_FORMAT_CDF5);
    OK(nc_inq_format_extended(ncid, &extended, &mode));
    HOLDS(extended == NC_FORMATX_UNDEFINED && !(mode & (NC_NETCDF4 | NC_CDF5)));
    OK(nc_inq_path(ncid, &len, text));
    HOLDS(!strcmp(text, url));
    OK(nc_inq_var(ncid, 4, text, &type, &n_dims, dims, &n_atts));
    HOLDS(!strcmp(text, "v5") && type == NC_FLOAT && n_dims == 2 && dims[0] == 0 && dims[1] == 1 && n_atts == 0);
    OK(nc_inq_att(ncid, 0, "numbers", &type, &len));
    HOLDS(type == NC_DOUBLE && len == 3);
    OK(nc_get_att_double(ncid, 0, "numbers", numbers));
    HOLDS(numbers[0] == 0.1 && numbers[1] == 1e300 && numbers[2] == -2);
    OK(nc_get_att_double(ncid, 0, "floats", numbers));
    HOLDS(numbers[0] == 0.1f);
    unsigned long long most;
    OK(nc_get_att_ulonglong(ncid, 0, "most", &most));
    HOLDS(most == 18446744073709551615ull);
    OK(nc_inq_attlen(ncid, 0, "empty", &len));
    HOLDS(len == 0);
    IS(nc_inq_attlen(ncid, 0, "narrow", &len), NC_ENOTATT);
    int no_fill, fill;
    OK(nc_inq_var_fill(ncid, N_TYPES, &no_fill, &fill));
    HOLDS(!no_fill && fill == -7);
    IS(nc_inq_varid(ncid, "none", &n_vars), NC_ENOTVAR);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *url = argv[1], *folder = argv[2];
    int ncid, other, id;
    OK(nc_create(url, NC_CLOBBER, &ncid));
    OK(nc_def_dim(ncid, "x", N, &id));
    OK(nc_abort(ncid));
    IS(nc_open(folder, NC_NOWRITE, &ncid), 2);
    IS(nc_create(url, NC_DISKLESS, &ncid), NC_EDISKLESS);

    OK(nc_create(url, NC_NOCLOBBER, &ncid));
    IS(nc_create(url, NC_NOCLOBBER, &other), NC_EEXIST);
    define(ncid);
    OK(nc_enddef(ncid));
    IS(nc_enddef(ncid), NC_ENOTINDEFINE);
    values(ncid);
    inquire(ncid, url);
    OK(nc_sync(ncid));
    OK(nc_open(folder, NC_NOWRITE, &other));
    inquire(other, folder);
    IS(nc_put_var1_int(other, 2, (size_t[]){0, 0}, &(int){1}), NC_EPERM);
    /* what the writer adds, a reader sees when it asks */
    size_t len;
    OK(nc_put_var1_int(ncid, 2, (size_t[]){6, 0}, &(int){1}));
    OK(nc_sync(ncid));
    OK(nc_inq_dimlen(other, 0, &len));
    HOLDS(len == 4);
    OK(nc_sync(other));
    OK(nc_inq_dimlen(other, 0, &len));
    HOLDS(len == 7);
    OK(nc_close(other));
    OK(nc_close(ncid));

    /* a variable more, in a dataset that has records; without the URL */
    OK(nc_open(folder, NC_WRITE, &ncid));
    IS(nc_rename_var(ncid, N_TYPES, "longer than it was"), NC_ENOTINDEFINE);
    OK(nc_rename_var(ncid, N_TYPES, "f"));
    OK(nc_redef(ncid));
    IS(nc_redef(ncid), NC_EINDEFINE);
    OK(nc_def_var(ncid, "more", NC_SHORT, 2, (int[]){0, 1}, &id));
    OK(nc_rename_dim(ncid, 1, "longer"));
    OK(nc_close(ncid));
    OK(nc_open(url, NC_NOWRITE, &ncid));
    short fill;
    OK(nc_get_var1_short(ncid, id, (size_t[]){6, 2}, &fill));
    HOLDS(fill == NC_FILL_SHORT);
    IS(nc_get_var1_short(ncid, id, (size_t[]){7, 0}, &fill), NC_EINVALCOORDS);
    OK(nc_inq_varid(ncid, "f", &id));
    OK(nc_inq_dimid(ncid, "longer", &id));
    OK(nc_close(ncid));
    if (!failures)
        puts("ok");
    return failures != 0;
}
