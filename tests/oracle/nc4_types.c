/* SPDX-License-Identifier: MIT OR Apache-2.0
 * User-defined types: definitions, and values of them in variables and attributes. */
#include "nc4_write.h"
#include <stddef.h>

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

static void definitions(int flags, const char *path) {
    int nc, g = 0, t = -77, e = -77, o = -77, vl = -77, v, n, dims[2] = {2, 3};
    signed char one = 1, two = 2;
    R(nc_create(path, flags, &nc));
    R(nc_def_compound(nc, sizeof(plain_t) + 8, "plain", &t));
    ints("id", &t, 1);
    R(nc_def_compound(nc, 0, "nothing", &n));
    R(nc_def_compound(nc, 8, "plain", &n));
    R(nc_def_compound(nc, 8, "a/b", &n));
    R(nc_insert_compound(nc, t, "a", offsetof(plain_t, a), NC_BYTE));
    R(nc_insert_compound(nc, t, "x/y", 4, NC_INT));
    R(nc_insert_compound(nc, t, "b", offsetof(plain_t, b), NC_INT));
    /* The reference takes fields with the name or the place of another, or outside of the type, enumerations
     * of what is no integer, and sequences of no type, and fails when the definitions are to be stored. */
    R(nc_insert_compound(nc, 99, "b", 4, NC_INT));
    R(nc_insert_compound(nc, NC_INT, "b", 4, NC_INT));
    R(nc_insert_array_compound(nc, t, "c", offsetof(plain_t, c), NC_DOUBLE, 2, dims));
    R(nc_def_enum(nc, NC_BYTE, "flag", &e));
    R(nc_insert_enum(nc, e, "one", &one));
    R(nc_insert_enum(nc, e, "two", &two));
    R(nc_insert_enum(nc, t, "three", &two));
    R(nc_insert_enum(nc, 99, "three", &two));
    R(nc_insert_compound(nc, e, "field", 0, NC_INT));
    R(nc_def_enum(nc, 99, "no enum", &n));
    R(nc_def_opaque(nc, 11, "lump", &o));
    R(nc_def_opaque(nc, 11, "lump", &n));
    R(nc_def_vlen(nc, "row", NC_INT, &vl));
    R(nc_def_vlen(nc, "rows", vl, &n));
    R(nc_def_vlen(nc, "plains", t, &n));
    R(nc_def_vlen(nc, "words", NC_STRING, &n));
    R(nc_def_var(nc, "v", t, 0, NULL, &v));
    R(nc_def_var(nc, "plain", NC_INT, 0, NULL, &v));
    R(nc_def_grp(nc, "lump", &g));
    show_types(nc);
    R(nc_insert_compound(nc, t, "late", sizeof(plain_t), NC_BYTE));
    R(nc_insert_enum(nc, e, "late", &(signed char){3}));
    R(nc_enddef(nc));
    R(nc_def_opaque(nc, 5, "at once", &n));
    R(nc_close(nc));
    show_file(path);
}

static void values(void) {
    int nc, g, d, t_plain, t_deep, t_enum, t_opaque, t_row, t_rows, t_words, v;
    unsigned char zero = 0, one = 1;
    R(nc_create("values.nc", NC_NETCDF4, &nc));
    nc_def_dim(nc, "x", 3, &d);
    R(nc_def_compound(nc, sizeof(plain_t), "plain", &t_plain));
    R(nc_insert_compound(nc, t_plain, "a", offsetof(plain_t, a), NC_BYTE));
    R(nc_insert_compound(nc, t_plain, "b", offsetof(plain_t, b), NC_INT));
    R(nc_insert_array_compound(nc, t_plain, "c", offsetof(plain_t, c), NC_DOUBLE, 2, (int[]){2, 3}));
    R(nc_def_vlen(nc, "row", NC_INT, &t_row));
    R(nc_def_compound(nc, sizeof(deep_t), "deep", &t_deep));
    R(nc_insert_compound(nc, t_deep, "name", offsetof(deep_t, name), NC_STRING));
    R(nc_insert_compound(nc, t_deep, "list", offsetof(deep_t, list), t_row));
    R(nc_insert_compound(nc, t_deep, "inner", offsetof(deep_t, inner), t_plain));
    R(nc_insert_compound(nc, t_deep, "last", offsetof(deep_t, last), NC_SHORT));
    R(nc_def_enum(nc, NC_UBYTE, "flag", &t_enum));
    R(nc_insert_enum(nc, t_enum, "no", &zero));
    R(nc_insert_enum(nc, t_enum, "yes", &one));
    R(nc_def_opaque(nc, 3, "lump", &t_opaque));
    R(nc_def_vlen(nc, "rows", t_row, &t_rows));
    R(nc_def_grp(nc, "g", &g));
    R(nc_def_vlen(g, "words", NC_STRING, &t_words));

    plain_t plain[3];
    deep_t deep[3];
    int numbers[6] = {1, 2, 3, 4, 5, 6};
    nc_vlen_t row[3] = {{2, numbers}, {0, NULL}, {6, numbers}}, rows[3] = {{3, row}, {0, NULL}, {1, row}};
    char *words[3] = {"alpha", "", NULL};
    nc_vlen_t lists[3] = {{3, words}, {1, words}, {0, NULL}};
    memset(plain, 0, sizeof plain);
    memset(deep, 0, sizeof deep);
    for (int i = 0; i < 3; i++) {
        plain[i].a = (signed char)(i - 1);
        plain[i].b = i * 1000;
        for (int j = 0; j < 6; j++) plain[i].c[j / 3][j % 3] = i + j / 8.;
        deep[i].name = words[i];
        deep[i].list = row[i];
        deep[i].inner = plain[2 - i];
        deep[i].last = (short)(7 * i);
    }
    const struct {
        const char *name;
        nc_type type;
        const void *data;
    } kinds[] = {{"plain", t_plain, plain}, {"deep", t_deep, deep}, {"flag", t_enum, "\1\0\1"}, {"lump", t_opaque, "abcdefghi"},
                 {"row", t_row, row}, {"rows", t_rows, rows}, {"words", t_words, lists}, {"string", NC_STRING, words}};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        char name[30];
        note("%s", kinds[k].name);
        snprintf(name, sizeof name, "v_%s", kinds[k].name);
        R(nc_def_var(g, name, kinds[k].type, 1, &d, &v));
        R(nc_put_att(g, v, "own", kinds[k].type, 3, kinds[k].data));
        R(nc_put_att(g, NC_GLOBAL, name, kinds[k].type, 1, kinds[k].data));
        R(nc_put_var(g, v, kinds[k].data));
        /* The reference takes numbers for values of a user-defined type, and crashes. */
        if (kinds[k].type == NC_STRING) R(nc_put_att_int(g, v, "as ints", kinds[k].type, 1, numbers));
        R(nc_put_var_int(g, v, numbers));
        R(nc_put_var_text(g, v, "abc"));
        snprintf(name, sizeof name, "e_%s", kinds[k].name);
        R(nc_def_var(g, name, kinds[k].type, 1, &d, &v));
        R(nc_put_var1(g, v, (size_t[]){1}, kinds[k].data));
        R(nc_put_vars(g, v, (size_t[]){0}, (size_t[]){2}, (ptrdiff_t[]){2}, kinds[k].data));
        R(nc_put_varm(g, v, (size_t[]){0}, (size_t[]){1}, (ptrdiff_t[]){1}, (ptrdiff_t[]){1}, kinds[k].data));
    }
    R(nc_def_var(g, "numbers", NC_INT, 1, &d, &v));
    R(nc_put_var_string(g, v, (const char **)words));
    R(nc_def_var(g, "letters", NC_CHAR, 1, &d, &v));
    R(nc_put_var_string(g, v, (const char **)words));
    R(nc_close(nc));
    show_file("values.nc");
    R(nc_open("values.nc", NC_WRITE, &nc));
    R(nc_inq_ncid(nc, "g", &g));
    R(nc_inq_varid(g, "v_deep", &v));
    deep_t back;
    if (R(nc_get_var1(g, v, (size_t[]){2}, &back))) exit(3);
    note("%s %zu %d %g %d", back.name ? back.name : "(null)", back.list.len, back.inner.b, back.inner.c[1][1], back.last);
    R(nc_put_var1(g, v, (size_t[]){0}, &back));
    R(nc_reclaim_data(nc, t_deep, &back, 1));
    R(nc_inq_varid(g, "v_string", &v));
    R(nc_put_var1_string(g, v, (size_t[]){2}, (const char *[]){"replaced"}));
    R(nc_close(nc));
    show_file("values.nc");
}

/* Attributes of user-defined types from file to file: a type that is alike is found by its name. */
static void copies(void) {
    int in, out, g_in, g, t;
    unsigned char zero = 0, one = 1;
    R(nc_open("values.nc", NC_NOWRITE, &in));
    R(nc_inq_ncid(in, "g", &g_in));
    R(nc_create("copies.nc", NC_NETCDF4, &out));
    R(nc_def_grp(out, "h", &g));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_flag", out, NC_GLOBAL));
    R(nc_def_enum(g, NC_UBYTE, "flag", &t));
    R(nc_insert_enum(g, t, "no", &zero));
    R(nc_insert_enum(g, t, "yes", &one));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_flag", g, NC_GLOBAL));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_flag", out, NC_GLOBAL));
    R(nc_def_opaque(out, 4, "lump", &t));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_lump", out, NC_GLOBAL));
    R(nc_def_opaque(g, 3, "other", &t));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_lump", out, NC_GLOBAL));
    R(nc_def_vlen(out, "row", NC_INT, &t));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_row", g, NC_GLOBAL));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_string", g, NC_GLOBAL));
    R(nc_copy_att(g_in, NC_GLOBAL, "v_deep", g, NC_GLOBAL));
    R(nc_close(out));
    R(nc_close(in));
    show_file("copies.nc");
}

int main(void) {
    definitions(NC_NETCDF4, "types.nc");
    definitions(NC_NETCDF4 | NC_CLASSIC_MODEL, "types_classic.nc");
    definitions(0, "types_cdf1.nc");
    values();
    copies();
    return 0;
}
