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
};
struct var {
    char name[NAME_BYTES];
    nc_type type;
    int rank, dims[MAX_RANK];
    struct atts atts;
};
struct defs {
    struct dim dims[64];
    int n_dims, n_vars;
    struct var vars[MAX_VARS];
    struct atts atts;
};

struct data {
    int exists, is_record;
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
    size_t n_records;
    struct data data[MAX_VARS];

    /* Each of these may be what the file shows; the first is what was promised, if anything was. */
    struct defs **versions;
    int n_versions, has_promise;
    /* Puts on their way. */
    int *flying, n_flying;
    size_t max_records;
    int flying_no_fill;
};

/* Makes `m` stand at these two operations; goes forward from where it is if it can. After an
 * error the writer closed the file, which also ends define mode. */
void model_at(struct model *m, const struct plan *plan, int promised, int begun, int after_error);

/* Elements of variable v, by `defs` and a number of records. */
size_t var_elems(const struct defs *defs, int v, size_t n_records);

#endif
