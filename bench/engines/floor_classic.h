/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The least that a reader by hand has to know of classic files: the header of one with 64-bit offsets, taken apart into
 * arrays. File Format Specifications, "The NetCDF Classic Format". */
#ifndef FLOOR_CLASSIC_H
#define FLOOR_CLASSIC_H

#include "floor_hdf5.h"

static uint64_t swapped(uint64_t bits)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap64(bits);
#else
    return bits;
#endif
}

static uint32_t swapped4(uint32_t bits)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap32(bits);
#else
    return bits;
#endif
}

typedef struct { const uint8_t *name; uint32_t name_length; uint64_t length; } Dim;
typedef struct { const uint8_t *name, *values; uint32_t name_length, type, n; } Att;
typedef struct {
    const uint8_t *name;
    uint32_t name_length, rank, first_dim, first_att, n_atts, type;
    uint64_t size, begin;
} Var;
typedef struct {
    uint8_t *bytes;
    size_t length, at;
    uint32_t n_dims, n_vars, n_atts, n_ids;
    Dim *dims;
    Var *vars;
    Att *atts;
    uint32_t *ids; /* dimensions of all variables, one after another */
} Header;

static const uint8_t *some_bytes(Header *h, size_t n)
{
    if (n > h->length - h->at) stop("the header is too short");
    const uint8_t *p = h->bytes + h->at;
    h->at += n;
    return p;
}

static uint32_t big(Header *h)
{
    const uint8_t *p = some_bytes(h, 4);
    uint32_t w;
    memcpy(&w, p, 4);
    return swapped4(w);
}

static uint64_t big8(Header *h)
{
    uint64_t w;
    memcpy(&w, some_bytes(h, 8), 8);
    return swapped(w);
}

static size_t padded(uint64_t n) { return (size_t)(n + 3) & ~(size_t)3; }

/* A count, each of which takes so many bytes of the header at least. */
static uint32_t count_of(Header *h, uint32_t tag, size_t least)
{
    uint32_t found = big(h), n = big(h);
    if ((found != tag && found != 0) || n > (h->length - h->at) / least) stop("not a header");
    return n;
}

static void *array(size_t n, size_t size)
{
    void *p = malloc((n ? n : 1) * size);
    if (!p) stop("no memory");
    return p;
}

static void take_atts(Header *h, uint32_t *first, uint32_t *n, size_t *room)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 4, 8};
    *n = count_of(h, 12, 12);
    *first = h->n_atts;
    if (h->n_atts + *n > *room) {
        *room = 2 * *room + *n;
        h->atts = realloc(h->atts, *room * sizeof *h->atts);
        if (!h->atts) stop("no memory");
    }
    for (uint32_t i = 0; i < *n; i++) {
        Att *att = &h->atts[h->n_atts++];
        att->name_length = big(h);
        att->name = some_bytes(h, padded(att->name_length));
        att->type = big(h), att->n = big(h);
        if (att->type < 1 || att->type > 6) stop("not a type");
        att->values = some_bytes(h, padded((uint64_t)att->n * sizes[att->type]));
    }
}

/* The header of a file of 64-bit offsets, taken apart into arrays; names and values stay where they are. */
static Header take_header(int fd)
{
    Header h = {0};
    size_t room = 1 << 18, atts = 0;
    uint32_t none, n_none;
    h.bytes = array(room, 1);
    h.length = read_some(fd, h.bytes, room, 0);
    if (h.length < 8 || memcmp(some_bytes(&h, 4), "CDF\2", 4) != 0) stop("not a file of 64-bit offsets");
    big(&h);
    h.n_dims = count_of(&h, 10, 8);
    h.dims = array(h.n_dims, sizeof *h.dims);
    for (uint32_t d = 0; d < h.n_dims; d++) {
        h.dims[d].name_length = big(&h);
        h.dims[d].name = some_bytes(&h, padded(h.dims[d].name_length));
        h.dims[d].length = big(&h);
    }
    take_atts(&h, &none, &n_none, &atts);
    h.n_vars = count_of(&h, 11, 28);
    h.vars = array(h.n_vars, sizeof *h.vars);
    size_t ids = 0;
    for (uint32_t v = 0; v < h.n_vars; v++) {
        Var *var = &h.vars[v];
        var->name_length = big(&h);
        var->name = some_bytes(&h, padded(var->name_length));
        var->rank = big(&h);
        if (var->rank > (h.length - h.at) / 4) stop("not a rank");
        if (h.n_ids + var->rank > ids) {
            ids = 2 * ids + var->rank;
            h.ids = realloc(h.ids, ids * sizeof *h.ids);
            if (!h.ids) stop("no memory");
        }
        var->first_dim = h.n_ids;
        for (uint32_t d = 0; d < var->rank; d++) {
            h.ids[h.n_ids] = big(&h);
            if (h.ids[h.n_ids++] >= h.n_dims) stop("not a dimension");
        }
        take_atts(&h, &var->first_att, &var->n_atts, &atts);
        var->type = big(&h), var->size = big(&h), var->begin = big8(&h);
    }
    return h;
}

static void drop_header(Header *h)
{
    free(h->bytes), free(h->dims), free(h->vars), free(h->atts), free(h->ids);
}

#endif
