/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Attributes written to netCDF-4 files: types, conversions, overwriting, deleting, renaming, copies. */
#include "nc4_write.h"

static const double NUMBERS[5] = {1, -2, 3.75, 300, 1e10};

/* Every family of functions with every type of the file. */
static void conversions(int nc, int v) {
    for (nc_type type = 0; type <= NC_STRING; type++) {
        char name[40];
#define PUT(suffix, ctype, format, shown)                                                         \
    {                                                                                             \
        ctype values[5];                                                                          \
        for (int i = 0; i < 5; i++) values[i] = (ctype)(long long)(NUMBERS[i] > 1e5 ? 100 : NUMBERS[i]); \
        /* What does not fit is a question of its own; see `far` below and docs/dev/conversion.md. */ \
        if ((ctype)-1 > 0 || type == NC_UINT) values[1] = 2;                                      \
        snprintf(name, sizeof name, #suffix "_%d", type);                                         \
        R(nc_put_att_##suffix(nc, v, name, type, 5, values));                                     \
        ctype back[5];                                                                            \
        poison(back);                                                                             \
        if (R(nc_get_att_##suffix(nc, v, name, back)) == 0)                                       \
            for (int i = 0; i < 5; i++) note(format, (shown)back[i]);                             \
    }
        NUMERIC_FAMILIES(PUT)
#undef PUT
        snprintf(name, sizeof name, "any_%d", type);
        if (type != NC_STRING) R(nc_put_att(nc, v, name, type, 2, NUMBERS));
        snprintf(name, sizeof name, "far_%d", type);
        R(nc_put_att_double(nc, v, name, type, 5, NUMBERS));
    }
}

static void texts(int nc, int v) {
    const char *strings[] = {"one", "", NULL, "caf\xc3\xa9"};
    R(nc_put_att_text(nc, v, "text", 5, "hello"));
    R(nc_put_att_text(nc, v, "text", 5, "world"));
    R(nc_put_att_text(nc, v, "text", 2, "ab"));
    R(nc_put_att_text(nc, v, "text", 9, "much more"));
    R(nc_put_att_text(nc, v, "empty", 0, ""));
    R(nc_put_att_text(nc, v, "empty null", 0, NULL));
    R(nc_put_att_text(nc, v, "nul", 4, "a\0b\0"));
    R(nc_put_att_string(nc, v, "strings", 4, strings));
    R(nc_put_att_string(nc, v, "one string", 1, strings));
    R(nc_put_att_string(nc, v, "no string", 0, strings));
    R(nc_put_att(nc, v, "through any", NC_STRING, 2, strings));
    R(nc_put_att_int(nc, v, "no int", NC_INT, 0, NULL));
    R(nc_put_att_int(nc, v, "strings", NC_INT, 1, (int[]){5}));
    R(nc_put_att_string(nc, v, "text", 1, strings));
    R(nc_put_att_text(nc, v, "caf\xc3\xa9", 1, "x"));
    R(nc_put_att_text(nc, v, "cafe\xcc\x81", 1, "y"));
    R(nc_put_att_text(nc, v, "a/b", 1, "x"));
    R(nc_put_att_text(nc, v, "", 1, "x"));
    char name[NC_MAX_NAME + 2];
    memset(name, 'n', sizeof name);
    name[NC_MAX_NAME + 1] = 0;
    R(nc_put_att_text(nc, v, name, 1, "x"));
    name[NC_MAX_NAME] = 0;
    R(nc_put_att_text(nc, v, name, 1, "x"));
    for (size_t i = 0; i < 4; i++) {
        static const char *const reserved[] = {"CLASS", "_NCProperties", "_Netcdf4Dimid", "DIMENSION_LIST"};
        R(nc_put_att_text(nc, v, reserved[i], 1, "x"));
        R(nc_del_att(nc, v, reserved[i]));
    }
}

static void changes(int nc, int v) {
    int id = -77;
    for (int i = 0; i < 5; i++) {
        char name[20];
        snprintf(name, sizeof name, "c%d", i);
        R(nc_put_att_int(nc, v, name, NC_INT, 1, &i));
    }
    R(nc_put_att_int(nc, v, "c1", NC_INT, 1, (int[]){77}));
    R(nc_inq_attid(nc, v, "c1", &id));
    ints("id", &id, 1);
    R(nc_put_att_int(nc, v, "c1", NC_SHORT, 1, (int[]){77}));
    R(nc_inq_attid(nc, v, "c1", &id));
    ints("id", &id, 1);
    R(nc_put_att_int(nc, v, "c2", NC_INT, 3, (int[]){7, 8, 9}));
    R(nc_inq_attid(nc, v, "c2", &id));
    ints("id", &id, 1);
    R(nc_rename_att(nc, v, "c3", "renamed"));
    R(nc_rename_att(nc, v, "c3", "again"));
    R(nc_rename_att(nc, v, "c4", "renamed"));
    R(nc_rename_att(nc, v, "c4", "a/b"));
    R(nc_rename_att(nc, v, "c4", "c4"));
    R(nc_del_att(nc, v, "c0"));
    R(nc_del_att(nc, v, "c0"));
    R(nc_inq_attid(nc, v, "renamed", &id));
    ints("id", &id, 1);
    R(nc_put_att_int(nc, v, "c0", NC_INT, 1, (int[]){1}));
}

static void fill_values(int flags, const char *path) {
    int nc, x, v;
    R(nc_create(path, flags, &nc));
    nc_def_dim(nc, "x", 3, &x);
    R(nc_def_var(nc, "i", NC_INT, 1, &x, &v));
    R(nc_put_att_int(nc, v, "_FillValue", NC_INT, 1, (int[]){-5}));
    R(nc_put_att_int(nc, v, "_FillValue", NC_INT, 2, (int[]){-5, 6}));
    /* One of another type is refused, and makes the reference fail at enddef all the same. */
    R(nc_put_att_int(nc, NC_GLOBAL, "_FillValue", NC_INT, 1, (int[]){-5}));
    show_storage(nc, v, 0);
    R(nc_def_var(nc, "j", NC_INT, 1, &x, &v));
    R(nc_def_var_fill(nc, v, NC_FILL, (int[]){44}));
    R(nc_del_att(nc, v, "_FillValue"));
    show_storage(nc, v, 0);
    R(nc_def_var(nc, "k", NC_INT, 1, &x, &v));
    R(nc_enddef(nc));
    R(nc_put_att_int(nc, v, "_FillValue", NC_INT, 1, (int[]){-5}));
    R(nc_put_var1_int(nc, 0, (size_t[]){1}, (int[]){9}));
    R(nc_redef(nc));
    R(nc_put_att_int(nc, 0, "_FillValue", NC_INT, 1, (int[]){-6}));
    R(nc_rename_att(nc, 0, "_FillValue", "other"));
    R(nc_close(nc));
    show_file(path);
}

static void write_all(int flags, const char *path) {
    int nc, x, v, w;
    R(nc_create(path, flags, &nc));
    nc_def_dim(nc, "x", 3, &x);
    R(nc_def_var(nc, "v", NC_INT, 1, &x, &v));
    R(nc_def_var(nc, "w", NC_INT, 1, &x, &w));
    R(nc_put_att_text(nc, 5, "a", 1, "x"));
    R(nc_put_att_text(nc, -2, "a", 1, "x"));
    conversions(nc, v);
    texts(nc, NC_GLOBAL);
    texts(nc, w);
    changes(nc, NC_GLOBAL);
    changes(nc, w);
    show_group(nc);
    /* Reading data has ended define mode, but for the classic model. */
    R(nc_enddef(nc));
    R(nc_put_att_int(nc, w, "c1", NC_INT, 1, (int[]){1234}));
    R(nc_put_att_int(nc, w, "c1", NC_INT, 4, (int[]){1, 2, 3, 4}));
    R(nc_put_att_int(nc, w, "late", NC_INT, 1, (int[]){1}));
    R(nc_rename_att(nc, w, "c2", "q"));
    R(nc_rename_att(nc, w, "c4", "longer than before"));
    R(nc_del_att(nc, w, "no int"));
    R(nc_close(nc));
    show_file(path);
    R(nc_open(path, NC_WRITE, &nc));
    R(nc_put_att_int(nc, w, "renamed", NC_INT, 1, (int[]){4321}));
    R(nc_redef(nc));
    R(nc_put_att_int(nc, w, "new", NC_INT, 1, (int[]){1}));
    R(nc_put_att_text(nc, w, "text", 1, "z"));
    R(nc_del_att(nc, w, "empty"));
    R(nc_rename_att(nc, NC_GLOBAL, "text", "word"));
    R(nc_close(nc));
    show_file(path);
}

static void copies(const char *from, const char *to, int flags) {
    int in, out, v, natts;
    R(nc_open(from, NC_NOWRITE, &in));
    R(nc_create(to, flags, &out));
    R(nc_def_var(out, "v", NC_INT, 0, NULL, &v));
    for (int owner = -1; owner < 2; owner++) {
        natts = 0;
        nc_inq_varnatts(in, owner, &natts);
        for (int a = 0; a < natts; a++) {
            char name[NC_MAX_NAME + 1];
            nc_inq_attname(in, owner, a, name);
            note("%d %s", owner, strlen(name) > 40 ? "long" : name);
            R(nc_copy_att(in, owner, name, out, owner ? NC_GLOBAL : v));
        }
    }
    R(nc_copy_att(in, 0, "none", out, v));
    R(nc_copy_att(in, 9, "text", out, v));
    R(nc_copy_att(in, 0, "text", out, 9));
    R(nc_close(out));
    R(nc_close(in));
    show_file(to);
}

int main(void) {
    write_all(NC_NETCDF4, "atts_nc4.nc");
    write_all(NC_NETCDF4 | NC_CLASSIC_MODEL, "atts_classic.nc");
    fill_values(NC_NETCDF4, "fill_nc4.nc");
    fill_values(NC_NETCDF4 | NC_CLASSIC_MODEL, "fill_classic.nc");
    copies("atts_nc4.nc", "copy_nc4.nc", NC_NETCDF4);
    copies("atts_nc4.nc", "copy_classic.nc", NC_NETCDF4 | NC_CLASSIC_MODEL);
    copies("atts_nc4.nc", "copy_cdf1.nc", 0);
    copies("atts_nc4.nc", "copy_cdf5.nc", NC_64BIT_DATA);
    copies("copy_cdf5.nc", "from_cdf5.nc", NC_NETCDF4);
    return 0;
}
