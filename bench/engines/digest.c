/* digest: one number for all that a netCDF file means: dimensions, variables, attributes, values.
 *
 * bench/run.py runs it on the distribution's library over files that other libraries wrote; equal
 * digests mean equal files, whatever their layout. Values are read in the type they have in the
 * file, some megabytes at a time.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { PIECE = 4 * 1024 * 1024 };

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
        h = digest_bytes(digest_word(digest_text(h, name), (uint64_t)type), value, len * size);
        free(value);
    }
    return h;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", NULL};
    known_options(argc, argv, known);
    int ncid, ndims, nvars, natts, unlimited, format;
    NC(nc_open(option(argc, argv, "--file", NULL), NC_NOWRITE, &ncid));
    NC(nc_inq(ncid, &ndims, &nvars, &natts, &unlimited));
    NC(nc_inq_format(ncid, &format));
    uint64_t h = digest_word(digest_word(DIGEST_START, (uint64_t)format), (uint64_t)(unlimited + 1));
    size_t bytes = 0;
    double from = now();

    for (int d = 0; d < ndims; d++) {
        char name[NC_MAX_NAME + 1];
        size_t len;
        NC(nc_inq_dim(ncid, d, name, &len));
        h = digest_word(digest_text(h, name), len);
    }
    h = attributes(h, ncid, NC_GLOBAL, natts);

    for (int v = 0; v < nvars; v++) {
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
        if (rows * row == 0) continue;

        /* Pieces of whole rows of the first dimension, a number of them that fits. */
        size_t piece = PIECE / (row * size);
        if (piece == 0) piece = 1;
        if (piece > rows) piece = rows;
        char *values = touched(piece * row * size);
        for (size_t r = 0; r < rows; r += piece) {
            size_t m = rows - r < piece ? rows - r : piece;
            if (rank > 0) start[0] = r, count[0] = m;
            NC(nc_get_vara(ncid, v, start, count, values));
            h = digest_bytes(h, values, m * row * size);
            bytes += m * row * size;
        }
        free(values);
    }
    NC(nc_close(ncid));
    result("digest", "{}", now() - from, bytes, (size_t)nvars, &h);
    return 0;
}
