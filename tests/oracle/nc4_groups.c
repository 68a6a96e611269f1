/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Groups of netCDF-4 files: defining, what is seen from where, and the same name for several things. */
#include "nc4_write.h"

static void tree(int flags, const char *path) {
    int nc, a = -77, b = -77, c = -77, n = -77, dx, dt, dy, v, ids[10] = {0};
    R(nc_create(path, flags, &nc));
    R(nc_def_grp(nc, "a", &a));
    note("%x", a - nc);
    R(nc_def_grp(nc, "a", &n));
    R(nc_def_grp(nc, "x/y", &n));
    R(nc_def_grp(nc, "", &n));
    R(nc_def_grp(nc, " blank", &n));
    R(nc_def_grp(nc, "no id", NULL));
    if (a == -77) a = nc;
    R(nc_def_grp(a, "b", &b));
    if (b == -77) b = nc;
    note("%x", b - nc);
    R(nc_def_grp(b, "a", &c));
    if (c == -77) c = nc;
    R(nc_def_grp(nc + 99, "a", &n));
    R(nc_def_dim(nc, "x", 3, &dx));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &dt));
    R(nc_def_dim(a, "x", 4, &dy));
    ints("dims", (int[]){dx, dt, dy}, 3);
    R(nc_def_dim(b, "d", 5, &n));
    R(nc_inq_dimid(b, "x", &n));
    ints("x from b", &n, 1);
    R(nc_inq_dimid(c, "t", &n));
    ints("t from c", &n, 1);
    R(nc_def_var(nc, "a", NC_INT, 0, NULL, &v));
    R(nc_def_var(b, "v", NC_INT, 2, (int[]){dt, dx}, &v));
    ints("v", &v, 1);
    R(nc_put_var_int(b, v, ids));
    R(nc_def_var(b, "w", NC_INT, 1, &dy, &v));
    ints("w", &v, 1);
    R(nc_def_var(c, "x", NC_INT, 1, &dx, &v));
    R(nc_def_var(a, "x", NC_DOUBLE, 1, &dy, &v));
    R(nc_def_grp(b, "v", &n));
    R(nc_put_att_text(b, NC_GLOBAL, "note", 2, "ab"));
    R(nc_put_att_text(c, 0, "note", 2, "cd"));
    R(nc_enddef(b));
    R(nc_def_grp(c, "late", &n));
    R(nc_redef(a));
    R(nc_redef(nc));
    R(nc_sync(c));
    R(nc_put_vara_int(b, 0, (size_t[]){0, 0}, (size_t[]){2, 3}, (int[]){1, 2, 3, 4, 5, 6}));
    R(nc_set_fill(a, NC_NOFILL, NULL));
    R(nc_close(a));
    R(nc_close(nc));
    show_file(path);
}

static void renames(void) {
    int nc, a, b, c, v, d;
    R(nc_create("renamed.nc", NC_NETCDF4, &nc));
    R(nc_def_grp(nc, "a", &a));
    R(nc_def_grp(nc, "b", &b));
    R(nc_def_grp(a, "c", &c));
    R(nc_def_dim(a, "x", 2, &d));
    R(nc_def_var(c, "v", NC_INT, 1, &d, &v));
    R(nc_rename_grp(nc, "root"));
    R(nc_rename_grp(a, "b"));
    R(nc_rename_grp(a, "x/y"));
    R(nc_rename_grp(a, "first"));
    R(nc_rename_grp(a, "first"));
    R(nc_enddef(nc));
    R(nc_rename_grp(c, "third"));
    R(nc_put_var_int(c, v, (int[]){5, 6}));
    R(nc_close(nc));
    show_file("renamed.nc");
    R(nc_open("renamed.nc", NC_WRITE, &nc));
    R(nc_inq_grp_full_ncid(nc, "first/third", &c));
    R(nc_rename_grp(c, "a rather longer name than it had before"));
    R(nc_inq_ncid(nc, "b", &b));
    R(nc_def_grp(b, "new", &a));
    R(nc_def_var(a, "v", NC_INT, 0, NULL, &v));
    R(nc_close(nc));
    show_file("renamed.nc");
}

/* More than fits where few do. */
static void many(void) {
    int nc, g, v, d, other;
    char name[60];
    R(nc_create("many.nc", NC_NETCDF4, &nc));
    nc_def_dim(nc, "x", 2, &d);
    int bad = 0;
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "group_%d", i);
        bad += nc_def_grp(nc, name, &g) != 0;
        snprintf(name, sizeof name, "var_%d", i);
        bad += nc_def_var(g, name, NC_INT, 1, &d, &v) != 0;
        bad += nc_put_att_int(g, v, "number", NC_INT, 1, &i) != 0;
        bad += nc_put_var_int(g, v, (int[]){i, i + 1}) != 0;
        bad += nc_def_var(nc, name, NC_INT, 1, &d, &v) != 0;
        snprintf(name, sizeof name, "att_%d", i);
        bad += nc_put_att_text(nc, NC_GLOBAL, name, strlen(name), name) != 0;
        snprintf(name, sizeof name, "dim_%d", i);
        bad += nc_def_dim(nc, name, (size_t)i + 1, &other) != 0;
    }
    ints("bad", &bad, 1);
    R(nc_close(nc));
    show_file("many.nc");
}

int main(void) {
    tree(NC_NETCDF4, "tree_nc4.nc");
    tree(NC_NETCDF4 | NC_CLASSIC_MODEL, "tree_classic.nc");
    tree(0, "tree_cdf1.nc");
    renames();
    many();
    return 0;
}
