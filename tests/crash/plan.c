/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * How scenarios are laid out as operations. */
#include "build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int op_commits(const struct plan *plan, int k) {
    const struct op *op = &plan->ops[k];
    if (op->kind == OP_ENDDEF || op->kind == OP_SYNC || op->kind == OP_CLOSE) return k;
    return op->kind == OP_PUT && op->arg ? k - 1 : -1;
}

int op_defines(const struct op *op) {
    return op->kind >= OP_DIM && op->kind <= OP_RENAME_ATT;
}

struct op *add(struct plan *p, enum kind kind) {
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 256;
        p->ops = must(realloc(p->ops, (size_t)p->room * sizeof *p->ops));
    }
    struct op *op = &p->ops[p->n++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    return op;
}

static struct op *add_named(struct plan *p, enum kind kind, const char *name) {
    struct op *op = add(p, kind);
    snprintf(op->name, NAME_BYTES, "%s", name);
    return op;
}

static void room_for(int n, int most, const char *what) {
    if (n < most) return;
    fprintf(stderr, "crash: too many rounds, a file would have over %d %s\n", most, what);
    exit(70);
}

int dim_in(struct plan *p, int group, const char *name, size_t len) {
    room_for(p->n_dims, MAX_DIMS, "dimensions");
    struct op *op = add_named(p, OP_DIM, name);
    op->n = len;
    op->arg = group;
    p->dim_len[p->n_dims] = len;
    return p->n_dims++;
}

int dim(struct plan *p, const char *name, size_t len) { return dim_in(p, 0, name, len); }

int group(struct plan *p, int in, const char *name) {
    room_for(p->n_groups, MAX_GROUPS - 1, "groups");
    add_named(p, OP_GROUP, name)->arg = in;
    return ++p->n_groups; /* the root group is 0 */
}

void type(struct plan *p, nc_type type) { add_named(p, OP_TYPE, type_name(type))->type = type; }

int var(struct plan *p, int group, const char *name, nc_type type, int rank, const int *dims) {
    room_for(p->n_vars, MAX_VARS, "variables");
    /* CDF-1 and CDF-2 know the six old types only. */
    if (p->version < NETCDF4 && type > NC_DOUBLE) type = NC_DOUBLE - type % 3;
    struct op *op = add_named(p, OP_VAR, name);
    op->type = type;
    op->rank = rank;
    op->arg = group;
    p->vars[p->n_vars].type = type;
    p->vars[p->n_vars].rank = rank;
    p->vars[p->n_vars].is_record = rank && p->dim_len[dims[0]] == 0;
    for (int i = 0; i < rank; i++) {
        op->dims[i] = dims[i];
        p->vars[p->n_vars].count[i] = p->dim_len[dims[i]];
    }
    return p->n_vars++;
}

int var1(struct plan *p, const char *name, nc_type type, int d) {
    return var(p, 0, name, type, 1, &d);
}

int var2(struct plan *p, const char *name, nc_type type, int d0, int d1) {
    return var(p, 0, name, type, 2, (int[]){d0, d1});
}

void layout(struct plan *p, int var, int how, int level, size_t rows) {
    if (p->version != NETCDF4) return;
    struct op *op = add(p, OP_LAYOUT);
    op->var = var;
    op->arg = how;
    op->n = (size_t)level;
    for (int i = 0; i < p->vars[var].rank; i++) op->count[i] = i ? p->vars[var].count[i] : rows;
}

static struct op *add_att(struct plan *p, int var, const char *name, nc_type type, size_t n) {
    struct op *op = add_named(p, OP_ATT, name);
    op->var = var;
    op->type = type;
    op->n = n;
    return op;
}

void att(struct plan *p, int var, const char *name, nc_type type, size_t n) {
    add_att(p, var, name, type, n);
}

void att_in(struct plan *p, int group, const char *name, nc_type type, size_t n) {
    add_att(p, NC_GLOBAL, name, type, n)->arg = group;
}

void del_att(struct plan *p, int var, const char *name) {
    add_named(p, OP_DEL_ATT, name)->var = var;
}

void rename_it(struct plan *p, enum kind kind, int var, const char *name, const char *to) {
    struct op *op = add_named(p, kind, name);
    op->var = var;
    snprintf(op->to, NAME_BYTES, "%s", to);
}

void put(struct plan *p, int var, size_t first, size_t n) {
    struct op *op = add(p, OP_PUT);
    op->var = var;
    op->rank = p->vars[var].rank;
    for (int i = 0; i < op->rank; i++) {
        op->start[i] = i ? 0 : first;
        op->count[i] = i ? p->vars[var].count[i] : n;
    }
    if (p->vars[var].is_record && (int)(first + n) > p->n_records) p->n_records = (int)(first + n);
}

void put_all(struct plan *p, int var) { put(p, var, 0, p->vars[var].count[0]); }

void put_record(struct plan *p, int record) {
    for (int v = 0; v < p->n_vars; v++)
        if (p->vars[v].is_record) put(p, v, (size_t)record, 1);
}

void put_fixed(struct plan *p) {
    for (int v = 0; v < p->n_vars; v++)
        if (!p->vars[v].is_record) put_all(p, v);
}

void enddef_as(struct plan *p, size_t h_free, size_t v_align, size_t v_free, size_t r_align) {
    struct op *op = add(p, OP_ENDDEF);
    op->n = 4;
    op->align[0] = h_free, op->align[1] = v_align, op->align[2] = v_free, op->align[3] = r_align;
}

void enddef_tight(struct plan *p) { enddef_as(p, 0, 4, 0, 4); }
void enddef_plain(struct plan *p) { add(p, OP_ENDDEF); }

void create(struct plan *p, int bits) { add(p, OP_CREATE)->arg = bits; }

void reopen(struct plan *p, int bits) {
    add(p, OP_CLOSE);
    add(p, OP_OPEN)->arg = bits;
}

void go_on(struct plan *p) {
    put_record(p, p->n_records);
    put_all(p, 0);
    add(p, OP_SYNC);
}

void indexed(char *out, const char *stem, int i) { snprintf(out, NAME_BYTES, "%s%03d", stem, i); }

/* All scenarios. */

static const struct scene *const tables[] = {scenes, scenes4};

int plan_build(struct plan *plan, const char *scenario, int version, int rounds) {
    memset(plan, 0, sizeof *plan);
    plan->version = version;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct scene *s = tables[t]; s->name; s++) {
            if (strcmp(s->name, scenario) || !(s->versions >> version & 1)) continue;
            plan->rounds = rounds > 0 ? rounds : s->rounds;
            s->build(plan);
            add(plan, OP_CLOSE);
            return 1;
        }
    return 0;
}

void plan_names(void (*say)(const char *, int)) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct scene *s = tables[t]; s->name; s++)
            for (int version = 1; version <= 5; version++)
                if (s->versions >> version & 1) say(s->name, version);
}
