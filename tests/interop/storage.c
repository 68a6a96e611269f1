/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cases.h"

#include <netcdf_filter.h>

static int layouts(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 10), y = dim(nc, "y", 13), t = dim(nc, "t", NC_UNLIMITED), v;
    fill_all(nc, var(nc, "default", NC_INT, y, x), 1);
    v = var(nc, "contiguous", NC_INT, y, x);
    MUST(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL));
    fill_all(nc, v, 2);
    v = var(nc, "compact", NC_INT, y, x);
    MUST(nc_def_var_chunking(nc, v, NC_COMPACT, NULL));
    fill_all(nc, v, 3);
    v = var(nc, "compact, untouched", NC_DOUBLE, y);
    MUST(nc_def_var_chunking(nc, v, NC_COMPACT, NULL));
    size_t shapes[][2] = {{1, 1}, {13, 10}, {5, 3}, {1, 10}, {13, 1}, {4, 4}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        char name[40];
        snprintf(name, sizeof name, "chunks %zu %zu", shapes[i][0], shapes[i][1]);
        v = var(nc, name, NC_SHORT, y, x);
        MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, shapes[i]));
        fill_all(nc, v, (unsigned)i);
    }
    v = var(nc, "records", NC_FLOAT, t, y, x);
    MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(3, 5, 4)));
    for (unsigned r = 0; r < 7; r++) fill_block(nc, v, AT(r, 0, 0), AT(1, 13, 10), r);
    v = var(nc, "untouched", NC_FLOAT, t, x);
    SAY(nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL));
    SAY(nc_def_var_chunking(nc, var(nc, "too large", NC_INT, x), NC_CHUNKED, AT(20)));
    SAY(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(0, 1)));
    MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(2, 3)));
    return nc;
}

static int deflated(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 50), t = dim(nc, "t", NC_UNLIMITED), v;
    for (int level = 0; level <= 9; level++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            char name[40];
            snprintf(name, sizeof name, "level %d%s", level, shuffle ? ", shuffled" : "");
            v = var(nc, name, level % 2 ? NC_INT : NC_DOUBLE, x);
            MUST(nc_def_var_deflate(nc, v, shuffle, 1, level));
            fill_all(nc, v, (unsigned)level);
        }
    v = var(nc, "records", NC_FLOAT, t, x);
    MUST(nc_def_var_deflate(nc, v, 1, 1, 2));
    for (unsigned r = 0; r < 5; r++) fill_block(nc, v, AT(r, 0), AT(1, 50), r);
    fill_block(nc, v, AT(2, 10), AT(1, 20), 77);
    v = var(nc, "shuffled only", NC_SHORT, x);
    MUST(nc_def_var_deflate(nc, v, 1, 0, 0));
    fill_all(nc, v, 4);
    v = var(nc, "untouched", NC_SHORT, t, x);
    MUST(nc_def_var_deflate(nc, v, 1, 1, 5));
    return nc;
}

static int pipelines(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 60), y = dim(nc, "y", 5), v;
    /* S(huffle and deflate), D(eflate), F(letcher32), Z(szip), and deflate by its number. */
    static const char *const orders[] = {"F", "SF", "FS", "DF", "FD", "Z", "9", "F9", "9F", "FZ", "29", "129"};
    for (size_t i = 0; i < COUNT(orders); i++) {
        char name[40];
        snprintf(name, sizeof name, "order %s", orders[i]);
        v = var(nc, name, NC_INT, y, x);
        MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(2, 40)));
        for (const char *c = orders[i]; *c; c++) {
            if (*c == 'S') MUST(nc_def_var_deflate(nc, v, 1, 1, 3));
            if (*c == 'D') MUST(nc_def_var_deflate(nc, v, 0, 1, 6));
            if (*c == 'F') MUST(nc_def_var_fletcher32(nc, v, 1));
            if (*c == 'Z') MUST(nc_def_var_szip(nc, v, 32, 8));
            if (*c == '9') MUST(nc_def_var_filter(nc, v, 1, 1, &(unsigned){9}));
            if (*c == '2') MUST(nc_def_var_filter(nc, v, 2, 0, NULL));
            if (*c == '1') MUST(nc_def_var_filter(nc, v, 3, 0, NULL));
        }
        fill_all(nc, v, (unsigned)i);
    }
    return nc;
}

static int szipped(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 200), y = dim(nc, "y", 7), v;
    int types[] = {NC_BYTE, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE, NC_UBYTE, NC_INT64};
    for (size_t i = 0; i < COUNT(types); i++)
        for (int mask = 4; mask <= 32; mask += 28) {
            char name[40];
            snprintf(name, sizeof name, "type %d, mask %d", types[i], mask);
            v = var(nc, name, types[i], y, x);
            MUST(nc_def_var_szip(nc, v, mask, mask == 4 ? 16 : 32));
            fill_all(nc, v, (unsigned)i);
        }
    return nc;
}

/* Filters that are plugins for libhdf5: the runner says where they are. */
static int plugins(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 500), y = dim(nc, "y", 3), v;
    static const struct {
        const char *name;
        unsigned id;
        size_t n;
        unsigned params[7];
    } some[] = {
        {"bzip2", 307, 1, {9}},
        {"zstandard", 32015, 1, {3}},
        {"blosc lz4", 32001, 7, {0, 0, 4, 0, 5, 1, 1}},
        {"blosc zstd", 32001, 7, {0, 0, 4, 0, 3, 2, 5}},
        {"blosc lz", 32001, 7, {0, 0, 4, 0, 9, 0, 0}},
    };
    for (size_t i = 0; i < COUNT(some); i++)
        for (int shuffled = 0; shuffled < 2; shuffled++) {
            char name[40];
            snprintf(name, sizeof name, "%s%s", some[i].name, shuffled ? ", shuffled" : "");
            v = var(nc, name, i % 2 ? NC_FLOAT : NC_INT, y, x);
            MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(2, 300)));
            if (shuffled) MUST(nc_def_var_filter(nc, v, 2, 0, NULL));
            MUST(nc_def_var_filter(nc, v, some[i].id, some[i].n, some[i].params));
            fill_all(nc, v, (unsigned)i);
        }
    return nc;
}

static int fills(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 6), t = dim(nc, "t", NC_UNLIMITED);
    static const double value[12] = {0, 7, 0, -8, 9, 1.5, -2.25, 200, 50000, 4000000000u, -5, 123};
    for (int k = NC_BYTE; k <= NC_UINT64; k++) {
        char name[60], bytes[8];
        for (int style = 0; style < 4; style++) {
            static const char *const words[] = {"default", "own", "by attribute", "none"};
            snprintf(name, sizeof name, "type %d, %s", k, words[style]);
            int v = var(nc, name, k, x), r;
            snprintf(name, sizeof name, "type %d, %s, records", k, words[style]);
            r = var(nc, name, k, t);
            memset(bytes, 0, sizeof bytes);
            /* The library makes the value: a conversion of an attribute. */
            if (k == NC_CHAR) bytes[0] = '*';
            else {
                MUST(nc_put_att_double(nc, NC_GLOBAL, "scratch", k, 1, value + k));
                MUST(nc_get_att(nc, NC_GLOBAL, "scratch", bytes));
            }
            for (int both = 0; both < 2; both++) {
                if (style == 1) MUST(nc_def_var_fill(nc, both ? r : v, NC_FILL, bytes));
                if (style == 2) MUST(nc_put_att(nc, both ? r : v, "_FillValue", k, 1, bytes));
                if (style == 3) MUST(nc_def_var_fill(nc, both ? r : v, NC_NOFILL, NULL));
            }
            if (style == 3) {
                fill_all(nc, v, 3);
            } else {
                fill_block(nc, v, AT(2), AT(2), 3);
            }
            fill_block(nc, r, AT(style == 3 ? 0 : 4), AT(style == 3 ? 6 : 2), 4);
        }
    }
    MUST(nc_del_att(nc, NC_GLOBAL, "scratch"));
    return nc;
}

static int no_fill(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 6), t = dim(nc, "t", NC_UNLIMITED), old, v, w;
    MUST(nc_set_fill(nc, NC_NOFILL, &old));
    printf("fill mode was %d\n", old);
    v = var(nc, "none", NC_INT, x);
    w = var(nc, "none, records", NC_INT, t, x);
    MUST(nc_set_fill(nc, NC_FILL, &old));
    printf("fill mode was %d\n", old);
    fill_all(nc, v, 1);
    fill_block(nc, w, AT(0, 0), AT(3, 6), 2);
    v = var(nc, "some", NC_INT, x);
    MUST(nc_put_var1_int(nc, v, AT(3), &(int){4}));
    SAY(nc_def_var_fill(nc, v, NC_FILL, &(int){3}));
    return nc;
}

static int endian(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 5), t = dim(nc, "t", NC_UNLIMITED), all[] = {NC_ENDIAN_NATIVE, NC_ENDIAN_LITTLE, NC_ENDIAN_BIG};
    for (int k = NC_SHORT; k <= NC_UINT64; k++)
        for (int e = 0; e < 3; e++) {
            char name[40];
            if (k == NC_UBYTE) continue;
            snprintf(name, sizeof name, "type %d, endian %d", k, all[e]);
            int v = var(nc, name, k, x);
            MUST(nc_def_var_endian(nc, v, all[e]));
            fill_block(nc, v, AT(1), AT(3), (unsigned)k);
            snprintf(name, sizeof name, "type %d, endian %d, deflated", k, all[e]);
            v = var(nc, name, k, t, x);
            MUST(nc_def_var_endian(nc, v, all[e]));
            MUST(nc_def_var_deflate(nc, v, 1, 1, 1));
            fill_block(nc, v, AT(0, 0), AT(2, 5), (unsigned)k);
        }
    return nc;
}

static int quantized(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 64);
    float f[64];
    double d[64];
    for (int i = 0; i < 64; i++) d[i] = sin(i) * pow(10, i % 20 - 10), f[i] = (float)d[i];
    f[5] = NC_FILL_FLOAT, d[5] = NC_FILL_DOUBLE, f[7] = 0, f[8] = -0.0f;
    for (int mode = NC_QUANTIZE_BITGROOM; mode <= NC_QUANTIZE_BITROUND; mode++)
        /* At 7 digits, netCDF-C shifts floats by more bits than they have. */
        for (int digits = 1; digits <= (mode == NC_QUANTIZE_BITROUND ? 7 : 5); digits += 2) {
            char name[40];
            snprintf(name, sizeof name, "float, mode %d, %d", mode, digits);
            int v = var(nc, name, NC_FLOAT, x);
            MUST(nc_def_var_quantize(nc, v, mode, digits));
            MUST(nc_def_var_deflate(nc, v, 1, 1, 1));
            MUST(nc_put_var_float(nc, v, f));
            snprintf(name, sizeof name, "double, mode %d, %d", mode, digits);
            v = var(nc, name, NC_DOUBLE, x);
            MUST(nc_def_var_quantize(nc, v, mode, digits));
            MUST(nc_put_var_double(nc, v, d));
        }
    return nc;
}

static int parts(const char *path) {
    int nc = create(path, 0), y = dim(nc, "y", 12), x = dim(nc, "x", 15), t = dim(nc, "t", NC_UNLIMITED);
    static const char *const kinds[] = {"contiguous", "chunked", "deflated"};
    double values[400];
    for (int i = 0; i < 400; i++) values[i] = i;
    for (int k = 0; k < 3; k++) {
        char name[40];
        snprintf(name, sizeof name, "%s", kinds[k]);
        int v = var(nc, name, NC_INT, y, x), r;
        snprintf(name, sizeof name, "%s records", kinds[k]);
        r = var(nc, name, NC_INT, t, x);
        if (k) MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(5, 4)));
        MUST(nc_def_var_chunking(nc, r, NC_CHUNKED, AT(3, 4)));
        if (k == 2) MUST(nc_def_var_deflate(nc, v, 1, 1, 5));
        if (k == 2) MUST(nc_def_var_deflate(nc, r, 0, 1, 5));
        MUST(nc_put_vars_double(nc, v, AT(1, 2), AT(4, 5), (ptrdiff_t[]){3, 2}, values));
        MUST(nc_put_vars_double(nc, v, AT(0, 0), AT(12, 1), (ptrdiff_t[]){1, 1}, values + 100));
        MUST(nc_put_varm_double(nc, v, AT(2, 6), AT(3, 6), (ptrdiff_t[]){1, 1}, (ptrdiff_t[]){1, 3}, values + 200));
        MUST(nc_put_varm_double(nc, v, AT(8, 1), AT(2, 3), (ptrdiff_t[]){2, 4}, (ptrdiff_t[]){7, 2}, values + 300));
        for (size_t i = 0; i < 12; i++) MUST(nc_put_var1_double(nc, v, AT(11 - i, i), values + 350 + i));
        MUST(nc_put_vars_double(nc, r, AT(2, 1), AT(3, 4), (ptrdiff_t[]){4, 3}, values));
        MUST(nc_put_vara_double(nc, r, AT(5, 0), AT(2, 15), values + 50));
        SAY(nc_put_vara_double(nc, v, AT(11, 14), AT(1, 2), values));
        SAY(nc_put_vara_double(nc, v, AT(12, 0), AT(1, 1), values));
        SAY(nc_put_vars_double(nc, v, AT(0, 0), AT(2, 2), (ptrdiff_t[]){0, 1}, values));
        SAY(nc_put_vara_double(nc, r, AT(20, 0), AT(0, 3), values));
    }
    return nc;
}

/* Chunks written backwards, in the middle, twice, and after the file was opened again. */
static int order_of_chunks(const char *path) {
    int nc = create(path, 0), t = dim(nc, "t", NC_UNLIMITED), x = dim(nc, "x", 8), v[2];
    for (int k = 0; k < 2; k++) {
        v[k] = var(nc, k ? "deflated" : "plain", NC_INT, t, x);
        MUST(nc_def_var_chunking(nc, v[k], NC_CHUNKED, AT(2, 3)));
        if (k) MUST(nc_def_var_deflate(nc, v[k], 1, 1, 1));
    }
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 2; k++) {
            for (size_t r = 40; r-- > 0;)
                if (mixed((unsigned)round, (unsigned)r) % 3 == 0) fill_block(nc, v[k], AT(r, 1), AT(1, 6), (unsigned)(r + 100 * (size_t)round));
            fill_block(nc, v[k], AT(60 - 10 * (size_t)round, 2), AT(1, 2), 5);
        }
        if (round == 0) MUST(nc_sync(nc));
        if (round == 1) {
            MUST(nc_close(nc));
            nc = reopen(path);
        }
    }
    return nc;
}

/* Enough chunks for an index of three levels. */
static int many_chunks(const char *path) {
    int nc = create(path, 0), t = dim(nc, "t", NC_UNLIMITED), x = dim(nc, "x", 3), v = var(nc, "v", NC_SHORT, t, x);
    static short values[9000];
    MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(1, 2)));
    for (int i = 0; i < 9000; i++) values[i] = (short)(i * 7);
    MUST(nc_put_vara_short(nc, v, AT(0, 0), AT(3000, 3), values));
    MUST(nc_sync(nc));
    MUST(nc_put_vara_short(nc, v, AT(3000, 0), AT(500, 3), values));
    return nc;
}

static int large(const char *path) {
    int nc = create(path, 0), y = dim(nc, "y", 700), x = dim(nc, "x", 900);
    float *f = malloc(630000 * sizeof *f);
    for (int i = 0; i < 630000; i++) f[i] = (float)(sin(i / 900 / 50.0) + cos(i % 900 / 70.0));
    const char *const kinds[] = {"contiguous", "chunked", "deflated", "deflated and shuffled"};
    for (int k = 0; k < 4; k++) {
        int v = var(nc, kinds[k], NC_FLOAT, y, x);
        if (k) MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(256, 300)));
        if (k > 1) MUST(nc_def_var_deflate(nc, v, k == 3, 1, 2));
        MUST(nc_put_var_float(nc, v, f));
    }
    free(f);
    return nc;
}

/* Noise: deflate makes it longer. */
static int incompressible(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 5000), v;
    static unsigned char noise[5000];
    unsigned long long state = 88172645463325252ull;
    for (int i = 0; i < 5000; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        noise[i] = (unsigned char)(state >> 20);
    }
    for (int k = 0; k < 3; k++) {
        v = var(nc, k == 0 ? "deflate" : k == 1 ? "deflate, fletcher" : "fletcher, deflate", NC_UBYTE, x);
        MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(1100)));
        if (k == 2) MUST(nc_def_var_fletcher32(nc, v, 1));
        MUST(nc_def_var_deflate(nc, v, 0, 1, 9));
        if (k == 1) MUST(nc_def_var_fletcher32(nc, v, 1));
        MUST(nc_put_var_uchar(nc, v, noise));
    }
    return nc;
}

const case_t STORAGE_CASES[] = {
    {"layouts", layouts},
    {"deflated", deflated},
    {"pipelines", pipelines},
    {"szip", szipped},
    {"plugins", plugins},
    {"fills", fills},
    {"no-fill", no_fill},
    {"endian", endian},
    {"quantized", quantized},
    {"parts", parts},
    {"order-of-chunks", order_of_chunks},
    {"many-chunks", many_chunks},
    {"large", large},
    {"incompressible", incompressible},
    {NULL, NULL},
};
