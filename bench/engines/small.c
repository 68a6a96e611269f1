/* small: many small calls, the time of one. Each of --set put, get and inquire prints several
 * lines. Writing ends with nc_sync: what was put off is part of the price. */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { VALUES = 1000000, NAMES = 100, DIMS = 3, ATTS = 4 };

static const size_t lengths[] = {1, 4, 16, 64};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void report(const char *name, double seconds, size_t bytes, size_t calls, const uint64_t *sum)
{
    result(name, "{}", seconds, bytes, calls, sum);
}

/* A file of one variable per workload, 8 MB each, so that none finds another's pages. */
static void create(const char *file, int flag, int *ncid, int varids[LENGTHS + 2])
{
    int dimid;
    char name[16];
    NC(nc_create(file, NC_CLOBBER | flag, ncid));
    NC(nc_set_fill(*ncid, NC_NOFILL, NULL));
    NC(nc_def_dim(*ncid, "n", VALUES, &dimid));
    for (int v = 0; v < LENGTHS + 2; v++) {
        snprintf(name, sizeof name, "v%d", v);
        NC(nc_def_var(*ncid, name, NC_DOUBLE, 1, &dimid, &varids[v]));
    }
    NC(nc_enddef(*ncid));
}

static void put(const char *file, int flag, size_t calls)
{
    int ncid, varids[LENGTHS + 2];
    double *values = touched(VALUES * sizeof *values);
    for (size_t i = 0; i < VALUES; i++) values[i] = pattern(i);
    create(file, flag, &ncid, varids);
    /* Every place is written first: nothing in the file is left to chance, and no page is new. */
    for (int v = 0; v < LENGTHS + 2; v++) NC(nc_put_var_double(ncid, varids[v], values));
    NC(nc_sync(ncid));

    size_t n = calls < VALUES ? calls : VALUES;
    double from = now();
    for (size_t i = 0; i < n; i++) {
        double x = 1 + values[i];
        NC(nc_put_var1_double(ncid, varids[0], &i, &x));
    }
    NC(nc_sync(ncid));
    report("put_var1 sequential", now() - from, n * 8, n, NULL);

    uint64_t random = 7;
    size_t scattered = n / 5;
    from = now();
    for (size_t i = 0; i < scattered; i++) {
        size_t at = (size_t)(next_random(&random) % VALUES);
        double x = (double)i;
        NC(nc_put_var1_double(ncid, varids[1], &at, &x));
    }
    NC(nc_sync(ncid));
    report("put_var1 random", now() - from, scattered * 8, scattered, NULL);

    for (int k = 0; k < LENGTHS; k++) {
        size_t len = lengths[k], m = n / len;
        char name[32];
        snprintf(name, sizeof name, "put_vara %zu", len);
        from = now();
        for (size_t i = 0; i < m; i++) {
            size_t start = i * len;
            const double *other = values + (VALUES - start - len); /* not what is there already */
            NC(nc_put_vara_double(ncid, varids[2 + k], &start, &len, other));
        }
        NC(nc_sync(ncid));
        report(name, now() - from, m * len * 8, m, NULL);
    }
    NC(nc_close(ncid));
    free(values);
}

static void get(const char *file, size_t calls)
{
    int ncid, varids[LENGTHS + 2];
    char name[32];
    NC(nc_open(file, NC_NOWRITE, &ncid));
    for (int v = 0; v < LENGTHS + 2; v++) {
        snprintf(name, sizeof name, "v%d", v);
        NC(nc_inq_varid(ncid, name, &varids[v]));
    }
    double *values = touched(VALUES * sizeof *values);
    size_t n = calls < VALUES ? calls : VALUES;

    double from = now();
    for (size_t i = 0; i < n; i++) NC(nc_get_var1_double(ncid, varids[0], &i, &values[i]));
    double seconds = now() - from;
    uint64_t sum = digest_bytes(DIGEST_START, values, n * 8);
    report("get_var1 sequential", seconds, n * 8, n, &sum);

    uint64_t random = 7;
    size_t scattered = n / 5;
    from = now();
    for (size_t i = 0; i < scattered; i++) {
        size_t at = (size_t)(next_random(&random) % VALUES);
        NC(nc_get_var1_double(ncid, varids[1], &at, &values[i]));
    }
    seconds = now() - from;
    sum = digest_bytes(DIGEST_START, values, scattered * 8);
    report("get_var1 random", seconds, scattered * 8, scattered, &sum);

    for (int k = 0; k < LENGTHS; k++) {
        size_t len = lengths[k], m = n / len;
        from = now();
        for (size_t i = 0; i < m; i++) {
            size_t start = i * len;
            NC(nc_get_vara_double(ncid, varids[2 + k], &start, &len, values + start));
        }
        seconds = now() - from;
        sum = digest_bytes(DIGEST_START, values, m * len * 8);
        snprintf(name, sizeof name, "get_vara %zu", len);
        report(name, seconds, m * len * 8, m, &sum);
    }
    NC(nc_close(ncid));
    free(values);
}

/* Times `CALL` for i = 0..calls-1, digesting `WORD` of each. */
#define INQUIRE(NAME, CALL, WORD)                                                                  \
    do {                                                                                           \
        uint64_t sum = DIGEST_START;                                                               \
        double from = now();                                                                       \
        for (size_t i = 0; i < calls; i++) {                                                       \
            NC(CALL);                                                                              \
            sum += (uint64_t)(WORD) * (i + 1);                                                     \
        }                                                                                          \
        report(NAME, now() - from, 0, calls, &sum);                                                \
    } while (0)

/* A header of 100 variables with three dimensions and four attributes, as models write them. */
static void inquire(const char *file, int flag, size_t calls)
{
    int ncid, dimids[DIMS], varid, dimid;
    static char names[NAMES][24];
    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    for (int d = 0; d < DIMS; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%d", d);
        NC(nc_def_dim(ncid, name, (size_t)d + 4, &dimids[d]));
    }
    double range[2] = {-90, 90};
    for (int v = 0; v < NAMES; v++) {
        snprintf(names[v], sizeof names[v], "variable_number_%d", v);
        NC(nc_def_var(ncid, names[v], NC_FLOAT, DIMS, dimids, &varid));
        NC(nc_put_att_text(ncid, varid, "units", 3, "m/s"));
        NC(nc_put_att_text(ncid, varid, "long_name", 24, "a name of common length."));
        NC(nc_put_att_double(ncid, varid, "valid_range", NC_FLOAT, 2, range));
        NC(nc_put_att_double(ncid, varid, "scale_factor", NC_DOUBLE, 1, &range[1]));
    }
    NC(nc_close(ncid));

    NC(nc_open(file, NC_NOWRITE, &ncid));
    size_t len;
    nc_type type;
    int rank, natts;
    char name[NC_MAX_NAME + 1], text[64] = "";
    double pair[2];
    INQUIRE("inq_varid", nc_inq_varid(ncid, names[i % NAMES], &varid), varid);
    INQUIRE("inq_dimid", nc_inq_dimid(ncid, i % 2 ? "dim2" : "dim0", &dimid), dimid);
    INQUIRE("inq_dimlen", nc_inq_dimlen(ncid, (int)(i % DIMS), &len), len);
    INQUIRE("inq_var", nc_inq_var(ncid, (int)(i % NAMES), name, &type, &rank, dimids, &natts),
            name[strlen(name) - 1] + type + rank + dimids[2] + natts);
    INQUIRE("inq_att", nc_inq_att(ncid, (int)(i % NAMES), "valid_range", &type, &len),
            (size_t)type + len);
    INQUIRE("get_att_text", nc_get_att_text(ncid, (int)(i % NAMES), "long_name", text), text[5]);
    INQUIRE("get_att_double", nc_get_att_double(ncid, (int)(i % NAMES), "valid_range", pair),
            pair[0] + 2 * pair[1]);
    NC(nc_close(ncid));
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--set", "--calls", "--format", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL), *set = option(argc, argv, "--set", NULL);
    size_t calls = option_size(argc, argv, "--calls", "1000000");
    int flag = format_flag(argc, argv);
    if (strcmp(set, "put") == 0) put(file, flag, calls);
    else if (strcmp(set, "get") == 0) get(file, calls);
    else if (strcmp(set, "inquire") == 0) inquire(file, flag, calls);
    else {
        fprintf(stderr, "small: --set is put, get or inquire\n");
        return 2;
    }
    return 0;
}
