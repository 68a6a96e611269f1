/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* rows: the work of each row of docs/status/performance.md, through whatever netCDF library it runs on. Options are in
 * rows.h; floors.c does the same by hand. Beside them
 *
 *   rows --make line|header|header4|chunks|many|many4 --file FILE [--size N]
 *
 * makes a file that rows read: of a classic variable of N values, of HEADER_VARS variables with attributes, of a netCDF-4
 * variable in chunks with N along its first dimension, of OPENED_VARS variables; a 4 is for netCDF-4.
 */
#define _POSIX_C_SOURCE 200809L
#include "rows.h"
#include <pthread.h>

static int ncid, varid;
static double *values;
static size_t length, *places;

/* ---- files ------------------------------------------------------------------------------------ */

static void text_att(int nc, int var, const char *name, const char *text)
{
    NC(nc_put_att_text(nc, var, name, strlen(text), text));
}

static void make_line(const char *file, size_t n)
{
    int nc, dim, var;
    values = values_of(n);
    NC(nc_create(file, NC_CLOBBER | NC_64BIT_OFFSET, &nc));
    NC(nc_set_fill(nc, NC_NOFILL, NULL));
    NC(nc_def_dim(nc, "n", n, &dim));
    NC(nc_def_var(nc, LINE, NC_DOUBLE, 1, &dim, &var));
    NC(nc_enddef(nc));
    NC(nc_put_var_double(nc, var, values));
    NC(nc_close(nc));
}

/* As models have them. */
static void make_header(const char *file, int flag)
{
    int nc, dims[DIMS], var;
    double range[2] = {-90, 90};
    char name[32];
    NC(nc_create(file, NC_CLOBBER | flag, &nc));
    for (int d = 0; d < DIMS; d++) {
        snprintf(name, sizeof name, "dim%d", d);
        NC(nc_def_dim(nc, name, (size_t)d + 4, &dims[d]));
    }
    for (int v = 0; v < HEADER_VARS; v++) {
        snprintf(name, sizeof name, "variable_number_%d", v);
        NC(nc_def_var(nc, name, NC_FLOAT, DIMS, dims, &var));
        text_att(nc, var, "units", "m/s");
        text_att(nc, var, "long_name", "a name of common length.");
        NC(nc_put_att_double(nc, var, ATTRIBUTE, NC_DOUBLE, 2, range));
        NC(nc_put_att_double(nc, var, "scale_factor", NC_DOUBLE, 1, &range[1]));
    }
    NC(nc_close(nc));
}

/* Opens definitions of `v0` in chunks. */
static void define_chunks(const char *file, const size_t *shape, int *nc, int *var)
{
    static const char *const names[RANK] = {"d0", "d1", "d2"};
    static const size_t chunk[RANK] = {C0, C1, C2};
    int dims[RANK];
    NC(nc_create(file, NC_CLOBBER | NC_NETCDF4, nc));
    for (int d = 0; d < RANK; d++) NC(nc_def_dim(*nc, names[d], shape[d], &dims[d]));
    NC(nc_def_var(*nc, CHUNKED, NC_DOUBLE, RANK, dims, var));
    NC(nc_def_var_chunking(*nc, *var, NC_CHUNKED, chunk));
    NC(nc_enddef(*nc));
}

static void make_chunks(const char *file, size_t n)
{
    int nc, var;
    size_t shape[RANK] = {n, D1, D2}, start[RANK] = {0};
    values = values_of(n * D1 * D2);
    define_chunks(file, shape, &nc, &var);
    NC(nc_put_vara_double(nc, var, start, shape, values));
    NC(nc_close(nc));
}

/* Variables of one value, with attributes. */
static void define_vars(const char *file, int flag, int n_vars, int n_atts, int n_dims)
{
    int nc, dims[DIMS], var;
    char name[32];
    NC(nc_create(file, NC_CLOBBER | flag, &nc));
    for (int d = 0; d < n_dims; d++) {
        snprintf(name, sizeof name, "dim%d", d);
        NC(nc_def_dim(nc, name, n_dims == 1 ? 1 : (size_t)d + 2, &dims[d]));
    }
    for (int v = 0; v < n_vars; v++) {
        snprintf(name, sizeof name, "variable_%d", v);
        NC(nc_def_var(nc, name, NC_FLOAT, n_dims, dims, &var));
        for (int a = 0; a < n_atts; a++) {
            double value = v + 0.5 * a;
            snprintf(name, sizeof name, "attribute_%d", a);
            if (a % 2 == 0) text_att(nc, var, name, "some text ok");
            else NC(nc_put_att_double(nc, var, name, NC_DOUBLE, 1, &value));
        }
    }
    if (n_dims == DIMS) NC(nc_set_fill(nc, NC_NOFILL, NULL));
    NC(nc_enddef(nc));
    if (n_dims == 1) {
        for (int v = 0; v < n_vars; v++) {
            float value = (float)v;
            NC(nc_put_var_float(nc, v, &value));
        }
    }
    NC(nc_close(nc));
}

static int make(const char *kind, const char *file, size_t size)
{
    if (strcmp(kind, "line") == 0) make_line(file, size);
    else if (strcmp(kind, "header") == 0) make_header(file, NC_64BIT_OFFSET);
    else if (strcmp(kind, "header4") == 0) make_header(file, NC_NETCDF4);
    else if (strcmp(kind, "chunks") == 0) make_chunks(file, size);
    else if (strcmp(kind, "many") == 0) define_vars(file, NC_64BIT_OFFSET, OPENED_VARS, OPENED_ATTS, 1);
    else if (strcmp(kind, "many4") == 0) define_vars(file, NC_NETCDF4, OPENED_VARS, OPENED_ATTS, 1);
    else return 2;
    return 0;
}

/* ---- one variable of a classic file -------------------------------------------------------------- */

static void open_line(int mode, size_t n_values)
{
    int dim;
    NC(nc_open(the_file, mode, &ncid));
    NC(nc_inq_varid(ncid, LINE, &varid));
    NC(nc_inq_vardimid(ncid, varid, &dim));
    NC(nc_inq_dimlen(ncid, dim, &length));
    if (length < n_values) {
        fprintf(stderr, "rows: %s has %zu values, %zu are meant\n", the_file, length, n_values);
        exit(1);
    }
    if (!values) values = values_of(n_values);
    /* What is there already is neither put nor taken for what was got. */
    if (mode == NC_NOWRITE) memset(values, 0, n_values * sizeof *values);
    else for (size_t i = 0; i < n_values; i++) values[i] = -value_of(i);
}

static void prepare_put1(size_t calls) { open_line(NC_WRITE, calls); }
static void prepare_get1(size_t calls) { open_line(NC_NOWRITE, calls); }
static void prepare_put10(size_t calls) { open_line(NC_WRITE, calls * SOME); }
static void prepare_get10(size_t calls) { open_line(NC_NOWRITE, calls * SOME); }

/* Puts end with nc_sync: what was put off is part of the price. */
static void put1(size_t calls)
{
    for (size_t i = 0; i < calls; i++) NC(nc_put_var1_double(ncid, varid, &i, &values[i]));
    NC(nc_sync(ncid));
}

static void get1(size_t calls)
{
    for (size_t i = 0; i < calls; i++) NC(nc_get_var1_double(ncid, varid, &i, &values[i]));
}

static void put10(size_t calls)
{
    size_t n = SOME;
    for (size_t i = 0; i < calls * n; i += n) NC(nc_put_vara_double(ncid, varid, &i, &n, &values[i]));
    NC(nc_sync(ncid));
}

static void get10(size_t calls)
{
    size_t n = SOME;
    for (size_t i = 0; i < calls * n; i += n) NC(nc_get_vara_double(ncid, varid, &i, &n, &values[i]));
}

static uint64_t closed(size_t calls)
{
    (void)calls;
    NC(nc_close(ncid));
    return 0;
}

static uint64_t no_digest(size_t calls)
{
    (void)calls;
    return 0;
}

static uint64_t closed_got1(size_t calls)
{
    closed(calls);
    return digest_bytes(DIGEST_START, values, calls * sizeof *values);
}

static uint64_t closed_got10(size_t calls) { return closed_got1(calls * SOME); }

/* ---- halves of it, by one thread or by two -------------------------------------------------------- */

typedef struct { size_t first, end, piece; int writes; } Part;

static void *move_part(void *argument)
{
    const Part *part = argument;
    for (size_t i = part->first; i < part->end; i += part->piece) {
        size_t n = part->end - i < part->piece ? part->end - i : part->piece;
        if (part->writes) NC(nc_put_vara_double(ncid, varid, &i, &n, &values[i]));
        else NC(nc_get_vara_double(ncid, varid, &i, &n, &values[i]));
    }
    return NULL;
}

/* Of `n` values, `piece` to a call. */
static void halves(size_t n, size_t piece, int writes, int n_threads)
{
    Part parts[2] = {{0, n / 2, piece, writes}, {n / 2, n, piece, writes}};
    pthread_t thread;
    if (n_threads == 2 && pthread_create(&thread, NULL, move_part, &parts[1]) != 0) exit(1);
    move_part(&parts[0]);
    if (n_threads == 2) pthread_join(thread, NULL);
    else move_part(&parts[1]);
    if (writes) NC(nc_sync(ncid));
}

static void prepare_put_halves(size_t calls) { open_line(NC_WRITE, calls * PIECE); }
static void prepare_get_halves(size_t calls) { open_line(NC_NOWRITE, calls * PIECE); }
static void put_halves1(size_t calls) { halves(calls * PIECE, PIECE, 1, 1); }
static void put_halves2(size_t calls) { halves(calls * PIECE, PIECE, 1, 2); }
static void get_halves1(size_t calls) { halves(calls * PIECE, PIECE, 0, 1); }
static void get_halves2(size_t calls) { halves(calls * PIECE, PIECE, 0, 2); }
static void put1_halves1(size_t calls) { halves(calls, 1, 1, 1); }
static void put1_halves2(size_t calls) { halves(calls, 1, 1, 2); }
static void get1_halves1(size_t calls) { halves(calls, 1, 0, 1); }
static void get1_halves2(size_t calls) { halves(calls, 1, 0, 2); }
static uint64_t closed_halves(size_t calls) { return closed_got1(calls * PIECE); }

/* ---- the case study in small: record variables, a latitude of one to a call, in random order ----------- */

enum { SLICE_VARS = 8, SLICE_RECORDS = 2, LATITUDES = 64, LONGITUDES = 128, SLICES = SLICE_VARS * SLICE_RECORDS * LATITUDES };

static void create_slices(const char *file)
{
    int dims[DIMS];
    NC(nc_create(file, NC_CLOBBER | NC_64BIT_OFFSET, &ncid));
    NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    NC(nc_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    NC(nc_def_dim(ncid, "lat", LATITUDES, &dims[1]));
    NC(nc_def_dim(ncid, "lon", LONGITUDES, &dims[2]));
    for (int v = 0; v < SLICE_VARS; v++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", v);
        NC(nc_def_var(ncid, name, NC_FLOAT, DIMS, dims, &varid));
    }
    NC(nc_enddef(ncid));
    /* Record by record, all slices of one in random order. */
    uint64_t state = 5;
    places = touched(SLICES * sizeof *places);
    for (size_t k = 0; k < SLICES; k++) {
        size_t of_record = SLICE_VARS * LATITUDES, first = k / of_record * of_record;
        size_t other = first + (size_t)(next_random(&state) % (k - first + 1));
        places[k] = places[other], places[other] = k;
    }
    values = values_of((size_t)SLICES * LONGITUDES);
}

static void move_slices(size_t calls, int writes)
{
    for (size_t k = 0; k < calls && k < SLICES; k++) {
        size_t place = places[k], var = place / LATITUDES % SLICE_VARS;
        size_t start[DIMS] = {place / LATITUDES / SLICE_VARS, place % LATITUDES, 0}, count[DIMS] = {1, 1, LONGITUDES};
        double *at = values + place * LONGITUDES;
        if (writes) NC(nc_put_vara_double(ncid, (int)var, start, count, at));
        else NC(nc_get_vara_double(ncid, (int)var, start, count, at));
    }
}

static void prepare_put_slices(size_t calls)
{
    (void)calls;
    create_slices(the_file);
}

static void put_slices(size_t calls)
{
    move_slices(calls, 1);
    NC(nc_close(ncid));
}

static void prepare_get_slices(size_t calls)
{
    prepare_put_slices(calls);
    put_slices(SLICES);
    memset(values, 0, (size_t)SLICES * LONGITUDES * sizeof *values);
    NC(nc_open(the_file, NC_NOWRITE, &ncid));
}

static void get_slices(size_t calls) { move_slices(calls, 0); }

static uint64_t closed_slices(size_t calls)
{
    (void)calls;
    return closed_got1((size_t)SLICES * LONGITUDES);
}

/* ---- inquiries ------------------------------------------------------------------------------------ */

static uint64_t told;

static void prepare_inquiries(size_t calls)
{
    (void)calls;
    told = 0;
    NC(nc_open(the_file, NC_NOWRITE, &ncid));
}

static void dimlen(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        size_t len;
        NC(nc_inq_dimlen(ncid, (int)(i % DIMS), &len));
        told += len * (i + 1);
    }
}

static void var(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        char name[NC_MAX_NAME + 1];
        nc_type type;
        int rank, dims[NC_MAX_VAR_DIMS], n_atts;
        NC(nc_inq_var(ncid, (int)(i % HEADER_VARS), name, &type, &rank, dims, &n_atts));
        told += (uint64_t)(name[16] + type + rank + dims[2] + n_atts) * (i + 1);
    }
}

static void att(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        double range[2];
        NC(nc_get_att(ncid, (int)(i % HEADER_VARS), ATTRIBUTE, range));
        told += (uint64_t)(range[0] + 3 * range[1]) * (i + 1);
    }
}

static uint64_t closed_told(size_t calls)
{
    closed(calls);
    return told;
}

/* ---- one element in chunks of netCDF-4 ------------------------------------------------------------ */

static const size_t written[RANK] = {D0, D1, D2};

static void create_chunks(size_t calls, int anywhere)
{
    if (!values) values = values_of(calls), places = places_of(calls, written, anywhere);
    define_chunks(the_file, written, &ncid, &varid);
}

static void create_in_order(size_t calls) { create_chunks(calls, 0); }
static void create_at_random(size_t calls) { create_chunks(calls, 1); }

/* With nc_close, where chunks are written. */
static void put_chunks(size_t calls)
{
    for (size_t i = 0; i < calls; i++) NC(nc_put_var1_double(ncid, varid, &places[i * RANK], &values[i]));
    NC(nc_close(ncid));
}

static void open_chunks(size_t calls)
{
    size_t shape[RANK];
    NC(nc_open(the_file, NC_NOWRITE, &ncid));
    NC(nc_inq_varid(ncid, CHUNKED, &varid));
    for (int d = 0; d < RANK; d++) NC(nc_inq_dimlen(ncid, d, &shape[d]));
    if (!values) values = values_of(calls), places = places_of(calls, shape, 1);
    memset(values, 0, calls * sizeof *values);
}

static void get_chunks(size_t calls)
{
    for (size_t i = 0; i < calls; i++) NC(nc_get_var1_double(ncid, varid, &places[i * RANK], &values[i]));
}

/* ---- whole files ---------------------------------------------------------------------------------- */

static void nothing(size_t calls) { (void)calls; }

static void create(size_t calls)
{
    for (size_t i = 0; i < calls; i++) define_vars(the_file, NC_64BIT_OFFSET, CREATED_VARS, CREATED_ATTS, DIMS);
}

static void create4(size_t calls)
{
    for (size_t i = 0; i < calls; i++) define_vars(the_file, NC_NETCDF4, CREATED_VARS, CREATED_ATTS, DIMS);
}

static void create4_one(size_t calls)
{
    for (size_t i = 0; i < calls; i++) define_vars(the_file, NC_NETCDF4, 1, CREATED_ATTS, DIMS);
}

static void open_many(size_t calls)
{
    told = 0;
    for (size_t i = 0; i < calls; i++) {
        int n_vars;
        NC(nc_open(the_file, NC_NOWRITE, &ncid));
        NC(nc_inq_nvars(ncid, &n_vars));
        NC(nc_close(ncid));
        told = (uint64_t)n_vars;
    }
}

static void open_one(size_t calls)
{
    told = 0;
    for (size_t i = 0; i < calls; i++) {
        float value;
        size_t at = 0;
        NC(nc_open(the_file, NC_NOWRITE, &ncid));
        NC(nc_inq_varid(ncid, WANTED, &varid));
        NC(nc_get_var1_float(ncid, varid, &at, &value));
        NC(nc_close(ncid));
        told = (uint64_t)value;
    }
}

static uint64_t only_told(size_t calls)
{
    (void)calls;
    return told;
}

static const Row rows[] = {
    {"put1", 0, 300000, prepare_put1, put1, closed},
    {"get1", 0, 300000, prepare_get1, get1, closed_got1},
    {"put10", 0, 100000, prepare_put10, put10, closed},
    {"get10", 0, 100000, prepare_get10, get10, closed_got10},
    {"dimlen", 0, 300000, prepare_inquiries, dimlen, closed_told},
    {"var", 0, 300000, prepare_inquiries, var, closed_told},
    {"att4", 0, 300000, prepare_inquiries, att, closed_told},
    {"put1-chunks", 0, 300000, create_in_order, put_chunks, no_digest},
    {"put1-chunks-random", 0, 100000, create_at_random, put_chunks, no_digest},
    {"get1-chunks-random", 0, 20000, open_chunks, get_chunks, closed_got1},
    {"put-halves-1", 1, 31250, prepare_put_halves, put_halves1, closed},
    {"put-halves-2", 1, 31250, prepare_put_halves, put_halves2, closed},
    {"get-halves-1", 1, 31250, prepare_get_halves, get_halves1, closed_halves},
    {"get-halves-2", 1, 31250, prepare_get_halves, get_halves2, closed_halves},
    {"put1-halves-1", 1, 1000000, prepare_put1, put1_halves1, closed},
    {"put1-halves-2", 1, 1000000, prepare_put1, put1_halves2, closed},
    {"get1-halves-1", 1, 1000000, prepare_get1, get1_halves1, closed_got1},
    {"get1-halves-2", 1, 1000000, prepare_get1, get1_halves2, closed_got1},
    {"slices-put", 0, SLICES, prepare_put_slices, put_slices, no_digest},
    {"slices-get", 0, SLICES, prepare_get_slices, get_slices, closed_slices},
    {"create", 0, 1000, nothing, create, no_digest},
    {"create4", 0, 300, nothing, create4, no_digest},
    {"create4-1", 0, 500, nothing, create4_one, no_digest},
    {"open", 0, 100, nothing, open_many, only_told},
    {"open4-one", 0, 5, nothing, open_one, only_told},
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--make") == 0) {
        static const char *const known[] = {"--make", "--file", "--size", NULL};
        known_options(argc, argv, known);
        return make(option(argc, argv, "--make", NULL), option(argc, argv, "--file", NULL),
                    option_size(argc, argv, "--size", "1000000"));
    }
#ifdef COUNTS
    return rows_counted(argv + 1, rows, sizeof rows / sizeof *rows);
#else
    return rows_main(argc, argv, rows, sizeof rows / sizeof *rows);
#endif
}
