/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cases.h"

/* Attributes of each type with n elements. */
static void of_each_type(int nc, int owner, size_t n) {
    static double values[30000];
    static char letters[100000];
    char name[60];
    for (size_t i = 0; i < COUNT(values); i++) values[i] = mixed(7, (unsigned)i);
    for (size_t i = 0; i < sizeof letters; i++) letters[i] = (char)('a' + mixed(8, (unsigned)i) % 26);
    for (int t = NC_BYTE; t <= NC_STRING; t++) {
        snprintf(name, sizeof name, "type %d of %zu", t, n);
        if (t == NC_CHAR) {
            MUST(nc_put_att_text(nc, owner, name, n, letters));
        } else if (t == NC_STRING) {
            const char *strings[200];
            for (size_t i = 0; i < n && i < 200; i++) strings[i] = letters + sizeof letters - 1 - i % 30;
            letters[sizeof letters - 1] = 0;
            MUST(nc_put_att_string(nc, owner, name, n < 200 ? n : 200, strings));
        } else {
            MUST(nc_put_att_double(nc, owner, name, t, n, values));
        }
    }
}

static int types(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x), g = group(nc, "g");
    for (size_t n = 0; n < 4; n += 1 + n / 2) {
        of_each_type(nc, NC_GLOBAL, n);
        of_each_type(nc, v, n);
    }
    of_each_type(g, NC_GLOBAL, 100);
    return nc;
}

static int large(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x), coordinate = var(nc, "x", NC_DOUBLE, x);
    static char letters[1000000];
    for (size_t i = 0; i < sizeof letters; i++) letters[i] = (char)('a' + i % 26);
    fill_all(nc, v, 1);
    /* Around what fits in one message of an object header. */
    MUST(nc_put_att_text(nc, v, "nearly 64 KiB", 65000, letters));
    MUST(nc_put_att_text(nc, v, "64 KiB", 65536, letters));
    MUST(nc_put_att_text(nc, NC_GLOBAL, "4 KiB", 4096, letters));
    MUST(nc_put_att_text(nc, NC_GLOBAL, "a million", 1000000, letters));
    of_each_type(nc, coordinate, 20000);
    MUST(nc_put_att_int(nc, NC_GLOBAL, "after", NC_INT, 1, &(int){4}));
    return nc;
}

static int many(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x), coordinate = var(nc, "x", NC_FLOAT, x), g = group(nc, "g");
    int owners[4][2] = {{nc, NC_GLOBAL}, {nc, v}, {nc, coordinate}, {g, NC_GLOBAL}};
    char name[60], value[120];
    for (int o = 0; o < 4; o++)
        for (unsigned i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "attribute_%u", (i * 37) % 100);
            snprintf(value, sizeof value, "%.*s", mixed(i, 1), "a value whose length is different for each of the hundred attributes of this one object in the file");
            if (i % 3) text_att(owners[o][0], owners[o][1], name, value);
            else MUST(nc_put_att_int(owners[o][0], owners[o][1], name, NC_SHORT, 1, &(int){(int)i}));
        }
    return nc;
}

/* What happens to attributes over time, in define mode, data mode and after opening again. */
static void change(int nc, int v, int round) {
    char name[60];
    text_att(nc, v, "changing", round % 2 ? "short" : "a longer text than before, and then some more of it");
    MUST(nc_put_att_double(nc, v, "other type", round % 2 ? NC_DOUBLE : NC_BYTE, (size_t)round + 1, (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}));
    snprintf(name, sizeof name, "of round %d", round);
    MUST(nc_put_att_int(nc, v, name, NC_INT, 1, &round));
    if (round >= 2) {
        snprintf(name, sizeof name, "of round %d", round - 2);
        MUST(nc_del_att(nc, v, name));
    }
    snprintf(name, sizeof name, "renamed %d", round);
    char before[60];
    snprintf(before, sizeof before, round ? "renamed %d" : "to be renamed", round - 1);
    MUST(nc_rename_att(nc, v, before, name));
}

static int edited(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x), g = group(nc, "g");
    int owners[3][2] = {{nc, NC_GLOBAL}, {nc, v}, {g, NC_GLOBAL}};
    for (int o = 0; o < 3; o++) {
        text_att(owners[o][0], owners[o][1], "first", "1");
        text_att(owners[o][0], owners[o][1], "to be renamed", "r");
        text_att(owners[o][0], owners[o][1], "last", "z");
    }
    for (int round = 0; round < 8; round++) {
        for (int o = 0; o < 3; o++) change(owners[o][0], owners[o][1], round);
        if (round == 2) MUST(nc_enddef(nc));
        if (round == 4) MUST(nc_sync(nc));
        if (round == 5) {
            MUST(nc_close(nc));
            nc = reopen(path);
            MUST(nc_inq_grp_ncid(nc, "g", &g));
            owners[0][0] = owners[1][0] = nc, owners[2][0] = g;
        }
    }
    for (int o = 0; o < 3; o++) MUST(nc_del_att(owners[o][0], owners[o][1], o ? "first" : "last"));
    return nc;
}

static int deleted(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x);
    char name[60];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "a%d", i);
        MUST(nc_put_att_int(nc, v, name, NC_INT, 1, &i));
        MUST(nc_put_att_int(nc, NC_GLOBAL, name, NC_INT, 1, &i));
    }
    MUST(nc_enddef(nc));
    MUST(nc_redef(nc));
    for (int i = 0; i < 20; i += 2) {
        snprintf(name, sizeof name, "a%d", i);
        MUST(nc_del_att(nc, v, name));
        MUST(nc_del_att(nc, NC_GLOBAL, name));
    }
    MUST(nc_close(nc));
    nc = reopen(path);
    for (int i = 1; i < 20; i += 2) {
        snprintf(name, sizeof name, "a%d", i);
        MUST(nc_del_att(nc, v, name));
        if (i > 10) MUST(nc_del_att(nc, NC_GLOBAL, name));
    }
    return nc;
}

static int names(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2);
    static const char *const odd[] = {"with blank", "t\xc3\xa9", "te\xcc\x81", "\xe6\x97\xa5\xe6\x9c\xac", "1digit", "a.b-c@d+e", "par(en)",
                                      "quote'\"", "back\\slash", "CAPS", "caps", "_underscore", "DIMENSION_LABELS"};
    char lengthy[NC_MAX_NAME];
    memset(lengthy, 'n', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    for (size_t i = 0; i < COUNT(odd) - 1; i++) {
        if (i == 2) continue;       /* the same as the one before it, once normalised */
        int v = var(nc, odd[i], NC_INT, x), g;
        text_att(nc, v, odd[i], odd[i]);
        text_att(nc, NC_GLOBAL, odd[i], odd[(i + 1) % COUNT(odd)]);
        char grouped[80];
        snprintf(grouped, sizeof grouped, "group %s", odd[i]);
        MUST(nc_def_grp(nc, grouped, &g));
        dim(g, odd[i], i + 1);
    }
    SAY(nc_put_att_int(nc, NC_GLOBAL, odd[2], NC_INT, 1, &(int){3}));
    text_att(nc, var(nc, lengthy, NC_INT, x), lengthy, lengthy);
    SAY(nc_def_var(nc, "a/b", NC_INT, 1, &x, NULL));
    SAY(nc_def_var(nc, "blank ", NC_INT, 1, &x, NULL));
    SAY(nc_put_att_text(nc, NC_GLOBAL, "_NCProperties", 1, "x"));
    SAY(nc_put_att_text(nc, NC_GLOBAL, "CLASS", 1, "x"));
    SAY(nc_put_att_text(nc, 0, "DIMENSION_LIST", 1, "x"));
    return nc;
}

/* As long as they may be; netCDF-C 4.10.1 forgets the end of a variable's. */
static int longest_names(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2);
    char name[NC_MAX_NAME + 1];
    memset(name, 'n', NC_MAX_NAME);
    name[NC_MAX_NAME] = 0;
    text_att(nc, var(nc, name, NC_INT, x), name, name);
    name[0] = 'd';
    dim(nc, name, 3);
    name[0] = 'g';
    group(nc, name);
    return nc;
}

static int no_order(const char *path) {
    int nc = create(path, NC_NOATTCREORD), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x), coordinate = var(nc, "x", NC_FLOAT, x);
    const char *const some[] = {"zulu", "alpha", "mike", "bravo"};
    for (size_t i = 0; i < COUNT(some); i++) {
        text_att(nc, v, some[i], some[i]);
        text_att(nc, coordinate, some[i], some[i]);
        text_att(nc, NC_GLOBAL, some[i], some[i]);
    }
    fill_all(nc, v, 4);
    return nc;
}

/* Many, by commits of few: more come, some are put again, as long as before or longer, some go. (netCDF-C
 * keeps some of those in the file that get another name.) */
static void few_at_a_time(int nc, int v) {
    char name[40];
    double values[700];
    for (size_t i = 0; i < COUNT(values); i++) values[i] = (double)i / 8;
    for (int i = 0; i < 330; i++) {
        MUST(nc_redef(nc));
        snprintf(name, sizeof name, "attribute_%d", i);
        MUST(nc_put_att_double(nc, v, name, NC_DOUBLE, (size_t)i % 5, values + i));
        snprintf(name, sizeof name, "attribute_%d", i / 2);
        if (i % 3 == 1) MUST(nc_put_att_double(nc, v, name, NC_DOUBLE, (size_t)(i / 2) % 5, values));
        snprintf(name, sizeof name, "attribute_%d", i / 3);
        if (i % 5 == 2 && nc_inq_attid(nc, v, name, NULL) == NC_NOERR)
            MUST(nc_put_att_double(nc, v, name, NC_FLOAT, 3 + (size_t)i % 40, values));
        snprintf(name, sizeof name, "attribute_%d", i / 5 * 2);
        if (i % 6 == 5 && nc_inq_attid(nc, v, name, NULL) == NC_NOERR) MUST(nc_del_att(nc, v, name));
        if (i % 50 == 20) MUST(nc_put_att_double(nc, v, "long", NC_DOUBLE, 400 + (size_t)i / 2, values));
        MUST(nc_enddef(nc));
    }
}

static int many_committed(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x);
    few_at_a_time(nc, NC_GLOBAL);
    few_at_a_time(nc, v);
    fill_all(nc, v, 4);
    return nc;
}

/* The same, gone on with by another session. */
static int many_committed_again(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2), v = var(nc, "v", NC_INT, x);
    few_at_a_time(nc, v);
    fill_all(nc, v, 4);
    MUST(nc_close(nc));
    nc = reopen(path);
    for (int i = 0; i < 20; i++) {
        char name[40];
        snprintf(name, sizeof name, "more_%d", i);
        text_att(nc, v, name, name);
        MUST(nc_sync(nc));
    }
    return nc;
}

const case_t ATTRIBUTE_CASES[] = {
    {"att-types", types},
    {"att-large", large},
    {"att-many", many},
    {"att-edited", edited},
    {"att-deleted", deleted},
    {"att-names", names},
    {"longest-names", longest_names},
    {"att-no-order", no_order},
    {"att-many-committed", many_committed},
    {"att-many-committed-again", many_committed_again},
    {NULL, NULL},
};
