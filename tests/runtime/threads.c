/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Where threads of the library run. Writes deflated records (`deflate`) or small puts (for ZONDA_ASYNC, `plain`)
 * from the main thread, and prints the processors that it may run on, and those of each thread of the library.
 *
 *   threads deflate|plain FILE [LIBRARY]     LIBRARY: loaded when OpenMP has begun; else what the program is linked to
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <netcdf.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name, ...) \
    do { \
        int (*call)() = (int (*)())dlsym(library, #name); \
        int code = call ? call(__VA_ARGS__) : -1; \
        if (code) { \
            fprintf(stderr, "%s: %d\n", #name, code); \
            exit(1); \
        } \
    } while (0)

enum { WIDTH = 1 << 18, RECORDS = 200 };

/* The name of a thread and the processors that it may run on, empty if it has ended. */
static void read_status(const char *path, char name[64], char cpus[128]) {
    char line[256];
    FILE *status = fopen(path, "r");
    *name = *cpus = 0;
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "Name: %63s", name);
        sscanf(line, "Cpus_allowed_list: %127s", cpus);
    }
    if (status) fclose(status);
}

/* Whether OpenMP has bound the main thread to one place of several. */
static int is_bound(void) { return omp_get_num_places() > 1; }

/* Prints threads of the library with their processors; how many there are. A new thread has a name before it has gone
 * where it belongs, so one that is still where its maker is bound is looked at again until it has gone or has ended. */
static int show(const char *main_cpus) {
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int n = 0;
    while (tasks && (entry = readdir(tasks))) {
        char path[300], name[64], cpus[128];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        do {
            read_status(path, name, cpus);
        } while (strncmp(name, "zonda", 5) == 0 && is_bound() && strcmp(cpus, main_cpus) == 0 && sched_yield() == 0);
        if (strncmp(name, "zonda", 5) == 0 && *cpus) {
            printf("thread %s\n", cpus);
            n++;
        }
    }
    if (tasks) closedir(tasks);
    return n;
}

int main(int count, char **args) {
    void *library = RTLD_DEFAULT;
    int deflated = strcmp(args[1], "deflate") == 0, file, dims[2], var, n_seen = 0;
    cpu_set_t set;
    char name[64], cpus[128];
    double sum = 0;
    if (count > 3) {
        /* OpenMP has bound the main thread before. */
#pragma omp parallel reduction(+ : sum)
        sum += omp_get_thread_num();
        library = dlopen(args[3], RTLD_NOW | RTLD_GLOBAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    CALL(nc_create, args[2], NC_CLOBBER | (deflated ? NC_NETCDF4 : NC_64BIT_OFFSET), &file);
    CALL(nc_def_dim, file, "t", (size_t)NC_UNLIMITED, &dims[0]);
    CALL(nc_def_dim, file, "x", (size_t)WIDTH, &dims[1]);
    CALL(nc_def_var, file, "v", NC_DOUBLE, 2, dims, &var);
    if (deflated) {
        CALL(nc_def_var_chunking, file, var, NC_CHUNKED, ((size_t[]){1, WIDTH / 16}));
        CALL(nc_def_var_deflate, file, var, 1, 1, 1);
    }
    CALL(nc_enddef, file);
    double *values = malloc(WIDTH * sizeof *values);
    for (int k = 0; k < WIDTH; k++) values[k] = k * 0.001;
    /* Threads without work end soon, so one may be missed on a busy machine. */
    for (size_t t = 0; t < RECORDS && !n_seen; t++) {
        CALL(nc_put_vara_double, file, var, ((size_t[]){t, 0}), ((size_t[]){1, WIDTH}), values);
        read_status("/proc/self/status", name, cpus);
        n_seen = show(cpus);
    }
    CALL(nc_close, file);
    sched_getaffinity(0, sizeof set, &set);
    printf("main");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) printf(" %d", cpu);
    printf("\nplaces %d\n", omp_get_num_places());
    free(values);
    return sum < 0;
}
