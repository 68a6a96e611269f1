/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Judges files: whether all that was promised is there, read through the library it is run with.
 *
 *   check SCENARIO VERSION [ROUNDS]     commands on standard input, one answer line for each
 *
 *   check P Q UNIT ERROR FOLDER   operations up to P are promised, those up to Q were begun; writes
 *                                 may have been cut at multiples of UNIT bytes of the file; ERROR
 *                                 is 1 if the writer met an error and closed
 *   rewrite FOLDER                opens the file for writing and closes it
 *   goon P Q ERROR FOLDER         opens it, adds an attribute that moves all data and a record to
 *                                 each variable that has them, closes
 *
 * Answers: `ok`, `torn N` (right but for N elements that lie across such a multiple and were being
 * overwritten), `error ...` (the library gave a code), `wrong ...` (it gave what was not put),
 * `early ...` (all that was promised is right, but a record is already visible, or a variable, that
 * holds neither fill values nor what was put). */
#define _GNU_SOURCE
#include "shows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOON_LEN 20000
#define MOST_CANDIDATES 256 /* values that an element may have */
/* A damaged header may ask for any amount of memory, and the reference tries to get it. */
#define MEMORY_BYTES ((rlim_t)768 << 20)
#define SECONDS 60 /* a library that takes longer over one small file hangs */

static char answer[512];
static long n_torn;

static int say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(answer, sizeof answer, format, args);
    va_end(args);
    return 0;
}

/* Codes of the library end the check. */
#define TRY(call)                                                    \
    do {                                                             \
        int try_code = (call);                                       \
        if (try_code) return say("error %d at %s", try_code, #call); \
    } while (0)

/* Where variables lie. The interface does not tell, so this reads the header; it is needed for
 * elements that may be torn, and only after the library accepted the file. */

struct header {
    unsigned char *bytes;
    size_t n, at;
    int wide, n_vars;
    uint64_t begin[MAX_VARS], record_len;
};

static uint64_t number(struct header *h, size_t n) {
    uint64_t x = 0;
    while (n-- > 0) x = x << 8 | (h->at < h->n ? h->bytes[h->at++] : 0);
    return x;
}

static void skip(struct header *h, uint64_t n) {
    h->at = n > h->n - h->at ? h->n : h->at + (size_t)n;
}
static uint64_t count(struct header *h) { return number(h, h->wide ? 8 : 4); }
static uint64_t padded(uint64_t n) { return (n + 3) & ~(uint64_t)3; }
static void skip_name(struct header *h) { skip(h, padded(count(h))); }

static void skip_atts(struct header *h) {
    number(h, 4);
    for (uint64_t n = count(h); n-- > 0 && h->at < h->n;) {
        skip_name(h);
        nc_type type = (nc_type)number(h, 4);
        skip(h, padded(count(h) * type_size(type)));
    }
}

static int read_header(const char *path, struct header *h) {
    struct stat st;
    memset(h, 0, sizeof *h);
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st)) return 0;
    h->bytes = must(malloc((size_t)st.st_size + 1));
    h->n = fread(h->bytes, 1, (size_t)st.st_size, f);
    fclose(f);
    skip(h, 3);
    const int version = (int)number(h, 1);
    h->wide = version == 5;
    count(h);
    number(h, 4);
    int unlimited = -1;
    uint64_t len[64] = {0};
    uint64_t n_dims = count(h);
    for (uint64_t i = 0; i < n_dims && i < 64; i++) {
        skip_name(h);
        len[i] = count(h);
        if (len[i] == 0) unlimited = (int)i;
    }
    skip_atts(h);
    number(h, 4);
    h->n_vars = (int)count(h);
    int n_record = 0;
    uint64_t single = 0;
    for (int v = 0; v < h->n_vars && v < MAX_VARS; v++) {
        skip_name(h);
        uint64_t elems = 1;
        int is_record = 0;
        uint64_t rank = count(h);
        for (uint64_t i = 0; i < rank && h->at < h->n; i++) {
            uint64_t d = count(h);
            if ((int)d == unlimited && i == 0)
                is_record = 1;
            else if (d < 64)
                elems *= len[d];
        }
        skip_atts(h);
        nc_type type = (nc_type)number(h, 4);
        count(h);
        h->begin[v] = number(h, version == 1 ? 4 : 8);
        if (is_record) {
            n_record++;
            single = elems * type_size(type);
            h->record_len += padded(single);
        }
    }
    if (n_record == 1) h->record_len = single;
    return 1;
}

/* Values that element e of variable v may have; how many. */
static int candidates(const struct model *m, int v, nc_type type, size_t e, int put,
                      unsigned char *out, int max) {
    const size_t size = type_size(type);
    int n = 0;
    if (put == PUT_FILL)
        fill_value(type, out);
    else
        value_of(type, v, e, put, out);
    n++;
    for (int i = 0; i < m->n_flying && n < max; i++) {
        const struct op *op = &m->plan->ops[m->flying[i]];
        size_t row = 1;
        if (op->var != v) continue;
        for (int d = 1; d < op->rank; d++) row *= op->count[d];
        if (e >= op->start[0] * row && e < (op->start[0] + op->count[0]) * row)
            value_of(type, v, e, m->flying[i], out + (size_t)n++ * size);
    }
    return n;
}

/* Whether `got` consists of the first `front` bytes of one candidate and the last of another, as
 * they are in the file. */
static int is_torn(const unsigned char *got, const unsigned char *of, int n, size_t size,
                   size_t front, int big_endian) {
    const size_t low = big_endian ? size - front : front; /* in memory */
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (!memcmp(got + low, of + (size_t)a * size + low, size - low) &&
                !memcmp(got, of + (size_t)b * size, low))
                return 1;
    return 0;
}

/* In a classic file: parted at a multiple of `unit`. */
static int is_torn_at(const unsigned char *got, const unsigned char *of, int n, size_t size,
                      uint64_t at, size_t unit) {
    const uint64_t border = (at / unit + 1) * unit;
    return border < at + size && is_torn(got, of, n, size, (size_t)(border - at), 1);
}

/* In a netCDF-4 file elements begin at multiples of their size, or of 8 bytes: those of other sizes
 * can be torn, where no filter keeps them from being written over in place. Where they lie the
 * interface does not say. */
static int is_torn_somewhere(const unsigned char *got, const unsigned char *of, int n,
                             const struct var *var) {
    const size_t size = type_size(var->type);
    if (var->level || var->layout & LAYOUT_CHECKSUM || (size & (size - 1)) == 0) return 0;
    for (size_t front = 1; front < size; front++)
        if (is_torn(got, of, n, size, front, 0)) return 1;
    return 0;
}

static int wrong_element(const struct model *m, const struct var *var, int v, size_t e,
                         const unsigned char *got) {
    const struct data *d = &m->data[v];
    const int put = d->exists && e < d->n ? d->put[e] : m->flying_no_fill ? PUT_ANY : PUT_FILL;
    unsigned char of[MOST_CANDIDATES * 8];
    char have[20] = "", wanted[20] = "";
    const size_t size = type_size(var->type);
    int n = candidates(m, v, var->type, e, put == PUT_ANY ? PUT_FILL : put, of, MOST_CANDIDATES);
    for (size_t i = 0; i < size; i++) {
        sprintf(have + 2 * i, "%02x", got[size - 1 - i]);
        sprintf(wanted + 2 * i, "%02x", of[size - 1 - i]);
    }
    return say("%s %s[%zu] is %s, want %s%s (put by %d)", d->exists && e < d->n ? "wrong" : "early",
               var->name, e, have, wanted, n > 1 ? " or a later put's" : "", put);
}

/* Element by element, where a comparison of all has found a difference. 1 if right. */
static int judge(const struct model *m, const struct var *var, int v, const unsigned char *got,
                 size_t from, size_t to, const char *path, size_t unit) {
    const struct data *d = &m->data[v];
    const size_t size = type_size(var->type);
    struct header h = {0};
    unsigned char of[MOST_CANDIDATES * 8];
    int right = 1;
    for (size_t e = from; e < to && right; e++) {
        const unsigned char *x = got + e * size;
        const int promised = d->exists && e < d->n;
        const int put = promised ? d->put[e] : m->flying_no_fill ? PUT_ANY : PUT_FILL;
        if (put == PUT_ANY || (promised && !memcmp(x, d->want + e * size, size))) continue;
        int n = candidates(m, v, var->type, e, put, of, MOST_CANDIDATES), found = 0;
        for (int i = 0; i < n && !found; i++) found = !memcmp(x, of + (size_t)i * size, size);
        if (found) continue;
        if (m->plan->version == NETCDF4) {
            if (n > 1 && is_torn_somewhere(x, of, n, var)) {
                n_torn++;
                continue;
            }
        } else if (n > 1 && unit > 1) {
            if (!h.bytes && !read_header(path, &h))
                return say("wrong: the header cannot be read again");
            const size_t row = d->exists ? d->row : 1;
            const int is_record = d->exists && d->unlimited >= 0;
            const uint64_t at =
                h.begin[v] + (is_record ? e / row * h.record_len + e % row * size : e * size);
            if (is_torn_at(x, of, n, size, at, unit)) {
                n_torn++;
                continue;
            }
        }
        right = wrong_element(m, var, v, e, x);
    }
    free(h.bytes);
    return right;
}

/* Reads a whole variable in the form of the tests; memory that the next call uses again. */
static int read_var(const struct shown *s, int v, size_t n, unsigned char **out) {
    static unsigned char *got;
    static size_t room;
    const nc_type type = s->defs.vars[v].type;
    void *packed = must(malloc(n * packed_size(type)));
    if (n * type_size(type) > room) {
        room = 2 * n * type_size(type);
        got = must(realloc(got, room));
    }
    memset(packed, type >= NC_STRING ? 0 : 0x5a, n * packed_size(type));
    int code = nc_get_var(s->group_id[s->defs.vars[v].group], s->var_id[v], packed);
    if (code)
        free(packed);
    else
        unpack(type, packed, n, got);
    *out = got;
    return code;
}

/* The record that the checker itself put. */
static int own_record(const struct model *m, const struct var *var, int v, size_t from, size_t to,
                      const unsigned char *got) {
    const size_t size = type_size(var->type);
    unsigned char want[8];
    for (size_t e = from; e < to; e++) {
        value_of(var->type, v, e, m->plan->n, want);
        if (memcmp(want, got + e * size, size))
            return say("wrong: %s[%zu] is not what was put after the crash", var->name, e);
    }
    return 1;
}

static int check_data(struct model *m, const struct shown *s, const char *path, size_t unit) {
    size_t len[MAX_DIMS] = {0}, own[MAX_DIMS] = {0};
    int early = 0;
    for (int v = 0; v < MAX_VARS && s->gone_on; v++)
        if (s->has_var[v] && s->defs.vars[v].rank) own[s->defs.vars[v].dims[0]] = 1;
    for (int d = 0; d < MAX_DIMS; d++) {
        if (!s->has_dim[d] || s->defs.dims[d].len) continue;
        TRY(nc_inq_dimlen(s->group_id[s->defs.dims[d].group], d, &len[d]));
        if (len[d] < m->len[d] + own[d] || len[d] > m->max_len[d] + own[d])
            return say("wrong: %zu records of %s, want %zu to %zu", len[d], s->defs.dims[d].name,
                       m->len[d] + own[d], m->max_len[d] + own[d]);
    }
    for (int v = 0; v < MAX_VARS; v++) {
        const struct var *var = &s->defs.vars[v];
        const struct data *d = &m->data[v];
        if (!s->has_var[v]) continue;
        const size_t n = var_elems(&s->defs, v, len), size = type_size(var->type);
        unsigned char *got;
        if (n == 0) continue;
        int code = read_var(s, v, n, &got);
        if (code) return say("error %d at nc_get_var of %s", code, var->name);
        size_t others = n;
        if (var->rank && own[var->dims[0]] && !s->defs.dims[var->dims[0]].len) {
            others -= n / len[var->dims[0]];
            if (!own_record(m, var, v, others, n, got)) return 0;
        }
        const size_t promised = d->exists ? d->n : 0;
        if (promised && memcmp(got, d->want, promised * size) &&
            !judge(m, var, v, got, 0, promised, path, unit))
            return 0;
        if (others > promised && !early && !judge(m, var, v, got, promised, others, path, unit))
            early = 1;
    }
    return !early;
}

/* Links are as the scenario made them. */
static int check_names(const struct model *m, const char *folder, const char *path) {
    char other[4200];
    struct stat a, b;
    for (int k = 0; k <= m->promised; k++) {
        const enum kind kind = m->plan->ops[k].kind;
        if (kind == OP_SYMLINK && (lstat(path, &a) || !S_ISLNK(a.st_mode)))
            return say("wrong: the symbolic link was replaced");
        if (kind == OP_LINK) {
            snprintf(other, sizeof other, "%s/%s", folder, LINK_NAME);
            if (stat(path, &a) || stat(other, &b) || a.st_ino != b.st_ino)
                return say("wrong: the second name has another file");
        }
    }
    return 1;
}

static int check(struct model *m, const char *folder, size_t unit) {
    char path[4200];
    int ncid, right = 0;
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    n_torn = 0;
    int code = nc_open(path, NC_NOWRITE, &ncid);
    if (code) return m->has_promise ? say("error %d at nc_open", code) : say("ok nothing");
    if (!m->has_promise) {
        /* Whatever it shows was not promised; but it must show it without a crash. */
        int n_vars = 0;
        nc_inq_nvars(ncid, &n_vars);
        for (int v = 0; v < n_vars; v++) {
            nc_type type;
            if (nc_inq_vartype(ncid, v, &type)) break;
        }
        nc_close(ncid);
        return say("ok nothing");
    }
    static struct shown shown;
    if (!shows(ncid, m, &shown))
        say("wrong: definitions of none of the %d possible states", m->n_versions);
    else
        right = check_data(m, &shown, path, unit) && check_names(m, folder, path);
    code = nc_close(ncid);
    if (!right) return 0;
    if (code) return say("error %d at nc_close", code);
    return n_torn ? say("torn %ld", n_torn) : say("ok");
}

static int rewrite(const char *folder) {
    char path[4200];
    int ncid;
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    TRY(nc_open(path, NC_WRITE, &ncid));
    TRY(nc_close(ncid));
    return say("ok");
}

static int put_own_record(const struct model *m, const struct shown *s, int v, size_t record) {
    const struct var *var = &s->defs.vars[v];
    const size_t ones[MAX_DIMS] = {[0 ... MAX_DIMS - 1] = 1};
    const size_t n = var_elems(&s->defs, v, ones), size = type_size(var->type);
    size_t start[MAX_RANK] = {record}, count[MAX_RANK] = {1};
    for (int i = 1; i < var->rank; i++) count[i] = s->defs.dims[var->dims[i]].len;
    unsigned char *data = must(malloc(n * size + 1));
    for (size_t e = 0; e < n; e++)
        value_of(var->type, v, record * n + e, m->plan->n, data + e * size);
    void *packed = pack(var->type, data, n);
    int code = nc_put_vara(s->group_id[var->group], s->var_id[v], start, count, packed);
    packed_free(var->type, packed, n);
    free(data);
    return code;
}

static int goon(const struct model *m, const char *folder) {
    static char text[GOON_LEN];
    static struct shown shown;
    char path[4200];
    size_t len[MAX_DIMS] = {0};
    int ncid;
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    TRY(nc_open(path, NC_WRITE, &ncid));
    if (!shows(ncid, m, &shown)) return say("wrong: other definitions when opened for writing");
    memset(text, 'g', sizeof text);
    TRY(nc_redef(ncid));
    TRY(nc_put_att_text(ncid, NC_GLOBAL, GOON_NAME, sizeof text, text));
    TRY(nc_enddef(ncid));
    for (int d = 0; d < MAX_DIMS; d++)
        if (shown.has_dim[d] && !shown.defs.dims[d].len)
            TRY(nc_inq_dimlen(shown.group_id[shown.defs.dims[d].group], d, &len[d]));
    for (int v = 0; v < MAX_VARS; v++) {
        const int d = shown.has_var[v] && shown.defs.vars[v].rank ? shown.defs.vars[v].dims[0] : -1;
        if (d >= 0 && !shown.defs.dims[d].len) TRY(put_own_record(m, &shown, v, len[d]));
    }
    TRY(nc_close(ncid));
    return say("ok");
}

int main(int argc, char **argv) {
    struct plan plan;
    static struct model model;
    char line[4096], folder[4096];
    int p, q, error;
    size_t unit;
    if (argc < 3 || !plan_build(&plan, argv[1], atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0)) {
        fprintf(stderr, "usage: check SCENARIO VERSION [ROUNDS]\n");
        return 64;
    }
    setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY_BYTES, MEMORY_BYTES});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* First, so that a test can be sure of which library it asks. */
    printf("library %s\n", nc_inq_libvers());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        alarm(SECONDS);
        if (sscanf(line, "check %d %d %zu %d %4095s", &p, &q, &unit, &error, folder) == 5) {
            if (p < -1 || q < p || q >= plan.n || unit == 0) return 64;
            model_at(&model, &plan, p, q, error);
            check(&model, folder, unit);
        } else if (sscanf(line, "rewrite %4095s", folder) == 1) {
            rewrite(folder);
        } else if (sscanf(line, "goon %d %d %d %4095s", &p, &q, &error, folder) == 4) {
            model_at(&model, &plan, p, q, error);
            goon(&model, folder);
        } else {
            return 64;
        }
        alarm(0);
        puts(answer);
        fflush(stdout);
    }
    return 0;
}
