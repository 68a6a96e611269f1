/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Calls for an element or a few, many of the same variable one after the other, with everything between them that may change
 * what such a call means: other calls, other threads, commits, definitions, closes, forks. What is read is compared with
 * arrays in memory, and the file with what a second opening reads. */
#include "check.h"
#include <errno.h>
#include <float.h>
#include <pthread.h>
#include <sys/wait.h>

enum { LENGTH = 70000, ROWS = 50, COLUMNS = 30, RECORDS = 40, WIDTH = 7, RUN = 700 };

static unsigned long state = 88172645463325252ul;
static size_t below(size_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % n;
}

static double series[LENGTH], plane[ROWS][COLUMNS], records[2 * RECORDS][WIDTH];
static float floats[LENGTH];
static short shorts[LENGTH];
static signed char bytes[LENGTH];
static char letters[LENGTH];
enum { SERIES, PLANE, FLOATS, SHORTS, BYTES, LETTERS, RECORD };

static int make(const char *path, int format) {
    int nc, x, y[2], r[2], v;
    OK(nc_create(path, NC_CLOBBER | format, &nc));
    OK(nc_def_dim(nc, "x", LENGTH, &x));
    OK(nc_def_dim(nc, "y", ROWS, &y[0]));
    OK(nc_def_dim(nc, "z", COLUMNS, &y[1]));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &r[0]));
    OK(nc_def_dim(nc, "w", WIDTH, &r[1]));
    OK(nc_def_var(nc, "series", NC_DOUBLE, 1, &x, &v));
    OK(nc_def_var(nc, "plane", NC_DOUBLE, 2, y, &v));
    OK(nc_def_var(nc, "floats", NC_FLOAT, 1, &x, &v));
    OK(nc_def_var(nc, "shorts", NC_SHORT, 1, &x, &v));
    OK(nc_def_var(nc, "bytes", NC_BYTE, 1, &x, &v));
    OK(nc_def_var(nc, "letters", NC_CHAR, 1, &x, &v));
    OK(nc_def_var(nc, "records", NC_DOUBLE, 2, r, &v));
    OK(nc_enddef(nc));
    for (size_t i = 0; i < LENGTH; i++)
        series[i] = NC_FILL_DOUBLE, floats[i] = NC_FILL_FLOAT, shorts[i] = NC_FILL_SHORT, bytes[i] = NC_FILL_BYTE, letters[i] = 0;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) plane[i / COLUMNS][i % COLUMNS] = NC_FILL_DOUBLE;
    return nc;
}

static void same(int nc, size_t n_records) {
    static double doubles[LENGTH];
    static float f[LENGTH];
    static short s[LENGTH];
    static signed char b[LENGTH];
    static char c[LENGTH];
    size_t n;
    OK(nc_inq_dimlen(nc, 3, &n));
    CHECK(n == n_records);
    OK(nc_get_var_double(nc, SERIES, doubles));
    CHECK(memcmp(doubles, series, sizeof series) == 0);
    OK(nc_get_var_double(nc, PLANE, doubles));
    CHECK(memcmp(doubles, plane, sizeof plane) == 0);
    OK(nc_get_var_float(nc, FLOATS, f));
    CHECK(memcmp(f, floats, sizeof f) == 0);
    OK(nc_get_var_short(nc, SHORTS, s));
    CHECK(memcmp(s, shorts, sizeof s) == 0);
    OK(nc_get_var_schar(nc, BYTES, b));
    CHECK(memcmp(b, bytes, sizeof b) == 0);
    OK(nc_get_var_text(nc, LETTERS, c));
    CHECK(memcmp(c, letters, sizeof c) == 0);
    OK(nc_get_var_double(nc, RECORD, doubles));
    CHECK(memcmp(doubles, records, n * sizeof records[0]) == 0);
}

/* Some calls of one variable, from a place on. */
static void some_calls(int nc, size_t *n_records) {
    const int var = (int)below(7);
    const size_t n = 4 + below(40);
    size_t i = below(LENGTH), step = below(4) ? 1 : below(LENGTH);
    for (size_t k = 0; k < n; k++, i = (i + step) % LENGTH) {
        double d = (double)below(30000), back = -1, run[RUN];
        size_t len = 1 + below(below(4) ? 12 : RUN), at[2] = {i % ROWS, i % COLUMNS}, one[2] = {1, 1};
        if (i + len > LENGTH) len = LENGTH - i;
        const int puts = (int)below(2);
        switch (var) {
        case SERIES:
            if (below(3) == 0) {
                for (size_t j = 0; j < len; j++) run[j] = puts ? series[i + j] = d + (double)j : 0;
                if (puts) OK(nc_put_vara_double(nc, var, &i, &len, run));
                OK(nc_get_vara_double(nc, var, &i, &len, run));
                CHECK(memcmp(run, series + i, len * sizeof *run) == 0);
            } else {
                if (puts) { series[i] = d; OK(nc_put_var1(nc, var, &i, &series[i])); }
                OK(nc_get_var1_double(nc, var, &i, &back));
                CHECK(back == series[i]);
            }
            break;
        case PLANE:
            if (puts) { plane[at[0]][at[1]] = d; OK(nc_put_var1_double(nc, var, at, &plane[at[0]][at[1]])); }
            len = len < COLUMNS - at[1] ? len : COLUMNS - at[1];
            one[1] = len;
            OK(nc_get_vara_double(nc, var, at, one, run));
            CHECK(memcmp(run, &plane[at[0]][at[1]], len * sizeof *run) == 0);
            break;
        case FLOATS:
            /* Doubles become floats, and some do not fit. */
            if (puts && below(9) == 0) {
                d = DBL_MAX;
                FAILS(nc_put_var1_double(nc, var, &i, &d), NC_ERANGE);
                OK(nc_get_var1_float(nc, var, &i, &floats[i]));
                CHECK(floats[i] > FLT_MAX || floats[i] == NC_FILL_FLOAT);
            } else if (puts) {
                OK(nc_put_var1_double(nc, var, &i, &d));
                floats[i] = (float)d;
            }
            OK(nc_get_var1_double(nc, var, &i, &back));
            CHECK(back == floats[i]);
            break;
        case SHORTS:
            if (puts) { OK(nc_put_vara_double(nc, var, &i, one, &d)); shorts[i] = (short)d; }
            if (puts && below(9) == 0) {
                const int large = 1 << 20;
                FAILS(nc_put_var1_int(nc, var, &i, &large), NC_ERANGE);
                OK(nc_get_var1_short(nc, var, &i, &shorts[i]));
            }
            OK(nc_get_var1_double(nc, var, &i, &back));
            CHECK(back == shorts[i]);
            break;
        case BYTES: {
            unsigned char u = (unsigned char)((int)d % 128);
            if (puts) { OK(nc_put_var1_uchar(nc, var, &i, &u)); bytes[i] = (signed char)u; }
            signed char b;
            OK(nc_get_var1_schar(nc, var, &i, &b));
            CHECK(b == bytes[i]);
            OK(nc_get_var1_double(nc, var, &i, &back));
            CHECK(back == bytes[i]);
            break;
        }
        case LETTERS: {
            char c = (char)('a' + below(26));
            if (puts) { OK(nc_put_var1_text(nc, var, &i, &c)); letters[i] = c; }
            OK(nc_get_var1_text(nc, var, &i, &c));
            CHECK(c == letters[i]);
            FAILS(nc_get_var1_double(nc, var, &i, &back), NC_ECHAR);
            break;
        }
        default: {
            /* Sometimes the next record. */
            at[0] = below(*n_records + (*n_records < 2 * RECORDS && below(20) == 0)), at[1] = below(WIDTH);
            if (at[0] == *n_records) {
                for (size_t j = 0; j < WIDTH; j++) records[at[0]][j] = NC_FILL_DOUBLE;
                FAILS(nc_get_var1_double(nc, var, at, &back), NC_EEDGE);
                { records[at[0]][at[1]] = d; OK(nc_put_var1_double(nc, var, at, &records[at[0]][at[1]])); }
                ++*n_records;
            }
            if (puts) { records[at[0]][at[1]] = d; OK(nc_put_var1_double(nc, var, at, &records[at[0]][at[1]])); }
            OK(nc_get_var1_double(nc, var, at, &back));
            CHECK(back == records[at[0]][at[1]]);
        }
        }
    }
    /* What does not exist, after calls for what does. */
    const size_t end = LENGTH, outside[2] = {ROWS, 0};
    double d = 0;
    FAILS(nc_put_var1_double(nc, SERIES, &end, &d), NC_EINVALCOORDS);
    FAILS(nc_get_var1_double(nc, PLANE, outside, &d), NC_EINVALCOORDS);
    FAILS(nc_get_var1_double(nc, 7, &end, &d), NC_ENOTVAR);
}

static void random_calls(const char *path, int format) {
    int nc = make(path, format), old, var;
    size_t n_records = 1;
    for (size_t j = 0; j < WIDTH; j++) records[0][j] = (double)j;
    OK(nc_put_vara_double(nc, RECORD, (size_t[]){0, 0}, (size_t[]){1, WIDTH}, records[0]));
    for (int round = 0; round < 600; round++) {
        some_calls(nc, &n_records);
        switch (below(12)) {
        case 0: OK(nc_sync(nc)); break;
        case 1: {
            /* More attributes move all data. */
            char text[300] = {0};
            OK(nc_redef(nc));
            const size_t at = 3;
            FAILS(nc_put_var1_double(nc, SERIES, &at, series), NC_EINDEFINE);
            OK(nc_put_att_text(nc, SERIES, "note", below(300), text));
            OK(nc_enddef(nc));
            break;
        }
        case 2: {
            const size_t at = 1;
            OK(nc_close(nc));
            FAILS(nc_put_var1_double(nc, SERIES, &at, series), NC_EBADID);
            FAILS(nc_get_var1_double(nc, SERIES, &at, series), NC_EBADID);
            /* Another file gets the number, with another kind of variable under the same id. */
            int other = small_file("other.nc", NC_CLOBBER), x[2] = {0, 0};
            for (size_t k = 0; k < 30; k++) OK(nc_get_var1_int(other, 0, (size_t[]){1, k % 3}, &x[0]));
            CHECK(x[0] == 6);
            OK(nc_close(other));
            OK(nc_open(path, NC_WRITE, &nc));
            break;
        }
        case 3: {
            /* A reader of the same file sees what is committed. */
            OK(nc_sync(nc));
            OK(nc_open(path, NC_NOWRITE, &old));
            for (int k = 0; k < 20; k++) {
                const size_t at = below(LENGTH);
                double back;
                OK(nc_get_var1_double(old, SERIES, &at, &back));
                CHECK(back == series[at]);
                FAILS(nc_put_var1_double(old, SERIES, &at, &back), NC_EPERM);
            }
            same(old, n_records);
            OK(nc_close(old));
            break;
        }
        case 4: same(nc, n_records); break;
        case 5: OK(nc_set_fill(nc, NC_NOFILL, &old)); OK(nc_set_fill(nc, old, NULL)); break;
        case 6: OK(nc_inq_varid(nc, "records", &var)); CHECK(var == RECORD); break;
        default: break;
        }
    }
    OK(nc_close(nc));
    OK(nc_open(path, NC_NOWRITE, &nc));
    for (int round = 0; round < 20; round++)
        for (size_t k = 0, i = below(LENGTH - 60); k < 50; k++, i++) {
            double back;
            OK(nc_get_var1_double(nc, SERIES, &i, &back));
            CHECK(back == series[i]);
        }
    same(nc, n_records);
    OK(nc_close(nc));
}

/* Lengths and variables that are asked for again and again. */
static void inquiries(int format) {
    int nc = make("asked.nc", format), n_dims, dims[NC_MAX_VAR_DIMS], n_atts;
    size_t length;
    char name[NC_MAX_NAME + 1];
    nc_type type;
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 4; k++) {
            OK(nc_inq_dimlen(nc, 0, &length));
            CHECK(length == LENGTH);
            OK(nc_inq_dimlen(nc, 3, &length));
            CHECK(length == (size_t)round);
            OK(nc_inq_var(nc, PLANE, name, &type, &n_dims, dims, &n_atts));
            CHECK(strcmp(name, round ? "flat" : "plane") == 0 && type == NC_DOUBLE && n_dims == 2 && dims[0] == 1 && dims[1] == 2);
            CHECK(n_atts == round);
            OK(nc_inq_var(nc, PLANE, NULL, NULL, NULL, NULL, NULL));
            OK(nc_inq_dimlen(nc, 0, NULL));
        }
        FAILS(nc_inq_dimlen(nc, 9, &length), NC_EBADDIM);
        FAILS(nc_inq_var(nc, 9, name, &type, &n_dims, dims, &n_atts), NC_ENOTVAR);
        OK(nc_redef(nc));
        if (!round) OK(nc_rename_var(nc, PLANE, "flat"));
        snprintf(name, sizeof name, "a%d", round);
        OK(nc_put_att_text(nc, PLANE, name, 1, "x"));
        OK(nc_enddef(nc));
        OK(nc_put_var1_double(nc, RECORD, (size_t[]){(size_t)round, 0}, series));
    }
    OK(nc_close(nc));
    FAILS(nc_inq_dimlen(nc, 0, &length), NC_EBADID);
    FAILS(nc_inq_var(nc, PLANE, name, &type, &n_dims, dims, &n_atts), NC_EBADID);
    const int other = small_file("other.nc", NC_CLOBBER | format);
    CHECK(other == nc);
    OK(nc_inq_dimlen(nc, 1, &length));
    CHECK(length == 3);
    OK(nc_inq_var(nc, 1, name, &type, &n_dims, dims, &n_atts));
    CHECK(strcmp(name, "f") == 0);
    OK(nc_close(other));
}

static int shared;
enum { THREADS = 3, PASSES = 4 };

static void *puts_its_part(void *rank) {
    const size_t me = (size_t)(ssize_t)rank;
    for (size_t pass = 0; pass < PASSES; pass++)
        for (size_t i = me; i < LENGTH; i += pass % 2 ? 1 : THREADS) {
            /* Every third element, next to those of the others; then a part of its own. */
            if (pass % 2 && i * THREADS / LENGTH != me) continue;
            double value = (double)(i * 10 + pass), back = 0;
            OK(nc_put_var1_double(shared, SERIES, &i, &value));
            OK(nc_get_var1_double(shared, SERIES, &i, &back));
            CHECK((size_t)back / 10 == i);
        }
    return NULL;
}

static void *commits(void *unused) {
    for (int k = 0; k < 30; k++) {
        OK(nc_sync(shared));
        usleep(500);
    }
    return unused;
}

static void threads(int format) {
    pthread_t all[THREADS + 1];
    shared = make("threads.nc", format);
    for (size_t k = 0; k < THREADS; k++) CHECK(pthread_create(&all[k], NULL, puts_its_part, (void *)(ssize_t)k) == 0);
    CHECK(pthread_create(&all[THREADS], NULL, commits, NULL) == 0);
    for (size_t k = 0; k <= THREADS; k++) CHECK(pthread_join(all[k], NULL) == 0);
    OK(nc_close(shared));
    OK(nc_open("threads.nc", NC_NOWRITE, &shared));
    OK(nc_get_var_double(shared, SERIES, series));
    /* Each thread is done with its own part in its last pass; an element of another's may have come later by the pass before. */
    for (size_t i = 0; i < LENGTH; i++) CHECK((size_t)series[i] / 10 == i && (size_t)series[i] % 10 >= PASSES - 2);
    OK(nc_close(shared));
}

/* A child of a fork has the parent's numbers, and nothing that it puts or that the parent puts meanwhile mixes. */
static void forks(int format) {
    int nc = make("fork.nc", format), status;
    double back = 0;
    for (size_t i = 0; i < 200; i++) { series[i] = (double)i; OK(nc_put_var1_double(nc, SERIES, &i, &series[i])); }
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < 200; i++) {
            FAILS(nc_put_var1_double(nc, SERIES, &i, &back), ECHILD);
            OK(nc_get_var1_double(nc, SERIES, &i, &back));
            CHECK(back == (double)i);
        }
        _exit(0);
    }
    for (size_t i = 0; i < 400; i++) { series[i] = (double)i; OK(nc_put_var1_double(nc, SERIES, &i, &series[i])); }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (size_t i = 0; i < 400; i++) {
        OK(nc_get_var1_double(nc, SERIES, &i, &back));
        CHECK(back == (double)i);
    }
    OK(nc_close(nc));
}

int main(void) {
    const int formats[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
    random_calls("random-1.nc", formats[0]);
    random_calls("random-2.nc", formats[1]);
    random_calls("random-5.nc", formats[2]);
    random_calls("random-share.nc", NC_SHARE);
    inquiries(0);
    inquiries(NC_NETCDF4);
    threads(NC_64BIT_OFFSET);
    forks(0);
    return 0;
}
