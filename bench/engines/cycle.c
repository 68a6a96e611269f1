/* cycle: the life of a small file, over and over: create, define, end definitions, close; open and
 * close; open, ask everything, close. The file keeps its name and is overwritten each time. */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { DIMS = 3 };

static void define(const char *file, int flag, int vars, int atts)
{
    int ncid, dimids[DIMS], varid;
    char name[32];
    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    for (int d = 0; d < DIMS; d++) {
        snprintf(name, sizeof name, "dim%d", d);
        NC(nc_def_dim(ncid, name, (size_t)d + 2, &dimids[d]));
    }
    for (int v = 0; v < vars; v++) {
        snprintf(name, sizeof name, "variable_%d", v);
        NC(nc_def_var(ncid, name, NC_FLOAT, DIMS, dimids, &varid));
        for (int a = 0; a < atts; a++) {
            double value = v + 0.5 * a;
            snprintf(name, sizeof name, "attribute_%d", a);
            if (a % 2 == 0) NC(nc_put_att_text(ncid, varid, name, 12, "some text ok"));
            else NC(nc_put_att_double(ncid, varid, name, NC_DOUBLE, 1, &value));
        }
    }
    NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    NC(nc_enddef(ncid));
    NC(nc_close(ncid));
}

/* Everything a program can ask about the header, and the attributes' values. */
static uint64_t inquire(const char *file)
{
    int ncid, ndims, nvars, natts, unlimited;
    char name[NC_MAX_NAME + 1], value[64];
    uint64_t h = DIGEST_START;
    NC(nc_open(file, NC_NOWRITE, &ncid));
    NC(nc_inq(ncid, &ndims, &nvars, &natts, &unlimited));
    for (int d = 0; d < ndims; d++) {
        size_t len;
        NC(nc_inq_dim(ncid, d, name, &len));
        h = digest_word(digest_text(h, name), len);
    }
    for (int v = 0; v < nvars; v++) {
        nc_type type;
        int rank, dimids[NC_MAX_VAR_DIMS];
        NC(nc_inq_var(ncid, v, name, &type, &rank, dimids, &natts));
        h = digest_word(digest_text(h, name), (uint64_t)(type + rank + natts));
        for (int a = 0; a < natts; a++) {
            size_t len;
            NC(nc_inq_attname(ncid, v, a, name));
            NC(nc_inq_att(ncid, v, name, &type, &len));
            NC(nc_get_att(ncid, v, name, value)); /* 12 characters or one double, see define() */
            h = digest_bytes(digest_text(h, name), value, type == NC_CHAR ? len : 8 * len);
        }
    }
    NC(nc_close(ncid));
    return h;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--set", "--vars", "--atts", "--cycles",
                                        "--format", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL), *set = option(argc, argv, "--set", NULL);
    int vars = (int)option_size(argc, argv, "--vars", "10");
    int atts = (int)option_size(argc, argv, "--atts", "2"); /* of each variable */
    size_t cycles = option_size(argc, argv, "--cycles", "2000");
    int flag = format_flag(argc, argv);
    char params[100];
    snprintf(params, sizeof params, "{\"dims\": %d, \"vars\": %d, \"atts\": %d}", DIMS, vars,
             vars * atts);

    if (strcmp(set, "create") == 0) {
        double from = now();
        for (size_t i = 0; i < cycles; i++) define(file, flag, vars, atts);
        result("create define close", params, now() - from, 0, cycles, NULL);
    } else if (strcmp(set, "open") == 0) {
        double from = now();
        for (size_t i = 0; i < cycles; i++) {
            int ncid;
            NC(nc_open(file, NC_NOWRITE, &ncid));
            NC(nc_close(ncid));
        }
        double seconds = now() - from;
        uint64_t sum = inquire(file); /* of what was opened */
        result("open close", params, seconds, 0, cycles, &sum);

        uint64_t all = DIGEST_START;
        from = now();
        for (size_t i = 0; i < cycles; i++) all = digest_word(all, inquire(file));
        result("open inquire close", params, now() - from, 0, cycles, &all);
    } else {
        fprintf(stderr, "cycle: --set is create or open\n");
        return 2;
    }
    return 0;
}
