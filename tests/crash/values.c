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
    memcpy(out, of[type], type_size(type));
}
