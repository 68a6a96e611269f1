/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The netCDF-4 files that the nc4_* families read. run.sh runs `program prepare` with the reference
 * before it runs the program on each library, so that both read files of one maker. */
#ifndef ORACLE_NC4_TREE_H
#define ORACLE_NC4_TREE_H

#include "harness.h"
#include <netcdf_filter.h>

typedef struct {
    signed char a;
    int b;
    double c[2][3];
} plain_t;

typedef struct {
    char *name;
    nc_vlen_t list;
    plain_t inner;
    short last;
} deep_t;

#define MUST(call)                                                       \
    do {                                                                 \
        int code_ = (call);                                              \
        if (code_) {                                                     \
            fprintf(stderr, "%s: %s\n", #call, nc_strerror(code_));      \
            exit(4);                                                     \
        }                                                                \
    } while (0)

/* A variable of each atomic type with a record dimension and a fixed one, and its attributes. */
static inline void make_atomic(int nc, int dims[2]) {
    static const char *const names[] = {"", "v_byte", "v_char", "v_short", "v_int", "v_float", "v_double",
                                        "v_ubyte", "v_ushort", "v_uint", "v_int64", "v_uint64"};
    double values[12];
    for (int i = 0; i < 12; i++) values[i] = i * 10 + 1;
    for (int t = NC_BYTE; t <= NC_UINT64; t++) {
        int v;
        size_t start[2] = {0, 0}, count[2] = {3, 4};
        MUST(nc_def_var(nc, names[t], t, 2, dims, &v));
        if (t == NC_CHAR) {
            MUST(nc_put_att_text(nc, v, "own", 5, "hello"));
            MUST(nc_put_vara_text(nc, v, start, count, "abcdefghijkl"));
        } else {
            MUST(nc_put_att_double(nc, v, "own", t, 3, values));
            MUST(nc_put_vara_double(nc, v, start, count, values));
        }
    }
}

static inline void make_tree(void) {
    int nc, g1, g2, g3, h, d_t, d_x, d_y, d_u, d_in, v, dims[4], t_plain, t_deep, t_enum, t_opaque, t_vlen, t_vv, t_in;
    unsigned char flag;
    MUST(nc_create("tree.nc", NC_NETCDF4 | NC_CLOBBER, &nc));
    MUST(nc_def_dim(nc, "t", NC_UNLIMITED, &d_t));
    MUST(nc_def_dim(nc, "x", 4, &d_x));
    MUST(nc_def_dim(nc, "y", 5, &d_y));
    MUST(nc_def_dim(nc, "u", NC_UNLIMITED, &d_u));

    MUST(nc_def_compound(nc, sizeof(plain_t), "plain_t", &t_plain));
    MUST(nc_insert_compound(nc, t_plain, "a", offsetof(plain_t, a), NC_BYTE));
    MUST(nc_insert_compound(nc, t_plain, "b", offsetof(plain_t, b), NC_INT));
    MUST(nc_insert_array_compound(nc, t_plain, "c", offsetof(plain_t, c), NC_DOUBLE, 2, (int[]){2, 3}));
    MUST(nc_def_enum(nc, NC_UBYTE, "flag_t", &t_enum));
    flag = 0;
    MUST(nc_insert_enum(nc, t_enum, "off", &flag));
    flag = 1;
    MUST(nc_insert_enum(nc, t_enum, "on", &flag));
    flag = 200;
    MUST(nc_insert_enum(nc, t_enum, "maybe", &flag));
    MUST(nc_def_opaque(nc, 5, "blob_t", &t_opaque));
    MUST(nc_def_vlen(nc, "ints_t", NC_INT, &t_vlen));
    MUST(nc_def_vlen(nc, "nested_t", t_vlen, &t_vv));
    MUST(nc_def_compound(nc, sizeof(deep_t), "deep_t", &t_deep));
    MUST(nc_insert_compound(nc, t_deep, "name", offsetof(deep_t, name), NC_STRING));
    MUST(nc_insert_compound(nc, t_deep, "list", offsetof(deep_t, list), t_vlen));
    MUST(nc_insert_compound(nc, t_deep, "inner", offsetof(deep_t, inner), t_plain));
    MUST(nc_insert_compound(nc, t_deep, "last", offsetof(deep_t, last), NC_SHORT));

    MUST(nc_def_grp(nc, "g1", &g1));
    MUST(nc_def_grp(nc, "h", &h));
    MUST(nc_def_grp(g1, "g2", &g2));
    MUST(nc_def_grp(g2, "g3", &g3));
    MUST(nc_def_dim(g2, "in", 3, &d_in));
    MUST(nc_def_dim(g2, "x", 7, &v));
    MUST(nc_def_compound(g2, sizeof(int), "in_t", &t_in));
    MUST(nc_insert_compound(g2, t_in, "only", 0, NC_INT));

    dims[0] = d_t, dims[1] = d_x;
    make_atomic(nc, dims);

    MUST(nc_def_var(nc, "x", NC_INT, 1, &d_x, &v));
    MUST(nc_put_var_int(nc, v, (int[]){10, 20, 30, 40}));
    MUST(nc_def_var(nc, "scalar", NC_DOUBLE, 0, NULL, &v));
    MUST(nc_put_var_double(nc, v, (double[]){-2.5}));
    MUST(nc_def_var(nc, "strings", NC_STRING, 1, &d_x, &v));
    MUST(nc_put_att_string(nc, v, "_FillValue", 1, (const char *[]){"nothing"}));
    MUST(nc_put_att_string(nc, v, "many", 3, (const char *[]){"p", "", "qrs"}));
    MUST(nc_put_var_string(nc, v, (const char *[]){"one", "", "drei \xc3\xa4", "a longer text"}));
    MUST(nc_def_var(nc, "sparse", NC_STRING, 1, &d_y, &v));
    MUST(nc_put_var1_string(nc, v, (size_t[]){2}, (const char *[]){"mid"}));

    plain_t p[4];
    memset(p, 0, sizeof p);
    for (int i = 0; i < 4; i++) {
        p[i].a = (signed char)(i - 2), p[i].b = i * 1000;
        for (int k = 0; k < 6; k++) p[i].c[k / 3][k % 3] = i + k / 8.0;
    }
    MUST(nc_def_var(nc, "plains", t_plain, 1, &d_x, &v));
    MUST(nc_put_var(nc, v, p));
    MUST(nc_put_att(nc, v, "sample", t_plain, 2, p + 1));
    MUST(nc_def_var(nc, "flags", t_enum, 1, &d_x, &v));
    MUST(nc_put_var(nc, v, (unsigned char[]){1, 0, 200, 1}));
    MUST(nc_put_att(nc, v, "one_flag", t_enum, 1, (unsigned char[]){200}));
    MUST(nc_def_var(nc, "blobs", t_opaque, 1, &d_x, &v));
    MUST(nc_put_var(nc, v, "abcdefghijklmnopqrst"));
    MUST(nc_put_att(nc, v, "blob", t_opaque, 1, "12345"));
    nc_vlen_t list[4] = {{2, (int[]){7, 8}}, {0, NULL}, {3, (int[]){-1, -2, -3}}, {1, (int[]){99}}};
    MUST(nc_def_var(nc, "lists", t_vlen, 1, &d_x, &v));
    MUST(nc_put_var(nc, v, list));
    MUST(nc_put_att(nc, v, "listed", t_vlen, 3, list));
    nc_vlen_t nested[2] = {{3, list}, {0, NULL}};
    MUST(nc_def_dim(nc, "two", 2, &dims[2]));
    MUST(nc_def_var(nc, "nests", t_vv, 1, &dims[2], &v));
    MUST(nc_put_var(nc, v, nested));
    deep_t deep[2];
    memset(deep, 0, sizeof deep);
    deep[0].name = "first", deep[0].list = list[0], deep[0].inner = p[1], deep[0].last = 11;
    deep[1].name = "", deep[1].list = list[1], deep[1].inner = p[2], deep[1].last = 12;
    MUST(nc_def_var(nc, "deeps", t_deep, 1, &dims[2], &v));
    MUST(nc_put_var(nc, v, deep));
    MUST(nc_put_att(nc, v, "deep_att", t_deep, 1, deep));

    MUST(nc_put_att_text(nc, NC_GLOBAL, "title", 9, "the title"));
    MUST(nc_put_att_text(nc, NC_GLOBAL, "empty_text", 0, ""));
    MUST(nc_put_att_int(nc, NC_GLOBAL, "empty_int", NC_INT, 0, NULL));
    MUST(nc_put_att_string(nc, NC_GLOBAL, "text", 1, (const char *[]){"one string"}));
    MUST(nc_put_att_double(nc, NC_GLOBAL, "large", NC_DOUBLE, 3, (double[]){1e300, -1, 70000}));

    /* Storage of every kind. */
    dims[0] = d_x, dims[1] = d_y;
    MUST(nc_def_var(g1, "deflated", NC_INT, 2, dims, &v));
    MUST(nc_def_var_chunking(g1, v, NC_CHUNKED, (size_t[]){2, 3}));
    MUST(nc_def_var_deflate(g1, v, 1, 1, 5));
    MUST(nc_def_var_fletcher32(g1, v, 1));
    int n20[20];
    for (int i = 0; i < 20; i++) n20[i] = i * i;
    MUST(nc_put_var_int(g1, v, n20));
    MUST(nc_def_var(g1, "big", NC_SHORT, 1, &d_x, &v));
    MUST(nc_def_var_endian(g1, v, NC_ENDIAN_BIG));
    MUST(nc_put_var_int(g1, v, n20));
    MUST(nc_def_var(g1, "little", NC_SHORT, 1, &d_x, &v));
    MUST(nc_def_var_endian(g1, v, NC_ENDIAN_LITTLE));
    MUST(nc_put_var_int(g1, v, n20));
    MUST(nc_def_var(g1, "compact", NC_SHORT, 1, &d_x, &v));
    MUST(nc_def_var_chunking(g1, v, NC_COMPACT, NULL));
    MUST(nc_put_var_int(g1, v, n20));
    MUST(nc_def_var(g1, "unfilled", NC_FLOAT, 1, &d_x, &v));
    MUST(nc_def_var_fill(g1, v, NC_NOFILL, NULL));
    MUST(nc_put_var_int(g1, v, n20));
    MUST(nc_def_var(g1, "filled", NC_FLOAT, 1, &d_x, &v));
    MUST(nc_def_var_fill(g1, v, NC_FILL, (float[]){-5}));
    MUST(nc_def_var(g1, "quantized", NC_FLOAT, 2, dims, &v));
    MUST(nc_def_var_quantize(g1, v, NC_QUANTIZE_BITGROOM, 3));
    MUST(nc_def_var_deflate(g1, v, 0, 1, 1));
    MUST(nc_put_var_int(g1, v, n20));
    MUST(nc_def_var(g1, "plain_fill", t_plain, 1, &d_y, &v));
    MUST(nc_def_var_fill(g1, v, NC_FILL, p + 3));
    MUST(nc_put_var1(g1, v, (size_t[]){1}, p + 2));

    /* Two record dimensions, with variables of different extents. */
    dims[0] = d_t, dims[1] = d_u;
    MUST(nc_def_var(h, "both", NC_INT, 2, dims, &v));
    MUST(nc_put_vara_int(h, v, (size_t[]){0, 0}, (size_t[]){2, 3}, n20));
    MUST(nc_def_var(h, "short_t", NC_INT, 1, &d_t, &v));
    MUST(nc_put_vara_int(h, v, (size_t[]){0}, (size_t[]){1}, n20));
    MUST(nc_def_var(h, "no_t", NC_INT, 1, &d_t, &v));

    dims[0] = d_in;
    MUST(nc_def_var(g2, "inner", t_in, 1, dims, &v));
    MUST(nc_put_var(g2, v, (int[]){5, 6, 7}));
    MUST(nc_def_var(g2, "x", NC_DOUBLE, 1, &d_x, &v));
    MUST(nc_put_att_int(g2, NC_GLOBAL, "in_group", NC_INT, 1, n20 + 3));
    MUST(nc_def_var(g3, "leaf", NC_INT, 1, dims, &v));
    MUST(nc_put_var_int(g3, v, n20));
    MUST(nc_close(nc));

    MUST(nc_create("strict.nc", NC_NETCDF4 | NC_CLASSIC_MODEL | NC_CLOBBER, &nc));
    MUST(nc_def_dim(nc, "t", NC_UNLIMITED, &d_t));
    MUST(nc_def_dim(nc, "x", 3, &d_x));
    dims[0] = d_t, dims[1] = d_x;
    MUST(nc_def_var(nc, "a", NC_DOUBLE, 2, dims, &v));
    MUST(nc_def_var(nc, "b", NC_CHAR, 2, dims, &v));
    MUST(nc_def_var(nc, "c", NC_INT, 1, &d_x, &v));
    MUST(nc_put_att_text(nc, v, "units", 1, "m"));
    MUST(nc_enddef(nc));
    double six[6] = {1, 2, 3, 4, 5, 1e10};
    MUST(nc_put_vara_double(nc, 0, (size_t[]){0, 0}, (size_t[]){2, 3}, six));
    MUST(nc_put_vara_text(nc, 1, (size_t[]){0, 0}, (size_t[]){2, 3}, "abcdef"));
    MUST(nc_put_var_int(nc, 2, (int[]){4, 5, 6}));
    MUST(nc_close(nc));
}

/* The files, where the program is asked to make them; else the answer is 0. */
static inline int prepared(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "prepare")) return 0;
    make_tree();
    return 1;
}

/* Whether values are compared: of a float or double that does not fit an integer, what arrives is
 * undefined in C, and the reference stores whatever the conversion gives. */
static inline int values_count(int code, int type) {
    return code == NC_NOERR || (code == NC_ERANGE && type != NC_FLOAT && type != NC_DOUBLE);
}

/* A group by its path below the root. */
static inline int group_at(int nc, const char *a, const char *b, const char *c) {
    const char *steps[] = {a, b, c};
    for (int i = 0; i < 3 && steps[i]; i++) {
        int next = -1;
        if (nc_inq_grp_ncid(nc, steps[i], &next)) return -1;
        nc = next;
    }
    return nc;
}

#endif
