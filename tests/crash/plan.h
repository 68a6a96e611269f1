/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the writer does and the checker expects: a scenario is a list of operations, the same in
 * both programs, and each value follows from (variable, element, operation that put it). So a mark
 * needs to say no more than the number of an operation, and any element of any file can be judged.
 */
#ifndef CRASH_PLAN_H
#define CRASH_PLAN_H

#include <netcdf.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_NAME "x.nc"
#define LINK_NAME "x-link.nc" /* second name of the file, where a scenario has one */
#define REAL_NAME "real/data.nc" /* where FILE_NAME, a symbolic link, then points */
#define MAX_RANK 3
#define NAME_BYTES 32
#define MAX_VARS 256

enum kind {
    OP_CREATE, /* arg: cmode bits, beside the version's */
    OP_OPEN, /* arg: omode bits, beside NC_WRITE */
    OP_REDEF,
    OP_DIM, /* name, n (0: the record dimension) */
    OP_VAR, /* name, type, rank, dims */
    OP_ATT, /* var (or NC_GLOBAL), name, type, n */
    OP_RENAME_DIM,
    OP_RENAME_VAR,
    OP_RENAME_ATT, /* var: whose or which; name, to */
    OP_FILL, /* arg: NC_FILL or NC_NOFILL */
    OP_ENDDEF, /* plain if n is 0, else nc__enddef with align[] */
    OP_ABORT, /* of a redefinition */
    OP_PUT, /* var, start, count */
    OP_SYNC,
    OP_CLOSE,
    OP_LINK, /* gives the file a second name */
    OP_SYMLINK, /* FILE_NAME becomes a symbolic link; before create */
    OP_GUISE, /* chmod to n; with arg, go on as another user than the file's owner */
};

struct op {
    enum kind kind;
    int var, arg, rank, dims[MAX_RANK];
    nc_type type;
    size_t n, start[MAX_RANK], count[MAX_RANK], align[4];
    char name[NAME_BYTES], to[NAME_BYTES];
};

struct plan {
    struct op *ops;
    int n, room;
    int version; /* 1, 2 or 5 */
    int rounds; /* how often the scenario repeats its step */
    /* What the builder keeps track of while it lays out the operations. */
    int n_dims, n_vars, n_records;
    struct {
        nc_type type;
        int rank, is_record;
        size_t count[MAX_RANK];
    } vars[MAX_VARS];
    size_t dim_len[64];
};

/* Fills `plan` with the scenario's operations; 0 if there is no such scenario. rounds 0 means the
 * scenario's own number. */
int plan_build(struct plan *plan, const char *scenario, int version, int rounds);
/* Hands the name of each scenario to `say`. */
void plan_names(void (*say)(const char *));

/* Whether everything up to a successful `op` is promised to last. */
int op_commits(const struct op *op);

size_t type_size(nc_type type);
/* The value of element `at` of `var` as operation `put` wrote it, in memory form. */
void value_of(nc_type type, int var, size_t at, int put, void *out);
/* Likewise `n` values of an attribute. */
void att_values(nc_type type, int put, size_t n, void *out);
void fill_value(nc_type type, void *out);
void *must(void *memory);

#endif
