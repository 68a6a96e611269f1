/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Variables of a netCDF-4 file open for reading: inquiries, storage, filters. */
#include "nc4_tree.h"

extern int nc_set_var_chunk_cache_ints(int, int, int, int, int);
extern int nc_get_var_chunk_cache_ints(int, int, int *, int *, int *);
extern int nc_def_var_chunking_ints(int, int, int, int *), nc_inq_var_chunking_ints(int, int, int *, int *);

static void inquire(int nc, int v) {
    int type = -77, nd = -77, dims[8], na = -77, a = -77, b = -77, c = -77;
    char name[NC_MAX_NAME + 1];
    size_t n[4] = {77, 77, 77, 77};
    unsigned u[16];
    float f = 77;
    _Alignas(8) unsigned char fill[80];
    note("id %x var %d", nc, v);
    poison(name);
    poison(dims);
    R(nc_inq_var(nc, v, name, &type, &nd, dims, &na));
    text("name", name, 12);
    note("%d %d %d", type, nd, na);
    ints("dims", dims, 3);
    R(nc_inq_var(nc, v, NULL, NULL, NULL, NULL, NULL));
    R(nc_inq_varname(nc, v, name));
    R(nc_inq_vartype(nc, v, &type));
    R(nc_inq_varndims(nc, v, &nd));
    R(nc_inq_vardimid(nc, v, dims));
    R(nc_inq_varnatts(nc, v, &na));
    ints("natts", &na, 1);
    R(nc_inq_varname(nc, v, NULL));
    R(nc_inq_vartype(nc, v, NULL));
    R(nc_inq_varnatts(nc, v, NULL));
    R(nc_inq_var_chunking(nc, v, &a, n));
    note("%d %zu %zu %zu", a, n[0], n[1], n[2]);
    R(nc_inq_var_chunking(nc, v, NULL, NULL));
    a = -77;
    poison(dims);
    R(nc_inq_var_chunking_ints(nc, v, &a, dims));
    note("%d", a);
    ints("chunks", dims, 3);
    a = -77;
    R(nc_inq_var_deflate(nc, v, &a, &b, &c));
    ints("deflate", (int[]){a, b, c}, 3);
    R(nc_inq_var_deflate(nc, v, NULL, NULL, NULL));
    a = b = -77;
    R(nc_inq_var_fletcher32(nc, v, &a));
    R(nc_inq_var_fletcher32(nc, v, NULL));
    R(nc_inq_var_szip(nc, v, &b, &c));
    ints("fletcher szip", (int[]){a, b, c}, 3);
    R(nc_inq_var_szip(nc, v, NULL, NULL));
    poison(u);
    n[0] = 77;
    R(nc_inq_var_filter(nc, v, u, n, u + 1));
    note("%u %zu %u", u[0], n[0], u[1]);
    R(nc_inq_var_filter(nc, v, NULL, NULL, NULL));
    poison(u);
    n[0] = 77;
    R(nc_inq_var_filter_ids(nc, v, n, u));
    note("%zu %u %u %u", n[0], u[0], u[1], u[2]);
    R(nc_inq_var_filter_ids(nc, v, n, NULL));
    R(nc_inq_var_filter_ids(nc, v, NULL, NULL));
    static const unsigned ids[] = {0, 1, 2, 3, 4, 307, 32015};
    for (size_t i = 0; i < COUNT(ids); i++) {
        poison(u);
        n[0] = 77;
        R(nc_inq_var_filter_info(nc, v, ids[i], n, u));
        note("%u: %zu %u", ids[i], n[0], u[0]);
        R(nc_inq_var_filter_info(nc, v, ids[i], NULL, NULL));
    }
    a = -77;
    R(nc_inq_var_endian(nc, v, &a));
    ints("endian", &a, 1);
    R(nc_inq_var_endian(nc, v, NULL));
    a = b = -77;
    R(nc_inq_var_quantize(nc, v, &a, &b));
    ints("quantize", (int[]){a, b}, 2);
    R(nc_inq_var_quantize(nc, v, NULL, NULL));
    a = b = -77;
    R(nc_inq_var_bzip2(nc, v, &a, &b));
    ints("bzip2", (int[]){a, b}, 2);
    a = b = -77;
    R(nc_inq_var_zstandard(nc, v, &a, &b));
    ints("zstd", (int[]){a, b}, 2);
    R(nc_inq_var_blosc(nc, v, &a, u, u + 1, u + 2, u + 3));
    ints("blosc", &a, 1);
    a = -77;
    poison(fill);
    int code = R(nc_inq_var_fill(nc, v, &a, fill));
    ints("no_fill", &a, 1);
    if (!code && type == NC_STRING) {
        text("fill", *(char **)fill ? *(char **)fill : "(null)", 20);
        nc_free_string(1, (char **)fill);
    }
    /* Of a compound the reference copies its padding too, which is whatever its memory held. */
    else if (!code && nc_inq_type(nc, type, NULL, n) == 0 && (type < NC_FIRSTUSERTYPEID || n[0] <= 16))
        bytes("fill", fill, n[0]);
    R(nc_inq_var_fill(nc, v, NULL, NULL));
    n[0] = n[1] = 77;
    R(nc_get_var_chunk_cache(nc, v, n, n + 1, &f));
    note("%zu %zu %g", n[0], n[1], f);
    R(nc_get_var_chunk_cache(nc, v, NULL, NULL, NULL));
    R(nc_set_var_chunk_cache(nc, v, 1000, 10, 0.5f));
    R(nc_set_var_chunk_cache(nc, v, 1000, 10, 1.5f));
    R(nc_get_var_chunk_cache(nc, v, n, n + 1, &f));
    note("%zu %zu %g", n[0], n[1], f);
    R(nc_set_var_chunk_cache_ints(nc, v, 2000, 20, 25));
    a = b = c = -77;
    R(nc_get_var_chunk_cache_ints(nc, v, &a, &b, &c));
    ints("cache", (int[]){a, b, c}, 3);
}

static void define(int nc, int v) {
    int out;
    unsigned u = 5;
    size_t n[2] = {1, 1};
    note("id %x var %d", nc, v);
    R(nc_def_var(nc, "new", NC_INT, 0, NULL, &out));
    R(nc_def_var(nc, "x", NC_INT, 0, NULL, &out));
    R(nc_def_var(nc, "a/b", NC_INT, 0, NULL, &out));
    R(nc_def_var(nc, "new", 99, 0, NULL, &out));
    R(nc_rename_var(nc, v, "new"));
    R(nc_rename_var(nc, v, "x"));
    R(nc_rename_var(nc, v, "a/b"));
    R(nc_def_var_deflate(nc, v, 1, 1, 5));
    R(nc_def_var_deflate(nc, v, 1, 1, 55));
    R(nc_def_var_fletcher32(nc, v, 1));
    R(nc_def_var_szip(nc, v, 4, 8));
    R(nc_def_var_filter(nc, v, 1, 1, &u));
    R(nc_def_var_filter(nc, v, 32768, 0, NULL));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, n));
    R(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL));
    R(nc_def_var_chunking_ints(nc, v, NC_CONTIGUOUS, &out));
    R(nc_def_var_endian(nc, v, NC_ENDIAN_LITTLE));
    R(nc_def_var_quantize(nc, v, 1, 3));
    R(nc_def_var_fill(nc, v, 1, NULL));
    R(nc_def_var_fill(nc, v, 0, n));
    R(nc_def_var_bzip2(nc, v, 5));
    R(nc_def_var_zstandard(nc, v, 5));
    R(nc_def_var_blosc(nc, v, 0, 5, 0, 1));
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    static const char *const names[] = {"x", "v_int", "strings", "", "none", "inner", "leaf", "/x", "deflated", "t"};
    static const unsigned filters[] = {0, 1, 2, 3, 4, 5, 6, 307, 32015, 32001, 32767, 99999};
    int nc, g1, g2, h, strict, v;
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    R(nc_open("strict.nc", NC_NOWRITE, &strict));
    g1 = group_at(nc, "g1", NULL, NULL);
    g2 = group_at(nc, "g1", "g2", NULL);
    h = group_at(nc, "h", NULL, NULL);
    int groups[] = {nc, g1, g2, h, strict, nc + 99};
    for (size_t g = 0; g < COUNT(groups); g++) {
        for (size_t i = 0; i < COUNT(names); i++) {
            v = -77;
            R(nc_inq_varid(groups[g], names[i], &v));
            note("%s: %d", names[i], v);
            R(nc_inq_varid(groups[g], names[i], NULL));
        }
        int n = 2;
        nc_inq_nvars(groups[g], &n);
        for (v = -2; v <= n; v++) inquire(groups[g], v);
        define(groups[g], -2);
        define(groups[g], -1);
        define(groups[g], 0);
        define(groups[g], 999);
        for (size_t i = 0; i < COUNT(filters); i++) {
            int code = nc_inq_filter_avail(groups[g], filters[i]);
            printf("   avail %u: %d\n", filters[i], code);
        }
    }
    R(nc_close(nc));
    R(nc_close(strict));
    return 0;
}
