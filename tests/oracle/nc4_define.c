/* SPDX-License-Identifier: MIT OR Apache-2.0
 * netCDF-4 files: creating, dimensions and variables, define mode, fill mode, ends. */
#include "nc4_write.h"

static void modes(void) {
    static const int flags[] = {NC_NETCDF4, NC_NETCDF4 | NC_CLASSIC_MODEL, NC_NETCDF4 | NC_NOATTCREORD,
                                NC_NETCDF4 | NC_NODIMSCALE_ATTACH, NC_NETCDF4 | NC_SHARE, NC_NETCDF4 | NC_64BIT_OFFSET,
                                NC_NETCDF4 | NC_64BIT_DATA, NC_NETCDF4 | NC_MMAP, NC_NETCDF4 | NC_DISKLESS,
                                NC_NETCDF4 | NC_DISKLESS | NC_MMAP, NC_CLASSIC_MODEL};
    for (size_t i = 0; i < COUNT(flags); i++) {
        int nc = -1, format = -1, mode = -1;
        note("flags %x", flags[i]);
        if (R(nc_create("modes.nc", flags[i] | NC_CLOBBER, &nc))) continue;
        R(nc_inq_format(nc, &format));
        ints("format", &format, 1);
        R(nc_inq_format_extended(nc, &format, &mode));
        ints("extended", (int[]){format, mode}, 2);
        R(nc_close(nc));
        presence("modes.nc");
        unlink("modes.nc");
    }
    for (int format = 0; format < 7; format++) {
        int nc = -1, old = -1, got = -1, mode = -1;
        if (R(nc_set_default_format(format, &old))) continue;
        R(nc_create("default.nc", NC_CLOBBER, &nc));
        R(nc_inq_format(nc, &got));
        R(nc_inq_format_extended(nc, NULL, &mode));
        ints("default", (int[]){old, got, mode}, 3);
        R(nc_close(nc));
        nc_create("default.nc", NC_CLOBBER | NC_CLASSIC_MODEL, &nc);
        nc_inq_format(nc, &got);
        ints("classic model", &got, 1);
        nc_close(nc);
    }
    nc_set_default_format(NC_FORMAT_CLASSIC, NULL);
    int nc = -1;
    R(nc_create("there.nc", NC_NETCDF4, &nc));
    R(nc_close(nc));
    R(nc_create("there.nc", NC_NETCDF4 | NC_NOCLOBBER, &nc));
    R(nc_create("no/such/folder.nc", NC_NETCDF4, &nc));
    R(nc_create(".", NC_NETCDF4, &nc));
    R(nc_open("there.nc", NC_WRITE, &nc));
    R(nc_close(nc));
    show_file("there.nc");
}

static void dimensions(int flags, const char *path) {
    static const char *const names[] = {"x", "x", "a/b", "", " lead", "trail ", "dot.", ".dot", "1", "_u", "a b", "\xc3\xa9"};
    int nc, id;
    R(nc_create(path, flags, &nc));
    for (size_t i = 0; i < COUNT(names); i++) {
        id = -77;
        R(nc_def_dim(nc, names[i], 3 + i, &id));
        note("%zu: %d", i, id);
    }
    char long_name[NC_MAX_NAME + 2];
    memset(long_name, 'n', sizeof long_name);
    long_name[NC_MAX_NAME + 1] = 0;
    R(nc_def_dim(nc, long_name, 3, &id));
    /* The reference accepts 256 bytes, and reads another last byte back. */
    long_name[NC_MAX_NAME - 1] = 0;
    R(nc_def_dim(nc, long_name, 3, &id));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &id));
    R(nc_def_dim(nc, "u", NC_UNLIMITED, &id));
    R(nc_def_dim(nc, "nowhere", 1, NULL));
    R(nc_def_dim(nc + 1, "g", 1, &id));
    R(nc_enddef(nc));
    id = -77;
    R(nc_def_dim(nc, "late", 2, &id));
    ints("id", &id, 1);
    R(nc_redef(nc));
    R(nc_redef(nc));
    R(nc_def_dim(nc, "later", 2, &id));
    R(nc_def_dim(nc, "later", 0, &id));
    R(nc_enddef(nc));
    R(nc_enddef(nc));
    R(nc_close(nc));
    show_file(path);
}

static void variables(int flags, const char *path) {
    int nc, t, u, x, v, dims[40];
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    R(nc_def_dim(nc, "x", 3, &x));
    u = x;
    nc_def_dim(nc, "u", NC_UNLIMITED, &u);
    for (int type = -1; type < 15; type++) {
        char name[20];
        snprintf(name, sizeof name, "v%d", type + 1);
        v = -77;
        R(nc_def_var(nc, name, type, 2, (int[]){t, x}, &v));
        ints("id", &v, 1);
    }
    R(nc_def_var(nc, "user", 32, 0, NULL, &v));
    R(nc_def_var(nc, "v3", NC_INT, 0, NULL, &v));
    R(nc_def_var(nc, "a/b", NC_INT, 0, NULL, &v));
    R(nc_def_var(nc, "", NC_INT, 0, NULL, &v));
    R(nc_def_var(nc, "far", NC_INT, 1, (int[]){99}, &v));
    R(nc_def_var(nc, "negative", NC_INT, 1, (int[]){-1}, &v));
    R(nc_def_var(nc, "null dims", NC_INT, 1, NULL, &v));
    R(nc_def_var(nc, "scalar", NC_DOUBLE, 0, NULL, &v));
    R(nc_def_var(nc, "second", NC_INT, 2, (int[]){x, t}, &v));
    R(nc_def_var(nc, "both", NC_INT, 2, (int[]){t, u}, &v));
    R(nc_def_var(nc, "twice", NC_INT, 2, (int[]){x, x}, &v));
    R(nc_def_var(nc, "t", NC_INT, 1, &t, &v));
    R(nc_def_var(nc, "x", NC_INT, 1, &t, &v));
    R(nc_def_var(nc, "u", NC_INT, 2, (int[]){u, x}, &v));
    R(nc_def_var(nc, "nowhere", NC_INT, 0, NULL, NULL));
    R(nc_def_var(nc + 1, "g", NC_INT, 0, NULL, &v));
    for (int i = 0; i < 40; i++) dims[i] = x;
    R(nc_def_var(nc, "five", NC_BYTE, 5, dims, &v));
    show_group(nc);
    /* Reading data has ended define mode, but for the classic model. */
    R(nc_enddef(nc));
    R(nc_def_var(nc, "late", NC_INT, 1, &x, &v));
    R(nc_close(nc));
    show_file(path);
    R(nc_open(path, NC_WRITE, &nc));
    R(nc_def_var(nc, "at once", NC_INT, 1, &x, &v));
    R(nc_redef(nc));
    R(nc_def_var(nc, "reopened", NC_INT, 2, (int[]){t, x}, &v));
    R(nc_def_dim(nc, "dim reopened", 7, &x));
    R(nc_def_var(nc, "dim reopened", NC_INT, 1, &x, &v));
    R(nc_put_att_text(nc, v, "note", 3, "abc"));
    R(nc_close(nc));
    show_file(path);
}

static void fill_mode(int flags, const char *path) {
    int nc, x, v, old = -77;
    R(nc_create(path, flags, &nc));
    R(nc_set_fill(nc, NC_NOFILL, &old));
    ints("old", &old, 1);
    R(nc_set_fill(nc, 77, &old));
    R(nc_def_dim(nc, "x", 4, &x));
    R(nc_def_var(nc, "a", NC_INT, 1, &x, &v));
    int no_fill = -77;
    R(nc_inq_var_fill(nc, v, &no_fill, NULL));
    /* Until the variable is stored the reference tells the mode here, not 1. */
    ints("no_fill", (int[]){no_fill != 0}, 1);
    R(nc_set_fill(nc, NC_FILL, &old));
    ints("old", &old, 1);
    R(nc_def_var(nc, "b", NC_INT, 1, &x, &v));
    R(nc_put_var1_int(nc, v, (size_t[]){1}, (int[]){5}));
    R(nc_redef(nc));
    R(nc_enddef(nc));
    R(nc_put_var1_int(nc, v, (size_t[]){1}, (int[]){5}));
    R(nc_set_fill(nc, NC_NOFILL, NULL));
    R(nc_put_var_int(nc, 0, (int[]){1, 2, 3, 4}));
    R(nc_close(nc));
    show_file(path);
    R(nc_open(path, NC_NOWRITE, &nc));
    R(nc_set_fill(nc, NC_NOFILL, &old));
    R(nc_redef(nc));
    R(nc_enddef(nc));
    R(nc_sync(nc));
    R(nc_def_dim(nc, "y", 1, &x));
    R(nc_def_dim(nc, "a/b", 1, &x));
    R(nc_def_var(nc, "c", NC_INT, 0, NULL, &v));
    R(nc_def_var(nc, "a", NC_INT, 0, NULL, &v));
    R(nc_abort(nc));
}

static void ends(int flags) {
    int nc, x, v;
    R(nc_create("aborted.nc", flags, &nc));
    R(nc_def_dim(nc, "x", 4, &x));
    R(nc_abort(nc));
    presence("aborted.nc");
    R(nc_close(nc));
    R(nc_create("ended.nc", flags, &nc));
    R(nc_def_dim(nc, "x", 4, &x));
    R(nc_enddef(nc));
    R(nc_abort(nc));
    presence("ended.nc");
    R(nc_create("kept.nc", flags, &nc));
    R(nc_def_dim(nc, "x", 4, &x));
    R(nc_def_var(nc, "v", NC_INT, 1, &x, &v));
    R(nc_sync(nc));
    R(nc_enddef(nc));
    R(nc_sync(nc));
    R(nc_put_var_int(nc, v, (int[]){1, 2, 3, 4}));
    R(nc_sync(nc));
    R(nc_close(nc));
    R(nc_close(nc));
    show_file("kept.nc");
    R(nc_open("kept.nc", NC_WRITE, &nc));
    R(nc_redef(nc));
    R(nc_abort(nc));
    show_file("kept.nc");
    R(nc__create("sized.nc", flags, 5000, &(size_t){4096}, &nc));
    R(nc_def_dim(nc, "x", 4, &x));
    R(nc__enddef(nc, 100, 4, 100, 4));
    R(nc_close(nc));
    show_file("sized.nc");
}

int main(void) {
    modes();
    for (size_t f = 0; f < COUNT(NC4_FORMATS); f++) {
        note("format %s", NC4_FORMATS[f].name);
        dimensions(NC4_FORMATS[f].flags, path_of("dims", NC4_FORMATS[f].name));
        variables(NC4_FORMATS[f].flags, path_of("vars", NC4_FORMATS[f].name));
        fill_mode(NC4_FORMATS[f].flags, path_of("fill", NC4_FORMATS[f].name));
        ends(NC4_FORMATS[f].flags);
    }
    return 0;
}
