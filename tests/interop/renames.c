/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Renames of dimensions, variables, groups and attributes. Each sequence runs in define mode, in
 * data mode with a sync after each step, and with the file opened again after each step. The file
 * `.expected` has the last names from the beginning: the others must hold the same. */
#include "cases.h"

enum { DEFINING, SYNCED, REOPENED };

typedef struct {
    const char *path;
    int nc, when, x, t, a, b, g, c;
} file_t;

/* What things are called in the end. */
typedef struct {
    const char *dim_x, *dim_y, *dim_t, *dim_z, *x, *t, *a, *b, *g, *units, *long_name, *title, *c_units;
} names_t;

#define FIRST_NAMES                                                                                            \
    .dim_x = "x", .dim_y = "y", .dim_t = "t", .dim_z = "z", .x = "x", .t = "t", .a = "a", .b = "b", .g = "g", \
    .units = "units", .long_name = "long_name", .title = "title", .c_units = "units"

static void data(file_t *f) {
    fill_all(f->nc, f->x, 1);
    fill_all(f->nc, f->b, 2);
    fill_all(f->g, f->c, 3);
    fill_block(f->nc, f->t, AT(0), AT(2), 4);
    fill_block(f->nc, f->a, AT(0, 0, 0), AT(2, 2, 3), 5);
}

/* The file that all start from: coordinates x and t, plain dimensions y and z, users of all. */
static file_t start(const char *path, int when, names_t n) {
    int nc = create(path, 0), x = dim(nc, n.dim_x, 3), y = dim(nc, n.dim_y, 2), t = dim(nc, n.dim_t, NC_UNLIMITED), z = dim(nc, n.dim_z, 4);
    int g = group(nc, n.g), inner = dim(g, "inner", 2);
    file_t f = {path, nc, when, .g = g};
    f.x = var(nc, n.x, NC_DOUBLE, x), f.t = var(nc, n.t, NC_INT, t), f.a = var(nc, n.a, NC_FLOAT, t, y, x), f.b = var(nc, n.b, NC_INT, z, y);
    f.c = var(g, "c", NC_SHORT, inner, x);
    text_att(nc, NC_GLOBAL, n.title, "renames");
    text_att(nc, f.a, n.units, "m");
    text_att(nc, f.a, n.long_name, "what a is");
    text_att(g, f.c, n.c_units, "s");
    if (when == DEFINING) return f;
    MUST(nc_enddef(nc));
    data(&f);
    return f;
}

static void step(file_t *f) {
    if (f->when == SYNCED) MUST(nc_sync(f->nc));
    if (f->when == REOPENED) {
        MUST(nc_close(f->nc));
        f->nc = reopen(f->path);
    }
}

static int end(file_t *f) {
    if (f->when == DEFINING) {
        MUST(nc_enddef(f->nc));
        data(f);
    }
    return f->nc;
}

static int dim_id(file_t *f, const char *name) {
    int id;
    MUST(nc_inq_dimid(f->nc, name, &id));
    return id;
}

static int var_id(file_t *f, const char *name) {
    int id;
    MUST(nc_inq_varid(f->nc, name, &id));
    return id;
}

#define DIM(from, to) MUST_STEP(f, nc_rename_dim(f->nc, dim_id(f, from), to))
#define VAR(from, to) MUST_STEP(f, nc_rename_var(f->nc, var_id(f, from), to))
#define MUST_STEP(f, call) \
    do {                   \
        MUST(call);        \
        step(f);           \
    } while (0)

static void plain(file_t *f) {
    VAR("a", "alpha");
    VAR("b", "beta, with a longer name");
    DIM("y", "rows");
    DIM("z", "k");
}

static void attributes(file_t *f) {
    int g, a = var_id(f, "a"), c;
    MUST_STEP(f, nc_rename_att(f->nc, a, "units", "u"));
    MUST_STEP(f, nc_rename_att(f->nc, a, "long_name", "a name that is longer than it was"));
    MUST_STEP(f, nc_rename_att(f->nc, NC_GLOBAL, "title", "heading"));
    MUST(nc_inq_grp_ncid(f->nc, "g", &g));
    MUST(nc_inq_varid(g, "c", &c));
    MUST_STEP(f, nc_rename_att(g, c, "units", "unit"));
}

static void groups(file_t *f) {
    int g;
    MUST(nc_inq_grp_ncid(f->nc, "g", &g));
    MUST_STEP(f, nc_rename_grp(g, "renamed group"));
    MUST(nc_inq_grp_ncid(f->nc, "renamed group", &g));
    MUST_STEP(f, nc_rename_grp(g, "h"));
}

/* The coordinate variable first, then its dimension; and the other way round. */
static void pair_var_first(file_t *f) {
    VAR("x", "lon");
    DIM("x", "lon");
}

static void pair_dim_first(file_t *f) {
    DIM("x", "lon");
    VAR("x", "lon");
}

static void record_pair(file_t *f) {
    VAR("t", "time");
    DIM("t", "time");
}

static void var_away(file_t *f) { VAR("x", "not_x"); }

static void dim_away(file_t *f) { DIM("x", "not_x"); }

static void var_to_coordinate(file_t *f) { VAR("b", "z"); }

static void dim_to_coordinate(file_t *f) { DIM("z", "b"); }

static void swap_vars(file_t *f) {
    VAR("a", "swap");
    VAR("b", "a");
    VAR("swap", "b");
}

static void swap_dims(file_t *f) {
    DIM("y", "swap");
    DIM("z", "y");
    DIM("swap", "z");
}

static void there_and_back(file_t *f) {
    VAR("x", "away");
    VAR("away", "x");
    DIM("x", "away");
    DIM("away", "x");
}

/* SEQUENCE(name, what has another name in the end...) */
#define SEQUENCE(name, ...)                                                \
    static int name##_e(const char *path) {                                \
        _Pragma("GCC diagnostic push")                                     \
        _Pragma("GCC diagnostic ignored \"-Woverride-init\"")              \
        names_t names = {FIRST_NAMES, __VA_ARGS__};                        \
        _Pragma("GCC diagnostic pop")                                      \
        return start(path, SYNCED, names).nc;                              \
    }                                                                      \
    static int name##_d(const char *path) {                                \
        file_t f = start(path, DEFINING, (names_t){FIRST_NAMES});          \
        name(&f);                                                          \
        return end(&f);                                                    \
    }                                                                      \
    static int name##_s(const char *path) {                                \
        file_t f = start(path, SYNCED, (names_t){FIRST_NAMES});            \
        name(&f);                                                          \
        return end(&f);                                                    \
    }                                                                      \
    static int name##_r(const char *path) {                                \
        file_t f = start(path, REOPENED, (names_t){FIRST_NAMES});          \
        name(&f);                                                          \
        return end(&f);                                                    \
    }
#define FOUR(name)                                                                        \
    {"rename-" #name ".expected", name##_e}, {"rename-" #name ".define", name##_d},       \
        {"rename-" #name ".sync", name##_s}, {"rename-" #name ".reopen", name##_r}

SEQUENCE(plain, .a = "alpha", .b = "beta, with a longer name", .dim_y = "rows", .dim_z = "k")
SEQUENCE(attributes, .units = "u", .long_name = "a name that is longer than it was", .title = "heading", .c_units = "unit")
SEQUENCE(groups, .g = "h")
SEQUENCE(pair_var_first, .x = "lon", .dim_x = "lon")
SEQUENCE(pair_dim_first, .x = "lon", .dim_x = "lon")
SEQUENCE(record_pair, .t = "time", .dim_t = "time")
SEQUENCE(var_away, .x = "not_x")
SEQUENCE(dim_away, .dim_x = "not_x")
SEQUENCE(var_to_coordinate, .b = "z")
SEQUENCE(dim_to_coordinate, .dim_z = "b")
SEQUENCE(swap_vars, .a = "b", .b = "a")
SEQUENCE(swap_dims, .dim_y = "z", .dim_z = "y")
SEQUENCE(there_and_back, .x = "x")

const case_t RENAME_CASES[] = {
    FOUR(plain),
    FOUR(attributes),
    FOUR(groups),
    FOUR(pair_var_first),
    FOUR(pair_dim_first),
    FOUR(record_pair),
    FOUR(var_away),
    FOUR(dim_away),
    FOUR(var_to_coordinate),
    FOUR(dim_to_coordinate),
    FOUR(swap_vars),
    FOUR(swap_dims),
    FOUR(there_and_back),
    {NULL, NULL},
};
