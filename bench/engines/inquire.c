/* inquire: the time of each inquiry that a classic file answers, and of small attributes. */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { VARS = 100, DIMS = 3, PASSES = 5 };

/* A header of 100 variables with three dimensions and four attributes each, as models have. */
static char names[VARS][24];
static void define(const char *file, int flag)
{
    int ncid, dimids[DIMS], varid;
    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    for (int d = 0; d < DIMS; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%d", d);
        NC(nc_def_dim(ncid, name, d == 0 ? NC_UNLIMITED : (size_t)d + 4, &dimids[d]));
    }
    NC(nc_put_att_text(ncid, NC_GLOBAL, "title", 5, "bench"));
    double range[2] = {-90, 90};
    for (int v = 0; v < VARS; v++) {
        snprintf(names[v], sizeof names[v], "variable_number_%d", v);
        NC(nc_def_var(ncid, names[v], NC_FLOAT, DIMS, dimids, &varid));
        NC(nc_put_att_text(ncid, varid, "units", 3, "m/s"));
        NC(nc_put_att_text(ncid, varid, "long_name", 24, "a name of common length."));
        NC(nc_put_att_double(ncid, varid, "valid_range", NC_FLOAT, 2, range));
        NC(nc_put_att_double(ncid, varid, "scale_factor", NC_DOUBLE, 1, &range[1]));
    }
    NC(nc_close(ncid));
}

/* Times `CALL` for i = 0..calls-1, adding `WORD` of each to the digest: the least of some passes,
 * since a pass is short enough to be spoilt by one interruption. */
#define INQUIRE(NAME, CALL, WORD)                                                                  \
    do {                                                                                           \
        double least = 1e300;                                                                      \
        uint64_t sum = DIGEST_START;                                                               \
        for (int pass = 0; pass < PASSES; pass++) {                                                \
            double from = now();                                                                   \
            for (size_t i = 0; i < calls; i++) {                                                   \
                NC(CALL);                                                                          \
                sum += (uint64_t)(WORD) * (i + 1);                                                 \
            }                                                                                      \
            double seconds = now() - from;                                                         \
            if (seconds < least) least = seconds;                                                  \
        }                                                                                          \
        result(NAME, "{}", least, 0, calls, &sum);                                                 \
    } while (0)

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--calls", "--format", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL);
    size_t calls = option_size(argc, argv, "--calls", "50000"), len;
    define(file, format_flag(argc, argv));

    int ncid, a, b, c, d, dimids[NC_MAX_VAR_DIMS], all[VARS];
    char name[4096], text[64] = "";
    double pair[2];
    float fill;
    nc_type type;
    NC(nc_open(file, NC_NOWRITE, &ncid));
#define V (int)(i % VARS)
#define D (int)(i % DIMS)
#define LAST(text_) (text_)[strlen(text_) - 1]

    INQUIRE("inq", nc_inq(ncid, &a, &b, &c, &d), a + b + c + d);
    INQUIRE("inq_ndims", nc_inq_ndims(ncid, &a), a);
    INQUIRE("inq_nvars", nc_inq_nvars(ncid, &a), a);
    INQUIRE("inq_natts", nc_inq_natts(ncid, &a), a);
    INQUIRE("inq_unlimdim", nc_inq_unlimdim(ncid, &a), a + 1);
    INQUIRE("inq_unlimdims", nc_inq_unlimdims(ncid, &a, dimids), a + dimids[0]);
    INQUIRE("inq_format", nc_inq_format(ncid, &a), a);
    INQUIRE("inq_format_extended", nc_inq_format_extended(ncid, &a, &b), a);
    INQUIRE("inq_path", nc_inq_path(ncid, &len, name), LAST(name));
    INQUIRE("inq_libvers", nc_inq_libvers()[0] == '\0', 1);
    INQUIRE("inq_type", nc_inq_type(ncid, NC_BYTE + (int)(i % 6), name, &len),
            len + (size_t)name[0]);
    INQUIRE("inq_dim", nc_inq_dim(ncid, D, name, &len), len + (size_t)LAST(name));
    INQUIRE("inq_dimid", nc_inq_dimid(ncid, i % 2 ? "dim2" : "dim0", &a), a);
    INQUIRE("inq_dimids", nc_inq_dimids(ncid, &a, dimids, 0), a + dimids[1]);
    INQUIRE("inq_dimname", nc_inq_dimname(ncid, D, name), LAST(name));
    INQUIRE("inq_dimlen", nc_inq_dimlen(ncid, D, &len), len);
    INQUIRE("inq_var", nc_inq_var(ncid, V, name, &type, &a, dimids, &b),
            LAST(name) + type + a + dimids[2] + b);
    INQUIRE("inq_varid", nc_inq_varid(ncid, names[V], &a), a);
    INQUIRE("inq_varids", nc_inq_varids(ncid, &a, all), a + all[3]);
    INQUIRE("inq_varname", nc_inq_varname(ncid, V, name), LAST(name));
    INQUIRE("inq_vartype", nc_inq_vartype(ncid, V, &type), type);
    INQUIRE("inq_varndims", nc_inq_varndims(ncid, V, &a), a);
    INQUIRE("inq_vardimid", nc_inq_vardimid(ncid, V, dimids), dimids[0] + 2 * dimids[2]);
    INQUIRE("inq_varnatts", nc_inq_varnatts(ncid, V, &a), a);
    INQUIRE("inq_var_fill", nc_inq_var_fill(ncid, V, &a, &fill), a);
    INQUIRE("inq_att", nc_inq_att(ncid, V, "valid_range", &type, &len), (size_t)type + len);
    INQUIRE("inq_attid", nc_inq_attid(ncid, V, "scale_factor", &a), a);
    INQUIRE("inq_attname", nc_inq_attname(ncid, V, (int)(i % 4), name), LAST(name));
    INQUIRE("inq_atttype", nc_inq_atttype(ncid, V, "long_name", &type), type);
    INQUIRE("inq_attlen", nc_inq_attlen(ncid, V, "long_name", &len), len);
    INQUIRE("inq_grps", nc_inq_grps(ncid, &a, NULL), a);
    INQUIRE("inq_grpname", nc_inq_grpname(ncid, name), name[0]);
    INQUIRE("get_att_text", nc_get_att_text(ncid, V, "long_name", text), text[5]);
    INQUIRE("get_att_double", nc_get_att_double(ncid, V, "valid_range", pair),
            pair[0] + 2 * pair[1]);
    NC(nc_close(ncid));
    return 0;
}
