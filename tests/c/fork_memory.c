/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What nc_zonda_memory() counts comes back to 0: in a child that has closed what it inherited, whatever threads of its parent had in
 * hand when it was forked, and half a second after the last file with write-behind was closed. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <zonda.h>

enum { ROWS = 64, COLUMNS = 8192, THREADS = 3 };

static int files[THREADS + 1];
static int stop;
static pthread_barrier_t begun;

static size_t held(const char *what, int tell) {
    const char *name;
    size_t bytes, sum = 0, all;
    OK(nc_zonda_memory(-1, NULL, &all, NULL));
    for (int kind = 0; nc_zonda_memory(kind, &name, &bytes, NULL) == 0; kind++) {
        if (bytes > 0 && tell) fprintf(stderr, "%s: %s %zu\n", what, name, bytes);
        sum += bytes;
    }
    CHECK(sum == all);
    return all;
}

static int create(const char *path) {
    int nc, d[2], v;
    OK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "y", ROWS, &d[0]));
    OK(nc_def_dim(nc, "x", COLUMNS, &d[1]));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 2, d, &v));
    OK(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){16, 512}));
    OK(nc_def_var_deflate(nc, v, 1, 1, 1));
    OK(nc_enddef(nc));
    return nc;
}

static void put(int nc, size_t row, size_t n) {
    static double values[ROWS * COLUMNS];
    OK(nc_put_vara_double(nc, 0, (size_t[]){row, 0}, (size_t[]){n, COLUMNS}, values));
}

static void *work(void *which) {
    int number = (int)(intptr_t)which;
    pthread_barrier_wait(&begun);
    for (size_t row = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); row = (row + 1) % ROWS) {
        double got[COLUMNS];
        put(files[number], row, 1);
        if (row % 7 == 0) OK(nc_get_vara_double(files[number], 0, (size_t[]){row, 0}, (size_t[]){1, COLUMNS}, got));
    }
    return NULL;
}

static void with(const char *behind) {
    pthread_t threads[THREADS];
    static double values[ROWS * COLUMNS];
    char path[32];
    setenv("ZONDA_ASYNC", behind, 1);
    setenv("ZONDA_THREADS", "4", 1);
    for (int i = 0; i <= THREADS; i++) {
        snprintf(path, sizeof path, "m%d.nc", i);
        files[i] = create(path);
    }
    /* One to read, whose next chunks are decoded ahead. */
    put(files[THREADS], 0, ROWS);
    OK(nc_close(files[THREADS]));
    OK(nc_open(path, NC_NOWRITE, &files[THREADS]));
    CHECK(pthread_barrier_init(&begun, NULL, THREADS + 1) == 0);
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    pthread_barrier_wait(&begun);
    for (int i = 0; i < 12; i++) {
        pid_t child;
        int status;
        OK(nc_get_vara_double(files[THREADS], 0, (size_t[]){(size_t)i % 4 * 16, 0}, (size_t[]){16, COLUMNS}, values));
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            OK(nc_get_vara_double(files[THREADS], 0, (size_t[]){0, 0}, (size_t[]){1, COLUMNS}, values));
            for (int k = 0; k <= THREADS; k++) OK(nc_close(files[k]));
            CHECK(held("child", 1) == 0);
            /* And its own, and that of a child with it. */
            snprintf(path, sizeof path, "c%d.nc", i);
            files[0] = create(path);
            put(files[0], 0, 3);
            child = fork();
            CHECK(child >= 0);
            OK(nc_close(files[0]));
            if (child == 0) {
                CHECK(held("grandchild", 1) == 0);
                _exit(0);
            }
            CHECK(waitpid(child, &status, 0) == child && status == 0);
            for (int n = 0; n < 100 && held("", 0) > 0; n++) usleep(50000);
            CHECK(held("child with a file of its own", 1) == 0);
            unlink(path);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i <= THREADS; i++) OK(nc_close(files[i]));
    for (int n = 0; n < 100 && held("", 0) > 0; n++) usleep(50000);
    CHECK(held("in the end", 1) == 0);
}

int main(void) {
    const char *behind[] = {"off", "on", "mem=2M"};
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        int status;
        CHECK(child >= 0);
        if (child == 0) {
            alarm(200);
            with(behind[i]);
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
