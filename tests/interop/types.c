/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cases.h"

static const char *const ATOMIC[] = {"", "byte", "char", "short", "int", "float", "double",
                                     "ubyte", "ushort", "uint", "int64", "uint64", "string"};

static int atomic(const char *path) {
    int nc = create(path, 0), d[2] = {dim(nc, "y", 5), dim(nc, "x", 7)};
    for (int t = NC_BYTE; t <= NC_STRING; t++) {
        char name[40];
        snprintf(name, sizeof name, "%s_1", ATOMIC[t]);
        fill_all(nc, var(nc, name, t, d[1]), (unsigned)t);
        snprintf(name, sizeof name, "%s_2", ATOMIC[t]);
        fill_all(nc, var(nc, name, t, d[0], d[1]), (unsigned)t + 20);
        snprintf(name, sizeof name, "%s_untouched", ATOMIC[t]);
        var(nc, name, t, d[0]);
    }
    return nc;
}

static int extremes(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 6);
    MUST(nc_put_var(nc, var(nc, "i1", NC_BYTE, x), (signed char[]){-128, -1, 0, 1, 126, 127}));
    MUST(nc_put_var(nc, var(nc, "u1", NC_UBYTE, x), (unsigned char[]){0, 1, 127, 128, 254, 255}));
    MUST(nc_put_var(nc, var(nc, "i2", NC_SHORT, x), (short[]){SHRT_MIN, -1, 0, 1, 255, SHRT_MAX}));
    MUST(nc_put_var(nc, var(nc, "u2", NC_USHORT, x), (unsigned short[]){0, 1, 255, 256, 32768, 65535}));
    MUST(nc_put_var(nc, var(nc, "i4", NC_INT, x), (int[]){INT_MIN, -1, 0, 1, 65536, INT_MAX}));
    MUST(nc_put_var(nc, var(nc, "u4", NC_UINT, x), (unsigned[]){0, 1, 255, 65536, 1u << 31, UINT_MAX}));
    MUST(nc_put_var(nc, var(nc, "i8", NC_INT64, x), (long long[]){LLONG_MIN, -1, 0, 1, 1ll << 40, LLONG_MAX}));
    MUST(nc_put_var(nc, var(nc, "u8", NC_UINT64, x), (unsigned long long[]){0, 1, 255, 1ull << 40, 1ull << 63, ULLONG_MAX}));
    MUST(nc_put_var(nc, var(nc, "f4", NC_FLOAT, x), (float[]){-INFINITY, -0.0f, 1e-45f, NAN, 3.4e38f, INFINITY}));
    MUST(nc_put_var(nc, var(nc, "f8", NC_DOUBLE, x), (double[]){-INFINITY, -0.0, 5e-324, NAN, 1.7e308, INFINITY}));
    MUST(nc_put_var(nc, var(nc, "c", NC_CHAR, x), "\0\x01\x7f\x80\xff "));
    MUST(nc_put_att(nc, NC_GLOBAL, "i8", NC_INT64, 2, (long long[]){LLONG_MIN, LLONG_MAX}));
    MUST(nc_put_att(nc, NC_GLOBAL, "f8", NC_DOUBLE, 4, (double[]){-INFINITY, -0.0, NAN, INFINITY}));
    return nc;
}

static int atomic_records(const char *path) {
    int nc = create(path, 0), t = dim(nc, "t", NC_UNLIMITED), x = dim(nc, "x", 5);
    for (int k = NC_BYTE; k <= NC_STRING; k++) {
        char name[40];
        snprintf(name, sizeof name, "%s_t", ATOMIC[k]);
        int one = var(nc, name, k, t);
        snprintf(name, sizeof name, "%s_tx", ATOMIC[k]);
        int two = var(nc, name, k, t, x);
        for (unsigned r = 0; r < 4; r++) {
            fill_block(nc, one, AT(r), AT(1), r);
            fill_block(nc, two, AT(r, 0), AT(1, 5), r + 100);
        }
    }
    return nc;
}

static int strings(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 6), t = dim(nc, "t", NC_UNLIMITED), many = dim(nc, "many", 3000);
    static char lengthy[100001];
    memset(lengthy, 'L', 100000);
    int v = var(nc, "odd", NC_STRING, x);
    MUST(nc_put_var_string(nc, v, (const char *[]){"", "plain", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8d", lengthy, "tab\tnew\nline", " blanks "}));
    v = var(nc, "null", NC_STRING, x);
    MUST(nc_put_vara_string(nc, v, AT(1), AT(3), (const char *[]){"a", NULL, "c"}));
    v = var(nc, "untouched", NC_STRING, x, x);
    v = var(nc, "filled", NC_STRING, x);
    MUST(nc_def_var_fill(nc, v, NC_FILL, &(const char *){"missing"}));
    MUST(nc_put_var1_string(nc, v, AT(2), &(const char *){"here"}));
    v = var(nc, "records", NC_STRING, t, x);
    for (unsigned r = 0; r < 5; r++) fill_block(nc, v, AT(r, 0), AT(1, 6), r);
    fill_all(nc, var(nc, "many", NC_STRING, many), 3);
    MUST(nc_put_var_string(nc, var(nc, "scalar", NC_STRING), &(const char *){"alone"}));
    v = var(nc, "deflated", NC_STRING, t);
    MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(4)));
    fill_block(nc, v, AT(0), AT(9), 5);
    MUST(nc_put_att_string(nc, NC_GLOBAL, "s", 5, (const char *[]){"one", "", NULL, "\xc3\xa9", lengthy}));
    MUST(nc_put_att_string(nc, v, "single", 1, &(const char *){"just one"}));
    return nc;
}

/* netCDF-C with HDF5 1.10 cannot read elements of a chunk that nobody wrote. */
static int strings_partly(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 6), t = dim(nc, "t", NC_UNLIMITED), v = var(nc, "s", NC_STRING, t, x);
    fill_block(nc, v, AT(0, 0), AT(2, 6), 1);
    fill_block(nc, v, AT(4, 2), AT(1, 2), 8);
    return nc;
}

static int rewritten_strings(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 40), v = var(nc, "s", NC_STRING, x), list;
    MUST(nc_def_vlen(nc, "list", NC_INT, &list));
    int w = var(nc, "lists", list, x);
    for (unsigned round = 0; round < 12; round++) {
        fill_all(nc, v, round);
        int values[60] = {(int)round, 2, 3};
        for (unsigned i = 0; i < 40; i += 1 + round % 3) {
            nc_vlen_t one = {(i * round) % 60, values};
            MUST(nc_put_var1(nc, w, AT(i), &one));
        }
        if (round % 4 == 3) {
            MUST(nc_close(nc));
            nc = reopen(path);
        }
    }
    return nc;
}

typedef struct {
    signed char a;
    short b[3];
    int c;
    float d;
    double e[2][2];
    unsigned char f;
    unsigned short g;
    unsigned h;
    long long i;
    unsigned long long j;
    char k[5];
} all_t;

typedef struct {
    int number;
    all_t inner;
    unsigned char flag;
    char blob[3];
    all_t pair[2];
} nested_t;

typedef struct {
    char *name;
    nc_vlen_t list;
    double weight;
    char *names[2];
    nc_vlen_t lists[2];
} deep_t;

static all_t an_all(int n) {
    all_t a;
    memset(&a, 0, sizeof a);
    a.a = (signed char)n, a.c = n * 100000, a.d = (float)n / 4, a.f = (unsigned char)(n + 200);
    a.g = (unsigned short)(n + 40000), a.h = (unsigned)n + 3000000000u, a.i = n - (1ll << 40), a.j = (1ull << 60) + (unsigned)n;
    for (int i = 0; i < 3; i++) a.b[i] = (short)(n * i);
    for (int i = 0; i < 4; i++) a.e[i / 2][i % 2] = n + i / 8.0;
    for (int i = 0; i < 5; i++) a.k[i] = (char)('a' + (n + i) % 26);
    return a;
}

static int define_all(int nc) {
    int t;
    MUST(nc_def_compound(nc, sizeof(all_t), "all", &t));
    MUST(nc_insert_compound(nc, t, "a", offsetof(all_t, a), NC_BYTE));
    MUST(nc_insert_array_compound(nc, t, "b", offsetof(all_t, b), NC_SHORT, 1, (int[]){3}));
    MUST(nc_insert_compound(nc, t, "c", offsetof(all_t, c), NC_INT));
    MUST(nc_insert_compound(nc, t, "d", offsetof(all_t, d), NC_FLOAT));
    MUST(nc_insert_array_compound(nc, t, "e", offsetof(all_t, e), NC_DOUBLE, 2, (int[]){2, 2}));
    MUST(nc_insert_compound(nc, t, "f", offsetof(all_t, f), NC_UBYTE));
    MUST(nc_insert_compound(nc, t, "g", offsetof(all_t, g), NC_USHORT));
    MUST(nc_insert_compound(nc, t, "h", offsetof(all_t, h), NC_UINT));
    MUST(nc_insert_compound(nc, t, "i", offsetof(all_t, i), NC_INT64));
    MUST(nc_insert_compound(nc, t, "j", offsetof(all_t, j), NC_UINT64));
    MUST(nc_insert_array_compound(nc, t, "k", offsetof(all_t, k), NC_CHAR, 1, (int[]){5}));
    return t;
}

static int define_enum(int nc, const char *name) {
    int t;
    MUST(nc_def_enum(nc, NC_UBYTE, name, &t));
    MUST(nc_insert_enum(nc, t, "off", &(unsigned char){0}));
    MUST(nc_insert_enum(nc, t, "on", &(unsigned char){1}));
    MUST(nc_insert_enum(nc, t, "maybe", &(unsigned char){200}));
    return t;
}

static int compounds(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 4), t = dim(nc, "t", NC_UNLIMITED);
    int all = define_all(nc), flag = define_enum(nc, "flag"), blob, nested;
    MUST(nc_def_opaque(nc, 3, "blob", &blob));
    MUST(nc_def_compound(nc, sizeof(nested_t), "nested", &nested));
    MUST(nc_insert_compound(nc, nested, "number", offsetof(nested_t, number), NC_INT));
    MUST(nc_insert_compound(nc, nested, "inner", offsetof(nested_t, inner), all));
    MUST(nc_insert_compound(nc, nested, "flag", offsetof(nested_t, flag), flag));
    MUST(nc_insert_compound(nc, nested, "blob", offsetof(nested_t, blob), blob));
    MUST(nc_insert_array_compound(nc, nested, "pair", offsetof(nested_t, pair), all, 1, (int[]){2}));
    all_t a[4];
    nested_t n[4];
    memset(n, 0, sizeof n);
    for (int i = 0; i < 4; i++) {
        a[i] = an_all(i), n[i].number = i, n[i].inner = an_all(i + 10), n[i].flag = (unsigned char)(i == 2 ? 200 : i & 1);
        memcpy(n[i].blob, "xyz", 3), n[i].pair[0] = an_all(i + 20), n[i].pair[1] = an_all(i + 30);
    }
    MUST(nc_put_var(nc, var(nc, "a", all, x), a));
    int v = var(nc, "n", nested, t, x);
    MUST(nc_put_vara(nc, v, AT(0, 0), AT(1, 4), n));
    MUST(nc_put_vara(nc, v, AT(2, 1), AT(1, 2), n));
    MUST(nc_put_var(nc, var(nc, "scalar", all), a + 2));
    var(nc, "untouched", nested, x);
    v = var(nc, "filled", all, x);
    MUST(nc_def_var_fill(nc, v, NC_FILL, a + 3));
    MUST(nc_put_var1(nc, v, AT(1), a));
    v = var(nc, "deflated", all, t);
    MUST(nc_def_var_chunking(nc, v, NC_CHUNKED, AT(3)));
    MUST(nc_def_var_deflate(nc, v, 1, 1, 4));
    MUST(nc_put_vara(nc, v, AT(0), AT(4), a));
    MUST(nc_put_att(nc, NC_GLOBAL, "one", all, 1, a));
    MUST(nc_put_att(nc, v, "two", nested, 2, n));
    return nc;
}

static int deep(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), t = dim(nc, "t", NC_UNLIMITED), list, type;
    MUST(nc_def_vlen(nc, "list", NC_SHORT, &list));
    MUST(nc_def_compound(nc, sizeof(deep_t), "deep", &type));
    MUST(nc_insert_compound(nc, type, "name", offsetof(deep_t, name), NC_STRING));
    MUST(nc_insert_compound(nc, type, "list", offsetof(deep_t, list), list));
    MUST(nc_insert_compound(nc, type, "weight", offsetof(deep_t, weight), NC_DOUBLE));
    MUST(nc_insert_array_compound(nc, type, "names", offsetof(deep_t, names), NC_STRING, 1, (int[]){2}));
    MUST(nc_insert_array_compound(nc, type, "lists", offsetof(deep_t, lists), list, 1, (int[]){2}));
    short s[] = {5, 6, 7, 8};
    deep_t d[3];
    memset(d, 0, sizeof d);
    d[0] = (deep_t){"first", {3, s}, 0.5, {"p", "q"}, {{1, s}, {4, s}}};
    d[1] = (deep_t){"", {0, NULL}, -1, {"", "only this"}, {{0, NULL}, {2, s + 2}}};
    d[2] = (deep_t){"third", {1, s + 3}, 1e300, {"a", "b"}, {{2, s}, {0, NULL}}};
    MUST(nc_put_var(nc, var(nc, "d", type, x), d));
    int v = var(nc, "r", type, t);
    MUST(nc_put_vara(nc, v, AT(0), AT(2), d));
    MUST(nc_put_vara(nc, v, AT(2), AT(1), d + 2));
    MUST(nc_put_att(nc, v, "d", type, 2, d));
    return nc;
}

static int vlens(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 4), t = dim(nc, "t", NC_UNLIMITED), all = define_all(nc), flag = define_enum(nc, "flag");
    int of_all, of_flag, of_list, of_string, base[NC_UINT64 + 1];
    static double zero[1024];
    for (int k = NC_BYTE; k <= NC_UINT64; k++) {
        char name[40];
        snprintf(name, sizeof name, "%s_list", ATOMIC[k]);
        MUST(nc_def_vlen(nc, name, k, &base[k]));
    }
    MUST(nc_def_vlen(nc, "all_list", all, &of_all));
    MUST(nc_def_vlen(nc, "flag_list", flag, &of_flag));
    MUST(nc_def_vlen(nc, "list_list", base[NC_INT], &of_list));
    MUST(nc_def_vlen(nc, "string_list", NC_STRING, &of_string));
    for (int k = NC_BYTE; k <= NC_UINT64; k++) {
        char name[40];
        unsigned char bytes[80];
        for (int i = 0; i < 80; i++) bytes[i] = (unsigned char)(i % 60);
        snprintf(name, sizeof name, "%s_v", ATOMIC[k]);
        nc_vlen_t four[4] = {{3, bytes}, {0, NULL}, {7, bytes}, {1, bytes}};
        MUST(nc_put_var(nc, var(nc, name, base[k], x), four));
    }
    int ints[] = {7, 8, -1, -2, -3, 99};
    nc_vlen_t list[4] = {{2, ints}, {0, NULL}, {3, ints + 2}, {1, ints + 5}};
    nc_vlen_t lists[4] = {{3, list}, {0, NULL}, {1, list + 2}, {2, list + 1}};
    MUST(nc_put_var(nc, var(nc, "lists", of_list, x), lists));
    all_t a[3] = {an_all(1), an_all(2), an_all(3)};
    nc_vlen_t alls[4] = {{2, a}, {1, a + 2}, {0, NULL}, {3, a}};
    MUST(nc_put_var(nc, var(nc, "alls", of_all, x), alls));
    unsigned char flags[] = {0, 1, 200, 1};
    nc_vlen_t flagged[4] = {{4, flags}, {1, flags + 2}, {0, NULL}, {2, flags}};
    MUST(nc_put_var(nc, var(nc, "flags", of_flag, x), flagged));
    char *words[] = {"one", "", "three"};
    nc_vlen_t worded[4] = {{3, words}, {1, words}, {0, NULL}, {2, words + 1}};
    MUST(nc_put_var(nc, var(nc, "words", of_string, x), worded));
    nc_vlen_t large = {1024, zero};
    int v = var(nc, "records", base[NC_DOUBLE], t, x);
    MUST(nc_put_var1(nc, v, AT(0, 1), &large));
    MUST(nc_put_var1(nc, v, AT(3, 3), &large));
    var(nc, "untouched", base[NC_INT], x);
    MUST(nc_put_att(nc, NC_GLOBAL, "list", base[NC_INT], 4, list));
    MUST(nc_put_att(nc, v, "lists", of_list, 2, lists));
    return nc;
}

static int enums(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), types[] = {NC_BYTE, NC_SHORT, NC_INT, NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64};
    for (size_t i = 0; i < COUNT(types); i++) {
        char name[40];
        long long low = 1, high = 100;      /* the first bytes are the value, in little-endian order */
        int t;
        snprintf(name, sizeof name, "%s_enum", ATOMIC[types[i]]);
        MUST(nc_def_enum(nc, types[i], name, &t));
        MUST(nc_insert_enum(nc, t, "low", &low));
        MUST(nc_insert_enum(nc, t, "high", &high));
        MUST(nc_insert_enum(nc, t, "zero", &(long long){0}));
        snprintf(name, sizeof name, "%s_v", ATOMIC[types[i]]);
        int v = var(nc, name, t, x);
        MUST(nc_put_var1(nc, v, AT(0), &high));
        MUST(nc_put_var1(nc, v, AT(2), &low));
        MUST(nc_put_att(nc, v, "e", t, 1, &high));
    }
    int many;
    MUST(nc_def_enum(nc, NC_SHORT, "many", &many));
    for (short i = 0; i < 300; i++) {
        char name[40];
        snprintf(name, sizeof name, "member number %d", i);
        MUST(nc_insert_enum(nc, many, name, &(short){(short)(i * 7 % 1009)}));
    }
    int v = var(nc, "m", many, x);
    MUST(nc_put_var(nc, v, (short[]){7, 14, 0}));
    v = var(nc, "filled", many, x);
    MUST(nc_def_var_fill(nc, v, NC_FILL, &(short){21}));
    return nc;
}

static int opaques(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), t = dim(nc, "t", NC_UNLIMITED), sizes[] = {1, 5, 16, 3000};
    static unsigned char bytes[9000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 >> 3);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char name[40];
        int type;
        snprintf(name, sizeof name, "opaque of %d", sizes[i]);
        MUST(nc_def_opaque(nc, (size_t)sizes[i], name, &type));
        snprintf(name, sizeof name, "v%d", sizes[i]);
        MUST(nc_put_var(nc, var(nc, name, type, x), bytes));
        snprintf(name, sizeof name, "r%d", sizes[i]);
        int v = var(nc, name, type, t);
        MUST(nc_put_vara(nc, v, AT(1), AT(3), bytes));
        MUST(nc_put_att(nc, v, "o", type, 2, bytes));
    }
    return nc;
}

/* Attributes of user-defined types over time: made, made longer and shorter, of another type, renamed,
 * deleted, in a file that is opened again. */
static int user_attributes(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x), g = group(nc, "g");
    int all = define_all(nc), flag = define_enum(nc, "flag"), blob, list, words;
    MUST(nc_def_opaque(nc, 5, "blob", &blob));
    MUST(nc_def_vlen(nc, "all list", all, &list));
    MUST(nc_def_vlen(nc, "words", NC_STRING, &words));
    all_t a[3] = {an_all(1), an_all(2), an_all(3)};
    nc_vlen_t lists[3] = {{2, a}, {0, NULL}, {1, a + 2}};
    char *some[] = {"one", "", "three, which is longer"};
    nc_vlen_t worded[2] = {{3, some}, {1, some + 2}};
    int owners[3][2] = {{nc, NC_GLOBAL}, {nc, v}, {g, NC_GLOBAL}};
    for (int o = 0; o < 3; o++) {
        int at = owners[o][0], of = owners[o][1];
        MUST(nc_put_att(at, of, "flags", flag, 3, (unsigned char[]){1, 200, 0}));
        MUST(nc_put_att(at, of, "blobs", blob, 2, "0123456789"));
        MUST(nc_put_att(at, of, "lists", list, 3, lists));
        MUST(nc_put_att(at, of, "words", words, 2, worded));
        MUST(nc_put_att(at, of, "all", all, 2, a));
        MUST(nc_put_att(at, of, "none", flag, 0, NULL));
    }
    MUST(nc_close(nc));
    nc = reopen(path);
    MUST(nc_inq_grp_ncid(nc, "g", &g));
    owners[0][0] = owners[1][0] = nc, owners[2][0] = g;
    MUST(nc_inq_typeid(nc, "flag", &flag));
    MUST(nc_inq_typeid(nc, "blob", &blob));
    MUST(nc_inq_typeid(nc, "all list", &list));
    MUST(nc_inq_typeid(nc, "words", &words));
    for (int o = 0; o < 3; o++) {
        int at = owners[o][0], of = owners[o][1];
        MUST(nc_put_att(at, of, "flags", flag, 1, (unsigned char[]){200}));
        MUST(nc_put_att(at, of, "blobs", blob, 3, "abcdefghijklmno"));
        MUST(nc_put_att(at, of, "lists", list, 3, lists));
        MUST(nc_rename_att(at, of, "words", "renamed words"));
        MUST(nc_del_att(at, of, "all"));
        MUST(nc_put_att(at, of, "more words", words, 1, worded + 1));
    }
    return nc;
}

static int types_in_groups(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), g = group(nc, "g"), h = group(g, "h"), k = group(nc, "k");
    int all = define_all(nc), own = define_all(k), flag = define_enum(g, "flag"), unused, list;
    all_t a[3] = {an_all(4), an_all(5), an_all(6)};
    MUST(nc_def_vlen(h, "list", all, &list));
    MUST(nc_def_opaque(h, 9, "nobody uses it", &unused));
    MUST(nc_put_var(h, var(h, "in_h", all, x), a));
    MUST(nc_put_var(k, var(k, "in_k", own, x), a));
    MUST(nc_put_var(h, var(h, "flags", flag, x), (unsigned char[]){1, 200, 0}));
    nc_vlen_t lists[3] = {{2, a}, {0, NULL}, {1, a + 1}};
    MUST(nc_put_var(h, var(h, "lists", list, x), lists));
    MUST(nc_put_att(h, NC_GLOBAL, "flag", flag, 2, (unsigned char[]){200, 1}));
    return nc;
}

static int types_later(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3);
    fill_all(nc, var(nc, "before", NC_INT, x), 1);
    MUST(nc_redef(nc));
    int flag = define_enum(nc, "flag");
    MUST(nc_put_var(nc, var(nc, "flags", flag, x), (unsigned char[]){1, 200, 0}));
    MUST(nc_close(nc));
    nc = reopen(path);
    all_t a[3] = {an_all(4), an_all(5), an_all(6)};
    int g = group(nc, "g"), all = define_all(g);
    MUST(nc_put_var(g, var(g, "a", all, x), a));
    MUST(nc_inq_typeid(nc, "flag", &flag));
    MUST(nc_put_att(g, NC_GLOBAL, "f", flag, 1, &(unsigned char){1}));
    return nc;
}

static int characters(const char *path) {
    int nc = create(path, 0), n = dim(nc, "n", 4), len = dim(nc, "len", 9), t = dim(nc, "t", NC_UNLIMITED);
    int v = var(nc, "names", NC_CHAR, n, len);
    MUST(nc_put_vara_text(nc, v, AT(0, 0), AT(1, 5), "hello"));
    MUST(nc_put_vara_text(nc, v, AT(2, 0), AT(1, 9), "\xc3\xa4" "bcdefg\n"));
    v = var(nc, "lines", NC_CHAR, t, len);
    MUST(nc_put_vara_text(nc, v, AT(3, 0), AT(1, 9), "the third"));
    MUST(nc_put_var_text(nc, var(nc, "one", NC_CHAR), "x"));
    v = var(nc, "filled", NC_CHAR, n);
    MUST(nc_def_var_fill(nc, v, NC_FILL, "#"));
    MUST(nc_put_var1_text(nc, v, AT(1), "y"));
    return nc;
}

const case_t TYPE_CASES[] = {
    {"atomic", atomic},
    {"extremes", extremes},
    {"atomic-records", atomic_records},
    {"strings", strings},
    {"strings-partly", strings_partly},
    {"rewritten-strings", rewritten_strings},
    {"compounds", compounds},
    {"deep", deep},
    {"vlens", vlens},
    {"enums", enums},
    {"opaques", opaques},
    {"user-attributes", user_attributes},
    {"types-in-groups", types_in_groups},
    {"types-later", types_later},
    {"characters", characters},
    {NULL, NULL},
};
