/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Renaming dimensions and variables of netCDF-4 files: what is refused, and what becomes a coordinate
 * variable or ceases to be one. */
#include "nc4_write.h"

static void start(int *nc, int flags, const char *path, int *dims, int *vars) {
    R(nc_create(path, flags, nc));
    R(nc_def_dim(*nc, "t", NC_UNLIMITED, &dims[0]));
    R(nc_def_dim(*nc, "x", 3, &dims[1]));
    R(nc_def_dim(*nc, "y", 2, &dims[2]));
    R(nc_def_var(*nc, "x", NC_FLOAT, 1, &dims[1], &vars[0]));
    R(nc_def_var(*nc, "data", NC_INT, 2, (int[]){dims[0], dims[1]}, &vars[1]));
    R(nc_def_var(*nc, "other", NC_INT, 2, (int[]){dims[2], dims[1]}, &vars[2]));
    R(nc_def_var(*nc, "line", NC_INT, 1, &dims[2], &vars[3]));
    R(nc_put_att_text(*nc, vars[1], "units", 1, "K"));
}

static void fill_in(int nc, const int *vars) {
    R(nc_put_vara_int(nc, vars[1], (size_t[]){0, 0}, (size_t[]){2, 3}, (int[]){1, 2, 3, 4, 5, 6}));
    R(nc_put_var_int(nc, vars[2], (int[]){11, 12, 13, 14, 15, 16}));
    R(nc_put_var_int(nc, vars[3], (int[]){21, 22}));
    R(nc_put_var_float(nc, vars[0], (float[]){.5f, 1.5f, 2.5f}));
}

/* Renames by number: 0 a dimension, 1 a variable. */
static void rename_by(int nc, int plan, const int *dims, const int *vars) {
    switch (plan) {
    case 0: R(nc_rename_dim(nc, dims[2], "z")); break;
    case 1: R(nc_rename_var(nc, vars[1], "temperature")); break;
    case 2: R(nc_rename_var(nc, vars[0], "abscissa")); break;
    case 3: R(nc_rename_dim(nc, dims[1], "lon")); break;
    case 4:
        R(nc_rename_dim(nc, dims[1], "lon"));
        R(nc_rename_var(nc, vars[0], "lon"));
        break;
    case 5:
        R(nc_rename_var(nc, vars[0], "lon"));
        R(nc_rename_dim(nc, dims[1], "lon"));
        break;
    case 6: R(nc_rename_var(nc, vars[3], "y")); break;
    case 7: R(nc_rename_dim(nc, dims[2], "line")); break;
    case 8: R(nc_rename_var(nc, vars[2], "y")); break;
    case 9: R(nc_rename_var(nc, vars[1], "d")); break;
    case 10: R(nc_rename_dim(nc, dims[0], "time")); break;
    }
}

/* Each plan in define mode, in data mode, and in a file that is opened again. */
static void plans(int flags, const char *format) {
    for (int plan = 0; plan < 11; plan++)
        for (int when = 0; when < 3; when++) {
            /* The reference loses a coordinate variable's data, or its scales, when these are renamed
             * in a file that exists. */
            if (when > 0 && plan >= 2 && plan <= 8) continue;
            /* And it cannot close a file of the classic model in which a dimension was renamed. */
            if (when == 2 && (plan == 0 || plan == 10) && flags & NC_CLASSIC_MODEL) continue;
            char path[60];
            int nc, dims[3], vars[4];
            note("plan %d, %s", plan, when == 0 ? "defining" : when == 1 ? "data mode" : "reopened");
            snprintf(path, sizeof path, "plan%d_%d_%s.nc", plan, when, format);
            start(&nc, flags, path, dims, vars);
            if (when == 0) rename_by(nc, plan, dims, vars);
            R(nc_enddef(nc));
            fill_in(nc, vars);
            if (when == 1) {
                R(nc_redef(nc));
                rename_by(nc, plan, dims, vars);
            }
            show_group(nc);
            R(nc_close(nc));
            if (when == 2) {
                R(nc_open(path, NC_WRITE, &nc));
                R(nc_redef(nc));
                rename_by(nc, plan, dims, vars);
                show_group(nc);
                R(nc_close(nc));
            }
            show_file(path);
        }
}

static void refused(int flags, const char *path) {
    int nc, dims[3], vars[4];
    start(&nc, flags, path, dims, vars);
    for (int pass = 0; pass < 2; pass++) {
        R(nc_rename_dim(nc, dims[1], "y"));
        R(nc_rename_dim(nc, dims[1], "x"));
        R(nc_rename_dim(nc, dims[1], "a/b"));
        R(nc_rename_dim(nc, dims[1], ""));
        R(nc_rename_dim(nc, 99, "q"));
        R(nc_rename_dim(nc, -1, "q"));
        R(nc_rename_dim(nc, dims[2], "a longer name"));
        R(nc_rename_dim(nc, dims[2], "y"));
        R(nc_rename_var(nc, vars[1], "other"));
        R(nc_rename_var(nc, vars[1], "data"));
        R(nc_rename_var(nc, vars[1], "a/b"));
        R(nc_rename_var(nc, vars[1], ""));
        R(nc_rename_var(nc, 99, "q"));
        R(nc_rename_var(nc, -1, "q"));
        R(nc_rename_var(nc, vars[1], "a longer name"));
        R(nc_rename_var(nc, vars[1], "data"));
        if (pass == 0) R(nc_enddef(nc));
    }
    show_group(nc);
    R(nc_close(nc));
    R(nc_open(path, NC_NOWRITE, &nc));
    R(nc_rename_dim(nc, 0, "q"));
    R(nc_rename_var(nc, 0, "q"));
    R(nc_rename_att(nc, 1, "units", "q"));
    R(nc_del_att(nc, 1, "units"));
    R(nc_del_att(nc, 1, "none"));
    R(nc_put_att_text(nc, 1, "a/b", 1, "q"));
    R(nc_close(nc));
}

int main(void) {
    for (size_t f = 0; f < COUNT(NC4_FORMATS); f++) {
        refused(NC4_FORMATS[f].flags, path_of("refused", NC4_FORMATS[f].name));
        plans(NC4_FORMATS[f].flags, NC4_FORMATS[f].name);
    }
    return 0;
}
