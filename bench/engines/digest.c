/* digest: one number for all that a netCDF file means: dimensions, variables, attributes, values; of
 * netCDF-4 also groups, strings and, with --settings 1, how each variable is stored: chunks, filters,
 * fill mode.
 *
 * The programs of bench run it on the distribution's library over files that other libraries wrote;
 * equal digests mean equal files, whatever their layout. Values are read in the type they have in the
 * file, some megabytes at a time; --cache says how many megabytes of decoded chunks may be kept for
 * it (256): fewer than a file in series has, and they are decoded again for each piece.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"
#include <netcdf_filter.h>

enum { PIECE = 4 * 1024 * 1024, MB = 1024 * 1024, MOST_FILTERS = 32 };

static int settings;
static size_t bytes, n_vars, cache;

static uint64_t texts(uint64_t h, nc_type type, char *values, size_t n, size_t size)
{
    if (type != NC_STRING) return digest_bytes(h, values, n * size);
    char **list = (char **)values;
    for (size_t i = 0; i < n; i++) h = digest_text(h, list[i] ? list[i] : "(none)");
    NC(nc_free_string(n, list));
    return h;
}

static uint64_t attributes(uint64_t h, int ncid, int varid, int natts)
{
    for (int i = 0; i < natts; i++) {
        char name[NC_MAX_NAME + 1];
        nc_type type;
        size_t len, size;
        NC(nc_inq_attname(ncid, varid, i, name));
        NC(nc_inq_att(ncid, varid, name, &type, &len));
        NC(nc_inq_type(ncid, type, NULL, &size));
        char *value = touched(len * size);
        NC(nc_get_att(ncid, varid, name, value));
        h = texts(digest_word(digest_text(h, name), (uint64_t)type), type, value, len, size);
        free(value);
    }
    return h;
}

static uint64_t storage(uint64_t h, int ncid, int varid, int rank)
{
    int kind, no_fill;
    size_t chunk[NC_MAX_VAR_DIMS], n_filters = 0, n_params;
    unsigned ids[MOST_FILTERS], params[MOST_FILTERS];
    NC(nc_inq_var_fill(ncid, varid, &no_fill, NULL));
    NC(nc_inq_var_chunking(ncid, varid, &kind, chunk));
    h = digest_word(h, (uint64_t)(no_fill != 0) + 10 * (uint64_t)kind);
    for (int d = 0; d < rank && kind == NC_CHUNKED; d++) h = digest_word(h, chunk[d]);
    NC(nc_inq_var_filter_ids(ncid, varid, &n_filters, NULL));
    if (n_filters > MOST_FILTERS) exit(1);
    NC(nc_inq_var_filter_ids(ncid, varid, &n_filters, ids));
    for (size_t f = 0; f < n_filters; f++) {
        NC(nc_inq_var_filter_info(ncid, varid, ids[f], &n_params, NULL));
        if (n_params > MOST_FILTERS) exit(1);
        NC(nc_inq_var_filter_info(ncid, varid, ids[f], &n_params, params));
        h = digest_bytes(digest_word(h, ids[f]), params, n_params * sizeof *params);
    }
    return h;
}

static uint64_t variable(uint64_t h, int ncid, int v, int netcdf4)
{
    char name[NC_MAX_NAME + 1];
    nc_type type;
    int rank, dimids[NC_MAX_VAR_DIMS], own;
    size_t size, start[NC_MAX_VAR_DIMS] = {0}, count[NC_MAX_VAR_DIMS], row = 1, rows = 1;
    NC(nc_inq_var(ncid, v, name, &type, &rank, dimids, &own));
    NC(nc_inq_type(ncid, type, NULL, &size));
    h = digest_word(digest_text(h, name), (uint64_t)type);
    for (int d = 0; d < rank; d++) {
        NC(nc_inq_dimlen(ncid, dimids[d], &count[d]));
        h = digest_word(h, (uint64_t)dimids[d]);
        if (d == 0) rows = count[0];
        else row *= count[d];
    }
    h = attributes(h, ncid, v, own);
    if (netcdf4 && settings) h = storage(h, ncid, v, rank);
    n_vars++;
    if (rows * row == 0) return h;
    if (netcdf4 && rows * row > 1) NC(nc_set_var_chunk_cache(ncid, v, cache, 10007, 0.75f));

    /* Pieces of whole rows of the first dimension, a number of them that fits. */
    size_t piece = PIECE / (row * size);
    if (piece == 0) piece = 1;
    if (piece > rows) piece = rows;
    char *values = touched(piece * row * size);
    for (size_t r = 0; r < rows; r += piece) {
        size_t m = rows - r < piece ? rows - r : piece;
        if (rank > 0) start[0] = r, count[0] = m;
        NC(nc_get_vara(ncid, v, start, count, values));
        h = texts(h, type, values, m * row, size);
        bytes += m * row * size;
    }
    free(values);
    return h;
}

static uint64_t group(uint64_t h, int ncid, int netcdf4)
{
    int ndims, nvars, natts, unlimited, n_groups = 0, n_own = 0;
    char name[NC_MAX_NAME + 1];
    NC(nc_inq(ncid, &ndims, &nvars, &natts, &unlimited));
    h = digest_word(h, (uint64_t)(unlimited + 1));
    int *dims = touched((size_t)(ndims + 1) * sizeof *dims);
    NC(nc_inq_dimids(ncid, &n_own, dims, 0));
    for (int d = 0; d < n_own; d++) {
        size_t len;
        NC(nc_inq_dim(ncid, dims[d], name, &len));
        h = digest_word(digest_text(h, name), len);
    }
    free(dims);
    h = attributes(h, ncid, NC_GLOBAL, natts);
    for (int v = 0; v < nvars; v++) h = variable(h, ncid, v, netcdf4);
    if (!netcdf4) return h;

    NC(nc_inq_grps(ncid, &n_groups, NULL));
    int *groups = touched(((size_t)n_groups + 1) * sizeof *groups);
    NC(nc_inq_grps(ncid, &n_groups, groups));
    for (int g = 0; g < n_groups; g++) {
        NC(nc_inq_grpname(groups[g], name));
        h = group(digest_text(h, name), groups[g], netcdf4);
    }
    free(groups);
    return h;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--settings", "--cache", NULL};
    known_options(argc, argv, known);
    int ncid, format;
    settings = option_size(argc, argv, "--settings", "0") != 0;
    cache = option_size(argc, argv, "--cache", "256") * MB;
    double from = now();
    NC(nc_open(option(argc, argv, "--file", NULL), NC_NOWRITE, &ncid));
    NC(nc_inq_format(ncid, &format));
    uint64_t h = digest_word(DIGEST_START, (uint64_t)format);
    h = group(h, ncid, format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC);
    NC(nc_close(ncid));
    result("digest", "{}", now() - from, bytes, n_vars, &h);
    return 0;
}
