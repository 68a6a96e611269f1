/* SPDX-License-Identifier: MIT OR Apache-2.0
 * One rank of a program whose ranks write a file each and read a common one.
 *
 *   ranks write PREFIX          a netCDF-4 file with filters, its chunks in pieces and out of order, and a classic one
 *   ranks read FILE MIB         reads so many MiB of decoded chunks and keeps the file open; prints `grown KIB` (of its Pss) and
 *                               `threads N` (of the process), then waits for its standard input to end
 *   ranks make FILE MIB         the common file
 */
#include <dirent.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16, RECORDS = 12, WIDTH = 1 << 15 };

static void check(int code, int line) {
    if (code) {
        fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

static long pss_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Pss: %ld", &kib);
    if (file) fclose(file);
    return kib;
}

static int n_threads(void) {
    int n = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && (entry = readdir(tasks))) n += entry->d_name[0] != '.';
    if (tasks) closedir(tasks);
    return n;
}

static int make(const char *path, int format, size_t width, size_t chunk, int *var) {
    int file, dims[2];
    CHECK(nc_create(path, NC_CLOBBER | format, &file));
    CHECK(nc_def_dim(file, "t", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "x", width, &dims[1]));
    CHECK(nc_def_var(file, "v", NC_DOUBLE, 2, dims, var));
    if (format == NC_NETCDF4) {
        CHECK(nc_def_var_chunking(file, *var, NC_CHUNKED, (size_t[]){1, chunk}));
        CHECK(nc_def_var_deflate(file, *var, 1, 1, 1));
    }
    CHECK(nc_enddef(file));
    return file;
}

static void write_files(const char *prefix) {
    char path[4096];
    static double values[WIDTH];
    int file, var;
    for (int format = 0; format < 2; format++) {
        snprintf(path, sizeof path, "%s-%d.nc", prefix, format);
        file = make(path, format ? NC_NETCDF4 : NC_64BIT_OFFSET, WIDTH, WIDTH / 4, &var);
        for (int k = 0; k < RECORDS; k++) {
            int t = k * 7 % RECORDS;
            for (int x = 0; x < WIDTH; x++) values[x] = t * 0.5 + x % 977;
            /* Two halves that each end within a chunk, the last one first. */
            CHECK(nc_put_vara_double(file, var, (size_t[]){t, WIDTH / 2 - 100}, (size_t[]){1, WIDTH / 2 + 100}, values + WIDTH / 2 - 100));
            CHECK(nc_put_vara_double(file, var, (size_t[]){t, 0}, (size_t[]){1, WIDTH / 2 - 100}, values));
        }
        CHECK(nc_close(file));
    }
}

int main(int count, char **args) {
    static double values[CHUNK];
    int file, var;
    long before, n;
    if (count == 3 && strcmp(args[1], "write") == 0) {
        write_files(args[2]);
        return 0;
    }
    if (count != 4) return 2;
    n = atol(args[3]) * (1 << 20) / (long)sizeof values;
    for (int x = 0; x < CHUNK; x++) values[x] = x % 64;
    if (strcmp(args[1], "make") == 0) {
        file = make(args[2], NC_NETCDF4, CHUNK, CHUNK, &var);
        for (long t = 0; t < n; t++) CHECK(nc_put_vara_double(file, var, (size_t[]){t, 0}, (size_t[]){1, CHUNK}, values));
        CHECK(nc_close(file));
        return 0;
    }
    before = pss_kib();
    CHECK(nc_open(args[2], NC_NOWRITE, &file));
    CHECK(nc_inq_varid(file, "v", &var));
    /* Parts of chunks, which are kept for the next one; the caller has the common memory in `values`. */
    for (long k = 0; k < 4 * n; k++)
        CHECK(nc_get_vara_double(file, var, (size_t[]){k / 4, k % 4 * CHUNK / 4}, (size_t[]){1, CHUNK / 4}, values + k % 4 * CHUNK / 4));
    for (int x = 0; x < CHUNK; x++)
        if (values[x] != x % 64) return 3;
    printf("grown %ld\nthreads %d\n", pss_kib() - before, n_threads());
    fflush(stdout);
    while (getchar() != EOF) {
    }
    CHECK(nc_close(file));
    return 0;
}
