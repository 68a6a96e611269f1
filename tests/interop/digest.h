/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Everything that a libnetcdf tells about an open file, as text: names, order, dimensions, types,
 * attributes, storage and all values. Two files hold the same when their texts are equal. */
#ifndef INTEROP_DIGEST_H
#define INTEROP_DIGEST_H

#include <netcdf.h>
#include <netcdf_filter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that grows. */
typedef struct {
    char *text;
    size_t len, room;
} text_t;

static inline void add(text_t *t, const char *piece, size_t n) {
    if (t->len + n + 1 > t->room) {
        t->room = (t->len + n + 1) * 2;
        t->text = realloc(t->text, t->room);
        if (!t->text) abort();
    }
    memcpy(t->text + t->len, piece, n);
    t->len += n;
    t->text[t->len] = 0;
}

#define ADDF(t, ...)                                    \
    do {                                                \
        char piece_[700];                               \
        int n_ = snprintf(piece_, sizeof piece_, __VA_ARGS__); \
        add(t, piece_, (size_t)n_);                     \
    } while (0)

static inline void add_quoted(text_t *t, const char *s, size_t n) {
    add(t, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 32 && c < 127 && c != '"' && c != '\\') add(t, s + i, 1);
        else ADDF(t, "\\x%02x", c);
    }
    add(t, "\"", 1);
}

/* One value of any type, as it lies in memory. */
static inline void add_value(text_t *t, int nc, nc_type type, const void *at) {
    union {
        signed char i1;
        unsigned char u1;
        short i2;
        unsigned short u2;
        int i4;
        unsigned u4;
        long long i8;
        unsigned long long u8;
        float f4;
        double f8;
        char *s;
        nc_vlen_t v;
    } x;
    char name[NC_MAX_NAME + 1];
    size_t size = 0, nfields = 0, offset;
    nc_type base = 0, field;
    int class = 0, rank, shape[NC_MAX_VAR_DIMS], code;
    switch (type) {
        case NC_BYTE: memcpy(&x, at, 1); ADDF(t, "%d", x.i1); return;
        case NC_CHAR: add_quoted(t, at, 1); return;
        case NC_UBYTE: memcpy(&x, at, 1); ADDF(t, "%d", x.u1); return;
        case NC_SHORT: memcpy(&x, at, 2); ADDF(t, "%d", x.i2); return;
        case NC_USHORT: memcpy(&x, at, 2); ADDF(t, "%d", x.u2); return;
        case NC_INT: memcpy(&x, at, 4); ADDF(t, "%d", x.i4); return;
        case NC_UINT: memcpy(&x, at, 4); ADDF(t, "%u", x.u4); return;
        case NC_INT64: memcpy(&x, at, 8); ADDF(t, "%lld", x.i8); return;
        case NC_UINT64: memcpy(&x, at, 8); ADDF(t, "%llu", x.u8); return;
        case NC_FLOAT: memcpy(&x, at, 4); ADDF(t, "%.9g", x.f4); return;
        case NC_DOUBLE: memcpy(&x, at, 8); ADDF(t, "%.17g", x.f8); return;
        case NC_STRING:
            memcpy(&x, at, sizeof x.s);
            if (!x.s) add(t, "null", 4);
            else add_quoted(t, x.s, strlen(x.s));
            return;
    }
    code = nc_inq_user_type(nc, type, name, &size, &base, &nfields, &class);
    if (code) {
        ADDF(t, "!type %d: %d", type, code);
        return;
    }
    switch (class) {
        case NC_ENUM: add_value(t, nc, base, at); return;
        case NC_OPAQUE:
            for (size_t i = 0; i < size; i++) ADDF(t, "%02x", ((const unsigned char *)at)[i]);
            return;
        case NC_VLEN:
            memcpy(&x, at, sizeof x.v);
            nc_inq_type(nc, base, NULL, &size);
            add(t, "(", 1);
            for (size_t i = 0; i < x.v.len; i++) {
                if (i) add(t, " ", 1);
                add_value(t, nc, base, (char *)x.v.p + i * size);
            }
            add(t, ")", 1);
            return;
        case NC_COMPOUND:
            add(t, "{", 1);
            for (int f = 0; f < (int)nfields; f++) {
                size_t n = 1;
                nc_inq_compound_field(nc, type, f, name, &offset, &field, &rank, shape);
                nc_inq_type(nc, field, NULL, &size);
                for (int d = 0; d < rank; d++) n *= (size_t)shape[d];
                for (size_t i = 0; i < n; i++) {
                    if (f || i) add(t, " ", 1);
                    add_value(t, nc, field, (const char *)at + offset + i * size);
                }
            }
            add(t, "}", 1);
            return;
        default: ADDF(t, "!class %d", class);
    }
}

/* Values in full when they are few; otherwise some of them, and a hash of all. */
static inline void print_values(FILE *out, int nc, nc_type type, const void *data, size_t n) {
    text_t all = {0};
    size_t size = 0;
    nc_inq_type(nc, type, NULL, &size);
    add(&all, "", 0);
    if (type == NC_CHAR) {
        add_quoted(&all, data, n);
    } else {
        for (size_t i = 0; i < n; i++) {
            if (i) add(&all, ",", 1);
            add_value(&all, nc, type, (const char *)data + i * size);
        }
    }
    if (all.len <= 400) {
        fprintf(out, " %s\n", all.text);
    } else {
        uint64_t hash = 0xcbf29ce484222325u;
        for (size_t i = 0; i < all.len; i++) hash = (hash ^ (unsigned char)all.text[i]) * 0x100000001b3u;
        fprintf(out, " %.100s ... %s #%016llx\n", all.text, all.text + all.len - 40, (unsigned long long)hash);
    }
    free(all.text);
}

static inline void print_name(FILE *out, const char *what, const char *name) {
    text_t t = {0};
    add_quoted(&t, name, strlen(name));
    fprintf(out, "%s %s", what, t.text);
    free(t.text);
}

static inline void print_attributes(FILE *out, int nc, int var, int n, const char *indent) {
    char name[NC_MAX_NAME + 1], kind[NC_MAX_NAME + 1];
    for (int a = 0; a < n; a++) {
        nc_type type = 0;
        size_t len = 0, size = 0;
        int code = nc_inq_attname(nc, var, a, name);
        if (!code) code = nc_inq_att(nc, var, name, &type, &len);
        if (code) {
            fprintf(out, "%s!attribute %d: %d\n", indent, a, code);
            continue;
        }
        kind[0] = 0;
        nc_inq_type(nc, type, kind, &size);
        fprintf(out, "%s", indent);
        print_name(out, "att", name);
        fprintf(out, " %s %zu:", kind, len);
        void *data = calloc(len + 1, size + 8);
        code = nc_get_att(nc, var, name, data);
        if (code) fprintf(out, " !%d\n", code);
        else print_values(out, nc, type, data, len);
        free(data);
    }
}

static inline void print_type(FILE *out, int nc, nc_type type) {
    char name[NC_MAX_NAME + 1], base_name[NC_MAX_NAME + 1] = "";
    size_t size = 0, n = 0;
    nc_type base = 0;
    int class = 0;
    int code = nc_inq_user_type(nc, type, name, &size, &base, &n, &class);
    if (code) {
        fprintf(out, " !type: %d\n", code);
        return;
    }
    print_name(out, " type", name);
    fprintf(out, " class %d size %zu", class, size);
    if (class == NC_VLEN || class == NC_ENUM) {
        nc_inq_type(nc, base, base_name, NULL);
        fprintf(out, " of %s", base_name);
    }
    for (int i = 0; i < (int)n && class == NC_ENUM; i++) {
        char value[16] = {0};
        text_t t = {0};
        nc_inq_enum_member(nc, type, i, name, value);
        add(&t, " ", 1);
        add_quoted(&t, name, strlen(name));
        add(&t, "=", 1);
        add_value(&t, nc, base, value);
        fprintf(out, "%s", t.text);
        free(t.text);
    }
    for (int i = 0; i < (int)n && class == NC_COMPOUND; i++) {
        size_t offset = 0;
        int rank = 0, shape[NC_MAX_VAR_DIMS];
        nc_inq_compound_field(nc, type, i, name, &offset, &base, &rank, shape);
        nc_inq_type(nc, base, base_name, NULL);
        print_name(out, " ;", name);
        fprintf(out, " @%zu %s", offset, base_name);
        for (int d = 0; d < rank; d++) fprintf(out, "[%d]", shape[d]);
    }
    fprintf(out, "\n");
}

static inline void print_variable(FILE *out, int nc, int v) {
    char name[NC_MAX_NAME + 1], kind[NC_MAX_NAME + 1] = "";
    int dims[NC_MAX_VAR_DIMS], rank = 0, natts = 0, storage = -1, nofill = -1, endian = -1, mode = -1, digits = -1;
    size_t chunks[NC_MAX_VAR_DIMS], size = 0, n = 1, nfilters = 0;
    nc_type type = 0;
    int code = nc_inq_var(nc, v, name, &type, &rank, dims, &natts);
    if (code) {
        fprintf(out, " !variable %d: %d\n", v, code);
        return;
    }
    nc_inq_type(nc, type, kind, &size);
    print_name(out, " var", name);
    fprintf(out, " %s (", kind);
    for (int d = 0; d < rank; d++) {
        char dim[NC_MAX_NAME + 1] = "?";
        size_t len = 0;
        nc_inq_dim(nc, dims[d], dim, &len);
        fprintf(out, "%s%s=%zu", d ? ", " : "", dim, len);
        n *= len;
    }
    fprintf(out, ")");
    if (nc_inq_var_chunking(nc, v, &storage, chunks) == NC_NOERR) {
        fprintf(out, " storage %d", storage);
        for (int d = 0; d < rank && storage == NC_CHUNKED; d++) fprintf(out, " %zu", chunks[d]);
    }
    if (nc_inq_var_endian(nc, v, &endian) == NC_NOERR) fprintf(out, " endian %d", endian);
    if (nc_inq_var_filter_ids(nc, v, &nfilters, NULL) == NC_NOERR && nfilters) {
        unsigned ids[64], params[256];
        nc_inq_var_filter_ids(nc, v, &nfilters, ids);
        for (size_t f = 0; f < nfilters; f++) {
            size_t np = 0;
            code = nc_inq_var_filter_info(nc, v, ids[f], &np, NULL);
            fprintf(out, " filter %u", ids[f]);
            if (!code && np <= 256) nc_inq_var_filter_info(nc, v, ids[f], &np, params);
            else fprintf(out, " !%d", code);
            for (size_t i = 0; i < np && !code; i++) fprintf(out, "%c%u", i ? ',' : ':', params[i]);
        }
    }
    if (nc_inq_var_quantize(nc, v, &mode, &digits) == NC_NOERR && mode) fprintf(out, " quantize %d %d", mode, digits);
    void *fill = calloc(1, size + 16);
    code = nc_inq_var_fill(nc, v, &nofill, fill);
    fprintf(out, " fill %d:", code ? code : nofill);
    if (!code && !nofill) print_values(out, nc, type, fill, 1);
    else fprintf(out, "\n");
    free(fill);
    print_attributes(out, nc, v, natts, "  ");
    if (n > (256u << 20) / (size ? size : 1)) {
        fprintf(out, "  data: %zu elements, not read\n", n);
        return;
    }
    char *data = calloc(n + 1, size + 8);
    code = nc_get_var(nc, v, data);
    fprintf(out, "  data %zu:", n);
    if (code) fprintf(out, " !%d\n", code);
    else print_values(out, nc, type, data, n);
    free(data);
}

static inline void print_group(FILE *out, int nc, int top) {
    int ndims = 0, nvars = 0, natts = 0, ngroups = 0, ntypes = 0, nunlim = 0, format = -1;
    size_t len = 0;
    char name[NC_MAX_NAME + 1], *path;
    if (top) {
        nc_inq_format(nc, &format);
        fprintf(out, "format %d\n", format);
    }
    nc_inq_grpname_full(nc, &len, NULL);
    path = calloc(len + 1, 1);
    nc_inq_grpname_full(nc, NULL, path);
    print_name(out, "group", path);
    free(path);
    nc_inq_dimids(nc, &ndims, NULL, 0);
    nc_inq_nvars(nc, &nvars);
    nc_inq_natts(nc, &natts);
    nc_inq_grps(nc, &ngroups, NULL);
    nc_inq_typeids(nc, &ntypes, NULL);
    nc_inq_unlimdims(nc, &nunlim, NULL);
    fprintf(out, ": %d dims, %d variables, %d attributes, %d groups, %d types\n", ndims, nvars, natts, ngroups, ntypes);
    int *ids = calloc((size_t)(ndims + ngroups + ntypes + nunlim + nvars) + 1, sizeof *ids);
    int *unlimited = calloc((size_t)nunlim + 1, sizeof *ids);
    nc_inq_typeids(nc, NULL, ids);
    for (int i = 0; i < ntypes; i++) print_type(out, nc, ids[i]);
    nc_inq_dimids(nc, NULL, ids, 0);
    nc_inq_unlimdims(nc, NULL, unlimited);
    for (int i = 0; i < ndims; i++) {
        int endless = 0;
        len = 0;
        nc_inq_dim(nc, ids[i], name, &len);
        for (int u = 0; u < nunlim; u++) endless |= unlimited[u] == ids[i];
        print_name(out, " dim", name);
        fprintf(out, " %zu%s\n", len, endless ? " unlimited" : "");
    }
    print_attributes(out, nc, NC_GLOBAL, natts, " ");
    for (int v = 0; v < nvars; v++) print_variable(out, nc, v);
    nc_inq_grps(nc, NULL, ids);
    for (int i = 0; i < ngroups; i++) print_group(out, ids[i], 0);
    free(ids);
    free(unlimited);
}

#endif
