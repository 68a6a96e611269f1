/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A filter plugin that calls the library, also for files with the same filter, from the calling thread, the pool's and
 * write-behind's: what can be done is done, everything else is EDEADLK. Nothing waits without end. */
#include "check.h"
#include <errno.h>
#include <netcdf_filter.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <zonda.h>

enum { N = 400000, CHUNK = 25000 };

static int (*within)(void); /* what the plugin does, once in each of its calls from outside */
static __thread int depth;
static int n_calls, endless, deepest;
static int first, second; /* files that it works on */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int called(void) {
    int result = 0;
    if (depth > 0 && !endless) return 0;
    depth++;
    __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
    if (within != NULL) result = within();
    depth--;
    return result;
}

static int create(const char *path) {
    int (*function)(void) = called;
    uintptr_t address;
    int nc, d, v;
    memcpy(&address, &function, sizeof address);
    unsigned values[2] = {(unsigned)address, (unsigned)((uint64_t)address >> 32)};
    OK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "x", N, &d));
    OK(nc_def_var(nc, "v", NC_INT, 1, &d, &v));
    OK(nc_def_var_chunking(nc, v, NC_CHUNKED, (size_t[]){CHUNK}));
    OK(nc_def_var_filter(nc, v, 306, 2, values));
    OK(nc_enddef(nc));
    return nc;
}

static int *numbers(int from) {
    int *values = malloc(N * sizeof *values);
    CHECK(values != NULL);
    for (int i = 0; i < N; i++) values[i] = from + i;
    return values;
}

static void has(int nc, int from) {
    int *want = numbers(from), *got = calloc(N, sizeof *got);
    OK(nc_get_var_int(nc, 0, got));
    CHECK(memcmp(want, got, N * sizeof *got) == 0);
    free(want);
    free(got);
}

static void put(int nc, int from) {
    int *values = numbers(from);
    OK(nc_put_var_int(nc, 0, values));
    free(values);
}

static void whole(const char *path, int from) {
    int nc = create(path);
    put(nc, from);
    has(nc, from);
    OK(nc_close(nc));
    OK(nc_open(path, NC_NOWRITE, &nc));
    has(nc, from);
    OK(nc_close(nc));
}

/* Files of its own, one for each thread. */
static int own_file(void) {
    char path[64];
    snprintf(path, sizeof path, "inner%lx.nc", (unsigned long)pthread_self());
    whole(path, 7);
    return 0;
}

static void *outer(void *which) {
    char path[64];
    snprintf(path, sizeof path, "outer%d.nc", (int)(intptr_t)which);
    whole(path, 1000 * (int)(intptr_t)which);
    return NULL;
}

static void from_threads(int n) {
    pthread_t threads[4];
    for (intptr_t i = 0; i < n; i++) CHECK(pthread_create(&threads[i], NULL, outer, (void *)i) == 0);
    for (int i = 0; i < n; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* The file that it works for: only what shares it with the call around can be done. */
static int same_file(void) {
    int value = 3, status;
    size_t at = 0, len;
    double begin = now();
    FAILS(nc_put_var1_int(first, 0, &at, &value), EDEADLK);
    CHECK(strstr(nc_zonda_last_error(), "filter plugin"));
    FAILS(nc_sync(first), EDEADLK);
    CHECK(strstr(nc_zonda_last_error(), "filter plugin") && strstr(nc_zonda_last_error(), "same.nc"));
    FAILS(nc_close(first), EDEADLK);
    status = nc_inq_dimlen(first, 0, &len);
    CHECK(status == EDEADLK || (status == 0 && len == N));
    CHECK(now() - begin < 1);
    return 0;
}

static int reads_same(void) {
    int value = -1, status;
    size_t at = N - 1;
    status = nc_get_var1_int(first, 0, &at, &value);
    CHECK(status == EDEADLK || (status == 0 && value == 40 + N - 1));
    return 0;
}

/* Each works on the file of the other. */
static int crossed(void) {
    int value, status, ids[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        size_t at = 0;
        status = nc_get_var1_int(ids[i], 0, &at, &value);
        CHECK(status == 0 || status == EDEADLK);
        value = 5;
        status = nc_put_var1_int(ids[i], 0, &at, &value);
        CHECK(status == 0 || status == EDEADLK);
    }
    return 0;
}

static void *puts_to(void *nc) {
    int *values = numbers(60);
    OK(nc_put_vara_int(*(int *)nc, 0, (size_t[]){0}, (size_t[]){2 * CHUNK}, values));
    free(values);
    return NULL;
}

static int forks(void) {
    int status;
    pid_t child;
    /* A fork waits for the call around it, and not without end: once is enough. */
    if (n_calls % 64 != 0) return 0;
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char path[64];
        snprintf(path, sizeof path, "child%d.nc", (int)getpid());
        whole(path, 9);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}

/* Once more what it is called for, each time. */
static int without_end(void) {
    int *values = numbers(0), nc, status;
    char path[64];
    snprintf(path, sizeof path, "deep%d.nc", depth);
    nc = create(path);
    status = nc_put_vara_int(nc, 0, (size_t[]){0}, (size_t[]){CHUNK}, values);
    if (status == 0) status = nc_sync(nc);
    if (status == EDEADLK) deepest = depth;
    if (status != 0) nc_abort(nc);
    else status = nc_close(nc);
    free(values);
    return status;
}

int main(void) {
    char *folders[] = {getenv("ZONDA_PLUGINS")};
    pthread_t threads[2];
    CHECK(folders[0] != NULL);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        int status;
        CHECK(child >= 0);
        if (child != 0) {
            CHECK(waitpid(child, &status, 0) == child);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            continue;
        }
        alarm(120);
        setenv("ZONDA_ASYNC", i == 0 ? "off" : "mem=1M,threads=1", 1);
        setenv("ZONDA_THREADS", "4", 1);
        OK(nc_plugin_path_set(&(NCPluginList){1, folders}));

        within = own_file;
        from_threads(1);
        from_threads(4);
        CHECK(n_calls > 0);

        within = NULL;
        first = create("same.nc");
        within = same_file;
        put(first, 40);
        OK(nc_sync(first));
        OK(nc_close(first));
        within = NULL;
        OK(nc_open("same.nc", NC_NOWRITE, &first));
        within = reads_same;
        has(first, 40);
        OK(nc_close(first));

        within = NULL;
        first = create("one.nc");
        second = create("two.nc");
        put(first, 50);
        put(second, 50);
        OK(nc_sync(first));
        OK(nc_sync(second));
        within = crossed;
        CHECK(pthread_create(&threads[0], NULL, puts_to, &first) == 0);
        CHECK(pthread_create(&threads[1], NULL, puts_to, &second) == 0);
        CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
        OK(nc_sync(first));
        OK(nc_sync(second));
        within = NULL;
        OK(nc_close(first));
        OK(nc_close(second));

        within = forks;
        whole("forks.nc", 70);

        within = without_end;
        endless = 1;
        without_end(); /* netCDF's filters are optional: a chunk that the plugin refuses is stored as it is */
        CHECK(deepest > 1 && deepest < 100);
        within = NULL;
        exit(0);
    }
    return 0;
}
