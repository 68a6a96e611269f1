/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The family of files that `write` makes: each case is a function that leaves a file at `path`. It
 * returns the id of a file that is still open, so that `write` can look at it before it is closed,
 * or CLOSED. Values are computed from names and indexes, so that all libraries write the same. */
#ifndef INTEROP_CASES_H
#define INTEROP_CASES_H

#include "digest.h"

#include <limits.h>
#include <math.h>
#include <netcdf_mem.h>
#include <stddef.h>

#define CLOSED (-1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MUST(call)                                                                         \
    do {                                                                                   \
        int code_ = (call);                                                                \
        if (code_) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, code_, nc_strerror(code_)); \
            exit(4);                                                                       \
        }                                                                                  \
    } while (0)

/* A call whose code is part of the transcript, because it is not 0 or not sure to be. */
#define SAY(call) printf("%s -> %d\n", #call, (call))

typedef struct {
    const char *name;
    int (*make)(const char *path);
} case_t;

extern const case_t TYPE_CASES[], ATTRIBUTE_CASES[], SHAPE_CASES[], RENAME_CASES[], STORAGE_CASES[], LIFE_CASES[];

static inline int create(const char *path, int flags) {
    int nc;
    MUST(nc_create(path, NC_NETCDF4 | NC_CLOBBER | flags, &nc));
    return nc;
}

static inline int reopen(const char *path) {
    int nc;
    MUST(nc_open(path, NC_WRITE, &nc));
    return nc;
}

static inline int dim(int nc, const char *name, size_t len) {
    int id;
    MUST(nc_def_dim(nc, name, len, &id));
    return id;
}

static inline int group(int nc, const char *name) {
    int id;
    MUST(nc_def_grp(nc, name, &id));
    return id;
}

/* var(nc, name, type, dim ids...) */
#define var(nc, name, type, ...) \
    var_(nc, name, type, (int[]){__VA_ARGS__ __VA_OPT__(, ) - 1}, (int)(COUNT(((int[]){__VA_ARGS__ __VA_OPT__(, ) - 1})) - 1))

static inline int var_(int nc, const char *name, nc_type type, const int *dims, int rank) {
    int id;
    MUST(nc_def_var(nc, name, type, rank, dims, &id));
    return id;
}

static inline void text_att(int nc, int v, const char *name, const char *value) {
    MUST(nc_put_att_text(nc, v, name, strlen(value), value));
}

/* A number that depends on two others, and is 0 to 99. */
static inline int mixed(unsigned a, unsigned b) {
    unsigned x = a * 2654435761u ^ (b + 0x9e3779b9u) * 2246822519u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (int)(x % 100);
}

/* Puts numbers that follow from `seed` and the index in a block of any numeric variable, or letters. */
static inline void fill_block(int nc, int v, const size_t *start, const size_t *count, unsigned seed) {
    int rank;
    size_t n = 1;
    nc_type type;
    MUST(nc_inq_var(nc, v, NULL, &type, &rank, NULL, NULL));
    for (int d = 0; d < rank; d++) n *= count[d];
    if (type == NC_CHAR) {
        char *letters = malloc(n + 1);
        for (size_t i = 0; i < n; i++) letters[i] = (char)('a' + mixed(seed, (unsigned)i) % 26);
        MUST(nc_put_vara_text(nc, v, start, count, letters));
        free(letters);
    } else if (type == NC_STRING) {
        char **strings = malloc((n + 1) * sizeof *strings);
        for (size_t i = 0; i < n; i++) {
            strings[i] = malloc(120);
            snprintf(strings[i], 120, "%.*s%u", mixed(seed, (unsigned)i), "a string of a length that differs from one element to the next, so that heaps do not fill evenly", (unsigned)i);
        }
        MUST(nc_put_vara_string(nc, v, start, count, (const char **)strings));
        for (size_t i = 0; i < n; i++) free(strings[i]);
        free(strings);
    } else {
        double *values = malloc((n + 1) * sizeof *values);
        for (size_t i = 0; i < n; i++) values[i] = mixed(seed, (unsigned)i) + (type == NC_FLOAT || type == NC_DOUBLE ? 0.25 : 0);
        MUST(nc_put_vara_double(nc, v, start, count, values));
        free(values);
    }
}

/* The whole of a variable as long as its dimensions are. */
static inline void fill_all(int nc, int v, unsigned seed) {
    int rank, dims[NC_MAX_VAR_DIMS];
    size_t start[NC_MAX_VAR_DIMS] = {0}, count[NC_MAX_VAR_DIMS] = {0};
    MUST(nc_inq_var(nc, v, NULL, NULL, &rank, dims, NULL));
    for (int d = 0; d < rank; d++) MUST(nc_inq_dimlen(nc, dims[d], &count[d]));
    fill_block(nc, v, start, count, seed);
}

#define AT(...) ((size_t[]){__VA_ARGS__})

#endif
