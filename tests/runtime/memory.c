/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Files whose data do not fit into the memory, and what the library says of it.
 *
 *   memory FOLDER MIB [full]
 *
 * Writes FOLDER/chunks.nc (netCDF-4: MIB MiB of chunks, half of them filtered, that all wait for more data
 * until the last rows) and FOLDER/classic.nc, reads both, and prints for the end and the highest moment:
 *   limit BYTES / held BYTES / incomplete BYTES / rss BYTES
 * Ends with 1 where values are wrong, or the sum of kinds is not what is held. With "full", a put may fail
 * with ENOSPC and nothing else. */
#include <errno.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zonda.h>

enum { ROWS = 64, WIDE = 4096, CHUNK = 4096 };

static void ok(int line, int code) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "line %d: %s: %s\n", line, nc_strerror(code), nc_zonda_last_error());
    exit(code == ENOSPC ? 28 : 1);
}
#define OK(call) ok(__LINE__, (call))

static size_t most_held, most_incomplete, limit;

/* The sum of the kinds is what is held: nobody else is at work. */
static void look(int line) {
    size_t sum = 0, bytes, all;
    const char *name;
    for (int kind = 0; nc_zonda_memory(kind, &name, &bytes, NULL) == NC_NOERR; kind++) {
        sum += bytes;
        if (strcmp(name, "incomplete") == 0 && bytes > most_incomplete) most_incomplete = bytes;
    }
    OK(nc_zonda_memory(NC_ZONDA_MEMORY_ALL, NULL, &all, &limit));
    if (sum != all) {
        fprintf(stderr, "line %d: kinds have %zu bytes, all have %zu\n", line, sum, all);
        exit(1);
    }
    if (all > most_held) most_held = all;
}

static float value(size_t row, size_t at, int var) { return (float)(row * 31 + at % 1009 + 7 * (size_t)var); }

static void chunks(const char *path, size_t columns) {
    int nc, dims[2], vars[2];
    size_t shape[2] = {ROWS, CHUNK};
    float *row = malloc(CHUNK * sizeof *row);
    OK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "row", ROWS, &dims[0]));
    OK(nc_def_dim(nc, "x", columns, &dims[1]));
    for (int v = 0; v < 2; v++) {
        OK(nc_def_var(nc, v ? "packed" : "plain", NC_FLOAT, 2, dims, &vars[v]));
        OK(nc_def_var_chunking(nc, vars[v], NC_CHUNKED, shape));
        if (v) OK(nc_def_var_deflate(nc, vars[v], 1, 1, 1));
    }
    OK(nc_enddef(nc));
    /* Some rows in order, then others with a sync between: the last rows are never put. */
    for (size_t row_number = 0; row_number < 6; row_number++) {
        for (int v = 0; v < 2; v++) {
            for (size_t x = 0; x < columns; x += CHUNK) {
                size_t start[2] = {row_number, x}, count[2] = {1, CHUNK};
                for (size_t i = 0; i < CHUNK; i++) row[i] = value(row_number, x + i, v);
                OK(nc_put_vara_float(nc, vars[v], start, count, row));
            }
            look(__LINE__);
        }
        if (row_number == 3) OK(nc_sync(nc));
    }
    for (size_t x = 0; x < columns; x += CHUNK) {
        size_t start[2] = {3, x}, count[2] = {1, CHUNK};
        OK(nc_get_vara_float(nc, vars[1], start, count, row));
        for (size_t i = 0; i < CHUNK; i++)
            if (row[i] != value(3, x + i, 1)) exit(1);
    }
    look(__LINE__);
    OK(nc_close(nc));
    look(__LINE__);
    OK(nc_open(path, NC_NOWRITE, &nc));
    for (int v = 0; v < 2; v++) {
        for (size_t x = 0; x < columns; x += CHUNK) {
            size_t start[2] = {5, x}, count[2] = {1, CHUNK};
            OK(nc_get_vara_float(nc, vars[v], start, count, row));
            for (size_t i = 0; i < CHUNK; i++)
                if (row[i] != value(5, x + i, v)) exit(1);
        }
        look(__LINE__);
    }
    OK(nc_close(nc));
    free(row);
}

static void classic(const char *path, size_t records) {
    int nc, dims[2], vars[8];
    float row[WIDE];
    OK(nc_create(path, NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "time", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", WIDE, &dims[1]));
    for (int v = 0; v < 8; v++) {
        char name[] = {(char)('a' + v), 0};
        OK(nc_def_var(nc, name, NC_FLOAT, 2, dims, &vars[v]));
    }
    OK(nc_enddef(nc));
    for (size_t t = 0; t < records; t++) {
        for (int v = 7; v >= 0; v--) {
            size_t start[2] = {t, 0}, count[2] = {1, WIDE};
            for (size_t i = 0; i < WIDE; i++) row[i] = value(t, i, v);
            OK(nc_put_vara_float(nc, vars[v], start, count, row));
        }
        if (t % 64 == 0) look(__LINE__);
    }
    OK(nc_close(nc));
    look(__LINE__);
}

int main(int argc, char **argv) {
    char path[4096], line[256];
    size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, rss = 0;
    if (mib == 0) return 2;
    snprintf(path, sizeof path, "%s/chunks.nc", argv[1]);
    /* Chunks of 1 MiB, two variables. */
    chunks(path, mib / 2 * CHUNK);
    snprintf(path, sizeof path, "%s/classic.nc", argv[1]);
    classic(path, mib * 2);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %zu kB", &rss);
    printf("limit %zu\nheld %zu\nincomplete %zu\nrss %zu\n", limit, most_held, most_incomplete, rss * 1024);
    return 0;
}
