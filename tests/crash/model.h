/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a file must hold after the operations of a plan up to `promised`, when those up to `begun`
 * may have been carried out in part. */
#ifndef CRASH_MODEL_H
#define CRASH_MODEL_H

#include "plan.h"

/* What put an element: the number of an operation, or one of these. */
#define PUT_FILL (-1)
#define PUT_ANY (-2) /* nobody, and without fill mode */

struct att {
    char name[NAME_BYTES];
    nc_type type;
    size_t n;
    int put;
};
struct atts {
    struct att *list;
    int n;
};
struct dim {
    char name[NAME_BYTES];
    size_t len;
    int group;
};
struct var {
    char name[NAME_BYTES];
    nc_type type;
    int rank, dims[MAX_RANK], group;
    int layout, level; /* of OP_LAYOUT */
    struct atts atts;
};
struct group {
    char name[NAME_BYTES];
    int parent;
    struct atts atts;
};
struct defs {
    struct dim dims[MAX_DIMS];
    struct var vars[MAX_VARS];
    struct group groups[MAX_GROUPS]; /* the first is the root group */
    nc_type types[TYPE_END - TYPE_PAIR];
    int n_dims, n_vars, n_groups, n_types;
};

struct data {
    int exists;
    int unlimited; /* the dimension it grows along; -1: none */
    int no_fill; /* of a netCDF-4 variable, which keeps it from its definition on */
    size_t row; /* elements of one record, or of the whole variable */
    size_t n, room; /* elements that are promised; memory for */
    int *put; /* what put each */
    unsigned char *want;
};

struct model {
    const struct plan *plan;
    int promised, begun, after_error; /* last operations taken up; -1: none */
    struct defs *now; /* as defined so far, define mode included */
    int defining, no_fill;
    size_t len[MAX_DIMS]; /* records of unlimited dimensions */
    struct data data[MAX_VARS];

    /* Each of these may be what the file shows; the first is what was promised, if anything was. */
    struct defs **versions;
    int n_versions, has_promise;
    /* Puts on their way. */
    int *flying, n_flying;
    size_t max_len[MAX_DIMS];
    int flying_no_fill;
};

/* Makes `m` stand at these two operations; goes forward from where it is if it can. After an
 * error the writer closed the file, which also ends define mode. */
void model_at(struct model *m, const struct plan *plan, int promised, int begun, int after_error);

/* Elements of variable v, by `defs` and the lengths of unlimited dimensions. */
size_t var_elems(const struct defs *defs, int v, const size_t *len);

#endif
