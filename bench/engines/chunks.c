/* chunks: the values of --var (v0; or several of one shape, a,b) as they are in the file, chunk after
 * chunk, for the limits of writing (encode.c, and the example encode_limit of zonda-chunk). Chunks over
 * the edge are filled up with zeros. What is not chunked is one chunk. At most three dimensions. */
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

/* Writes the chunks of one variable; gives how many there are. */
static size_t chunks_of(int ncid, const char *name, FILE *out, size_t *chunk_bytes)
{
    int varid, rank, dimids[NC_MAX_VAR_DIMS], kind;
    nc_type type;
    NC(nc_inq_varid(ncid, name, &varid));
    NC(nc_inq_var(ncid, varid, NULL, &type, &rank, dimids, NULL));
    NC(nc_inq_type(ncid, type, NULL, &size));
    if (rank < 1 || rank > RANK) exit(2);
    /* Dimensions that are lacking are the first ones, of length one. */
    size_t skip = RANK - (size_t)rank, n = 0;
    for (size_t d = 0; d < RANK; d++) shape[d] = chunk[d] = 1;
    for (int d = 0; d < rank; d++) NC(nc_inq_dimlen(ncid, dimids[d], &shape[skip + (size_t)d]));
    NC(nc_inq_var_chunking(ncid, varid, &kind, chunk + skip));
    if (kind != NC_CHUNKED) memcpy(chunk, shape, sizeof chunk);
    *chunk_bytes = chunk[0] * chunk[1] * chunk[2] * size;
    whole = touched(shape[0] * shape[1] * shape[2] * size);
    chunk_memory = touched(*chunk_bytes);
    NC(nc_get_var(ncid, varid, whole));
    size_t first[RANK];
    for (first[0] = 0; first[0] < shape[0]; first[0] += chunk[0])
        for (first[1] = 0; first[1] < shape[1]; first[1] += chunk[1])
            for (first[2] = 0; first[2] < shape[2]; first[2] += chunk[2], n++) {
                memset(chunk_memory, 0, *chunk_bytes);
                gather(first);
                if (fwrite(chunk_memory, 1, *chunk_bytes, out) != *chunk_bytes) exit(1);
            }
    free(whole), free(chunk_memory);
    return n;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--raw", "--var", NULL};
    known_options(argc, argv, known);
    int ncid;
    size_t n = 0, chunk_bytes = 0, before = 0;
    NC(nc_open(option(argc, argv, "--file", NULL), NC_NOWRITE, &ncid));
    FILE *out = fopen(option(argc, argv, "--raw", NULL), "wb");
    if (!out) return 1;
    char *names = strdup(option(argc, argv, "--var", "v0")), *rest = names;
    for (char *name; (name = strtok_r(rest, ",", &rest)); before = chunk_bytes) {
        n += chunks_of(ncid, name, out, &chunk_bytes);
        if (before && before != chunk_bytes) return 2;
    }
    NC(nc_close(ncid));
    if (fclose(out) != 0) return 1;
    char params[80];
    snprintf(params, sizeof params, "{\"chunk_bytes\": %zu, \"elem\": %zu}", chunk_bytes, size);
    result("chunks", params, 0, n * chunk_bytes, n, NULL);
    free(names);
    return 0;
}
