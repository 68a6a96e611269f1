/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Data of a netCDF-4 file open for reading. */
#include "nc4_tree.h"

enum { ROOM = 64 };

#define ALL_OF(suffix, ctype, format, shown)                                  \
    {                                                                         \
        ctype out[ROOM];                                                      \
        poison(out);                                                          \
        if (values_count(R(nc_get_var_##suffix(nc, v, out)), type)) {         \
            printf("   " #suffix " =");                                       \
            for (int k = 0; k < 22; k++) printf(" " format, (shown)out[k]);   \
            putchar('\n');                                                    \
        }                                                                     \
    }

static int id_of(int nc, const char *name) {
    int v = -77;
    if (nc_inq_varid(nc, name, &v)) note("no %s", name);
    return v;
}

static void numbers(int nc, const char *name) {
    int v = id_of(nc, name);
    char out[ROOM];
    int type = 0;
    note("%s", name);
    nc_inq_vartype(nc, v, &type);
    NUMERIC_FAMILIES(ALL_OF)
    poison(out);
    R(nc_get_var_text(nc, v, out));
    text("text", out, 22);
    char *strings[ROOM];
    memset(strings, 0, sizeof strings);
    int code = R(nc_get_var_string(nc, v, strings));
    if (!code && type == NC_STRING) {
        for (int k = 0; k < 5; k++) text("string", strings[k] ? strings[k] : "(null)", 30);
        R(nc_free_string(5, strings));
    }
}

/* One variable of rank 2 through every shape of call, wrong ones included. */
static void shapes(int nc, const char *name) {
    static const struct {
        size_t start[2], count[2];
        ptrdiff_t stride[2];
    } asked[] = {{{0, 0}, {3, 4}, {1, 1}}, {{1, 1}, {2, 2}, {1, 2}}, {{0, 0}, {2, 2}, {2, 3}}, {{3, 0}, {1, 1}, {1, 1}},
                 {{3, 0}, {0, 1}, {1, 1}}, {{4, 0}, {0, 1}, {1, 1}}, {{0, 4}, {1, 0}, {1, 1}}, {{0, 4}, {1, 1}, {1, 1}},
                 {{0, 5}, {1, 1}, {1, 1}}, {{2, 2}, {2, 1}, {1, 1}}, {{0, 0}, {1, 5}, {1, 1}}, {{0, 0}, {2, 2}, {0, 1}},
                 {{0, 0}, {2, 2}, {-1, 1}}, {{0, 0}, {2, 2}, {3, 1}}, {{0, 0}, {0, 0}, {1, 1}}, {{0, 3}, {3, 1}, {1, 7}},
                 {{0, 0}, {1, 2}, {1, 0x7fffffff}}, {{9, 9}, {1, 1}, {0, 0}}};
    static const ptrdiff_t maps[][2] = {{4, 1}, {1, 3}, {2, 1}, {1, 1}, {8, 2}};
    int v = id_of(nc, name), out[ROOM];
    double d[ROOM];
    note("%s", name);
    for (size_t i = 0; i < COUNT(asked); i++) {
        const size_t *s = asked[i].start, *c = asked[i].count;
        const ptrdiff_t *st = asked[i].stride;
        int unit = st[0] == 1 && st[1] == 1;
        note("%zu,%zu %zu,%zu %td,%td", s[0], s[1], c[0], c[1], st[0], st[1]);
        int code;
        poison(out);
        code = R(nc_get_vara_int(nc, v, s, c, out));
        if (!code) ints("vara", out, 14);
        poison(out);
        code = R(nc_get_vars_int(nc, v, s, c, st, out));
        if (!code) ints("vars", out, 14);
        poison(out);
        code = R(nc_get_var1_int(nc, v, s, out));
        if (!code) ints("var1", out, 2);
        poison(d);
        code = R(nc_get_vara_double(nc, v, s, c, d));
        if (!code) doubles("double", d, 13);
        R(nc_get_vara_text(nc, v, s, c, (char *)out));
        R(nc_get_vara(nc, v, s, c, d));
        for (size_t m = 0; m < COUNT(maps); m++) {
            poison(out);
            code = R(nc_get_varm_int(nc, v, s, c, st, maps[m], out));
            if (!code && (unit || c[0])) ints("varm", out, 24);
        }
        poison(out);
        code = R(nc_get_varm_int(nc, v, s, c, st, NULL, out));
        if (!code) ints("varm", out, 14);
        R(nc_put_vara_int(nc, v, s, c, out));
        R(nc_put_vars_int(nc, v, s, c, st, out));
        R(nc_put_var1_int(nc, v, s, out));
        R(nc_put_vara_text(nc, v, s, c, (char *)out));
        R(nc_put_varm_int(nc, v, s, c, st, maps[0], out));
    }
    poison(out);
    R(nc_get_vara_int(nc, v, NULL, NULL, out));
    R(nc_get_vara_int(nc, v, NULL, asked[0].count, out));
    R(nc_get_vara_int(nc, v, asked[0].start, NULL, out));
    ints("no count", out, 14);
    R(nc_get_vars_int(nc, v, asked[0].start, NULL, NULL, out));
    R(nc_get_vars_int(nc, v, asked[0].start, asked[0].count, NULL, out));
    R(nc_get_vars_int(nc, v, NULL, asked[0].count, NULL, out));
    R(nc_get_var1_int(nc, v, NULL, out));
    R(nc_get_varm_int(nc, v, NULL, asked[0].count, NULL, NULL, out));
    R(nc_get_varm_int(nc, v, asked[0].start, NULL, NULL, NULL, out));
    R(nc_get_varm_int(nc, v, asked[0].start, NULL, NULL, maps[0], out));
}

/* User-defined types and strings, read as what they are. */
static void show(int nc, const char *name, const void *data, size_t n) {
    if (!strcmp(name, "strings") || !strcmp(name, "sparse")) {
        for (size_t k = 0; k < n; k++) text("string", ((char **)data)[k], 30);
    } else if (!strcmp(name, "plains") || !strcmp(name, "plain_fill")) {
        const plain_t *p = data;
        for (size_t k = 0; k < n; k++) note("%d %d %g %g", p[k].a, p[k].b, p[k].c[0][0], p[k].c[1][2]);
    } else if (!strcmp(name, "lists")) {
        const nc_vlen_t *l = data;
        for (size_t k = 0; k < n; k++) ints("list", l[k].p, l[k].len);
    } else if (!strcmp(name, "nests")) {
        const nc_vlen_t *l = data;
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < l[k].len; j++) ints("nest", ((nc_vlen_t *)l[k].p)[j].p, ((nc_vlen_t *)l[k].p)[j].len);
    } else if (!strcmp(name, "deeps")) {
        const deep_t *d = data;
        for (size_t k = 0; k < n; k++) {
            text("name", d[k].name, 30);
            ints("list", d[k].list.p, d[k].list.len);
            note("%d %d %g %d", d[k].inner.a, d[k].inner.b, d[k].inner.c[1][2], d[k].last);
        }
    } else {
        size_t size = 0;
        int type = 0;
        nc_inq_vartype(nc, id_of(nc, name), &type);
        nc_inq_type(nc, type, NULL, &size);
        bytes("value", data, n * size);
    }
}

static void users(int nc, const char *name, size_t len) {
    int v = id_of(nc, name), type = -77;
    _Alignas(8) unsigned char out[1024], copy[1024];
    size_t size = 0;
    note("%s", name);
    R(nc_inq_vartype(nc, v, &type));
    R(nc_inq_type(nc, type, NULL, &size));
    poison(out);
    if (!R(nc_get_var(nc, v, out))) {
        show(nc, name, out, len);
        memset(copy, 0, sizeof copy);
        R(nc_copy_data(nc, type, out, len, copy));
        show(nc, name, copy, len);
        R(nc_reclaim_data(nc, type, copy, len));
        void *all = NULL;
        R(nc_copy_data_all(nc, type, out, len, &all));
        if (all) show(nc, name, all, len);
        R(nc_reclaim_data_all(nc, type, all, len));
        char *dump = NULL;
        R(nc_reclaim_data(nc, type, out, len));
        (void)dump;
    }
    poison(out);
    if (!R(nc_get_vara(nc, v, (size_t[]){1}, (size_t[]){1}, out))) {
        show(nc, name, out, 1);
        R(nc_reclaim_data(nc, type, out, 1));
    }
    poison(out);
    if (!R(nc_get_var1(nc, v, (size_t[]){0}, out))) {
        show(nc, name, out, 1);
        R(nc_reclaim_data(nc, type, out, 1));
    }
    if (len > 2) {
        poison(out);
        if (!R(nc_get_vars(nc, v, (size_t[]){0}, (size_t[]){2}, (ptrdiff_t[]){2}, out))) {
            show(nc, name, out, 2);
            R(nc_reclaim_data(nc, type, out, 2));
        }
        poison(out);
        if (!R(nc_get_varm(nc, v, (size_t[]){0}, (size_t[]){2}, (ptrdiff_t[]){2}, (ptrdiff_t[]){1}, out))) {
            show(nc, name, out, 2);
            R(nc_reclaim_data(nc, type, out, 2));
        }
        poison(out);
        if (!R(nc_get_varm(nc, v, (size_t[]){0}, (size_t[]){2}, NULL, NULL, out))) {
            show(nc, name, out, 2);
            R(nc_reclaim_data(nc, type, out, 2));
        }
    }
    R(nc_get_vara(nc, v, (size_t[]){len}, (size_t[]){1}, out));
    R(nc_get_vara(nc, v, (size_t[]){0}, (size_t[]){len + 1}, out));
    R(nc_put_var(nc, v, out));
    R(nc_put_vara(nc, v, (size_t[]){0}, (size_t[]){1}, out));
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    static const char *const atomic[] = {"v_byte", "v_char", "v_short", "v_int", "v_float", "v_double", "v_ubyte",
                                         "v_ushort", "v_uint", "v_int64", "v_uint64", "x", "scalar", "strings",
                                         "sparse", "flags", "blobs", "plains", "lists"};
    static const struct {
        const char *name;
        size_t len;
    } own[] = {{"strings", 4}, {"sparse", 5}, {"plains", 4}, {"flags", 4}, {"blobs", 4}, {"lists", 4}, {"nests", 2},
               {"deeps", 2}};
    int nc, g1, g2, h, strict, out[ROOM];
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    R(nc_open("strict.nc", NC_NOWRITE, &strict));
    g1 = group_at(nc, "g1", NULL, NULL);
    g2 = group_at(nc, "g1", "g2", NULL);
    h = group_at(nc, "h", NULL, NULL);
    for (size_t i = 0; i < COUNT(atomic); i++) numbers(nc, atomic[i]);
    shapes(nc, "v_int");
    shapes(nc, "v_char");
    shapes(nc, "v_double");
    /* Not of variables that are shorter than their dimensions in two directions: there the
     * reference leaves elements unwritten. */
    shapes(g1, "deflated");
    for (size_t i = 0; i < COUNT(own); i++) users(nc, own[i].name, own[i].len);
    users(g1, "plain_fill", 5);
    users(g2, "inner", 3);
    static const char *const stored[] = {"deflated", "big", "little", "compact", "unfilled", "filled"};
    for (size_t i = 0; i < COUNT(stored); i++) numbers(g1, stored[i]);
    /* The reference quantizes once more when it reads a quantized variable as another type. */
    float quantized[20];
    R(nc_get_var_float(g1, id_of(g1, "quantized"), quantized));
    for (int k = 0; k < 20; k++) note("%.9g", quantized[k]);
    numbers(h, "short_t");
    numbers(h, "no_t");
    numbers(g2, "x");
    numbers(strict, "a");
    numbers(strict, "b");
    numbers(strict, "c");
    static const int ids[] = {-2, -1, 999};
    for (size_t i = 0; i < COUNT(ids); i++) {
        size_t zero[2] = {0, 0}, one[2] = {1, 1};
        ptrdiff_t unit[2] = {1, 1};
        R(nc_get_var_int(nc, ids[i], out));
        R(nc_get_var1_int(nc, ids[i], zero, out));
        R(nc_get_vara_int(nc, ids[i], zero, one, out));
        R(nc_get_vara_int(nc, ids[i], NULL, NULL, out));
        R(nc_get_vars_int(nc, ids[i], zero, one, unit, out));
        R(nc_get_varm_int(nc, ids[i], zero, one, unit, unit, out));
        R(nc_get_var(nc, ids[i], out));
        R(nc_put_var_int(nc, ids[i], out));
        R(nc_put_vara_int(nc, ids[i], zero, one, out));
        R(nc_get_var_int(nc + 44, ids[i], out));
        R(nc_get_vara_int(nc + 44, ids[i], zero, one, out));
    }
    R(nc_get_var_int(nc + 44, 0, out));
    R(nc_get_vara_int(strict, 2, (size_t[]){0}, (size_t[]){0}, NULL));
    R(nc_close(nc));
    R(nc_close(strict));
    return 0;
}
