/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The values that scenarios write. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must(void *memory) {
    if (!memory) {
        fprintf(stderr, "crash: no memory\n");
        exit(70);
    }
    return memory;
}

size_t type_size(nc_type type) {
    switch (type) {
        case NC_BYTE:
        case NC_CHAR:
        case NC_UBYTE: return 1;
        case NC_SHORT:
        case NC_USHORT: return 2;
        case NC_INT:
        case NC_UINT:
        case NC_FLOAT: return 4;
        case TYPE_KIND: return 2;
        case TYPE_BLOB: return 5;
        default: return 8;
    }
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 30, x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27, x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Every bit of the value differs between puts, so that old and new bytes can be told apart. No
 * value is all zeros, which is what lost bytes read as. */
static void from_bits(nc_type type, uint64_t bits, void *out) {
    float f;
    double d;
    switch (type) {
        case NC_FLOAT:
            f = (float)(1 + (bits & 0x7fffff));
            memcpy(out, &f, sizeof f);
            break;
        case NC_DOUBLE:
            d = (double)(1 + (bits >> 12));
            memcpy(out, &d, sizeof d);
            break;
        case NC_CHAR: *(char *)out = (char)('a' + bits % 26); break;
        default: bits |= 1; memcpy(out, &bits, type_size(type)); /* little-endian: the low bytes */
    }
}

void value_of(nc_type type, int var, size_t at, int put, void *out) {
    from_bits(type, mix(mix((uint64_t)put << 20 ^ (uint64_t)var) + at + 1), out);
}

void att_values(nc_type type, int put, size_t n, void *out) {
    for (size_t i = 0; i < n; i++)
        value_of(type, 0xfffff, i, put, (char *)out + i * type_size(type));
}

void fill_value(nc_type type, void *out) {
    const signed char b = NC_FILL_BYTE;
    const char c = NC_FILL_CHAR;
    const short s = NC_FILL_SHORT;
    const int i = NC_FILL_INT;
    const float f = NC_FILL_FLOAT;
    const double d = NC_FILL_DOUBLE;
    const unsigned char ub = NC_FILL_UBYTE;
    const unsigned short us = NC_FILL_USHORT;
    const unsigned int ui = NC_FILL_UINT;
    const long long l = NC_FILL_INT64;
    const unsigned long long ul = NC_FILL_UINT64;
    const void *const of[] = {NULL, &b, &c, &s, &i, &f, &d, &ub, &us, &ui, &l, &ul};
    /* Of enums that of the type below; strings and others: nothing, or zeros. */
    if (type == TYPE_KIND)
        memcpy(out, &s, sizeof s);
    else if (type >= NC_STRING)
        memset(out, 0, type_size(type));
    else
        memcpy(out, of[type], type_size(type));
}

/* Types that a file defines. */

const char *type_name(nc_type type) {
    static const char *const names[] = {"pair", "list", "kind", "blob"};
    return type >= TYPE_PAIR && type < TYPE_END ? names[type - TYPE_PAIR] : "";
}

nc_type type_of(int ncid, nc_type id) {
    char name[NC_MAX_NAME + 1];
    if (id <= NC_MAX_ATOMIC_TYPE) return id;
    if (nc_inq_user_type(ncid, id, name, NULL, NULL, NULL, NULL)) return NC_NAT;
    for (nc_type type = TYPE_PAIR; type < TYPE_END; type++)
        if (!strcmp(name, type_name(type))) return type;
    return NC_NAT;
}

nc_type type_id(int ncid, nc_type type) {
    nc_type id = type;
    if (type >= TYPE_PAIR && nc_inq_typeid(ncid, type_name(type), &id)) return NC_NAT;
    return id;
}

/* Strings and lists. Zero is the one that nobody put: empty. */

#define LOST 2 /* what comes of a string or list that was never put: no value is even */
#define LONG_STRING 3000
#define MOST_ITEMS 16

static size_t string_len(uint64_t token) {
    return token % 61 == 0 ? LONG_STRING : 16 + token % 50;
}

static void string_of(uint64_t token, char *out) {
    const size_t n = token ? string_len(token) : 0;
    if (token) snprintf(out, LONG_STRING + 1, "%016llx", (unsigned long long)token);
    for (size_t i = 16; i < n; i++) out[i] = (char)('a' + (token + i) % 26);
    out[n] = 0;
}

static size_t list_of(uint64_t token, int *out) {
    const size_t n = token ? 2 + token % (MOST_ITEMS - 1) : 0;
    for (size_t i = 0; i < n; i++) out[i] = (int)(i < 2 ? token >> 32 * i : token * (i + 1));
    return n;
}

size_t packed_size(nc_type type) {
    if (type == NC_STRING) return sizeof(char *);
    return type == TYPE_LIST ? sizeof(nc_vlen_t) : type_size(type);
}

void *pack(nc_type type, const void *elements, size_t n) {
    void *out = must(malloc(n * packed_size(type) + 1));
    const uint64_t *tokens = elements;
    if (type != NC_STRING && type != TYPE_LIST) memcpy(out, elements, n * type_size(type));
    for (size_t i = 0; i < n && type == NC_STRING; i++) {
        char *text = must(malloc(LONG_STRING + 1));
        string_of(tokens[i], text);
        ((char **)out)[i] = text;
    }
    for (size_t i = 0; i < n && type == TYPE_LIST; i++) {
        nc_vlen_t *list = (nc_vlen_t *)out + i;
        list->p = must(malloc(MOST_ITEMS * sizeof(int)));
        list->len = list_of(tokens[i], list->p);
    }
    return out;
}

void packed_free(nc_type type, void *packed, size_t n) {
    for (size_t i = 0; i < n && type == NC_STRING; i++) free(((char **)packed)[i]);
    for (size_t i = 0; i < n && type == TYPE_LIST; i++) free(((nc_vlen_t *)packed)[i].p);
    free(packed);
}

static uint64_t token_of_string(const char *text) {
    char want[LONG_STRING + 1], digits[17] = "";
    if (!text || !*text) return 0;
    memcpy(digits, text, strnlen(text, 16));
    const uint64_t token = strtoull(digits, NULL, 16);
    if (!token) return LOST;
    string_of(token, want);
    return strcmp(want, text) ? LOST : token;
}

static uint64_t token_of_list(const nc_vlen_t *list) {
    int want[MOST_ITEMS];
    const int *items = list->p;
    if (list->len == 0) return 0;
    if (list->len < 2 || !items) return LOST;
    const uint64_t token = (uint64_t)(unsigned)items[1] << 32 | (unsigned)items[0];
    if (!token || list_of(token, want) != list->len) return LOST;
    return memcmp(want, items, list->len * sizeof *want) ? LOST : token;
}

void unpack(nc_type type, void *packed, size_t n, void *elements) {
    uint64_t *tokens = elements;
    if (type == NC_STRING) {
        for (size_t i = 0; i < n; i++) tokens[i] = token_of_string(((char **)packed)[i]);
        nc_free_string(n, packed);
    } else if (type == TYPE_LIST) {
        for (size_t i = 0; i < n; i++) tokens[i] = token_of_list((nc_vlen_t *)packed + i);
        nc_free_vlens(n, packed);
    } else {
        memmove(elements, packed, n * type_size(type));
    }
    free(packed);
}
