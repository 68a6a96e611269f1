/* edit4: one small change of a netCDF-4 file that is there, from nc_open to the end of nc_close.
 *
 *   --op append     one record more of `v`
 *   --op attribute  another text, as long as the old one, for `units` of `v`
 *   --op variable   a variable more, `added`, of one dimension
 *
 * Before that, `--make`:
 *   chunks          `v`: --n records of 64 floats, each a chunk
 *   sparse          `v`: 10 GB in one run, of which the last element was put
 *   variables       --n variables of one dimension
 *
 * With `--check 1` it does not change, but says by its digest what is there of what is changed and
 * beside it. */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { WIDTH = 64 };
#define SPARSE 2500000000u

static void make(const char *file, const char *what, size_t n)
{
    int nc, dims[2], v;
    size_t chunk[2] = {1, WIDTH};
    float row[WIDTH], one = 1;
    NC(nc_create(file, NC_NETCDF4, &nc));
    if (strcmp(what, "chunks") == 0) {
        NC(nc_def_dim(nc, "time", NC_UNLIMITED, &dims[0]));
        NC(nc_def_dim(nc, "x", WIDTH, &dims[1]));
        NC(nc_def_var(nc, "v", NC_FLOAT, 2, dims, &v));
        NC(nc_def_var_chunking(nc, v, NC_CHUNKED, chunk));
        NC(nc_enddef(nc));
        for (size_t r = 0; r < n; r++) {
            for (int i = 0; i < WIDTH; i++) row[i] = (float)r + 0.5f * (float)i;
            NC(nc_put_vara_float(nc, v, (size_t[]){r, 0}, (size_t[]){1, WIDTH}, row));
        }
    } else if (strcmp(what, "sparse") == 0) {
        NC(nc_def_dim(nc, "x", SPARSE, &dims[0]));
        NC(nc_def_var(nc, "v", NC_FLOAT, 1, dims, &v));
        NC(nc_def_var_fill(nc, v, NC_NOFILL, NULL));
        NC(nc_put_att_text(nc, v, "units", 10, "0123456789"));
        NC(nc_enddef(nc));
        NC(nc_put_var1_float(nc, v, (size_t[]){SPARSE - 1}, &one));
    } else {
        char name[32];
        NC(nc_def_dim(nc, "x", 10, &dims[0]));
        for (size_t i = 0; i < n; i++) {
            snprintf(name, sizeof name, "v%05zu", i);
            NC(nc_def_var(nc, name, NC_FLOAT, 1, dims, &v));
        }
    }
    NC(nc_close(nc));
}

static void change(const char *file, const char *op)
{
    int nc, v, dim;
    float row[WIDTH];
    NC(nc_open(file, NC_WRITE, &nc));
    if (strcmp(op, "append") == 0) {
        size_t len;
        NC(nc_inq_dimid(nc, "time", &dim));
        NC(nc_inq_dimlen(nc, dim, &len));
        NC(nc_inq_varid(nc, "v", &v));
        for (int i = 0; i < WIDTH; i++) row[i] = -1.5f * (float)i;
        NC(nc_put_vara_float(nc, v, (size_t[]){len, 0}, (size_t[]){1, WIDTH}, row));
    } else if (strcmp(op, "attribute") == 0) {
        NC(nc_inq_varid(nc, "v", &v));
        NC(nc_put_att_text(nc, v, "units", 10, "9876543210"));
    } else {
        NC(nc_redef(nc));
        NC(nc_inq_dimid(nc, "x", &dim));
        NC(nc_def_var(nc, "added", NC_FLOAT, 1, &dim, &v));
        NC(nc_enddef(nc));
    }
    NC(nc_close(nc));
}

/* What is changed, and some of what is not. */
static uint64_t check(const char *file, const char *op)
{
    int nc, v, n;
    uint64_t h = DIGEST_START;
    char text[NC_MAX_NAME + 1];
    NC(nc_open(file, NC_NOWRITE, &nc));
    NC(nc_inq_nvars(nc, &n));
    if (strcmp(op, "append") == 0) {
        size_t len;
        int dims[2];
        NC(nc_inq_varid(nc, "v", &v));
        NC(nc_inq_vardimid(nc, v, dims));
        NC(nc_inq_dimlen(nc, dims[0], &len));
        float *all = malloc(len * WIDTH * sizeof *all);
        NC(nc_get_var_float(nc, v, all));
        h = digest_bytes(digest_word(h, len), all, len * WIDTH * sizeof *all);
        free(all);
    } else if (strcmp(op, "attribute") == 0) {
        float last;
        NC(nc_inq_varid(nc, "v", &v));
        NC(nc_get_att_text(nc, v, "units", text));
        NC(nc_get_var1_float(nc, v, (size_t[]){SPARSE - 1}, &last));
        h = digest_bytes(digest_word(h, (uint64_t)last), text, 10);
    } else {
        for (v = 0; v < n; v++) {
            NC(nc_inq_varname(nc, v, text));
            h = digest_text(h, text);
        }
    }
    NC(nc_close(nc));
    return h;
}

int main(int argc, char **argv)
{
    known_options(argc, argv, (const char *const[]){"--file", "--op", "--make", "--n", "--check", NULL});
    const char *file = option(argc, argv, "--file", NULL), *op = option(argc, argv, "--op", "");
    const char *what = option(argc, argv, "--make", "");
    double start = now();
    if (*what) {
        make(file, what, option_size(argc, argv, "--n", "1"));
        result("make", "{}", now() - start, 0, 1, NULL);
    } else if (option_size(argc, argv, "--check", "0")) {
        uint64_t h = check(file, op);
        result("check", "{}", now() - start, 0, 1, &h);
    } else {
        change(file, op);
        result(op, "{}", now() - start, 0, 1, NULL);
    }
    return 0;
}
