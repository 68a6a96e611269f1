/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A fork while threads of the library are in transfers of very slow storage waits no longer than 2 s in all, for whichever
 * layer and however many files. Each call of the child on those files answers at once, with what it asked for or
 * ECHILD; other files it may make, and its own children, too. The parent loses nothing. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Rows of 256 KB: each takes a quarter of a second. */
enum { N_FILES = 3, WIDTH = 32 * 1024, ROWS = 3, MOST_MS = 3500 };
static const struct {
    const char *io, *async;
    int flags, deflates, rests;
} cases[] = {
    {"cachea:64:8:4,throttle:1M,file", "off", 0, 0, 0},
    {"bufa:64:4,throttle:1M,file", "off", 0, 0, 0},
    {"cache,throttle:1M:20ms,file", "off", 0, 0, 0},
    {"cachea:64:8:4,throttle:1M,file", "off", NC_NETCDF4, 1, 0},
    {"cache,throttle:1M:20ms,file", "on", 0, 0, 0},
    {"cache,throttle:1M:20ms,file", "on", NC_NETCDF4, 0, 0},
    {"throttle:1M,file", "mem=1M,threads=3", NC_64BIT_DATA, 0, 0},
    /* One transfer in the background takes longer than a fork waits, and nobody calls. */
    {"cachea:128:8:4,throttle:150K,file", "off", NC_64BIT_DATA, 0, 1},
    {"bufa:128:4,throttle:150K,file", "off", 0, 0, 1},
    {"cachea:128:8:4,throttle:150K,file", "off", NC_NETCDF4, 0, 1},
    {"throttle:100K,file", "on", NC_64BIT_DATA, 0, 1},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int nc[N_FILES], var[N_FILES];
static _Atomic int stop;
static int rests;

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static double value(int row, int k) { return row * 1000 + k % 977 + 0.25; }

static void put_row(int file, int row, double *values) {
    for (int k = 0; k < WIDTH; k++) values[k] = value(row, k);
    OK(nc_put_vara_double(nc[file], var[file], (size_t[]){(size_t)row, 0}, (size_t[]){1, WIDTH}, values));
}

static void *puts_rows(void *of) {
    int file = (int)(size_t)of;
    double *values = malloc(WIDTH * sizeof *values);
    for (int row = 0; !stop; row = (row + 1) % ROWS) {
        put_row(file, row, values);
        while (rests && row == ROWS - 1 && !stop) usleep(10000);
    }
    free(values);
    return NULL;
}

/* Every answer comes at once. */
static void asks_all(void) {
    for (int file = 0; file < N_FILES; file++) {
        int n = 0;
        double x = 0, begin = now_ms();
        int code = nc_inq_ndims(nc[file], &n);
        int lost = code == ECHILD;
        CHECK(lost || (code == NC_NOERR && n == 2));
        if (lost) {
            FAILS(nc_get_var1_double(nc[file], var[file], (size_t[]){0, 1}, &x), ECHILD);
        }
        FAILS(nc_put_var1_double(nc[file], var[file], (size_t[]){0, 1}, &x), ECHILD);
        FAILS(nc_sync(nc[file]), ECHILD);
        code = nc_close(nc[file]);
        CHECK(code == (lost ? ECHILD : NC_NOERR));
        CHECK(now_ms() - begin < 1000);
    }
}

static void makes(const char *path, int flags) {
    int id, dim;
    double x = 3;
    unsetenv("ZONDA_IO");
    OK(nc_create(path, NC_CLOBBER | flags, &id));
    OK(nc_def_dim(id, "x", 1, &dim));
    OK(nc_def_var(id, "v", NC_DOUBLE, 1, &dim, &dim));
    OK(nc_enddef(id));
    OK(nc_put_var_double(id, 0, &x));
    /* The child's own children find its files whole: nothing of the parent's is in their way. */
    double begin = now_ms();
    pid_t made = fork();
    CHECK(made >= 0);
    if (made == 0) {
        int n;
        OK(nc_inq_ndims(id, &n));
        _exit(n != 1);
    }
    CHECK(now_ms() - begin < 1000);
    int status;
    CHECK(waitpid(made, &status, 0) == made && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(nc_close(id));
}

static void forks(int nth) {
    pthread_t threads[N_FILES];
    char path[40];
    setenv("ZONDA_IO", cases[nth].io, 1);
    setenv("ZONDA_ASYNC", cases[nth].async, 1);
    rests = cases[nth].rests;
    for (int file = 0; file < N_FILES; file++) {
        int dims[2];
        snprintf(path, sizeof path, "slow-%d-%d.nc", nth, file);
        OK(nc_create(path, NC_CLOBBER | cases[nth].flags, &nc[file]));
        OK(nc_def_dim(nc[file], "t", NC_UNLIMITED, &dims[0]));
        OK(nc_def_dim(nc[file], "x", WIDTH, &dims[1]));
        OK(nc_def_var(nc[file], "v", NC_DOUBLE, 2, dims, &var[file]));
        if (cases[nth].deflates) OK(nc_def_var_deflate(nc[file], var[file], 1, 1, 1));
        OK(nc_enddef(nc[file]));
    }
    for (int file = 0; file < N_FILES; file++)
        CHECK(pthread_create(&threads[file], NULL, puts_rows, (void *)(size_t)file) == 0);
    usleep(700000);
    double begin = now_ms();
    pid_t made = fork();
    CHECK(made >= 0);
    if (made == 0) {
        alarm(30);
        CHECK(now_ms() - begin < MOST_MS);
        asks_all();
        snprintf(path, sizeof path, "slow-%d-child.nc", nth);
        makes(path, cases[nth].flags);
        _exit(0);
    }
    double took = now_ms() - begin;
    if (took >= MOST_MS) fprintf(stderr, "case %d: the fork took %.0f ms\n", nth, took);
    CHECK(took < MOST_MS);
    int status;
    CHECK(waitpid(made, &status, 0) == made);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        fprintf(stderr, "case %d: the child ends with %#x\n", nth, (unsigned)status);
        _exit(1);
    }
    stop = 1;
    double *values = malloc(WIDTH * sizeof *values), got = 0;
    for (int file = 0; file < N_FILES; file++) {
        CHECK(pthread_join(threads[file], NULL) == 0);
        for (int row = 0; row < ROWS; row++) put_row(file, row, values);
        OK(nc_get_var1_double(nc[file], var[file], (size_t[]){ROWS - 1, WIDTH - 1}, &got));
        CHECK(got == value(ROWS - 1, WIDTH - 1));
        OK(nc_close(nc[file]));
    }
    unsetenv("ZONDA_IO");
    for (int file = 0; file < N_FILES; file++) {
        int id;
        snprintf(path, sizeof path, "slow-%d-%d.nc", nth, file);
        OK(nc_open(path, NC_NOWRITE, &id));
        for (int row = 0; row < ROWS; row++) {
            OK(nc_get_vara_double(id, var[file], (size_t[]){(size_t)row, 0}, (size_t[]){1, WIDTH}, values));
            for (int k = 0; k < WIDTH; k++) CHECK(values[k] == value(row, k));
        }
        OK(nc_close(id));
    }
}

int main(void) {
    pid_t children[N_CASES];
    int n_failed = 0;
    /* They wait nearly all the time. This process never calls the library. */
    for (int nth = 0; nth < N_CASES; nth++) {
        children[nth] = fork();
        CHECK(children[nth] >= 0);
        if (children[nth] == 0) {
            alarm(200);
            forks(nth);
            _exit(0);
        }
    }
    for (int nth = 0; nth < N_CASES; nth++) {
        int status;
        CHECK(waitpid(children[nth], &status, 0) == children[nth]);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        n_failed++;
        fprintf(stderr, "case %d: %s, ZONDA_ASYNC=%s: status %#x\n", nth, cases[nth].io, cases[nth].async, (unsigned)status);
    }
    CHECK(n_failed == 0);
    return 0;
}
