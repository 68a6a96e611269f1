/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two threads that do the same small work one after the other, for locked.py, which reads each of their instructions and accesses.
 *
 *   shared ROW CALLS FILE OTHER      CALLS is 0 where it only makes the files
 *
 * First each of the threads does it unseen, then each between marks: a store to `mark` before each call. Standard error says where that is, and
 * where libraries are. A row whose name ends in `-own` has each thread at a file of its own, others have both at one, in different places.
 */
#define _GNU_SOURCE
#include <link.h>
#include <netcdf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In a line of its own. */
static _Alignas(256) volatile long mark[32];

enum { LINE = 1 << 19, CHUNK = 4 * 1024, CHUNKS = 32 };

#define NC(call) \
    do { \
        int status_ = (call); \
        if (status_) { fprintf(stderr, "%s: %s\n", #call, nc_strerror(status_)); exit(1); } \
    } while (0)

static const char *row;
static size_t calls;
static int is_own;

/* A thread, and its file. */
struct side {
    int number, nc, var, begin[2], done[2];
    float *values;
    pthread_t thread;
};

static int is(const char *name)
{
    size_t n = strlen(name);
    return strncmp(row, name, n) == 0 && (row[n] == 0 || row[n] == '-');
}

static int in_chunks(void) { return strstr(row, "chunk") || strstr(row, "filtered"); }

/* ---- files ---- */

static void make_line(const char *file, int *nc, int *var)
{
    int dim;
    double *values = calloc(LINE, sizeof *values);
    for (size_t i = 0; i < LINE; i++) values[i] = (double)i;
    NC(nc_create(file, NC_CLOBBER | NC_64BIT_OFFSET, nc));
    NC(nc_set_fill(*nc, NC_NOFILL, NULL));
    NC(nc_def_dim(*nc, "n", LINE, &dim));
    NC(nc_def_var(*nc, "v", NC_DOUBLE, 1, &dim, var));
    NC(nc_enddef(*nc));
    NC(nc_put_var_double(*nc, *var, values));
    free(values);
}

/* Of 2 * CHUNKS chunks of 16 KiB, of which each thread has half; `deflate` filters them. */
static void make_chunks(const char *file, int deflate, int puts, int *nc, int *var)
{
    int dim;
    size_t n = (size_t)2 * CHUNKS * CHUNK, chunk = CHUNK;
    NC(nc_create(file, NC_CLOBBER | NC_NETCDF4, nc));
    NC(nc_def_dim(*nc, "n", n, &dim));
    NC(nc_def_var(*nc, "v", NC_FLOAT, 1, &dim, var));
    NC(nc_def_var_chunking(*nc, *var, NC_CHUNKED, &chunk));
    if (deflate) NC(nc_def_var_deflate(*nc, *var, 0, 1, 1));
    NC(nc_enddef(*nc));
    if (!puts) {
        float *values = calloc(n, sizeof *values);
        NC(nc_put_var_float(*nc, *var, values));
        free(values);
    }
}

/* Makes a file, or opens it. What is filtered is put to a new one. */
static void prepare(const char *file, int *nc, int *var)
{
    int chunks = is("chunks"), filtered = chunks || is("get1filtered"), puts = strstr(row, "put") != NULL;
    if (calls == 0 || (chunks && puts)) {
        if (!in_chunks()) make_line(file, nc, var);
        else make_chunks(file, filtered, puts, nc, var);
        return;
    }
    NC(nc_open(file, puts ? NC_WRITE : NC_NOWRITE, nc));
    NC(nc_inq_varid(*nc, "v", var));
}

/* ---- work ---- */

static void work(struct side *side, int marks)
{
    size_t half = side->number * (size_t)(in_chunks() ? CHUNKS * CHUNK : LINE / 2);
    size_t at = 17, n = in_chunks() ? (size_t)CHUNKS * CHUNK : LINE / 2;
    for (size_t i = 0; i < calls; i++) {
        size_t start, count = CHUNK;
        double value = 1;
        float small = 1;
        /* A walk that comes to all places: the factor is 1 after 4, the sum odd. */
        at = strstr(row, "random") ? (at * 1664525 + 1013904223) & (n - 1) : i & (n - 1);
        start = half + at;
        if (marks) mark[0] = side->number + 1;
        if (is("put1")) NC(nc_put_var1_double(side->nc, side->var, &start, &value));
        else if (is("get1")) NC(nc_get_var1_double(side->nc, side->var, &start, &value));
        else if (is("put1chunked")) NC(nc_put_var1_float(side->nc, side->var, &start, &small));
        else if (is("get1chunked") || is("get1filtered")) NC(nc_get_var1_float(side->nc, side->var, &start, &small));
        else {
            start = half + i % CHUNKS * CHUNK;
            if (strstr(row, "put")) NC(nc_put_vara_float(side->nc, side->var, &start, &count, side->values));
            else NC(nc_get_vara_float(side->nc, side->var, &start, &count, side->values));
        }
    }
    if (marks) mark[0] = 0;
}

static void *thread(void *arg)
{
    struct side *side = arg;
    char c;
    for (int round = 0; round < 2; round++) {
        if (read(side->begin[0], &c, 1) != 1) exit(1);
        work(side, round == 1);
        if (write(side->done[1], "x", 1) != 1) exit(1);
    }
    /* Both stay until both have done all, so that neither has the memory of the other. */
    if (read(side->begin[0], &c, 1) != 1) exit(1);
    return NULL;
}

static int say_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    fprintf(stderr, "object %lx %s\n", (unsigned long)info->dlpi_addr, info->dlpi_name);
    return 0;
}

int main(int argc, char **argv)
{
    static struct side sides[2];
    char c;
    if (argc != 5) return 2;
    row = argv[1], calls = strtoul(argv[2], NULL, 10);
    is_own = strlen(row) > 4 && strcmp(row + strlen(row) - 4, "-own") == 0;
    for (int s = 0; s < 2 && calls == 0; s++) {
        prepare(argv[3 + s], &sides[s].nc, &sides[s].var);
        NC(nc_close(sides[s].nc));
    }
    if (calls == 0) return 0;
    for (int s = 0; s < 2; s++) {
        sides[s].number = s;
        sides[s].values = calloc(CHUNK, sizeof(float));
        if (s == 0 || is_own) prepare(argv[3 + s], &sides[s].nc, &sides[s].var);
        else sides[s].nc = sides[0].nc, sides[s].var = sides[0].var;
        if (pipe(sides[s].begin) || pipe(sides[s].done)) return 1;
        if (pthread_create(&sides[s].thread, NULL, thread, &sides[s])) return 1;
    }
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            dl_iterate_phdr(say_object, NULL);
            fprintf(stderr, "mark %lx\n", (unsigned long)mark);
        }
        for (int s = 0; s < 2; s++)
            if (write(sides[s].begin[1], "x", 1) != 1 || read(sides[s].done[0], &c, 1) != 1) return 1;
    }
    for (int s = 0; s < 2; s++) {
        if (write(sides[s].begin[1], "x", 1) != 1) return 1;
        pthread_join(sides[s].thread, NULL);
        if (s == 0 || is_own) NC(nc_close(sides[s].nc));
    }
    return 0;
}
