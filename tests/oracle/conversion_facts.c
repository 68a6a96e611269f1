/*
 * conversion_facts: what a libnetcdf does with each value of each pair of types.
 *
 * usage: conversion_facts LIBRARY SCRATCH_FILE
 *
 * LIBRARY is loaded with dlopen, so one binary asks any library. Each line on stdout is one fact:
 *
 *   DIRECTION FORMAT EXTERNAL MEMORY SOURCE RESULT CODE
 *
 * DIRECTION  get, put          one element by nc_get_var_TYPE / nc_put_var_TYPE
 *            getatt, putatt    the same through an attribute
 * FORMAT     1, 2, 4, 5        CDF-1, CDF-2, netCDF-4, CDF-5
 * EXTERNAL, MEMORY             names of types (memory types by their C family)
 * SOURCE     bits of the source element, hexadecimal
 * RESULT     bits of the destination element, or "kept" if it was not written
 * CODE       what the call returned
 *
 * A destination is known to be kept because the call is made twice over different old contents.
 * For attributes the old contents on put are not ours to choose: where a variable is "kept" the
 * attribute's bytes are indeterminate, and no putatt line is printed.
 *
 * Afterwards all values of a pair are transferred as one array, at several lengths, and compared
 * with what they gave alone; "differs" lines name elements that depend on their neighbours.
 *
 * Lines "echar FORMAT CALL CODE" say what text answers to numbers and numbers to text.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TYPES = 10, MAX_VALUES = 256, LEN = 512 };

enum {
    FLAG_CDF2 = 0x0200,
    FLAG_CDF5 = 0x0020,
    FLAG_NETCDF4 = 0x1000,
    FLAG_CLOBBER = 0,
    NOFILL = 0x100,
    CHAR_TYPE = 2
};

struct type {
    const char *external, *memory, *suffix;
    int code, size;
};

/* nc_type number, and the family of C functions whose memory type it is the natural form of */
static const struct type types[N_TYPES] = {
    {"byte", "schar", "schar", 1, 1},
    {"ubyte", "uchar", "uchar", 7, 1},
    {"short", "short", "short", 3, 2},
    {"ushort", "ushort", "ushort", 8, 2},
    {"int", "int", "int", 4, 4},
    {"uint", "uint", "uint", 9, 4},
    {"int64", "longlong", "longlong", 10, 8},
    {"uint64", "ulonglong", "ulonglong", 11, 8},
    {"float", "float", "float", 5, 4},
    {"double", "double", "double", 6, 8},
};

static void *library;

static void *lookup(const char *prefix, const char *suffix)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "missing symbol %s\n", name);
        exit(2);
    }
    return symbol;
}

typedef int (*create_fn)(const char *, int, int *);
typedef int (*close_fn)(int);
typedef int (*def_dim_fn)(int, const char *, size_t, int *);
typedef int (*def_var_fn)(int, const char *, int, int, const int *, int *);
typedef int (*set_fill_fn)(int, int, int *);
typedef int (*put_vara_fn)(int, int, const size_t *, const size_t *, const void *);
typedef int (*get_vara_fn)(int, int, const size_t *, const size_t *, void *);
typedef int (*put_att_fn)(int, int, const char *, int, size_t, const void *);
typedef int (*get_att_fn)(int, int, const char *, void *);
typedef int (*put_text_att_fn)(int, int, const char *, size_t, const char *);

static create_fn create;
static close_fn enddef, redef, close_file;
static def_dim_fn def_dim;
static def_var_fn def_var;
static set_fill_fn set_fill;
static put_vara_fn put_vara[N_TYPES];
static get_vara_fn get_vara[N_TYPES];
static put_att_fn put_att[N_TYPES];
static get_att_fn get_att[N_TYPES];

static void must(int code, const char *what)
{
    if (code) {
        fprintf(stderr, "%s failed: %d\n", what, code);
        exit(2);
    }
}

static void load(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    create = (create_fn)lookup("nc_create", "");
    enddef = (close_fn)lookup("nc_enddef", "");
    redef = (close_fn)lookup("nc_redef", "");
    close_file = (close_fn)lookup("nc_close", "");
    def_dim = (def_dim_fn)lookup("nc_def_dim", "");
    def_var = (def_var_fn)lookup("nc_def_var", "");
    set_fill = (set_fill_fn)lookup("nc_set_fill", "");
    for (int t = 0; t < N_TYPES; t++) {
        put_vara[t] = (put_vara_fn)lookup("nc_put_vara_", types[t].suffix);
        get_vara[t] = (get_vara_fn)lookup("nc_get_vara_", types[t].suffix);
        put_att[t] = (put_att_fn)lookup("nc_put_att_", types[t].suffix);
        get_att[t] = (get_att_fn)lookup("nc_get_att_", types[t].suffix);
    }
}

static int is_float(int t) { return t >= 8; }

static uint64_t bits_of(const void *p, int size)
{
    uint64_t bits = 0;
    memcpy(&bits, p, (size_t)size); /* little-endian machines only, as is the reference here */
    return bits;
}

static void add_bits(uint64_t *values, int *n, uint64_t bits, int size)
{
    if (size < 8)
        bits &= (1ULL << 8 * size) - 1;
    for (int i = 0; i < *n; i++)
        if (values[i] == bits)
            return;
    if (*n == MAX_VALUES) {
        fprintf(stderr, "too many values\n");
        exit(2);
    }
    values[(*n)++] = bits;
}

static void add_float(uint64_t *values, int *n, double x, int size)
{
    if (size == 4) {
        float f = (float)x;
        add_bits(values, n, bits_of(&f, 4), 4);
    } else {
        add_bits(values, n, bits_of(&x, 8), 8);
    }
}

/* The neighbours of every bound that any pair has. */
static int values_of(int t, uint64_t *values)
{
    int n = 0, size = types[t].size;
    static const double floats[] = {
        0.0, 0.25, 0.5, 0.999, 1.0, 1.5, 2.5, 100.7, 1e5, 1e10, 3e9, 1e15, 1e19, 1.2e19, 1e20, 1e30,
        1e38, 1e-40, 5e-324, 16777217.0, 9007199254740993.0, 123456.789,
    };
    static const int powers[] = {7, 8, 15, 16, 31, 32, 63, 64};
    if (!is_float(t)) {
        static const uint64_t small[] = {0, 1, 2, 42, 100, 0x0102030405060708ULL,
            0xfedcba9876543210ULL, 0x1000001, 0x20000000000001ULL, 0x7fffff4000000001ULL,
            0xfffffffffffff400ULL, 0xfffffffffffffbffULL};
        for (unsigned i = 0; i < sizeof small / sizeof *small; i++) {
            add_bits(values, &n, small[i], size);
            add_bits(values, &n, 0 - small[i], size);
        }
        for (unsigned i = 0; i < sizeof powers / sizeof *powers; i++) {
            uint64_t p = powers[i] == 64 ? 0 : 1ULL << powers[i];
            for (int d = -2; d <= 2; d++) {
                add_bits(values, &n, p + (uint64_t)(int64_t)d, size);
                add_bits(values, &n, 0 - p + (uint64_t)(int64_t)d, size);
            }
        }
        return n;
    }
    for (unsigned i = 0; i < sizeof floats / sizeof *floats; i++) {
        add_float(values, &n, floats[i], size);
        add_float(values, &n, -floats[i], size);
    }
    for (unsigned i = 0; i < sizeof powers / sizeof *powers; i++) {
        double p = 1.0;
        for (int k = 0; k < powers[i]; k++)
            p *= 2.0;
        double at[3] = {p, p - 1.0, p + 1.0};
        for (int k = 0; k < 3; k++) {
            add_float(values, &n, at[k], size);
            add_float(values, &n, -at[k], size);
        }
        if (powers[i] < 63) {
            add_float(values, &n, p - 0.5, size);
            add_float(values, &n, -p - 0.5, size);
        }
        /* the representable neighbours */
        if (size == 4) {
            float f = (float)p;
            add_bits(values, &n, bits_of(&f, 4) - 1, 4);
            add_bits(values, &n, (bits_of(&f, 4) + 1) | 0x80000000u, 4);
        } else {
            add_bits(values, &n, bits_of(&p, 8) - 1, 8);
            add_bits(values, &n, (bits_of(&p, 8) + 1) | 1ULL << 63, 8);
        }
    }
    if (size == 4) {
        static const uint32_t special[] = {
            0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7fc12345, 0x7f812345, 0xff812345,
            0x7f7fffff, 0xff7fffff, 0x00000001, 0x80000001, 0x80000000, 0x7cf00000,
        };
        for (unsigned i = 0; i < sizeof special / sizeof *special; i++)
            add_bits(values, &n, special[i], 4);
    } else {
        static const uint64_t special[] = {
            0x7ff0000000000000ULL, 0xfff0000000000000ULL, 0x7ff8000000000000ULL,
            0xfff8000000000000ULL, 0x7ff8123456789abcULL, 0x7ff0123456789abcULL,
            0xfff0123456789abcULL, 0x7fefffffffffffffULL, 0xffefffffffffffffULL,
            0x47efffffe0000000ULL, 0x47efffffe0000001ULL, 0x47efffffefffffffULL,
            0x47effffff0000000ULL, 0x47f0000000000000ULL, 0xc7efffffe0000001ULL,
            0xc7f0000000000000ULL, 0x369fffffffffffffULL, 0x36a0000000000000ULL,
            0x3810000000000000ULL, 0x380fffffffffffffULL, 0x479e000000000000ULL,
        };
        for (unsigned i = 0; i < sizeof special / sizeof *special; i++)
            add_bits(values, &n, special[i], 8);
    }
    return n;
}

static int ncid, format, varid[N_TYPES];

/* The formats of the first releases have six types. */
static int has_type(int t) { return format > 2 || types[t].code <= 6; }

static void put_one(int t, uint64_t bits, int var, size_t at)
{
    size_t one = 1;
    must(put_vara[t](ncid, var, &at, &one, &bits), "natural put");
}

static uint64_t get_one(int t, int var, size_t at)
{
    size_t one = 1;
    uint64_t bits = 0;
    must(get_vara[t](ncid, var, &at, &one, &bits), "natural get");
    return bits;
}

static void print_fact(const char *direction, int e, int m, uint64_t source, int source_size,
                       int kept, uint64_t result, int result_size, int code)
{
    printf("%s %d %s %s %0*" PRIx64 " ", direction, format, types[e].external, types[m].memory,
           2 * source_size, source);
    if (kept)
        printf("kept %d\n", code);
    else
        printf("%0*" PRIx64 " %d\n", 2 * result_size, result, code);
}

static uint64_t poison(int round, int size)
{
    uint64_t bits = round ? 0x5a5a5a5a5a5a5a5aULL : 0xa5a5a5a5a5a5a5a5ULL;
    return size == 8 ? bits : bits & ((1ULL << 8 * size) - 1);
}

/* The results of a pair's values transferred alone, to compare arrays with. */
static uint64_t alone[MAX_VALUES];
static int alone_kept[MAX_VALUES];

static void get_facts(int e, int m)
{
    uint64_t values[MAX_VALUES];
    int n = values_of(e, values), xs = types[e].size, ms = types[m].size;
    size_t at = 3, one = 1;
    for (int i = 0; i < n; i++) {
        uint64_t out[2];
        int code = 0;
        put_one(e, values[i], varid[e], at);
        for (int round = 0; round < 2; round++) {
            out[round] = poison(round, ms);
            code = get_vara[m](ncid, varid[e], &at, &one, &out[round]);
        }
        int kept = out[0] == poison(0, ms) && out[1] == poison(1, ms);
        if (!kept && out[0] != out[1])
            printf("unstable get %s %s\n", types[e].external, types[m].memory);
        alone[i] = out[0];
        alone_kept[i] = kept;
        print_fact("get", e, m, values[i], xs, kept, out[0], ms, code);
    }
    for (size_t len = 1; len <= LEN; len = len * 3 + 1) {
        unsigned char buffer[LEN * 8];
        size_t start = 0;
        for (size_t i = 0; i < len; i++)
            memcpy(buffer + i * (size_t)xs, &values[(i * 7 + len) % (size_t)n], (size_t)xs);
        must(put_vara[e](ncid, varid[e], &start, &len, buffer), "natural array put");
        memset(buffer, 0xa5, sizeof buffer);
        (void)get_vara[m](ncid, varid[e], &start, &len, buffer);
        for (size_t i = 0; i < len; i++) {
            size_t v = (i * 7 + len) % (size_t)n;
            uint64_t want = alone_kept[v] ? poison(0, ms) : alone[v];
            uint64_t have = bits_of(buffer + i * (size_t)ms, ms);
            if (want != have)
                printf("differs get %d %s %s length %zu element %zu: %" PRIx64 " gave %" PRIx64
                       ", alone %" PRIx64 "\n", format, types[e].external, types[m].memory, len, i,
                       values[v], have, want);
        }
    }
}

static void put_facts(int e, int m)
{
    uint64_t values[MAX_VALUES];
    int n = values_of(m, values), xs = types[e].size, ms = types[m].size;
    size_t at = 3, one = 1;
    for (int i = 0; i < n; i++) {
        uint64_t out[2];
        int code = 0;
        for (int round = 0; round < 2; round++) {
            put_one(e, poison(round, xs), varid[e], at);
            code = put_vara[m](ncid, varid[e], &at, &one, &values[i]);
            out[round] = get_one(e, varid[e], at);
        }
        int kept = out[0] == poison(0, xs) && out[1] == poison(1, xs);
        if (!kept && out[0] != out[1])
            printf("unstable put %s %s\n", types[e].external, types[m].memory);
        alone[i] = out[0];
        alone_kept[i] = kept;
        print_fact("put", e, m, values[i], ms, kept, out[0], xs, code);
    }
    for (size_t len = 1; len <= LEN; len = len * 3 + 1) {
        unsigned char buffer[LEN * 8];
        size_t start = 0;
        memset(buffer, 0xa5, sizeof buffer);
        must(put_vara[e](ncid, varid[e], &start, &len, buffer), "natural array put");
        for (size_t i = 0; i < len; i++)
            memcpy(buffer + i * (size_t)ms, &values[(i * 7 + len) % (size_t)n], (size_t)ms);
        (void)put_vara[m](ncid, varid[e], &start, &len, buffer);
        must(get_vara[e](ncid, varid[e], &start, &len, buffer), "natural array get");
        for (size_t i = 0; i < len; i++) {
            size_t v = (i * 7 + len) % (size_t)n;
            uint64_t want = alone_kept[v] ? poison(0, xs) : alone[v];
            uint64_t have = bits_of(buffer + i * (size_t)xs, xs);
            if (want != have)
                printf("differs put %d %s %s length %zu element %zu: %" PRIx64 " gave %" PRIx64
                       ", alone %" PRIx64 "\n", format, types[e].external, types[m].memory, len, i,
                       values[v], have, want);
        }
    }
}

/* In define mode: an attribute may change type and size there. */
static void att_facts(int e, int m)
{
    uint64_t values[MAX_VALUES];
    int n = values_of(e, values), xs = types[e].size, ms = types[m].size;
    for (int i = 0; i < n; i++) {
        uint64_t out[2];
        int code = 0;
        must(put_att[e](ncid, -1, "a", types[e].code, 1, &values[i]), "natural attribute put");
        for (int round = 0; round < 2; round++) {
            out[round] = poison(round, ms);
            code = get_att[m](ncid, -1, "a", &out[round]);
        }
        int kept = out[0] == poison(0, ms) && out[1] == poison(1, ms);
        print_fact("getatt", e, m, values[i], xs, kept, out[0], ms, code);
    }
    n = values_of(m, values);
    for (int i = 0; i < n; i++) {
        uint64_t out = 0;
        if (!strcmp(types[e].external, "uint") && !strcmp(types[m].memory, "schar")
            && (values[i] & 0x80))
            continue;
        int code = put_att[m](ncid, -1, "b", types[e].code, 1, &values[i]);
        must(get_att[e](ncid, -1, "b", &out), "natural attribute get");
        print_fact("putatt", e, m, values[i], ms, 0, out, xs, code);
    }
}

static void text_facts(void)
{
    int dim, text;
    size_t at = 0, one = 1;
    uint64_t value = 65;
    must(redef(ncid), "redef");
    must(def_dim(ncid, "t", 4, &dim), "def_dim");
    must(def_var(ncid, "text", CHAR_TYPE, 1, &dim, &text), "def_var");
    put_text_att_fn put_text_att = (put_text_att_fn)lookup("nc_put_att_text", "");
    get_att_fn get_text_att = (get_att_fn)lookup("nc_get_att_text", "");
    must(put_text_att(ncid, -1, "c", 1, "A"), "put_att_text");
    for (int m = 0; m < N_TYPES; m++) {
        printf("echar %d get_att_%s on char %d\n", format, types[m].suffix,
               get_att[m](ncid, -1, "c", &value));
        printf("echar %d put_att_%s as char %d\n", format, types[m].suffix,
               put_att[m](ncid, -1, "d", CHAR_TYPE, 1, &value));
    }
    must(put_att[2](ncid, -1, "e", types[2].code, 1, &value), "put_att_short");
    printf("echar %d get_att_text on short %d\n", format, get_text_att(ncid, -1, "e", &value));
    must(enddef(ncid), "enddef");
    get_vara_fn get_text = (get_vara_fn)lookup("nc_get_vara_text", "");
    put_vara_fn put_text = (put_vara_fn)lookup("nc_put_vara_text", "");
    for (int m = 0; m < N_TYPES; m++) {
        printf("echar %d put_vara_%s on char %d\n", format, types[m].suffix,
               put_vara[m](ncid, text, &at, &one, &value));
        printf("echar %d get_vara_%s on char %d\n", format, types[m].suffix,
               get_vara[m](ncid, text, &at, &one, &value));
        if (!has_type(m))
            continue;
        printf("echar %d put_vara_text on %s %d\n", format, types[m].external,
               put_text(ncid, varid[m], &at, &one, &value));
        printf("echar %d get_vara_text on %s %d\n", format, types[m].external,
               get_text(ncid, varid[m], &at, &one, &value));
    }
}

static void facts_of_format(const char *path, int flag)
{
    int dim, old;
    must(create(path, FLAG_CLOBBER | flag, &ncid), "create");
    must(set_fill(ncid, NOFILL, &old), "set_fill");
    must(def_dim(ncid, "x", LEN, &dim), "def_dim");
    for (int e = 0; e < N_TYPES; e++)
        if (has_type(e))
            must(def_var(ncid, types[e].external, types[e].code, 1, &dim, &varid[e]), "def_var");
    for (int e = 0; e < N_TYPES; e++)
        for (int m = 0; m < N_TYPES; m++)
            if (has_type(e))
                att_facts(e, m);
    must(enddef(ncid), "enddef");
    for (int e = 0; e < N_TYPES; e++)
        for (int m = 0; m < N_TYPES; m++)
            if (has_type(e)) {
                get_facts(e, m);
                put_facts(e, m);
            }
    text_facts();
    must(close_file(ncid), "close");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: conversion_facts LIBRARY SCRATCH_FILE\n");
        return 2;
    }
    load(argv[1]);
    static const int formats[][2] = {{1, 0}, {2, FLAG_CDF2}, {4, FLAG_NETCDF4}, {5, FLAG_CDF5}};
    for (int i = 0; i < 4; i++) {
        format = formats[i][0];
        facts_of_format(argv[2], formats[i][1]);
    }
    remove(argv[2]);
    return 0;
}
