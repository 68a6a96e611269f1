/* arrays: one variable written or read whole, in one call, for one pair of types or for all.
 *
 * --op write   from nc_put_var to the end of nc_close (what is buffered belongs to the write)
 * --op read    the call to nc_get_var, from the files that --op input made
 * --external all: each type in the file with each in memory. A line's digest is over the values as
 * they are in the file (write) or in memory (read).
 */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "engine.h"

enum { XTYPE_double = NC_DOUBLE, XTYPE_float = NC_FLOAT, XTYPE_short = NC_SHORT, XTYPE_int = NC_INT,
       XTYPE_byte = NC_BYTE, XTYPE_char = NC_CHAR, XTYPE_ubyte = NC_UBYTE, XTYPE_ushort = NC_USHORT,
       XTYPE_uint = NC_UINT, XTYPE_int64 = NC_INT64, XTYPE_uint64 = NC_UINT64 };

typedef struct {
    const char *external, *internal;
    nc_type type;
    size_t external_size, internal_size;
    void (*fill)(void *, size_t);
    int (*put)(int, int, const void *);
    int (*get)(int, int, void *);
} Pair;

#define DEFINE(ext, ext_c, mem, mem_c, suffix)                                                     \
    static void fill_##ext##_##mem(void *to, size_t n)                                             \
    {                                                                                              \
        mem_c *values = to;                                                                        \
        for (size_t i = 0; i < n; i++) values[i] = (mem_c)pattern(i);                              \
    }                                                                                              \
    static int put_##ext##_##mem(int ncid, int varid, const void *values)                          \
    {                                                                                              \
        return nc_put_var_##suffix(ncid, varid, values);                                           \
    }                                                                                              \
    static int get_##ext##_##mem(int ncid, int varid, void *values)                                \
    {                                                                                              \
        return nc_get_var_##suffix(ncid, varid, values);                                           \
    }
FOR_EACH_PAIR(DEFINE)

#define ENTRY(ext, ext_c, mem, mem_c, suffix)                                                      \
    {#ext, #mem, XTYPE_##ext, sizeof(ext_c), sizeof(mem_c), fill_##ext##_##mem, put_##ext##_##mem, \
     get_##ext##_##mem},
static const Pair pairs[] = {FOR_EACH_PAIR(ENTRY)};

/* Digest of the last `n` bytes of a file: those of its only variable. */
static uint64_t digest_end(const char *file, size_t n)
{
    FILE *in = fopen(file, "rb");
    char *bytes = touched(n);
    int found = in && fseek(in, -(long)n, SEEK_END) == 0 && fread(bytes, 1, n, in) == n;
    if (!found || fclose(in) != 0) {
        perror(file);
        exit(1);
    }
    uint64_t sum = digest_bytes(DIGEST_START, bytes, n);
    free(bytes);
    return sum;
}

/* Writes the file of a pair; gives the seconds from the put on. */
static double put(const Pair *p, const char *file, int flag, const void *values, size_t n)
{
    int ncid, dimid, varid;
    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    NC(nc_def_dim(ncid, "n", n, &dimid));
    NC(nc_def_var(ncid, "v", p->type, 1, &dimid, &varid));
    NC(nc_enddef(ncid));
    double from = now();
    NC(p->put(ncid, varid, values));
    NC(nc_close(ncid));
    return now() - from;
}

static double get(const Pair *p, const char *file, void *values, size_t n)
{
    int ncid, varid;
    size_t len;
    NC(nc_open(file, NC_NOWRITE, &ncid));
    NC(nc_inq_varid(ncid, "v", &varid));
    NC(nc_inq_dimlen(ncid, 0, &len));
    if (len != n) {
        fprintf(stderr, "arrays: %s holds %zu values, not %zu\n", file, len, n);
        exit(1);
    }
    double from = now();
    NC(p->get(ncid, varid, values));
    double seconds = now() - from;
    NC(nc_close(ncid));
    return seconds;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--external", "--internal", "--mb",
                                        "--format", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL), *op = option(argc, argv, "--op", NULL);
    const char *external = option(argc, argv, "--external", NULL);
    const char *internal = option(argc, argv, "--internal", "all");
    int flag = format_flag(argc, argv), some = 0, all = strcmp(external, "all") == 0;
    int input = strcmp(op, "input") == 0, writing = strcmp(op, "write") == 0;
    if (!input && !writing && strcmp(op, "read") != 0) {
        fprintf(stderr, "arrays: --op is write, read or input\n");
        return 2;
    }

    for (const Pair *p = pairs; p < pairs + sizeof pairs / sizeof pairs[0]; p++) {
        if (!wanted(external, internal, p->external, p->internal)) continue;
        /* One file of each type is read by all pairs with that type. */
        if (input && some && p->type == p[-1].type) continue;
        size_t n = option_size(argc, argv, "--mb", "64") * 1000000 / p->external_size;
        char path[4096], name[64] = "", params[200];
        snprintf(path, sizeof path, "%s%s%s", file, all ? "." : "", all ? p->external : "");
        if (all) snprintf(name, sizeof name, " %s and %s", p->external, p->internal);
        snprintf(params, sizeof params, "{\"external\": \"%s\", \"internal\": \"%s\", "
                 "\"values\": %zu}", p->external, p->internal, n);
        void *values = touched(n * p->internal_size);
        char workload[100];
        snprintf(workload, sizeof workload, "array %s%s", op, name);
        double seconds;
        uint64_t sum;
        if (input || writing) {
            p->fill(values, n);
            if (all) unlink(path);
            seconds = put(p, path, flag, values, n);
            sum = digest_end(path, n * p->external_size);
        } else {
            seconds = get(p, path, values, n);
            sum = digest_bytes(DIGEST_START, values, n * p->internal_size);
        }
        if (!input) result(workload, params, seconds, n * p->external_size, 1, &sum);
        if (writing && all) unlink(path); /* the next of this name finds freed pages */
        free(values);
        some = 1;
    }
    if (!some) fprintf(stderr, "arrays: no such pair of types\n");
    return some ? 0 : 2;
}
