/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A format of the program's own, nc_def_user_format(): a table that hands every call on to a file of
 * the library, and counts. Each public call must reach its member as often as the reference calls it,
 * and nothing else; answers and ids must come back as the table gave them. */
#include "check.h"
#include <netcdf_dispatch.h>
#include <netcdf_filter.h>
#include <netcdf_mem.h>

int NCDEFAULT_get_vars(int, int, const size_t *, const size_t *, const ptrdiff_t *, void *, nc_type);
int NCDEFAULT_put_vars(int, int, const size_t *, const size_t *, const ptrdiff_t *, const void *,
                       nc_type);
int NCDEFAULT_get_varm(int, int, const size_t *, const size_t *, const ptrdiff_t *,
                       const ptrdiff_t *, void *, nc_type);
int NCDEFAULT_put_varm(int, int, const size_t *, const size_t *, const ptrdiff_t *,
                       const ptrdiff_t *, const void *, nc_type);
int nc_set_var_chunk_cache_ints(int, int, int, int, int);
int nc_get_var_chunk_cache_ints(int, int, int *, int *, int *);
int nc_def_var_chunking_ints(int, int, int, int *);
int nc_inq_var_chunking_ints(int, int, int *, int *);

/* ---- The format ------------------------------------------------------------------------------ */

/* One name for each member: its counter. */
#define MEMBERS(M)                                                                                 \
    M(create) M(open) M(redef) M(_enddef) M(sync) M(abort) M(close) M(set_fill) M(inq_format)      \
    M(inq_format_extended) M(inq) M(inq_type) M(def_dim) M(inq_dimid) M(inq_dim) M(inq_unlimdim)   \
    M(rename_dim) M(inq_att) M(inq_attid) M(inq_attname) M(rename_att) M(del_att) M(get_att)       \
    M(put_att) M(def_var) M(inq_varid) M(rename_var) M(get_vara) M(put_vara) M(get_vars)           \
    M(put_vars) M(get_varm) M(put_varm) M(inq_var_all) M(var_par_access) M(def_var_fill)           \
    M(show_metadata) M(inq_unlimdims) M(inq_ncid) M(inq_grps) M(inq_grpname) M(inq_grpname_full)   \
    M(inq_grp_parent) M(inq_grp_full_ncid) M(inq_varids) M(inq_dimids) M(inq_typeids)              \
    M(inq_type_equal) M(def_grp) M(rename_grp) M(inq_user_type) M(inq_typeid) M(def_compound)      \
    M(insert_compound) M(insert_array_compound) M(inq_compound_field) M(inq_compound_fieldindex)   \
    M(def_vlen) M(put_vlen_element) M(get_vlen_element) M(def_enum) M(insert_enum)                 \
    M(inq_enum_member) M(inq_enum_ident) M(def_opaque) M(def_var_deflate) M(def_var_fletcher32)    \
    M(def_var_chunking) M(def_var_endian) M(def_var_filter) M(set_var_chunk_cache)                 \
    M(get_var_chunk_cache) M(inq_var_filter_ids) M(inq_var_filter_info) M(def_var_quantize)        \
    M(inq_var_quantize) M(inq_filter_avail)
#define COUNTER(m) int m;
static struct { MEMBERS(COUNTER) } n;
#define ADD(m) +n.m
static int total(void) { return 0 MEMBERS(ADD); }

static int file_of[8];    /* by the upper half of our ids: the library's file under it */
static int refuse_close;  /* what close answers, if not 0 */
static struct {
    char path[200];
    int mode, ncid;
    const NC_memio *memory;
    NC_memio given; /* what memory led to while the table was called */
    size_t initial;
} opened;

static int in(int id) { return file_of[id >> 16] | (id & 0xffff); }
static void out(int id, int *grp) {
    if (grp) *grp = (id & ~0xffff) | (*grp & 0xffff);
}

static void seen(const char *path, int mode, void *parameters, int id) {
    snprintf(opened.path, sizeof opened.path, "%s", path);
    opened.mode = mode;
    opened.ncid = id;
    opened.memory = parameters;
    if (opened.memory) opened.given = *opened.memory;
}
static int my_create(const char *path, int mode, size_t size, int pe, size_t *hint, void *parameters,
                     const NC_Dispatch *table, int id) {
    CHECK(table->dispatch_version == NC_DISPATCH_VERSION && pe == 0 && hint == NULL);
    n.create++;
    seen(path, mode, parameters, id);
    opened.initial = size;
    return nc_create(path, NC_NETCDF4, &file_of[id >> 16]);
}
static int my_open(const char *path, int mode, int pe, size_t *hint, void *parameters,
                   const NC_Dispatch *table, int id) {
    CHECK(table->dispatch_version == NC_DISPATCH_VERSION && pe == 0 && hint == NULL);
    n.open++;
    seen(path, mode, parameters, id);
    if (strstr(path, "magic")) return NC_NOERR;
    return nc_open(path, mode & NC_WRITE, &file_of[id >> 16]);
}
static int my_close(int id, void *memio) {
    n.close++;
    opened.memory = memio;
    if (refuse_close) return refuse_close;
    return file_of[id >> 16] ? nc_close(file_of[id >> 16]) : NC_NOERR;
}
static int my_abort(int id) {
    n.abort++;
    (void)nc_abort(file_of[id >> 16]);
    return 42;
}
static int my_inq_ncid(int id, const char *name, int *grp) {
    n.inq_ncid++;
    int answer = nc_inq_ncid(in(id), name, grp);
    if (!answer) out(id, grp);
    return answer;
}
static int my_inq_grp_full_ncid(int id, const char *name, int *grp) {
    n.inq_grp_full_ncid++;
    int answer = nc_inq_grp_full_ncid(in(id), name, grp);
    if (!answer) out(id, grp);
    return answer;
}
static int my_inq_grp_parent(int id, int *grp) {
    n.inq_grp_parent++;
    int answer = nc_inq_grp_parent(in(id), grp);
    if (!answer) out(id, grp);
    return answer;
}
static int my_def_grp(int id, const char *name, int *grp) {
    n.def_grp++;
    int answer = nc_def_grp(in(id), name, grp);
    if (!answer) out(id, grp);
    return answer;
}
static int my_inq_type_equal(int a, nc_type x, int b, nc_type y, int *equal) {
    n.inq_type_equal++;
    return nc_inq_type_equal(in(a), x, in(b), y, equal);
}

/* A block of numbers, by the function of its type in memory. */
#define SWITCH(P, WAY)                                                                             \
    switch (type) {                                                                                \
    case NC_INT: return nc_##WAY##_vara_int(in(id), var, start, count, P);                         \
    case NC_DOUBLE: return nc_##WAY##_vara_double(in(id), var, start, count, P);                   \
    case NC_SHORT: return nc_##WAY##_vara_short(in(id), var, start, count, P);                     \
    default: return nc_##WAY##_vara(in(id), var, start, count, P);                                 \
    }
static nc_type last_type;
static int my_get_vara(int id, int var, const size_t *start, const size_t *count, void *to,
                       nc_type type) {
    n.get_vara++;
    last_type = type;
    SWITCH(to, get)
}
static int my_put_vara(int id, int var, const size_t *start, const size_t *count, const void *from,
                       nc_type type) {
    n.put_vara++;
    last_type = type;
    SWITCH(from, put)
}
static int my_get_vars(int id, int var, const size_t *start, const size_t *count,
                       const ptrdiff_t *stride, void *to, nc_type type) {
    n.get_vars++;
    return NCDEFAULT_get_vars(id, var, start, count, stride, to, type);
}
static int my_put_vars(int id, int var, const size_t *start, const size_t *count,
                       const ptrdiff_t *stride, const void *from, nc_type type) {
    n.put_vars++;
    return NCDEFAULT_put_vars(id, var, start, count, stride, from, type);
}
static int my_get_varm(int id, int var, const size_t *start, const size_t *count,
                       const ptrdiff_t *stride, const ptrdiff_t *map, void *to, nc_type type) {
    n.get_varm++;
    return NCDEFAULT_get_varm(id, var, start, count, stride, map, to, type);
}
static int my_put_varm(int id, int var, const size_t *start, const size_t *count,
                       const ptrdiff_t *stride, const ptrdiff_t *map, const void *from,
                       nc_type type) {
    n.put_varm++;
    return NCDEFAULT_put_varm(id, var, start, count, stride, map, from, type);
}
static int my_inq_var_all(int id, int var, char *name, nc_type *type, int *ndims, int *dims,
                          int *natts, int *shuffle, int *deflate, int *level, int *fletcher32,
                          int *storage, size_t *chunks, int *no_fill, void *fill, int *endian,
                          unsigned *filter, size_t *nparams, unsigned *params) {
    n.inq_var_all++;
    CHECK(!deflate && !level && !filter && !nparams && !params);
    int answer = nc_inq_var(in(id), var, name, type, ndims, dims, natts);
    if (!answer && shuffle) answer = nc_inq_var_deflate(in(id), var, shuffle, NULL, NULL);
    if (!answer && fletcher32) answer = nc_inq_var_fletcher32(in(id), var, fletcher32);
    if (!answer && (storage || chunks)) answer = nc_inq_var_chunking(in(id), var, storage, chunks);
    if (!answer && (no_fill || fill)) answer = nc_inq_var_fill(in(id), var, no_fill, fill);
    if (!answer && endian) answer = nc_inq_var_endian(in(id), var, endian);
    return answer;
}
static int my_get_att(int id, int var, const char *name, void *to, nc_type type) {
    n.get_att++;
    last_type = type;
    return type == NC_INT ? nc_get_att_int(in(id), var, name, to) : nc_get_att(in(id), var, name, to);
}
static int my_put_att(int id, int var, const char *name, nc_type type, size_t len, const void *from,
                      nc_type in_memory) {
    n.put_att++;
    last_type = in_memory;
    return in_memory == NC_INT ? nc_put_att_int(in(id), var, name, type, len, from)
                               : nc_put_att(in(id), var, name, type, len, from);
}

/* The members that only exchange the id: PASS(member, parameters, arguments). */
#define PASS(m, P, A)                                                                              \
    static int my_##m P {                                                                          \
        n.m++;                                                                                     \
        return nc_##m A;                                                                           \
    }
PASS(redef, (int id), (in(id)))
PASS(_enddef, (int id, size_t a, size_t b, size_t c, size_t d), (in(id), a, b, c, d))
PASS(sync, (int id), (in(id)))
PASS(set_fill, (int id, int mode, int *old), (in(id), mode, old))
PASS(inq_format, (int id, int *f), (in(id), f))
PASS(inq_format_extended, (int id, int *f, int *m), (in(id), f, m))
PASS(inq, (int id, int *a, int *b, int *c, int *d), (in(id), a, b, c, d))
PASS(inq_type, (int id, nc_type t, char *name, size_t *size), (in(id), t, name, size))
PASS(def_dim, (int id, const char *name, size_t len, int *dim), (in(id), name, len, dim))
PASS(inq_dimid, (int id, const char *name, int *dim), (in(id), name, dim))
PASS(inq_dim, (int id, int dim, char *name, size_t *len), (in(id), dim, name, len))
PASS(inq_unlimdim, (int id, int *dim), (in(id), dim))
PASS(rename_dim, (int id, int dim, const char *name), (in(id), dim, name))
PASS(inq_att, (int id, int v, const char *name, nc_type *t, size_t *len), (in(id), v, name, t, len))
PASS(inq_attid, (int id, int v, const char *name, int *a), (in(id), v, name, a))
PASS(inq_attname, (int id, int v, int a, char *name), (in(id), v, a, name))
PASS(rename_att, (int id, int v, const char *a, const char *b), (in(id), v, a, b))
PASS(del_att, (int id, int v, const char *name), (in(id), v, name))
PASS(def_var, (int id, const char *name, nc_type t, int nd, const int *d, int *v),
     (in(id), name, t, nd, d, v))
PASS(inq_varid, (int id, const char *name, int *v), (in(id), name, v))
PASS(rename_var, (int id, int v, const char *name), (in(id), v, name))
PASS(def_var_fill, (int id, int v, int no_fill, const void *value), (in(id), v, no_fill, value))
PASS(show_metadata, (int id), (in(id)))
PASS(inq_unlimdims, (int id, int *c, int *l), (in(id), c, l))
PASS(inq_grps, (int id, int *c, int *l), (in(id), c, l))
PASS(inq_grpname, (int id, char *name), (in(id), name))
PASS(inq_grpname_full, (int id, size_t *len, char *name), (in(id), len, name))
PASS(inq_varids, (int id, int *c, int *l), (in(id), c, l))
PASS(inq_dimids, (int id, int *c, int *l, int parents), (in(id), c, l, parents))
PASS(inq_typeids, (int id, int *c, int *l), (in(id), c, l))
PASS(rename_grp, (int id, const char *name), (in(id), name))
PASS(inq_user_type, (int id, nc_type t, char *name, size_t *s, nc_type *b, size_t *nf, int *c),
     (in(id), t, name, s, b, nf, c))
PASS(inq_typeid, (int id, const char *name, nc_type *t), (in(id), name, t))
PASS(def_compound, (int id, size_t size, const char *name, nc_type *t), (in(id), size, name, t))
PASS(insert_compound, (int id, nc_type t, const char *name, size_t at, nc_type f),
     (in(id), t, name, at, f))
PASS(insert_array_compound,
     (int id, nc_type t, const char *name, size_t at, nc_type f, int nd, const int *d),
     (in(id), t, name, at, f, nd, d))
PASS(inq_compound_field,
     (int id, nc_type t, int f, char *name, size_t *at, nc_type *ft, int *nd, int *d),
     (in(id), t, f, name, at, ft, nd, d))
PASS(inq_compound_fieldindex, (int id, nc_type t, const char *name, int *f), (in(id), t, name, f))
PASS(def_vlen, (int id, const char *name, nc_type base, nc_type *t), (in(id), name, base, t))
PASS(put_vlen_element, (int id, int t, void *e, size_t len, const void *d), (in(id), t, e, len, d))
PASS(get_vlen_element, (int id, int t, const void *e, size_t *len, void *d), (in(id), t, e, len, d))
PASS(def_enum, (int id, nc_type base, const char *name, nc_type *t), (in(id), base, name, t))
PASS(insert_enum, (int id, nc_type t, const char *name, const void *v), (in(id), t, name, v))
PASS(inq_enum_member, (int id, nc_type t, int m, char *name, void *v), (in(id), t, m, name, v))
PASS(inq_enum_ident, (int id, nc_type t, long long v, char *name), (in(id), t, v, name))
PASS(def_opaque, (int id, size_t size, const char *name, nc_type *t), (in(id), size, name, t))
PASS(def_var_deflate, (int id, int v, int s, int d, int l), (in(id), v, s, d, l))
PASS(def_var_fletcher32, (int id, int v, int on), (in(id), v, on))
PASS(def_var_chunking, (int id, int v, int s, const size_t *c), (in(id), v, s, c))
PASS(def_var_endian, (int id, int v, int e), (in(id), v, e))
PASS(def_var_filter, (int id, int v, unsigned f, size_t np, const unsigned *p), (in(id), v, f, np, p))
PASS(set_var_chunk_cache, (int id, int v, size_t s, size_t e, float p), (in(id), v, s, e, p))
PASS(get_var_chunk_cache, (int id, int v, size_t *s, size_t *e, float *p), (in(id), v, s, e, p))
PASS(inq_var_filter_ids, (int id, int v, size_t *nf, unsigned *f), (in(id), v, nf, f))
PASS(inq_var_filter_info, (int id, int v, unsigned f, size_t *np, unsigned *p), (in(id), v, f, np, p))
PASS(def_var_quantize, (int id, int v, int mode, int nsd), (in(id), v, mode, nsd))
PASS(inq_var_quantize, (int id, int v, int *mode, int *nsd), (in(id), v, mode, nsd))
PASS(inq_filter_avail, (int id, unsigned f), (in(id), f))
#define my_var_par_access NC_NOTNC4_var_par_access

#define MEMBER(m) .m = my_##m,
static NC_Dispatch table = {NC_FORMATX_UDF0, NC_DISPATCH_VERSION, MEMBERS(MEMBER)};

/* A call that succeeds and makes `times` calls of one member, and no others. */
#define REACHES(m, times, call)                                                                    \
    do {                                                                                           \
        int here_ = n.m, all_ = total();                                                           \
        OK(call);                                                                                  \
        if (n.m - here_ != (times) || total() - all_ != (times)) {                                 \
            fprintf(stderr, "%s:%d: %s: %d of %s, %d in all\n", __FILE__, __LINE__, #call,         \
                    n.m - here_, #m, total() - all_);                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
/* A call that reaches no member. */
#define STAYS(code, call)                                                                          \
    do {                                                                                           \
        int all_ = total();                                                                        \
        FAILS(call, code);                                                                         \
        CHECK(total() == all_);                                                                    \
    } while (0)

/* ---- The calls ------------------------------------------------------------------------------- */

static void registering(void) {
    static NC_Dispatch old = {.model = NC_FORMATX_UDF0, .dispatch_version = NC_DISPATCH_VERSION - 1};
    NC_Dispatch *found = &old;
    char magic[NC_MAX_MAGIC_NUMBER_LEN] = "xxxxxxx";
    int nc;
    FAILS(nc_def_user_format(NC_UDF0, &old, NULL), NC_EINVAL);
    FAILS(nc_def_user_format(NC_UDF0, NULL, NULL), NC_EINVAL);
    FAILS(nc_def_user_format(NC_UDF0 | NC_UDF1, &table, NULL), NC_EINVAL);
    FAILS(nc_def_user_format(0, &table, NULL), NC_EINVAL);
    FAILS(nc_def_user_format(NC_UDF0, &table, "123456789"), NC_EINVAL);
    FAILS(nc_def_user_format(NC_UDF0 | NC_CLASSIC_MODEL, &table, "1"), NC_EINVAL);
    OK(nc_inq_user_format(NC_UDF0, &found, magic));
    CHECK(found == NULL && magic[0] == 0);
    /* Nobody has registered it. */
    FAILS(nc_open("user.nc", NC_UDF0, &nc), NC_ENOTBUILT);
    FAILS(nc_create("user.nc", NC_UDF1, &nc), NC_ENOTBUILT);
    OK(nc_def_user_format(NC_UDF0 | NC_NETCDF4, &table, NULL));
    OK(nc_def_user_format(NC_UDF1, &table, "MINE"));
    OK(nc_def_user_format(0x200000, &table, NULL)); /* NC_UDF5 of 4.10 */
    OK(nc_inq_user_format(NC_UDF1, &found, magic));
    CHECK(found == &table && strcmp(magic, "MINE") == 0);
}

static void defining(int nc) {
    int d, v, w, grp, deep, old;
    nc_type t, e;
    size_t chunks[2] = {1, 3};
    unsigned level = 3;
    signed char one = 1;
    REACHES(def_dim, 1, nc_def_dim(nc, "rec", NC_UNLIMITED, &d));
    REACHES(def_dim, 1, nc_def_dim(nc, "x", 6, &d));
    REACHES(def_var, 1, nc_def_var(nc, "v", NC_INT, 2, (int[]){0, 1}, &v));
    REACHES(def_var, 1, nc_def_var(nc, "scalar", NC_DOUBLE, 0, NULL, &w));
    REACHES(put_att, 1, nc_put_att_int(nc, v, "i", NC_SHORT, 1, &(int){5}));
    CHECK(last_type == NC_INT);
    REACHES(put_att, 1, nc_put_att_text(nc, v, "text", 5, "hello"));
    CHECK(last_type == NC_CHAR);
    REACHES(put_att, 1, nc_put_att(nc, NC_GLOBAL, "d", NC_DOUBLE, 1, &(double){2.5}));
    CHECK(last_type == NC_DOUBLE);
    REACHES(put_att, 1, nc_put_att_string(nc, NC_GLOBAL, "s", 1, (const char *[]){"text"}));
    CHECK(last_type == NC_STRING);
    REACHES(put_att, 1, nc_put_att_int(nc, v, "gone", NC_INT, 1, &(int){5}));
    REACHES(del_att, 1, nc_del_att(nc, v, "gone"));
    REACHES(rename_att, 1, nc_rename_att(nc, v, "i", "number"));
    REACHES(rename_dim, 1, nc_rename_dim(nc, 0, "time"));
    REACHES(rename_var, 1, nc_rename_var(nc, w, "alone"));
    REACHES(def_var_deflate, 1, nc_def_var_deflate(nc, v, 1, 1, 2));
    REACHES(def_var_fletcher32, 1, nc_def_var_fletcher32(nc, v, 1));
    REACHES(def_var_chunking, 1, nc_def_var_chunking(nc, v, NC_CHUNKED, chunks));
    REACHES(def_var_endian, 1, nc_def_var_endian(nc, v, NC_ENDIAN_BIG));
    REACHES(def_var_fill, 1, nc_def_var_fill(nc, v, 0, &(int){-7}));
    STAYS(NC_EGLOBAL, nc_def_var_fill(nc, NC_GLOBAL, 0, NULL));
    STAYS(NC_EGLOBAL, nc_def_var_quantize(nc, NC_GLOBAL, 1, 3));
    REACHES(set_fill, 1, nc_set_fill(nc, NC_FILL, &old));
    REACHES(def_grp, 1, nc_def_grp(nc, "g", &grp));
    CHECK(grp >> 16 == nc >> 16 && (grp & 0xffff) == 1);
    REACHES(def_grp, 1, nc_def_grp(grp, "deep", &deep));
    REACHES(rename_grp, 1, nc_rename_grp(grp, "group"));
    REACHES(def_compound, 1, nc_def_compound(nc, 24, "c", &t));
    REACHES(insert_compound, 1, nc_insert_compound(nc, t, "n", 0, NC_INT));
    REACHES(insert_array_compound, 1,
            nc_insert_array_compound(nc, t, "a", 4, NC_INT, 1, (int[]){2}));
    REACHES(insert_compound, 1, nc_insert_compound(nc, t, "s", 16, NC_STRING));
    REACHES(def_enum, 1, nc_def_enum(nc, NC_BYTE, "e", &e));
    REACHES(insert_enum, 1, nc_insert_enum(nc, e, "one", &one));
    REACHES(def_opaque, 1, nc_def_opaque(nc, 5, "o", &e));
    REACHES(def_vlen, 1, nc_def_vlen(nc, "l", NC_INT, &e));
    REACHES(def_var, 1, nc_def_var(nc, "fields", t, 1, (int[]){1}, &w));
    REACHES(def_var, 1, nc_def_var(nc, "lists", e, 1, (int[]){1}, &w));
    /* Their elements have no fixed size: the type is looked at, the table is not asked. */
    int before = n.def_var_filter;
    FAILS(nc_def_var_filter(nc, w, 1, 1, &level), NC_EFILTER);
    CHECK(n.def_var_filter == before);
    REACHES(def_var, 1, nc_def_var(nc, "z", NC_FLOAT, 1, (int[]){1}, &w));
    REACHES(def_var_quantize, 1, nc_def_var_quantize(nc, w, NC_QUANTIZE_BITGROOM, 3));
    before = n.def_var_filter;
    OK(nc_def_var_filter(nc, w, 1, 1, &level));
    CHECK(n.def_var_filter == before + 1);
    REACHES(_enddef, 1, nc_enddef(nc));
    REACHES(redef, 1, nc_redef(nc));
    REACHES(_enddef, 1, nc__enddef(nc, 0, 4, 0, 4));
    REACHES(sync, 1, nc_sync(nc));
}

static void data(int nc) {
    int v, i, got[12], out24[24];
    size_t start[2] = {0, 0}, count[2] = {2, 6}, at[2] = {1, 2};
    ptrdiff_t stride[2] = {1, 2}, plain[2] = {1, 1}, turned[2] = {1, 2};
    double d = 1.5;
    short s;
    OK(nc_inq_varid(nc, "v", &v));
    for (i = 0; i < 24; i++) out24[i] = i;
    REACHES(put_vara, 1, nc_put_vara_int(nc, v, start, count, out24));
    CHECK(last_type == NC_INT);
    REACHES(get_vara, 1, nc_get_vara_int(nc, v, start, count, got));
    CHECK(memcmp(got, out24, sizeof got) == 0);
    REACHES(get_vara, 1, nc_get_var1_short(nc, v, at, &s));
    CHECK(s == 8 && last_type == NC_SHORT);
    /* Null rules: what is missing is asked of the variable. */
    int asked = n.inq_var_all, lengths = n.inq_dim;
    OK(nc_get_vara_int(nc, v, start, NULL, got));
    CHECK(n.inq_var_all == asked + 2 && n.inq_dim == lengths + 2);
    FAILS(nc_get_vara_int(nc, v, NULL, count, got), NC_EINVALCOORDS);
    OK(nc_get_var_int(nc, v, got));
    CHECK(memcmp(got, out24, sizeof got) == 0);
    OK(nc_put_var_double(nc, v + 1, &d));
    d = 0;
    OK(nc_get_var(nc, v + 1, &d));
    CHECK(d == 1.5 && last_type == NC_NAT);
    OK(nc_get_vara(nc, v + 1, NULL, NULL, &d));
    CHECK(last_type == NC_DOUBLE);
    /* Strided: the odd columns, one element at a time; side by side, one block. */
    count[1] = 3;
    int blocks = n.get_vara;
    OK(nc_get_vars_int(nc, v, start, count, stride, got));
    CHECK(n.get_vara == blocks + 6);
    for (i = 0; i < 6; i++) CHECK(got[i] == i / 3 * 6 + i % 3 * 2);
    blocks = n.get_vara;
    OK(nc_get_vars_int(nc, v, start, count, NULL, got));
    CHECK(n.get_vara == blocks + 1 && n.get_vars == 2);
    for (i = 0; i < 6; i++) CHECK(got[i] == i / 3 * 6 + i % 3);
    FAILS(nc_get_vars_int(nc, v, start, count, (ptrdiff_t[]){1, 0}, got), NC_ESTRIDE);
    FAILS(nc_get_vars_int(nc, v, start, (size_t[]){3, 1}, stride, got), NC_EEDGE);
    FAILS(nc_get_vars_int(nc, v, (size_t[]){2, 0}, (size_t[]){1, 1}, stride, got), NC_EINVALCOORDS);
    FAILS(nc_get_vars_text(nc, v, start, count, stride, (char *)got), NC_ECHAR);
    OK(nc_get_vars_int(nc, v, start, (size_t[]){0, 3}, stride, got));
    /* A put may add records. */
    OK(nc_put_vars_int(nc, v, (size_t[]){2, 0}, (size_t[]){1, 3}, stride, out24 + 20));
    OK(nc_get_vara_int(nc, v, (size_t[]){2, 0}, (size_t[]){1, 6}, got));
    CHECK(got[0] == 20 && got[1] == -7 && got[2] == 21 && got[4] == 22);
    FAILS(nc_put_vars_int(nc, v, start, (size_t[]){1, 7}, plain, out24), NC_EEDGE);
    /* Mapped: rows and columns exchanged, both ways. */
    OK(nc_get_varm_int(nc, v, start, count, plain, turned, got));
    for (i = 0; i < 6; i++) CHECK(got[i] == i % 2 * 6 + i / 2);
    for (i = 0; i < 6; i++) got[i] += 100;
    blocks = n.put_vara;
    OK(nc_put_varm_int(nc, v, start, count, plain, turned, got));
    CHECK(n.put_vara == blocks + 6 && n.put_varm == 1);
    OK(nc_get_varm_int(nc, v, start, count, stride, NULL, got));
    CHECK(got[0] == 100 && got[1] == 102 && got[2] == 4 && got[3] == 106 && n.get_varm == 2);
    FAILS(nc_get_varm_int(nc, v, start, count, (ptrdiff_t[]){0, 1}, turned, got), NC_ESTRIDE);
    FAILS(nc_get_varm_text(nc, v, start, count, plain, turned, (char *)got), NC_ECHAR);
    /* A value that does not fit is told of, and the others arrive. */
    OK(nc_put_vara_int(nc, v, start, (size_t[]){1, 3}, (int[]){1, 70000, 3}));
    short shorts[3] = {0, 0, 0};
    FAILS(nc_get_vars_short(nc, v, start, (size_t[]){1, 3}, plain, shorts), NC_ERANGE);
    CHECK(shorts[0] == 1 && shorts[2] == 3);
    OK(nc_put_vara_int(nc, v, start, (size_t[]){1, 3}, out24));
}

static void asking(int nc) {
    int a, b, c, d, v, grp, list[20], mode;
    unsigned first, ids[4], params[4];
    size_t size, len;
    float f;
    char name[NC_MAX_NAME + 1], *text;
    signed char value;
    nc_type t, e;
    OK(nc_inq_varid(nc, "v", &v));
    REACHES(inq, 1, nc_inq(nc, &a, &b, &c, &d));
    CHECK(a == 2 && b == 5 && c == 2 && d == 0);
    REACHES(inq, 1, nc_inq_ndims(nc, &a));
    REACHES(inq, 1, nc_inq_nvars(nc, &a));
    REACHES(inq, 1, nc_inq_natts(nc, &a));
    REACHES(inq, 0, nc_inq_natts(nc, NULL));
    REACHES(inq, 0, nc_inq_ndims(nc, NULL));
    REACHES(inq_unlimdim, 1, nc_inq_unlimdim(nc, &a));
    REACHES(inq_unlimdims, 1, nc_inq_unlimdims(nc, &a, list));
    REACHES(inq_format, 1, nc_inq_format(nc, &a));
    CHECK(a == NC_FORMAT_NETCDF4);
    REACHES(inq_format_extended, 1, nc_inq_format_extended(nc, &a, &mode));
    REACHES(inq_dimid, 1, nc_inq_dimid(nc, "x", &a));
    REACHES(inq_dim, 1, nc_inq_dim(nc, a, name, &len));
    CHECK(len == 6 && strcmp(name, "x") == 0);
    REACHES(inq_dim, 1, nc_inq_dimname(nc, a, name));
    REACHES(inq_dim, 1, nc_inq_dimlen(nc, a, &len));
    REACHES(inq_dim, 0, nc_inq_dimname(nc, a, NULL));
    REACHES(inq_dim, 0, nc_inq_dimlen(nc, a, NULL));
    FAILS(nc_inq_dimid(nc, "none", &a), NC_EBADDIM);
    REACHES(inq_att, 1, nc_inq_att(nc, v, "number", &t, &len));
    CHECK(t == NC_SHORT && len == 1);
    REACHES(inq_att, 1, nc_inq_atttype(nc, v, "number", &t));
    REACHES(inq_att, 1, nc_inq_attlen(nc, v, "text", &len));
    REACHES(inq_attid, 1, nc_inq_attid(nc, v, "text", &a));
    REACHES(inq_attname, 1, nc_inq_attname(nc, v, a, name));
    CHECK(strcmp(name, "text") == 0);
    REACHES(get_att, 1, nc_get_att_int(nc, v, "number", &a));
    CHECK(a == 5 && last_type == NC_INT);
    REACHES(get_att, 1, nc_get_att_text(nc, v, "text", name));
    a = n.inq_att;
    OK(nc_get_att(nc, v, "number", list));
    CHECK(last_type == NC_SHORT && n.inq_att == a + 1);
    REACHES(get_att, 1, nc_get_att_string(nc, NC_GLOBAL, "s", &text));
    CHECK(strcmp(text, "text") == 0 && last_type == NC_STRING);
    OK(nc_free_string(1, &text));
    REACHES(inq_var_all, 1, nc_inq_var(nc, v, name, &t, &a, list, &b));
    CHECK(strcmp(name, "v") == 0 && t == NC_INT && a == 2 && list[1] == 1);
    REACHES(inq_var_all, 1, nc_inq_varname(nc, v, name));
    REACHES(inq_var_all, 1, nc_inq_vartype(nc, v, &t));
    REACHES(inq_var_all, 1, nc_inq_varndims(nc, v, &a));
    REACHES(inq_var_all, 1, nc_inq_vardimid(nc, v, list));
    REACHES(inq_var_all, 1, nc_inq_varnatts(nc, v, &a));
    REACHES(inq, 1, nc_inq_varnatts(nc, NC_GLOBAL, &a));
    REACHES(inq_var_all, 1, nc_inq_var_fletcher32(nc, v, &a));
    CHECK(a == 1);
    size_t chunks[2];
    REACHES(inq_var_all, 1, nc_inq_var_chunking(nc, v, &a, chunks));
    CHECK(a == NC_CHUNKED && chunks[1] == 3);
    REACHES(inq_var_all, 1, nc_inq_var_endian(nc, v, &a));
    CHECK(a == NC_ENDIAN_BIG);
    REACHES(inq_var_all, 1, nc_inq_var_fill(nc, v, &a, &b));
    CHECK(a == 0 && b == -7);
    a = n.inq_var_filter_info;
    OK(nc_inq_var_deflate(nc, v, &b, &c, &d));
    CHECK(b == 1 && c == 1 && d == 2 && n.inq_var_filter_info == a + 1);
    REACHES(inq_var_filter_info, 1, nc_inq_var_szip(nc, v, &a, &b));
    CHECK(a == 0 && b == 0);
    REACHES(inq_var_filter_ids, 1, nc_inq_var_filter_ids(nc, v, &len, ids));
    CHECK(len == 3);
    REACHES(inq_var_filter_info, 1, nc_inq_var_filter_info(nc, v, 1, &len, params));
    OK(nc_inq_var_filter(nc, v, &first, &len, params));
    CHECK(first == ids[0]);
    OK(nc_inq_var_filter(nc, v + 1, &first, &len, params));
    CHECK(first == 0);
    REACHES(inq_filter_avail, 1, nc_inq_filter_avail(nc, 1));
    OK(nc_inq_var_zstandard(nc, v, &a, &b));
    CHECK(a == 0 && b == 0);
    FAILS(nc_def_var_zstandard(nc, v, 1000), NC_EINVAL);
    REACHES(inq_var_quantize, 1, nc_inq_var_quantize(nc, v, &a, &b));
    STAYS(NC_EGLOBAL, nc_inq_var_quantize(nc, NC_GLOBAL, &a, &b));
    REACHES(set_var_chunk_cache, 1, nc_set_var_chunk_cache(nc, v, 5 << 20, 11, 0.25f));
    REACHES(get_var_chunk_cache, 1, nc_get_var_chunk_cache(nc, v, &size, &len, &f));
    CHECK(size == 5 << 20 && len == 11 && f == 0.25f);
    REACHES(set_var_chunk_cache, 1, nc_set_var_chunk_cache_ints(nc, v, 3, 13, 50));
    REACHES(get_var_chunk_cache, 1, nc_get_var_chunk_cache_ints(nc, v, &a, &b, &c));
    CHECK(a == 3 && b == 13 && c == 50);
    OK(nc_inq_var_chunking_ints(nc, v, &a, list));
    CHECK(a == NC_CHUNKED && list[1] == 3);
    b = n.def_var_chunking;
    FAILS(nc_def_var_chunking_ints(nc, v, NC_CHUNKED, list), NC_ELATEDEF);
    CHECK(n.def_var_chunking == b + 1);
    /* Groups. */
    REACHES(inq_ncid, 1, nc_inq_ncid(nc, "group", &grp));
    CHECK(grp >> 16 == nc >> 16 && grp != nc);
    REACHES(inq_ncid, 1, nc_inq_grp_ncid(nc, "group", &a));
    CHECK(a == grp);
    REACHES(inq_grp_full_ncid, 1, nc_inq_grp_full_ncid(nc, "/group/deep", &a));
    REACHES(inq_grp_parent, 1, nc_inq_grp_parent(a, &b));
    CHECK(b == grp);
    REACHES(inq_grps, 1, nc_inq_grps(nc, &a, NULL));
    CHECK(a == 1);
    REACHES(inq_grpname, 1, nc_inq_grpname(grp, name));
    CHECK(strcmp(name, "group") == 0);
    REACHES(inq_grpname_full, 1, nc_inq_grpname_full(grp, &len, name));
    REACHES(inq_grpname_full, 1, nc_inq_grpname_len(grp, &len));
    CHECK(len == 6);
    REACHES(inq_varids, 1, nc_inq_varids(nc, &a, list));
    REACHES(inq_dimids, 1, nc_inq_dimids(grp, &a, list, 1));
    CHECK(a == 2);
    REACHES(inq_typeids, 1, nc_inq_typeids(nc, &a, list));
    CHECK(a == 4);
    REACHES(show_metadata, 1, nc_show_metadata(nc));
    /* Types. */
    REACHES(inq_typeid, 1, nc_inq_typeid(nc, "c", &t));
    REACHES(inq_typeid, 1, nc_inq_typeid(nc, "e", &e));
    REACHES(inq_type, 1, nc_inq_type(nc, t, name, &size));
    CHECK(size == 24 && strcmp(name, "c") == 0);
    REACHES(inq_type, 0, nc_inq_type(nc, NC_INT, name, &size));
    STAYS(NC_EBADTYPE, nc_inq_type(nc, NC_NAT, name, &size));
    REACHES(inq_type_equal, 1, nc_inq_type_equal(nc, t, nc, t, &a));
    CHECK(a == 1);
    REACHES(inq_user_type, 1, nc_inq_user_type(nc, t, name, &size, &a, &len, &b));
    CHECK(b == NC_COMPOUND && len == 3);
    REACHES(inq_user_type, 1, nc_inq_compound(nc, t, name, &size, &len));
    REACHES(inq_user_type, 1, nc_inq_enum(nc, e, name, &a, &size, &len));
    FAILS(nc_inq_vlen(nc, e, name, &size, &a), NC_EBADTYPE);
    REACHES(inq_compound_field, 1, nc_inq_compound_field(nc, t, 1, name, &size, &a, &b, list));
    CHECK(size == 4 && a == NC_INT && b == 1 && list[0] == 2);
    REACHES(inq_compound_field, 1, nc_inq_compound_fieldname(nc, t, 0, name));
    REACHES(inq_compound_field, 1, nc_inq_compound_fieldoffset(nc, t, 2, &size));
    REACHES(inq_compound_field, 1, nc_inq_compound_fieldtype(nc, t, 0, &a));
    REACHES(inq_compound_field, 1, nc_inq_compound_fieldndims(nc, t, 1, &a));
    REACHES(inq_compound_field, 1, nc_inq_compound_fielddim_sizes(nc, t, 1, list));
    REACHES(inq_compound_fieldindex, 1, nc_inq_compound_fieldindex(nc, t, "a", &a));
    CHECK(a == 1);
    REACHES(inq_enum_member, 1, nc_inq_enum_member(nc, e, 0, name, &value));
    REACHES(inq_enum_ident, 1, nc_inq_enum_ident(nc, e, 1, name));
    CHECK(strcmp(name, "one") == 0 && value == 1);
    OK(nc_inq_typeid(nc, "l", &e));
    nc_vlen_t element = {0, NULL};
    REACHES(put_vlen_element, 1, nc_put_vlen_element(nc, e, &element, 1, &(int){9}));
    REACHES(get_vlen_element, 1, nc_get_vlen_element(nc, e, &element, &len, &a));
    CHECK(len == 1 && a == 9);
    /* About the file itself no table is asked. */
    REACHES(inq, 0, nc_inq_path(nc, &len, name));
    CHECK(len == 7 && strcmp(name, "user.nc") == 0);
    REACHES(inq, 0, nc_inq_base_pe(nc, &a));
    CHECK(a == 0);
    REACHES(inq, 0, nc_set_base_pe(nc, 0));
}

/* Values that own memory: what the types nest is asked of the table. */
static void nested(int nc) {
    struct c {
        int n, a[2];
        char *s;
    } values[6], *copy, back[6];
    int v, l, i;
    nc_type t;
    OK(nc_inq_varid(nc, "fields", &v));
    OK(nc_inq_varid(nc, "lists", &l));
    OK(nc_inq_vartype(nc, v, &t));
    for (i = 0; i < 6; i++) values[i] = (struct c){i, {i, -i}, (char *[]){"a", "bc"}[i % 2]};
    OK(nc_put_var(nc, v, values));
    OK(nc_get_var(nc, v, back));
    CHECK(back[5].a[1] == -5 && strcmp(back[5].s, "bc") == 0);
    OK(nc_copy_data_all(nc, t, back, 6, (void **)&copy));
    CHECK(copy[5].s != back[5].s && strcmp(copy[5].s, "bc") == 0);
    OK(nc_reclaim_data_all(nc, t, copy, 6));
    OK(nc_reclaim_data(nc, t, back, 6));
    int items[2] = {7, 8};
    nc_vlen_t lists[6];
    for (i = 0; i < 6; i++) lists[i] = (nc_vlen_t){(size_t)i % 3, items};
    OK(nc_put_var(nc, l, lists));
    OK(nc_get_var(nc, l, lists));
    CHECK(lists[5].len == 2 && ((int *)lists[5].p)[1] == 8);
    OK(nc_inq_vartype(nc, l, &t));
    OK(nc_reclaim_data(nc, t, lists, 6));
}

static void copying(int nc) {
    int to, back, v, d, got[18], want[18];
    OK(nc_inq_varid(nc, "v", &v));
    OK(nc_get_var_int(nc, v, want));
    OK(nc_create("copied.nc", NC_NETCDF4, &to));
    OK(nc_def_dim(to, "time", NC_UNLIMITED, &d));
    OK(nc_def_dim(to, "x", 6, &d));
    OK(nc_copy_att(nc, NC_GLOBAL, "s", to, NC_GLOBAL));
    OK(nc_copy_var(nc, v, to));
    OK(nc_get_var_int(to, 0, got));
    CHECK(memcmp(got, want, sizeof got) == 0);
    char *text;
    OK(nc_get_att_string(to, NC_GLOBAL, "s", &text));
    CHECK(strcmp(text, "text") == 0);
    OK(nc_free_string(1, &text));
    short number;
    OK(nc_get_att_short(to, 0, "number", &number));
    CHECK(number == 5);
    /* And from an ordinary file to one of ours. */
    OK(nc_create("back.nc", NC_UDF0, &back));
    OK(nc_def_dim(back, "time", NC_UNLIMITED, &d));
    OK(nc_def_dim(back, "x", 6, &d));
    OK(nc_copy_var(to, 0, back));
    memset(got, 0, sizeof got);
    OK(nc_get_var_int(back, 0, got));
    CHECK(memcmp(got, want, sizeof got) == 0);
    /* Records as netCDF-2 sees them. */
    int nrec, recs[3];
    long sizes[3];
    CHECK(ncrecinq(back, &nrec, recs, sizes) == 1 && nrec == 1 && recs[0] == 0 && sizes[0] == 24);
    memset(got, 0, sizeof got);
    CHECK(ncrecget(back, 1, (void *[]){got}) == 0 && memcmp(got, want + 6, 24) == 0);
    OK(nc_close(back));
    OK(nc_close(to));
}

static void opening(void) {
    int nc, other, ordinary, got;
    size_t len;
    char text[16] = "MINE and more";
    NC_memio memio = {sizeof text, text, 0};
    FILE *f = fopen("magic", "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    /* By its first bytes; a short file is no trouble. */
    OK(nc_open("magic", NC_WRITE, &nc));
    CHECK(nc == opened.ncid && strcmp(opened.path, "magic") == 0);
    CHECK(opened.mode == (NC_WRITE | NC_NETCDF4) && opened.memory == NULL);
    file_of[nc >> 16] = 0;
    /* ids are those of one list, the lowest free first. */
    OK(nc_open("user.nc", NC_NOWRITE, &ordinary));
    OK(nc_open("magic", NC_NOWRITE, &other));
    CHECK(nc == 1 << 16 && ordinary == 2 << 16 && other == 3 << 16);
    file_of[other >> 16] = 0;
    OK(nc_inq_nvars(ordinary, &got));
    OK(nc_close(ordinary));
    OK(nc_open("user.nc", NC_NOWRITE, &ordinary));
    CHECK(ordinary == 2 << 16);
    OK(nc_close(ordinary));
    OK(nc_close(other));
    FAILS(nc_inq_nvars(other, &got), NC_EBADID);
    FAILS(nc_close(other), NC_EBADID);
    /* A close that is refused leaves it open; an abort does not ask. */
    refuse_close = NC_EHDFERR;
    FAILS(nc_close(nc), NC_EHDFERR);
    OK(nc_inq_path(nc, &len, NULL));
    refuse_close = 0;
    OK(nc_close(nc));
    FAILS(nc_inq_path(nc, &len, NULL), NC_EBADID);
    /* In memory. */
    OK(nc_open_mem("magic", NC_NOWRITE, sizeof text, text, &nc));
    CHECK(opened.given.memory == text && opened.given.size == sizeof text);
    CHECK(opened.mode & NC_INMEMORY);
    file_of[nc >> 16] = 0;
    OK(nc_close(nc));
    OK(nc_open_memio("magic", NC_NOWRITE, &memio, &nc));
    CHECK(opened.memory == &memio && memio.memory == text);
    file_of[nc >> 16] = 0;
    OK(nc_close_memio(nc, &memio));
    CHECK(opened.memory == &memio);
    OK(nc_create_mem("inmem.nc", NC_UDF0, 77, &nc));
    CHECK(opened.initial == 77 && opened.mode == (NC_UDF0 | NC_INMEMORY | NC_NETCDF4));
    FAILS(nc_abort(nc), 42);
    FAILS(nc_abort(nc), NC_EBADID);
    /* A flag comes before the other flags and before the content; what the table answers stays. */
    FAILS(nc_open("missing.nc", 0x200000 | NC_NETCDF4, &nc), 2);
    OK(nc_open("user.nc", NC_UDF0, &nc));
    OK(nc_inq_nvars(nc, &got));
    CHECK(got == 5);
    FAILS(nc_abort(nc), 42);
    OK(nc_open("  user.nc", NC_UDF0, &nc));
    CHECK(strcmp(opened.path, "user.nc") == 0);
    OK(nc_close(nc));
    /* Deleting closes first. */
    int closed = n.close;
    OK(nc_open("magic", 0, &nc));
    file_of[nc >> 16] = 0;
    OK(nc_close(nc));
    OK(nc_delete("magic"));
    CHECK(n.close == closed + 2 && fopen("magic", "r") == NULL);
    /* A null member. */
    static NC_Dispatch empty = {.model = NC_FORMATX_UDF1, .dispatch_version = NC_DISPATCH_VERSION};
    empty.open = my_open;
    OK(nc_def_user_format(NC_UDF1, &empty, ""));
    OK(nc_open("magic", NC_UDF1, &nc));
    FAILS(nc_inq_nvars(nc, &got), NC_ENOTNC4);
    OK(nc_close(nc));
    FAILS(nc_create("none", NC_UDF1, &nc), NC_ENOTBUILT);
}

/* The members of the header, and those of classic files, which have no groups. */
static void members(void) {
    static NC_Dispatch classic;
    int nc;
    size_t filters = 7;
    classic = table;
    classic.model = NC_FORMATX_NC3;
    classic.redef = NC_RO_redef;
    classic.sync = NC_RO_sync;
    classic._enddef = NC_RO__enddef;
    classic.def_grp = NC_NOTNC4_def_grp;
    classic.inq_var_filter_ids = NC_NOOP_inq_var_filter_ids;
    classic.inq_var_filter_info = NC_NOOP_inq_var_filter_info;
    classic.inq_filter_avail = NC_NOOP_inq_filter_avail;
    classic.get_varm = NC_NOTNC3_get_varm;
    OK(nc_def_user_format(NC_UDF0, &classic, NULL));
    OK(nc_open("user.nc", NC_UDF0, &nc));
    FAILS(nc_redef(nc), NC_EPERM);
    OK(nc_sync(nc));
    OK(nc_enddef(nc));
    FAILS(nc_def_grp(nc, "g", NULL), NC_ENOTNC4);
    FAILS(nc_inq_nvars(nc + 1, NULL), NC_EBADID);
    OK(nc_inq_var_filter_ids(nc, 0, &filters, NULL));
    CHECK(filters == 0);
    int shuffle = 7, deflate = 7, level = 7;
    OK(nc_inq_var_deflate(nc, 0, NULL, &deflate, &level));
    CHECK(deflate == 0 && level == 0);
    classic.inq_var_filter_info = NC_NOTNC4_inq_var_filter_info;
    deflate = level = 7;
    OK(nc_inq_var_deflate(nc, 0, &shuffle, &deflate, &level));
    CHECK(shuffle == 0 && deflate == 0 && level == 0);
    FAILS(nc_inq_filter_avail(nc, 1), NC_ENOFILTER);
    FAILS(nc_def_var_bzip2(nc, 0, 100), NC_ENOFILTER);
    FAILS(nc_get_varm_int(nc, 1, NULL, NULL, NULL, NULL, NULL), NC_ENOTNC4);
    CHECK(NC_RO_create("", 0, 0, 0, NULL, NULL, NULL, 0) == NC_EPERM);
    CHECK(NC_NOTNC4_def_var_chunking(0, 0, 0, NULL) == NC_EPERM);
    OK(nc_close(nc));
}

int main(void) {
    int nc;
    registering();
    OK(nc_create("user.nc", NC_UDF0, &nc));
    CHECK(opened.mode == (NC_UDF0 | NC_NETCDF4) && opened.initial == 0 && opened.ncid == nc);
    defining(nc);
    data(nc);
    nested(nc);
    asking(nc);
    copying(nc);
    REACHES(close, 1, nc_close(nc));
    opening();
    members();
    return 0;
}
