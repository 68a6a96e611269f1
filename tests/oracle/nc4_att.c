/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Attributes of a netCDF-4 file open for reading. */
#include "nc4_tree.h"

#define GET_ONE(suffix, ctype, format, shown)                                 \
    {                                                                         \
        ctype out[16];                                                        \
        poison(out);                                                          \
        if (values_count(R(nc_get_att_##suffix(nc, v, name, out)), type)) {   \
            printf("   " #suffix " =");                                       \
            for (size_t k = 0; k < 4; k++) printf(" " format, (shown)out[k]); \
            putchar('\n');                                                    \
        }                                                                     \
    }

static void one(int nc, int v, const char *name) {
    int type = -77, id = -77;
    size_t len = 77;
    char out[300];
    note("id %x var %d att %s", nc, v, name);
    R(nc_inq_att(nc, v, name, &type, &len));
    note("type %d len %zu", type, len);
    R(nc_inq_att(nc, v, name, NULL, NULL));
    R(nc_inq_atttype(nc, v, name, &type));
    R(nc_inq_attlen(nc, v, name, &len));
    R(nc_inq_attid(nc, v, name, &id));
    note("number %d", id);
    R(nc_inq_attid(nc, v, name, NULL));
    if (type == NC_INT && name[0] == '_') {
        /* The reference reads these as any type, text included. */
        int number = -77;
        R(nc_get_att_int(nc, v, name, &number));
        return;
    }
    poison(out);
    R(nc_get_att_text(nc, v, name, out));
    text("text", out, 12);
    if (!strcmp(name, "_NCProperties")) return;
    NUMERIC_FAMILIES(GET_ONE)
    if (len < 10) {
        char *strings[10];
        poison(strings);
        int code = R(nc_get_att_string(nc, v, name, strings));
        if (!code && type == NC_STRING) {
            for (size_t k = 0; k < len; k++) text("string", strings[k] ? strings[k] : "(null)", 30);
            R(nc_free_string(len, strings));
        } else if (!code) {
            bytes("string bytes", strings, 4);
        }
    }
}

static void natural(int nc, int v, const char *name) {
    int type = -77;
    size_t len = 77, size = 0;
    _Alignas(8) unsigned char out[400];
    poison(out);
    note("natural: id %x var %d att %s", nc, v, name);
    R(nc_inq_att(nc, v, name, &type, &len));
    if (R(nc_get_att(nc, v, name, out))) return;
    nc_inq_type(nc, type, NULL, &size);
    if (type == NC_STRING) {
        for (size_t k = 0; k < len; k++) text("string", ((char **)out)[k], 30);
    } else if (!strcmp(name, "listed")) {
        for (size_t k = 0; k < len; k++) ints("list", ((nc_vlen_t *)out)[k].p, ((nc_vlen_t *)out)[k].len);
    } else if (!strcmp(name, "deep_att")) {
        deep_t *d = (deep_t *)out;
        text("name", d->name, 30);
        ints("list", d->list.p, d->list.len);
        note("%d %d %g %d", d->inner.a, d->inner.b, d->inner.c[1][2], d->last);
    } else if (!strcmp(name, "sample")) {
        plain_t *p = (plain_t *)out;
        for (size_t k = 0; k < len; k++) note("%d %d %g %g", p[k].a, p[k].b, p[k].c[0][0], p[k].c[1][2]);
    } else {
        bytes("value", out, len * size);
    }
    R(nc_reclaim_data(nc, type, out, len));
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    int nc, g, strict;
    char name[NC_MAX_NAME + 1];
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    R(nc_open("strict.nc", NC_NOWRITE, &strict));
    g = group_at(nc, "g1", "g2", NULL);
    static const char *const global[] = {"title", "empty_text", "empty_int", "text", "large", "none", "", "a/b",
                                         "_NCProperties", "_IsNetcdf4", "_SuperblockVersion", "_Format",
                                         "_nc3_strict", "CLASS", "NAME", "in_group"};
    for (size_t i = 0; i < COUNT(global); i++) {
        one(nc, NC_GLOBAL, global[i]);
        one(g, NC_GLOBAL, global[i]);
        one(strict, NC_GLOBAL, global[i]);
        if (global[i][0] != '_') natural(nc, NC_GLOBAL, global[i]);
    }
    static const struct {
        const char *var, *att;
    } of[] = {{"strings", "many"}, {"strings", "_FillValue"}, {"plains", "sample"}, {"flags", "one_flag"},
              {"blobs", "blob"}, {"lists", "listed"}, {"deeps", "deep_att"}, {"x", "CLASS"}, {"x", "NAME"},
              {"v_byte", "own"}, {"v_char", "own"}, {"v_short", "own"}, {"v_int", "own"}, {"v_float", "own"},
              {"v_double", "own"}, {"v_ubyte", "own"}, {"v_ushort", "own"}, {"v_uint", "own"}, {"v_int64", "own"},
              {"v_uint64", "own"}, {"v_int", "_Netcdf4Dimid"}, {"v_int", "DIMENSION_LIST"}, {"v_int", "_FillValue"},
              {"v_int", "_Netcdf4Coordinates"}, {"scalar", "none"}};
    for (size_t i = 0; i < COUNT(of); i++) {
        int v = -77;
        R(nc_inq_varid(nc, of[i].var, &v));
        one(nc, v, of[i].att);
        natural(nc, v, of[i].att);
    }
    one(nc, 999, "own");
    one(nc, -2, "own");
    one(nc + 55, -1, "title");
    static const int owners[] = {-2, -1, 0, 2, 999};
    for (size_t o = 0; o < COUNT(owners); o++) {
        int n = -77;
        R(nc_inq_varnatts(nc, owners[o], &n));
        ints("natts", &n, 1);
        for (int a = -2; a < 8; a++) {
            poison(name);
            R(nc_inq_attname(nc, owners[o], a, name));
            text("name", name, 12);
            R(nc_inq_attname(nc, owners[o], a, NULL));
        }
        R(nc_inq_att(nc, owners[o], NULL, NULL, NULL));
        R(nc_inq_attid(nc, owners[o], NULL, NULL));
        R(nc_get_att(nc, owners[o], NULL, NULL));
        R(nc_put_att_int(nc, owners[o], "new", NC_INT, 1, &n));
        R(nc_put_att_int(nc, owners[o], "own", NC_INT, 1, &n));
        R(nc_put_att_int(nc, owners[o], "_NCProperties", NC_INT, 1, &n));
        R(nc_put_att_int(nc, owners[o], "CLASS", NC_INT, 1, &n));
        R(nc_put_att_text(nc, owners[o], "new", 1, "x"));
        R(nc_put_att_text(nc, owners[o], "a/b", 1, "x"));
        R(nc_put_att_int(nc, owners[o], "new", 99, 1, &n));
        R(nc_put_att_int(nc, owners[o], "new", NC_CHAR, 1, &n));
        R(nc_put_att_string(nc, owners[o], "new", 1, (const char *[]){"x"}));
        R(nc_put_att(nc, owners[o], "new", 32, 1, &n));
        R(nc_del_att(nc, owners[o], "own"));
        R(nc_del_att(nc, owners[o], "none"));
        R(nc_rename_att(nc, owners[o], "own", "b"));
        R(nc_rename_att(nc, owners[o], "none", "b"));
        R(nc_rename_att(nc, owners[o], "own", "a/b"));
    }
    R(nc_get_att_text(nc, NC_GLOBAL, "empty_text", NULL));
    R(nc_get_att_int(nc, NC_GLOBAL, "empty_int", NULL));
    R(nc_copy_att(nc, NC_GLOBAL, "title", strict, NC_GLOBAL));
    R(nc_copy_att(nc, NC_GLOBAL, "none", strict, NC_GLOBAL));
    int out;
    R(nc_create("copy.nc", NC_CLOBBER, &out));
    R(nc_copy_att(nc, NC_GLOBAL, "title", out, NC_GLOBAL));
    R(nc_copy_att(nc, NC_GLOBAL, "text", out, NC_GLOBAL));
    R(nc_copy_att(nc, NC_GLOBAL, "large", out, NC_GLOBAL));
    R(nc_copy_att(nc, 2, "own", out, NC_GLOBAL));
    int v;
    R(nc_inq_varid(nc, "plains", &v));
    R(nc_copy_att(nc, v, "sample", out, NC_GLOBAL));
    R(nc_copy_att(g, NC_GLOBAL, "in_group", out, NC_GLOBAL));
    R(nc_close(out));
    R(nc_close(nc));
    R(nc_close(strict));
    return 0;
}
