/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cores: what cores_model.py fits its costs to. Each run prints one line: wall seconds, processor seconds, how often.
 *
 *   cores write plain|deflate CHUNK BYTES FILE     a float array in chunks of CHUNK bytes, put whole, to the close (ZONDA_THREADS threads)
 *   cores read plain|deflate CHUNK BYTES FILE      the same, got whole
 *   cores raw THREADS BYTES FILE                   pwrite of a megabyte at a time to a new file, by threads in turns of pieces
 *   cores ones get|put|got-chunks|put-chunks same|own THREADS CALLS FILE...    calls of one element by threads at one file, or a file each
 *   cores line 1|2 CALLS                           additions to a line of memory: by one thread, or by two in turns, the fastest hundred in turns
 *   cores copy THREADS BYTES                       memory copied by each of the threads
 *   cores wake CALLS                               a thread that sleeps is woken (what it costs who wakes)
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netcdf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NC(call) \
    do { \
        int status_ = (call); \
        if (status_) { fprintf(stderr, "%s: %s\n", #call, nc_strerror(status_)); exit(1); } \
    } while (0)

enum { MOST = 64, PIECE = 1 << 20, LINE = 1 << 20, ONES_CHUNK = 16 * 1024 };

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double wall_begin, cpu_begin;

static void begin(void)
{
    cpu_begin = now(CLOCK_PROCESS_CPUTIME_ID);
    wall_begin = now(CLOCK_MONOTONIC);
}

static void end(double n)
{
    double wall = now(CLOCK_MONOTONIC) - wall_begin, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
    printf("%.9f %.9f %.0f\n", wall, cpu, n);
}

/* ---- whole arrays ---- */

/* A field with noise in its last digits, of which deflate leaves about half. */
static float *field(size_t n)
{
    float *values = malloc(n * sizeof *values);
    unsigned seed = 1;
    if (!values) exit(1);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        values[i] = 280.0f + (float)(i % 3600) * 0.01f + (float)(seed >> 24) * 0.0001f;
    }
    return values;
}

static void write_whole(int deflate, size_t chunk, size_t bytes, const char *file)
{
    int nc, dim, var;
    size_t n = bytes / sizeof(float);
    float *values = field(n);
    chunk /= sizeof(float);
    unlink(file);
    begin();
    NC(nc_create(file, NC_CLOBBER | NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "n", n, &dim));
    NC(nc_def_var(nc, "v", NC_FLOAT, 1, &dim, &var));
    NC(nc_def_var_chunking(nc, var, NC_CHUNKED, &chunk));
    if (deflate) NC(nc_def_var_deflate(nc, var, 1, 1, 1));
    NC(nc_enddef(nc));
    NC(nc_put_var_float(nc, var, values));
    NC(nc_close(nc));
    end(1);
}

static void read_whole(size_t bytes, const char *file)
{
    int nc, var;
    float *values = malloc(bytes);
    if (!values) exit(1);
    /* Pages of the caller's own. */
    memset(values, 1, bytes);
    begin();
    NC(nc_open(file, NC_NOWRITE, &nc));
    NC(nc_inq_varid(nc, "v", &var));
    NC(nc_get_var_float(nc, var, values));
    NC(nc_close(nc));
    end(1);
}

/* ---- threads ---- */

struct side {
    int number, of, fd, nc, var, puts, chunked;
    size_t n;
    pthread_t thread;
    void *memory;
};

static pthread_barrier_t gate;
static _Alignas(128) atomic_ulong lines[32];
static double line_seconds;

static void in_threads(int n, struct side *sides, void *(*body)(void *), double count)
{
    pthread_barrier_init(&gate, NULL, (unsigned)n + 1);
    for (int t = 0; t < n; t++)
        if (pthread_create(&sides[t].thread, NULL, body, &sides[t])) exit(1);
    /* They have their memory; and then they begin. */
    pthread_barrier_wait(&gate);
    begin();
    pthread_barrier_wait(&gate);
    for (int t = 0; t < n; t++) pthread_join(sides[t].thread, NULL);
    end(count);
}

static void wait_to_begin(void)
{
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
}

static void *raw(void *arg)
{
    struct side *side = arg;
    char *piece = malloc(PIECE);
    memset(piece, side->number + 1, PIECE);
    wait_to_begin();
    for (size_t i = (size_t)side->number; i < side->n / PIECE; i += (size_t)side->of)
        if (pwrite(side->fd, piece, PIECE, (off_t)(i * PIECE)) != PIECE) exit(1);
    return NULL;
}

static void *copy(void *arg)
{
    struct side *side = arg;
    char *from = malloc(side->n), *to = malloc(side->n);
    memset(from, 1, side->n);
    memset(to, 2, side->n);
    wait_to_begin();
    for (int i = 0; i < 4; i++) {
        memcpy(to, from, side->n);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return NULL;
}

enum { TURNS = 100 };

/* Each waits until the other has added, and adds; so an addition is one handing over. The least of many pieces is one in which nobody lost its core. */
static void *add(void *arg)
{
    struct side *side = arg;
    double least = 1e9;
    wait_to_begin();
    for (size_t i = 0; i < side->n; i += TURNS) {
        double before = now(CLOCK_MONOTONIC);
        for (size_t turn = i; turn < i + TURNS; turn++) {
            while (side->of == 2 && (atomic_load_explicit(lines, memory_order_acquire) & 1) != (unsigned long)side->number)
                ;
            atomic_fetch_add_explicit(lines, 1, memory_order_acq_rel);
        }
        double took = now(CLOCK_MONOTONIC) - before;
        if (took < least) least = took;
    }
    if (side->number == 0) line_seconds = least / TURNS / side->of;
    return NULL;
}

static void *ones(void *arg)
{
    struct side *side = arg;
    size_t half = (size_t)side->number * (LINE / MOST);
    double wide = 1;
    float small = 1;
    wait_to_begin();
    for (size_t i = 0; i < side->n; i++) {
        size_t at = half + i % (LINE / MOST);
        if (side->chunked && side->puts) NC(nc_put_var1_float(side->nc, side->var, &at, &small));
        else if (side->chunked) NC(nc_get_var1_float(side->nc, side->var, &at, &small));
        else if (side->puts) NC(nc_put_var1_double(side->nc, side->var, &at, &wide));
        else NC(nc_get_var1_double(side->nc, side->var, &at, &wide));
    }
    return NULL;
}

static void open_ones(struct side *side, const char *file)
{
    int dim;
    size_t n = LINE, chunk = ONES_CHUNK;
    double *values = calloc(n, sizeof *values);
    NC(nc_create(file, NC_CLOBBER | (side->chunked ? NC_NETCDF4 : NC_64BIT_OFFSET), &side->nc));
    NC(nc_def_dim(side->nc, "n", n, &dim));
    NC(nc_def_var(side->nc, "v", side->chunked ? NC_FLOAT : NC_DOUBLE, 1, &dim, &side->var));
    if (side->chunked) NC(nc_def_var_chunking(side->nc, side->var, NC_CHUNKED, &chunk));
    if (side->chunked) NC(nc_def_var_deflate(side->nc, side->var, 1, 1, 1));
    NC(nc_enddef(side->nc));
    NC(nc_put_var_double(side->nc, side->var, values));
    free(values);
    if (side->puts) return;
    NC(nc_close(side->nc));
    NC(nc_open(file, NC_NOWRITE, &side->nc));
}

/* ---- waking ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int asleep;

static void *sleeper(void *arg)
{
    size_t n = *(size_t *)arg;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n; i++) {
        atomic_store(&asleep, 1);
        pthread_cond_wait(&cond, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void wake(size_t n)
{
    pthread_t thread;
    double wall = 0, cpu = 0;
    if (pthread_create(&thread, NULL, sleeper, &n)) exit(1);
    for (size_t i = 0; i < n; i++) {
        while (!atomic_load(&asleep)) usleep(50);
        atomic_store(&asleep, 0);
        usleep(100);
        double cpu_before = now(CLOCK_THREAD_CPUTIME_ID), wall_before = now(CLOCK_MONOTONIC);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&cond);
        wall += now(CLOCK_MONOTONIC) - wall_before;
        cpu += now(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    }
    pthread_join(thread, NULL);
    printf("%.9f %.9f %zu\n", wall, cpu, n);
}

static size_t number(const char *text) { return strtoul(text, NULL, 10); }

int main(int argc, char **argv)
{
    static struct side sides[MOST];
    const char *mode = argc > 2 ? argv[1] : "";
    if (strcmp(mode, "write") == 0 && argc == 6)
        write_whole(strcmp(argv[2], "deflate") == 0, number(argv[3]), number(argv[4]), argv[5]);
    else if (strcmp(mode, "read") == 0 && argc == 6)
        read_whole(number(argv[4]), argv[5]);
    else if (strcmp(mode, "wake") == 0)
        wake(number(argv[2]));
    else {
        int is_ones = strcmp(mode, "ones") == 0, at = is_ones ? 4 : 2;
        if (argc <= at) return 2;
        int n = atoi(argv[at]);
        if (n < 1 || n > MOST || argc <= at + 1) return 2;
        size_t much = number(argv[at + 1]);
        int is_same = is_ones && strcmp(argv[at - 1], "same") == 0;
        if (is_ones && argc < at + 2 + (is_same ? 1 : n)) return 2;
        for (int t = 0; t < n; t++) {
            sides[t].number = t, sides[t].of = n, sides[t].n = much;
            if (is_ones) {
                sides[t].puts = strncmp(argv[2], "put", 3) == 0;
                sides[t].chunked = strstr(argv[2], "chunks") != NULL;
                if (t == 0 || !is_same) open_ones(&sides[t], argv[at + 2 + t]);
                else sides[t].nc = sides[0].nc, sides[t].var = sides[0].var;
            }
        }
        if (is_ones) in_threads(n, sides, ones, (double)much);
        else if (strcmp(mode, "line") == 0 && n <= 2) {
            pthread_barrier_init(&gate, NULL, (unsigned)n + 1);
            for (int t = 0; t < n; t++)
                if (pthread_create(&sides[t].thread, NULL, add, &sides[t])) return 1;
            pthread_barrier_wait(&gate);
            pthread_barrier_wait(&gate);
            for (int t = 0; t < n; t++) pthread_join(sides[t].thread, NULL);
            printf("%.12f %.12f 1\n", line_seconds, line_seconds);
        }
        else if (strcmp(mode, "copy") == 0) in_threads(n, sides, copy, 4.0 * (double)much);
        else if (strcmp(mode, "raw") == 0 && argc == at + 3) {
            unlink(argv[at + 2]);
            int fd = open(argv[at + 2], O_RDWR | O_CREAT | O_TRUNC, 0600);
            if (fd < 0) return 1;
            for (int t = 0; t < n; t++) sides[t].fd = fd;
            in_threads(n, sides, raw, (double)much);
            unlink(argv[at + 2]);
        } else return 2;
        for (int t = 0; is_ones && t < (is_same ? 1 : n); t++) NC(nc_close(sides[t].nc));
    }
    return 0;
}
