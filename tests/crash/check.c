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
 *   goon FOLDER                   opens it, adds an attribute that moves all data, closes
 *
 * Answers: `ok`, `torn N` (right but for N elements that lie across such a multiple and were being
 * overwritten), `error ...` (the library gave a code), `wrong ...` (it gave what was not put),
 * `early ...` (all that was promised is right, but a record is already visible, or a variable, that
 * holds neither fill values nor what was put). */
#define _GNU_SOURCE
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOON_NAME "after_crash"
#define GOON_LEN 20000
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

/* What the library shows of the definitions. */

static int read_atts(int ncid, int var, int n, const struct atts *want) {
    char name[NC_MAX_NAME + 1], *text = NULL;
    int i = 0;
    for (int a = 0; a < n; a++) {
        nc_type type;
        size_t len;
        if (nc_inq_attname(ncid, var, a, name)) return 0;
        if (var == NC_GLOBAL && !strcmp(name, GOON_NAME)) continue;
        if (nc_inq_att(ncid, var, name, &type, &len)) return 0;
        if (i >= want->n) return 0;
        const struct att *att = &want->list[i++];
        if (strcmp(name, att->name) || type != att->type || len != att->n) return 0;
        const size_t size = len * type_size(type);
        text = must(realloc(text, 2 * size + 1));
        int same = !nc_get_att(ncid, var, name, text);
        att_values(type, att->put, len, text + size);
        same = same && !memcmp(text, text + size, size);
        if (!same) {
            free(text);
            return 0;
        }
    }
    free(text);
    return i == want->n;
}

/* Whether the file shows these definitions. */
static int shows(int ncid, const struct defs *want) {
    char name[NC_MAX_NAME + 1];
    int n_dims, n_vars, n_atts, unlimited;
    size_t len;
    if (nc_inq(ncid, &n_dims, &n_vars, &n_atts, &unlimited)) return 0;
    if (n_dims != want->n_dims || n_vars != want->n_vars) return 0;
    for (int d = 0; d < n_dims; d++) {
        if (nc_inq_dim(ncid, d, name, &len) || strcmp(name, want->dims[d].name)) return 0;
        if ((want->dims[d].len == 0) != (d == unlimited)) return 0;
        if (d != unlimited && len != want->dims[d].len) return 0;
    }
    if (!read_atts(ncid, NC_GLOBAL, n_atts, &want->atts)) return 0;
    for (int v = 0; v < n_vars; v++) {
        const struct var *var = &want->vars[v];
        nc_type type;
        int rank, dims[NC_MAX_VAR_DIMS];
        if (nc_inq_var(ncid, v, name, &type, &rank, dims, &n_atts)) return 0;
        if (strcmp(name, var->name) || type != var->type || rank != var->rank) return 0;
        if (memcmp(dims, var->dims, (size_t)rank * sizeof *dims)) return 0;
        if (!read_atts(ncid, v, n_atts, &var->atts)) return 0;
    }
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

/* Whether `got` consists of the first bytes of one candidate and the last of another, as they are
 * in the file, parted at a multiple of `unit`. */
static int is_torn(const unsigned char *got, const unsigned char *of, int n, size_t size,
                   uint64_t at, size_t unit) {
    const uint64_t border = (at / unit + 1) * unit;
    if (border >= at + size) return 0;
    const size_t front = (size_t)(border - at); /* big-endian: the last bytes in memory */
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (!memcmp(got + size - front, of + (size_t)a * size + size - front, front) &&
                !memcmp(got, of + (size_t)b * size, size - front))
                return 1;
    return 0;
}

static int wrong_element(const struct model *m, const struct var *var, int v, size_t e,
                         const unsigned char *got) {
    const struct data *d = &m->data[v];
    const int put = d->exists && e < d->n ? d->put[e] : m->flying_no_fill ? PUT_ANY : PUT_FILL;
    unsigned char of[64 * 8];
    char have[20] = "", wanted[20] = "";
    const size_t size = type_size(var->type);
    int n = candidates(m, v, var->type, e, put == PUT_ANY ? PUT_FILL : put, of, 64);
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
    unsigned char of[64 * 8];
    int right = 1;
    for (size_t e = from; e < to && right; e++) {
        const unsigned char *x = got + e * size;
        const int promised = d->exists && e < d->n;
        const int put = promised ? d->put[e] : m->flying_no_fill ? PUT_ANY : PUT_FILL;
        if (put == PUT_ANY || (promised && !memcmp(x, d->want + e * size, size))) continue;
        int n = candidates(m, v, var->type, e, put, of, 64), found = 0;
        for (int i = 0; i < n && !found; i++) found = !memcmp(x, of + (size_t)i * size, size);
        if (found) continue;
        if (n > 1 && unit > 1) {
            if (!h.bytes && !read_header(path, &h))
                return say("wrong: the header cannot be read again");
            const size_t row = d->exists ? d->row : 1;
            const uint64_t at =
                h.begin[v] + (d->is_record ? e / row * h.record_len + e % row * size : e * size);
            if (is_torn(x, of, n, size, at, unit)) {
                n_torn++;
                continue;
            }
        }
        right = wrong_element(m, var, v, e, x);
    }
    free(h.bytes);
    return right;
}

static int check_data(int ncid, struct model *m, const struct defs *defs, const char *path,
                      size_t unit) {
    static unsigned char *got;
    static size_t room;
    int unlimited;
    size_t n_records = 0;
    int early = 0;
    TRY(nc_inq_unlimdim(ncid, &unlimited));
    if (unlimited >= 0) TRY(nc_inq_dimlen(ncid, unlimited, &n_records));
    if (n_records < m->n_records || n_records > m->max_records)
        return say("wrong: %zu records, want %zu to %zu", n_records, m->n_records, m->max_records);
    for (int v = 0; v < defs->n_vars; v++) {
        const struct var *var = &defs->vars[v];
        const struct data *d = &m->data[v];
        const size_t n = var_elems(defs, v, n_records), size = type_size(var->type);
        if (n == 0) continue;
        if (n * size > room) {
            room = 2 * n * size;
            got = must(realloc(got, room));
        }
        memset(got, 0x5a, n * size);
        TRY(nc_get_var(ncid, v, got));
        const size_t promised = d->exists ? d->n : 0;
        if (promised && memcmp(got, d->want, promised * size) &&
            !judge(m, var, v, got, 0, promised, path, unit))
            return 0;
        if (n > promised && !early && !judge(m, var, v, got, promised, n, path, unit)) early = 1;
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
    const struct defs *defs = NULL;
    for (int i = m->n_versions; i-- > 0 && !defs;)
        if (shows(ncid, m->versions[i])) defs = m->versions[i];
    if (!defs)
        say("wrong: definitions of none of the %d possible states", m->n_versions);
    else
        right = check_data(ncid, m, defs, path, unit) && check_names(m, folder, path);
    code = nc_close(ncid);
    if (!right) return 0;
    if (code) return say("error %d at nc_close", code);
    return n_torn ? say("torn %ld", n_torn) : say("ok");
}

static int rewrite(const char *folder, int go_on) {
    char path[4200];
    int ncid;
    static char text[GOON_LEN];
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    TRY(nc_open(path, NC_WRITE, &ncid));
    if (go_on) {
        memset(text, 'g', sizeof text);
        TRY(nc_redef(ncid));
        TRY(nc_put_att_text(ncid, NC_GLOBAL, GOON_NAME, sizeof text, text));
        TRY(nc_enddef(ncid));
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
            rewrite(folder, 0);
        } else if (sscanf(line, "goon %4095s", folder) == 1) {
            rewrite(folder, 1);
        } else {
            return 64;
        }
        alarm(0);
        puts(answer);
        fflush(stdout);
    }
    return 0;
}
