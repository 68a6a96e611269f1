/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   read make PATH FORMAT STEPS ROWS     makes a file: 1, 2, 5 or 4
 *   read get PATH SEED                   random gets, right and wrong ones, and walks along the first dimension
 *   read walk PATH ROUNDS                walks along it again and again, and says so after the first step
 *   read changes PATH FORMAT             a file that is changed between its openings; says what is wrong
 *   read time PATH VARIABLE BYTES ROUNDS seconds that gets of about so many bytes took, each of another place
 *
 * `get` prints for each call its code, and a digest of what it delivered.
 */
#include <netcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zonda.h>

enum { COLUMNS = 256, KINDS = 9 };
static uint64_t state;

static uint64_t chance(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static size_t below(size_t n) { return n ? (size_t)(chance() % n) : 0; }

static uint64_t digest(uint64_t hash, const void *bytes, size_t n) {
    for (const unsigned char *p = bytes; n; n--, p++) hash = (hash ^ *p) * 0x100000001b3u;
    return hash;
}

static void check(int status, const char *call) {
    if (status == NC_NOERR) return;
    printf("%s %d %s\n", call, status, nc_zonda_last_error());
    exit(1);
}
#define CHECK(call) check(call, #call)

static void make(const char *path, char format, size_t steps, size_t rows, int base) {
    int mode = format == '2' ? NC_64BIT_OFFSET : format == '5' ? NC_64BIT_DATA : format == '4' ? NC_NETCDF4 : 0;
    int file, dims[3], plain, packed, bytes, text, names = -1, lists = -1, type;
    CHECK(nc_create(path, NC_CLOBBER | mode, &file));
    CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "y", rows, &dims[1]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[2]));
    CHECK(nc_def_var(file, "plain", NC_FLOAT, 3, dims, &plain));
    CHECK(nc_def_var(file, "packed", NC_DOUBLE, 3, dims, &packed));
    CHECK(nc_def_var(file, "bytes", NC_BYTE, 2, dims + 1, &bytes));
    CHECK(nc_def_var(file, "text", NC_CHAR, 2, dims + 1, &text));
    if (mode == NC_NETCDF4) {
        CHECK(nc_def_vlen(file, "list", NC_INT, &type));
        CHECK(nc_def_var(file, "names", NC_STRING, 1, dims + 1, &names));
        CHECK(nc_def_var(file, "lists", type, 1, dims + 1, &lists));
        CHECK(nc_def_var_deflate(file, packed, 1, 1, 1));
        CHECK(nc_def_var_deflate(file, bytes, 0, 1, 1));
    }
    CHECK(nc_enddef(file));
    size_t n = rows * COLUMNS;
    double *values = malloc(n * sizeof *values);
    if (!values) exit(65);
    for (size_t step = 0; step < steps; step++) {
        size_t start[] = {step, 0, 0}, count[] = {1, rows, COLUMNS};
        for (size_t i = 0; i < n; i++) values[i] = base + 1000. * (double)step + (double)(i % 701) + (double)(i / COLUMNS) / 64;
        CHECK(nc_put_vara_double(file, plain, start, count, values));
        CHECK(nc_put_vara_double(file, packed, start, count, values));
    }
    signed char *small = malloc(n);
    if (!small) exit(65);
    for (size_t i = 0; i < n; i++) small[i] = (signed char)(i * 7 + (size_t)base);
    CHECK(nc_put_var_schar(file, bytes, small));
    for (size_t i = 0; i < n; i++) small[i] = (signed char)('a' + i % 26);
    CHECK(nc_put_var_text(file, text, (char *)small));
    for (size_t row = 0; names >= 0 && row < rows; row++) {
        char word[40];
        int items[9] = {1, 2, (int)row, 4, 5, 6, 7, 8, base};
        snprintf(word, sizeof word, "row %zu", row * row);
        const char *one = word;
        nc_vlen_t list = {row % 10, items};
        CHECK(nc_put_var1_string(file, names, &row, &one));
        CHECK(nc_put_var1(file, lists, &row, &list));
    }
    free(small);
    free(values);
    CHECK(nc_close(file));
}

/* One get of elements as `kind` says: as what they are, or as a number of another type. */
static int get(int file, int var, const size_t *start, const size_t *count, const ptrdiff_t *stride, int kind, void *to) {
    switch (kind) {
    case 0: return nc_get_vars_double(file, var, start, count, stride, to);
    case 1: return nc_get_vars_float(file, var, start, count, stride, to);
    case 2: return nc_get_vars_short(file, var, start, count, stride, to);
    case 3: return nc_get_vars_uchar(file, var, start, count, stride, to);
    case 4: return nc_get_vars_text(file, var, start, count, stride, to);
    case 5: return nc_get_vars_longlong(file, var, start, count, stride, to);
    case 6: return stride ? nc_get_vars(file, var, start, count, stride, to) : nc_get_vara(file, var, start, count, to);
    case 7: return nc_get_var1_double(file, var, start, to);
    default: return nc_get_vara_int(file, var, start, count, to);
    }
}

static size_t width(int kind, nc_type type) {
    static const size_t widths[KINDS] = {8, 4, 2, 1, 1, 8, 0, 8, 4};
    size_t own = type == NC_DOUBLE ? 8 : type == NC_FLOAT ? 4 : 1;
    return kind == 6 ? own : widths[kind];
}

static void one_get(int file, int var, const size_t *start, const size_t *count, const ptrdiff_t *stride, int kind, int is_shown) {
    nc_type type;
    int n_dims, dims[3];
    CHECK(nc_inq_var(file, var, NULL, &type, &n_dims, dims, NULL));
    size_t n = 1;
    for (int d = 0; d < n_dims; d++) n *= count[d];
    if (kind == 7 && type < NC_STRING) n = 1;
    uint64_t hash = 0;
    int code;
    if (type == NC_STRING) {
        char **words = calloc(n + 1, sizeof *words);
        code = nc_get_vars_string(file, var, start, count, stride, words);
        for (size_t i = 0; code == NC_NOERR && i < n; i++) hash = digest(hash, words[i], strlen(words[i]) + 1);
        if (code == NC_NOERR) CHECK(nc_free_string(n, words));
        free(words);
    } else if (type >= NC_FIRSTUSERTYPEID) {
        nc_vlen_t *lists = calloc(n + 1, sizeof *lists);
        code = nc_get_vars(file, var, start, count, stride, lists);
        for (size_t i = 0; code == NC_NOERR && i < n; i++) hash = digest(hash, lists[i].p, lists[i].len * sizeof(int)) + lists[i].len;
        if (code == NC_NOERR) CHECK(nc_free_vlens(n, lists));
        free(lists);
    } else {
        size_t bytes = n * width(kind, type);
        unsigned char *to = malloc(bytes + 1);
        if (!to) exit(65);
        memset(to, 0x5a, bytes + 1);
        code = get(file, var, start, count, stride, kind, to);
        if (code == NC_NOERR || code == NC_ERANGE) hash = digest(hash, to, bytes);
        if (to[bytes] != 0x5a) printf("written behind the end\n");
        free(to);
    }
    if (is_shown) printf("var %d kind %d n %zu: %d %016llx\n", var, kind, n, code, (unsigned long long)hash);
}

static void gets(const char *path, uint64_t seed) {
    int file, n_vars, n_dims, dims[3];
    state = seed;
    CHECK(nc_open(path, NC_NOWRITE, &file));
    CHECK(nc_inq_nvars(file, &n_vars));
    for (int round = 0; round < 150; round++) {
        int var = (int)below((size_t)n_vars), kind = (int)below(KINDS);
        size_t start[3], count[3], len;
        ptrdiff_t stride[3];
        CHECK(nc_inq_var(file, var, NULL, NULL, &n_dims, dims, NULL));
        int has_stride = below(4) == 0;
        for (int d = 0; d < n_dims; d++) {
            CHECK(nc_inq_dimlen(file, dims[d], &len));
            stride[d] = has_stride ? 1 + (ptrdiff_t)below(3) : 1;
            start[d] = below(len);
            count[d] = 1 + below((len - start[d] - 1) / (size_t)stride[d] + 1);
            if (below(60) == 0) count[d] += len;
            if (d == 0 && below(3) == 0) count[d] = 1;
        }
        one_get(file, var, start, count, has_stride ? stride : NULL, kind, 1);
        if (round % 40 == 39) {
            /* Along the first dimension, sometimes beyond its end. */
            int walked = (int)below(2);
            size_t steps, rows, by = 1 + below(2);
            CHECK(nc_inq_dimlen(file, 0, &steps));
            CHECK(nc_inq_dimlen(file, 1, &rows));
            for (size_t at = 0; at <= steps; at += by) one_get(file, walked, (size_t[]){at, 0, 0}, (size_t[]){by, rows, COLUMNS}, NULL, (int)(seed % 2), 1);
        }
        if (round == 75) printf("sync %d\n", nc_sync(file));
    }
    CHECK(nc_close(file));
}

static void walk(const char *path, int rounds) {
    int file;
    size_t steps, rows;
    CHECK(nc_open(path, NC_NOWRITE, &file));
    CHECK(nc_inq_dimlen(file, 0, &steps));
    CHECK(nc_inq_dimlen(file, 1, &rows));
    double *values = malloc(rows * COLUMNS * sizeof *values);
    if (!values) exit(65);
    for (int round = 0; round < rounds; round++)
        for (size_t at = 0; at < steps; at++) {
            CHECK(nc_get_vara_double(file, (int)(at % 2), (size_t[]){at, 0, 0}, (size_t[]){1, rows, COLUMNS}, values));
            if (values[0] != 1000. * (double)at) printf("step %zu has %g\n", at, values[0]);
            if (round == 0 && at == 0) {
                printf("begun\n");
                fflush(stdout);
            }
        }
    CHECK(nc_close(file));
    printf("ended\n");
}

static void look(int file, double wanted, const char *when) {
    static double values[40 * COLUMNS];
    CHECK(nc_get_vara_double(file, 1, (size_t[]){1, 0, 0}, (size_t[]){1, 40, COLUMNS}, values));
    if (values[0] != wanted) printf("%s: %g, not %g\n", when, values[0], wanted);
}

static void changes(const char *path, char format) {
    char other[1000];
    int old, new;
    snprintf(other, sizeof other, "%s.new", path);
    for (int round = 0; round < 6; round++) {
        make(path, format, 3, 40, round);
        CHECK(nc_open(path, NC_NOWRITE, &old));
        look(old, 1000 + round, "a file that was made anew");
        /* Another file comes to its path: who has the old one open goes on with that. */
        make(other, format, 3, 40, 100 + round);
        CHECK(nc_open(other, NC_NOWRITE, &new));
        look(new, 1100 + round, "the other one");
        CHECK(nc_close(new));
        if (rename(other, path) != 0) printf("rename\n");
        look(old, 1000 + round, "a file whose name another one has");
        CHECK(nc_open(path, NC_NOWRITE, &new));
        look(new, 1100 + round, "the one that has its name now");
        CHECK(nc_close(old));
        CHECK(nc_close(new));
        /* Changed where it is. */
        double value = 5000 + round;
        CHECK(nc_open(path, NC_WRITE, &new));
        CHECK(nc_put_var1_double(new, 1, (size_t[]){1, 0, 0}, &value));
        CHECK(nc_close(new));
        CHECK(nc_open(path, NC_NOWRITE, &new));
        look(new, value, "a file that was changed");
        CHECK(nc_close(new));
    }
    printf("ended\n");
}

static void timed(const char *path, const char *name, size_t bytes, int rounds) {
    int file, var;
    size_t steps, rows;
    CHECK(nc_open(path, NC_NOWRITE, &file));
    CHECK(nc_inq_varid(file, name, &var));
    CHECK(nc_inq_dimlen(file, 0, &steps));
    CHECK(nc_inq_dimlen(file, 1, &rows));
    size_t wanted = bytes / (COLUMNS * sizeof(double)), n_steps = wanted > rows ? wanted / rows : 1, n_rows = wanted > rows ? rows : wanted;
    if (n_steps > steps || n_rows == 0) exit(64);
    double *values = malloc(n_steps * n_rows * COLUMNS * sizeof *values);
    if (!values) exit(65);
    struct timespec begin, end;
    memset(values, 1, n_steps * n_rows * COLUMNS * sizeof *values);
    CHECK(nc_get_vara_double(file, var, (size_t[]){0, 0, 0}, (size_t[]){n_steps, n_rows, COLUMNS}, values));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int round = 0; round < rounds; round++) {
        size_t at = (size_t)(round * 7) * n_steps % (steps - n_steps + 1);
        size_t row = n_rows == rows ? 0 : (size_t)round * n_rows % (rows - n_rows + 1);
        CHECK(nc_get_vara_double(file, var, (size_t[]){at, row, 0}, (size_t[]){n_steps, n_rows, COLUMNS}, values));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n", (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    CHECK(nc_close(file));
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "make") == 0) make(argv[2], argv[3][0], (size_t)atol(argv[4]), (size_t)atol(argv[5]), 0);
    else if (argc == 4 && strcmp(argv[1], "get") == 0) gets(argv[2], (uint64_t)atol(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "walk") == 0) walk(argv[2], atoi(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "changes") == 0) changes(argv[2], argv[3][0]);
    else if (argc == 6 && strcmp(argv[1], "time") == 0) timed(argv[2], argv[3], (size_t)atol(argv[4]), atoi(argv[5]));
    else return 64;
    return 0;
}
