/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * edit KIND FILE...: changes files in place, whatever is in them. Calls that fail are printed, and
 * the work goes on; two files that hold the same must be changed in the same way. The kinds:
 *   append      records, at the end and past it
 *   overwrite   all data there is
 *   define      a dimension, variables, a type, a group, attributes
 *   attributes  each object's: overwritten with another type, deleted, and a dozen new ones
 *   rename      attributes, groups, and dimensions and variables that are not coordinates
 *   rename-safe attributes and groups: netCDF-C breaks files with the others */
#include "cases.h"

#define TRY(call)                                              \
    do {                                                       \
        int code_ = (call);                                    \
        if (code_) printf("%s -> %d\n", #call, code_);         \
    } while (0)

static int is_unlimited(int nc, int id) {
    int n = 0, ids[NC_MAX_DIMS];
    /* Those of the groups above as well. */
    for (int at = nc, code = 0; !code; code = nc_inq_grp_parent(at, &at)) {
        nc_inq_unlimdims(at, &n, ids);
        for (int i = 0; i < n; i++)
            if (ids[i] == id) return 1;
    }
    return 0;
}

/* Whether a variable and a dimension of this group share a name. */
static int has_both(int nc, const char *name) {
    int v, d, n, ids[NC_MAX_DIMS];
    if (nc_inq_varid(nc, name, &v) || nc_inq_dimid(nc, name, &d)) return 0;
    nc_inq_dimids(nc, &n, ids, 0);
    for (int i = 0; i < n; i++)
        if (ids[i] == d) return 1;
    return 0;
}

/* New values in a block; of types that are no numbers, a copy of the first element. */
static void put_block(int nc, int v, int rank, const size_t *start, const size_t *count, unsigned seed) {
    nc_type type;
    size_t size, n = 1, zero[NC_MAX_VAR_DIMS] = {0}, ones[NC_MAX_VAR_DIMS];
    for (int d = 0; d < rank; d++) n *= count[d], ones[d] = 1;
    nc_inq_vartype(nc, v, &type);
    if (type <= NC_STRING) {
        fill_block(nc, v, start, count, seed);
        return;
    }
    nc_inq_type(nc, type, NULL, &size);
    char *one = calloc(1, size), *all = calloc(n + 1, size);
    int code = nc_get_vara(nc, v, zero, ones, one);
    if (code == NC_NOERR) {
        for (size_t i = 0; i < n; i++) memcpy(all + i * size, one, size);
        TRY(nc_put_vara(nc, v, start, count, all));
    } else {
        printf("nothing to copy: %d\n", code);
    }
    free(one);
    free(all);
}

static void put_data(int nc, int appending) {
    int nvars, rank, dims[NC_MAX_VAR_DIMS];
    nc_inq_nvars(nc, &nvars);
    for (int v = 0; v < nvars; v++) {
        size_t start[NC_MAX_VAR_DIMS] = {0}, count[NC_MAX_VAR_DIMS] = {0}, n = 1;
        int unlimited = 0;
        nc_inq_var(nc, v, NULL, NULL, &rank, dims, NULL);
        for (int d = 0; d < rank; d++) {
            nc_inq_dimlen(nc, dims[d], &count[d]);
            if (appending && is_unlimited(nc, dims[d])) unlimited = 1, start[d] = count[d] + (size_t)v % 2, count[d] = 1;
            n *= count[d];
        }
        if (n == 0 || n > 2000000 || (appending && !unlimited)) continue;
        put_block(nc, v, rank, start, count, (unsigned)v + 1000);
    }
}

static void change_attributes(int nc, int v) {
    int n = 0;
    char name[NC_MAX_NAME + 1];
    if (v == NC_GLOBAL) nc_inq_natts(nc, &n);
    else nc_inq_varnatts(nc, v, &n);
    if (n > 1 && !nc_inq_attname(nc, v, 1, name) && strcmp(name, "_FillValue")) TRY(nc_del_att(nc, v, name));
    if (n > 0 && !nc_inq_attname(nc, v, 0, name) && strcmp(name, "_FillValue"))
        TRY(nc_put_att_double(nc, v, name, NC_DOUBLE, 5, (double[]){1, 2, 3, 4, 5.5}));
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "new attribute %d", i);
        TRY(nc_put_att_text(nc, v, name, (size_t)i * 9, "a text that gets longer from one attribute to the next, and ends after the hundredth letter, so far."));
    }
    if (n > 150) {
        /* So many that others edit their list where it is. */
        for (int i = 0; i < 60; i++) {
            if (nc_inq_attname(nc, v, 2 * i + 3, name)) continue;
            if (i % 3 == 0) TRY(nc_del_att(nc, v, name));
            if (i % 3 == 1) TRY(nc_put_att_int(nc, v, name, NC_SHORT, 3, (int[]){i, 2, 3}));
            snprintf(name, sizeof name, "one of many %d", i);
            TRY(nc_put_att_int(nc, v, name, NC_SHORT, 3, (int[]){i, 2, 3}));
        }
    }
    snprintf(name, sizeof name, "new numbers");
    TRY(nc_put_att_int(nc, v, name, NC_SHORT, 3, (int[]){1, 2, 3}));
}

static void attributes(int nc) {
    int nvars;
    change_attributes(nc, NC_GLOBAL);
    nc_inq_nvars(nc, &nvars);
    for (int v = 0; v < nvars; v++) change_attributes(nc, v);
}

static void define(int nc) {
    int format, d, u, v, old[NC_MAX_DIMS], n = 0, g, type;
    nc_inq_format(nc, &format);
    nc_inq_dimids(nc, &n, old, 0);
    if (nc_inq_dimid(nc, "new_dim", &d) == NC_NOERR) return;
    TRY(nc_redef(nc));
    MUST(nc_def_dim(nc, "new_dim", 3, &d));
    int deflated = var(nc, "new deflated", NC_FLOAT, d, d), coordinate = var(nc, "new_dim", NC_DOUBLE, d), scalar = var_(nc, "new scalar", NC_INT, NULL, 0);
    TRY(nc_def_var_deflate(nc, deflated, 1, 1, 3));
    text_att(nc, deflated, "units", "m");
    text_att(nc, NC_GLOBAL, "new", "by an edit");
    for (int i = 0; i < n && i < 3; i++) {
        size_t len;
        char name[40];
        nc_inq_dimlen(nc, old[i], &len);
        if (len > 100000) continue;
        snprintf(name, sizeof name, "new user of dim %d", i);
        v = is_unlimited(nc, old[i]) ? var(nc, name, NC_SHORT, old[i], d) : var(nc, name, NC_INT, d, old[i]);
    }
    TRY(nc_enddef(nc));
    fill_all(nc, deflated, 1);
    fill_all(nc, coordinate, 2);
    fill_all(nc, scalar, 3);
    if (format != NC_FORMAT_NETCDF4) return;
    MUST(nc_def_grp(nc, "new group", &g));
    MUST(nc_def_dim(g, "endless", NC_UNLIMITED, &u));
    v = var(g, "records", NC_STRING, u, d);
    fill_block(g, v, AT(0, 0), AT(2, 3), 4);
    MUST(nc_def_enum(g, NC_BYTE, "new type", &type));
    TRY(nc_insert_enum(g, type, "yes", "\1"));
    v = var(g, "typed", type, d);
    TRY(nc_put_var(g, v, "\1\1\1"));
    text_att(g, v, "a", "b");
}

static void renames(int nc, int safe) {
    int nvars, ndims, ids[NC_MAX_DIMS];
    char name[NC_MAX_NAME + 1], longer[NC_MAX_NAME + 40];
    nc_inq_nvars(nc, &nvars);
    nc_inq_dimids(nc, &ndims, ids, 0);
    TRY(nc_redef(nc));
    for (int v = NC_GLOBAL; v < nvars; v++)
        if (!nc_inq_attname(nc, v, 0, name) && strcmp(name, "_FillValue") && strlen(name) < 200) {
            snprintf(longer, sizeof longer, "%s, renamed", name);
            TRY(nc_rename_att(nc, v, name, longer));
        }
    for (int v = 0; v < nvars && !safe; v += 2) {
        nc_inq_varname(nc, v, name);
        if (has_both(nc, name) || strlen(name) > 200) continue;
        snprintf(longer, sizeof longer, "%s, renamed", name);
        TRY(nc_rename_var(nc, v, longer));
    }
    for (int i = 1; i < ndims && !safe; i += 2) {
        nc_inq_dimname(nc, ids[i], name);
        if (has_both(nc, name) || strlen(name) > 200) continue;
        snprintf(longer, sizeof longer, "%s, renamed", name);
        TRY(nc_rename_dim(nc, ids[i], longer));
    }
    TRY(nc_enddef(nc));
}

static void all(int nc, const char *kind) {
    int n = 0;
    if (!strcmp(kind, "append")) put_data(nc, 1);
    if (!strcmp(kind, "overwrite")) put_data(nc, 0);
    if (!strcmp(kind, "attributes")) attributes(nc);
    if (!strncmp(kind, "rename", 6)) renames(nc, !strcmp(kind, "rename-safe"));
    nc_inq_grps(nc, &n, NULL);
    int *ids = calloc((size_t)n + 1, sizeof *ids);
    nc_inq_grps(nc, NULL, ids);
    for (int i = 0; i < n; i++) {
        all(ids[i], kind);
        if (!strncmp(kind, "rename", 6) && i % 3 == 1) {
            char name[60];
            snprintf(name, sizeof name, "renamed group %d", i);
            TRY(nc_rename_grp(ids[i], name));
        }
    }
    free(ids);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 2; i < argc; i++) {
        int nc, code = nc_open(argv[i], NC_WRITE, &nc), format;
        if (code) {
            printf("!open: %d\n", code);
            return 1;
        }
        if (!strcmp(argv[1], "define")) define(nc);
        nc_inq_format(nc, &format);
        int classic = format == NC_FORMAT_NETCDF4_CLASSIC && !strcmp(argv[1], "attributes");
        if (classic) TRY(nc_redef(nc));
        all(nc, argv[1]);
        if (classic) TRY(nc_enddef(nc));
        TRY(nc_close(nc));
    }
    return 0;
}
