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
#define NETCDF4 4 /* the version that is no classic format */
#define MAX_RANK 3
#define NAME_BYTES 32
#define MAX_VARS 256
#define MAX_DIMS 64
#define MAX_GROUPS 8

/* Types of netCDF-4 that are no numbers. Memory of the tests has 8 bytes or fewer for an element of
 * each: of strings and lists it is a number that they follow from (see `pack`). */
enum {
    TYPE_PAIR = 64, /* a compound of two unsigned int */
    TYPE_LIST, /* a vlen of int */
    TYPE_KIND, /* an enum of short */
    TYPE_BLOB, /* an opaque of 5 bytes */
    TYPE_END,
};

enum kind {
    OP_CREATE, /* arg: cmode bits, beside the version's */
    OP_OPEN, /* arg: omode bits, beside NC_WRITE */
    OP_REDEF,
    OP_DIM, /* name, n (0: unlimited), arg: group */
    OP_VAR, /* name, type, rank, dims, arg: group */
    OP_GROUP, /* name, arg: the group it is in */
    OP_TYPE, /* type, in the root group */
    OP_LAYOUT, /* var, arg: LAYOUT_..., n: level of deflate, count: shape of chunks */
    OP_ATT, /* var (or NC_GLOBAL, then arg: group), name, type, n */
    OP_DEL_ATT, /* likewise var, arg, name */
    OP_RENAME_DIM,
    OP_RENAME_VAR,
    OP_RENAME_ATT, /* var: whose or which; name, to */
    OP_FILL, /* arg: NC_FILL or NC_NOFILL */
    OP_ENDDEF, /* plain if n is 0, else nc__enddef with align[] */
    OP_ABORT, /* of a redefinition */
    OP_PUT, /* var, start, count; arg: so much was put before that this commits it */
    OP_SYNC,
    OP_CLOSE,
    OP_LINK, /* gives the file a second name */
    OP_SYMLINK, /* FILE_NAME becomes a symbolic link; before create */
    OP_GUISE, /* chmod to n; with arg, go on as another user than the file's owner */
};

enum { LAYOUT_CONTIGUOUS = 1, LAYOUT_CHUNKED = 2, LAYOUT_SHUFFLE = 4, LAYOUT_CHECKSUM = 8 };

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
    int version; /* 1, 2, 5 or NETCDF4 */
    int rounds; /* how often the scenario repeats its step */
    /* What the builder keeps track of while it lays out the operations. */
    int n_dims, n_vars, n_groups, n_records; /* records of the first unlimited dimension */
    struct {
        nc_type type;
        int rank, is_record;
        size_t count[MAX_RANK];
    } vars[MAX_VARS];
    size_t dim_len[MAX_DIMS];
};

/* Fills `plan` with the scenario's operations; 0 if there is no such scenario in this version.
 * rounds 0 means the scenario's own number. */
int plan_build(struct plan *plan, const char *scenario, int version, int rounds);
/* Hands each scenario with each of its versions to `say`. */
void plan_names(void (*say)(const char *, int));

/* The last operation that is promised to last when operation k has succeeded: k, the one before it,
 * or -1 where nothing is promised. */
int op_commits(const struct plan *plan, int k);
/* Whether `op` changes definitions. */
int op_defines(const struct op *op);

/* Bytes of an element in the memory of the tests. */
size_t type_size(nc_type type);
/* The value of element `at` of `var` as operation `put` wrote it, in that form. */
void value_of(nc_type type, int var, size_t at, int put, void *out);
/* Likewise `n` values of an attribute. */
void att_values(nc_type type, int put, size_t n, void *out);
void fill_value(nc_type type, void *out);
/* Name of a type that must be defined first. */
const char *type_name(nc_type type);
/* The type of the tests that is type `id` of a file, and the other way round; 0 for none. */
nc_type type_of(int ncid, nc_type id);
nc_type type_id(int ncid, nc_type type);
/* `n` elements for the interface from those of the tests, and back. What was packed is to be given
 * to `packed_free`, what the library filled to `unpack`, which frees it too. */
void *pack(nc_type type, const void *elements, size_t n);
void packed_free(nc_type type, void *packed, size_t n);
size_t packed_size(nc_type type);
void unpack(nc_type type, void *packed, size_t n, void *elements);
void *must(void *memory);

#endif
