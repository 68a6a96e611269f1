/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Variables: definitions, inquiries, renames, fill settings. */
#include "harness.h"

static const nc_type TYPES[] = {NC_NAT, NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE,
                                NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64, NC_STRING, 13, 40, -1};

static void inquiries(int nc) {
    static const int ids[] = {-2, -1, 0, 1, 2, 5, 99};
    for (size_t i = 0; i < COUNT(ids); i++) {
        int v = ids[i], nd = -77, na = -77, dims[NC_MAX_VAR_DIMS], fill = -77;
        nc_type type = -77;
        char name[NC_MAX_NAME + 1];
        double value = 77;
        note("var %d", v);
        poison(name);
        poison(dims);
        R(nc_inq_var(nc, v, name, &type, &nd, dims, &na));
        note("type %d nd %d na %d", type, nd, na);
        text("name", name, 20);
        ints("dims", dims, 4);
        R(nc_inq_var(nc, v, NULL, NULL, NULL, NULL, NULL));
        poison(name);
        R(nc_inq_varname(nc, v, name));
        text("name", name, 20);
        type = -77;
        R(nc_inq_vartype(nc, v, &type));
        nd = na = -77;
        poison(dims);
        R(nc_inq_varndims(nc, v, &nd));
        R(nc_inq_vardimid(nc, v, dims));
        R(nc_inq_varnatts(nc, v, &na));
        note("type %d nd %d na %d", type, nd, na);
        ints("dims", dims, 4);
        R(nc_inq_var_fill(nc, v, &fill, &value));
        ints("no fill", &fill, 1);
        bytes("value", &value, sizeof value);
        R(nc_inq_var_fill(nc, v, NULL, NULL));
    }
    static const char *const names[] = {"v1", "", "nope", "a/b", "V1"};
    for (size_t i = 0; i < COUNT(names); i++) {
        int id = -77;
        note("name %s", names[i]);
        R(nc_inq_varid(nc, names[i], &id));
        ints("id", &id, 1);
    }
}

static void fills(int nc, int *dims) {
    static const long long value = 0x0102030405060708;
    for (nc_type t = NC_BYTE; t <= NC_UINT64; t++) {
        int v = -77, no_fill = -77;
        char name[40];
        unsigned char got[8];
        snprintf(name, sizeof name, "fill%d", t);
        if (nc_def_var(nc, name, t, 2, dims, &v) != NC_NOERR) continue;
        note("type %d", t);
        poison(got);
        R(nc_inq_var_fill(nc, v, &no_fill, got));
        bytes("default", got, 8);
        ints("no fill", &no_fill, 1);
        R(nc_def_var_fill(nc, v, NC_NOFILL, NULL));
        R(nc_inq_var_fill(nc, v, &no_fill, got));
        ints("no fill", &no_fill, 1);
        R(nc_def_var_fill(nc, v, NC_FILL, &value));
        poison(got);
        R(nc_inq_var_fill(nc, v, &no_fill, got));
        bytes("value", got, 8);
        ints("no fill", &no_fill, 1);
        R(nc_def_var_fill(nc, v, NC_NOFILL, &value));
        R(nc_inq_var_fill(nc, v, &no_fill, got));
        ints("no fill", &no_fill, 1);
        R(nc_def_var_fill(nc, v, 77, NULL));
        R(nc_inq_var_fill(nc, v, &no_fill, got));
        ints("no fill", &no_fill, 1);
        R(nc_def_var_fill(nc, v, NC_FILL, NULL));
        int natts = -77;
        R(nc_inq_varnatts(nc, v, &natts));
        ints("natts", &natts, 1);
    }
    R(nc_def_var_fill(nc, -1, NC_FILL, &value));
    R(nc_def_var_fill(nc, 99, NC_FILL, &value));
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        int nc, x, y, t, v = -77, dims[NC_MAX_VAR_DIMS + 2];
        long long value = 5;
        char *path = path_of("var", FORMATS[f].name);
        note("format %s", FORMATS[f].name);
        R(nc_create(path, FORMATS[f].flags, &nc));
        inquiries(nc);
        R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
        R(nc_def_dim(nc, "x", 3, &x));
        R(nc_def_dim(nc, "y", 2, &y));
        for (size_t i = 0; i < COUNT(TYPES); i++) {
            char name[40];
            snprintf(name, sizeof name, "v%zu", i);
            v = -77;
            R(nc_def_var(nc, name, TYPES[i], 0, NULL, &v));
            note("%s type %d id %d", name, TYPES[i], v);
        }
        v = -77;
        R(nc_def_var(nc, "v1", NC_INT, 0, NULL, &v));
        R(nc_def_var(nc, "", NC_INT, 0, NULL, &v));
        R(nc_def_var(nc, "a/b", NC_INT, 0, NULL, &v));
        R(nc_def_var(nc, "neg", NC_INT, -1, &x, &v));
        R(nc_def_var(nc, "scalar", NC_INT, 0, NULL, NULL));
        R(nc_def_var(nc, "tx", NC_INT, 2, (int[]){t, x}, &v));
        R(nc_def_var(nc, "xt", NC_INT, 2, (int[]){x, t}, &v));
        R(nc_def_var(nc, "tt", NC_INT, 2, (int[]){t, t}, &v));
        R(nc_def_var(nc, "xx", NC_INT, 2, (int[]){x, x}, &v));
        R(nc_def_var(nc, "bad", NC_INT, 2, (int[]){x, 99}, &v));
        R(nc_def_var(nc, "bad", NC_INT, 1, (int[]){-1}, &v));
        R(nc_def_var(nc, "bad", 99, 1, (int[]){-1}, &v));
        R(nc_def_var(nc, "bad/name", 99, 1, (int[]){-1}, &v));
        R(nc_def_var(nc, "v1", NC_INT, 1, (int[]){-1}, &v));
        for (size_t i = 0; i < COUNT(dims); i++) dims[i] = y;
        for (int n = 10; n <= 30; n += 10) R(nc_def_var(nc, n == 10 ? "r10" : n == 20 ? "r20" : "r30", NC_BYTE, n, dims, &v));
        R(nc_def_var(nc, "toomany", NC_BYTE, NC_MAX_VAR_DIMS + 1, dims, &v));
        dims[0] = t;
        dims[1] = x;
        fills(nc, dims);
        inquiries(nc);
        R(nc_rename_var(nc, 0, "v1"));
        R(nc_rename_var(nc, 0, "first"));
        R(nc_rename_var(nc, 0, "a much longer name than before"));
        R(nc_rename_var(nc, 0, "v1"));
        R(nc_rename_var(nc, 0, "a/b"));
        R(nc_rename_var(nc, 0, ""));
        R(nc_rename_var(nc, -1, "q"));
        R(nc_rename_var(nc, 99, "q"));
        R(nc_enddef(nc));
        R(nc_def_var(nc, "late", NC_INT, 0, NULL, &v));
        R(nc_def_var_fill(nc, 0, NC_NOFILL, NULL));
        R(nc_def_var_fill(nc, 0, NC_FILL, &value));
        R(nc_rename_var(nc, 0, "w"));
        R(nc_rename_var(nc, 0, "longer name"));
        R(nc_rename_var(nc, 0, "v2"));
        R(nc_rename_var(nc, 0, "z"));
        inquiries(nc);
        R(nc_close(nc));
        R(nc_open(path, NC_NOWRITE, &nc));
        inquiries(nc);
        R(nc_def_var(nc, "q", NC_INT, 0, NULL, &v));
        R(nc_rename_var(nc, 0, "q"));
        R(nc_def_var_fill(nc, 0, NC_FILL, &value));
        R(nc_close(nc));
        remove(path);
    }
    return 0;
}
