/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the families that write netCDF-4 files have in common: modes, and a description of all that
 * a file holds, groups and types included. */
#ifndef ORACLE_NC4_WRITE_H
#define ORACLE_NC4_WRITE_H

#include "harness.h"
#include <netcdf_filter.h>

/* The formats of netCDF-4 files: name, creation flags. */
static const struct {
    const char *name;
    int flags;
} NC4_FORMATS[] = {{"nc4", NC_NETCDF4}, {"classic", NC_NETCDF4 | NC_CLASSIC_MODEL}};

/* The value of each atomic type, and how many bytes it has. */
static inline size_t size_of(int nc, nc_type type) {
    size_t size = 0;
    nc_inq_type(nc, type, NULL, &size);
    return size;
}

static inline void show_types(int nc) {
    int n = 0, ids[64];
    if (nc_inq_typeids(nc, &n, NULL) || n > 64) return;
    nc_inq_typeids(nc, &n, ids);
    for (int i = 0; i < n; i++) {
        char name[NC_MAX_NAME + 1];
        size_t size = 0, fields = 0;
        nc_type base = -1;
        int class = -1;
        int code = nc_inq_user_type(nc, ids[i], name, &size, &base, &fields, &class);
        printf("   type %d code %d size %zu base %d fields %zu class %d", ids[i], code, size, base, fields, class);
        text("name", name, sizeof name);
        for (size_t f = 0; class == NC_COMPOUND && f < fields; f++) {
            size_t offset = 0;
            int nd = -1, dims[8] = {0};
            nc_type ft = -1;
            code = nc_inq_compound_field(nc, ids[i], (int)f, name, &offset, &ft, &nd, dims);
            printf("   field %zu code %d at %zu type %d rank %d %d %d", f, code, offset, ft, nd, dims[0], dims[1]);
            text("name", name, sizeof name);
        }
        for (size_t m = 0; class == NC_ENUM && m < fields; m++) {
            long long value = 0;
            code = nc_inq_enum_member(nc, ids[i], (int)m, name, &value);
            printf("   member %zu code %d value %lld", m, code, value);
            text("name", name, sizeof name);
        }
    }
}

/* Everything of a group and of those in it; data of user-defined types are for ncdump to show. */
static inline void show_group(int nc) {
    char name[NC_MAX_NAME + 1];
    int nd = -1, nv = -1, na = -1, unlim = -9, n = 0, ids[256];
    nc_inq_grpname(nc, name);
    printf("   group %x", nc);
    text("name", name, sizeof name);
    nc_inq(nc, &nd, &nv, &na, &unlim);
    ints("inq", (int[]){nd, nv, na, unlim}, 4);
    if (nc_inq_dimids(nc, &n, ids, 0) == 0)
        for (int i = 0; i < n; i++) {
            size_t len = 0;
            nc_inq_dim(nc, ids[i], name, &len);
            printf("   dim %d len %zu", ids[i], len);
            text("name", name, sizeof name);
        }
    n = -1;
    if (nc_inq_unlimdims(nc, &n, ids) == 0) ints("unlimited", ids, (size_t)n);
    show_types(nc);
    for (int v = -1; v < nv; v++) {
        nc_type type = NC_NAT;
        int rank = 0, dims[NC_MAX_VAR_DIMS], atts = na;
        if (v >= 0) {
            int code = nc_inq_var(nc, v, name, &type, &rank, dims, &atts);
            printf("   var %d code %d type %d atts %d", v, code, type, atts);
            ints("dims", dims, (size_t)rank);
            text("name", name, sizeof name);
        }
        for (int a = 0; a < atts; a++) {
            nc_type at = 0;
            size_t len = 0;
            memset(name, 0, sizeof name);
            int c1 = nc_inq_attname(nc, v, a, name), c2 = nc_inq_att(nc, v, name, &at, &len), id = -1;
            int c3 = nc_inq_attid(nc, v, name, &id);
            printf("   att %d codes %d %d %d id %d type %d len %zu", a, c1, c2, c3, id, at, len);
            text("name", name, sizeof name);
            if (at < NC_STRING) {
                unsigned char *raw = calloc(len + 1, 8);
                int code = nc_get_att(nc, v, name, raw);
                printf("   value code %d digest %016llx\n", code,
                       (unsigned long long)digest_of(0, raw, len * size_of(nc, at)));
                free(raw);
            } else if (at == NC_STRING) {
                char **strings = calloc(len + 1, sizeof *strings);
                int code = nc_get_att_string(nc, v, name, strings);
                printf("   value code %d\n", code);
                for (size_t i = 0; !code && i < len; i++) text("string", strings[i] ? strings[i] : "(null)", 200);
                if (!code) nc_free_string(len, strings);
                free(strings);
            }
        }
        if (v < 0) continue;
        size_t count = 1;
        for (int d = 0; d < rank; d++) {
            size_t len = 0;
            nc_inq_dimlen(nc, dims[d], &len);
            count *= len;
        }
        if (type < NC_STRING && count < 1000000) {
            unsigned char *raw = calloc(count + 1, 8);
            int code = nc_get_var(nc, v, raw);
            printf("   data code %d n %zu digest %016llx\n", code, count,
                   (unsigned long long)digest_of(0, raw, count * size_of(nc, type)));
            free(raw);
        } else if (type == NC_STRING && count < 10000) {
            char **strings = calloc(count + 1, sizeof *strings);
            int code = nc_get_var_string(nc, v, strings);
            printf("   data code %d n %zu\n", code, count);
            for (size_t i = 0; !code && i < count; i++) text("string", strings[i] ? strings[i] : "(null)", 200);
            if (!code) nc_free_string(count, strings);
            free(strings);
        }
    }
    n = 0;
    if (nc_inq_grps(nc, &n, NULL) == 0 && n <= 256) {
        nc_inq_grps(nc, &n, ids);
        for (int i = 0; i < n; i++) show_group(ids[i]);
    }
}

/* How a variable is stored. Which chunk sizes are chosen where none are given is not compared. */
static inline void show_storage(int nc, int v, int with_chunks) {
    int a = -77, b = -77, c = -77, rank = 0;
    size_t sizes_[NC_MAX_VAR_DIMS], n = 77;
    unsigned ids[32], params[32];
    if (nc_inq_varndims(nc, v, &rank)) return;
    R(nc_inq_var_chunking(nc, v, &a, sizes_));
    ints("storage", &a, 1);
    if (a == NC_CHUNKED && with_chunks) sizes("chunks", sizes_, (size_t)rank);
    a = -77;
    R(nc_inq_var_deflate(nc, v, &a, &b, &c));
    ints("deflate", (int[]){a, b, c}, 3);
    R(nc_inq_var_fletcher32(nc, v, &a));
    R(nc_inq_var_szip(nc, v, &b, &c));
    ints("fletcher szip", (int[]){a, b, c}, 3);
    R(nc_inq_var_filter_ids(nc, v, &n, ids));
    for (size_t f = 0; f < n && f < 32; f++) {
        size_t np = 0;
        poison(params);
        int code = nc_inq_var_filter_info(nc, v, ids[f], &np, params);
        printf("   filter %u code %d params %zu:", ids[f], code, np);
        for (size_t p = 0; p < np && p < 32; p++) printf(" %u", params[p]);
        putchar('\n');
    }
    a = -77;
    R(nc_inq_var_endian(nc, v, &a));
    ints("endian", &a, 1);
    a = b = -77;
    R(nc_inq_var_quantize(nc, v, &a, &b));
    ints("quantize", (int[]){a, b}, 2);
    _Alignas(8) unsigned char fill[64];
    nc_type type = 0;
    poison(fill);
    a = -77;
    nc_inq_vartype(nc, v, &type);
    if (type < NC_STRING) {
        R(nc_inq_var_fill(nc, v, &a, fill));
        ints("no_fill", &a, 1);
        bytes("fill", fill, 8);
    }
}

/* Opens, shows everything, closes. */
static inline void show_file(const char *path) {
    int nc = -1, format = -1, extended = -1, mode = -1, code = nc_open(path, NC_NOWRITE, &nc);
    printf("   file %s: open %d\n", path, code);
    if (code) return;
    nc_inq_format(nc, &format);
    nc_inq_format_extended(nc, &extended, &mode);
    ints("format", (int[]){format, extended, mode}, 3);
    show_group(nc);
    printf("   close %d\n", nc_close(nc));
}

#endif
