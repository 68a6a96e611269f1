/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Puts and gets of every type in every form, with values that follow from the seed. */
#include "life.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nc_type PAIR, LIST, COLOUR, BLOB;

typedef struct {
    int a;
    double b[2];
    unsigned char c;
} Pair;
enum { BLOB_BYTES = 5 };

static union {
    double numbers[MOST_ELEMS];
    char *texts[MOST_TEXTS];
    nc_vlen_t lists[MOST_TEXTS];
    Pair pairs[MOST_TEXTS];
    unsigned char bytes[MOST_ELEMS * sizeof(double)];
} memory_of;

void define_types(int nc) {
    PAIR = LIST = COLOUR = BLOB = 0;
    int code = nc_def_compound(nc, sizeof(Pair), "pair", &PAIR);
    code |= nc_insert_compound(nc, PAIR, "a", offsetof(Pair, a), NC_INT);
    code |= nc_insert_array_compound(nc, PAIR, "b", offsetof(Pair, b), NC_DOUBLE, 1, (int[]){2});
    code |= nc_insert_compound(nc, PAIR, "c", offsetof(Pair, c), NC_UBYTE);
    code |= nc_def_vlen(nc, "list", NC_INT, &LIST);
    code |= nc_def_enum(nc, NC_BYTE, "colour", &COLOUR);
    for (signed char i = 0; i < 3; i++)
        code |= nc_insert_enum(nc, COLOUR, (const char *[]){"red", "green", "blue"}[i], &i);
    code |= nc_def_opaque(nc, BLOB_BYTES, "blob", &BLOB);
    say("types %d", code);
}

void find_types(int nc) {
    nc_type *const types[] = {&PAIR, &LIST, &COLOUR, &BLOB};
    const char *const names[] = {"pair", "list", "colour", "blob"};
    for (int i = 0; i < 4; i++)
        if (nc_inq_typeid(nc, names[i], types[i])) *types[i] = 0;
}

/* ---- Values ------------------------------------------------------------------------------------ */

/* Numbers of T: a ramp, small ones, or whatever fits the type. */
#define NUMBERS(T, anything)                                                  \
    do {                                                                      \
        T *p = (T *)(void *)&memory_of;                                       \
        for (size_t i = 0; i < n; i++)                                        \
            p[i] = kind == 0   ? (T)(unsigned char)((i + first) % 120)        \
                   : kind == 1 ? (T)(unsigned char)below(120)                 \
                               : (T)(anything);                               \
    } while (0)

/* Any size of number, also such that fit no integer. */
static double any_real(void) {
    double x = (double)(int64_t)chance() * pow(10, (int)below(40) - 25);
    return below(50) == 0 ? (below(2) ? NAN : INFINITY) : x;
}

static const char *make_numbers(int type, size_t n) {
    unsigned kind = below(8), first = below(100);
    kind = kind < 4 ? 0 : kind < 6 ? 1 : 2;
    switch (type) {
        case NC_BYTE: NUMBERS(signed char, chance()); break;
        case NC_CHAR: case NC_UBYTE: NUMBERS(unsigned char, chance()); break;
        case NC_SHORT: NUMBERS(short, chance()); break;
        case NC_USHORT: NUMBERS(unsigned short, chance()); break;
        case NC_INT: NUMBERS(int, chance()); break;
        case NC_UINT: NUMBERS(unsigned, chance()); break;
        case NC_INT64: NUMBERS(long long, chance()); break;
        case NC_UINT64: NUMBERS(unsigned long long, chance()); break;
        case NC_FLOAT: NUMBERS(float, any_real()); break;
        default: NUMBERS(double, any_real());
    }
    return (const char *[]){"ramp", "small", "any"}[kind];
}

static const char *make_values(nc_type type, size_t n) {
    static char letters[] = "the letters of which strings are made, long ones too, longer than a heap likes them to be";
    static int integers[64];
    if (type == NC_STRING) {
        for (size_t i = 0; i < n; i++)
            memory_of.texts[i] = below(12) ? letters + below(sizeof letters) : NULL;
    } else if (type == LIST) {
        for (int i = 0; i < 64; i++) integers[i] = (int)below(1000);
        for (size_t i = 0; i < n; i++) {
            size_t from = below(60);
            memory_of.lists[i] = (nc_vlen_t){.len = below((unsigned)(64 - from)), .p = integers + from};
        }
    } else if (type == PAIR) {
        memset(memory_of.pairs, 0, n * sizeof(Pair));
        for (size_t i = 0; i < n; i++)
            memory_of.pairs[i] = (Pair){(int)below(1000), {below(9) / 4.0, -(double)below(9)}, (unsigned char)below(256)};
    } else if (type == COLOUR) {
        for (size_t i = 0; i < n; i++) memory_of.bytes[i] = (unsigned char)below(3);
    } else if (type == BLOB) {
        for (size_t i = 0; i < n * BLOB_BYTES; i++) memory_of.bytes[i] = (unsigned char)below(256);
    } else {
        return make_numbers(type, n);
    }
    return "made";
}

/* What a get delivered, as one number; what it allocated is freed. */
static uint64_t digest_values(nc_type type, size_t n, size_t size) {
    uint64_t h = 0xcbf29ce484222325u;
    if (type == NC_STRING) {
        for (size_t i = 0; i < n; i++)
            h = memory_of.texts[i] ? digest(h, memory_of.texts[i], strlen(memory_of.texts[i]) + 1) : digest(h, "-", 1);
        nc_free_string(n, memory_of.texts);
    } else if (type == LIST) {
        for (size_t i = 0; i < n; i++) {
            h = digest(h, &memory_of.lists[i].len, sizeof(size_t));
            h = digest(h, memory_of.lists[i].p, memory_of.lists[i].len * sizeof(int));
        }
        nc_free_vlens(n, memory_of.lists);
    } else if (type == PAIR) {
        for (size_t i = 0; i < n; i++) {
            const Pair *p = &memory_of.pairs[i];
            h = digest(digest(digest(h, &p->a, sizeof p->a), p->b, sizeof p->b), &p->c, 1);
        }
    } else {
        h = digest(h, memory_of.bytes, n * size);
    }
    return h;
}

/* ---- Forms ------------------------------------------------------------------------------------- */

#define ALL_FORMS(do, suffix, T)                                                                         \
    switch (s->form) {                                                                                   \
        case WHOLE: return nc_##do##_var##suffix(v->nc, v->id, T);                                       \
        case ONE: return nc_##do##_var1##suffix(v->nc, v->id, s->start, T);                              \
        case AREA: return nc_##do##_vara##suffix(v->nc, v->id, s->start, s->count, T);                   \
        case STRIDED: return nc_##do##_vars##suffix(v->nc, v->id, s->start, s->count, s->stride, T);     \
        default: return nc_##do##_varm##suffix(v->nc, v->id, s->start, s->count, s->stride, s->map, T);  \
    }

#define ALL_TYPES(do)                                                  \
    void *p = &memory_of;                                              \
    switch (memory) {                                                  \
        case NATIVE: ALL_FORMS(do, , p)                                \
        case NC_BYTE: ALL_FORMS(do, _schar, p)                         \
        case NC_CHAR: ALL_FORMS(do, _text, p)                          \
        case NC_SHORT: ALL_FORMS(do, _short, p)                        \
        case NC_INT: ALL_FORMS(do, _int, p)                            \
        case NC_FLOAT: ALL_FORMS(do, _float, p)                        \
        case NC_UBYTE: ALL_FORMS(do, _uchar, p)                        \
        case NC_USHORT: ALL_FORMS(do, _ushort, p)                      \
        case NC_UINT: ALL_FORMS(do, _uint, p)                          \
        case NC_INT64: ALL_FORMS(do, _longlong, p)                     \
        case NC_UINT64: ALL_FORMS(do, _ulonglong, p)                   \
        case NC_STRING: ALL_FORMS(do, _string, p)                      \
        default: ALL_FORMS(do, _double, p)                             \
    }

static int put_form(const Var *v, const Slab *s, int memory) { ALL_TYPES(put) }
static int get_form(const Var *v, const Slab *s, int memory) { ALL_TYPES(get) }

/* "var 3 vars 0+2*1,4+5*2". */
static const char *place(const Var *v, const Slab *s) {
    static const char *const forms[] = {"var", "var1", "vara", "vars", "varm"};
    static char text[300];
    int at = snprintf(text, sizeof text, "%s of variable %d type %d", forms[s->form], v->id, v->type);
    for (int d = 0; d < v->rank && s->form != WHOLE; d++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%c%zu+%zu*%td", d ? ',' : ' ', s->start[d], s->count[d], s->stride[d]);
    return text;
}

int put(const Var *v, const Slab *s, int memory) {
    const char *kind = make_values(memory ? memory : v->type, s->n);
    int code = put_form(v, s, memory);
    /* The library took what it wants of the memory: what becomes of it now is nobody's business. */
    memset(&memory_of, 0x5a, s->n * sizeof(double));
    say("put %s memory %d %s: %d", place(v, s), memory, kind, code);
    return code;
}

int get(const Var *v, const Slab *s, int memory) {
    nc_type type = memory ? memory : v->type;
    size_t size = sizeof(double);
    if (type <= NC_STRING || type == BLOB || type == COLOUR) nc_inq_type(v->nc, type, NULL, &size);
    memset(&memory_of, 0, s->n * (type == LIST || type == PAIR ? sizeof(Pair) : sizeof(double)));
    int code = get_form(v, s, memory);
    int usable = code == NC_NOERR || code == NC_ERANGE;
    say("get %s memory %d: %d %016llx", place(v, s), memory, code,
        usable ? (unsigned long long)digest_values(type, s->n, size) : 0);
    return code;
}
