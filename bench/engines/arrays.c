/* arrays: one variable written or read whole, in one call, for each pair of types.
 *
 * write: from nc_put_var to the end of nc_close (what is buffered belongs to the write).
 * read: the call to nc_get_var; the file must be there.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { XTYPE_double = NC_DOUBLE, XTYPE_float = NC_FLOAT, XTYPE_short = NC_SHORT,
       XTYPE_int = NC_INT, XTYPE_byte = NC_BYTE, XTYPE_char = NC_CHAR };

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

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--external", "--internal", "--mb",
                                        "--format", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL), *op = option(argc, argv, "--op", NULL);
    const char *external = option(argc, argv, "--external", NULL);
    const char *internal = option(argc, argv, "--internal", NULL);
    int flag = format_flag(argc, argv);

    const Pair *p = pairs, *end = pairs + sizeof pairs / sizeof pairs[0];
    while (p < end && (strcmp(p->external, external) || strcmp(p->internal, internal))) p++;
    if (p == end || (strcmp(op, "write") && strcmp(op, "read"))) {
        fprintf(stderr, "arrays: no such pair of types, or --op is neither write nor read\n");
        return 2;
    }
    size_t n = option_size(argc, argv, "--mb", "64") * 1000000 / p->external_size;
    void *values = touched(n * p->internal_size);
    char params[200];
    snprintf(params, sizeof params, "{\"external\": \"%s\", \"internal\": \"%s\", \"values\": %zu}",
             external, internal, n);

    int ncid, dimid, varid;
    if (strcmp(op, "write") == 0) {
        p->fill(values, n);
        NC(nc_create(file, NC_CLOBBER | flag, &ncid));
        NC(nc_set_fill(ncid, NC_NOFILL, NULL));
        NC(nc_def_dim(ncid, "n", n, &dimid));
        NC(nc_def_var(ncid, "v", p->type, 1, &dimid, &varid));
        NC(nc_enddef(ncid));
        double from = now();
        NC(p->put(ncid, varid, values));
        NC(nc_close(ncid));
        result("array write", params, now() - from, n * p->external_size, 1, NULL);
    } else {
        size_t len;
        NC(nc_open(file, NC_NOWRITE, &ncid));
        NC(nc_inq_varid(ncid, "v", &varid));
        NC(nc_inq_dimlen(ncid, 0, &len));
        if (len != n) {
            fprintf(stderr, "arrays: %s holds %zu values, not %zu\n", file, len, n);
            return 1;
        }
        double from = now();
        NC(p->get(ncid, varid, values));
        double seconds = now() - from;
        NC(nc_close(ncid));
        uint64_t sum = digest_bytes(DIGEST_START, values, n * p->internal_size);
        result("array read", params, seconds, n * p->external_size, 1, &sum);
    }
    free(values);
    return 0;
}
