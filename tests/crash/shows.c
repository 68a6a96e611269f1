/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "shows.h"

#include <stdlib.h>
#include <string.h>

/* Where an attribute should be: in a classic file they keep their order. In a netCDF-4 file one
 * that was put again or renamed may come later. */
static const struct att *att_at(const struct atts *atts, int i, const char *name, int by_name) {
    for (int k = 0; k < atts->n && by_name; k++)
        if (!strcmp(atts->list[k].name, name)) return &atts->list[k];
    return &atts->list[i];
}

static int read_atts(int ncid, int root, int var, int n, const struct atts *want) {
    char name[NC_MAX_NAME + 1];
    int i = 0, format = 0;
    if (nc_inq_format(ncid, &format)) return 0;
    const int by_name = format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC;
    for (int a = 0; a < n; a++) {
        nc_type id;
        size_t len;
        if (nc_inq_attname(ncid, var, a, name)) return 0;
        if (var == NC_GLOBAL && !strcmp(name, GOON_NAME)) continue;
        if (nc_inq_att(ncid, var, name, &id, &len)) return 0;
        if (i >= want->n) return 0;
        const struct att *att = att_at(want, i++, name, by_name);
        const nc_type type = type_of(root, id);
        if (strcmp(name, att->name) || type != att->type || len != att->n) return 0;
        const size_t size = len * type_size(type);
        char *got = must(malloc(2 * size + 1));
        void *packed = must(calloc(len + 1, packed_size(type)));
        int same = !nc_get_att(ncid, var, name, packed);
        if (same) {
            unpack(type, packed, len, got);
            att_values(type, att->put, len, got + size);
            same = !memcmp(got, got + size, size);
        } else {
            free(packed);
        }
        free(got);
        if (!same) return 0;
    }
    return i == want->n;
}

static int among(int id, const int *ids, int n) {
    for (int i = 0; i < n; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* The dimensions of group g. */
static int dims_show(int id, const struct defs *want, int g) {
    char name[NC_MAX_NAME + 1];
    int ids[MAX_DIMS], unlimited[MAX_DIMS], n, n_unlimited, n_want = 0;
    size_t len;
    if (nc_inq_dimids(id, &n, NULL, 0) || n > MAX_DIMS || nc_inq_dimids(id, &n, ids, 0)) return 0;
    if (nc_inq_unlimdims(id, &n_unlimited, NULL) || n_unlimited > MAX_DIMS) return 0;
    if (nc_inq_unlimdims(id, &n_unlimited, unlimited)) return 0;
    for (int d = 0; d < want->n_dims; d++) {
        const struct dim *dim = &want->dims[d];
        if (dim->group != g) continue;
        n_want++;
        if (!among(d, ids, n) || nc_inq_dim(id, d, name, &len) || strcmp(name, dim->name)) return 0;
        if ((dim->len == 0) != among(d, unlimited, n_unlimited)) return 0;
        if (dim->len && len != dim->len) return 0;
    }
    return n == n_want;
}

static int types_show(int ncid, const struct defs *want) {
    int n;
    if (nc_inq_typeids(ncid, &n, NULL) || n != want->n_types) return 0;
    for (int i = 0; i < n; i++) {
        nc_type id;
        if (nc_inq_typeid(ncid, type_name(want->types[i]), &id)) return 0;
    }
    return 1;
}

/* Names and attributes of group g: its header is switched by one write. */
static int group_shows(int id, int root, const struct defs *want, int g) {
    char name[NC_MAX_NAME + 1];
    int n, child, n_seen = 0;
    if (nc_inq_natts(id, &n) || !read_atts(id, root, NC_GLOBAL, n, &want->groups[g].atts)) return 0;
    if (!dims_show(id, want, g) || (g == 0 && !types_show(id, want))) return 0;
    if (nc_inq_nvars(id, &n)) return 0;
    for (int v = 0; v < want->n_vars; v++) {
        if (want->vars[v].group != g) continue;
        if (n_seen == n || nc_inq_varname(id, n_seen++, name)) return 0;
        if (strcmp(name, want->vars[v].name)) return 0;
    }
    if (n_seen != n || nc_inq_grps(id, &n, NULL)) return 0;
    for (int c = 1; c < want->n_groups; c++)
        if (want->groups[c].parent == g &&
            (n-- == 0 || nc_inq_ncid(id, want->groups[c].name, &child)))
            return 0;
    return n == 0;
}

static int layout_shows(int ncid, int id, const struct var *want) {
    int storage, shuffle, deflate, level, checksum;
    if (nc_inq_var_chunking(ncid, id, &storage, NULL)) return 0;
    if (nc_inq_var_deflate(ncid, id, &shuffle, &deflate, &level)) return 0;
    if (nc_inq_var_fletcher32(ncid, id, &checksum)) return 0;
    if ((storage == NC_CONTIGUOUS) != !!(want->layout & LAYOUT_CONTIGUOUS)) return 0;
    if (!!checksum != !!(want->layout & LAYOUT_CHECKSUM)) return 0;
    return deflate ? level == want->level : want->level == 0;
}

/* All of a variable but its name, which its group has. */
static int var_shows(int ncid, int root, int id, const struct var *want) {
    nc_type type;
    int rank, n_atts, dims[NC_MAX_VAR_DIMS];
    if (nc_inq_var(ncid, id, NULL, &type, &rank, dims, &n_atts)) return 0;
    if (type_of(root, type) != want->type || rank != want->rank) return 0;
    if (memcmp(dims, want->dims, (size_t)rank * sizeof *dims)) return 0;
    if (want->layout && !layout_shows(ncid, id, want)) return 0;
    return read_atts(ncid, root, id, n_atts, &want->atts);
}

/* Takes group g, if it and its variables are as in one of the versions from `first` to `last`. */
static int take_group(int ncid, const struct model *m, struct shown *s, int g, int first,
                      int last) {
    const int id = s->group_id[g];
    int i = last, n = 0;
    while (i >= first &&
           (m->versions[i]->n_groups <= g || !group_shows(id, ncid, m->versions[i], g)))
        i--;
    if (i < first) return 0;
    const struct defs *defs = m->versions[i];
    s->defs.groups[g] = defs->groups[g];
    for (int d = 0; d < defs->n_dims; d++)
        if (defs->dims[d].group == g) s->defs.dims[d] = defs->dims[d], s->has_dim[d] = 1;
    for (int v = 0; v < defs->n_vars; v++) {
        if (defs->vars[v].group != g) continue;
        int j = last;
        while (j >= first &&
               (m->versions[j]->n_vars <= v || !var_shows(id, ncid, n, &m->versions[j]->vars[v])))
            j--;
        if (j < first) return 0;
        s->defs.vars[v] = m->versions[j]->vars[v];
        s->has_var[v] = 1;
        s->var_id[v] = n++;
    }
    for (int c = 1; c < defs->n_groups; c++)
        if (defs->groups[c].parent == g &&
            (nc_inq_ncid(id, defs->groups[c].name, &s->group_id[c]) ||
             !take_group(ncid, m, s, c, first, last)))
            return 0;
    return 1;
}

/* A variable is of no use without its dimensions, which may be those of another group. */
static int dimensions_are_there(const struct shown *s) {
    for (int v = 0; v < MAX_VARS; v++)
        for (int i = 0; s->has_var[v] && i < s->defs.vars[v].rank; i++)
            if (!s->has_dim[s->defs.vars[v].dims[i]]) return 0;
    return 1;
}

int shows(int ncid, const struct model *m, struct shown *shown) {
    const int apart = m->plan->version == NETCDF4;
    memset(shown, 0, sizeof *shown);
    shown->group_id[0] = ncid;
    shown->defs.n_dims = MAX_DIMS, shown->defs.n_vars = MAX_VARS;
    shown->gone_on = !nc_inq_attid(ncid, NC_GLOBAL, GOON_NAME, &(int){0});
    if (apart)
        return take_group(ncid, m, shown, 0, 0, m->n_versions - 1) && dimensions_are_there(shown);
    for (int i = m->n_versions; i-- > 0;)
        if (take_group(ncid, m, shown, 0, i, i)) return 1;
    return 0;
}
