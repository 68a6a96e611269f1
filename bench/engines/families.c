/* families: the ways programs move data, each through several storage stacks in turn.
 *
 *   families --family NAME --op write|read --size small|eighth|medium|large --file FILE
 *            --stacks 'default cache:64:128 file default-again' --rounds N
 *            [--below throttle:500M:100us]                       a layer under all of them
 *   families --family NAME --op input --size ... --file FILE     the file that `read` reads
 *
 * A stack is what ZONDA_IO says, which Zonda reads at each open or create; `default` is none, and so
 * is any name that begins with it; with a layer below it is the default's own layer over that. The stacks take turns inside one process, in an order that changes
 * from round to round, so that what else the machine does meets all of them alike. Freed memory is
 * given back before each run, as if the process were new: a large cache pays for its pages. A run
 * that takes eight times the best is cut short, and a stack that stays far behind is not run again;
 * the first of the list always is.
 *
 * write: from the first put to the end of nc_close; read: from nc_open, in which a stack may already read
 * ahead, to the end of nc_close. Each run prints a line. Its digest is over the bytes of the file (write:
 * one library must write the same file through every stack) or over the values read.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <unistd.h>

#include "engine.h"

enum { MOST_STACKS = 32, MOST_VARS = 4096, MOST_ELEMENTS = 1 << 20, MOST_RANDOM = 1 << 18 };
/* How far behind the best a stack is left out after one round, and after more. */
static const double hopeless[] = {3, 1.6};
static const double too_long = 8;
/* Seconds that are always there: a short run may just have been interrupted. */
static const double time_for = 0.2;

typedef struct Job {
    int ncid, writing;
    int nvars, varids[MOST_VARS];
    size_t n;       /* values of all variables */
    double *values; /* as the calls come, one after the other */
    size_t at;      /* values moved */
    uint32_t *order;
    unsigned calls;
    const char *below; /* the layer under every stack, or NULL */
    int cut;
    double deadline; /* by the clock */
    jmp_buf late;
    /* shape, as far as the family needs one */
    size_t records, lev, lat, lon;
} Job;

/* Looks at the clock at every 256th call. */
static inline void in_time(Job *j)
{
    if (++j->calls % 256 == 0 && now() > j->deadline) longjmp(j->late, 1);
}

/* Moves the next values of memory from or to a hyperslab. */
static void part(Job *j, int varid, const size_t *start, const size_t *count, size_t len)
{
    double *here = j->values + j->at;
    if (j->writing) NC(nc_put_vara_double(j->ncid, varid, start, count, here));
    else NC(nc_get_vara_double(j->ncid, varid, start, count, here));
    j->at += len;
    in_time(j);
}

static void one(Job *j, size_t index)
{
    double *here = j->values + j->at++;
    if (j->writing) NC(nc_put_var1_double(j->ncid, j->varids[0], &index, here));
    else NC(nc_get_var1_double(j->ncid, j->varids[0], &index, here));
    in_time(j);
}

/* The numbers below `n` in an order that is always the same. */
static void shuffled(uint32_t *order, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)(next_random(&seed) % i);
        uint32_t t = order[i - 1];
        order[i - 1] = order[k], order[k] = t;
    }
}

/* ---- the families: what is defined, and the calls --------------------------------------------- */

static int dimension(Job *j, const char *name, size_t len)
{
    int dimid;
    NC(nc_def_dim(j->ncid, name, len, &dimid));
    return dimid;
}

static void variables(Job *j, int rank, const int *dimids)
{
    char name[16];
    for (int v = 0; v < j->nvars; v++) {
        snprintf(name, sizeof name, "v%d", v);
        NC(nc_def_var(j->ncid, name, NC_DOUBLE, rank, dimids, &j->varids[v]));
    }
}

/* Rows of 16 KB, one after the other. */
enum { ROW = 2048 };
static void define_rows(Job *j)
{
    int dimids[2] = {dimension(j, "row", j->n / ROW), dimension(j, "column", ROW)};
    j->nvars = 1;
    variables(j, 2, dimids);
}
static void in_order(Job *j)
{
    size_t start[2] = {0, 0}, count[2] = {1, ROW};
    for (; start[0] < j->n / ROW; start[0]++) part(j, j->varids[0], start, count, ROW);
}

/* Latitude slices of all variables, latitudes in random order: the case study in small. */
static void define_fields(Job *j)
{
    size_t k = j->n <= 1 << 16 ? 1 : j->n <= 1 << 23 ? 2 : 4;
    j->lev = 4 * k, j->lat = 16 * k, j->lon = 32 * k;
    j->nvars = k == 1 ? 8 : 16;
    j->records = j->n / (j->lev * j->lat * j->lon * (size_t)j->nvars);
    int dimids[4] = {dimension(j, "time", NC_UNLIMITED), dimension(j, "lev", j->lev),
                     dimension(j, "lat", j->lat), dimension(j, "lon", j->lon)};
    variables(j, 4, dimids);
}
static void random_slices(Job *j)
{
    for (size_t t = 0; t < j->records; t++) {
        shuffled(j->order, j->lat, t + 1);
        for (size_t k = 0; k < j->lat; k++)
            for (int v = 0; v < j->nvars; v++) {
                size_t start[4] = {t, 0, j->order[k], 0}, count[4] = {1, j->lev, 1, j->lon};
                part(j, j->varids[v], start, count, j->lev * j->lon);
            }
    }
}

/* Tiles of 16 x 64 values of an array 1024 wide, in random order. */
enum { WIDE = 1024, TILE_ROWS = 16, TILE_COLUMNS = 64 };
static void define_plane(Job *j)
{
    int dimids[2] = {dimension(j, "row", j->n / WIDE), dimension(j, "column", WIDE)};
    j->nvars = 1;
    variables(j, 2, dimids);
}
static void tiles(Job *j)
{
    size_t across = WIDE / TILE_COLUMNS, all = j->n / (TILE_ROWS * TILE_COLUMNS);
    size_t count[2] = {TILE_ROWS, TILE_COLUMNS};
    shuffled(j->order, all, 1);
    for (size_t i = 0; i < all; i++) {
        size_t start[2] = {j->order[i] / across * TILE_ROWS, j->order[i] % across * TILE_COLUMNS};
        part(j, j->varids[0], start, count, TILE_ROWS * TILE_COLUMNS);
    }
}

static void define_line(Job *j)
{
    int dimid = dimension(j, "n", j->n);
    j->nvars = 1;
    variables(j, 1, &dimid);
}
/* Every fourth value of a stretch, four times until it is complete; a million values at most, in
 * stretches all over the file. */
static void strided(Job *j)
{
    const size_t stretch = 16384, count = stretch / 4;
    const ptrdiff_t stride = 4;
    size_t stretches = (j->n < MOST_ELEMENTS ? j->n : MOST_ELEMENTS) / stretch;
    for (size_t i = 0; i < stretches; i++)
        for (size_t phase = 0; phase < 4; phase++) {
            size_t start = i * (j->n / stretches) + phase;
            double *here = j->values + j->at;
            if (j->writing)
                NC(nc_put_vars_double(j->ncid, j->varids[0], &start, &count, &stride, here));
            else NC(nc_get_vars_double(j->ncid, j->varids[0], &start, &count, &stride, here));
            j->at += count;
        }
}
/* Values one by one; a million at most, in stretches of 512 KB all over the file. */
static void one_sequential(Job *j)
{
    const size_t stretch = 65536;
    size_t stretches = (j->n < MOST_ELEMENTS ? j->n : MOST_ELEMENTS) / stretch;
    for (size_t i = 0; i < stretches; i++)
        for (size_t k = 0; k < stretch; k++) one(j, i * (j->n / stretches) + k);
}
/* A quarter of a million at most. */
static void one_random(Job *j)
{
    size_t calls = j->n < MOST_RANDOM ? j->n : MOST_RANDOM;
    uint64_t random = 7;
    for (size_t i = 0; i < calls; i++) one(j, (size_t)(next_random(&random) % j->n));
}

/* Four records; all records of the first variable, then of the second, ... */
static void define_many_variables(Job *j)
{
    j->nvars = j->n <= 1 << 16 ? 64 : j->n <= 1 << 23 ? 1024 : 4096;
    j->records = 4, j->lon = j->n / j->records / (size_t)j->nvars;
    int dimids[2] = {dimension(j, "time", NC_UNLIMITED), dimension(j, "x", j->lon)};
    variables(j, 2, dimids);
}
static void many_variables(Job *j)
{
    for (int v = 0; v < j->nvars; v++)
        for (size_t t = 0; t < j->records; t++) {
            size_t start[2] = {t, 0}, count[2] = {1, j->lon};
            part(j, j->varids[v], start, count, j->lon);
        }
}

/* Four variables, small records. Written in the order of time; read variable by variable, some
 * hundred records a call, as time series are. */
static void define_many_records(Job *j)
{
    j->nvars = 4, j->lon = j->n <= 1 << 23 ? 32 : 64;
    j->records = j->n / j->lon / (size_t)j->nvars;
    int dimids[2] = {dimension(j, "time", NC_UNLIMITED), dimension(j, "x", j->lon)};
    variables(j, 2, dimids);
}
static void many_records(Job *j)
{
    size_t together = j->writing ? 1 : 256;
    for (size_t o = 0; o < (j->writing ? 1 : (size_t)j->nvars); o++)
        for (size_t t = 0; t < j->records; t += together)
            for (int v = 0; v < (j->writing ? j->nvars : 1); v++) {
                size_t start[2] = {t, 0}, count[2] = {together, j->lon};
                part(j, j->varids[j->writing ? v : (int)o], start, count, together * j->lon);
            }
}

/* Four variables, each in one call. */
static void define_arrays(Job *j)
{
    int dimid = dimension(j, "n", j->n / 4);
    j->nvars = 4;
    variables(j, 1, &dimid);
}
static void whole_arrays(Job *j)
{
    size_t start = 0, count = j->n / 4;
    for (int v = 0; v < j->nvars; v++) part(j, j->varids[v], &start, &count, count);
}

static const struct Family {
    const char *name;
    void (*define)(Job *), (*calls)(Job *);
} families[] = {
    {"in-order", define_rows, in_order},
    {"random-slices", define_fields, random_slices},
    {"tiles", define_plane, tiles},
    {"strided", define_line, strided},
    {"one-sequential", define_line, one_sequential},
    {"one-random", define_line, one_random},
    {"many-variables", define_many_variables, many_variables},
    {"many-records", define_many_records, many_records},
    {"whole-arrays", define_arrays, whole_arrays},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* ---- one run ----------------------------------------------------------------------------------- */

static void create(Job *j, const struct Family *f, const char *file)
{
    NC(nc_create(file, NC_CLOBBER | NC_64BIT_OFFSET, &j->ncid));
    NC(nc_set_fill(j->ncid, NC_NOFILL, NULL));
    f->define(j);
    NC(nc_enddef(j->ncid));
}

/* Learns the shape of this family's files: the variables are numbered as defined. */
static void learn_shape(Job *j, const struct Family *f)
{
    NC(nc_create("shape", NC_CLOBBER | NC_DISKLESS | NC_64BIT_OFFSET, &j->ncid));
    f->define(j);
    NC(nc_abort(j->ncid));
}

/* Opens a file of this family, whose shape is known. */
static void reopen(Job *j, const struct Family *f, const char *file)
{
    int nvars;
    NC(nc_open(file, NC_NOWRITE, &j->ncid));
    NC(nc_inq_nvars(j->ncid, &nvars));
    if (nvars != j->nvars) {
        fprintf(stderr, "families: %s is not of family %s\n", file, f->name);
        exit(1);
    }
}

/* Writes everything, record by record, for `read`. */
static void write_input(Job *j, const struct Family *f, const char *file)
{
    create(j, f, file);
    int nvars = j->nvars, dimids[4], rank;
    size_t start[4] = {0}, count[4], len = 1, records = j->records ? j->records : 1;
    NC(nc_inq_var(j->ncid, j->varids[0], NULL, NULL, &rank, dimids, NULL));
    for (int d = 0; d < rank; d++) {
        NC(nc_inq_dimlen(j->ncid, dimids[d], &count[d]));
        if (d == 0 && j->records) count[d] = 1;
        len *= count[d];
    }
    for (; start[0] < records; start[0]++)
        for (int v = 0; v < nvars; v++) part(j, j->varids[v], start, count, len);
    NC(nc_close(j->ncid));
}

static uint64_t digest_file(const char *file)
{
    enum { PIECE = 1 << 20 };
    char *bytes = touched(PIECE);
    uint64_t h = DIGEST_START;
    int fd = open(file, O_RDONLY);
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, bytes, PIECE)) > 0) h = digest_bytes(h, bytes, (size_t)n);
    if (n < 0 || close(fd) != 0) {
        perror(file);
        exit(1);
    }
    free(bytes);
    return h;
}

/* What Zonda says a file goes through; other libraries have no such thing. */
static void stack_of(int ncid, char *text, size_t room)
{
    int (*ask)(int, size_t *, char *);
    size_t len;
    *(void **)&ask = dlsym(RTLD_DEFAULT, "nc_zonda_inq_stack");
    snprintf(text, room, "none");
    if (!ask) return;
    NC(ask(ncid, &len, NULL));
    if (len < room) NC(ask(ncid, &len, text));
}

/* Gives the seconds; a run that is still at it after `most` of them is cut short. */
static double run(Job *j, const struct Family *f, const char *file, const char *stack,
                  const char *size, size_t round, double most)
{
    int is_default = strncmp(stack, "default", 7) == 0;
    char spec[300];
    if (j->below && strcmp(stack, "file") == 0) snprintf(spec, sizeof spec, "%s", j->below);
    else snprintf(spec, sizeof spec, "%s%s%s", is_default ? "cache" : stack, j->below ? "," : "",
                  j->below ? j->below : "");
    if (is_default && !j->below) unsetenv("ZONDA_IO");
    else setenv("ZONDA_IO", spec, 1);
    j->at = 0, j->records = 0, j->calls = 0;
    malloc_trim(0);
    if (j->writing) {
        unlink(file);
        create(j, f, file);
    } else {
        memset(j->values, 0xff, j->n * sizeof *j->values); /* nothing of the last run */
        learn_shape(j, f);
    }
    char ran[300], params[700], name[64];
    j->cut = 0;
    double from = now();
    if (!j->writing) reopen(j, f, file);
    stack_of(j->ncid, ran, sizeof ran);
    j->deadline = from + most;
    if (setjmp(j->late)) j->cut = 1;
    else f->calls(j);
    NC(nc_close(j->ncid));
    double seconds = now() - from;

    uint64_t sum = j->cut ? 0 : j->writing ? digest_file(file)
                 : digest_bytes(DIGEST_START, j->values, j->at * sizeof *j->values);
    snprintf(name, sizeof name, "%s %s", f->name, j->writing ? "write" : "read");
    snprintf(params, sizeof params,
             "{\"size\": \"%s\", \"stack\": \"%s\", \"ran\": \"%s\", \"round\": %zu, "
             "\"cut\": %s}", size, stack, ran, round, j->cut ? "true" : "false");
    result(name, params, seconds, j->at * sizeof *j->values, 1, j->cut ? NULL : &sum);
    return seconds;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--family", "--op", "--size", "--file", "--stacks",
                                        "--rounds", "--below", NULL};
    known_options(argc, argv, known);
    const char *family = option(argc, argv, "--family", NULL);
    const char *op = option(argc, argv, "--op", NULL);
    const char *size = option(argc, argv, "--size", NULL);
    const char *file = option(argc, argv, "--file", NULL);
    size_t rounds = option_size(argc, argv, "--rounds", "1");
    const struct Family *f = families;
    while (f < families + FAMILIES && strcmp(f->name, family) != 0) f++;
    int power = strcmp(size, "small") == 0 ? 16 : strcmp(size, "eighth") == 0 ? 20
              : strcmp(size, "medium") == 0 ? 23 : strcmp(size, "large") == 0 ? 26 : 0;
    int input = strcmp(op, "input") == 0, writing = strcmp(op, "write") == 0;
    if (f == families + FAMILIES || !power || !(input || writing || strcmp(op, "read") == 0)) {
        fprintf(stderr, "families: no such family, size or --op; families:");
        for (f = families; f < families + FAMILIES; f++) fprintf(stderr, " %s", f->name);
        fputc('\n', stderr);
        return 2;
    }

    static Job j;
    j.below = option(argc, argv, "--below", "");
    if (!*j.below) j.below = NULL;
    mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* the default, but not raised by what was freed */
    j.writing = writing || input, j.n = (size_t)1 << power;
    j.values = touched(j.n * sizeof *j.values);
    j.order = touched(j.n / 1024 * sizeof *j.order + 4096);
    for (size_t i = 0; i < j.n; i++) j.values[i] = 0.5 + (double)i;
    if (input) {
        j.deadline = 1e300;
        write_input(&j, f, file);
        return 0;
    }

    char text[1000], *stacks[MOST_STACKS];
    int n = 0;
    snprintf(text, sizeof text, "%s", option(argc, argv, "--stacks", "default"));
    for (char *s = strtok(text, " "); s && n < MOST_STACKS; s = strtok(NULL, " ")) stacks[n++] = s;
    double least[MOST_STACKS], best = 1e300;
    run(&j, f, file, stacks[0], size, 0, 1e300); /* warms up; round 0 does not count */
    for (size_t round = 1; round <= rounds; round++)
        for (int k = 0; k < n; k++) {
            int s = (int)((size_t)(round % 2 ? k : n - 1 - k) + 3 * round) % n;
            double enough = hopeless[round > 2] * best, most = too_long * best;
            if (round > 1 && s > 0 && least[s] > enough && least[s] > time_for / 2) continue;
            if (most < time_for) most = time_for;
            double seconds = run(&j, f, file, stacks[s], size, round, s ? most : 1e300);
            if (round == 1 || seconds < least[s]) least[s] = seconds;
            if (seconds < best) best = seconds;
        }
    if (j.cut) run(&j, f, file, stacks[0], size, 0, 1e300); /* a whole file is left */
    free(j.values);
    free(j.order);
    return 0;
}
