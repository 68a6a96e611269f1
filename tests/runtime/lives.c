/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Ends of threads and libraries that C programs bring about: lives.py says what must hold afterwards.
 *
 *     lives cancel ASYNCHRONOUS MODE MICROSECONDS FILE    a thread that puts and syncs is cancelled
 *     lives unload MODE FILE                              dlclose while the file is open
 *
 * The library is loaded by name (libnetcdf.so.19). Each row that was synced is said on standard output. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netcdf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTH 2000
#define FUNCTION(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)
#define MUST(call) do { int code_ = (call); if (code_) { fprintf(stderr, "%s: %d\n", #call, code_); _exit(3); } } while (0)

static void *library;
static int nc, v, is_asynchronous;

static void define(int mode, const char *path) {
    FUNCTION(nc_create);
    FUNCTION(nc_def_dim);
    FUNCTION(nc_def_var);
    FUNCTION(nc_enddef);
    int dims[2];
    MUST(p_nc_create(path, mode | NC_CLOBBER, &nc));
    MUST(p_nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    MUST(p_nc_def_dim(nc, "x", WIDTH, &dims[1]));
    MUST(p_nc_def_var(nc, "v", NC_INT, 2, dims, &v));
    MUST(p_nc_enddef(nc));
}

static void put(size_t row) {
    static int values[WIDTH];
    FUNCTION(nc_put_vara_int);
    for (int i = 0; i < WIDTH; i++) values[i] = (int)row + i;
    MUST(p_nc_put_vara_int(nc, v, (size_t[]){row, 0}, (size_t[]){1, WIDTH}, values));
}

static void *put_and_sync(void *unused) {
    FUNCTION(nc_sync);
    if (is_asynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (size_t row = 0; row < 500; row++) {
        char line[32];
        put(row);
        MUST(p_nc_sync(nc));
        if (write(1, line, (size_t)snprintf(line, sizeof line, "%zu\n", row)) < 0) _exit(4);
    }
    return unused;
}

int main(int argc, char **argv) {
    library = dlopen("libnetcdf.so.19", RTLD_NOW);
    if (!library) return 5;
    FUNCTION(nc_close);
    if (argc == 6 && !strcmp(argv[1], "cancel")) {
        pthread_t thread;
        is_asynchronous = atoi(argv[2]);
        define(atoi(argv[3]), argv[5]);
        if (pthread_create(&thread, NULL, put_and_sync, NULL)) return 6;
        usleep((useconds_t)atoi(argv[4]));
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        MUST(p_nc_close(nc));
    } else if (argc == 4 && !strcmp(argv[1], "unload")) {
        define(atoi(argv[2]), argv[3]);
        put(0);
        if (dlclose(library)) return 7;
        void *again = dlopen("libnetcdf.so.19", RTLD_NOW | RTLD_NOLOAD);
        if (again != library) return 8;
        put(1);
        if (write(1, "0\n1\n", 4) != 4 || dlclose(again)) return 9;
        /* The end of the program commits what was put, from a library that nobody holds any more. */
    } else {
        return 2;
    }
    return 0;
}
