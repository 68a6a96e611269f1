/* SPDX-License-Identifier: MIT OR Apache-2.0
 * One thread closes a file while others put, get, inquire and sync by its id, on a device where each call takes long.
 * Each call comes before the close, and then a get has what was put and a put is in the file; or it answers NC_EBADID. (A
 * get that had ended define mode read fill values, where the close came between.) */
#include "check.h"
#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 96, ROWS = 3, WIDTH = 500, GETTERS = 2 };

static int nc, plain, texts;
static pthread_barrier_t begin;
static size_t n_gets, n_puts, n_refused;
/* The version of each row of the putting thread's variable that was accepted last, and begun last. */
static int accepted[ROWS], begun[ROWS];

static double value(int version, size_t row, size_t i) { return version * 10000.0 + (double)(row * WIDTH + i); }

static void count(size_t *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }

/* Whether the file was open; any other answer than that or NC_NOERR is wrong. */
static int was_open(int code) {
    if (code == NC_EBADID) count(&n_refused);
    CHECK(code == NC_NOERR || code == NC_EBADID);
    return code == NC_NOERR;
}

/* What was put before the threads began, whichever call asks for it. */
static void *gets(void *argument) {
    unsigned turn = (unsigned)(size_t)argument;
    double row[WIDTH];
    pthread_barrier_wait(&begin);
    for (;; turn++) {
        size_t at = turn / 6 % ROWS, len;
        double fill;
        char *text = NULL;
        int kind, number, no_fill;
        switch (turn % 6) {
        case 0:
        case 1:
            memset(row, 0, sizeof row);
            if (!was_open(nc_get_vara_double(nc, plain, (size_t[]){at, 0}, (size_t[]){1, WIDTH}, row))) return NULL;
            for (size_t i = 0; i < WIDTH; i++) CHECK(row[i] == value(1, at, i));
            break;
        case 2:
            if (!was_open(nc_get_var1_string(nc, texts, &at, &text))) return NULL;
            CHECK(text && strcmp(text, "a text") == 0);
            nc_free_string(1, &text);
            break;
        case 3:
            if (!was_open(nc_inq_var_fill(nc, plain, &no_fill, &fill))) return NULL;
            CHECK(!no_fill && fill == -7);
            break;
        case 4:
            if (!was_open(nc_get_att_int(nc, NC_GLOBAL, "first", &number))) return NULL;
            CHECK(number == 11);
            if (!was_open(nc_inq_dimlen(nc, 0, &len))) return NULL;
            CHECK(len == ROWS);
            break;
        default:
            if (!was_open(nc_inq_var_chunking(nc, plain, &kind, NULL))) return NULL;
            CHECK(kind == NC_CHUNKED);
        }
        count(&n_gets);
    }
}

static void *puts_rows(void *argument) {
    const int var = *(int *)argument;
    double row[WIDTH];
    pthread_barrier_wait(&begin);
    for (int turn = 0;; turn++) {
        const size_t at = (size_t)turn % ROWS;
        const int version = ++begun[at];
        for (size_t i = 0; i < WIDTH; i++) row[i] = value(version, at, i);
        if (!was_open(nc_put_vara_double(nc, var, (size_t[]){at, 0}, (size_t[]){1, WIDTH}, row))) return NULL;
        accepted[at] = version;
        count(&n_puts);
        /* Puts an attribute, and so enters define mode, which the next get or put ends. */
        if (!was_open(nc_put_att_int(nc, NC_GLOBAL, "turn", NC_INT, 1, &turn))) return NULL;
        if (turn % 3 == 2 && !was_open(nc_sync(nc))) return NULL;
    }
}

static void one_round(int number) {
    static const char *const name = "close.nc";
    pthread_t threads[GETTERS + 1];
    int dims[2], other, first = 11;
    double row[WIDTH], fill = -7;
    const char *text = "a text";
    OK(nc_create(name, NC_NETCDF4, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", WIDTH, &dims[1]));
    OK(nc_def_var(nc, "plain", NC_DOUBLE, 2, dims, &plain));
    OK(nc_def_var_fill(nc, plain, 0, &fill));
    OK(nc_def_var(nc, "texts", NC_STRING, 1, dims, &texts));
    OK(nc_def_var(nc, "other", NC_DOUBLE, 2, dims, &other));
    if (number & 2) OK(nc_def_var_deflate(nc, plain, 1, 1, 1));
    OK(nc_put_att_int(nc, NC_GLOBAL, "first", NC_INT, 1, &first));
    for (size_t at = 0; at < ROWS; at++) {
        for (size_t i = 0; i < WIDTH; i++) row[i] = value(1, at, i);
        OK(nc_put_vara_double(nc, plain, (size_t[]){at, 0}, (size_t[]){1, WIDTH}, row));
        OK(nc_put_var1_string(nc, texts, &at, &text));
        accepted[at] = begun[at] = 0;
    }
    CHECK(pthread_barrier_init(&begin, NULL, GETTERS + 2) == 0);
    for (size_t i = 0; i < GETTERS; i++) CHECK(pthread_create(&threads[i], NULL, gets, (void *)i) == 0);
    CHECK(pthread_create(&threads[GETTERS], NULL, puts_rows, &other) == 0);
    pthread_barrier_wait(&begin);
    usleep((useconds_t)(number * 7919 % 23) * 1000);
    OK(nc_close(nc));
    for (int i = 0; i <= GETTERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&begin) == 0);
    OK(nc_open(name, NC_NOWRITE, &nc));
    for (size_t at = 0; at < ROWS; at++) {
        OK(nc_get_vara_double(nc, plain, (size_t[]){at, 0}, (size_t[]){1, WIDTH}, row));
        for (size_t i = 0; i < WIDTH; i++) CHECK(row[i] == value(1, at, i));
        if (accepted[at] == 0) continue;
        OK(nc_get_vara_double(nc, other, (size_t[]){at, 0}, (size_t[]){1, WIDTH}, row));
        const int version = (int)floor(row[0] / 10000);
        CHECK(version >= accepted[at] && version <= begun[at]);
        for (size_t i = 0; i < WIDTH; i++) CHECK(row[i] == value(version, at, i));
    }
    OK(nc_close(nc));
}

static int closed_id;
static void *closes_and_opens(void *unused) {
    int other, dim, var;
    OK(nc_close(closed_id));
    OK(nc_create("other.nc", NC_CLOBBER, &other));
    OK(nc_def_dim(other, "x", 1, &dim));
    OK(nc_def_var(other, "v", NC_INT, 1, &dim, &var));
    OK(nc_enddef(other));
    return unused;
}

/* The number of a file that another thread has closed is not that of the next one. To be the first of the process. */
static void numbers(void) {
    int dim, var, value;
    pthread_t thread;
    OK(nc_create("first.nc", NC_CLOBBER, &closed_id));
    OK(nc_def_dim(closed_id, "x", 1, &dim));
    OK(nc_def_var(closed_id, "v", NC_INT, 1, &dim, &var));
    OK(nc_enddef(closed_id));
    CHECK(pthread_create(&thread, NULL, closes_and_opens, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    FAILS(nc_get_var_int(closed_id, 0, &value), NC_EBADID);
}

int main(void) {
    numbers();
    for (int number = 0; number < ROUNDS; number++) {
        setenv("ZONDA_IO", number % 2 ? "throttle:1G:1ms,file" : "cache:4:8,throttle:1G:1ms,file", 1);
        setenv("ZONDA_ASYNC", number & 4 ? "on" : "off", 1);
        one_round(number);
    }
    CHECK(n_refused == ROUNDS * (GETTERS + 1));
    printf("%zu gets and %zu puts beside a close, each whole or refused\n", n_gets, n_puts);
    return 0;
}
