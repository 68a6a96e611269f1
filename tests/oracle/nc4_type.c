/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Types of a netCDF-4 file open for reading. */
#include "nc4_tree.h"

static void all_of_type(int nc, int t) {
    char name[NC_MAX_NAME + 1];
    size_t size = 77, n = 77;
    int base = -77, class = -77, id = -77, ndims = -77, dims[8];
    note("type %d", t);
    poison(name);
    R(nc_inq_type(nc, t, name, &size));
    text("name", name, 12);
    sizes("size", &size, 1);
    R(nc_inq_type(nc, t, NULL, NULL));
    poison(name);
    size = 77;
    R(nc_inq_user_type(nc, t, name, &size, &base, &n, &class));
    text("name", name, 12);
    note("%zu %d %zu %d", size, base, n, class);
    R(nc_inq_user_type(nc, t, NULL, NULL, NULL, NULL, NULL));
    poison(name);
    size = n = 77;
    R(nc_inq_compound(nc, t, name, &size, &n));
    text("name", name, 12);
    note("%zu %zu", size, n);
    R(nc_inq_compound(nc, t, NULL, NULL, NULL));
    R(nc_inq_compound_name(nc, t, name));
    R(nc_inq_compound_size(nc, t, &size));
    R(nc_inq_compound_nfields(nc, t, &n));
    /* The reference crashes on the fields of a type without fields. */
    int has_fields = class != NC_VLEN && class != NC_OPAQUE && class != NC_ENUM;
    for (int f = -1; f < 5; f++) {
        size = 77, base = ndims = -77;
        poison(name);
        R(nc_inq_enum_member(nc, t, f, name, &size));
        text("name", name, 12);
        bytes("value", &size, 8);
        R(nc_inq_enum_member(nc, t, f, NULL, NULL));
        if (!has_fields) continue;
        poison(name);
        poison(dims);
        R(nc_inq_compound_field(nc, t, f, name, &size, &base, &ndims, dims));
        text("name", name, 12);
        note("%zu %d %d", size, base, ndims);
        ints("dims", dims, 3);
        R(nc_inq_compound_field(nc, t, f, NULL, NULL, NULL, NULL, NULL));
        R(nc_inq_compound_fieldname(nc, t, f, name));
        R(nc_inq_compound_fieldoffset(nc, t, f, &size));
        R(nc_inq_compound_fieldtype(nc, t, f, &base));
        R(nc_inq_compound_fieldndims(nc, t, f, &ndims));
        poison(dims);
        R(nc_inq_compound_fielddim_sizes(nc, t, f, dims));
        ints("dims", dims, 3);
    }
    static const char *const fields[] = {"a", "b", "c", "d", "", "last", "list"};
    for (size_t i = 0; i < COUNT(fields) && has_fields; i++) {
        id = -77;
        R(nc_inq_compound_fieldindex(nc, t, fields[i], &id));
        note("%s %d", fields[i], id);
        R(nc_inq_compound_fieldindex(nc, t, fields[i], NULL));
    }
    poison(name);
    size = 77, base = -77;
    R(nc_inq_vlen(nc, t, name, &size, &base));
    text("name", name, 12);
    note("%zu %d", size, base);
    R(nc_inq_vlen(nc, t, NULL, NULL, NULL));
    poison(name);
    size = n = 77, base = -77;
    R(nc_inq_enum(nc, t, name, &base, &size, &n));
    text("name", name, 12);
    note("%d %zu %zu", base, size, n);
    R(nc_inq_enum(nc, t, NULL, NULL, NULL, NULL));
    static const long long values[] = {0, 1, 2, 200, 256, -1, -56};
    for (size_t i = 0; i < COUNT(values); i++) {
        poison(name);
        R(nc_inq_enum_ident(nc, t, values[i], name));
        text("ident", name, 12);
        R(nc_inq_enum_ident(nc, t, values[i], NULL));
    }
    poison(name);
    size = 77;
    R(nc_inq_opaque(nc, t, name, &size));
    text("name", name, 12);
    sizes("size", &size, 1);
    R(nc_inq_opaque(nc, t, NULL, NULL));
}

/* Of paths, only those that lead nowhere: the reference finds a type by its path, but does not say
 * which, and none of the root group. */
static void by_name(int nc) {
    static const char *const names[] = {"plain_t", "in_t", "g2/in_t", "/g1/in_t", "int",
                                        "string", "", "none", "/none/none", "char", "undefined",
                                        "INT", "ubyte", "/g1/g2/", "flag_t", "ints_t"};
    note("id %x", nc);
    for (size_t i = 0; i < COUNT(names); i++) {
        int type = -77;
        R(nc_inq_typeid(nc, names[i], &type));
        note("%s: %d", names[i], type);
        R(nc_inq_typeid(nc, names[i], NULL));
    }
}

static void equal(int nc1, int nc2) {
    for (int a = -1; a < 41; a++)
        for (int b = -1; b < 41; b++) {
            if ((a > 13 && a < 31) || (b > 13 && b < 31)) continue;
            int same = -77;
            int code = nc_inq_type_equal(nc1, a, nc2, b, &same);
            if (code || same) note("%d %d: %d %d", a, b, code, same);
        }
    R(nc_inq_type_equal(nc1, 32, nc2, 32, NULL));
    R(nc_inq_type_equal(nc1, 99, nc2, 32, NULL));
}

/* In a file open for reading the reference accepts definitions of types, which then come to nothing;
 * only those that it refuses are made. */
static void changes(int nc, int strict) {
    int t = -77;
    if (strict) {
        R(nc_def_compound(nc, 8, "c", &t));
        R(nc_def_opaque(nc, 8, "c", &t));
        R(nc_def_vlen(nc, "v", NC_INT, &t));
        R(nc_def_enum(nc, NC_INT, "e", &t));
    }
    R(nc_insert_compound(nc, 32, "f", 0, NC_INT));
    R(nc_insert_compound(nc, 99, "f", 0, NC_INT));
    R(nc_insert_array_compound(nc, 32, "f", 0, NC_INT, 1, &t));
    R(nc_insert_enum(nc, 33, "f", &t));
    nc_vlen_t vl = {0, NULL};
    int some[3] = {1, 2, 3};
    R(nc_put_vlen_element(nc, 35, &vl, 3, some));
    note("%zu", vl.len);
    size_t len = 77;
    nc_vlen_t own = {3, some};
    int out[4];
    poison(out);
    R(nc_get_vlen_element(nc, 35, &own, &len, out));
    ints("out", out, 4);
    sizes("len", &len, 1);
    R(nc_get_vlen_element(nc, 99, &own, &len, out));
    R(nc_get_vlen_element(nc, 32, &own, &len, out));
    R(nc_put_vlen_element(nc, 99, &vl, 3, some));
    R(nc_put_vlen_element(nc, 32, &vl, 3, some));
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    int nc, strict, g, g3;
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    R(nc_open("strict.nc", NC_NOWRITE, &strict));
    g = group_at(nc, "g1", "g2", NULL);
    g3 = group_at(nc, "g1", "g2", "g3");
    static const int codes[] = {-1, 0, 1, 2, 4, 6, 11, 12, 13, 31, 32, 33, 34, 35, 36, 37, 38, 39, 99};
    for (size_t i = 0; i < COUNT(codes); i++) {
        all_of_type(nc, codes[i]);
        all_of_type(g, codes[i]);
    }
    for (size_t i = 8; i < 12; i++) {
        all_of_type(strict, codes[i]);
        all_of_type(nc + 77, codes[i]);
        all_of_type(strict + 0x10000, codes[i]);
    }
    by_name(nc);
    by_name(g);
    by_name(g3);
    by_name(strict);
    by_name(nc + 77);
    equal(nc, nc);
    equal(nc, g);
    equal(nc, strict);
    equal(strict, nc);
    changes(nc, 0);
    changes(strict, 1);
    R(nc_close(nc));
    R(nc_close(strict));
    return 0;
}
