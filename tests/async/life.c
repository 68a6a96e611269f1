/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   life SEED FORMAT STEPS PATH
 *
 * A random life of a file through the public interface: definitions, puts of every type and form, loops of
 * single elements, gets in between, attributes, renames, sync, redefinition, copies, closing and opening.
 * FORMAT is 1, 2, 5 (classic), 4 (netCDF-4) or 3 (netCDF-4 of the classic model). What happens follows
 * from the seed and from what the library answers. Each call is a line on standard output with its code,
 * and a digest of what it delivered: two runs that behave the same print the same and leave the same files.
 *
 * On standard error one line says how far the library was behind:
 *   behind BYTES threads N       most pending bytes seen, most threads whose names begin with zonda-io
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "life.h"
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;
static int root = -1, format, line;
/* Some variable has elements that nobody ever wrote and that are not filled: what they read as, until the file is
 * closed, depends on what is written already. Then only what was put is read. */
static int unfilled;
static const char *path;
static size_t most_behind, most_threads;

uint64_t chance(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned below(unsigned n) { return (unsigned)(chance() % n); }

void say(const char *text, ...) {
    va_list args;
    va_start(args, text);
    printf("%d ", ++line);
    vprintf(text, args);
    putchar('\n');
    va_end(args);
}

uint64_t digest(uint64_t hash, const void *bytes, size_t n) {
    for (const unsigned char *p = bytes; n; n--, p++) hash = (hash ^ *p) * 0x100000001b3u;
    return hash;
}

static int is_nc4(void) { return format == 4 || format == 3; }

/* Looks, without any effect, how much is pending and who works on it. */
static void look_behind(void) {
    static int (*status)(int, size_t *, int *);
    static int asked;
    if (!asked++) *(void **)&status = dlsym(RTLD_DEFAULT, "nc_zonda_async_status");
    size_t pending = 0, threads = 0;
    int kept = 0;
    if (status && status(root, &pending, &kept) == NC_NOERR && kept) say("kept error %d", kept);
    if (pending > most_behind) most_behind = pending;
    if (line % 16) return;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *t; tasks && (t = readdir(tasks));) {
        char file[300], name[32] = "";
        snprintf(file, sizeof file, "/proc/self/task/%s/comm", t->d_name);
        FILE *f = fopen(file, "r");
        if (!f) continue;
        threads += fgets(name, sizeof name, f) && strncmp(name, "zonda-io", 8) == 0;
        fclose(f);
    }
    if (tasks) closedir(tasks);
    if (threads > most_threads) most_threads = threads;
}

/* ---- Definitions ------------------------------------------------------------------------------- */

static void name_of(char *name, const char *what) { sprintf(name, "%s%u", what, below(1000)); }

/* The root group, or one below it. */
static int somewhere(void) {
    int n = 0, groups[8];
    if (format != 4 || nc_inq_grps(root, &n, NULL) || n < 1 || n > 8) return root;
    nc_inq_grps(root, &n, groups);
    return below(3) ? root : groups[below((unsigned)n)];
}

static void define_dim(size_t len) {
    char name[32];
    name_of(name, len ? "d" : "u");
    int code = nc_def_dim(root, name, len, NULL);
    say("dim %s %zu: %d", name, len, code);
}

static nc_type some_type(void) {
    static const nc_type cdf5[] = {NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64};
    nc_type own[] = {NC_STRING, PAIR, LIST, COLOUR, BLOB};
    unsigned kind = below(10);
    if (format == 4 && kind < 2) {
        nc_type t = own[below(5)];
        if (t) return t;
    }
    if (kind < 4 && (format == 4 || format == 5)) return cdf5[below(5)];
    return (nc_type)(1 + below(6));
}

/* How a variable of netCDF-4 is stored; whatever the library refuses is said by its code. */
static void define_storage(int nc, int v, nc_type type, int rank, const int *dims) {
    size_t chunks[MOST_DIMS];
    int code, endless = 0, n = 0, ids[16];
    nc_inq_unlimdims(root, &n, ids);
    for (int d = 0; d < rank; d++) {
        size_t len = 0;
        for (int i = 0; i < n; i++) endless |= ids[i] == dims[d];
        nc_inq_dimlen(nc, dims[d], &len);
        chunks[d] = 1 + below(len ? (unsigned)len : 5);
    }
    if (rank && below(4)) {
        code = below(4) || endless ? nc_def_var_chunking(nc, v, NC_CHUNKED, chunks) : nc_def_var_chunking(nc, v, NC_CONTIGUOUS, NULL);
        say("chunking %d: %d", v, code);
    }
    if (rank && below(2)) {
        code = nc_def_var_deflate(nc, v, (int)below(2), below(4) != 0, 1 + (int)below(6));
        say("deflate %d: %d", v, code);
    } else if (rank && below(4) == 0) {
        code = nc_def_var_filter(nc, v, 32015, 1, (unsigned[]){3});
        say("zstandard %d: %d", v, code);
    }
    if (rank && below(5) == 0) {
        code = nc_def_var_fletcher32(nc, v, NC_FLETCHER32);
        say("fletcher32 %d: %d", v, code);
    }
    if (below(4) == 0 && (type == NC_FLOAT || type == NC_DOUBLE)) {
        code = nc_def_var_quantize(nc, v, 1 + (int)below(3), 1 + (int)below(6));
        say("quantize %d: %d", v, code);
    }
    if (below(5) == 0) {
        code = nc_def_var_endian(nc, v, 1 + (int)below(2));
        say("endian %d: %d", v, code);
    }
}

static void define_var(void) {
    char name[32];
    int dims[MOST_DIMS], ids[64], n = 0, v = -1, nc = somewhere();
    name_of(name, "v");
    if (is_nc4())
        nc_inq_dimids(root, &n, ids, 0);
    else if (nc_inq_ndims(root, &n) == NC_NOERR)
        for (int i = 0; i < n && i < 64; i++) ids[i] = i;
    if (n > 64) return;
    int rank = n ? (int)below(MOST_DIMS) : 0;
    size_t total = 1, len;
    for (int d = 0; d < rank; d++) {
        dims[d] = ids[below((unsigned)n)];
        len = 0;
        nc_inq_dimlen(root, dims[d], &len);
        total *= len ? len : 1;
        if (total > 100000) rank = d; /* the file stays of a bearable size */
    }
    /* A classic record dimension comes first. */
    int unlimited = -1;
    nc_inq_unlimdim(root, &unlimited);
    if (rank && unlimited >= 0 && below(2)) dims[0] = unlimited;
    nc_type type = some_type();
    int code = nc_def_var(nc, name, type, rank, dims, &v);
    say("var %s type %d rank %d in %d: %d", name, type, rank, nc != root, code);
    if (code) return;
    if (is_nc4()) define_storage(nc, v, type, rank, dims);
    if (below(5) == 0 && type <= NC_DOUBLE) {
        double fill = below(100); /* of any of these types, the first bytes of it */
        int filled = below(6) != 0;
        unfilled |= !filled;
        code = filled ? nc_def_var_fill(nc, v, NC_FILL, &fill) : nc_def_var_fill(nc, v, NC_NOFILL, NULL);
        say("fill %d: %d", v, code);
    }
}

static void put_attribute(void) {
    char name[32];
    double values[40];
    int nv = 0, nc = somewhere();
    nc_inq_nvars(nc, &nv);
    sprintf(name, "a%u", below(8));
    int owner = (int)below((unsigned)nv + 1) - 1;
    size_t n = below(40);
    for (size_t i = 0; i < n; i++) values[i] = below(100);
    int code = below(3) ? nc_put_att_double(nc, owner, name, (nc_type[]){NC_BYTE, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE}[below(5)], n, values)
                        : nc_put_att_text(nc, owner, name, n, "forty characters that make an attribute");
    say("attribute %s of %d length %zu: %d", name, owner, n, code);
}

static void delete_or_rename(void) {
    char name[32];
    int n = 0, code, nc = somewhere();
    nc_inq_nvars(nc, &n);
    switch (below(3)) {
        case 0:
            sprintf(name, "a%u", below(8));
            code = nc_del_att(nc, (int)below((unsigned)n + 1) - 1, name);
            break;
        case 1:
            name_of(name, "r");
            code = n ? nc_rename_var(nc, (int)below((unsigned)n), name) : 0;
            break;
        default:
            nc_inq_ndims(root, &n);
            name_of(name, "s");
            code = n ? nc_rename_dim(root, (int)below((unsigned)n), name) : 0;
    }
    say("delete or rename %s: %d", name, code);
}

static void no_fill(void) {
    int old = -1, code = nc_set_fill(root, NC_NOFILL, &old);
    unfilled = 1;
    say("no fill: %d %d", code, old);
}

static void create(void) {
    static const int modes[] = {0, 0, NC_64BIT_OFFSET, NC_NETCDF4 | NC_CLASSIC_MODEL, NC_NETCDF4, NC_64BIT_DATA};
    int wide = below(3) == 0, code = nc_create(path, NC_CLOBBER | modes[format], &root);
    say("create: %d", code);
    if (code) exit(1);
    if (below(3) == 0) no_fill();
    PAIR = LIST = COLOUR = BLOB = 0;
    if (format == 4) {
        define_types(root);
        for (unsigned i = below(3); i > 0; i--) say("group: %d", nc_def_grp(root, i == 1 ? "one" : "two", NULL));
    }
    define_dim(NC_UNLIMITED);
    for (unsigned i = 2 + below(3); i > 0; i--) define_dim(1 + below(i == 2 && wide ? 9000 : 30));
    if (format == 4)
        for (unsigned i = below(3); i > 0; i--) define_dim(NC_UNLIMITED);
    for (unsigned i = 3 + below(8); i > 0; i--) define_var();
    for (unsigned i = below(5); i > 0; i--) put_attribute();
}

static void end_definitions(void) {
    int code = below(4) ? nc_enddef(root) : nc__enddef(root, below(2000), 4, below(3000), 4);
    say("enddef: %d", code);
}

static void redefine(void) {
    say("redef: %d", nc_redef(root));
    for (unsigned i = below(4); i > 0; i--) put_attribute();
    for (unsigned i = below(3); i > 0; i--) define_var();
    if (below(3) == 0) delete_or_rename();
    if (format == 4 && below(3) == 0) return; /* a put ends it, too */
    end_definitions();
}

/* ---- Data -------------------------------------------------------------------------------------- */

static int some_var(Var *v) {
    int n = 0, m = 0, ids[16] = {-1};
    v->nc = somewhere();
    if (nc_inq_nvars(v->nc, &n) || n == 0) return 0;
    v->id = (int)below((unsigned)n);
    if (nc_inq_var(v->nc, v->id, NULL, &v->type, &v->rank, v->dims, NULL) || v->rank > MOST_DIMS) return 0;
    if (is_nc4())
        nc_inq_unlimdims(root, &m, ids);
    else if (nc_inq_unlimdim(root, ids) == NC_NOERR)
        m = 1;
    for (int d = 0; d < v->rank; d++) {
        nc_inq_dimlen(v->nc, v->dims[d], &v->len[d]);
        v->endless[d] = 0;
        for (int i = 0; i < m; i++) v->endless[d] |= ids[i] == v->dims[d];
    }
    return 1;
}

static size_t most_of(nc_type type) {
    return type <= NC_UINT64 ? MOST_ELEMS : MOST_TEXTS;
}

/* A part of a variable, which may grow when it is put. 0 if there is none of a bearable size. */
static int some_slab(const Var *v, Slab *s, int form, int grows) {
    s->form = (unsigned)form;
    s->n = 1;
    for (int d = 0; d < v->rank; d++) {
        int more = grows && v->endless[d];
        size_t len = more ? (v->len[d] < 60 ? v->len[d] + 1 + below(3) : 60) : v->len[d];
        s->stride[d] = form >= STRIDED ? 1 + (ptrdiff_t)below(3) : 1;
        s->start[d] = len ? below((unsigned)len) : 0;
        if (more && below(2)) s->start[d] = len - 1;
        size_t room = len > s->start[d] ? (len - 1 - s->start[d]) / (size_t)s->stride[d] + 1 : 0;
        if (below(4) == 0 && !more) s->start[d] = 0, s->stride[d] = 1, room = len;
        s->count[d] = form == ONE ? 1 : room ? 1 + below((unsigned)room) : 0;
        if (form == AREA && !more && below(2)) s->count[d] = room;
        if (form == WHOLE) s->start[d] = 0, s->count[d] = v->len[d];
        s->n *= s->count[d];
        if (s->n > most_of(v->type)) return 0;
    }
    ptrdiff_t step = 1;
    int turned = below(2) != 0;
    for (int i = 0; i < v->rank; i++) {
        int d = turned ? i : v->rank - 1 - i;
        s->map[d] = step;
        step *= (ptrdiff_t)s->count[d];
    }
    /* Out of bounds now and then, by start or by count: the code must come at once. */
    if (v->rank && form != WHOLE && below(40) == 0) {
        int d = (int)below((unsigned)v->rank);
        if (!v->endless[d]) s->start[d] += 1 + below(3) * v->len[d];
    }
    return 1;
}

/* Which type the values have in memory. */
static int some_memory(const Var *v) {
    if (v->type > NC_UINT64) return v->type == NC_STRING && below(2) ? NC_STRING : NATIVE;
    if (below(30) == 0) return 1 + (int)below(NC_UINT64); /* also text for numbers */
    if (v->type == NC_CHAR) return below(2) ? NC_CHAR : NATIVE;
    switch (below(5)) {
        case 0: return NC_DOUBLE;
        case 1: return (int[]){NC_BYTE, NC_SHORT, NC_INT, NC_FLOAT, NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64}[below(9)];
        case 2: return NATIVE;
        default: return v->type;
    }
}

/* The last puts that were accepted. */
static struct {
    Var v;
    Slab s;
    int memory;
} before[16];
static unsigned n_before;

static void put_some(void) {
    static const int forms[] = {WHOLE, ONE, AREA, AREA, AREA, STRIDED, MAPPED};
    Var v;
    Slab s;
    if (!some_var(&v) || !some_slab(&v, &s, forms[below(7)], 1)) return;
    int memory = some_memory(&v);
    if (put(&v, &s, memory)) return;
    before[n_before % 16].v = v;
    before[n_before % 16].s = s;
    before[n_before++ % 16].memory = memory;
}

static void get_some(void) {
    static const int forms[] = {WHOLE, ONE, AREA, AREA, STRIDED, MAPPED};
    Var v;
    Slab s;
    if (unfilled || below(3) == 0) {
        unsigned k = below(n_before < 16 ? n_before + 1 : 16);
        /* As a whole the variable may have grown. */
        if (k < n_before && before[k].s.form != WHOLE) get(&before[k].v, &before[k].s, before[k].memory);
        return;
    }
    if (some_var(&v) && some_slab(&v, &s, forms[below(6)], 0)) get(&v, &s, some_memory(&v));
}

/* Single elements of two variables in turns, in order or anywhere: what a naive program does. */
static void loop_of_ones(void) {
    Var v[2];
    Slab s[2];
    size_t at[2] = {0, 0};
    int ordered = below(3) != 0, n = 20 + (int)below(100);
    for (int i = 0; i < 2; i++)
        if (!some_var(&v[i])) return;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 2; i++) {
            if (!some_slab(&v[i], &s[i], ONE, 1)) return;
            size_t rest = at[i]++;
            for (int d = v[i].rank - 1; d >= 0 && ordered; d--) {
                size_t len = v[i].endless[d] ? (d ? 5 : 60) : v[i].len[d];
                s[i].start[d] = rest % len;
                rest /= len;
            }
            put(&v[i], &s[i], v[i].type > NC_UINT64 ? NATIVE : (int)v[i].type);
        }
}

/* The next record of every variable that has the first unlimited dimension, as a model writes it. */
static void next_record(void) {
    int unlimited = -1, n = 0;
    size_t len = 0;
    if (nc_inq_unlimdim(root, &unlimited) || nc_inq_dimlen(root, unlimited, &len) || len > 60) return;
    nc_inq_nvars(root, &n);
    for (int id = 0; id < n; id++) {
        Var v = {.nc = root, .id = id};
        Slab s = {.form = AREA, .n = 1};
        if (nc_inq_var(root, id, NULL, &v.type, &v.rank, v.dims, NULL) || v.rank == 0 || v.dims[0] != unlimited) continue;
        for (int d = 0; d < v.rank; d++) {
            nc_inq_dimlen(root, v.dims[d], &v.len[d]);
            s.start[d] = d ? 0 : len;
            s.count[d] = d ? v.len[d] : 1;
            s.stride[d] = 1;
            s.n *= s.count[d];
        }
        if (s.n <= most_of(v.type)) put(&v, &s, v.type <= NC_UINT64 && v.type != NC_CHAR && below(2) ? NC_DOUBLE : NATIVE);
    }
}

/* What inquiries say of what was put, pending or not. */
static void inquire(void) {
    int nd = 0, nv = 0, na = 0, unlimited = -1;
    int code = nc_inq(root, &nd, &nv, &na, &unlimited);
    say("inq: %d %d %d %d %d", code, nd, nv, na, unlimited);
    for (int d = 0; d < nd; d++) {
        size_t len = 0;
        char name[NC_MAX_NAME + 1] = "";
        code = nc_inq_dim(root, d, name, &len);
        say("dim %d: %d %s %zu", d, code, name, len);
    }
}

static void copy_variable(void) {
    char other[4096];
    int out, n = 0, code;
    nc_inq_nvars(root, &n);
    if (n == 0 || unfilled) return;
    snprintf(other, sizeof other, "%s.copy", path);
    code = nc_create(other, NC_CLOBBER | (is_nc4() ? NC_NETCDF4 : NC_64BIT_DATA), &out);
    say("create copy: %d", code);
    if (code) return;
    for (int i = 0; i < 2; i++) {
        int v = (int)below((unsigned)n);
        nc_type type = NC_STRING + 1;
        nc_inq_vartype(root, v, &type);
        if (type > NC_STRING) continue; /* types of the other file have other numbers */
        Var q;
        if (nc_inq_var(root, v, NULL, NULL, &q.rank, q.dims, NULL)) continue;
        for (int d = 0; d < q.rank; d++) {
            char name[NC_MAX_NAME + 1];
            size_t len = 0;
            nc_inq_dim(root, q.dims[d], name, &len);
            nc_def_dim(out, name, len, NULL); /* perhaps it is there */
        }
        say("copy of %d: %d", v, nc_copy_var(root, v, out));
    }
    say("close copy: %d", nc_close(out));
}

static void reopen(void) {
    look_behind();
    n_before = 0; /* they have other numbers now */
    say("close: %d", nc_close(root));
    int code = nc_open(path, NC_WRITE, &root);
    say("open: %d", code);
    if (code) exit(1);
    if (unfilled && below(2)) no_fill();
    find_types(root);
}

static void step(void) {
    unsigned what = below(100);
    if (what < 50) put_some();
    else if (what < 56) loop_of_ones();
    else if (what < 72) next_record();
    else if (what < 79) get_some();
    else if (what < 84) inquire();
    else if (what < 87) put_attribute();
    else if (what < 89) delete_or_rename();
    else if (what < 92) say("sync: %d", nc_sync(root));
    else if (what < 96) redefine();
    else if (what < 97) copy_variable();
    else if (what < 98) reopen();
    else if (unfilled) no_fill();
    else say("fill mode: %d", nc_set_fill(root, NC_FILL, NULL));
    look_behind();
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    state = strtoull(argv[1], NULL, 10) * 0x2545f4914f6cdd1du;
    format = atoi(argv[2]);
    path = argv[4];
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    create();
    end_definitions();
    for (int i = 0, n = atoi(argv[3]); i < n; i++) step();
    look_behind();
    say("close: %d", nc_close(root));
    int code = nc_open(path, NC_NOWRITE, &root);
    say("open: %d", code);
    if (code) return 1;
    inquire();
    say("close: %d", nc_close(root));
    fprintf(stderr, "behind %zu threads %zu\n", most_behind, most_threads);
    return 0;
}
