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

/* Prints threads of the library with their processors; how many there are. */
static int show(void) {
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int n = 0;
    while (tasks && (entry = readdir(tasks))) {
        char path[300], line[256], name[64] = "", cpus[128] = "";
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            sscanf(line, "Name: %63s", name);
            sscanf(line, "Cpus_allowed_list: %127s", cpus);
        }
        if (status) fclose(status);
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
        n_seen = show();
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
