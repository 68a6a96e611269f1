/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static struct atts copy_atts(const struct atts *from) {
    struct atts to = {must(malloc((size_t)(from->n + 1) * sizeof *to.list)), from->n};
    memcpy(to.list, from->list, (size_t)from->n * sizeof *to.list);
    return to;
}

static struct defs *copy_defs(const struct defs *from) {
    struct defs *to = must(malloc(sizeof *to));
    *to = *from;
    for (int g = 0; g < MAX_GROUPS; g++) to->groups[g].atts = copy_atts(&from->groups[g].atts);
    for (int v = 0; v < from->n_vars; v++) to->vars[v].atts = copy_atts(&from->vars[v].atts);
    return to;
}

static void free_defs(struct defs *defs) {
    if (!defs) return;
    for (int v = 0; v < defs->n_vars; v++) free(defs->vars[v].atts.list);
    for (int g = 0; g < MAX_GROUPS; g++) free(defs->groups[g].atts.list);
    free(defs);
}

static struct atts *atts_of(struct defs *d, const struct op *op) {
    return op->var == NC_GLOBAL ? &d->groups[op->arg].atts : &d->vars[op->var].atts;
}

static struct att *find_att(struct atts *atts, const char *name) {
    for (int i = 0; i < atts->n; i++)
        if (!strcmp(atts->list[i].name, name)) return &atts->list[i];
    return NULL;
}

/* Takes up a definition; whether `op` was one. */
static int define(struct defs *d, const struct op *op, int k) {
    struct atts *atts;
    struct att *att;
    struct var *var;
    switch (op->kind) {
        case OP_DIM:
            memcpy(d->dims[d->n_dims].name, op->name, NAME_BYTES);
            d->dims[d->n_dims].group = op->arg;
            d->dims[d->n_dims++].len = op->n;
            return 1;
        case OP_VAR:
            var = &d->vars[d->n_vars++];
            memset(var, 0, sizeof *var);
            memcpy(var->name, op->name, NAME_BYTES);
            var->type = op->type;
            var->rank = op->rank;
            var->group = op->arg;
            memcpy(var->dims, op->dims, sizeof var->dims);
            return 1;
        case OP_GROUP:
            memcpy(d->groups[d->n_groups].name, op->name, NAME_BYTES);
            d->groups[d->n_groups++].parent = op->arg;
            return 1;
        case OP_TYPE: d->types[d->n_types++] = op->type; return 1;
        case OP_LAYOUT:
            d->vars[op->var].layout = op->arg;
            d->vars[op->var].level = (int)op->n;
            return 1;
        case OP_ATT:
            atts = atts_of(d, op);
            att = find_att(atts, op->name);
            if (!att) {
                atts->list = must(realloc(atts->list, (size_t)(atts->n + 1) * sizeof *atts->list));
                att = &atts->list[atts->n++];
                memcpy(att->name, op->name, NAME_BYTES);
            }
            att->type = op->type, att->n = op->n, att->put = k;
            return 1;
        case OP_DEL_ATT:
            atts = atts_of(d, op);
            att = find_att(atts, op->name);
            memmove(att, att + 1, (size_t)(&atts->list[atts->n--] - (att + 1)) * sizeof *att);
            return 1;
        case OP_RENAME_DIM: memcpy(d->dims[op->var].name, op->to, NAME_BYTES); return 1;
        case OP_RENAME_VAR: memcpy(d->vars[op->var].name, op->to, NAME_BYTES); return 1;
        case OP_RENAME_ATT:
            memcpy(find_att(atts_of(d, op), op->name)->name, op->to, NAME_BYTES);
            return 1;
        default: return 0;
    }
}

size_t var_elems(const struct defs *defs, int v, const size_t *len) {
    const struct var *var = &defs->vars[v];
    size_t n = 1;
    for (int i = 0; i < var->rank; i++)
        n *= defs->dims[var->dims[i]].len ? defs->dims[var->dims[i]].len : len[var->dims[i]];
    return n;
}

static size_t row_elems(const struct defs *defs, int v) {
    const size_t ones[MAX_DIMS] = {[0 ... MAX_DIMS - 1] = 1};
    return var_elems(defs, v, ones);
}

/* Elements up to `n` exist; nobody put the new ones. */
static void extend(struct data *d, nc_type type, size_t n, int put) {
    const size_t size = type_size(type);
    if (n > d->room) {
        d->room = n + n / 2;
        d->put = must(realloc(d->put, d->room * sizeof *d->put));
        d->want = must(realloc(d->want, d->room * size));
    }
    for (; d->n < n; d->n++) {
        d->put[d->n] = put;
        fill_value(type, d->want + d->n * size);
    }
}

/* What elements are that nobody puts. */
static int unput(const struct model *m, int v) {
    const int no_fill = m->plan->version == NETCDF4 ? m->data[v].no_fill : m->no_fill;
    return no_fill ? PUT_ANY : PUT_FILL;
}

static void extend_records(struct model *m, int dim, size_t n_records) {
    if (n_records <= m->len[dim]) return;
    m->len[dim] = n_records;
    for (int v = 0; v < m->now->n_vars; v++)
        if (m->data[v].exists && m->data[v].unlimited == dim)
            extend(&m->data[v], m->now->vars[v].type, n_records * m->data[v].row, unput(m, v));
}

/* Variables that the definitions now have get their elements. */
static void make_data(struct model *m) {
    for (int v = 0; v < m->now->n_vars; v++) {
        struct data *d = &m->data[v];
        const struct var *var = &m->now->vars[v];
        if (d->exists) continue;
        d->exists = 1;
        d->unlimited = var->rank > 0 && m->now->dims[var->dims[0]].len == 0 ? var->dims[0] : -1;
        d->no_fill = m->no_fill;
        d->row = row_elems(m->now, v);
        extend(d, var->type, var_elems(m->now, v, m->len), unput(m, v));
    }
}

static void push_version(struct model *m, const struct defs *defs) {
    m->versions = must(realloc(m->versions, (size_t)(m->n_versions + 1) * sizeof *m->versions));
    m->versions[m->n_versions++] = copy_defs(defs);
}

static void drop_versions(struct model *m, int keep) {
    while (m->n_versions > keep) free_defs(m->versions[--m->n_versions]);
}

/* First element of a put, and how many. */
static size_t extent(const struct op *op, size_t *n) {
    size_t row = 1;
    for (int i = 1; i < op->rank; i++) row *= op->count[i];
    *n = op->rank ? op->count[0] * row : 1;
    return op->rank ? op->start[0] * row : 0;
}

static void take_put(struct model *m, const struct op *op, int k) {
    struct data *d = &m->data[op->var];
    const nc_type type = m->now->vars[op->var].type;
    size_t n, first = extent(op, &n);
    if (d->unlimited >= 0) extend_records(m, d->unlimited, op->start[0] + op->count[0]);
    for (size_t e = first; e < first + n; e++) {
        d->put[e] = k;
        value_of(type, op->var, e, k, d->want + e * type_size(type));
    }
}

/* The newest version of all, which may be on its way. */
static void publish(struct model *m, int promised) {
    if (promised) drop_versions(m, 0), m->has_promise = 1;
    push_version(m, m->now);
}

/* In netCDF-4, what needs data mode enters it. */
static int ends_definitions(const struct model *m, const struct op *op) {
    const int implicit = op->kind == OP_PUT || op->kind == OP_SYNC;
    return op->kind == OP_ENDDEF || op->kind == OP_CLOSE ||
           (implicit && m->plan->version == NETCDF4);
}

/* Operation k, wholly done. */
static void take(struct model *m, int k) {
    const struct op *op = &m->plan->ops[k];
    const int defined = define(m->now, op, k);
    if (m->defining && ends_definitions(m, op)) {
        m->defining = 0;
        make_data(m);
        publish(m, 1);
    } else if (defined && !m->defining) {
        make_data(m);
        publish(m, 1);
    }
    switch (op->kind) {
        case OP_CREATE:
        case OP_REDEF: m->defining = 1; break;
        case OP_FILL: m->no_fill = op->arg == NC_NOFILL; break;
        case OP_OPEN: m->no_fill = 0; break;
        case OP_PUT: take_put(m, op, k); break;
        case OP_ABORT:
            free_defs(m->now);
            m->now = copy_defs(m->versions[0]);
            m->defining = 0;
            break;
        default: break;
    }
}

/* What operations after the promise may have done. */
static void fly(struct model *m, int begun, int after_error) {
    struct defs *was = copy_defs(m->now);
    const int was_defining = m->defining, was_promised = m->has_promise;
    m->n_flying = 0;
    memcpy(m->max_len, m->len, sizeof m->len);
    m->flying_no_fill = m->no_fill;
    drop_versions(m, was_promised ? 1 : 0);
    /* After an error the writer closes, which ends define mode: what was defined may have gone
     * into the file or not. */
    if (m->defining && after_error) publish(m, 0);
    for (int k = m->promised + 1; k <= begun; k++) {
        const struct op *op = &m->plan->ops[k];
        int defined = define(m->now, op, k);
        if (op->kind == OP_REDEF || op->kind == OP_CREATE) m->defining = 1;
        if (op->kind == OP_FILL) m->flying_no_fill |= op->arg == NC_NOFILL;
        if (op->kind == OP_ABORT) {
            free_defs(m->now);
            m->now = copy_defs(m->versions[0]);
            m->defining = 0;
        }
        if (m->defining && ends_definitions(m, op)) {
            publish(m, 0);
            m->defining = 0;
        } else if (defined && !m->defining) {
            publish(m, 0);
        }
        if (op->kind == OP_PUT) {
            m->flying = must(realloc(m->flying, (size_t)(m->n_flying + 1) * sizeof *m->flying));
            m->flying[m->n_flying++] = k;
            const struct var *var = &m->now->vars[op->var];
            const int d = var->rank ? var->dims[0] : -1;
            if (d >= 0 && m->now->dims[d].len == 0 && op->start[0] + op->count[0] > m->max_len[d])
                m->max_len[d] = op->start[0] + op->count[0];
        }
    }
    /* An operation that failed in define mode, and then a close. */
    if (m->defining && after_error) publish(m, 0);
    free_defs(m->now);
    m->now = was;
    m->defining = was_defining;
    m->has_promise = was_promised;
    m->begun = begun;
}

void model_at(struct model *m, const struct plan *plan, int promised, int begun, int after_error) {
    if (m->plan == plan && m->promised == promised && m->begun == begun &&
        m->after_error == after_error)
        return;
    if (m->plan != plan || promised < m->promised) {
        drop_versions(m, 0);
        free_defs(m->now);
        for (int v = 0; v < MAX_VARS; v++) free(m->data[v].put), free(m->data[v].want);
        free(m->versions);
        free(m->flying);
        memset(m, 0, sizeof *m);
        m->plan = plan;
        m->promised = -1;
        m->now = must(calloc(1, sizeof *m->now));
        m->now->n_groups = 1;
    }
    while (m->promised < promised) take(m, ++m->promised);
    m->after_error = after_error;
    fly(m, begun, after_error);
}
