/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What scenarios are built with. Each call adds an operation; those that give a number give that of
 * the dimension, variable or group. */
#ifndef CRASH_BUILD_H
#define CRASH_BUILD_H

#include "plan.h"

#define CLASSIC (1 << 1 | 1 << 2 | 1 << 5)
#define BOTH (CLASSIC | 1 << NETCDF4)

struct scene {
    const char *name;
    void (*build)(struct plan *);
    int rounds;
    int versions; /* a bit for each */
};
/* Tables that end with a scene without a name. */
extern const struct scene scenes[], scenes4[];

struct op *add(struct plan *p, enum kind kind);
void create(struct plan *p, int bits);
void reopen(struct plan *p, int bits);
int dim_in(struct plan *p, int group, const char *name, size_t len);
int dim(struct plan *p, const char *name, size_t len);
int group(struct plan *p, int in, const char *name);
void type(struct plan *p, nc_type type);
int var(struct plan *p, int group, const char *name, nc_type type, int rank, const int *dims);
int var1(struct plan *p, const char *name, nc_type type, int d);
int var2(struct plan *p, const char *name, nc_type type, int d0, int d1);
/* Chunks of `rows` by all of the other dimensions, unless `how` says contiguous. */
void layout(struct plan *p, int var, int how, int level, size_t rows);
void att(struct plan *p, int var, const char *name, nc_type type, size_t n);
void att_in(struct plan *p, int group, const char *name, nc_type type, size_t n);
void del_att(struct plan *p, int var, const char *name);
void rename_it(struct plan *p, enum kind kind, int var, const char *name, const char *to);
/* `n` indices of the first dimension from `first` on, and all of the others. */
void put(struct plan *p, int var, size_t first, size_t n);
/* The whole of a fixed variable. */
void put_all(struct plan *p, int var);
/* One record of every record variable, in definition order. */
void put_record(struct plan *p, int record);
void put_fixed(struct plan *p);
/* nc__enddef(h_minfree, v_align, v_minfree, r_align). */
void enddef_as(struct plan *p, size_t h_free, size_t v_align, size_t v_free, size_t r_align);
/* As tight as it goes: the next addition moves data. */
void enddef_tight(struct plan *p);
void enddef_plain(struct plan *p);
/* One more record and an overwritten fixed variable, then a sync. */
void go_on(struct plan *p);
void indexed(char *out, const char *stem, int i);

#endif
