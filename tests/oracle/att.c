/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Attributes: every type by every call, extremes, edits in both modes. */
#include "harness.h"
#include <float.h>
#include <limits.h>
#include <math.h>

static const nc_type TYPES[] = {NC_NAT, NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE,
                                NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64, NC_STRING, 13, 40, -1};

/* Values at and around the limits of all types, as far as each C type holds them. */
static const double WIDE[] = {0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769,
                              65535, 65536, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0,
                              4294967295.0, 4294967296.0, 9007199254740993.0, 9223372036854774784.0,
                              9223372036854775808.0, -9223372036854775808.0, 18446744073709549568.0,
                              18446744073709551616.0, 1e30, -1e30, 3.4028234663852886e38,
                              3.4028235677973366e38, 1e300, -1e300, 0.5, -0.5, 1.5, -1.5, 1e-40, 1e-310};

#define PUT_ONE(fam, T, f, P)                                                                   \
    static void put_##fam(int nc, int v) {                                                      \
        const size_t n = COUNT(WIDE);                                                           \
        T values[COUNT(WIDE)];                                                                  \
        for (size_t i = 0; i < n; i++) {                                                        \
            double w = WIDE[i];                                                                 \
            /* converting what does not fit is undefined in C: wrap by hand */                  \
            if ((T)0.5 == 0) {                                                                  \
                if (w >= 9223372036854775808.0) values[i] = (T)~0ull;                           \
                else values[i] = (T)(long long)w;                                               \
            } else values[i] = (T)(fabs(w) > FLT_MAX && sizeof(T) == 4 ? FLT_MAX : w);          \
        }                                                                                       \
        for (size_t t = 0; t < COUNT(TYPES); t++) {                                             \
            char name[40];                                                                      \
            snprintf(name, sizeof name, #fam "_%d", TYPES[t]);                                  \
            note("%s", name);                                                                   \
            R(nc_put_att_##fam(nc, v, name, TYPES[t], n, values));                              \
            /* the reference leaves memory of these uninitialised where it is negative */       \
            if (TYPES[t] == NC_UINT && !strcmp(#fam, "schar")) nc_del_att(nc, v, name);         \
            for (size_t i = 0; i < n; i++) {                                                    \
                snprintf(name, sizeof name, #fam "_%d_%zu", TYPES[t], i);                       \
                printf("   one %zu -> %d\n", i,                                                 \
                       nc_put_att_##fam(nc, v, "one", TYPES[t], 1, values + i));                \
            }                                                                                   \
        }                                                                                       \
    }
NUMERIC_FAMILIES(PUT_ONE)

#define GET_ONE(fam, T, f, P)                                                                   \
    static void get_##fam(int nc, int v) {                                                      \
        int natts = 0;                                                                          \
        nc_inq_varnatts(nc, v, &natts);                                                         \
        for (int a = 0; a < natts; a++) {                                                       \
            char name[NC_MAX_NAME + 1];                                                         \
            size_t len = 0;                                                                     \
            static T values[4000];                                                              \
            nc_inq_attname(nc, v, a, name);                                                     \
            nc_inq_attlen(nc, v, name, &len);                                                   \
            poison(values);                                                                     \
            printf("   get_" #fam " %s len %zu -> %d:", name, len,                              \
                   nc_get_att_##fam(nc, v, name, values));                                      \
            for (size_t i = 0; i <= len; i++) printf(" " f, (P)values[i]);                      \
            putchar('\n');                                                                      \
        }                                                                                       \
    }
NUMERIC_FAMILIES(GET_ONE)

static void get_texts(int nc, int v) {
    int natts = 0;
    nc_inq_varnatts(nc, v, &natts);
    for (int a = 0; a < natts; a++) {
        char name[NC_MAX_NAME + 1];
        static char raw[40000];
        nc_inq_attname(nc, v, a, name);
        poison(raw);
        printf("   get_text %s -> %d", name, nc_get_att_text(nc, v, name, raw));
        bytes("raw", raw, 8);
        poison(raw);
        printf("   get_att %s -> %d", name, nc_get_att(nc, v, name, raw));
        bytes("raw", raw, 24);
    }
}

static void specials(int nc, int v) {
    const double odd[] = {NAN, INFINITY, -INFINITY, -0.0};
    const float oddf[] = {NAN, INFINITY, -INFINITY, -0.0f};
    static const nc_type to[] = {NC_BYTE, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE, NC_UBYTE, NC_INT64};
    for (size_t t = 0; t < COUNT(to); t++)
        for (size_t i = 0; i < COUNT(odd); i++) {
            double back = 77;
            note("special %zu to type %d", i, to[t]);
            /* integers made of NaN are undefined in C, so only the codes of those are compared */
            R(nc_put_att_double(nc, v, "special", to[t], 1, odd + i));
            R(nc_put_att_float(nc, v, "specialf", to[t], 1, oddf + i));
            if (to[t] == NC_FLOAT || to[t] == NC_DOUBLE) {
                R(nc_get_att_double(nc, v, "special", &back));
                doubles("back", &back, 1);
            }
        }
    R(nc_del_att(nc, v, "special"));
    R(nc_del_att(nc, v, "specialf"));
}

static void texts(int nc, int v) {
    size_t len = 77;
    nc_type type = 77;
    char raw[40];
    int n = 77;
    R(nc_put_att_text(nc, v, "t", 5, "hello"));
    R(nc_put_att_text(nc, v, "t0", 0, ""));
    R(nc_put_att_text(nc, v, "tnull", 0, NULL));
    R(nc_put_att_text(nc, v, "nul", 6, "a\0b\0c"));
    R(nc_put_att_int(nc, v, "i0", NC_INT, 0, NULL));
    R(nc_put_att_double(nc, v, "d0", NC_SHORT, 0, NULL));
    R(nc_put_att(nc, v, "p", NC_SHORT, 2, "\1\2\3\4"));
    R(nc_put_att(nc, v, "pc", NC_CHAR, 2, "xy"));
    R(nc_put_att(nc, v, "p0", NC_INT, 0, NULL));
    R(nc_put_att(nc, v, "pnull", NC_INT, 2, NULL));
    R(nc_put_att_text(nc, v, NULL, 2, "xy"));
    R(nc_put_att_text(nc, v, "", 2, "xy"));
    R(nc_put_att_int(nc, v, "neg", NC_INT, (size_t)-1, &n));
    R(nc_put_att_int(nc, v, "huge", NC_INT, 2147483648u, &n));
    R(nc_get_att_int(nc, v, "t", &n));
    R(nc_get_att_text(nc, v, "p", raw));
    poison(raw);
    R(nc_get_att_text(nc, v, "nul", raw));
    bytes("raw", raw, 8);
    R(nc_inq_att(nc, v, "t", &type, &len));
    note("type %d len %zu", type, len);
    R(nc_inq_att(nc, v, "t", NULL, NULL));
    type = 77;
    len = 77;
    R(nc_inq_atttype(nc, v, "i0", &type));
    R(nc_inq_attlen(nc, v, "i0", &len));
    note("type %d len %zu", type, len);
    R(nc_inq_att(nc, v, "nope", &type, &len));
    R(nc_inq_att(nc, v, NULL, &type, &len));
    R(nc_inq_attid(nc, v, "pc", &n));
    ints("id", &n, 1);
    R(nc_inq_attid(nc, v, "pc", NULL));
    R(nc_inq_attid(nc, v, "nope", &n));
    R(nc_inq_attname(nc, v, 0, raw));
    text("name", raw, sizeof raw);
    R(nc_inq_attname(nc, v, -1, raw));
    R(nc_inq_attname(nc, v, 999, raw));
    R(nc_get_att_int(nc, v, "nope", &n));
    R(nc_get_att(nc, v, "nope", &n));
    R(nc_get_att_text(nc, v, "t0", raw));
    char *strings[2] = {"one", "two"};
    R(nc_put_att_string(nc, v, "s", 2, (const char **)strings));
    R(nc_get_att_string(nc, v, "t", strings));
}

static void wrong_owner(int nc) {
    static const int owners[] = {-2, 5, 99};
    for (size_t i = 0; i < COUNT(owners); i++) {
        int v = owners[i], n = 3;
        size_t len = 77;
        char raw[40];
        note("owner %d", v);
        R(nc_put_att_int(nc, v, "a", NC_INT, 1, &n));
        R(nc_put_att_text(nc, v, "a", 1, "x"));
        R(nc_get_att_int(nc, v, "a", &n));
        R(nc_inq_attlen(nc, v, "a", &len));
        R(nc_inq_attname(nc, v, 0, raw));
        R(nc_inq_varnatts(nc, v, &n));
        R(nc_del_att(nc, v, "a"));
        R(nc_rename_att(nc, v, "a", "b"));
        R(nc_inq_attid(nc, v, "a", &n));
    }
}

static void fill_attribute(int nc) {
    int v, one = 1, two[2] = {1, 2};
    double d = 1.5;
    R(nc_def_var(nc, "filled", NC_INT, 0, NULL, &v));
    R(nc_put_att_int(nc, v, "_FillValue", NC_SHORT, 1, &one));
    R(nc_put_att_int(nc, v, "_FillValue", NC_INT, 2, two));
    R(nc_put_att_int(nc, v, "_FillValue", NC_INT, 0, two));
    R(nc_put_att_double(nc, v, "_FillValue", NC_DOUBLE, 1, &d));
    R(nc_put_att_double(nc, v, "_FillValue", NC_INT, 1, &d));
    R(nc_put_att_text(nc, v, "_FillValue", 1, "x"));
    R(nc_put_att_int(nc, v, "_FillValue", NC_INT, 1, &one));
    R(nc_put_att_int(nc, NC_GLOBAL, "_FillValue", NC_SHORT, 2, two));
    R(nc_rename_att(nc, v, "_FillValue", "other"));
    R(nc_rename_att(nc, v, "other", "_FillValue"));
    R(nc_del_att(nc, v, "_FillValue"));
}

static void edits(const char *path, int flags) {
    int nc, v, n[4] = {1, 2, 3, 4};
    R(nc_create(path, flags, &nc));
    R(nc_def_var(nc, "v", NC_INT, 0, NULL, &v));
    for (int owner = -1; owner <= 0; owner++) {
        R(nc_put_att_int(nc, owner, "ints", NC_INT, 3, n));
        R(nc_put_att_text(nc, owner, "text", 10, "0123456789"));
        R(nc_put_att_text(nc, owner, "last", 3, "abc"));
    }
    R(nc_enddef(nc));
    for (int owner = -1; owner <= 0; owner++) {
        note("data mode, owner %d", owner);
        R(nc_put_att_int(nc, owner, "ints", NC_INT, 4, n));
        R(nc_put_att_int(nc, owner, "ints", NC_INT, 3, n + 1));
        R(nc_put_att_int(nc, owner, "ints", NC_INT, 2, n));
        R(nc_put_att_int(nc, owner, "ints", NC_SHORT, 3, n));
        R(nc_put_att_int(nc, owner, "ints", NC_SHORT, 7, n));
        R(nc_put_att_int(nc, owner, "ints", NC_BYTE, 4, n));
        R(nc_put_att_int(nc, owner, "new", NC_INT, 1, n));
        R(nc_put_att_text(nc, owner, "text", 11, "0123456789a"));
        R(nc_put_att_text(nc, owner, "text", 12, "0123456789ab"));
        R(nc_put_att_text(nc, owner, "text", 13, "0123456789abc"));
        R(nc_put_att_text(nc, owner, "text", 4, "wxyz"));
        R(nc_put_att_text(nc, owner, "text", 12, "0123456789ab"));
        n[0] = 300;
        R(nc_put_att_int(nc, owner, "ints", NC_BYTE, 1, n));
        n[0] = 1;
        R(nc_del_att(nc, owner, "last"));
        R(nc_rename_att(nc, owner, "last", "l"));
        int back = R(nc_rename_att(nc, owner, "l", "last"));
        if (back == NC_NOERR) nc_rename_att(nc, owner, "last", "l");
        R(nc_rename_att(nc, owner, "l", "m"));
        R(nc_rename_att(nc, owner, "m", "ints"));
        R(nc_rename_att(nc, owner, "nope", "x"));
        R(nc_rename_att(nc, owner, "m", "a/b"));
        R(nc_rename_att(nc, owner, "m", ""));
        R(nc_del_att(nc, owner, "nope"));
    }
    R(nc_redef(nc));
    for (int owner = -1; owner <= 0; owner++) {
        note("define mode, owner %d", owner);
        R(nc_rename_att(nc, owner, "m", "a name that is longer"));
        R(nc_rename_att(nc, owner, "a name that is longer", "text"));
        R(nc_put_att_int(nc, owner, "new", NC_INT, 4, n));
        R(nc_del_att(nc, owner, "ints"));
        R(nc_del_att(nc, owner, "ints"));
        int id = -77;
        R(nc_inq_attid(nc, owner, "new", &id));
        ints("id", &id, 1);
    }
    R(nc_close(nc));
    describe_file(path);
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        int nc, v, n = 1;
        char *path = path_of("att", FORMATS[f].name);
        note("format %s", FORMATS[f].name);
        R(nc_create(path, FORMATS[f].flags, &nc));
        R(nc_def_var(nc, "v", NC_INT, 0, NULL, &v));
#define RUN_PUT(fam, T, f, P) put_##fam(nc, v);
        NUMERIC_FAMILIES(RUN_PUT)
        texts(nc, v);
        texts(nc, NC_GLOBAL);
        wrong_owner(nc);
        fill_attribute(nc);
#define RUN_GET(fam, T, f, P) get_##fam(nc, v);
        NUMERIC_FAMILIES(RUN_GET)
        get_texts(nc, v);
        get_texts(nc, NC_GLOBAL);
        specials(nc, v);
        R(nc_close(nc));
        describe_file(path);
        R(nc_open(path, NC_NOWRITE, &nc));
        get_double(nc, v);
        get_texts(nc, v);
        R(nc_put_att_int(nc, v, "t", NC_INT, 1, &n));
        R(nc_put_att_int(nc, v, "new", NC_INT, 1, &n));
        R(nc_put_att_int(nc, 99, "new", NC_INT, 1, &n));
        R(nc_rename_att(nc, v, "t", "u"));
        R(nc_rename_att(nc, v, "nope", "u"));
        R(nc_del_att(nc, v, "t"));
        R(nc_close(nc));
        edits(path_of("edits", FORMATS[f].name), FORMATS[f].flags);
    }
    return 0;
}
