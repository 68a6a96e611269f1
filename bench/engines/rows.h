/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What rows.c (the work of a row through a netCDF library) and floors.c (the same by hand) share: the list of rows,
 * the files they work on, the clocks, and the marks of a run that counts.
 *
 *   PROGRAM --row NAME --file FILE [--calls N] [--loops N] [--like FILE]
 *
 * One result line: the least of the loops. What a row prepares and ends with (opening a file that is to be asked,
 * for instance) is outside of the clock. `--like` is a file that the reference left after the same row: floors.c takes
 * from it where things are. Compiled with -DCOUNTS the program counts instead, see count.h.
 */
#ifndef ROWS_H
#define ROWS_H

#include "engine.h"

#ifdef COUNTS
#include "count.h"
#endif

/* Of the header that is asked, of the one that is created, and of the one that is opened. */
enum { HEADER_VARS = 100, CREATED_VARS = 10, OPENED_VARS = 1000, DIMS = 3, CREATED_ATTS = 2, OPENED_ATTS = 5 };
/* Of the variable in chunks: 8 MB of doubles where d0 has 40. */
enum { RANK = 3, D0 = 40, D1 = 100, D2 = 250, C0 = 10, C1 = 50, C2 = 50 };
/* Values of a call where several are meant, and of one on a half. */
enum { SOME = 10, PIECE = 256 };
/* What is looked up, read and asked. */
#define LINE "line"
#define CHUNKED "v0"
#define ATTRIBUTE "valid_range"
#define WANTED "variable_617"

typedef struct {
    const char *name;
    int wall; /* wall time: of several threads; otherwise the processor time of the process */
    size_t calls;
    void (*prepare)(size_t calls);
    void (*work)(size_t calls);
    uint64_t (*finish)(size_t calls); /* gives a digest of what the row was told, 0 if it was told nothing */
} Row;

static const char *the_file, *the_like;

static inline double clock_now(int wall)
{
    struct timespec t;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What call `i` puts. */
static inline double value_of(size_t i) { return 0.5 * (double)i + 1.0; }

static inline double *values_of(size_t n)
{
    double *values = touched(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = value_of(i);
    return values;
}

/* `n` places in an array of `shape`, in order or anywhere, RANK numbers each. */
static inline size_t *places_of(size_t n, const size_t *shape, int anywhere)
{
    size_t *at = touched(n * RANK * sizeof *at), total = shape[0] * shape[1] * shape[2];
    uint64_t state = 7;
    for (size_t k = 0; k < n; k++) {
        size_t i = anywhere ? (size_t)(next_random(&state) % total) : k % total;
        for (int d = RANK - 1; d >= 0; d--) at[k * RANK + (size_t)d] = i % shape[d], i /= shape[d];
    }
    return at;
}

static inline const Row *row_named(const Row *rows, size_t n_rows, const char *name)
{
    for (const Row *row = rows; row < rows + n_rows; row++)
        if (strcmp(row->name, name) == 0) return row;
    fprintf(stderr, "no row %s; there are", name);
    for (const Row *row = rows; row < rows + n_rows; row++) fprintf(stderr, " %s", row->name);
    fputc('\n', stderr);
    exit(2);
}

static inline int rows_main(int argc, char **argv, const Row *rows, size_t n_rows)
{
    static const char *const known[] = {"--row", "--file", "--calls", "--loops", "--like", NULL};
    known_options(argc, argv, known);
    const Row *row = row_named(rows, n_rows, option(argc, argv, "--row", NULL));
    the_file = option(argc, argv, "--file", NULL);
    the_like = option(argc, argv, "--like", "");
    size_t calls = option_size(argc, argv, "--calls", "0"), loops = option_size(argc, argv, "--loops", "5");
    if (calls == 0) calls = row->calls;
    double least = 1e300;
    uint64_t digest = 0;
    for (size_t loop = 0; loop < loops; loop++) {
        row->prepare(calls);
        double from = clock_now(row->wall);
        row->work(calls);
        double seconds = clock_now(row->wall) - from;
        digest = row->finish(calls);
        if (seconds < least) least = seconds;
    }
    result(row->name, "{}", least, 0, calls, digest ? &digest : NULL);
    return 0;
}

#ifdef COUNTS
/* Each row by a child, so that none begins with what another one left. */
static inline int rows_counted(char **words, const Row *rows, size_t n_rows)
{
    for (; *words; words++) {
        char name[64], file[128], like[128] = "";
        size_t calls;
        if (sscanf(*words, "%63[^:]:%zu:%127[^:]:%127s", name, &calls, file, like) < 3) return 2;
        const Row *row = row_named(rows, n_rows, name);
        pid_t child = fork();
        if (child == 0) {
            the_file = file, the_like = like;
            row->prepare(calls), row->work(calls), row->finish(calls);
            row->prepare(calls);
            count_begin();
            row->work(calls);
            count_end(name);
            row->finish(calls);
            exit(0);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) return 1;
    }
    return 0;
}
#endif

#endif
