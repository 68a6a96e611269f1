/* write4: the ways in which netCDF-4 files are written.
 *
 * --op data     v0 over d0, d1, d2 of --shape in chunks of --chunk ("default": nothing is said,
 *               "none": contiguous); --type float or short, --memory the type of the caller's values
 *               (that of the file, or double), --deflate LEVEL, --shuffle 0|1, --zstd LEVEL,
 *               --quantize DIGITS (granular bit rounding), --unlimited 0|1 for d0, --fill 0|1.
 *               --puts whole; records (one index of d0 each); slices (--rows of d1 in a record);
 *               random (the same, in random order inside each record); bands (--rows of d1 through
 *               all of d0). Values: a wave with noise in the low bits; packed, if short
 * --op table    two double variables of --n elements, the second over the unlimited dimension, in
 *               chunks of --chunk ("default", or elements), --slice elements of each in turn
 * --op define   --vars variables of one element with --atts attributes each, in --groups groups
 * --op one      --n puts of one element into a double variable of --shape, in sequence or (--puts
 *               random) anywhere
 * --op strings  --n strings at once
 *
 * The clock runs from nc_create to the end of nc_close; in `one` from the first put. How long the
 * parts took is among the parameters, and the peak of the memory in KiB over what the values take.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"
#include <math.h>
#include <netcdf_filter.h>
#include <sys/resource.h>

enum { RANK = 3, WAVE = 1 << 16, ZSTD = 32015 };

struct slab { size_t start[RANK], count[RANK]; };

static double began, defined, put, closed;
static long before;

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void done(const char *op, double from, size_t bytes, size_t calls)
{
    char params[160];
    snprintf(params, sizeof params,
             "{\"define\": %.9f, \"put\": %.9f, \"close\": %.9f, \"peak_kib\": %ld}",
             defined - began, put - defined, closed - put, peak_kib() - before);
    result(op, params, closed - from, bytes, calls, NULL);
}

static int create(const char *file)
{
    int ncid;
    before = peak_kib();
    began = now();
    NC(nc_create(file, NC_CLOBBER | NC_NETCDF4, &ncid));
    return ncid;
}

static int sizes(const char *text, size_t *out)
{
    int n = 0;
    for (const char *p = text; *p && n < RANK; n++) {
        char *end;
        out[n] = strtoull(p, &end, 10);
        p = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* ---- arrays ----------------------------------------------------------------------------------- */

static double along_row[WAVE], along_column[WAVE];

static double value(size_t i, size_t row)
{
    uint64_t state = i;
    double noise = (double)(next_random(&state) >> 40) / 16777216.0 - 0.5;
    return 280.0 + along_row[i % row % WAVE] * along_column[i / row % WAVE] + 0.02 * noise;
}

static short packed(double x) { return (short)((x - 280.0) * 100.0); }

/* The puts, and the caller's values of one after those of the other. `size` is that of a value. */
static struct slab *slabs(const char *puts, const size_t *shape, size_t rows, size_t *n)
{
    size_t pieces = (shape[1] + rows - 1) / rows, *order = malloc(pieces * sizeof *order);
    size_t records = puts[0] == 'w' || puts[0] == 'b' ? 1 : shape[0];
    if (puts[0] == 'w' || strcmp(puts, "records") == 0) pieces = 1, rows = shape[1];
    struct slab *all = malloc(records * pieces * sizeof *all);
    uint64_t state = 11;
    *n = 0;
    for (size_t t = 0; t < records; t++) {
        for (size_t k = 0; k < pieces; k++) order[k] = k;
        for (size_t k = pieces; k > 1 && strcmp(puts, "random") == 0; k--) {
            size_t other = next_random(&state) % k, old = order[k - 1];
            order[k - 1] = order[other], order[other] = old;
        }
        for (size_t k = 0; k < pieces; k++) {
            size_t first = order[k] * rows, left = shape[1] - first;
            all[(*n)++] = (struct slab){{t, first, 0},
                {records == 1 ? shape[0] : 1, left < rows ? left : rows, shape[2]}};
        }
    }
    free(order);
    return all;
}

static void fill_memory(char *memory, const struct slab *s, const size_t *shape, const char *type,
                        const char *kind)
{
    size_t at = 0;
    for (size_t t = 0; t < s->count[0]; t++)
        for (size_t y = 0; y < s->count[1]; y++)
            for (size_t x = 0; x < s->count[2]; x++, at++) {
                size_t i = ((s->start[0] + t) * shape[1] + s->start[1] + y) * shape[2] + x;
                double v = value(i, shape[2]);
                if (type[0] == 's') v = packed(v);
                else v = (float)v;
                if (kind[0] == 'd') ((double *)memory)[at] = v;
                else if (kind[0] == 's') ((short *)memory)[at] = (short)v;
                else ((float *)memory)[at] = (float)v;
            }
}

static int variable(int argc, char **argv, int ncid, nc_type type, const size_t *shape, int rank)
{
    int dimids[RANK], varid;
    size_t chunk[RANK];
    const char *chunks = option(argc, argv, "--chunk", "default");
    int deflate = (int)option_size(argc, argv, "--deflate", "0");
    int shuffle = (int)option_size(argc, argv, "--shuffle", "0");
    unsigned level = (unsigned)option_size(argc, argv, "--zstd", "0");
    int digits = (int)option_size(argc, argv, "--quantize", "0");
    size_t unlimited = option_size(argc, argv, "--unlimited", "0");
    for (int d = 0; d < rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", d);
        NC(nc_def_dim(ncid, name, d == 0 && unlimited ? NC_UNLIMITED : shape[d], &dimids[d]));
    }
    NC(nc_def_var(ncid, "v0", type, rank, dimids, &varid));
    if (sizes(chunks, chunk) == rank && chunks[0] <= '9')
        NC(nc_def_var_chunking(ncid, varid, NC_CHUNKED, chunk));
    else if (chunks[0] == 'n') NC(nc_def_var_chunking(ncid, varid, NC_CONTIGUOUS, NULL));
    if (deflate || shuffle) NC(nc_def_var_deflate(ncid, varid, shuffle, deflate > 0, deflate));
    if (level) NC(nc_def_var_filter(ncid, varid, ZSTD, 1, &level));
    if (digits) NC(nc_def_var_quantize(ncid, varid, NC_QUANTIZE_GRANULARBR, digits));
    if (!option_size(argc, argv, "--fill", "1")) NC(nc_def_var_fill(ncid, varid, NC_NOFILL, NULL));
    return varid;
}

static void data(int argc, char **argv, const char *file)
{
    size_t shape[RANK], n, total = 0, rows = option_size(argc, argv, "--rows", "7");
    if (sizes(option(argc, argv, "--shape", NULL), shape) != RANK || rows == 0) exit(2);
    const char *type = option(argc, argv, "--type", "float");
    const char *kind = option(argc, argv, "--memory", type);
    size_t size = kind[0] == 'd' ? 8 : kind[0] == 's' ? 2 : 4;
    struct slab *all = slabs(option(argc, argv, "--puts", "whole"), shape, rows, &n);
    for (size_t i = 0; i < WAVE; i++) {
        along_row[i] = 25.0 * sin((double)i * 0.013);
        along_column[i] = cos((double)i * 0.0021);
    }
    char *memory = touched(shape[0] * shape[1] * shape[2] * size), *here = memory;
    for (size_t k = 0; k < n; k++) {
        fill_memory(here, &all[k], shape, type, kind);
        here += all[k].count[0] * all[k].count[1] * all[k].count[2] * size;
    }
    here = memory;
    int ncid = create(file);
    int varid = variable(argc, argv, ncid, type[0] == 's' ? NC_SHORT : NC_FLOAT, shape, RANK);
    NC(nc_enddef(ncid));
    defined = now();
    for (size_t k = 0; k < n; k++) {
        const struct slab *s = &all[k];
        if (kind[0] == 'd') NC(nc_put_vara_double(ncid, varid, s->start, s->count, (double *)here));
        else if (kind[0] == 's') NC(nc_put_vara_short(ncid, varid, s->start, s->count, (short *)here));
        else NC(nc_put_vara_float(ncid, varid, s->start, s->count, (float *)here));
        size_t bytes = s->count[0] * s->count[1] * s->count[2] * size;
        here += bytes, total += bytes;
    }
    put = now();
    NC(nc_close(ncid));
    closed = now();
    done("data", began, total, n);
    free(memory), free(all);
}

/* ---- small puts ------------------------------------------------------------------------------- */

/* The same as table.f90. */
static void table(int argc, char **argv, const char *file)
{
    size_t n = option_size(argc, argv, "--n", "300000"), calls = 0;
    size_t slice = option_size(argc, argv, "--slice", "1");
    size_t chunk = option_size(argc, argv, "--chunk", "0"); /* 0: the default */
    double *a = touched(n * sizeof *a), *b = touched(n * sizeof *b);
    for (size_t i = 0; i < n; i++) a[i] = 0.25 * (double)(i + 1), b[i] = -0.5 * (double)(i + 1);
    int ncid = create(file), dimids[2], varids[2];
    NC(nc_def_dim(ncid, "n", n, &dimids[0]));
    NC(nc_def_dim(ncid, "time", NC_UNLIMITED, &dimids[1]));
    NC(nc_def_var(ncid, "a", NC_DOUBLE, 1, &dimids[0], &varids[0]));
    NC(nc_def_var(ncid, "b", NC_DOUBLE, 1, &dimids[1], &varids[1]));
    for (int v = 0; v < 2 && chunk; v++) NC(nc_def_var_chunking(ncid, varids[v], NC_CHUNKED, &chunk));
    NC(nc_enddef(ncid));
    defined = now();
    for (size_t i = 0; i < n; i += slice) {
        size_t count = n - i < slice ? n - i : slice;
        if (slice == 1) {
            NC(nc_put_var1_double(ncid, varids[0], &i, &a[i]));
            NC(nc_put_var1_double(ncid, varids[1], &i, &b[i]));
        } else {
            NC(nc_put_vara_double(ncid, varids[0], &i, &count, &a[i]));
            NC(nc_put_vara_double(ncid, varids[1], &i, &count, &b[i]));
        }
        calls += 2;
    }
    put = now();
    NC(nc_close(ncid));
    closed = now();
    done("table", began, 16 * n, calls);
    free(a), free(b);
}

static void one(int argc, char **argv, const char *file)
{
    size_t shape[RANK], n = option_size(argc, argv, "--n", "100000"), total = 1;
    int rank = sizes(option(argc, argv, "--shape", NULL), shape);
    int anywhere = strcmp(option(argc, argv, "--puts", "sequence"), "random") == 0;
    for (int d = 0; d < rank; d++) total *= shape[d];
    int ncid = create(file), varid = variable(argc, argv, ncid, NC_DOUBLE, shape, rank);
    NC(nc_enddef(ncid));
    uint64_t state = 7;
    defined = now();
    for (size_t k = 0; k < n; k++) {
        size_t i = anywhere ? next_random(&state) % total : k % total, at[RANK];
        double x = 0.5 * (double)k;
        for (int d = rank - 1; d >= 0; d--) at[d] = i % shape[d], i /= shape[d];
        NC(nc_put_var1_double(ncid, varid, at, &x));
    }
    put = now();
    NC(nc_close(ncid));
    closed = now();
    done("one", defined, 8 * n, n);
}

/* ---- definitions, strings --------------------------------------------------------------------- */

static void define(int argc, char **argv, const char *file)
{
    size_t n_vars = option_size(argc, argv, "--vars", "1000");
    size_t n_atts = option_size(argc, argv, "--atts", "5");
    size_t n_groups = option_size(argc, argv, "--groups", "0"), objects = 0;
    int ncid = create(file);
    for (size_t g = 0; g == 0 || g < n_groups; g++) {
        char name[32], text[16];
        int group = ncid, dimid, varid;
        snprintf(name, sizeof name, "group_%zu", g);
        if (n_groups) NC(nc_def_grp(ncid, name, &group));
        NC(nc_def_dim(group, "x", 1, &dimid));
        for (size_t v = 0; v < n_vars; v++) {
            snprintf(name, sizeof name, "variable_%zu", v);
            NC(nc_def_var(group, name, NC_FLOAT, 1, &dimid, &varid));
            for (size_t a = 0; a < n_atts; a++) {
                double x = (double)v + 0.5 * (double)a;
                snprintf(name, sizeof name, "attribute_%zu", a);
                snprintf(text, sizeof text, "%12zu", a * n_vars + v);
                if (a % 2) NC(nc_put_att_double(group, varid, name, NC_DOUBLE, 1, &x));
                else NC(nc_put_att_text(group, varid, name, 12, text));
            }
        }
        objects += 1 + n_vars * (1 + n_atts);
    }
    defined = now();
    NC(nc_enddef(ncid));
    put = now();
    NC(nc_close(ncid));
    closed = now();
    done("define", began, 0, objects);
}

static void strings(int argc, char **argv, const char *file)
{
    size_t n = option_size(argc, argv, "--n", "1000000");
    int dimid, varid;
    char **texts = malloc(n * sizeof *texts), *all = touched(n * 32);
    for (size_t i = 0; i < n; i++) {
        texts[i] = all + 32 * i;
        snprintf(texts[i], 32, "station %zu", i);
    }
    int ncid = create(file);
    NC(nc_def_dim(ncid, "n", n, &dimid));
    NC(nc_def_var(ncid, "v0", NC_STRING, 1, &dimid, &varid));
    NC(nc_enddef(ncid));
    defined = now();
    NC(nc_put_var_string(ncid, varid, (const char **)texts));
    put = now();
    NC(nc_close(ncid));
    closed = now();
    done("strings", began, 0, n);
    free(all), free(texts);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--shape", "--chunk", "--type", "--memory",
        "--deflate", "--shuffle", "--zstd", "--quantize", "--unlimited", "--fill", "--puts", "--rows",
        "--slice", "--vars", "--atts", "--groups", "--n", NULL};
    known_options(argc, argv, known);
    const char *op = option(argc, argv, "--op", NULL), *file = option(argc, argv, "--file", NULL);
    int warm;
    nc_open("", NC_NOWRITE, &warm); /* what a library sets up once is not the file's */
    if (strcmp(op, "data") == 0) data(argc, argv, file);
    else if (strcmp(op, "table") == 0) table(argc, argv, file);
    else if (strcmp(op, "one") == 0) one(argc, argv, file);
    else if (strcmp(op, "define") == 0) define(argc, argv, file);
    else if (strcmp(op, "strings") == 0) strings(argc, argv, file);
    else return 2;
    return 0;
}
