/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Data of all types through all calls: values, limits, shapes, wrong arguments. */
#include "harness.h"
#include <float.h>
#include <math.h>

enum { N = 39 };
static const double WIDE[N] = {0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769,
                               65535, 65536, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0,
                               4294967295.0, 4294967296.0, 9007199254740993.0, 9223372036854774784.0,
                               9223372036854775808.0, -9223372036854775808.0, 18446744073709549568.0,
                               18446744073709551616.0, 1e30, -1e30, 3.4028234663852886e38,
                               3.4028235677973366e38, 1e300, -1e300, 0.5, -0.5, 1.5, -1.5, 1e-40, 1e-310};

/* Values of each C type, made without undefined conversions. */
#define VALUES(fam, T, f, P)                                                                   \
    static const T *values_##fam(void) {                                                       \
        static T values[N];                                                                    \
        for (int i = 0; i < N; i++) {                                                          \
            double w = WIDE[i];                                                                \
            if ((T)0.5 == 0) values[i] = w >= 9223372036854775808.0 ? (T)~0ull : (T)(long long)w; \
            else values[i] = (T)(fabs(w) > FLT_MAX && sizeof(T) == 4 ? FLT_MAX : w);           \
        }                                                                                      \
        return values;                                                                         \
    }
NUMERIC_FAMILIES(VALUES)

/* Each value put alone and all at once, then read back in the natural type. */
#define PUT(fam, T, f, P)                                                                      \
    static void put_##fam(int nc, int v, int natural) {                                        \
        const T *values = values_##fam();                                                      \
        nc_type type = 0;                                                                      \
        /* the reference leaves memory of these uninitialised where it is negative */          \
        if (nc_inq_vartype(nc, v, &type) == 0 && type == NC_UINT && !strcmp(#fam, "schar"))    \
            return;                                                                            \
        unsigned char raw[8 * N];                                                              \
        R(nc_put_var_##fam(nc, v, values));                                                    \
        poison(raw);                                                                           \
        R(nc_get_var(nc, v, raw));                                                             \
        bytes("stored", raw, (size_t)natural * N);                                             \
        for (size_t i = 0; i < N; i++) {                                                       \
            int code = nc_put_var1_##fam(nc, v, &i, values + i);                               \
            if (code) printf("   put1_" #fam " %zu -> %d\n", i, code);                         \
        }                                                                                      \
        R(nc_get_var(nc, v, raw));                                                             \
        bytes("stored", raw, (size_t)natural * N);                                             \
    }
NUMERIC_FAMILIES(PUT)

#define GET(fam, T, f, P)                                                                      \
    static void get_##fam(int nc, int v) {                                                     \
        T values[N + 1];                                                                       \
        poison(values);                                                                        \
        R(nc_get_var_##fam(nc, v, values));                                                    \
        printf("   " #fam " =");                                                               \
        for (int i = 0; i <= N; i++) printf(" " f, (P)values[i]);                              \
        putchar('\n');                                                                         \
        for (size_t i = 0; i < N; i++) {                                                       \
            T one;                                                                             \
            poison(one);                                                                       \
            int code = nc_get_var1_##fam(nc, v, &i, &one);                                     \
            if (code || memcmp(&one, values + i, sizeof one))                                  \
                printf("   get1_" #fam " %zu -> %d " f "\n", i, code, (P)one);                 \
        }                                                                                      \
    }
NUMERIC_FAMILIES(GET)

static void conversions(const char *path, int flags, nc_type last) {
    int nc, d, vars[NC_UINT64 + 1];
    char raw[N + 1];
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "n", N, &d));
    for (nc_type t = NC_BYTE; t <= last; t++) {
        char name[20];
        snprintf(name, sizeof name, "v%d", t);
        R(nc_def_var(nc, name, t, 1, &d, &vars[t]));
    }
    R(nc_enddef(nc));
    for (nc_type t = NC_BYTE; t <= last; t++) {
        size_t natural = 0;
        nc_inq_type(nc, t, NULL, &natural);
        note("type %d", t);
#define PUT_GET(fam, T, f, P) put_##fam(nc, vars[t], (int)natural);
        NUMERIC_FAMILIES(PUT_GET)
        memset(raw, 'q', sizeof raw);
        R(nc_put_var_text(nc, vars[t], raw));
        poison(raw);
        R(nc_get_var_text(nc, vars[t], raw));
        text("text", raw, sizeof raw);
        /* what the widest type left is then read through all */
        if (t == NC_CHAR) continue;
        R(nc_put_var_double(nc, vars[t], values_double()));
#define GET_ALL(fam, T, f, P) get_##fam(nc, vars[t]);
        NUMERIC_FAMILIES(GET_ALL)
    }
    R(nc_close(nc));
    describe_file(path);
}

/* A file with known values: five rows or records of six, and a variable that shares them. */
static int fresh(const char *path, int flags, int record, int *v) {
    int nc, dims[2], other, values[30];
    for (int i = 0; i < 30; i++) values[i] = i;
    nc_create(path, flags, &nc);
    nc_def_dim(nc, "t", record ? NC_UNLIMITED : 5, &dims[0]);
    nc_def_dim(nc, "x", 6, &dims[1]);
    nc_def_var(nc, "v", NC_INT, 2, dims, v);
    nc_def_var(nc, "other", NC_SHORT, 1, dims, &other);
    nc_enddef(nc);
    nc_put_vara_int(nc, *v, (size_t[]){0, 0}, (size_t[]){5, 6}, values);
    return nc;
}

/* What a transfer that fails did before is not compared, see exceptions.txt. */
static void got_ints(int code, const int *out) {
    if (code == NC_NOERR) ints("got", out, 40);
}

static void after_put(int code, int nc, int v) {
    int all[60];
    size_t len = 77;
    if (code != NC_NOERR) return;
    poison(all);
    R(nc_get_vara_int(nc, v, (size_t[]){0, 0}, (size_t[]){5, 6}, all));
    ints("all", all, 30);
    R(nc_inq_dimlen(nc, 0, &len));
    sizes("records", &len, 1);
}

static void try_slab(const char *path, int flags, int record, const size_t *start, const size_t *count,
                     const ptrdiff_t *stride) {
    static int out[400], in[400];
    static double wide[400];
    int v, nc = fresh(path, flags, record, &v), code;
    for (int i = 0; i < 400; i++) in[i] = 1000 + i;
    note("start %zu %zu count %zu %zu stride %td %td", start[0], start[1], count[0], count[1],
         stride ? stride[0] : -99, stride ? stride[1] : -99);
    poison(out);
    got_ints(R(nc_get_vara_int(nc, v, start, count, out)), out);
    poison(out);
    got_ints(R(nc_get_vars_int(nc, v, start, count, stride, out)), out);
    poison(wide);
    if (R(nc_get_vars_double(nc, v, start, count, stride, wide)) == NC_NOERR) doubles("wide", wide, 40);
    poison(out);
    got_ints(R(nc_get_vars(nc, v, start, count, stride, out)), out);
    after_put(R(nc_put_vara_int(nc, v, start, count, in)), nc, v);
    nc_close(nc);
    nc = fresh(path, flags, record, &v);
    after_put(R(nc_put_vars_int(nc, v, start, count, stride, in)), nc, v);
    nc_close(nc);
}

static void shapes(const char *path, int flags, int record) {
    static const size_t starts[][2] = {{0, 0}, {1, 2}, {4, 5}, {5, 0}, {0, 6}, {6, 0}, {0, 7}, {5, 6}, {1ul << 63, 0}};
    static const size_t counts[][2] = {{5, 6}, {1, 1}, {2, 3}, {0, 0}, {0, 3}, {3, 0}, {6, 1}, {1, 7}, {~0ul, 1}, {1, ~0ul}};
    static const ptrdiff_t strides[][2] = {{1, 1}, {2, 2}, {0, 1}, {1, 0}, {-1, 1}, {1, -1}, {3, 5}, {7, 7}, {1l << 40, 1}};
    for (size_t s = 0; s < COUNT(starts); s++)
        for (size_t c = 0; c < COUNT(counts); c++) {
            /* puts of gigantic records are what a program cannot mean; the fixed shape has them */
            if (record && (starts[s][0] > 100 || counts[c][0] > 100)) continue;
            try_slab(path, flags, record, starts[s], counts[c], NULL);
            for (size_t k = 0; k < COUNT(strides); k++)
                /* the reference overflows on gigantic strided counts, and crashes */
                if (!(record && strides[k][0] > 100) && counts[c][0] < 100 && counts[c][1] < 100)
                    try_slab(path, flags, record, starts[s], counts[c], strides[k]);
        }
    int v, nc = fresh(path, flags, record, &v);
    static int out[400];
    note("null arrays");
    R(nc_get_vara_int(nc, v, NULL, (size_t[]){1, 1}, out));
    poison(out);
    R(nc_get_vara_int(nc, v, (size_t[]){0, 0}, NULL, out));
    ints("out", out, 12);
    R(nc_get_vars_int(nc, v, (size_t[]){0, 0}, NULL, (ptrdiff_t[]){1, 1}, out));
    R(nc_get_vars_int(nc, v, NULL, NULL, NULL, out));
    R(nc_get_var1_int(nc, v, NULL, out));
    R(nc_put_var1_int(nc, v, NULL, out));
    R(nc_put_vara_int(nc, v, NULL, (size_t[]){1, 1}, out));
    R(nc_put_vara_int(nc, v, (size_t[]){0, 0}, NULL, out));
    note("wrong variables");
    static const int ids[] = {-2, -1, 2, 99};
    for (size_t i = 0; i < COUNT(ids); i++) {
        R(nc_get_vara_int(nc, ids[i], (size_t[]){0, 0}, (size_t[]){1, 1}, out));
        R(nc_put_vara_int(nc, ids[i], (size_t[]){0, 0}, (size_t[]){1, 1}, out));
        R(nc_get_var_int(nc, ids[i], out));
        R(nc_put_var_int(nc, ids[i], out));
        R(nc_get_var1_int(nc, ids[i], (size_t[]){0, 0}, out));
        R(nc_put_var1_text(nc, ids[i], (size_t[]){0, 0}, "x"));
        R(nc_get_vars_text(nc, ids[i], (size_t[]){0, 0}, (size_t[]){1, 1}, NULL, (char *)out));
    }
    note("text and numbers, with other mistakes");
    R(nc_get_vara_text(nc, v, (size_t[]){99, 99}, (size_t[]){1, 1}, (char *)out));
    R(nc_put_vara_text(nc, v, (size_t[]){99, 99}, (size_t[]){1, 1}, (char *)out));
    R(nc_put_vars_text(nc, v, (size_t[]){99, 99}, (size_t[]){1, 1}, (ptrdiff_t[]){0, 0}, (char *)out));
    R(nc_close(nc));
    describe_file(path);
}

static void scalars(const char *path, int flags) {
    int nc, v, c, t, r, value = 77;
    size_t zero = 0;
    char letter = 'z';
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    R(nc_def_var(nc, "s", NC_SHORT, 0, NULL, &v));
    R(nc_def_var(nc, "c", NC_CHAR, 0, NULL, &c));
    R(nc_def_var(nc, "r", NC_INT, 1, &t, &r));
    R(nc_put_var_int(nc, v, &value));
    R(nc_enddef(nc));
    R(nc_put_var1_int(nc, v, NULL, &value));
    R(nc_put_var1_int(nc, v, &zero, &value));
    R(nc_put_vara_int(nc, v, NULL, NULL, &value));
    R(nc_put_var_text(nc, c, &letter));
    R(nc_put_var_int(nc, c, &value));
    value = 0;
    R(nc_get_var_int(nc, v, &value));
    ints("value", &value, 1);
    R(nc_get_vars_int(nc, v, NULL, NULL, NULL, &value));
    R(nc_get_varm_int(nc, v, NULL, NULL, NULL, NULL, &value));
    R(nc_get_var1_int(nc, v, NULL, &value));
    note("a record variable without records");
    poison(value);
    R(nc_get_var_int(nc, r, &value));
    R(nc_put_var_int(nc, r, &value));
    R(nc_get_var1_int(nc, r, &zero, &value));
    R(nc_get_vara_int(nc, r, &zero, &zero, &value));
    for (size_t i = 0; i < 12; i += 5) {
        value = (int)i;
        R(nc_put_var1_int(nc, r, &i, &value));
    }
    int all[20];
    poison(all);
    R(nc_get_var_int(nc, r, all));
    ints("all", all, 12);
    R(nc_close(nc));
    describe_file(path);
}

static void strings(const char *path) {
    int nc, v;
    char *one[1] = {"text"};
    R(nc_create(path, 0, &nc));
    R(nc_def_var(nc, "c", NC_CHAR, 0, NULL, &v));
    R(nc_enddef(nc));
    R(nc_put_var_string(nc, v, (const char **)one));
    R(nc_get_var_string(nc, v, one));
    R(nc_put_var1_string(nc, v, NULL, (const char **)one));
    R(nc_get_var1_string(nc, v, NULL, one));
    R(nc_close(nc));
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        note("format %s", FORMATS[f].name);
        conversions(path_of("convert", FORMATS[f].name), FORMATS[f].flags, FORMATS[f].last_type);
        shapes(path_of("fixed", FORMATS[f].name), FORMATS[f].flags, 0);
        shapes(path_of("record", FORMATS[f].name), FORMATS[f].flags, 1);
        scalars(path_of("scalar", FORMATS[f].name), FORMATS[f].flags);
    }
    strings("string.nc");
    return 0;
}
