/* make4: netCDF-4 files for the reading benchmarks, written by whatever library it runs on.
 *
 * --set data     one variable per name in --vars (v0, v1, ...) over dimensions d0, d1, ... of
 *                --shape, in chunks of --chunk ("none": contiguous). --type float, double or short;
 *                --deflate LEVEL, --shuffle 0|1, --filter none, zstd or blosc; --data smooth (a wave
 *                with noise in the low bits), rounded (the same with 12 bits of mantissa) or flat
 * --set many     --vars variables of one element with --atts attributes each, in --groups groups
 * --set strings  one variable of --n strings
 * --set chunks   one variable of --n chunks of one byte each
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"
#include <math.h>
#include <netcdf_filter.h>

enum { RANK = 4, PIECE = 64 << 20 };

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

static double value(const char *data, size_t i, size_t row)
{
    if (data[0] == 'f') return 1.5;
    double x = (double)(i % row), y = (double)(i / row);
    uint64_t state = i;
    double noise = (double)(next_random(&state) >> 40) / 16777216.0 - 0.5;
    return 280.0 + 25.0 * sin(x * 0.013) * cos(y * 0.0021) + 0.02 * noise;
}

static void put_slab(int ncid, int varid, const char *type, const char *data, const size_t *start,
                     const size_t *count, size_t from, size_t n, size_t row, void *memory)
{
    int rounded = data[0] == 'r';
    if (type[0] == 's') {
        short *out = memory;
        for (size_t i = 0; i < n; i++) out[i] = (short)((value(data, from + i, row) - 280.0) * 100);
    } else if (type[0] == 'd') {
        double *out = memory;
        for (size_t i = 0; i < n; i++) out[i] = value(data, from + i, row);
    } else {
        float *out = memory;
        for (size_t i = 0; i < n; i++) {
            out[i] = (float)value(data, from + i, row);
            uint32_t bits;
            memcpy(&bits, &out[i], 4);
            if (rounded) bits &= 0xfffff000u;
            memcpy(&out[i], &bits, 4);
        }
    }
    NC(nc_put_vara(ncid, varid, start, count, memory));
}

static void make_data(int argc, char **argv, int ncid)
{
    size_t shape[RANK], chunk[RANK];
    int rank = sizes(option(argc, argv, "--shape", NULL), shape), dimids[RANK];
    const char *chunks = option(argc, argv, "--chunk", "none");
    const char *type = option(argc, argv, "--type", "float");
    const char *filter = option(argc, argv, "--filter", "none");
    const char *data = option(argc, argv, "--data", "smooth");
    size_t n_vars = option_size(argc, argv, "--vars", "1");
    int deflate = (int)option_size(argc, argv, "--deflate", "0");
    int shuffle = (int)option_size(argc, argv, "--shuffle", "0");
    nc_type nc = type[0] == 's' ? NC_SHORT : type[0] == 'd' ? NC_DOUBLE : NC_FLOAT;
    size_t size = type[0] == 's' ? 2 : type[0] == 'd' ? 8 : 4, row = 1, chunk_rows = 1;
    for (int d = 0; d < rank; d++) {
        char name[8];
        snprintf(name, sizeof name, "d%d", d);
        NC(nc_def_dim(ncid, name, shape[d], &dimids[d]));
        if (d > 0) row *= shape[d];
    }
    for (size_t v = 0; v < n_vars; v++) {
        char name[24];
        int varid;
        snprintf(name, sizeof name, "v%zu", v);
        NC(nc_def_var(ncid, name, nc, rank, dimids, &varid));
        if (chunks[0] != 'n') {
            sizes(chunks, chunk);
            chunk_rows = chunk[0];
            NC(nc_def_var_chunking(ncid, varid, NC_CHUNKED, chunk));
            NC(nc_set_var_chunk_cache(ncid, varid, (size_t)512 << 20, 100003, 1.0f));
        }
        if (deflate || shuffle) NC(nc_def_var_deflate(ncid, varid, shuffle, deflate > 0, deflate));
        unsigned level = 3, blosc[7] = {0, 0, 0, 0, 5, 1, 1};
        if (strcmp(filter, "zstd") == 0) NC(nc_def_var_filter(ncid, varid, 32015, 1, &level));
        if (strcmp(filter, "blosc") == 0) NC(nc_def_var_filter(ncid, varid, 32001, 7, blosc));
        NC(nc_def_var_fill(ncid, varid, NC_NOFILL, NULL));
    }
    NC(nc_enddef(ncid));
    /* Whole rows of chunks, so that each chunk is compressed once. */
    size_t rows = PIECE / (row * size) / chunk_rows * chunk_rows;
    if (rows < chunk_rows) rows = chunk_rows;
    if (rows > shape[0]) rows = shape[0];
    void *memory = touched(rows * row * size);
    for (size_t v = 0; v < n_vars; v++)
        for (size_t r = 0; r < shape[0]; r += rows) {
            size_t start[RANK] = {r}, count[RANK];
            memcpy(count, shape, sizeof count);
            count[0] = shape[0] - r < rows ? shape[0] - r : rows;
            put_slab(ncid, (int)v, type, data, start, count, r * row, count[0] * row,
                     shape[rank - 1], memory);
        }
    free(memory);
}

static void make_many(int argc, char **argv, int ncid)
{
    size_t n_vars = option_size(argc, argv, "--vars", "1000");
    size_t n_atts = option_size(argc, argv, "--atts", "5");
    size_t n_groups = option_size(argc, argv, "--groups", "0");
    for (size_t g = 0; g == 0 || g < n_groups; g++) {
        char name[32];
        int group = ncid, dimid, varid;
        snprintf(name, sizeof name, "group_%zu", g);
        if (n_groups) NC(nc_def_grp(ncid, name, &group));
        NC(nc_def_dim(group, "x", 1, &dimid));
        for (size_t v = 0; v < n_vars; v++) {
            snprintf(name, sizeof name, "variable_%zu", v);
            NC(nc_def_var(group, name, NC_FLOAT, 1, &dimid, &varid));
            for (size_t a = 0; a < n_atts; a++) {
                snprintf(name, sizeof name, "attribute_%zu", a);
                NC(nc_put_att_text(group, varid, name, 12, "twelve bytes"));
            }
        }
    }
}

static void make_strings(int argc, char **argv, int ncid)
{
    size_t n = option_size(argc, argv, "--n", "1000000");
    int dimid, varid;
    NC(nc_def_dim(ncid, "n", n, &dimid));
    NC(nc_def_var(ncid, "v0", NC_STRING, 1, &dimid, &varid));
    NC(nc_enddef(ncid));
    char **texts = malloc(n * sizeof *texts), *all = malloc(n * 32);
    for (size_t i = 0; i < n; i++) {
        texts[i] = all + 32 * i;
        snprintf(texts[i], 32, "station %zu", i);
    }
    NC(nc_put_var_string(ncid, varid, (const char **)texts));
    free(all);
    free(texts);
}

static void make_chunks(int argc, char **argv, int ncid)
{
    size_t n = option_size(argc, argv, "--n", "100000"), chunk = 1;
    int dimid, varid;
    NC(nc_def_dim(ncid, "n", NC_UNLIMITED, &dimid));
    NC(nc_def_var(ncid, "v0", NC_BYTE, 1, &dimid, &varid));
    NC(nc_def_var_chunking(ncid, varid, NC_CHUNKED, &chunk));
    NC(nc_set_var_chunk_cache(ncid, varid, (size_t)64 << 20, 1000003, 1.0f));
    NC(nc_enddef(ncid));
    signed char *bytes = touched(n);
    for (size_t i = 0; i < n; i++) bytes[i] = (signed char)(i % 100);
    size_t start = 0;
    NC(nc_put_vara_schar(ncid, varid, &start, &n, bytes));
    free(bytes);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--set", "--shape", "--chunk", "--type",
        "--deflate", "--shuffle", "--filter", "--data", "--vars", "--atts", "--groups", "--n", NULL};
    known_options(argc, argv, known);
    const char *set = option(argc, argv, "--set", "data");
    int ncid, old;
    NC(nc_create(option(argc, argv, "--file", NULL), NC_CLOBBER | NC_NETCDF4, &ncid));
    NC(nc_set_fill(ncid, NC_NOFILL, &old));
    if (strcmp(set, "many") == 0) make_many(argc, argv, ncid);
    else if (strcmp(set, "strings") == 0) make_strings(argc, argv, ncid);
    else if (strcmp(set, "chunks") == 0) make_chunks(argc, argv, ncid);
    else make_data(argc, argv, ncid);
    NC(nc_close(ncid));
    return 0;
}
