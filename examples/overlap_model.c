/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * overlap_model: a model that computes for a fixed time and then writes its fields, step after step.
 *
 * It knows nothing of threads or of any library but netCDF: whether output costs time is up to the library.
 * Each step relaxes a small grid (the arithmetic of a model: --iterations sweeps, on each thread of
 * OpenMP) or sleeps (--sleep SECONDS), changes the fields, and writes one record of each.
 *
 *     cc -std=c99 -O2 -fopenmp overlap_model.c -o overlap_model -lnetcdf -lm
 *     ./overlap_model --file out.nc --format classic|netcdf4|deflate --steps 10 --mb 16 --iterations 1000
 *     ./overlap_model --calibrate 1          how many sweeps a second of processor time holds
 *
 * --output 0 only computes. One JSON line: seconds of the whole loop with nc_close, and of its parts; a put's median
 * and the median of a memcpy of the same bytes, measured afterwards.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <netcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VARS = 4, GRID = 4096, LEVELS = 8, LATITUDES = 64, BUFFERS = 8 };

#define NC(call)                                                                              \
    do {                                                                                      \
        int status_ = (call);                                                                 \
        if (status_ != NC_NOERR) {                                                            \
            fprintf(stderr, "overlap_model: %s: %s\n", #call, nc_strerror(status_));          \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

static double clock_of(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double now(void) { return clock_of(CLOCK_MONOTONIC); }

static void *allocate(size_t n) {
    void *p = calloc(n, 1);
    if (!p) {
        fprintf(stderr, "overlap_model: no memory for %zu bytes\n", n);
        exit(1);
    }
    return p;
}

/* Sweeps over a grid that fits the first cache. */
static double relax(long sweeps) {
    double grid[GRID];
    for (int i = 0; i < GRID; i++) grid[i] = (double)(i % 17);
    for (long s = 0; s < sweeps; s++)
        for (int i = 1; i < GRID - 1; i++) grid[i] = 0.5 * grid[i] + 0.2499 * (grid[i - 1] + grid[i + 1]) + 1e-3;
    return grid[GRID / 2];
}

static volatile double result; /* so that nobody leaves the work out */

static void compute(long sweeps, double sleep_seconds) {
    if (sleep_seconds > 0) {
        struct timespec t = {(time_t)sleep_seconds, (long)((sleep_seconds - floor(sleep_seconds)) * 1e9)};
        nanosleep(&t, NULL);
        return;
    }
#pragma omp parallel
    {
        double r = relax(sweeps);
#pragma omp critical
        result = r;
    }
}

/* A wave that travels, with something in the low bits that no compressor foresees. */
static void change(double *field, size_t n, int var, int step) {
    uint64_t noise = (uint64_t)(var * 1000 + step) * 0x9e3779b97f4a7c15u + 1;
    double c = cos(0.01), s = sin(0.01), x = cos(0.3 * step + var), y = sin(0.3 * step + var);
    for (size_t i = 0; i < n; i++) {
        double turned = c * x - s * y;
        y = s * x + c * y, x = turned;
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        field[i] = 250 + 40 * x + 1e-3 * (double)(noise >> 54);
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, ascending);
    return n ? values[n / 2] : 0;
}

static int create(const char *path, const char *format, size_t longitudes, int vars[VARS]) {
    static const char *const names[VARS] = {"T", "U", "V", "Q"};
    int nc, dims[4], classic = !strcmp(format, "classic");
    NC(nc_create(path, NC_CLOBBER | (classic ? NC_64BIT_OFFSET : NC_NETCDF4), &nc));
    NC(nc_def_dim(nc, "time", NC_UNLIMITED, &dims[0]));
    NC(nc_def_dim(nc, "lev", LEVELS, &dims[1]));
    NC(nc_def_dim(nc, "lat", LATITUDES, &dims[2]));
    NC(nc_def_dim(nc, "lon", longitudes, &dims[3]));
    for (int v = 0; v < VARS; v++) {
        NC(nc_def_var(nc, names[v], NC_FLOAT, 4, dims, &vars[v]));
        if (!classic) NC(nc_def_var_chunking(nc, vars[v], NC_CHUNKED, (size_t[]){1, 1, LATITUDES, longitudes}));
        if (!strcmp(format, "deflate")) NC(nc_def_var_deflate(nc, vars[v], 1, 1, 1));
    }
    NC(nc_enddef(nc));
    return nc;
}

int main(int argc, char **argv) {
    const char *path = "overlap.nc", *format = "classic";
    long sweeps = 0;
    int steps = 10, output = 1;
    double mb = 16, sleep_seconds = 0, calibrate = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *a = argv[i], *v = argv[i + 1];
        if (!strcmp(a, "--file")) path = v;
        else if (!strcmp(a, "--format")) format = v;
        else if (!strcmp(a, "--steps")) steps = atoi(v);
        else if (!strcmp(a, "--mb")) mb = atof(v);
        else if (!strcmp(a, "--iterations")) sweeps = atol(v);
        else if (!strcmp(a, "--sleep")) sleep_seconds = atof(v);
        else if (!strcmp(a, "--output")) output = atoi(v);
        else if (!strcmp(a, "--calibrate")) calibrate = atof(v);
        else steps = 0;
    }
    if (argc % 2 == 0 || steps < 1 || !(mb > 0) || sweeps < 0 ||
        (strcmp(format, "classic") && strcmp(format, "netcdf4") && strcmp(format, "deflate"))) {
        fprintf(stderr, "usage: overlap_model --file FILE --format classic|netcdf4|deflate --steps N --mb MB "
                        "--iterations N|--sleep SECONDS --output 0|1 | --calibrate SECONDS\n");
        return 2;
    }
    if (calibrate > 0) {
        long done = 0;
        double began = clock_of(CLOCK_PROCESS_CPUTIME_ID), walls = now();
        for (; now() - walls < calibrate; done += 100) compute(100, 0);
        double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - began, wall = now() - walls;
        printf("{\"workload\": \"overlap\", \"params\": {\"cpu\": %.6f}, \"seconds\": %.6f, \"calls\": %ld}\n", cpu, wall, done);
        return 0;
    }

    /* `mb` is what a step has in the file, as floats. */
    size_t longitudes = (size_t)(mb * 1e6 / (VARS * LEVELS * LATITUDES * sizeof(float)));
    if (longitudes < 1) longitudes = 1;
    size_t n = (size_t)LEVELS * LATITUDES * longitudes, puts = 0;
    double *fields[VARS], *times = allocate((size_t)steps * VARS * sizeof *times), *copies = allocate((size_t)steps * VARS * sizeof *copies);
    for (int v = 0; v < VARS; v++) fields[v] = allocate(n * sizeof(double));
    int vars[VARS], nc = -1;
    double computing = 0, putting = 0;

    double began = now();
    if (output) nc = create(path, format, longitudes, vars);
    for (int step = 0; step < steps; step++) {
        double at = now();
        compute(sweeps, sleep_seconds);
        for (int v = 0; v < VARS; v++) change(fields[v], n, v, step);
        computing += now() - at;
        for (int v = 0; v < VARS && output; v++) {
            at = now();
            NC(nc_put_vara_double(nc, vars[v], (size_t[]){(size_t)step, 0, 0, 0}, (size_t[]){1, LEVELS, LATITUDES, longitudes}, fields[v]));
            times[puts] = now() - at;
            putting += times[puts++];
        }
    }
    double closing = now();
    if (output) NC(nc_close(nc));
    double ended = now();

    /* A memcpy of the same bytes, to memory that is there but was used some puts ago. Without output, too, so that the processor time of
     * the thread differs by the output alone. */
    double *buffers[BUFFERS];
    for (int b = 0; b < BUFFERS; b++) {
        buffers[b] = allocate(n * sizeof(double));
        memset(buffers[b], 1, n * sizeof(double));
    }
    size_t n_copies = (size_t)steps * VARS;
    for (size_t p = 0; p < n_copies; p++) {
        double at = now();
        memcpy(buffers[p % BUFFERS], fields[p % VARS], n * sizeof(double));
        copies[p] = now() - at;
        result = buffers[p % BUFFERS][p % n];
    }

    printf("{\"workload\": \"overlap\", \"params\": {\"format\": \"%s\", \"steps\": %d, \"compute\": %.6f, \"put\": %.6f, \"close\": %.6f, "
           "\"put_median\": %.9f, \"memcpy_median\": %.9f}, \"seconds\": %.6f, \"bytes\": %zu, \"calls\": %zu, \"digest\": null}\n",
           format, steps, computing, putting, ended - closing, median(times, puts), median(copies, n_copies), ended - began,
           puts * n * sizeof(float), puts);
    return 0;
}
