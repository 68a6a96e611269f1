/* SPDX-License-Identifier: MIT OR Apache-2.0
 * What the parts of `life` share: chance, the log, and typed transfers. See life.c. */
#ifndef LIFE_H
#define LIFE_H

#include <netcdf.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOST_DIMS = 4,
    MOST_ELEMS = 1 << 17,   /* of a put of numbers */
    MOST_TEXTS = 400,       /* of a put of strings or lists */
    NATIVE = 0,             /* "as the variable is" among the types of memory */
};

/* A variable as the file has it now. */
typedef struct {
    int nc, id, rank, dims[MOST_DIMS], endless[MOST_DIMS];
    nc_type type;
    size_t len[MOST_DIMS];
} Var;

/* A part of a variable. `form` says by which function it goes. */
typedef struct {
    enum { WHOLE, ONE, AREA, STRIDED, MAPPED, FORMS } form;
    size_t start[MOST_DIMS], count[MOST_DIMS], n;
    ptrdiff_t stride[MOST_DIMS], map[MOST_DIMS];
} Slab;

/* A number below n (which is at least 1), from the seed alone. */
unsigned below(unsigned n);
uint64_t chance(void);

/* A line of the log, numbered. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* FNV-1a, continued. */
uint64_t digest(uint64_t hash, const void *bytes, size_t n);

/* Types of the file under test; 0 where it has none. Looked up again when a file is opened. */
extern nc_type PAIR, LIST, COLOUR, BLOB;
void define_types(int nc);
void find_types(int nc);

/* Puts random values, or gets and says what they are. Both say the code. */
int put(const Var *v, const Slab *s, int memory);
int get(const Var *v, const Slab *s, int memory);

#endif
