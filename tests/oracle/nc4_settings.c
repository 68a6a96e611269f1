/* SPDX-License-Identifier: MIT OR Apache-2.0
 * How variables of netCDF-4 files are stored: what is accepted when, and what is told of it. */
#include "nc4_write.h"

extern int nc_set_var_chunk_cache_ints(int, int, int, int, int);
extern int nc_get_var_chunk_cache_ints(int, int, int *, int *, int *);
extern int nc_def_var_chunking_ints(int, int, int, int *), nc_inq_var_chunking_ints(int, int, int *, int *);

/* All settings on one variable of each kind. */
static void settings_of(int nc, int v) {
    static const size_t fits[3] = {1, 2, 3}, huge[3] = {1, 100, 100}, zero[3] = {0, 0, 0};
    unsigned five = 5;
    float fill = 1.5f;
    note("variable %d", v);
    R(nc_def_var_deflate(nc, v, 0, 0, 0));
    R(nc_def_var_deflate(nc, v, 1, 1, 10));
    R(nc_def_var_deflate(nc, v, 0, 1, -1));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, huge));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, zero));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, fits));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, NULL));
    R(nc_def_var_chunking(nc, v, 7, NULL));
    R(nc_def_var_endian(nc, v, NC_ENDIAN_BIG));
    R(nc_def_var_endian(nc, v, NC_ENDIAN_NATIVE));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_BITGROOM, 3));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_BITGROOM, 0));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_BITGROOM, 8));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_BITGROOM, 16));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_BITROUND, 24));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_BITROUND, 53));
    R(nc_def_var_quantize(nc, v, NC_QUANTIZE_GRANULARBR, -1));
    R(nc_def_var_quantize(nc, v, 4, 3));
    R(nc_def_var_quantize(nc, v, -1, 3));
    R(nc_def_var_quantize(nc, v, NC_NOQUANTIZE, 3));
    R(nc_def_var_fill(nc, v, NC_NOFILL, NULL));
    R(nc_def_var_fill(nc, v, 77, NULL));
    R(nc_def_var_fill(nc, v, NC_FILL, NULL));
    nc_type type = 0;
    nc_inq_vartype(nc, v, &type);
    if (type == NC_FLOAT) R(nc_def_var_fill(nc, v, NC_FILL, &fill));
    R(nc_def_var_filter(nc, v, 1, 1, &five));
    R(nc_def_var_filter(nc, v, 32768, 0, NULL));
    R(nc_def_var_filter(nc, v, 70000, 0, NULL));
    R(nc_def_var_filter(nc, v, 2, 0, NULL));
    R(nc_def_var_filter(nc, v, 3, 0, NULL));
    R(nc_def_var_szip(nc, v, NC_SZIP_NN, 8));
    R(nc_def_var_szip(nc, v, NC_SZIP_NN, 7));
    R(nc_def_var_szip(nc, v, 1000, 8));
    /* NC_NOCHECKSUM is left out: the reference adds a checksum then, too. */
    R(nc_def_var_fletcher32(nc, v, NC_FLETCHER32));
    R(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL));
    R(nc_def_var_chunking(nc, v, NC_COMPACT, NULL));
    show_storage(nc, v, 0);
}

static void each_kind(int flags, const char *path) {
    static const nc_type types[] = {NC_BYTE, NC_CHAR, NC_INT, NC_FLOAT, NC_DOUBLE, NC_STRING, NC_UINT64};
    int nc, dims[3], v;
    R(nc_create(path, flags, &nc));
    nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]);
    nc_def_dim(nc, "y", 5, &dims[1]);
    nc_def_dim(nc, "x", 7, &dims[2]);
    for (size_t i = 0; i < COUNT(types); i++)
        for (int rank = 0; rank < 4; rank++) {
            char name[20];
            snprintf(name, sizeof name, "v%d_%d", types[i], rank);
            /* Rank 1 and 2 are of fixed size. */
            if (nc_def_var(nc, name, types[i], rank, rank == 3 ? dims : dims + 1, &v)) continue;
            note("%s", name);
            settings_of(nc, v);
        }
    settings_of(nc, 99);
    settings_of(nc, NC_GLOBAL);
    R(nc_enddef(nc));
    note("after enddef");
    settings_of(nc, 0);
    settings_of(nc, 2);
    R(nc_redef(nc));
    note("after redef");
    settings_of(nc, 2);
    settings_of(nc, 3);
    R(nc_close(nc));
}

/* Filters in several orders. */
static void orders(void) {
    static const char *const plans[] = {"d", "sd", "S", "f", "fd", "df", "fsd", "sdf", "z", "zf", "fz", "sz", "zd", "dz",
                                        "dd", "D", "Dd", "c", "cd", "dc", "kd", "dk", "kq", "q", "qd", "b", "l", "o", "k"};
    int nc, dims[2], v;
    R(nc_create("orders.nc", NC_NETCDF4, &nc));
    nc_def_dim(nc, "y", 50, &dims[0]);
    nc_def_dim(nc, "x", 70, &dims[1]);
    float values[50 * 70];
    for (int i = 0; i < 50 * 70; i++) values[i] = (float)(i % 97) * 1.25f + 100.f / (float)(i + 1);
    for (size_t p = 0; p < COUNT(plans); p++) {
        nc_def_var(nc, plans[p], NC_FLOAT, 2, dims, &v);
        note("plan %s", plans[p]);
        for (const char *c = plans[p]; *c; c++) switch (*c) {
            case 'd': R(nc_def_var_deflate(nc, v, 0, 1, 4)); break;
            case 's': R(nc_def_var_deflate(nc, v, 1, 0, 0)); break;
            case 'S': R(nc_def_var_deflate(nc, v, 1, 1, 2)); break;
            case 'D': R(nc_def_var_filter(nc, v, 1, 1, (unsigned[]){9})); break;
            case 'f': R(nc_def_var_fletcher32(nc, v, 1)); break;
            case 'z': R(nc_def_var_szip(nc, v, NC_SZIP_NN, 16)); break;
            case 'c': R(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL)); break;
            case 'k': R(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){10, 20})); break;
            case 'q': R(nc_def_var_quantize(nc, v, NC_QUANTIZE_GRANULARBR, 3)); break;
            case 'b': R(nc_def_var_endian(nc, v, NC_ENDIAN_BIG)); break;
            case 'l': R(nc_def_var_endian(nc, v, NC_ENDIAN_LITTLE)); break;
            case 'o': R(nc_def_var_chunking(nc, v, NC_COMPACT, NULL)); break;
            }
        show_storage(nc, v, *plans[p] == 'k');
        R(nc_put_var_float(nc, v, values));
        R(nc_def_var_deflate(nc, v, 0, 1, 1));
        R(nc_def_var_fill(nc, v, 0, values));
    }
    R(nc_close(nc));
    R(nc_open("orders.nc", NC_NOWRITE, &nc));
    for (size_t p = 0; p < COUNT(plans); p++) {
        float got[50 * 70];
        nc_inq_varid(nc, plans[p], &v);
        note("reopened %s", plans[p]);
        show_storage(nc, v, *plans[p] == 'k');
        R(nc_get_var_float(nc, v, got));
        note("%016llx", (unsigned long long)digest_of(0, got, sizeof got));
    }
    R(nc_close(nc));
}

static void lengths(void) {
    int nc, x, y, big, v, ints_[2] = {3, 4};
    size_t got[2];
    R(nc_create("lengths.nc", NC_NETCDF4, &nc));
    nc_def_dim(nc, "x", 5, &x);
    nc_def_dim(nc, "y", NC_UNLIMITED, &y);
    nc_def_dim(nc, "big", 20000, &big);
    R(nc_def_var(nc, "a", NC_INT, 2, (int[]){y, x}, &v));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){1000000, 5}));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){1000000000, 5}));
    R(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){10, 6}));
    R(nc_def_var_chunking_ints(nc, v, NC_CHUNKED, ints_));
    R(nc_inq_var_chunking(nc, v, NULL, got));
    sizes("chunks", got, 2);
    R(nc_inq_var_chunking_ints(nc, v, NULL, ints_));
    ints("chunks", ints_, 2);
    R(nc_def_var(nc, "b", NC_INT, 1, &big, &v));
    R(nc_def_var_chunking(nc, v, NC_COMPACT, NULL));
    R(nc_def_var(nc, "c", NC_INT, 1, &x, &v));
    R(nc_def_var_chunking(nc, v, NC_COMPACT, NULL));
    R(nc_def_var_deflate(nc, v, 1, 1, 1));
    R(nc_put_var_int(nc, v, (int[]){1, 2, 3, 4, 5}));
    R(nc_set_var_chunk_cache(nc, 0, 5000000, 11, 0.5f));
    R(nc_get_var_chunk_cache_ints(nc, 0, ints_, ints_ + 1, NULL));
    ints("MiB, slots", ints_, 2);
    R(nc_set_var_chunk_cache_ints(nc, 0, 3, 12, 25));
    R(nc_get_var_chunk_cache(nc, 0, got, got + 1, NULL));
    sizes("cache", got, 2);
    R(nc_set_var_chunk_cache_ints(nc, 0, -1, -1, -1));
    R(nc_get_var_chunk_cache_ints(nc, 0, ints_, ints_ + 1, NULL));
    ints("MiB, slots", ints_, 2);
    R(nc_close(nc));
    show_file("lengths.nc");
}

int main(void) {
    for (size_t f = 0; f < COUNT(NC4_FORMATS); f++) each_kind(NC4_FORMATS[f].flags, path_of("kinds", NC4_FORMATS[f].name));
    orders();
    lengths();
    return 0;
}
