/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Threads read a netCDF-4 file of many deflated chunks: four on one file, then four on a file each,
 * all opening, inquiring and closing in between. Then the process forks while they read, and the
 * child reads with the handles that it got. Every value says where it belongs. */
#include "check.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

enum { THREADS = 4, SLABS = 1250, FORKS = 12, T = 60, Y = 50, X = 40 };

static const size_t SHAPE[3] = {T, Y, X};
static char shared_path[1000];
static int shared;
static volatile int stop;
static size_t n_slabs, n_values, n_opens, n_forks;

static void count(size_t *what, size_t by) { __atomic_fetch_add(what, by, __ATOMIC_RELAXED); }

static size_t below(uint64_t *state, size_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % n;
}

/* Reads a hyperslab of either variable, of a random place, size and stride, and looks at all of it. */
static void one_slab(int nc, uint64_t *state) {
    size_t start[3], counts[3], n = 1, at = 0;
    ptrdiff_t stride[3];
    for (int i = 0; i < 3; i++) {
        start[i] = below(state, SHAPE[i]);
        stride[i] = 1 + (ptrdiff_t)(below(state, 4) == 0 ? below(state, 5) : 0);
        counts[i] = 1 + below(state, 1 + (SHAPE[i] - 1 - start[i]) / (size_t)stride[i]);
        n *= counts[i];
    }
    int whole = below(state, 2) == 0;
    int *ints = malloc(n * sizeof *ints);
    double *doubles = malloc(n * sizeof *doubles);
    CHECK(ints && doubles);
    memset(ints, 0x7e, n * sizeof *ints);
    memset(doubles, 0x7e, n * sizeof *doubles);
    if (whole)
        OK(nc_get_vars_int(nc, 0, start, counts, stride, ints));
    else
        OK(nc_get_vars_double(nc, 1, start, counts, stride, doubles)); /* floats in the file */
    for (size_t t = 0; t < counts[0]; t++)
        for (size_t y = 0; y < counts[1]; y++)
            for (size_t x = 0; x < counts[2]; x++, at++) {
                size_t value = (start[0] + t * (size_t)stride[0]) * 10000 +
                               (start[1] + y * (size_t)stride[1]) * 100 + start[2] + x * (size_t)stride[2];
                CHECK(whole ? (size_t)ints[at] == value : doubles[at] == (double)value / 4);
            }
    free(ints);
    free(doubles);
    count(&n_slabs, 1);
    count(&n_values, n);
}

static void inquire(int nc) {
    int id, dims[3], shuffle, deflate, level;
    size_t len, chunks[3];
    char name[NC_MAX_NAME + 1];
    OK(nc_inq_varid(nc, "f", &id));
    CHECK(id == 1);
    OK(nc_inq_vardimid(nc, id, dims));
    OK(nc_inq_dim(nc, dims[0], name, &len));
    CHECK(len == T && !strcmp(name, "t"));
    OK(nc_inq_var_chunking(nc, 0, &id, chunks));
    CHECK(id == NC_CHUNKED && chunks[0] == 7 && chunks[2] == 11);
    OK(nc_inq_var_deflate(nc, 0, &shuffle, &deflate, &level));
    CHECK(shuffle && deflate);
    FAILS(nc_inq_varid(nc, "nope", &id), NC_ENOTVAR);
}

static void *on_one_file(void *argument) {
    uint64_t state = 1 + (uint64_t)(intptr_t)argument;
    for (int i = 0; i < SLABS; i++) {
        one_slab(shared, &state);
        if (i % 10 == 0) inquire(shared);
        if (i % 50 == 0) { /* a handle of its own beside it */
            int nc;
            OK(nc_open(shared_path, NC_NOWRITE, &nc));
            one_slab(nc, &state);
            i++;
            OK(nc_close(nc));
            count(&n_opens, 1);
        }
    }
    return NULL;
}

static void *on_its_own(void *argument) {
    intptr_t me = (intptr_t)argument;
    uint64_t state = 100 + (uint64_t)me;
    char path[40];
    snprintf(path, sizeof path, "own%d.nc", (int)me);
    for (int i = 0; i < SLABS;) {
        int nc;
        OK(nc_open(path, NC_NOWRITE, &nc));
        count(&n_opens, 1);
        inquire(nc);
        for (int end = i + 25; i < end; i++) one_slab(nc, &state);
        OK(nc_close(nc));
        FAILS(nc_inq_nvars(nc + 1000 * 65536, NULL), NC_EBADID);
    }
    return NULL;
}

static void *until_stopped(void *argument) {
    uint64_t state = 1000 + (uint64_t)(intptr_t)argument;
    while (!stop) one_slab(shared, &state);
    return NULL;
}

static void start(pthread_t *threads, void *(*body)(void *)) {
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
}

static void join(pthread_t *threads) {
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void copy(const char *from, const char *to) {
    char block[4096];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    CHECK(in && out);
    while ((n = fread(block, 1, sizeof block, in)) > 0) CHECK(fwrite(block, 1, n, out) == n);
    CHECK(fclose(out) == 0 && fclose(in) == 0);
}

int main(void) {
    pthread_t threads[THREADS];
    const char *folder = getenv("ZONDA_NC4_DATA");
    CHECK(folder);
    snprintf(shared_path, sizeof shared_path, "%s/chunked.nc", folder);
    OK(nc_open(shared_path, NC_NOWRITE, &shared));
    start(threads, on_one_file);
    join(threads);
    for (int i = 0; i < THREADS; i++) {
        char path[40];
        snprintf(path, sizeof path, "own%d.nc", i);
        copy(shared_path, path);
    }
    start(threads, on_its_own);
    join(threads);
    CHECK(n_slabs == 2 * THREADS * SLABS);
    printf("%zu hyperslabs with %zu values right, %zu files opened\n", n_slabs, n_values, n_opens);
    fflush(stdout); /* not once more by each child */

    start(threads, until_stopped);
    for (; n_forks < FORKS; n_forks++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            uint64_t state = 5000 + n_forks;
            int nc;
            alarm(60);
            for (int i = 0; i < 20; i++) one_slab(shared, &state);
            inquire(shared);
            OK(nc_open("own0.nc", NC_NOWRITE, &nc));
            one_slab(nc, &state);
            OK(nc_close(nc));
            if (n_forks % 3 == 0) OK(nc_close(shared));
            if (n_forks % 3 == 1) exit(0); /* with exit handlers */
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = 1;
    join(threads);
    OK(nc_close(shared));
    printf("%zu children of fork read\n", n_forks);
    return 0;
}
