/* remote: one open of a file that may be behind a server, in a process that has opened nothing before.
 *
 * --op header    open, everything there is to ask of the root group with all values of attributes, close
 * --op variable  open, the whole of --var, close
 * --op all       open, the whole of each variable of the root group, close
 *
 * The clock runs from the open to the end of the close; what of it the open and the calls of nc_get_var take is in "params". Memory for
 * values is touched within it, as in a program that learns how much it needs; for all peers alike. The digest is of what was read.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

/* Seconds within nc_get_var. */
static double reading;

static uint64_t attributes(int ncid, int varid, int natts, uint64_t digest)
{
    for (int a = 0; a < natts; a++) {
        char name[NC_MAX_NAME + 1];
        nc_type type;
        size_t len, size;
        NC(nc_inq_attname(ncid, varid, a, name));
        NC(nc_inq_att(ncid, varid, name, &type, &len));
        if (type == NC_STRING || type > NC_STRING) continue;
        NC(nc_inq_type(ncid, type, NULL, &size));
        char *value = touched(len * size);
        NC(nc_get_att(ncid, varid, name, value));
        digest = digest_bytes(digest_text(digest, name), value, len * size);
        free(value);
    }
    return digest;
}

static uint64_t variable(int ncid, int varid, size_t *bytes, uint64_t digest)
{
    int rank, dimids[NC_MAX_VAR_DIMS];
    nc_type type;
    size_t n, size;
    NC(nc_inq_var(ncid, varid, NULL, &type, &rank, dimids, NULL));
    NC(nc_inq_type(ncid, type, NULL, &size));
    n = size;
    for (int d = 0; d < rank; d++) {
        size_t len;
        NC(nc_inq_dimlen(ncid, dimids[d], &len));
        n *= len;
    }
    char *value = touched(n);
    double began = now();
    NC(nc_get_var(ncid, varid, value));
    reading += now() - began;
    digest = digest_bytes(digest, value, n);
    free(value);
    *bytes += n;
    return digest;
}

int main(int argc, char **argv)
{
    known_options(argc, argv, (const char *const[]){"--file", "--op", "--var", NULL});
    const char *file = option(argc, argv, "--file", NULL), *op = option(argc, argv, "--op", NULL);
    const char *var = option(argc, argv, "--var", "");
    uint64_t digest = DIGEST_START;
    size_t bytes = 0;
    int ncid, varid, ndims, nvars, natts;
    double began = now(), opened = 0;
    char parts[64];
    NC(nc_open(file, NC_NOWRITE, &ncid));
    NC(nc_inq(ncid, &ndims, &nvars, &natts, NULL));
    opened = now();
    if (op[0] == 'h') {
        for (int d = 0; d < ndims; d++) {
            char name[NC_MAX_NAME + 1];
            size_t len;
            NC(nc_inq_dim(ncid, d, name, &len));
            digest = digest_word(digest_text(digest, name), len);
        }
        digest = attributes(ncid, NC_GLOBAL, natts, digest);
        for (varid = 0; varid < nvars; varid++) {
            char name[NC_MAX_NAME + 1];
            nc_type type;
            int rank, dimids[NC_MAX_VAR_DIMS];
            NC(nc_inq_var(ncid, varid, name, &type, &rank, dimids, &natts));
            digest = digest_word(digest_text(digest, name), (uint64_t)(type * 64 + rank));
            digest = attributes(ncid, varid, natts, digest);
        }
    } else if (op[0] == 'v') {
        NC(nc_inq_varid(ncid, var, &varid));
        digest = variable(ncid, varid, &bytes, digest);
    } else {
        for (varid = 0; varid < nvars; varid++) digest = variable(ncid, varid, &bytes, digest);
    }
    NC(nc_close(ncid));
    snprintf(parts, sizeof parts, "{\"open\": %.9f, \"get\": %.9f}", opened - began, reading);
    result(op, parts, now() - began, bytes, 1, &digest);
    return 0;
}
