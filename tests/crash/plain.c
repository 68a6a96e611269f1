/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The functions of netCDF that check.c and shows.c inquire with, over files that another program has
 * read and written out plainly (h5reader.py). Linked before a libnetcdf these come first, so the rules
 * of the checker hold for what that program sees.
 *
 * The file is FOLDER/.plain, empty where the other program could not read x.nc. `number` is 8 bytes,
 * `text` a number and so many bytes; lists are a number and their items:
 *
 *   file    list of text (names of types; the first is number 32), group
 *   group   text, list of (number id, text, number length, number is unlimited), atts, list of
 *           var, list of group
 *   atts    list of (text, number type, number of values, values)
 *   var     text, number type, list of number (dimensions), atts, number is contiguous, number is
 *           shuffled, number level of deflate (-1: none), number has a checksum, values
 *   values  text: elements as they are in memory; of strings and lists each a list */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_USER_TYPE 32
#define NAMES (TYPE_END - TYPE_PAIR)

struct text {
    const char *at;
    size_t n;
};
struct att {
    struct text name, values;
    nc_type type;
    size_t n;
};
struct atts {
    struct att *list;
    int n;
};
struct dim {
    struct text name;
    int id, is_unlimited;
    size_t len;
};
struct var {
    struct text name, values;
    nc_type type;
    int rank, dims[MAX_RANK], contiguous, shuffle, level, checksum;
    struct atts atts;
};
/* Its number in `groups` is its ncid. */
struct group {
    struct text name;
    struct dim dims[MAX_DIMS];
    struct var *vars;
    struct atts atts;
    int n_dims, n_vars, parent;
};

static char *bytes;
static size_t n_bytes, at;
static int broken; /* the other program and this one do not agree on the form */
static struct text types[NAMES];
static struct group groups[MAX_GROUPS];
static int n_types, n_groups;

static struct text take(size_t n) {
    struct text taken = {bytes + at, n};
    if (n > n_bytes - at) broken = 1, taken.n = 0;
    at += taken.n;
    return taken;
}

static long long number(void) {
    long long n = 0;
    const struct text taken = take(sizeof n);
    memcpy(&n, taken.at, taken.n);
    return n;
}

static struct text text(void) { return take((size_t)number()); }

/* How many items follow, of which each takes 8 bytes or more. */
static int count(long long most) {
    const long long n = number();
    if (n < 0 || n > most || (size_t)n > (n_bytes - at) / 8) broken = 1;
    return broken ? 0 : (int)n;
}

static int is(struct text name, const char *other) {
    return strlen(other) == name.n && !memcmp(name.at, other, name.n);
}

static void copy_name(struct text name, char *out) {
    const size_t n = name.n < NC_MAX_NAME ? name.n : NC_MAX_NAME;
    if (!out) return;
    memcpy(out, name.at, n);
    out[n] = 0;
}

static struct atts read_atts(void) {
    struct atts atts = {NULL, count(NC_MAX_ATTRS)};
    atts.list = must(calloc((size_t)atts.n + 1, sizeof *atts.list));
    for (int i = 0; i < atts.n; i++) {
        struct att *att = &atts.list[i];
        att->name = text();
        att->type = (nc_type)number();
        att->n = (size_t)number();
        att->values = text();
    }
    return atts;
}

static void read_group(int parent) {
    if (n_groups == MAX_GROUPS) broken = 1;
    if (broken) return;
    const int id = n_groups++;
    struct group *g = &groups[id];
    g->parent = parent;
    g->name = text();
    g->n_dims = count(MAX_DIMS);
    for (int i = 0; i < g->n_dims; i++) {
        struct dim *dim = &g->dims[i];
        dim->id = (int)number();
        dim->name = text();
        dim->len = (size_t)number();
        dim->is_unlimited = (int)number();
    }
    g->atts = read_atts();
    g->n_vars = count(NC_MAX_VARS);
    g->vars = must(calloc((size_t)g->n_vars + 1, sizeof *g->vars));
    for (int v = 0; v < g->n_vars; v++) {
        struct var *var = &g->vars[v];
        var->name = text();
        var->type = (nc_type)number();
        var->rank = count(MAX_RANK);
        for (int i = 0; i < var->rank; i++) var->dims[i] = (int)number();
        var->atts = read_atts();
        var->contiguous = (int)number();
        var->shuffle = (int)number();
        var->level = (int)number();
        var->checksum = (int)number();
        var->values = text();
    }
    for (int n = count(MAX_GROUPS); n-- > 0;) read_group(id);
}

static void forget(void) {
    for (int g = 0; g < n_groups; g++) {
        for (int v = 0; v < groups[g].n_vars; v++) free(groups[g].vars[v].atts.list);
        free(groups[g].vars);
        free(groups[g].atts.list);
    }
    memset(groups, 0, sizeof groups);
    free(bytes);
    bytes = NULL;
    n_groups = 0, at = 0;
}

int nc_open(const char *path, int mode, int *ncid) {
    char name[4200];
    const char *slash = strrchr(path, '/');
    if (mode != NC_NOWRITE || !slash) return NC_EPERM;
    snprintf(name, sizeof name, "%.*s/.plain", (int)(slash - path), path);
    FILE *f = fopen(name, "rb");
    if (!f) return NC_ENOTFOUND;
    fseek(f, 0, SEEK_END);
    const size_t size = (size_t)ftell(f);
    rewind(f);
    bytes = must(malloc(size + 1));
    n_bytes = fread(bytes, 1, size, f);
    fclose(f);
    broken = n_bytes == 0;
    n_types = count(NAMES);
    for (int i = 0; i < n_types; i++) types[i] = text();
    read_group(-1);
    if (broken || at != n_bytes) {
        forget();
        return NC_EHDFERR;
    }
    *ncid = 0;
    return NC_NOERR;
}

int nc_close(int ncid) {
    forget();
    return ncid == 0 ? NC_NOERR : NC_EBADID;
}

int nc_inq_format(int ncid, int *format) {
    *format = NC_FORMAT_NETCDF4;
    return ncid < n_groups ? NC_NOERR : NC_EBADID;
}

/* Groups and types. */

int nc_inq_grps(int ncid, int *n, int *ids) {
    *n = 0;
    for (int g = 0; g < n_groups; g++) *n += groups[g].parent == ncid;
    return ids ? NC_EINVAL : NC_NOERR;
}

int nc_inq_ncid(int ncid, const char *name, int *id) {
    for (*id = 0; *id < n_groups; ++*id)
        if (groups[*id].parent == ncid && is(groups[*id].name, name)) return NC_NOERR;
    return NC_ENOGRP;
}

int nc_inq_typeids(int ncid, int *n, int *ids) {
    *n = n_types;
    return ids || ncid != 0 ? NC_EINVAL : NC_NOERR;
}

int nc_inq_typeid(int ncid, const char *name, nc_type *id) {
    for (int i = 0; i < n_types; i++) {
        *id = FIRST_USER_TYPE + i;
        if (is(types[i], name)) return NC_NOERR;
    }
    return ncid < n_groups ? NC_EBADTYPE : NC_EBADID;
}

int nc_inq_user_type(int ncid, nc_type id, char *name, size_t *size, nc_type *base, size_t *n,
                     int *class) {
    const int i = id - FIRST_USER_TYPE;
    if (size || base || n || class || ncid >= n_groups) return NC_EINVAL;
    if (i < 0 || i >= n_types) return NC_EBADTYPE;
    copy_name(types[i], name);
    return NC_NOERR;
}

/* Dimensions. */

int nc_inq_dimids(int ncid, int *n, int *ids, int with_parents) {
    const struct group *g = &groups[ncid];
    *n = g->n_dims;
    for (int i = 0; i < g->n_dims && ids; i++) ids[i] = g->dims[i].id;
    return with_parents ? NC_EINVAL : NC_NOERR;
}

int nc_inq_unlimdims(int ncid, int *n, int *ids) {
    const struct group *g = &groups[ncid];
    *n = 0;
    for (int i = 0; i < g->n_dims; i++) {
        if (!g->dims[i].is_unlimited) continue;
        if (ids) ids[*n] = g->dims[i].id;
        ++*n;
    }
    return NC_NOERR;
}

int nc_inq_dim(int ncid, int id, char *name, size_t *len) {
    for (int i = 0; i < groups[ncid].n_dims; i++) {
        const struct dim *dim = &groups[ncid].dims[i];
        if (dim->id != id) continue;
        copy_name(dim->name, name);
        *len = dim->len;
        return NC_NOERR;
    }
    return NC_EBADDIM;
}

int nc_inq_dimlen(int ncid, int id, size_t *len) { return nc_inq_dim(ncid, id, NULL, len); }

/* Variables. */

int nc_inq_nvars(int ncid, int *n) {
    *n = groups[ncid].n_vars;
    return NC_NOERR;
}

static const struct var *var_at(int ncid, int id) {
    return id >= 0 && id < groups[ncid].n_vars ? &groups[ncid].vars[id] : NULL;
}

int nc_inq_var(int ncid, int id, char *name, nc_type *type, int *rank, int *dims, int *n_atts) {
    const struct var *var = var_at(ncid, id);
    if (!var) return NC_ENOTVAR;
    copy_name(var->name, name);
    *type = var->type;
    *rank = var->rank;
    memcpy(dims, var->dims, (size_t)var->rank * sizeof *dims);
    *n_atts = var->atts.n;
    return NC_NOERR;
}

int nc_inq_varname(int ncid, int id, char *name) {
    const struct var *var = var_at(ncid, id);
    if (var) copy_name(var->name, name);
    return var ? NC_NOERR : NC_ENOTVAR;
}

int nc_inq_vartype(int ncid, int id, nc_type *type) {
    const struct var *var = var_at(ncid, id);
    if (var) *type = var->type;
    return var ? NC_NOERR : NC_ENOTVAR;
}

int nc_inq_var_chunking(int ncid, int id, int *storage, size_t *sizes) {
    const struct var *var = var_at(ncid, id);
    if (!var || sizes) return NC_EINVAL;
    *storage = var->contiguous ? NC_CONTIGUOUS : NC_CHUNKED;
    return NC_NOERR;
}

int nc_inq_var_deflate(int ncid, int id, int *shuffle, int *deflate, int *level) {
    const struct var *var = var_at(ncid, id);
    if (!var) return NC_ENOTVAR;
    *shuffle = var->shuffle;
    *deflate = var->level >= 0;
    *level = var->level;
    return NC_NOERR;
}

int nc_inq_var_fletcher32(int ncid, int id, int *checksum) {
    const struct var *var = var_at(ncid, id);
    if (!var) return NC_ENOTVAR;
    *checksum = var->checksum;
    return NC_NOERR;
}

/* Values. */

/* Elements as a library gives them: strings and lists in memory of their own. */
static int unfold(nc_type id, struct text values, size_t n, void *out) {
    const nc_type type = type_of(0, id);
    const size_t size = packed_size(type), item = type == NC_STRING ? 1 : sizeof(int);
    if (type != NC_STRING && type != TYPE_LIST) {
        if (values.n != n * size) return NC_EHDFERR;
        memcpy(out, values.at, values.n);
        return NC_NOERR;
    }
    const char *from = values.at, *end = values.at + values.n;
    for (size_t i = 0; i < n; i++) {
        long long len;
        if ((size_t)(end - from) < sizeof len) return NC_EHDFERR;
        memcpy(&len, from, sizeof len);
        from += sizeof len;
        if (len < 0 || (size_t)len > (size_t)(end - from) / item) return NC_EHDFERR;
        char *own = must(calloc((size_t)len + 1, item));
        memcpy(own, from, (size_t)len * item);
        from += (size_t)len * item;
        if (type == NC_STRING)
            ((char **)out)[i] = own;
        else
            ((nc_vlen_t *)out)[i] = (nc_vlen_t){(size_t)len, own};
    }
    return from == end ? NC_NOERR : NC_EHDFERR;
}

int nc_get_var(int ncid, int id, void *out) {
    const struct var *var = var_at(ncid, id);
    size_t n = 1, len;
    if (!var) return NC_ENOTVAR;
    for (int i = 0; i < var->rank; i++) {
        int code = NC_EBADDIM;
        for (int g = ncid; g >= 0 && code; g = groups[g].parent)
            code = nc_inq_dimlen(g, var->dims[i], &len);
        if (code) return code;
        n *= len;
    }
    return unfold(var->type, var->values, n, out);
}

static const struct atts *atts_of(int ncid, int var) {
    if (var == NC_GLOBAL) return &groups[ncid].atts;
    const struct var *found = var_at(ncid, var);
    return found ? &found->atts : NULL;
}

static const struct att *att_named(int ncid, int var, const char *name) {
    const struct atts *atts = atts_of(ncid, var);
    for (int i = 0; atts && i < atts->n; i++)
        if (is(atts->list[i].name, name)) return &atts->list[i];
    return NULL;
}

int nc_inq_natts(int ncid, int *n) {
    *n = groups[ncid].atts.n;
    return NC_NOERR;
}

int nc_inq_attname(int ncid, int var, int i, char *name) {
    const struct atts *atts = atts_of(ncid, var);
    if (!atts || i < 0 || i >= atts->n) return NC_ENOTATT;
    copy_name(atts->list[i].name, name);
    return NC_NOERR;
}

int nc_inq_att(int ncid, int var, const char *name, nc_type *type, size_t *n) {
    const struct att *att = att_named(ncid, var, name);
    if (!att) return NC_ENOTATT;
    *type = att->type;
    *n = att->n;
    return NC_NOERR;
}

int nc_inq_attid(int ncid, int var, const char *name, int *id) {
    *id = 0; /* nobody asks for the number */
    return att_named(ncid, var, name) ? NC_NOERR : NC_ENOTATT;
}

int nc_get_att(int ncid, int var, const char *name, void *out) {
    const struct att *att = att_named(ncid, var, name);
    return att ? unfold(att->type, att->values, att->n, out) : NC_ENOTATT;
}

const char *nc_inq_libvers(void) { return "h5py"; }
