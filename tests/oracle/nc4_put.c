/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Data put into netCDF-4 files: types, shapes, growth, errors, mapped puts, copies of variables. */
#include "nc4_write.h"

static void put_types(int flags, const char *path) {
    int nc, x, v;
    static const double wide[8] = {0, 1, -1, 127, 200, -200, 70000, 1e20};
    R(nc_create(path, flags, &nc));
    nc_def_dim(nc, "x", 8, &x);
    for (nc_type type = NC_BYTE; type <= NC_STRING; type++) {
        char name[20];
        snprintf(name, sizeof name, "v%d", type);
        nc_def_var(nc, name, type, 1, &x, &v);
    }
    R(nc_enddef(nc));
    int nvars = 0;
    nc_inq_nvars(nc, &nvars);
    for (v = 0; v < nvars; v++) {
        note("variable %d", v);
#define PUT(suffix, ctype, format, shown)                                                     \
    {                                                                                         \
        ctype values[8];                                                                      \
        for (int i = 0; i < 8; i++) values[i] = (ctype)(long long)(wide[i] > 1e6 ? 99 : wide[i]); \
        /* Of these the reference stores what its memory held. */                             \
        if (sizeof(ctype) == 1 && v == 8) memset(values, 7, sizeof values);                   \
        R(nc_put_var_##suffix(nc, v, values));                                                \
        R(nc_put_var1_##suffix(nc, v, (size_t[]){3}, values));                                \
        R(nc_put_vars_##suffix(nc, v, (size_t[]){0}, (size_t[]){4}, (ptrdiff_t[]){2}, values)); \
        if (v < 12) R(nc_put_varm_##suffix(nc, v, (size_t[]){0}, (size_t[]){4}, NULL, (ptrdiff_t[]){2}, values)); \
        _Alignas(8) unsigned char back[64];                                                   \
        poison(back);                                                                         \
        if (v != 11 && nc_get_var(nc, v, back) == 0) note("%016llx", (unsigned long long)digest_of(0, back, 8 * size_of(nc, v + 1))); \
    }
        NUMERIC_FAMILIES(PUT)
#undef PUT
        R(nc_put_var_text(nc, v, "abcdefgh"));
        /* To convert these to 64 bits is undefined in C. */
        if (v < 9) R(nc_put_var_double(nc, v, wide));
    }
    R(nc_close(nc));
    show_file(path);
}

static void shapes(int flags, const char *path) {
    int nc, t, u, x, v, w, n[60];
    for (int i = 0; i < 60; i++) n[i] = i;
    R(nc_create(path, flags, &nc));
    nc_def_dim(nc, "t", NC_UNLIMITED, &t);
    u = t;
    nc_def_dim(nc, "x", 4, &x);
    nc_def_dim(nc, "u", NC_UNLIMITED, &u);
    nc_def_var(nc, "r", NC_INT, 2, (int[]){t, x}, &v);
    nc_def_var(nc, "f", NC_INT, 2, (int[]){x, x}, &w);
    R(nc_put_var1_int(nc, w, (size_t[]){0, 0}, n));
    R(nc_enddef(nc));
    const int vars[2] = {v, w};
    for (int k = 0; k < 2; k++) {
        int id = vars[k];
        note("variable %d", id);
        R(nc_put_vara_int(nc, id, (size_t[]){0, 0}, (size_t[]){0, 0}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){1, 1}, (size_t[]){2, 3}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){1, 2}, (size_t[]){1, 3}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){1, 4}, (size_t[]){1, 0}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){1, 5}, (size_t[]){1, 0}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){3, 0}, (size_t[]){2, 4}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){4, 0}, (size_t[]){1, 4}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){9, 0}, (size_t[]){0, 4}, n));
        R(nc_put_vara_int(nc, id, NULL, (size_t[]){1, 4}, n));
        R(nc_put_vara_int(nc, id, (size_t[]){0, 0}, NULL, n));
        R(nc_put_vars_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){2, 2}, n));
        R(nc_put_vars_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){0, 1}, n));
        R(nc_put_vars_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){1, -1}, n));
        R(nc_put_vars_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){1, 4}, n));
        R(nc_put_vars_int(nc, id, (size_t[]){0, 0}, (size_t[]){3, 2}, (ptrdiff_t[]){3, 1}, n));
        R(nc_put_vars_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, NULL, n));
        R(nc_put_varm_int(nc, id, (size_t[]){0, 0}, (size_t[]){3, 4}, NULL, (ptrdiff_t[]){1, 3}, n));
        R(nc_put_varm_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){2, 2}, (ptrdiff_t[]){1, 2}, n));
        R(nc_put_varm_int(nc, id, (size_t[]){0, 3}, (size_t[]){2, 2}, (ptrdiff_t[]){1, 1}, (ptrdiff_t[]){1, 2}, n));
        R(nc_put_varm_int(nc, id, (size_t[]){0, 5}, (size_t[]){2, 2}, (ptrdiff_t[]){1, 1}, (ptrdiff_t[]){1, 2}, n));
        R(nc_put_varm_int(nc, id, (size_t[]){0, 0}, (size_t[]){2, 2}, (ptrdiff_t[]){0, 1}, (ptrdiff_t[]){1, 2}, n));
        R(nc_put_var_int(nc, id, n));
        R(nc_put_var1_int(nc, id, (size_t[]){3, 3}, n + 50));
        R(nc_put_var1_int(nc, id, (size_t[]){3, 4}, n + 50));
        size_t len = 0;
        nc_inq_dimlen(nc, t, &len);
        sizes("t", &len, 1);
    }
    R(nc_put_var_int(nc, NC_GLOBAL, n));
    R(nc_put_var_int(nc, 99, n));
    R(nc_put_vara_int(nc, v, (size_t[]){20, 0}, (size_t[]){1, 4}, n));
    R(nc_redef(nc));
    if (u != t) {
        R(nc_def_var(nc, "both", NC_INT, 2, (int[]){t, u}, &v));
        R(nc_def_var(nc, "inner", NC_SHORT, 2, (int[]){x, u}, &w));
        R(nc_put_vara_int(nc, v, (size_t[]){1, 1}, (size_t[]){2, 2}, n));
        R(nc_put_vara_int(nc, w, (size_t[]){0, 2}, (size_t[]){4, 3}, n));
        R(nc_put_vara_int(nc, w, (size_t[]){0, 7}, (size_t[]){4, 1}, n));
        R(nc_put_vara_int(nc, w, (size_t[]){5, 7}, (size_t[]){1, 1}, n));
        R(nc_put_varm_int(nc, v, (size_t[]){0, 0}, (size_t[]){2, 2}, NULL, (ptrdiff_t[]){1, 2}, n));
        /* All of it, since of elements that it does not reach the reference leaves some unread. */
        R(nc_put_var1_int(nc, v, (size_t[]){23, 7}, n));
    }
    R(nc_put_vara_int(nc, 0, (size_t[]){21, 0}, (size_t[]){1, 4}, n));
    R(nc_enddef(nc));
    R(nc_sync(nc));
    R(nc_close(nc));
    show_file(path);
    R(nc_open(path, NC_WRITE, &nc));
    R(nc_put_vara_int(nc, 0, (size_t[]){22, 0}, (size_t[]){2, 4}, n));
    R(nc_put_var1_int(nc, 1, (size_t[]){0, 0}, n + 33));
    R(nc_close(nc));
    show_file(path);
    R(nc_open(path, NC_NOWRITE, &nc));
    R(nc_put_var1_int(nc, 9, (size_t[]){0, 0}, n + 33));
    R(nc_close(nc));
}

/* What is never written: fill values of all types, or nothing in particular. */
static void unwritten(void) {
    int nc, t, x, v;
    R(nc_create("unwritten.nc", NC_NETCDF4, &nc));
    nc_def_dim(nc, "t", NC_UNLIMITED, &t);
    nc_def_dim(nc, "x", 5, &x);
    for (nc_type type = NC_BYTE; type <= NC_STRING; type++) {
        char name[20];
        snprintf(name, sizeof name, "fixed%d", type);
        nc_def_var(nc, name, type, 1, &x, &v);
        snprintf(name, sizeof name, "record%d", type);
        nc_def_var(nc, name, type, 2, (int[]){t, x}, &v);
        if (type == NC_SHORT) R(nc_def_var_fill(nc, v, NC_FILL, &(short){-7}));
        if (type == NC_STRING) R(nc_def_var_fill(nc, v, NC_FILL, &(char *){"nothing"}));
        if (type == NC_INT) R(nc_put_var1_int(nc, v, (size_t[]){2, 3}, (int[]){5}));
        if (type == NC_DOUBLE) {
            R(nc_def_var_deflate(nc, v, 1, 1, 3));
            R(nc_put_var1_double(nc, v, (size_t[]){1, 4}, (double[]){.5}));
        }
    }
    show_group(nc);
    R(nc_close(nc));
    show_file("unwritten.nc");
}

static void copies(const char *from, const char *to, int flags) {
    int in, out, nvars = 0, d;
    R(nc_open(from, NC_NOWRITE, &in));
    R(nc_create(to, flags, &out));
    R(nc_copy_var(in, 0, out));
    nc_def_dim(out, "x", 8, &d);
    nc_inq_nvars(in, &nvars);
    for (int v = 0; v < nvars && v < 11; v++) {
        nc_type type = 0;
        nc_inq_vartype(in, v, &type);
        /* Of these types the reference copies the definition only, or refuses what a CDF-5 file has. */
        if (type > NC_DOUBLE && flags == NC_64BIT_DATA) continue;
        R(nc_copy_var(in, v, out));
    }
    R(nc_close(out));
    R(nc_close(in));
    show_file(to);
}

int main(void) {
    for (size_t f = 0; f < COUNT(NC4_FORMATS); f++) {
        put_types(NC4_FORMATS[f].flags, path_of("types", NC4_FORMATS[f].name));
        shapes(NC4_FORMATS[f].flags, path_of("shapes", NC4_FORMATS[f].name));
    }
    unwritten();
    copies("types_nc4.nc", "copy_nc4.nc", NC_NETCDF4);
    copies("types_nc4.nc", "copy_classic.nc", NC_NETCDF4 | NC_CLASSIC_MODEL);
    copies("types_nc4.nc", "copy_cdf1.nc", 0);
    copies("types_nc4.nc", "copy_cdf5.nc", NC_64BIT_DATA);
    copies("copy_cdf5.nc", "from_cdf5.nc", NC_NETCDF4);
    return 0;
}
