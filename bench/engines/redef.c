/* redef: the header of a large file grows.
 *
 *   redef --op make --file FILE [--mb 1000]      a file of four large variables
 *   redef --op grow --file FILE --bytes N        a global attribute of N bytes is added
 *
 * grow: from nc_redef to the end of nc_close. The file is of the format and layout that the library
 * which made it chose, so that it is up to that one how much room there is before the data.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

enum { ROW = 125000, VARS = 4 }; /* rows of 1 MB */

static void make(const char *file, int flag, size_t rows)
{
    int ncid, dimids[2], varids[VARS];
    double *values = touched(ROW * sizeof *values);
    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    NC(nc_def_dim(ncid, "row", rows / VARS, &dimids[0]));
    NC(nc_def_dim(ncid, "column", ROW, &dimids[1]));
    for (int v = 0; v < VARS; v++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", v);
        NC(nc_def_var(ncid, name, NC_DOUBLE, 2, dimids, &varids[v]));
    }
    NC(nc_enddef(ncid));
    for (int v = 0; v < VARS; v++)
        for (size_t r = 0; r < rows / VARS; r++) {
            size_t start[2] = {r, 0}, count[2] = {1, ROW};
            for (size_t i = 0; i < ROW; i++) values[i] = (double)(i + r) + v;
            NC(nc_put_vara_double(ncid, varids[v], start, count, values));
        }
    NC(nc_close(ncid));
    free(values);
}

static void grow(const char *file, size_t bytes)
{
    int ncid;
    char *text = touched(bytes);
    NC(nc_open(file, NC_WRITE, &ncid));
    double from = now();
    NC(nc_redef(ncid));
    NC(nc_put_att_text(ncid, NC_GLOBAL, "history", bytes, text));
    NC(nc_enddef(ncid));
    NC(nc_close(ncid));
    result("redef", "{}", now() - from, bytes, 1, NULL);
    free(text);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--mb", "--bytes", "--format", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL), *op = option(argc, argv, "--op", NULL);
    int flag = format_flag(argc, argv);
    if (strcmp(op, "make") == 0) make(file, flag, option_size(argc, argv, "--mb", "1000"));
    else if (strcmp(op, "grow") == 0) grow(file, option_size(argc, argv, "--bytes", "100"));
    else {
        fprintf(stderr, "redef: --op is make or grow\n");
        return 2;
    }
    return 0;
}
