/* small: many small calls, the time of one; strided and mapped calls, the time of one element.
 *
 *   small --set make --file FILE --mb N      a file of one long variable and a small plane
 *   small --set put|get --file FILE --mb N   the calls, each set on the file opened anew
 *
 * Writing overwrites what is there and ends with nc_sync: what was put off is part of the price.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { SIDE = 500, SEQUENTIAL = 300000, RANDOM = 40000, STRIDED = 200, MOST_COUNT = 1000 };
enum { MOST = RANDOM * 256 }; /* values that a set moves */

typedef struct {
    const char *file;
    int writing, ncid, line, plane;
    size_t n, at; /* values of the line; values moved in this set */
    double *values, from;
} Job;

static void open_file(Job *j)
{
    NC(nc_open(j->file, j->writing ? NC_WRITE : NC_NOWRITE, &j->ncid));
    NC(nc_inq_varid(j->ncid, "line", &j->line));
    NC(nc_inq_varid(j->ncid, "plane", &j->plane));
    j->at = 0;
    j->from = now();
}

/* Ends a set of `each` elements (strided, mapped) or calls. */
static void close_file(Job *j, const char *call, const char *how, size_t each)
{
    if (j->writing) NC(nc_sync(j->ncid));
    double seconds = now() - j->from;
    NC(nc_close(j->ncid));
    uint64_t sum = digest_bytes(DIGEST_START, j->values, j->at * sizeof *j->values);
    char name[64];
    snprintf(name, sizeof name, "%s_%s %s", j->writing ? "put" : "get", call, how);
    result(name, "{}", seconds, j->at * sizeof *j->values, each, &sum);
}

static void one(Job *j, size_t index)
{
    double *value = j->values + j->at++;
    if (j->writing) NC(nc_put_var1_double(j->ncid, j->line, &index, value));
    else NC(nc_get_var1_double(j->ncid, j->line, &index, value));
}

static void some(Job *j, size_t start, size_t len)
{
    double *values = j->values + j->at;
    if (j->writing) NC(nc_put_vara_double(j->ncid, j->line, &start, &len, values));
    else NC(nc_get_vara_double(j->ncid, j->line, &start, &len, values));
    j->at += len;
}

static void single(Job *j)
{
    size_t calls = j->n < SEQUENTIAL ? j->n : SEQUENTIAL;
    open_file(j);
    for (size_t i = 0; i < calls; i++) one(j, i);
    close_file(j, "var1", "sequential", calls);

    uint64_t random = 7;
    open_file(j);
    for (size_t i = 0; i < RANDOM; i++) one(j, (size_t)(next_random(&random) % j->n));
    close_file(j, "var1", "random", RANDOM);
}

static void slices(Job *j)
{
    static const size_t lengths[] = {1, 4, 16, 64, 256};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        size_t len = lengths[k], calls = j->n / len;
        if (calls > SEQUENTIAL) calls = SEQUENTIAL;
        if (calls * len > MOST) calls = MOST / len;
        char how[40];
        snprintf(how, sizeof how, "%zu sequential", len);
        open_file(j);
        for (size_t i = 0; i < calls; i++) some(j, i * len, len);
        close_file(j, "vara", how, calls);

        uint64_t random = 8;
        snprintf(how, sizeof how, "%zu random", len);
        open_file(j);
        for (size_t i = 0; i < RANDOM; i++)
            some(j, (size_t)(next_random(&random) % (j->n - len)), len);
        close_file(j, "vara", how, RANDOM);
    }
}

static void strided(Job *j)
{
    static const ptrdiff_t strides[] = {2, 10, 1000};
    for (size_t k = 0; k < sizeof strides / sizeof strides[0]; k++) {
        size_t stride = (size_t)strides[k], count = j->n / stride;
        if (count > MOST_COUNT) count = MOST_COUNT;
        char how[40];
        snprintf(how, sizeof how, "stride %zu", stride);
        open_file(j);
        for (size_t i = 0; i < STRIDED; i++) {
            size_t start = i * 4099 % (j->n - (count - 1) * stride);
            double *values = j->values + j->at;
            if (j->writing)
                NC(nc_put_vars_double(j->ncid, j->line, &start, &count, &strides[k], values));
            else NC(nc_get_vars_double(j->ncid, j->line, &start, &count, &strides[k], values));
            j->at += count;
        }
        close_file(j, "vars", how, j->at);
    }
}

/* The plane with its dimensions exchanged in memory, at once. */
static void transposed(Job *j)
{
    size_t start[2] = {0, 0}, count[2] = {SIDE, SIDE};
    ptrdiff_t stride[2] = {1, 1}, map[2] = {1, SIDE};
    open_file(j);
    if (j->writing) NC(nc_put_varm_double(j->ncid, j->plane, start, count, stride, map, j->values));
    else NC(nc_get_varm_double(j->ncid, j->plane, start, count, stride, map, j->values));
    j->at = SIDE * SIDE;
    close_file(j, "varm", "transposed", j->at);
}

static void make(const char *file, int flag, size_t n)
{
    int ncid, dimids[2], line_dim, line, plane;
    double *values = touched((n > SIDE * SIDE ? n : SIDE * SIDE) * sizeof *values);
    for (size_t i = 0; i < n || i < SIDE * SIDE; i++) values[i] = pattern(i);
    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    NC(nc_def_dim(ncid, "n", n, &line_dim));
    NC(nc_def_dim(ncid, "y", SIDE, &dimids[0]));
    NC(nc_def_dim(ncid, "x", SIDE, &dimids[1]));
    NC(nc_def_var(ncid, "line", NC_DOUBLE, 1, &line_dim, &line));
    NC(nc_def_var(ncid, "plane", NC_DOUBLE, 2, dimids, &plane));
    NC(nc_enddef(ncid));
    NC(nc_put_var_double(ncid, line, values));
    NC(nc_put_var_double(ncid, plane, values));
    NC(nc_close(ncid));
    free(values);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--set", "--mb", "--format", NULL};
    known_options(argc, argv, known);
    const char *set = option(argc, argv, "--set", NULL);
    Job j = {.file = option(argc, argv, "--file", NULL), .writing = strcmp(set, "put") == 0};
    j.n = option_size(argc, argv, "--mb", "8") * 1000000 / sizeof(double);
    if (strcmp(set, "make") == 0) {
        make(j.file, format_flag(argc, argv), j.n);
        return 0;
    }
    if (!j.writing && strcmp(set, "get") != 0) {
        fprintf(stderr, "small: --set is make, put or get\n");
        return 2;
    }
    j.values = touched(MOST * sizeof *j.values);
    /* Not what is there already. */
    for (size_t i = 0; j.writing && i < MOST; i++) j.values[i] = 1 + pattern(i + 1);
    single(&j);
    slices(&j);
    strided(&j);
    transposed(&j);
    free(j.values);
    return 0;
}
