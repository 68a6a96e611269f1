/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Every function that takes a count, a size or a length gets absurd ones while the process may have
 * little memory. Each call runs in a child of its own; a line says what it answered:
 *
 *     CASE FORMAT SIZE: code [codes of what came after]     or     CASE FORMAT SIZE: signal N
 *
 *     absurd FOLDER                all cases, sizes and formats
 *     absurd FOLDER CASE|all quick one case or all, with each third size, in three formats
 *
 * The memory that a call says it hands over is really there: a region of zeros that takes no memory.
 * run.py runs this on two libraries and compares the lines. */
#define _GNU_SOURCE
#include <errno.h>
#include <netcdf.h>
#include <netcdf_aux.h>
#include <netcdf_filter.h>
#include <netcdf_mem.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child may take beyond what it has when it begins. */
#define ROOM ((size_t)160 << 20)
#define SECONDS 8

static const size_t REGION = (size_t)1 << 41;
static char *zeros;      /* REGION bytes that are zero */
static char *long_name;  /* 256 MiB of x, then NUL */
static char path[4000], other_path[4000];
static size_t n;         /* the absurd number */
static int format;       /* flags of nc_create */
static int codes[8], n_codes;

static int say(int code) {
    if (n_codes < 8) codes[n_codes++] = code;
    return code;
}

/* Whether `n` items of `size` bytes are really in the region. */
static int there(size_t size) { return n <= REGION / size; }
static int nc4(void) { return (format & NC_NETCDF4) != 0; }
static int full(void) { return nc4() && !(format & NC_CLASSIC_MODEL); }

static int made(void) {
    int nc;
    if (nc_create(path, NC_CLOBBER | format, &nc)) _exit(99);
    return nc;
}

static void done(int nc) {
    say(nc_enddef(nc));
    say(nc_close(nc));
}

/* A file with dimension x of 10 and variable v of ints. */
static int one_var(int *v) {
    int nc = made(), d;
    if (nc_def_dim(nc, "x", 10, &d) || nc_def_var(nc, "v", NC_INT, 1, &d, v)) _exit(99);
    return nc;
}

#define SKIP return 0

static struct { const char *name; int (*run)(void); } cases[200];
static size_t n_cases;

/* A case says whether it makes sense of this format and size. It enters itself in the list. */
#define CASE(label)                                                                       \
    static int label(void);                                                               \
    __attribute__((constructor)) static void enter_##label(void) {                        \
        cases[n_cases].name = #label;                                                     \
        cases[n_cases++].run = label;                                                     \
    }                                                                                     \
    static int label(void)

CASE(def_var_filter) { if (!nc4()) SKIP; int v, nc = one_var(&v); say(nc_def_var_filter(nc, v, 1, n, (unsigned *)zeros)); done(nc); return 1; }
CASE(def_var_filter_unknown) { if (!nc4()) SKIP; int v, nc = one_var(&v); say(nc_def_var_filter(nc, v, 40000, n, (unsigned *)zeros)); done(nc); return 1; }
CASE(def_var_chunking) { if (!nc4()) SKIP; int v, nc = one_var(&v); say(nc_def_var_chunking(nc, v, NC_CHUNKED, &n)); done(nc); return 1; }
CASE(set_var_chunk_cache_size) { if (!nc4()) SKIP; int v, nc = one_var(&v), x[10] = {0}; say(nc_set_var_chunk_cache(nc, v, n, 11, .5f)); say(nc_enddef(nc)); say(nc_put_var_int(nc, v, x)); say(nc_close(nc)); return 1; }
CASE(set_var_chunk_cache_slots) { if (!nc4()) SKIP; int v, nc = one_var(&v), x[10] = {0}; say(nc_set_var_chunk_cache(nc, v, 1 << 20, n, .5f)); say(nc_enddef(nc)); say(nc_put_var_int(nc, v, x)); say(nc_close(nc)); return 1; }
CASE(set_chunk_cache) { if (!nc4()) SKIP; say(nc_set_chunk_cache(n, n, .5f)); int v, nc = one_var(&v), x[10] = {0}; say(nc_enddef(nc)); say(nc_put_var_int(nc, v, x)); say(nc_close(nc)); return 1; }
CASE(def_dim) { int nc = made(), d; say(nc_def_dim(nc, "x", n, &d)); done(nc); return 1; }
CASE(def_dim_var) { int nc = made(), d, v; if (say(nc_def_dim(nc, "x", n, &d))) { nc_close(nc); return 1; } say(nc_def_var(nc, "v", NC_DOUBLE, 1, &d, &v)); nc_set_fill(nc, NC_NOFILL, &d); done(nc); return 1; }
CASE(def_dims_var) { int nc = made(), d[3], v; if (say(nc_def_dim(nc, "x", n, d))) { nc_close(nc); return 1; } nc_def_dim(nc, "y", n, d + 1); nc_def_dim(nc, "z", 3, d + 2); say(nc_def_var(nc, "v", NC_INT, 3, d, &v)); nc_set_fill(nc, NC_NOFILL, d); done(nc); return 1; }
CASE(def_var_ndims) { if (n > INT32_MAX) SKIP; int nc = made(), d, v; nc_def_dim(nc, "x", 1, &d); say(nc_def_var(nc, "v", NC_INT, (int)n, (int *)zeros, &v)); done(nc); return 1; }

#define ATT(type, T) CASE(put_att_##type) { if (!there(sizeof(T))) SKIP; int nc = made(); say(nc_put_att_##type(nc, NC_GLOBAL, "a", NC_DOUBLE, n, (const T *)zeros)); done(nc); return 1; }
ATT(schar, signed char) ATT(uchar, unsigned char) ATT(short, short) ATT(int, int) ATT(long, long) ATT(float, float) ATT(double, double)
ATT(ushort, unsigned short) ATT(uint, unsigned) ATT(longlong, long long) ATT(ulonglong, unsigned long long)
CASE(put_att_text) { int nc = made(); say(nc_put_att_text(nc, NC_GLOBAL, "a", n, zeros)); done(nc); return 1; }
CASE(put_att_byte_false) { int nc = made(); say(nc_put_att_int(nc, NC_GLOBAL, "a", NC_BYTE, n, (int *)zeros)); done(nc); return 1; }
CASE(put_att) { int nc = made(); say(nc_put_att(nc, NC_GLOBAL, "a", NC_SHORT, n, zeros)); done(nc); return 1; }
CASE(put_att_string) { if (!full()) SKIP; int nc = made(); say(nc_put_att_string(nc, NC_GLOBAL, "a", n, (const char **)zeros)); done(nc); return 1; }
CASE(put_att_replace) { int nc = made(); nc_put_att_int(nc, NC_GLOBAL, "a", NC_INT, 1, (int *)zeros); say(nc_put_att_int(nc, NC_GLOBAL, "a", NC_INT, n, (int *)zeros)); done(nc); return 1; }
CASE(put_att_user) { if (!full()) SKIP; int nc = made(), t; nc_def_opaque(nc, 16, "o", &t); say(nc_put_att(nc, NC_GLOBAL, "a", t, n, zeros)); done(nc); return 1; }
CASE(put_att_enum) { if (!full()) SKIP; int nc = made(), t, one = 0; nc_def_enum(nc, NC_INT, "e", &t); nc_insert_enum(nc, t, "z", &one); say(nc_put_att(nc, NC_GLOBAL, "a", t, n, zeros)); done(nc); return 1; }
CASE(put_att_vlen) { if (!full()) SKIP; int nc = made(), t; nc_vlen_t s = {n, zeros}; nc_def_vlen(nc, "s", NC_INT, &t); say(nc_put_att(nc, NC_GLOBAL, "a", t, 1, &s)); done(nc); return 1; }
CASE(put_att_vlens) { if (!full() || n > 1 << 28) SKIP; int nc = made(), t; nc_def_vlen(nc, "s", NC_INT, &t); say(nc_put_att(nc, NC_GLOBAL, "a", t, n, zeros)); done(nc); return 1; }

CASE(def_opaque) { if (!full()) SKIP; int nc = made(), t; say(nc_def_opaque(nc, n, "o", &t)); done(nc); return 1; }
CASE(opaque_att) { if (!full()) SKIP; int nc = made(), t; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } say(nc_put_att(nc, NC_GLOBAL, "a", t, 1, zeros)); done(nc); return 1; }
CASE(opaque_att_many) { if (!full()) SKIP; int nc = made(), t; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } say(nc_put_att(nc, NC_GLOBAL, "a", t, 16, zeros)); done(nc); return 1; }
CASE(opaque_fill) { if (!full()) SKIP; int nc = made(), t, d, v; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } nc_def_dim(nc, "x", 2, &d); say(nc_def_var(nc, "v", t, 1, &d, &v)); say(nc_def_var_fill(nc, v, 0, zeros)); say(nc_inq_var_fill(nc, v, &d, zeros)); done(nc); return 1; }
CASE(opaque_var) { if (!full()) SKIP; int nc = made(), t, d, v; size_t z = 0; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } nc_def_dim(nc, "x", 2, &d); say(nc_def_var(nc, "v", t, 1, &d, &v)); say(nc_enddef(nc)); if (there(1)) { say(nc_put_var1(nc, v, &z, zeros)); say(nc_get_var1(nc, v, &z, zeros)); } say(nc_close(nc)); return 1; }
CASE(opaque_var_chunked) { if (!full()) SKIP; int nc = made(), t, d, v; size_t z = 0, one = 1; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } nc_def_dim(nc, "x", 2, &d); say(nc_def_var(nc, "v", t, 1, &d, &v)); say(nc_def_var_chunking(nc, v, NC_CHUNKED, &one)); say(nc_enddef(nc)); if (there(1)) { say(nc_put_var1(nc, v, &z, zeros)); say(nc_get_var1(nc, v, &z, zeros)); } say(nc_close(nc)); return 1; }
CASE(opaque_var_get) { if (!full() || n > 1u << 31) SKIP; int nc = made(), t, d, v; size_t z = 0; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } nc_def_dim(nc, "x", 2, &d); say(nc_def_var(nc, "v", t, 1, &d, &v)); int s; nc_set_fill(nc, NC_NOFILL, &s); say(nc_enddef(nc)); say(nc_get_var1(nc, v, &z, zeros)); say(nc_close(nc)); return 1; }
CASE(opaque_vlen) { if (!full()) SKIP; int nc = made(), t, s; nc_vlen_t one = {1, zeros}; if (say(nc_def_opaque(nc, n, "o", &t))) { nc_close(nc); return 1; } say(nc_def_vlen(nc, "s", t, &s)); if (there(1)) say(nc_put_att(nc, NC_GLOBAL, "a", s, 1, &one)); done(nc); return 1; }
CASE(def_compound) { if (!full()) SKIP; int nc = made(), t; say(nc_def_compound(nc, n, "c", &t)); say(nc_insert_compound(nc, t, "f", 0, NC_INT)); done(nc); return 1; }
CASE(insert_offset) { if (!full()) SKIP; int nc = made(), t; say(nc_def_compound(nc, 8, "c", &t)); say(nc_insert_compound(nc, t, "f", n, NC_INT)); say(nc_insert_compound(nc, t, "g", 0, NC_INT)); done(nc); return 1; }
CASE(insert_end) { if (!full()) SKIP; int nc = made(), t; say(nc_def_compound(nc, n, "c", &t)); say(nc_insert_compound(nc, t, "f", n - 4, NC_INT)); done(nc); return 1; }
CASE(insert_array_ndims) { if (!full() || n > INT32_MAX) SKIP; int nc = made(), t; say(nc_def_compound(nc, 8, "c", &t)); say(nc_insert_array_compound(nc, t, "f", 0, NC_INT, (int)n, (int *)zeros)); nc_insert_compound(nc, t, "g", 0, NC_INT); done(nc); return 1; }
CASE(insert_array_dims) { if (!full() || n > INT32_MAX) SKIP; int nc = made(), t, d[3] = {(int)n, (int)n, (int)n}; say(nc_def_compound(nc, (size_t)1 << 40, "c", &t)); say(nc_insert_array_compound(nc, t, "f", 0, NC_INT, 3, d)); nc_insert_compound(nc, t, "g", 0, NC_INT); done(nc); return 1; }
CASE(compound_var) { if (!full()) SKIP; int nc = made(), t, d, v; size_t z = 0; if (say(nc_def_compound(nc, n, "c", &t))) { nc_close(nc); return 1; } nc_insert_compound(nc, t, "f", 0, NC_INT); nc_def_dim(nc, "x", 1, &d); say(nc_def_var(nc, "v", t, 1, &d, &v)); say(nc_enddef(nc)); if (there(1)) { say(nc_put_var1(nc, v, &z, zeros)); say(nc_get_var1(nc, v, &z, zeros)); } say(nc_close(nc)); return 1; }
CASE(put_vlen_element) { if (!full()) SKIP; int nc = made(), t; nc_vlen_t s; nc_def_vlen(nc, "s", NC_INT, &t); say(nc_put_vlen_element(nc, t, &s, n, zeros)); done(nc); return 1; }
CASE(get_vlen_element) { if (!full() || n > 1u << 31) SKIP; int nc = made(), t; nc_vlen_t s = {n, zeros}; size_t len; nc_def_vlen(nc, "s", NC_BYTE, &t); say(nc_get_vlen_element(nc, t, &s, &len, zeros + ((size_t)1 << 33))); done(nc); return 1; }
CASE(put_var_vlen) { if (!full()) SKIP; int nc = made(), t, d, v; nc_vlen_t s = {n, zeros}; size_t z = 0; nc_def_vlen(nc, "s", NC_INT, &t); nc_def_dim(nc, "x", 1, &d); nc_def_var(nc, "v", t, 1, &d, &v); say(nc_enddef(nc)); say(nc_put_var1(nc, v, &z, &s)); say(nc_close(nc)); return 1; }
CASE(fill_vlen) { if (!full()) SKIP; int nc = made(), t, d, v; nc_vlen_t s = {n, zeros}; nc_def_vlen(nc, "s", NC_INT, &t); nc_def_dim(nc, "x", 1, &d); nc_def_var(nc, "v", t, 1, &d, &v); say(nc_def_var_fill(nc, v, 0, &s)); done(nc); return 1; }
CASE(reclaim_data) { if (!full()) SKIP; int nc = made(); say(nc_reclaim_data(nc, NC_INT, zeros, n)); done(nc); return 1; }
CASE(copy_data_all) { if (!full()) SKIP; int nc = made(); void *to = NULL; say(nc_copy_data_all(nc, NC_INT, zeros, n, &to)); done(nc); return 1; }
CASE(copy_data_all_vlen) { if (!full()) SKIP; int nc = made(), t; void *to = NULL; nc_vlen_t s = {n, zeros}; nc_def_vlen(nc, "s", NC_INT, &t); say(nc_copy_data_all(nc, t, &s, 1, &to)); done(nc); return 1; }
CASE(copy_data_all_string) { if (!full()) SKIP; int nc = made(); void *to = NULL; say(nc_copy_data_all(nc, NC_STRING, zeros, n, &to)); done(nc); return 1; }

CASE(create_mem) { int nc; if (!say(nc_create_mem("m", format, n, &nc))) { int d; nc_def_dim(nc, "x", 1, &d); NC_memio m; say(nc_enddef(nc)); say(nc_close_memio(nc, &m)); } return 1; }
CASE(create_diskless) { int nc; if (!say(nc__create("m", NC_DISKLESS | format, n, NULL, &nc))) { int d; nc_def_dim(nc, "x", 1, &d); say(nc_enddef(nc)); say(nc_close(nc)); } return 1; }
CASE(create_sized) { int nc, d; size_t chunk = n; if (!say(nc__create(path, NC_CLOBBER | format, n, &chunk, &nc))) { nc_def_dim(nc, "x", 1, &d); done(nc); } return 1; }
CASE(open_sized) { int v, nc = one_var(&v); nc_enddef(nc); nc_close(nc); size_t chunk = n; if (!say(nc__open(path, NC_NOWRITE, &chunk, &nc))) { int x[10]; say(nc_get_var_int(nc, v, x)); say(nc_close(nc)); } return 1; }
CASE(open_mem) { int nc; if (!there(1)) SKIP; say(nc_open_mem("m", NC_NOWRITE, n, zeros, &nc)); return 1; }
CASE(open_mem_copied) { if (!there(1)) SKIP; int v, nc = one_var(&v); nc_enddef(nc); nc_close(nc); FILE *f = fopen(path, "rb"); size_t got = fread(zeros, 1, 1 << 20, f); fclose(f); (void)got; NC_memio m = {n, zeros, NC_MEMIO_LOCKED}; if (!say(nc_open_memio("m", NC_NOWRITE, &m, &nc))) { int x[10]; say(nc_get_var_int(nc, v, x)); say(nc_close_memio(nc, &m)); } return 1; }
CASE(open_mem_write) { if (n > REGION) SKIP; int v, nc = one_var(&v); nc_enddef(nc); nc_close(nc); FILE *f = fopen(path, "rb"); size_t got = fread(zeros, 1, 1 << 20, f); fclose(f); (void)got; NC_memio m = {n, zeros, NC_MEMIO_LOCKED}; if (!say(nc_open_memio("m", NC_WRITE, &m, &nc))) { int x[10] = {0}; say(nc_put_var_int(nc, v, x)); say(nc_close_memio(nc, &m)); } return 1; }
CASE(enddef_sizes) { int v, nc = one_var(&v); say(nc__enddef(nc, n, 4, 0, 4)); say(nc_close(nc)); return 1; }
CASE(enddef_aligns) { int v, nc = one_var(&v); say(nc__enddef(nc, 0, n, 0, 4)); say(nc_close(nc)); return 1; }
CASE(enddef_vminfree) { int v, nc = one_var(&v); say(nc__enddef(nc, 0, 4, n, 4)); say(nc_close(nc)); return 1; }
CASE(enddef_raligns) { int v, nc = one_var(&v); say(nc__enddef(nc, 0, 4, 0, n)); say(nc_close(nc)); return 1; }

/* Data: of a small variable, of one with a record dimension, of one as long as can be. */
CASE(put_vara_count) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0; say(nc_put_vara_int(nc, v, &s, &n, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_vara_start) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t c = 1; say(nc_put_vara_int(nc, v, &n, &c, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(get_vara_count) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0; say(nc_get_vara_int(nc, v, &s, &n, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(get_vara_start) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t c = 1; say(nc_get_vara_double(nc, v, &n, &c, (double *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_vars_stride) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0, c = 2; ptrdiff_t t = (ptrdiff_t)n; say(nc_put_vars_int(nc, v, &s, &c, &t, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(get_vars_stride) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0, c = 1; ptrdiff_t t = (ptrdiff_t)n; say(nc_get_vars_int(nc, v, &s, &c, &t, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(get_varm_imap) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0, c = 1; ptrdiff_t m = (ptrdiff_t)n; say(nc_get_varm_int(nc, v, &s, &c, NULL, &m, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_varm_imap) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0, c = 2; if (!there(4)) SKIP; ptrdiff_t m = (ptrdiff_t)n; say(nc_put_varm_int(nc, v, &s, &c, NULL, &m, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(get_varm_count) { int v, nc = one_var(&v); say(nc_enddef(nc)); size_t s = 0; ptrdiff_t m = 1; say(nc_get_varm_int(nc, v, &s, &n, NULL, &m, (int *)zeros)); say(nc_close(nc)); return 1; }
static int record_var(int *v, int type) { int nc = made(), d; nc_def_dim(nc, "t", NC_UNLIMITED, &d); if (nc_def_var(nc, "v", type, 1, &d, v)) _exit(99); int old; nc_set_fill(nc, NC_NOFILL, &old); return nc; }
CASE(put_record_start) { int v, nc = record_var(&v, NC_INT), x = 1; say(nc_enddef(nc)); size_t c = 1; say(nc_put_vara_int(nc, v, &n, &c, &x)); say(nc_close(nc)); return 1; }
CASE(put_record_count) { if (there(4) && n >= 1 << 28) SKIP; int v, nc = record_var(&v, NC_INT); say(nc_enddef(nc)); size_t s = 0; say(nc_put_vara_int(nc, v, &s, &n, (int *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_record_both) { int v, nc = record_var(&v, NC_INT), x[2] = {0}; say(nc_enddef(nc)); size_t c = 2; say(nc_put_vara_int(nc, v, &n, &c, x)); say(nc_close(nc)); return 1; }
CASE(put_record_stride) { int v, nc = record_var(&v, NC_INT), x[3] = {0}; say(nc_enddef(nc)); size_t s = 0, c = 3; ptrdiff_t t = (ptrdiff_t)n; say(nc_put_vars_int(nc, v, &s, &c, &t, x)); say(nc_close(nc)); return 1; }
static int long_var(int *v, int chunked) { int nc = made(), d; if (nc_def_dim(nc, "x", n, &d) || nc_def_var(nc, "v", NC_BYTE, 1, &d, v)) { nc_close(nc); return -1; } if (chunked && say(nc_def_var_chunking(nc, *v, NC_CHUNKED, &n))) { nc_close(nc); return -1; } int old; nc_set_fill(nc, NC_NOFILL, &old); say(nc_enddef(nc)); return nc; }
CASE(put_one_in_chunk) { if (!nc4()) SKIP; int v, nc = long_var(&v, 1); if (nc < 0) return 1; size_t s = 5; signed char x = 1; say(nc_put_var1_schar(nc, v, &s, &x)); say(nc_close(nc)); return 1; }
CASE(get_one_of_chunk) { if (!nc4()) SKIP; int v, nc = long_var(&v, 1); if (nc < 0) return 1; size_t s = 5; signed char x = 1; say(nc_get_var1_schar(nc, v, &s, &x)); say(nc_close(nc)); return 1; }
CASE(put_deflated_chunk) { if (!nc4() || n > 1 << 28) SKIP; int nc = made(), d, v; nc_def_dim(nc, "x", n, &d); nc_def_var(nc, "v", NC_BYTE, 1, &d, &v); say(nc_def_var_chunking(nc, v, NC_CHUNKED, &n)); say(nc_def_var_deflate(nc, v, 1, 1, 1)); say(nc_enddef(nc)); say(nc_put_var_schar(nc, v, (signed char *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_one_of_long) { int v, nc = long_var(&v, 0); if (nc < 0) return 1; size_t s = 5; signed char x = 1; say(nc_put_var1_schar(nc, v, &s, &x)); say(nc_get_var1_schar(nc, v, &s, &x)); say(nc_close(nc)); return 1; }
CASE(get_longlong_of_long) { if (n > 1 << 28) SKIP; int v, nc = long_var(&v, 0); if (nc < 0) return 1; say(nc_get_var_longlong(nc, v, (long long *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_longlong_of_long) { if (n > 1 << 28) SKIP; int v, nc = long_var(&v, 0); if (nc < 0) return 1; say(nc_put_var_longlong(nc, v, (long long *)zeros)); say(nc_close(nc)); return 1; }
CASE(get_varm_of_long) { if (n > 1 << 28) SKIP; int v, nc = long_var(&v, 0); if (nc < 0) return 1; ptrdiff_t m = 2; size_t s = 0; say(nc_get_varm_short(nc, v, &s, &n, NULL, &m, (short *)zeros)); say(nc_close(nc)); return 1; }
CASE(put_varm_of_long) { if (n > 1 << 28) SKIP; int v, nc = long_var(&v, 0); if (nc < 0) return 1; ptrdiff_t m = 2; size_t s = 0; say(nc_put_varm_short(nc, v, &s, &n, NULL, &m, (short *)zeros)); say(nc_close(nc)); return 1; }
CASE(copy_var_long) { if (n > 1 << 28) SKIP; int v, to, nc = long_var(&v, 0); if (nc < 0) return 1; if (nc_create(other_path, NC_CLOBBER | format, &to)) _exit(99); int d; nc_def_dim(to, "x", n, &d); say(nc_copy_var(nc, v, to)); nc_close(to); say(nc_close(nc)); return 1; }
CASE(strings_of_long) { if (!full()) SKIP; int nc = made(), d, v; if (nc_def_dim(nc, "x", n, &d)) { nc_close(nc); return 1; } nc_def_var(nc, "v", NC_STRING, 1, &d, &v); int old; nc_set_fill(nc, NC_NOFILL, &old); say(nc_enddef(nc)); size_t s = 5; char *x = "abc"; if (n > 1 << 28) say(nc_put_var1_string(nc, v, &s, (const char **)&x)); else say(nc_put_var_string(nc, v, (const char **)zeros)); say(nc_close(nc)); return 1; }

/* The interface of version 2. */
CASE(v2_attput) { ncopts = 0; int nc = made(); say(ncattput(nc, NC_GLOBAL, "a", NC_INT, (int)n, zeros)); nc_close(nc); return 1; }
CASE(v2_dimdef) { ncopts = 0; int nc = made(); say(ncdimdef(nc, "x", (long)n)); say(ncerr); nc_close(nc); return 1; }
CASE(v2_varput) { ncopts = 0; int v, nc = one_var(&v); nc_enddef(nc); long s = 0, c = (long)n; say(ncvarput(nc, v, &s, &c, zeros)); say(ncerr); nc_close(nc); return 1; }
CASE(v2_varputg) { ncopts = 0; int v, nc = one_var(&v); nc_enddef(nc); long s = 0, c = 2, t = (long)n, m = 4; say(ncvarputg(nc, v, &s, &c, &t, &m, zeros)); say(ncerr); nc_close(nc); return 1; }
CASE(v2_varget) { ncopts = 0; int v, nc = one_var(&v); nc_enddef(nc); long s = (long)n, c = 1; say(ncvarget(nc, v, &s, &c, zeros)); say(ncerr); nc_close(nc); return 1; }
CASE(v2_recput) { ncopts = 0; int v, nc = record_var(&v, NC_INT); nc_enddef(nc); void *data[1] = {zeros}; say(ncrecput(nc, (long)n, data)); say(ncerr); nc_close(nc); return 1; }
CASE(v2_vardef) { ncopts = 0; int nc = made(), d; nc_def_dim(nc, "x", 1, &d); say(ncvardef(nc, "v", NC_INT, (int)n, (int *)zeros)); say(ncerr); nc_close(nc); return 1; }

/* Names and paths of 256 MiB. One size is enough. */
#define ONCE if (n != (size_t)1 << 28) SKIP
CASE(name_dim) { ONCE; int nc = made(), d; say(nc_def_dim(nc, long_name, 1, &d)); nc_close(nc); return 1; }
CASE(name_var) { ONCE; int nc = made(), d; say(nc_def_var(nc, long_name, NC_INT, 0, NULL, &d)); nc_close(nc); return 1; }
CASE(name_att) { ONCE; int nc = made(); say(nc_put_att_text(nc, NC_GLOBAL, long_name, 1, "x")); nc_close(nc); return 1; }
CASE(name_grp) { ONCE; int nc = made(), g; say(nc_def_grp(nc, long_name, &g)); nc_close(nc); return 1; }
CASE(name_type) { ONCE; int nc = made(), t; say(nc_def_opaque(nc, 1, long_name, &t)); nc_close(nc); return 1; }
CASE(name_member) { if (!full()) SKIP; ONCE; int nc = made(), t; nc_def_compound(nc, 8, "c", &t); say(nc_insert_compound(nc, t, long_name, 0, NC_INT)); nc_close(nc); return 1; }
CASE(name_enum) { if (!full()) SKIP; ONCE; int nc = made(), t, one = 1; nc_def_enum(nc, NC_INT, "e", &t); say(nc_insert_enum(nc, t, long_name, &one)); nc_close(nc); return 1; }
CASE(name_rename) { ONCE; int v, nc = one_var(&v); say(nc_rename_var(nc, v, long_name)); say(nc_rename_dim(nc, 0, long_name)); nc_close(nc); return 1; }
CASE(name_inq) { ONCE; int v, nc = one_var(&v), id; say(nc_inq_varid(nc, long_name, &id)); say(nc_inq_dimid(nc, long_name, &id)); say(nc_inq_attid(nc, NC_GLOBAL, long_name, &id)); say(nc_inq_grp_full_ncid(nc, long_name, &id)); say(nc_inq_typeid(nc, long_name, &id)); nc_close(nc); return 1; }
CASE(name_path) { ONCE; int nc; say(nc_open(long_name, NC_NOWRITE, &nc)); say(nc_create(long_name, format, &nc)); return 1; }
CASE(text_string_att) { if (!full()) SKIP; ONCE; int nc = made(); const char *s = long_name; say(nc_put_att_string(nc, NC_GLOBAL, "a", 1, &s)); done(nc); return 1; }
CASE(text_string_var) { if (!full()) SKIP; ONCE; int nc = made(), v; const char *s = long_name; nc_def_var(nc, "v", NC_STRING, 0, NULL, &v); nc_enddef(nc); say(nc_put_var_string(nc, v, &s)); say(nc_close(nc)); return 1; }
CASE(text_string_fill) { if (!full()) SKIP; ONCE; int nc = made(), v; const char *s = long_name; nc_def_var(nc, "v", NC_STRING, 0, NULL, &v); say(nc_def_var_fill(nc, v, 0, &s)); done(nc); return 1; }
CASE(text_filter_spec) { ONCE; size_t count; NC_H5_Filterspec **specs; if (format) SKIP; say(ncaux_h5filterspec_parselist(long_name, NULL, &count, &specs)); return 1; }
CASE(aux_add_field) { ONCE; if (format) SKIP; void *tag; int huge[2] = {INT32_MAX, INT32_MAX}; say(ncaux_begin_compound(0, "c", NCAUX_ALIGN_C, &tag)); say(ncaux_add_field(tag, "f", NC_DOUBLE, 2, huge)); say(ncaux_add_field(tag, "g", NC_DOUBLE, INT32_MAX, huge)); ncaux_abort_compound(tag); return 1; }

static const size_t SIZES[] = {
    (size_t)1 << 28, ((size_t)1 << 31) - 1, (size_t)1 << 31, UINT32_MAX, (size_t)1 << 32, (size_t)1 << 36, (size_t)1 << 40,
    (size_t)1 << 48, (size_t)1 << 60, ((size_t)1 << 60) + 1, (size_t)1 << 61, (size_t)1 << 62, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX - 7, SIZE_MAX,
};
static const struct { const char *name; int flags; } FORMATS[] = {
    {"cdf1", 0}, {"cdf2", NC_64BIT_OFFSET}, {"cdf5", NC_64BIT_DATA}, {"nc4", NC_NETCDF4}, {"nc4classic", NC_NETCDF4 | NC_CLASSIC_MODEL},
};

static size_t used(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1) _exit(98);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit(int what, rlim_t most) {
    struct rlimit to = {most, most};
    if (setrlimit(what, &to)) _exit(98);
}

/* One call in a child; what it said goes to the parent through a pipe. */
static void attempt(size_t which, size_t f) {
    int ends[2], status;
    if (pipe(ends)) exit(2);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        limit(RLIMIT_FSIZE, (rlim_t)64 << 20);
        limit(RLIMIT_CORE, 0);
        limit(RLIMIT_CPU, SECONDS);
        limit(RLIMIT_AS, used() + ROOM);
        alarm(4 * SECONDS);
        format = FORMATS[f].flags;
        int applies = cases[which].run();
        char line[200] = "";
        size_t at = 0;
        for (int i = 0; i < n_codes; i++) at += (size_t)snprintf(line + at, sizeof line - at, " %d", codes[i]);
        if (applies && write(ends[1], line, at) != (ssize_t)at) _exit(98);
        _exit(0);
    }
    close(ends[1]);
    char line[200];
    ssize_t len = read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    waitpid(child, &status, 0);
    line[len < 0 ? 0 : len] = 0;
    if (WIFSIGNALED(status)) printf("%s %s %zx: signal %d\n", cases[which].name, FORMATS[f].name, n, WTERMSIG(status));
    else if (WEXITSTATUS(status)) printf("%s %s %zx: exit %d\n", cases[which].name, FORMATS[f].name, n, WEXITSTATUS(status));
    else if (len > 0) printf("%s %s %zx:%s\n", cases[which].name, FORMATS[f].name, n, line);
    unlink(path);
    unlink(other_path);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    snprintf(path, sizeof path, "%s/absurd.nc", argv[1]);
    snprintf(other_path, sizeof other_path, "%s/absurd2.nc", argv[1]);
    zeros = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    /* One piece of x, mapped again and again, and a page that ends with NUL. */
    enum { PIECE = 2 << 20, PIECES = 128 };
    int piece = memfd_create("x", 0);
    char *x = malloc(PIECE);
    if (zeros == MAP_FAILED || piece < 0 || !x) return 2;
    memset(x, 'x', PIECE);
    if (write(piece, x, PIECE) != PIECE) return 2;
    long_name = mmap(NULL, (size_t)PIECE * PIECES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < PIECES; i++)
        if (mmap(long_name + i * PIECE, PIECE, PROT_READ, MAP_SHARED | MAP_FIXED, piece, 0) == MAP_FAILED) return 2;
    for (size_t which = 0; which < n_cases; which++)
        for (size_t f = 0; f < sizeof FORMATS / sizeof *FORMATS; f++)
            for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
                n = SIZES[s];
                int skipped = argc > 3 && (s % 3 != 0 || f == 1 || f == 4);
                if (!skipped && (argc < 3 || !strcmp(argv[2], "all") || !strcmp(argv[2], cases[which].name))) attempt(which, f);
            }
    return 0;
}
