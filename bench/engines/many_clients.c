/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   many_clients N FOLDER STEPS BYTES
 *
 * N processes that write a file each in FOLDER: STEPS records of BYTES (a multiple of 4096), a pause of 50 ms after each. Prints the microseconds of all puts, one
 * number a line, and last the seconds until the slowest process had closed its file.
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int put_all(int number, const char *folder, int steps, size_t bytes, int out) {
    char path[4096];
    int file, dims[2], var;
    float *values = calloc(bytes, 1);
    double *took = calloc((size_t)steps, sizeof *took);
    if (!values || !took) return 1;
    snprintf(path, sizeof path, "%s/%d.nc", folder, number);
    if (nc_create(path, NC_CLOBBER | NC_64BIT_DATA, &file) || nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]) ||
        nc_def_dim(file, "x", bytes / sizeof *values, &dims[1]) || nc_def_var(file, "v", NC_FLOAT, 2, dims, &var) || nc_enddef(file)) {
        return 2;
    }
    for (int step = 0; step < steps; step++) {
        size_t start[] = {(size_t)step, 0}, count[] = {1, bytes / sizeof *values};
        double began = now();
        if (nc_put_vara_float(file, var, start, count, values)) return 3;
        took[step] = now() - began;
        usleep(50000);
    }
    if (nc_close(file)) return 4;
    /* Shorter than what a pipe takes at once. */
    return write(out, took, (size_t)steps * sizeof *took) == (ssize_t)((size_t)steps * sizeof *took) ? 0 : 5;
}

int main(int argc, char **argv) {
    if (argc != 5) return 64;
    int n = atoi(argv[1]), steps = atoi(argv[3]), ends[2], status, failed = 0;
    size_t bytes = strtoul(argv[4], NULL, 10);
    if (pipe(ends)) return 65;
    double began = now();
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child < 0) return 66;
        if (child == 0) {
            close(ends[0]);
            exit(put_all(i, argv[2], steps, bytes, ends[1]));
        }
    }
    close(ends[1]);
    double took;
    while (read(ends[0], &took, sizeof took) == sizeof took) printf("%.2f\n", 1e6 * took);
    double slowest = now() - began;
    while (wait(&status) > 0) failed |= status;
    printf("%.4f\n", slowest);
    return failed ? 1 : 0;
}
