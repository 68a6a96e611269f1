/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Groups, user-defined types and filters as seen by classic files. */
#include "harness.h"
#include <netcdf_filter.h>

/* netcdf_par.h is not installed with the serial library, whose answers these are. */
extern int nc_create_par(const char *, int, int, int, int *), nc_open_par(const char *, int, int, int, int *);
extern int nc_var_par_access(int, int, int);
enum { COLLECTIVE = 1 };

extern int nc_set_chunk_cache_ints(int, int, int), nc_get_chunk_cache_ints(int *, int *, int *);
extern int nc_set_var_chunk_cache_ints(int, int, int, int, int);
extern int nc_get_var_chunk_cache_ints(int, int, int *, int *, int *);
extern int nc_def_var_chunking_ints(int, int, int, int *), nc_inq_var_chunking_ints(int, int, int *, int *);
extern int nc_create_par_fortran(const char *, int, int, int, int *);
extern int nc_open_par_fortran(const char *, int, int, int, int *);

static void groups(int nc) {
    int n = -77, ids[20];
    char name[NC_MAX_NAME + 1];
    size_t len = 77;
    poison(ids);
    R(nc_inq_ncid(nc, NULL, &n));
    R(nc_inq_ncid(nc, "any", NULL));
    note("itself: %d", n == nc);
    n = -77;
    R(nc_inq_grp_ncid(nc, "/", &n));
    note("itself: %d", n == nc);
    R(nc_inq_grps(nc, &n, ids));
    ints("n", &n, 1);
    R(nc_inq_grps(nc, NULL, NULL));
    poison(name);
    R(nc_inq_grpname(nc, name));
    text("name", name, 5);
    R(nc_inq_grpname(nc, NULL));
    poison(name);
    R(nc_inq_grpname_full(nc, &len, name));
    text("name", name, 5);
    sizes("len", &len, 1);
    R(nc_inq_grpname_full(nc, NULL, NULL));
    R(nc_inq_grpname_len(nc, &len));
    sizes("len", &len, 1);
    R(nc_inq_grpname_len(nc, NULL));
    n = -77;
    R(nc_inq_grp_parent(nc, &n));
    R(nc_inq_grp_parent(nc, NULL));
    R(nc_inq_grp_full_ncid(nc, "/", &n));
    R(nc_inq_varids(nc, &n, ids));
    ints("n", &n, 1);
    ints("ids", ids, 20);
    R(nc_inq_varids(nc, NULL, NULL));
    poison(ids);
    R(nc_inq_dimids(nc, &n, ids, 0));
    ints("n", &n, 1);
    ints("ids", ids, 20);
    R(nc_inq_dimids(nc, NULL, NULL, 1));
    R(nc_inq_typeids(nc, &n, ids));
    ints("n", &n, 1);
    poison(ids);
    n = -77;
    R(nc_inq_unlimdims(nc, &n, ids));
    ints("n", &n, 1);
    ints("ids", ids, 2);
    R(nc_inq_unlimdims(nc, NULL, NULL));
    R(nc_def_grp(nc, "g", &n));
    R(nc_rename_grp(nc, "g"));
    R(nc_show_metadata(nc));
}

static void types(int nc) {
    static const int codes[] = {-1, 0, 1, 2, 5, 6, 7, 11, 12, 13, 14, 16, 31, 32, 99};
    static const char *const names[] = {"byte", "char", "short", "int", "float", "double", "ubyte",
                                        "ushort", "uint", "int64", "uint64", "string", "undefined", "",
                                        "INT", "mytype"};
    char name[NC_MAX_NAME + 1];
    size_t size, size2;
    int type, class;
    for (size_t i = 0; i < COUNT(codes); i++) {
        int t = codes[i];
        note("type %d", t);
        poison(name);
        size = 77;
        R(nc_inq_type(nc, t, name, &size));
        text("name", name, 20);
        sizes("size", &size, 1);
        R(nc_inq_type(nc, t, NULL, NULL));
        printf("   nctypelen %d\n", nctypelen(t));
        poison(name);
        size = size2 = 77;
        type = class = -77;
        R(nc_inq_user_type(nc, t, name, &size, &type, &size2, &class));
        text("name", name, 3);
        note("%zu %d %zu %d", size, type, size2, class);
        R(nc_inq_user_type(nc, t, NULL, NULL, NULL, NULL, NULL));
        for (size_t k = 0; k < COUNT(codes); k++) {
            int equal = -77;
            R(nc_inq_type_equal(nc, t, nc, codes[k], &equal));
            ints("equal", &equal, 1);
        }
        R(nc_inq_type_equal(nc, t, 99, 4, NULL));
        R(nc_inq_compound(nc, t, name, &size, &size2));
        R(nc_inq_compound_name(nc, t, name));
        R(nc_inq_compound_size(nc, t, &size));
        R(nc_inq_compound_nfields(nc, t, &size));
        R(nc_inq_compound_field(nc, t, 0, name, &size, &type, &class, &class));
        R(nc_inq_compound_fieldname(nc, t, 0, name));
        R(nc_inq_compound_fieldindex(nc, t, "f", &class));
        R(nc_inq_compound_fieldoffset(nc, t, 0, &size));
        R(nc_inq_compound_fieldtype(nc, t, 0, &type));
        R(nc_inq_compound_fieldndims(nc, t, 0, &class));
        R(nc_inq_compound_fielddim_sizes(nc, t, 0, &class));
        R(nc_insert_compound(nc, t, "f", 0, NC_INT));
        R(nc_insert_array_compound(nc, t, "f", 0, NC_INT, 1, &class));
        R(nc_inq_vlen(nc, t, name, &size, &type));
        R(nc_put_vlen_element(nc, t, &size, 1, &size));
        R(nc_get_vlen_element(nc, t, &size, &size2, &size));
        R(nc_inq_enum(nc, t, name, &type, &size, &size2));
        R(nc_inq_enum_member(nc, t, 0, name, &size));
        R(nc_inq_enum_ident(nc, t, 0, name));
        R(nc_insert_enum(nc, t, "f", &size));
        R(nc_inq_opaque(nc, t, name, &size));
        R(nc_def_vlen(nc, "v", t, &type));
        R(nc_def_enum(nc, t, "v", &type));
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        type = -77;
        note("name %s", names[i]);
        R(nc_inq_typeid(nc, names[i], &type));
        ints("type", &type, 1);
        R(nc_inq_typeid(nc, names[i], NULL));
    }
    R(nc_def_compound(nc, 8, "c", &type));
    R(nc_def_opaque(nc, 8, "c", &type));
}

static void filters(int nc) {
    static const int vars[] = {-2, -1, 0, 1, 99};
    for (size_t i = 0; i < COUNT(vars); i++) {
        int v = vars[i], a = -77, b = -77, c = -77;
        unsigned u[8];
        size_t n[2] = {77, 77};
        float f = 77;
        poison(u);
        note("var %d", v);
        R(nc_def_var_deflate(nc, v, 1, 1, 5));
        R(nc_def_var_deflate(nc, v, 1, 1, 55));
        R(nc_def_var_fletcher32(nc, v, 1));
        R(nc_def_var_szip(nc, v, 4, 8));
        R(nc_def_var_filter(nc, v, 1, 1, u));
        R(nc_def_var_filter(nc, v, 1, 0, NULL));
        R(nc_def_var_chunking(nc, v, NC_CHUNKED, n));
        R(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL));
        R(nc_def_var_endian(nc, v, NC_ENDIAN_LITTLE));
        R(nc_def_var_quantize(nc, v, 1, 3));
        R(nc_def_var_bzip2(nc, v, 5));
        R(nc_def_var_bzip2(nc, v, 50));
        R(nc_def_var_zstandard(nc, v, 5));
        R(nc_def_var_blosc(nc, v, 0, 5, 0, 1));
        R(nc_inq_var_deflate(nc, v, &a, &b, &c));
        ints("abc", (int[]){a, b, c}, 3);
        R(nc_inq_var_deflate(nc, v, NULL, NULL, NULL));
        R(nc_inq_var_deflate(nc, v, NULL, &b, NULL));
        a = -77;
        R(nc_inq_var_fletcher32(nc, v, &a));
        R(nc_inq_var_fletcher32(nc, v, NULL));
        ints("a", &a, 1);
        a = b = -77;
        R(nc_inq_var_szip(nc, v, &a, &b));
        ints("ab", (int[]){a, b}, 2);
        R(nc_inq_var_szip(nc, v, NULL, NULL));
        R(nc_inq_var_filter(nc, v, u, n, u + 1));
        note("%u %zu", u[0], n[0]);
        R(nc_inq_var_filter(nc, v, NULL, NULL, NULL));
        poison(u);
        R(nc_inq_var_filter_ids(nc, v, n, u));
        note("%u %zu", u[0], n[0]);
        R(nc_inq_var_filter_ids(nc, v, NULL, NULL));
        R(nc_inq_var_filter_info(nc, v, 1, n, u));
        a = -77;
        n[0] = 77;
        R(nc_inq_var_chunking(nc, v, &a, n));
        note("%d %zu", a, n[0]);
        R(nc_inq_var_chunking(nc, v, NULL, NULL));
        R(nc_inq_var_endian(nc, v, &b));
        R(nc_inq_var_endian(nc, v, NULL));
        R(nc_inq_var_quantize(nc, v, &a, &b));
        R(nc_inq_var_bzip2(nc, v, &a, &b));
        ints("ab", (int[]){a, b}, 2);
        a = b = -77;
        R(nc_inq_var_zstandard(nc, v, &a, &b));
        ints("zstd", (int[]){a, b}, 2);
        R(nc_inq_var_blosc(nc, v, &a, u, u + 1, u + 2, u + 3));
        ints("blosc", &a, 1);
        R(nc_set_var_chunk_cache(nc, v, 100, 10, 0.5f));
        R(nc_set_var_chunk_cache(nc, v, 100, 10, 5.5f));
        R(nc_get_var_chunk_cache(nc, v, n, n + 1, &f));
        R(nc_set_var_chunk_cache_ints(nc, v, 1, 1, 1));
        R(nc_get_var_chunk_cache_ints(nc, v, &a, &b, &c));
        R(nc_def_var_chunking_ints(nc, v, 0, &a));
        R(nc_inq_var_chunking_ints(nc, v, &a, &b));
        R(nc_var_par_access(nc, v, COLLECTIVE));
    }
    R(nc_inq_filter_avail(nc, 1));
    R(nc_inq_filter_avail(nc, 99999));
}

static void settings(void) {
    size_t size, n;
    float f;
    int a, b, c;
    static const float preemptions[] = {0, 0.75f, 1, -0.1f, 1.1f};
    R(nc_get_chunk_cache(&size, &n, &f));
    note("%zu %zu %g", size, n, f);
    R(nc_get_chunk_cache(NULL, NULL, NULL));
    for (size_t i = 0; i < COUNT(preemptions); i++) {
        R(nc_set_chunk_cache(100 * i, i, preemptions[i]));
        R(nc_get_chunk_cache(&size, &n, &f));
        note("%zu %zu %g", size, n, f);
        R(nc_get_chunk_cache_ints(&a, &b, &c));
        ints("abc", (int[]){a, b, c}, 3);
        R(nc_set_chunk_cache_ints((int)i * 5, (int)i, (int)(preemptions[i] * 100)));
        R(nc_get_chunk_cache_ints(&a, &b, &c));
        ints("abc", (int[]){a, b, c}, 3);
    }
    R(nc_set_chunk_cache_ints(-1, 1, 1));
    R(nc_set_chunk_cache_ints(1, 1, 101));
    a = b = -77;
    R(nc_get_alignment(&a, &b));
    ints("ab", (int[]){a, b}, 2);
    R(nc_set_alignment(-5, 4096));
    R(nc_get_alignment(&a, &b));
    ints("ab", (int[]){a, b}, 2);
    R(nc_get_alignment(NULL, NULL));
    for (int level = -2; level < 6; level++) R(nc_set_log_level(level));
    int nc = -77;
    R(nc_create_par("par.nc", NC_CLOBBER, 0, 0, &nc));
    R(nc_open_par("par.nc", NC_NOWRITE, 0, 0, &nc));
    R(nc_create_par_fortran("par.nc", NC_CLOBBER, 0, 0, &nc));
    R(nc_open_par_fortran("par.nc", NC_NOWRITE, 0, 0, &nc));
    ints("nc", &nc, 1);
    presence("par.nc");
}

static void user_formats(void) {
    NC_Dispatch *table = (NC_Dispatch *)1;
    int fake[200] = {NC_FORMATX_UDF0, 5};
    char magic[20];
    R(nc_inq_user_format(NC_UDF0, NULL, NULL));
    poison(magic);
    R(nc_inq_user_format(NC_UDF0, &table, magic));
    note("table %s", table ? "set" : "null");
    bytes("magic", magic, 10);
    R(nc_inq_user_format(0, &table, magic));
    R(nc_def_user_format(0, (NC_Dispatch *)fake, "MAGIC"));
    R(nc_def_user_format(NC_UDF0, NULL, "MAGIC"));
    R(nc_def_user_format(NC_UDF0, (NC_Dispatch *)fake, "TOOLONGXX"));
    fake[1] = 4;
    R(nc_def_user_format(NC_UDF1, (NC_Dispatch *)fake, "MAGIC"));
    fake[1] = 5;
    R(nc_def_user_format(NC_UDF1, (NC_Dispatch *)fake, "12345678"));
    poison(magic);
    R(nc_inq_user_format(NC_UDF1, &table, magic));
    note("table %s", table == (NC_Dispatch *)fake ? "ours" : "other");
    bytes("magic", magic, 10);
}

int main(void) {
    static const int bad[] = {-1, 0, 99999};
    settings();
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        int nc, d, v;
        char *path = path_of("group", FORMATS[f].name);
        note("format %s", FORMATS[f].name);
        R(nc_create(path, FORMATS[f].flags, &nc));
        groups(nc);
        R(nc_def_dim(nc, "x", 3, &d));
        R(nc_def_dim(nc, "t", NC_UNLIMITED, &d));
        R(nc_def_var(nc, "v", NC_INT, 1, &d, &v));
        R(nc_def_var(nc, "w", NC_CHAR, 0, NULL, &v));
        groups(nc);
        types(nc);
        filters(nc);
        R(nc_enddef(nc));
        filters(nc);
        groups(nc);
        note("a group half in the id");
        groups(nc + 1);
        R(nc_close(nc));
        R(nc_open(path, NC_NOWRITE, &nc));
        groups(nc);
        types(nc);
        filters(nc);
        R(nc_close(nc));
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        note("id %d", bad[i]);
        groups(bad[i]);
        types(bad[i]);
        filters(bad[i]);
    }
    user_formats();
    return 0;
}
