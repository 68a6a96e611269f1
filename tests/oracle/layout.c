/* SPDX-License-Identifier: MIT OR Apache-2.0
 * What files look like: alignment, growth of header and records, fills, large offsets. */
#include "harness.h"

static void raw_header(const char *path, size_t n) {
    unsigned char raw[400];
    FILE *f = fopen(path, "rb");
    size_t got = f ? fread(raw, 1, n < sizeof raw ? n : sizeof raw, f) : 0;
    if (f) fclose(f);
    bytes("header", raw, got);
}

static void file_size(const char *path) {
    struct stat st;
    note("%s: %lld bytes", path, stat(path, &st) == 0 ? (long long)st.st_size : -1ll);
}

/* Alignments: where sections begin shows in the header. Zonda leaves room for headers to grow, so
 * begins are compared only where the program dictates them all. */
static void alignments(void) {
    static const size_t sets[][4] = {{0, 4, 0, 4}, {0, 1, 0, 1}, {100, 4, 0, 4}, {0, 512, 0, 4},
                                     {0, 4, 0, 512}, {0, 4, 100, 4}, {10, 64, 20, 128},
                                     {0, 4, 0, 3}, {0, 7, 0, 7}, {4096, 4096, 4096, 4096}};
    for (size_t i = 0; i < COUNT(sets); i++) {
        int nc, t, x, v, w, data[3] = {1, 2, 3};
        char path[40];
        snprintf(path, sizeof path, "align%zu.nc", i);
        note("set %zu", i);
        R(nc_create(path, NC_CLOBBER, &nc));
        R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
        R(nc_def_dim(nc, "x", 3, &x));
        R(nc_def_var(nc, "v", NC_SHORT, 1, &x, &v));
        R(nc_def_var(nc, "r", NC_SHORT, 2, (int[]){t, x}, &w));
        R(nc__enddef(nc, sets[i][0], sets[i][1], sets[i][2], sets[i][3]));
        R(nc_put_var_int(nc, v, data));
        R(nc_put_vara_int(nc, w, (size_t[]){0, 0}, (size_t[]){1, 3}, data));
        R(nc_redef(nc));
        R(nc_put_att_text(nc, NC_GLOBAL, "a", 60, "123456789 123456789 123456789 123456789 123456789 1234567890"));
        R(nc__enddef(nc, sets[i][0], sets[i][1], sets[i][2], sets[i][3]));
        R(nc_close(nc));
        raw_header(path, 220);
        describe_file(path);
    }
}

/* Records of several variables, grown in several orders, with and without fill. */
static void records(const char *path, int flags, nc_type type, int alone, int fill) {
    int nc, t, x, v, w = -1;
    double value = 65;
    note("%s type %d alone %d fill %d", path, type, alone, fill);
    R(nc_create(path, flags, &nc));
    R(nc_set_fill(nc, fill, NULL));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    R(nc_def_dim(nc, "x", 3, &x));
    R(nc_def_var(nc, "v", type, 2, (int[]){t, x}, &v));
    if (!alone) R(nc_def_var(nc, "w", NC_BYTE, 1, &t, &w));
    R(nc__enddef(nc, 0, 4, 0, 4));
    static const size_t order[] = {0, 1, 5, 3, 7};
    for (size_t i = 0; i < COUNT(order); i++) {
        size_t at[2] = {order[i], 1};
        char c = 'A';
        if (fill == NC_NOFILL && order[i] > 1) break;
        if (type == NC_CHAR) R(nc_put_var1_text(nc, v, at, &c));
        else R(nc_put_var1_double(nc, v, at, &value));
        if (fill == NC_NOFILL) { /* every element, since the rest is what the disk holds */
            for (at[1] = 0; at[1] < 3; at[1]++)
                if (type == NC_CHAR) nc_put_var1_text(nc, v, at, &c);
                else nc_put_var1_double(nc, v, at, &value);
            if (w >= 0) nc_put_var1_double(nc, w, at, &value);
        }
        size_t len = 77;
        R(nc_inq_dimlen(nc, t, &len));
        sizes("records", &len, 1);
    }
    if (w >= 0) R(nc_put_var1_double(nc, w, (size_t[]){fill == NC_FILL ? 9 : 1}, &value));
    describe(nc);
    R(nc_close(nc));
    raw_header(path, 200);
    describe_file(path);
    file_size(path);
}

/* Definitions after data: everything moves and stays what it was. */
static void growth(const char *path, int flags) {
    int nc, t, x, ids[12], data[12];
    for (int i = 0; i < 12; i++) data[i] = 100 + i;
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    R(nc_def_dim(nc, "x", 4, &x));
    R(nc_enddef(nc));
    for (int round = 0; round < 12; round++) {
        char name[400];
        R(nc_redef(nc));
        snprintf(name, sizeof name, "v%d", round);
        if (round % 3 == 0) R(nc_def_var(nc, name, NC_SHORT, 2, (int[]){t, x}, &ids[round]));
        else if (round % 3 == 1) R(nc_def_var(nc, name, NC_INT, 1, &x, &ids[round]));
        else R(nc_def_var(nc, name, NC_BYTE, 1, &t, &ids[round]));
        memset(name, 'a' + round, sizeof name);
        snprintf(name + 20, 20, "%d", round);
        R(nc_put_att_text(nc, NC_GLOBAL, name, 300, name));
        if (round == 5) R(nc_del_att(nc, NC_GLOBAL, "aaaaaaaaaaaaaaaaaaaa0"));
        if (round == 7) R(nc_rename_var(nc, ids[1], "a name that is much longer than before"));
        R(nc_enddef(nc));
        if (round % 3 == 0) R(nc_put_vara_int(nc, ids[round], (size_t[]){(size_t)round / 2, 0}, (size_t[]){2, 4}, data));
        else if (round % 3 == 1) R(nc_put_var_int(nc, ids[round], data));
        else R(nc_put_vara_int(nc, ids[round], (size_t[]){1}, (size_t[]){3}, data));
        describe(nc);
        if (round % 4 == 3) {
            R(nc_close(nc));
            R(nc_open(path, NC_WRITE, &nc));
        }
    }
    R(nc_close(nc));
    describe_file(path);
}

/* Offsets beyond 2 and 4 GiB in files that are almost all hole. */
static void large(int flags, size_t first, size_t second) {
    int nc = -77, x, y, t, v, w, r;
    int value = 7, got = -77;
    note("flags 0x%x lengths %zu %zu", flags, first, second);
    R(nc_create("large.big", flags, &nc));
    R(nc_set_fill(nc, NC_NOFILL, NULL));
    int code = R(nc_def_dim(nc, "x", first, &x));
    code |= R(nc_def_dim(nc, "y", second, &y));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    if (code == NC_NOERR) {
        R(nc_def_var(nc, "v", NC_INT, 1, &x, &v));
        R(nc_def_var(nc, "w", NC_BYTE, 1, &y, &w));
        R(nc_def_var(nc, "r", NC_INT, 1, &t, &r));
        if (R(nc_enddef(nc)) == NC_NOERR) {
            size_t end = first - 1, wend = second - 1, record = 3;
            R(nc_put_var1_int(nc, v, &end, &value));
            R(nc_put_var1_int(nc, w, &wend, &value));
            R(nc_put_var1_int(nc, r, &record, &value));
            R(nc_get_var1_int(nc, v, &end, &got));
            ints("got", &got, 1);
            end++;
            R(nc_get_var1_int(nc, v, &end, &got));
        }
        R(nc_close(nc));
        if (R(nc_open("large.big", NC_NOWRITE, &nc)) == NC_NOERR) {
            size_t end = first - 1, wend = second - 1, record = 3;
            got = -77;
            R(nc_get_var1_int(nc, 0, &end, &got));
            ints("got", &got, 1);
            R(nc_get_var1_int(nc, 1, &wend, &got));
            ints("got", &got, 1);
            R(nc_get_var1_int(nc, 2, &record, &got));
            ints("got", &got, 1);
            R(nc_close(nc));
        }
    } else R(nc_abort(nc));
    remove("large.big");
}

/* Which sizes each format takes; nothing is written. */
static void limits(int flags) {
    static const size_t lens[] = {536870911, 536870912, 1073741822, 1073741823, 1073741824, 2147483646, 4294967290u};
    for (size_t i = 0; i < COUNT(lens); i++)
        for (nc_type type = NC_BYTE; type <= NC_DOUBLE; type++)
            for (int shape = 0; shape < 4; shape++) {
                int nc = -77, x, t, v, s;
                note("flags 0x%x len %zu type %d shape %d", flags, lens[i], type, shape);
                R(nc_create("limits.big", flags, &nc));
                R(nc_set_fill(nc, NC_NOFILL, NULL));
                if (R(nc_def_dim(nc, "x", lens[i], &x)) == NC_NOERR) {
                    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
                    if (shape & 1) R(nc_def_var(nc, "first", type, 1, &x, &v));
                    else R(nc_def_var(nc, "first", type, 2, (int[]){t, x}, &v));
                    if (shape & 2) R(nc_def_var(nc, "second", NC_BYTE, 1, &x, &s));
                    else R(nc_def_var(nc, "second", NC_BYTE, 2, (int[]){t, x}, &s));
                    R(nc_enddef(nc));
                }
                R(nc_abort(nc));
            }
    remove("limits.big");
}

int main(void) {
    alignments();
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        for (nc_type type = NC_BYTE; type <= FORMATS[f].last_type; type++)
            for (int alone = 0; alone < 2; alone++)
                for (int fill = 0; fill < 2; fill++) {
                    char stem[40];
                    snprintf(stem, sizeof stem, "rec_%d_%d_%d", type, alone, fill);
                    records(path_of(stem, FORMATS[f].name), FORMATS[f].flags, type, alone,
                            fill ? NC_FILL : NC_NOFILL);
                }
        growth(path_of("growth", FORMATS[f].name), FORMATS[f].flags);
        limits(FORMATS[f].flags);
    }
    large(0, 500000000, 100);
    large(0, 300000000, 600000000);
    large(NC_64BIT_OFFSET, 1000000000, 2000000000);
    large(NC_64BIT_OFFSET, 1073741820, 4000000000u);
    large(NC_64BIT_DATA, 1500000000, 5000000000u);
    return 0;
}
