/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A program of random definitions and puts that kills itself.
 *
 *     kills PATH FORMAT SEED PUTS END
 *
 * FORMAT is 1, 2, 5, 4 or c (netCDF-4 of the classic model). What it defines and puts follows from FORMAT and
 * SEED alone, so that two libraries write the same. After PUTS puts it ends by END: `kill` (SIGKILL), `close`. It
 * says how many puts there would be at most if PUTS is 0. */
#define _GNU_SOURCE
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(call)                                                                              \
    do {                                                                                        \
        int code_ = (call);                                                                     \
        if (code_) {                                                                            \
            fprintf(stderr, "%s: %d %s, put %d\n", #call, code_, nc_strerror(code_), n_puts);   \
            exit(3);                                                                            \
        }                                                                                       \
    } while (0)

enum { MOST_VARS = 48, MOST_RANK = 12, MOST_ELEMS = 40000, MOST_RECORDS = 40 };

typedef struct {
    int group, id, rank, type;
    /* 0: unlimited. */
    size_t len[MOST_RANK];
    size_t n_records;
} Var;

typedef struct {
    int a;
    double b;
    short c[3];
} Pair;

static unsigned long long state;
static int n_puts, n_vars, n_more, format, classic;
static Var vars[MOST_VARS + 64];
static int compound, sequence, enumeration, opaque;

static unsigned pick(unsigned n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)((state >> 33) % n);
}

static int one_in(unsigned n) { return pick(n) == 0; }

static int pick_type(void)
{
    if (format == '5')
        return (int)(1 + pick(11));
    if (format != '4')
        return (int)(1 + pick(6));
    unsigned t = pick(16);
    return t < 12 ? (int)t + 1 : t == 12 ? compound : t == 13 ? sequence : t == 14 ? enumeration : opaque;
}

static void define_var(int nc, const int *groups, int n_groups, const int *dims, const size_t *lens, int n_dims)
{
    Var *v = &vars[n_vars];
    int list[MOST_RANK];
    char name[40];
    v->group = groups[pick((unsigned)n_groups)];
    v->type = pick_type();
    v->rank = one_in(8) ? (int)pick(MOST_RANK) : (int)pick(4);
    v->n_records = 0;
    size_t elems = 1;
    for (int k = 0; k < v->rank; k++) {
        /* The first one is unlimited. */
        int d = k == 0 && !one_in(3) ? 0 : 1 + (int)pick((unsigned)n_dims - 1);
        if (elems * (lens[d] ? lens[d] : 1) > MOST_ELEMS)
            d = 1;
        list[k] = dims[d];
        v->len[k] = lens[d];
        elems *= lens[d] ? lens[d] : 1;
    }
    snprintf(name, sizeof name, "v%d", n_vars);
    MUST(nc_def_var(v->group, name, v->type, v->rank, list, &v->id));
    if (format == '4' && v->rank && one_in(3) && v->type != NC_STRING && v->type != sequence)
        MUST(nc_def_var_deflate(v->group, v->id, (int)pick(2), 1, 1));
    n_vars++;
    (void)nc;
}

/* Element `k` of put number `n`. */
static int number(int n, size_t k) { return (int)((n * 7 + k * 3) % 101) + 1; }

static void *native(const Var *v, size_t n_elems)
{
    static char texts[256][24];
    static int items[4096];
    size_t size;
    MUST(nc_inq_type(v->group, v->type, NULL, &size));
    char *bytes = calloc(n_elems + 1, size < 16 ? 16 : size);
    for (size_t k = 0; k < n_elems; k++) {
        int x = number(n_puts, k);
        char *to = bytes + k * size;
        if (v->type == NC_STRING) {
            char *text = texts[k % 256];
            snprintf(text, 24, "t%d%s", x, x % 3 ? "" : "-of-more-letters");
            ((char **)bytes)[k] = x % 8 == 5 ? "" : text;
        } else if (v->type == NC_CHAR) {
            *to = (char)('a' + x % 26);
        } else if (v->type == compound) {
            Pair pair;
            memset(&pair, 0, sizeof pair);
            pair.a = x, pair.b = x + 0.25, pair.c[0] = 1, pair.c[2] = (short)x;
            memcpy(to, &pair, sizeof pair);
        } else if (v->type == sequence) {
            for (int i = 0; i < 4096; i++)
                items[i] = i * 3;
            ((nc_vlen_t *)bytes)[k] = (nc_vlen_t){(size_t)(x % 5), items + x};
        } else if (v->type == enumeration) {
            *to = (char)(x % 3);
        } else if (v->type == opaque) {
            memset(to, x, size);
        } else if (v->type == NC_FLOAT) {
            ((float *)bytes)[k] = (float)x + 0.5f;
        } else if (v->type == NC_DOUBLE) {
            ((double *)bytes)[k] = x + 0.125;
        } else {
            /* Whole numbers of this machine, whose lowest byte is the first. */
            memcpy(to, &(long long){x}, size);
        }
    }
    return bytes;
}

static int converted(const Var *v, const size_t *start, const size_t *count, const ptrdiff_t *stride, size_t n)
{
    unsigned how = pick(4);
    void *bytes = calloc(n + 1, 8);
    for (size_t k = 0; k < n; k++) {
        int x = number(n_puts, k);
        if (how == 0)
            ((double *)bytes)[k] = x;
        else if (how == 1)
            ((int *)bytes)[k] = x;
        else if (how == 2)
            ((signed char *)bytes)[k] = (signed char)x;
        else
            ((long long *)bytes)[k] = x;
    }
    int code = how == 0   ? nc_put_vars_double(v->group, v->id, start, count, stride, bytes)
               : how == 1 ? nc_put_vars_int(v->group, v->id, start, count, stride, bytes)
               : how == 2 ? nc_put_vars_schar(v->group, v->id, start, count, stride, bytes)
                          : nc_put_vars_longlong(v->group, v->id, start, count, stride, bytes);
    free(bytes);
    return code;
}

static void put(Var *v)
{
    size_t start[MOST_RANK] = {0}, count[MOST_RANK], n = 1;
    ptrdiff_t stride[MOST_RANK];
    int strided = one_in(5), single = one_in(4);
    for (int k = 0; k < v->rank; k++) {
        size_t len = v->len[k] ? v->len[k] : v->n_records + 1 + pick(2);
        if (len > MOST_RECORDS && !v->len[k])
            len = MOST_RECORDS;
        stride[k] = strided ? 1 + (ptrdiff_t)pick(3) : 1;
        if (v->len[k] == 0)
            start[k] = len - 1, count[k] = 1;
        else if (one_in(2))
            start[k] = 0, count[k] = (len - 1) / (size_t)stride[k] + 1;
        else
            start[k] = pick((unsigned)len), count[k] = (len - 1 - start[k]) / (size_t)stride[k] + 1;
        if (single)
            count[k] = 1;
        if (v->len[k] == 0 && v->n_records < start[k] + count[k])
            v->n_records = start[k] + count[k];
        n *= count[k];
    }
    if (v->rank && one_in(40))
        count[v->rank - 1] = 0, n = 0;
    const ptrdiff_t *steps = strided ? stride : NULL;
    int is_number = v->type != NC_CHAR && v->type <= NC_UINT64;
    if (is_number && v->type != NC_BYTE && one_in(3)) {
        MUST(converted(v, start, count, stride, n));
    } else {
        void *bytes = native(v, n);
        if (steps)
            MUST(nc_put_vars(v->group, v->id, start, count, steps, bytes));
        else if (single && n == 1)
            MUST(nc_put_var1(v->group, v->id, start, bytes));
        else
            MUST(nc_put_vara(v->group, v->id, start, count, bytes));
        free(bytes);
    }
    n_puts++;
}

int main(int argc, char **argv)
{
    static const char *types[] = {"compound", "sequence", "enumeration", "opaque"};
    if (argc < 6)
        return 2;
    format = argv[2][0], classic = format != '4';
    state = strtoull(argv[3], NULL, 10) * 1000003 + (unsigned char)format;
    for (int k = 0; k < 5; k++)
        pick(2);
    int last = atoi(argv[4]), all = 8 + (int)pick(40), nc, dims[6], groups[3];
    size_t lens[6] = {0, 1, 2, 5, 0, 0};
    if (last == 0) {
        printf("%d\n", all);
        return 0;
    }
    const int flags = format == '2' ? NC_64BIT_OFFSET : format == '5' ? NC_64BIT_DATA
                      : format == '4' ? NC_NETCDF4 : format == 'c' ? NC_NETCDF4 | NC_CLASSIC_MODEL : 0;
    lens[4] = 3 + pick(60), lens[5] = one_in(2) ? 3 + pick(500) : 1000 + pick(12000);
    MUST(nc_create(argv[1], NC_CLOBBER | flags, &nc));
    groups[0] = nc;
    int n_groups = 1;
    for (int k = 0; k < 6; k++) {
        char name[20];
        snprintf(name, sizeof name, "d%d", k);
        MUST(nc_def_dim(nc, name, lens[k], &dims[k]));
    }
    if (!classic) {
        int three = 3;
        MUST(nc_def_compound(nc, sizeof(Pair), types[0], &compound));
        MUST(nc_insert_compound(nc, compound, "a", NC_COMPOUND_OFFSET(Pair, a), NC_INT));
        MUST(nc_insert_compound(nc, compound, "b", NC_COMPOUND_OFFSET(Pair, b), NC_DOUBLE));
        MUST(nc_insert_array_compound(nc, compound, "c", NC_COMPOUND_OFFSET(Pair, c), NC_SHORT, 1, &three));
        MUST(nc_def_vlen(nc, types[1], NC_INT, &sequence));
        MUST(nc_def_enum(nc, NC_BYTE, types[2], &enumeration));
        for (signed char k = 0; k < 3; k++)
            MUST(nc_insert_enum(nc, enumeration, (const char *[]){"zero", "one", "two"}[k], &k));
        /* ncdump shows no value that has no name: what was never put. */
        MUST(nc_insert_enum(nc, enumeration, "none", &(signed char){NC_FILL_BYTE}));
        MUST(nc_def_opaque(nc, 7, types[3], &opaque));
        if (one_in(2)) {
            MUST(nc_def_grp(nc, "zz", &groups[1]));
            MUST(nc_def_grp(groups[1], "below", &groups[2]));
            n_groups = 3;
        }
    }
    int wanted = one_in(3) ? 1 + (int)pick(MOST_VARS) : 1 + (int)pick(5);
    while (n_vars < wanted)
        define_var(nc, groups, n_groups, dims, lens, 6);
    MUST(nc_enddef(nc));
    int in_turn = one_in(2);
    for (int k = 0; n_puts < last; k++) {
        put(&vars[in_turn ? k % n_vars : (int)pick((unsigned)n_vars)]);
        /* What a program does besides. */
        unsigned other = pick(40);
        if (other == 0) {
            MUST(nc_sync(nc));
        } else if (other == 1 && n_more < 6) {
            if (format != '4')
                MUST(nc_redef(nc));
            MUST(nc_put_att_int(nc, NC_GLOBAL, (char[]){'m', (char)('a' + n_more++), 0}, NC_INT, 1, &k));
            MUST(nc_enddef(nc));
        } else if (other == 2 && n_vars < MOST_VARS + 60) {
            if (format != '4')
                MUST(nc_redef(nc));
            define_var(nc, groups, n_groups, dims, lens, 6);
            /* What nobody ends is there with the first put to it. */
            if (format != '4' || n_puts == last || one_in(2))
                MUST(nc_enddef(nc));
            else
                put(&vars[n_vars - 1]);
        } else if (other == 3) {
            size_t len;
            MUST(nc_inq_dimlen(nc, dims[0], &len));
        }
    }
    if (!strcmp(argv[5], "kill"))
        kill(getpid(), SIGKILL);
    MUST(nc_close(nc));
    return 0;
}
