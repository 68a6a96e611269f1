/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Files that are defined, written and changed in several steps. */
#include "cases.h"

/* One more of everything, so that it can be done again and again. */
static void grow(int nc, int round) {
    char name[60];
    int t, x, v;
    snprintf(name, sizeof name, "dim_%d", round);
    x = dim(nc, name, (size_t)round % 4 + 1);
    MUST(nc_inq_dimid(nc, "t", &t));
    snprintf(name, sizeof name, "fixed_%d", round);
    v = var(nc, name, NC_INT, x);
    text_att(nc, v, "units", "1");
    snprintf(name, sizeof name, "record_%d", round);
    var(nc, name, NC_FLOAT, t, x);
    snprintf(name, sizeof name, "attribute_%d", round);
    text_att(nc, NC_GLOBAL, name, "added in a round");
}

/* Data for all variables there are. */
static void put_all(int nc, size_t record) {
    int n, t, dims[4];
    MUST(nc_inq_nvars(nc, &n));
    MUST(nc_inq_dimid(nc, "t", &t));
    for (int v = 0; v < n; v++) {
        int rank;
        size_t start[4] = {record, 0, 0, 0}, count[4] = {1, 1, 1, 1};
        MUST(nc_inq_var(nc, v, NULL, NULL, &rank, dims, NULL));
        if (rank && dims[0] == t) {
            for (int d = 1; d < rank; d++) MUST(nc_inq_dimlen(nc, dims[d], count + d));
            fill_block(nc, v, start, count, (unsigned)(record * 100) + (unsigned)v);
        } else {
            fill_all(nc, v, (unsigned)v);
        }
    }
}

static int cycles(const char *path, int flags, int explicit, int reopening) {
    int nc = create(path, flags);
    dim(nc, "t", NC_UNLIMITED);
    for (int round = 0; round < 6; round++) {
        if (round && reopening) {
            MUST(nc_close(nc));
            nc = reopen(path);
        }
        if (explicit && round) MUST(nc_redef(nc));
        grow(nc, round);
        if (explicit) MUST(nc_enddef(nc));
        put_all(nc, (size_t)round);
        if (round == 3) MUST(nc_sync(nc));
    }
    return nc;
}

static int cycles_explicit(const char *path) { return cycles(path, 0, 1, 0); }
static int cycles_implicit(const char *path) { return cycles(path, 0, 0, 0); }
static int cycles_reopening(const char *path) { return cycles(path, 0, 0, 1); }
static int cycles_classic(const char *path) { return cycles(path, NC_CLASSIC_MODEL, 1, 0); }
static int cycles_classic_reopening(const char *path) { return cycles(path, NC_CLASSIC_MODEL, 1, 1); }

static int classic_model(const char *path) {
    int nc = create(path, NC_CLASSIC_MODEL), t = dim(nc, "t", NC_UNLIMITED), x = dim(nc, "x", 3), again;
    int v[7];
    for (int k = NC_BYTE; k <= NC_DOUBLE; k++) {
        char name[40];
        snprintf(name, sizeof name, "v%d", k);
        v[k] = var(nc, name, k, t, x);
    }
    SAY(nc_def_dim(nc, "u", NC_UNLIMITED, &again));
    SAY(nc_def_var(nc, "w", NC_UINT, 0, NULL, &again));
    SAY(nc_def_var(nc, "w", NC_STRING, 0, NULL, &again));
    SAY(nc_def_grp(nc, "g", &again));
    SAY(nc_put_vara_int(nc, v[NC_INT], AT(0, 0), AT(1, 3), (int[]){1, 2, 3}));
    MUST(nc_enddef(nc));
    SAY(nc_def_dim(nc, "y", 4, &again));
    SAY(nc_put_att_text(nc, NC_GLOBAL, "a", 1, "b"));
    for (int k = NC_BYTE; k <= NC_DOUBLE; k++) fill_block(nc, v[k], AT(0, 0), AT(2, 3), (unsigned)k);
    return nc;
}

static int in_memory(const char *path) {
    int nc;
    NC_memio held;
    MUST(nc_create_mem("memory", NC_NETCDF4, 4096, &nc));
    dim(nc, "t", NC_UNLIMITED);
    grow(nc, 0);
    grow(nc, 1);
    put_all(nc, 0);
    put_all(nc, 1);
    MUST(nc_close_memio(nc, &held));
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(held.memory, 1, held.size, f) != held.size || fclose(f)) exit(3);
    free(held.memory);
    return CLOSED;
}

static int changed_in_memory(const char *path) {
    int nc = create(path, 0);
    dim(nc, "t", NC_UNLIMITED);
    grow(nc, 0);
    put_all(nc, 0);
    MUST(nc_close(nc));
    FILE *f = fopen(path, "rb");
    NC_memio held = {0};
    if (!f || fseek(f, 0, SEEK_END)) exit(3);
    held.size = (size_t)ftell(f);
    held.memory = malloc(held.size);
    rewind(f);
    if (fread(held.memory, 1, held.size, f) != held.size) exit(3);
    fclose(f);
    MUST(nc_open_memio("memory", NC_WRITE, &held, &nc));
    grow(nc, 1);
    put_all(nc, 1);
    text_att(nc, NC_GLOBAL, "changed", "in memory");
    MUST(nc_close_memio(nc, &held));
    f = fopen(path, "wb");
    if (!f || fwrite(held.memory, 1, held.size, f) != held.size || fclose(f)) exit(3);
    free(held.memory);
    return CLOSED;
}

static int diskless(const char *path) {
    int nc = create(path, NC_DISKLESS | NC_PERSIST);
    dim(nc, "t", NC_UNLIMITED);
    grow(nc, 0);
    put_all(nc, 0);
    return nc;
}

static int copies(const char *path) {
    int nc = create(path, 0), t = dim(nc, "t", NC_UNLIMITED), x = dim(nc, "x", 4), g = group(nc, "g"), v, copy;
    dim(g, "x", 4);
    dim(g, "t", NC_UNLIMITED);
    v = var(nc, "r", NC_SHORT, t, x);
    MUST(nc_def_var_deflate(nc, v, 1, 1, 2));
    text_att(nc, v, "units", "K");
    MUST(nc_put_att_string(nc, v, "s", 2, (const char *[]){"one", "two"}));
    fill_block(nc, v, AT(0, 0), AT(3, 4), 1);
    int plain = var(nc, "p", NC_DOUBLE, x);
    fill_all(nc, plain, 2);
    MUST(nc_copy_var(nc, plain, g));
    SAY(nc_copy_var(nc, v, g));
    MUST(nc_copy_att(nc, v, "units", nc, NC_GLOBAL));
    MUST(nc_copy_att(nc, v, "s", g, NC_GLOBAL));
    MUST(nc_copy_att(nc, v, "units", nc, plain));
    MUST(nc_inq_varid(g, "p", &copy));
    MUST(nc_copy_att(nc, v, "units", g, copy));
    return nc;
}

/* Two files written in turns. */
static int two_at_once(const char *path) {
    char other[4000];
    snprintf(other, sizeof other, "%s.other", path);
    int a = create(path, 0), b = create(other, 0);
    dim(a, "t", NC_UNLIMITED);
    dim(b, "t", NC_UNLIMITED);
    for (int round = 0; round < 3; round++) {
        grow(a, round);
        grow(b, round + 10);
        put_all(b, (size_t)round);
        put_all(a, (size_t)round);
    }
    MUST(nc_copy_att(b, NC_GLOBAL, "attribute_11", a, NC_GLOBAL));
    MUST(nc_close(b));
    remove(other);
    return a;
}

static int conversions(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 6);
    double d[] = {-1e10, -200, -1, 0.75, 255, 70000};
    int n[] = {INT_MIN, -200, -1, 0, 255, 70000};
    for (int k = NC_BYTE; k <= NC_UINT64; k++) {
        char name[40];
        if (k == NC_CHAR) continue;
        snprintf(name, sizeof name, "int as %d", k);
        int v = var(nc, name, k, x);
        SAY(nc_put_var_int(nc, v, n));
        SAY(nc_put_att_int(nc, v, "a", k, 6, n));
        snprintf(name, sizeof name, "long long as %d", k);
        v = var(nc, name, k, x);
        SAY(nc_put_var_longlong(nc, v, (long long[]){LLONG_MIN, -1, 0, 1, 300, LLONG_MAX}));
        if (k == NC_FLOAT || k == NC_DOUBLE) {
            snprintf(name, sizeof name, "double as %d", k);
            SAY(nc_put_var_double(nc, var(nc, name, k, x), d));
        }
        snprintf(name, sizeof name, "uchar as %d", k);
        SAY(nc_put_var_uchar(nc, var(nc, name, k, x), (unsigned char[]){0, 1, 127, 128, 254, 255}));
    }
    SAY(nc_put_var_int(nc, var(nc, "text", NC_CHAR, x), n));
    return nc;
}

/* Records appended one at a time, the file opened for each. */
static int appended(const char *path) {
    int nc = create(path, 0);
    dim(nc, "t", NC_UNLIMITED);
    for (int i = 0; i < 3; i++) grow(nc, i);
    MUST(nc_close(nc));
    for (size_t r = 0; r < 12; r++) {
        nc = reopen(path);
        put_all(nc, r);
        MUST(nc_close(nc));
    }
    return CLOSED;
}

static int synced(const char *path) {
    int nc = create(path, 0);
    dim(nc, "t", NC_UNLIMITED);
    for (int i = 0; i < 3; i++) grow(nc, i);
    for (size_t r = 0; r < 30; r++) {
        put_all(nc, r);
        MUST(nc_sync(nc));
    }
    return nc;
}

const case_t LIFE_CASES[] = {
    {"redef-explicit", cycles_explicit},
    {"redef-implicit", cycles_implicit},
    {"redef-reopening", cycles_reopening},
    {"redef-classic", cycles_classic},
    {"redef-classic-reopening", cycles_classic_reopening},
    {"classic-model", classic_model},
    {"in-memory", in_memory},
    {"changed-in-memory", changed_in_memory},
    {"diskless", diskless},
    {"copies", copies},
    {"two-at-once", two_at_once},
    {"conversions", conversions},
    {"appended", appended},
    {"synced", synced},
    {NULL, NULL},
};
