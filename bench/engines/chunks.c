/* chunks: the values of v0 as they are in the file, chunk after chunk, for the limits of writing
 * (encode.c, and the example encode_limit of zonda-chunk). Chunks over the edge are filled up with
 * zeros. What is not chunked is one chunk. */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { RANK = 3 };

static char *whole, *chunk_memory;
static size_t shape[RANK], chunk[RANK], size;

static void gather(const size_t *first)
{
    size_t bytes = chunk[2] * size, width = shape[2] - first[2] < chunk[2] ? shape[2] - first[2] : chunk[2];
    for (size_t t = 0; t < chunk[0] && first[0] + t < shape[0]; t++)
        for (size_t y = 0; y < chunk[1] && first[1] + y < shape[1]; y++) {
            size_t from = ((first[0] + t) * shape[1] + first[1] + y) * shape[2] + first[2];
            memcpy(chunk_memory + (t * chunk[1] + y) * bytes, whole + from * size, width * size);
        }
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--raw", NULL};
    known_options(argc, argv, known);
    int ncid, varid, rank, dimids[NC_MAX_VAR_DIMS], kind;
    nc_type type;
    NC(nc_open(option(argc, argv, "--file", NULL), NC_NOWRITE, &ncid));
    NC(nc_inq_varid(ncid, "v0", &varid));
    NC(nc_inq_var(ncid, varid, NULL, &type, &rank, dimids, NULL));
    NC(nc_inq_type(ncid, type, NULL, &size));
    if (rank != RANK) return 2;
    for (int d = 0; d < RANK; d++) NC(nc_inq_dimlen(ncid, dimids[d], &shape[d]));
    NC(nc_inq_var_chunking(ncid, varid, &kind, chunk));
    if (kind != NC_CHUNKED) memcpy(chunk, shape, sizeof chunk);
    size_t chunk_bytes = chunk[0] * chunk[1] * chunk[2] * size, n = 0;
    whole = touched(shape[0] * shape[1] * shape[2] * size);
    chunk_memory = touched(chunk_bytes);
    NC(nc_get_var(ncid, varid, whole));
    NC(nc_close(ncid));
    FILE *out = fopen(option(argc, argv, "--raw", NULL), "wb");
    if (!out) return 1;
    size_t first[RANK];
    for (first[0] = 0; first[0] < shape[0]; first[0] += chunk[0])
        for (first[1] = 0; first[1] < shape[1]; first[1] += chunk[1])
            for (first[2] = 0; first[2] < shape[2]; first[2] += chunk[2], n++) {
                memset(chunk_memory, 0, chunk_bytes);
                gather(first);
                if (fwrite(chunk_memory, 1, chunk_bytes, out) != chunk_bytes) return 1;
            }
    if (fclose(out) != 0) return 1;
    char params[80];
    snprintf(params, sizeof params, "{\"chunk_bytes\": %zu, \"elem\": %zu}", chunk_bytes, size);
    result("chunks", params, 0, n * chunk_bytes, n, NULL);
    return 0;
}
