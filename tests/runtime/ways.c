/* SPDX-License-Identifier: MIT OR Apache-2.0
 * One file in a way that the library has something to decide about. Prints the stack of each opening, and the names of
 * all threads that were made until then; what was read and written is in the trace (ZONDA_TRACE).
 *
 *   ways stream FILE            a classic file, in small pieces and in order: long enough for a thread of the cache
 *   ways records FILE           a classic file with two record variables
 *   ways deflate FILE           chunks that several threads filter
 *   ways behind FILE            small puts that write-behind accepts
 *   ways stream-read FILE       reads the first from begin to end; so does `deflate-read`
 *   ways records-read FILE      reads single records of one variable in another order; so does `deflate-random`
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netcdf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zonda.h>

enum { SMALL = 1 << 9, STREAM = 10240, RECORDS = 400, PLANES = 24, PLANE = 1 << 18, PUTS = 600, MOST = 64 };

static atomic_int n_made, n_named;
static char names[MOST][16];

/* Called by the library in place of the C library's: counts threads where they are made, however late they run. */
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *argument) {
    int (*make)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    int code = make(thread, how, body, argument);
    if (code == 0) atomic_fetch_add(&n_made, 1);
    return code;
}

/* Each new thread calls this once. */
int pthread_setname_np(pthread_t thread, const char *name) {
    int (*set)(pthread_t, const char *) = (int (*)(pthread_t, const char *))dlsym(RTLD_NEXT, "pthread_setname_np");
    static atomic_int next;
    int k = atomic_fetch_add(&next, 1);
    if (k < MOST) snprintf(names[k], sizeof names[k], "%s", name);
    atomic_fetch_add(&n_named, 1);
    return set(thread, name);
}

static void show_threads(void) {
    int n = atomic_load(&n_made);
    while (atomic_load(&n_named) < n) sched_yield();
    for (int k = 0; k < n && k < MOST; k++) printf("thread %s\n", names[k]);
}

static double *values;
static double sum;

static void check(int code, int line) {
    if (code) {
        fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

static void show(int file) {
    size_t length;
    CHECK(nc_zonda_inq_stack(file, &length, NULL));
    char *spec = calloc(length + 1, 1);
    CHECK(nc_zonda_inq_stack(file, &length, spec));
    printf("stack %s\n", spec);
    free(spec);
}

/* A new file with `n` variables of records of `width` doubles. */
static int make(const char *path, int format, size_t width, int n, int *vars) {
    int file, dims[2];
    CHECK(nc_create(path, NC_CLOBBER | format, &file));
    CHECK(nc_def_dim(file, "t", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "x", width, &dims[1]));
    for (int k = 0; k < n; k++) {
        char name[] = {'v', (char)('0' + k), 0};
        CHECK(nc_def_var(file, name, NC_DOUBLE, 2, dims, &vars[k]));
    }
    return file;
}

static void put(int file, int var, size_t t, size_t width) {
    CHECK(nc_put_vara_double(file, var, (size_t[]){t, 0}, (size_t[]){1, width}, values + t % 7));
}

static void get(int file, int var, size_t t, size_t width) {
    static double got[PLANE];
    CHECK(nc_get_vara_double(file, var, (size_t[]){t, 0}, (size_t[]){1, width}, got));
    if (memcmp(got, values + t % 7, width * sizeof *got) != 0) {
        fprintf(stderr, "record %zu has other values\n", t);
        exit(1);
    }
    sum += got[0];
}

/* A new file with what is in it, up to the close. */
static int write_file(const char *what, const char *path) {
    int vars[2], is_deflated = strcmp(what, "deflate") == 0, n_vars = strcmp(what, "records") == 0 ? 2 : 1;
    size_t width = is_deflated ? PLANE : SMALL, n = is_deflated ? PLANES : n_vars == 2 ? RECORDS : strcmp(what, "behind") == 0 ? PUTS : STREAM;
    int file = make(path, is_deflated ? NC_NETCDF4 : NC_64BIT_OFFSET, width, n_vars, vars);
    if (is_deflated) {
        CHECK(nc_def_var_chunking(file, vars[0], NC_CHUNKED, (size_t[]){1, PLANE / 16}));
        CHECK(nc_def_var_deflate(file, vars[0], 1, 1, 1));
    }
    CHECK(nc_enddef(file));
    if (strcmp(what, "behind") == 0) CHECK(nc_zonda_set_async(file, "on"));
    show(file);
    for (size_t t = 0; t < n; t++)
        for (int k = 0; k < n_vars; k++) put(file, vars[k], t, width);
    return file;
}

/* An old one that is read, up to the close. */
static int read_file(const char *what, const char *path) {
    int file, is_random = strcmp(what, "deflate-random") == 0;
    CHECK(nc_open(path, NC_NOWRITE, &file));
    show(file);
    if (strcmp(what, "stream-read") == 0)
        for (size_t t = 0; t < STREAM; t++) get(file, 0, t, SMALL);
    else if (strcmp(what, "records-read") == 0)
        for (size_t k = 0; k < RECORDS; k++) get(file, 0, k * 29 % RECORDS, SMALL);
    else
        for (size_t k = 0; k < PLANES; k++) get(file, 0, is_random ? k * 13 % PLANES : k, is_random ? PLANE / 64 : PLANE);
    return file;
}

int main(int count, char **args) {
    if (count != 3) return 2;
    values = malloc((PLANE + 7) * sizeof *values);
    for (int k = 0; k < PLANE + 7; k++) values[k] = k * 0.001 + k % 977;
    CHECK(nc_close((strchr(args[1], '-') ? read_file : write_file)(args[1], args[2])));
    show_threads();
    free(values);
    return sum < 0;
}
