/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The scenarios that classic files have; most of them netCDF-4 files as well. */
#include "build.h"

#include <stddef.h>

/* What most scenarios begin with: fixed variables of a few KiB, records of several types, and
 * some of both already there and closed. */
static void begin(struct plan *p, int bits, void (*enddef)(struct plan *)) {
    create(p, bits);
    int time = dim(p, "time", 0), x = dim(p, "x", 300), y = dim(p, "y", 37);
    var1(p, "depth", NC_DOUBLE, x);
    var1(p, "mask", NC_SHORT, y);
    var2(p, "temp", NC_DOUBLE, time, x);
    var2(p, "flag", NC_BYTE, time, y);
    var2(p, "level", NC_SHORT, time, y);
    var2(p, "count", NC_UINT64, time, y);
    var1(p, "when", NC_INT, time);
    att(p, NC_GLOBAL, "title", NC_CHAR, 40);
    att(p, 2, "range", NC_DOUBLE, 2);
    enddef(p);
    put_fixed(p);
    for (int r = 0; r < 5; r++) put_record(p, r);
}

static void enddef_roomy(struct plan *p) { enddef_as(p, 1500, 4, 0, 4); }

/* A redefinition that adds a numbered attribute. */
static void annotate(struct plan *p, int var, const char *stem, int i, nc_type type, size_t n,
                     void (*enddef)(struct plan *)) {
    char name[NAME_BYTES];
    add(p, OP_REDEF);
    indexed(name, stem, i);
    att(p, var, name, type, n);
    enddef(p);
}

/* A header of many pages: 64 variables with attributes. Room is left in it. */
static void begin_many(struct plan *p, size_t h_free) {
    char name[NAME_BYTES];
    create(p, 0);
    int time = dim(p, "time", 0), x = dim(p, "x", 5);
    for (int i = 0; i < 64; i++) {
        indexed(name, "variable_", i);
        nc_type type = (nc_type[]){NC_DOUBLE, NC_FLOAT, NC_SHORT, NC_BYTE}[i % 4];
        if (i % 3)
            var2(p, name, type, time, x);
        else
            var1(p, name, type, x);
        att(p, i, "long_name", NC_CHAR, 60 + (size_t)i % 7);
        att(p, i, "valid_range", NC_DOUBLE, 2);
    }
    enddef_as(p, h_free, 4, 0, 4);
    put_fixed(p);
    for (int r = 0; r < 4; r++) put_record(p, r);
}

static void create_only(struct plan *p) {
    begin(p, 0, enddef_plain);
    put(p, 0, 10, 30);
    add(p, OP_SYNC);
    put_record(p, 7); /* records 5 and 6 get fill values */
}

static void append_with(struct plan *p, int bits) {
    begin(p, bits, enddef_plain);
    reopen(p, bits);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        if (i % 2) put(p, 0, (size_t)(i * 7 % 200), 90);
        if (i % 3 == 0) put(p, 2, (size_t)(i % p->n_records), 1);
        if (i % 3 == 2) add(p, OP_SYNC);
    }
}

static void append(struct plan *p) { append_with(p, 0); }
static void append_shared(struct plan *p) { append_with(p, NC_SHARE); }

static void att_small(struct plan *p) {
    begin(p, 0, enddef_roomy);
    reopen(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        annotate(p, i % 2 ? 2 : NC_GLOBAL, "note_", i, NC_CHAR, 30 + (size_t)i, enddef_plain);
        go_on(p);
    }
}

static void att_many_steps(struct plan *p) {
    char name[NAME_BYTES];
    for (int i = 0; i < p->rounds; i++) {
        add(p, OP_REDEF);
        indexed(name, "note_", i);
        att(p, NC_GLOBAL, name, NC_CHAR, 50);
        att(p, 31, name, NC_DOUBLE, 5);
        enddef_plain(p);
        go_on(p);
    }
}

static void att_many(struct plan *p) {
    begin_many(p, 20000);
    att_many_steps(p);
}

static void att_symlink(struct plan *p) {
    add(p, OP_SYMLINK);
    begin_many(p, 20000);
    reopen(p, 0);
    att_many_steps(p);
}

/* The growth itself, in each of the ways a file may be reached. */
static void grow_steps(struct plan *p) {
    for (int i = 0; i < p->rounds; i++) {
        annotate(p, NC_GLOBAL, "history_", i, NC_CHAR, i % 2 ? 200 : 3000, enddef_tight);
        go_on(p);
    }
}

static void grow_fixed(struct plan *p) {
    begin(p, 0, enddef_tight);
    grow_steps(p);
}

static void grow_shared(struct plan *p) {
    begin(p, NC_SHARE, enddef_tight);
    grow_steps(p);
}

/* From here on the file has two names, and no other file may take its place. */
static void give_link(struct plan *p) {
    add(p, OP_CLOSE);
    add(p, OP_LINK);
    add(p, OP_OPEN);
}

static void grow_linked(struct plan *p) {
    begin(p, 0, enddef_tight);
    give_link(p);
    grow_steps(p);
}

static void grow_symlink(struct plan *p) {
    add(p, OP_SYMLINK);
    begin(p, 0, enddef_tight);
    grow_steps(p);
}

static void guise(struct plan *p, size_t mode, int other_user) {
    struct op *op = add(p, OP_GUISE);
    op->n = mode;
    op->arg = other_user;
}

/* Mode and extended attributes of the file must survive a move. */
static void grow_mode(struct plan *p) {
    begin(p, 0, enddef_tight);
    add(p, OP_CLOSE);
    guise(p, 0640, 0);
    add(p, OP_OPEN);
    grow_steps(p);
}

/* The file of somebody else, writable for us: a copy would change its owner. */
static void grow_owner(struct plan *p) {
    begin(p, 0, enddef_tight);
    add(p, OP_CLOSE);
    guise(p, 0666, 1);
    add(p, OP_OPEN);
    grow_steps(p);
}

/* What models do that annotate their history: default enddefs, a 2 kB attribute every few records. */
static void grow_default(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    int time = dim(p, "time", 0), x = dim(p, "x", 700);
    for (int v = 0; v < 4; v++) {
        indexed(name, "v", v);
        var2(p, name, NC_DOUBLE, time, x);
    }
    enddef_plain(p);
    for (int i = 0; i < p->rounds; i++) {
        for (int r = 0; r < 3; r++) {
            put_record(p, p->n_records);
            add(p, OP_SYNC);
        }
        annotate(p, NC_GLOBAL, "history_", i, NC_CHAR, 2000, enddef_plain);
    }
}

static void begin_large(struct plan *p, size_t n_x, size_t n_y) {
    create(p, 0);
    int time = dim(p, "time", 0), x = dim(p, "x", n_x), y = dim(p, "y", n_y);
    var1(p, "base", NC_DOUBLE, x);
    var2(p, "a", NC_DOUBLE, time, y);
    var2(p, "b", NC_SHORT, time, y);
    enddef_tight(p);
    put_fixed(p);
    for (int r = 0; r < 3; r++) put_record(p, r);
}

/* Megabytes have to move. */
static void grow_large(struct plan *p) {
    begin_large(p, 150000, 40001);
    for (int i = 0; i < p->rounds; i++) {
        annotate(p, NC_GLOBAL, "history_", i, NC_CHAR, 5000, enddef_tight);
        put_record(p, p->n_records);
        add(p, OP_SYNC);
    }
}

/* Megabytes have to move inside a file that has a second name, more than fits one step. */
static void move_large(struct plan *p) {
    begin_large(p, 1100003, 50021);
    give_link(p);
    for (int i = 0; i < p->rounds; i++) {
        annotate(p, NC_GLOBAL, "history_", i, NC_CHAR, 5000, enddef_tight);
        put_record(p, p->n_records);
        add(p, OP_SYNC);
    }
}

/* The same of few data, which land where none was: the header and a new variable where they came from. */
static void move_small(struct plan *p) {
    begin_large(p, 60, 41);
    give_link(p);
    for (int i = 0; i < p->rounds; i++) {
        annotate(p, NC_GLOBAL, "history_", i, NC_CHAR, 6000, enddef_tight);
        put_record(p, p->n_records);
        add(p, OP_SYNC);
    }
    add(p, OP_REDEF);
    int wide = dim(p, "wide", 2500);
    var1(p, "late", NC_DOUBLE, wide);
    enddef_tight(p);
}

/* The header of many pages outgrows its room. */
static void grow_many(struct plan *p) {
    begin_many(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        annotate(p, 10 + i, "note_", i, NC_DOUBLE, 40, enddef_tight);
        go_on(p);
    }
}

static void record_var_steps(struct plan *p) {
    char name[NAME_BYTES];
    for (int i = 0; i < p->rounds; i++) {
        add(p, OP_REDEF);
        indexed(name, "more_", i);
        nc_type type = (nc_type[]){NC_SHORT, NC_DOUBLE, NC_BYTE}[i % 3];
        int v = var2(p, name, type, 0, 2);
        enddef_plain(p);
        put(p, v, 0, 2);
        go_on(p);
    }
}

static void add_record_var(struct plan *p) {
    begin(p, 0, enddef_plain);
    reopen(p, 0);
    record_var_steps(p);
}

static void fixed_var_steps(struct plan *p) {
    char name[NAME_BYTES];
    for (int i = 0; i < p->rounds; i++) {
        add(p, OP_REDEF);
        indexed(name, "fixed_", i);
        int v = var1(p, name, (nc_type[]){NC_DOUBLE, NC_BYTE, NC_FLOAT}[i % 3], 1);
        indexed(name, "small_", i);
        var1(p, name, NC_SHORT, 2);
        enddef_plain(p);
        put_all(p, v);
        go_on(p);
    }
}

static void add_fixed_var(struct plan *p) {
    begin(p, 0, enddef_plain);
    reopen(p, 0);
    fixed_var_steps(p);
}

/* Both in a file with a second name. */
static void add_linked(struct plan *p) {
    begin(p, 0, enddef_plain);
    give_link(p);
    record_var_steps(p);
    fixed_var_steps(p);
}

static void att_in_data_mode(struct plan *p) {
    begin_many(p, 0);
    reopen(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        att(p, i * 13 % 64, "valid_range", NC_DOUBLE, 2);
        att(p, 5, "long_name", NC_CHAR, 65);
        att(p, 61, "long_name", NC_CHAR, 60);
        go_on(p);
    }
}

static void rename_in_data_mode(struct plan *p) {
    char name[NAME_BYTES], to[NAME_BYTES];
    begin_many(p, 0);
    reopen(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        int v = i * 29 % 64;
        indexed(name, "variable_", v);
        indexed(to, "renamed_", v);
        rename_it(p, OP_RENAME_VAR, v, name, to);
        rename_it(p, OP_RENAME_DIM, 1, i % 2 ? "y" : "x", i % 2 ? "x" : "y");
        rename_it(p, OP_RENAME_ATT, 3, i % 2 ? "full_name" : "long_name",
                  i % 2 ? "long_name" : "full_name");
        go_on(p);
        if (i == 50) break; /* variables are renamed once */
    }
}

static void aligned(struct plan *p) {
    char name[NAME_BYTES];
    begin(p, 0, enddef_plain);
    for (int i = 0; i < p->rounds; i++) {
        add(p, OP_REDEF);
        indexed(name, "note_", i);
        att(p, NC_GLOBAL, name, NC_CHAR, 100);
        enddef_as(p, 10, (size_t)512 << i % 4, 100, (size_t)1024 << i % 3);
        go_on(p);
    }
}

static void nofill(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    add(p, OP_FILL)->arg = NC_NOFILL;
    int time = dim(p, "time", 0), x = dim(p, "x", 333);
    var1(p, "depth", NC_FLOAT, x);
    var2(p, "temp", NC_DOUBLE, time, x);
    var2(p, "level", NC_SHORT, time, x);
    enddef_tight(p);
    put_all(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        put(p, 1, (size_t)p->n_records, 2); /* the second of the two has no level */
        put(p, 2, (size_t)p->n_records - 2, 1);
        add(p, OP_SYNC);
        add(p, OP_REDEF);
        indexed(name, "more_", i);
        if (i % 2)
            var2(p, name, NC_SHORT, time, x);
        else
            att(p, NC_GLOBAL, name, NC_CHAR, 333);
        enddef_tight(p);
        put(p, p->n_vars - 1, 0, 1);
    }
}

/* One record variable: its records are not padded, until there is a second. */
static void single(struct plan *p) {
    create(p, 0);
    int time = dim(p, "time", 0), x = dim(p, "x", 3), y = dim(p, "y", 701);
    var1(p, "depth", NC_SHORT, x);
    var2(p, "bytes", NC_BYTE, time, y);
    enddef_plain(p);
    put_fixed(p);
    for (int i = 0; i < p->rounds; i++) {
        put(p, 1, (size_t)p->n_records, 3);
        put(p, 1, (size_t)(p->n_records - 2), 1);
        add(p, OP_SYNC);
    }
    add(p, OP_REDEF);
    att(p, NC_GLOBAL, "history", NC_CHAR, 4000);
    enddef_plain(p);
    put(p, 1, 1, 2);
    add(p, OP_REDEF);
    var2(p, "shorts", NC_SHORT, time, x);
    enddef_plain(p);
    for (int i = 0; i < p->rounds; i++) go_on(p);
}

static void aborted(struct plan *p) {
    begin(p, 0, enddef_plain);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        int n_dims = p->n_dims, n_vars = p->n_vars;
        add(p, OP_SYNC);
        add(p, OP_REDEF);
        att(p, NC_GLOBAL, "lost", NC_CHAR, 9000);
        var1(p, "lost", NC_DOUBLE, dim(p, "lost", 77));
        add(p, OP_ABORT);
        p->n_dims = n_dims, p->n_vars = n_vars;
        add(p, OP_OPEN);
        put_record(p, p->n_records);
    }
}

/* Closed while still defining. */
static void close_defining(struct plan *p) {
    char name[NAME_BYTES];
    begin(p, 0, enddef_plain);
    for (int i = 0; i < p->rounds; i++) {
        add(p, OP_REDEF);
        indexed(name, "history_", i);
        att(p, NC_GLOBAL, name, NC_CHAR, 3000);
        reopen(p, 0);
        put_record(p, p->n_records);
    }
}

const struct scene scenes[] = {
    {"create", create_only, 1, BOTH},
    {"append", append, 9, BOTH},
    {"append-shared", append_shared, 5, BOTH},
    {"att-small", att_small, 5, BOTH},
    {"att-many", att_many, 3, BOTH},
    {"att-symlink", att_symlink, 2, CLASSIC},
    {"grow-fixed", grow_fixed, 4, BOTH},
    {"grow-default", grow_default, 3, BOTH},
    {"grow-many", grow_many, 3, CLASSIC},
    {"grow-large", grow_large, 2, CLASSIC},
    {"grow-shared", grow_shared, 2, CLASSIC},
    {"grow-linked", grow_linked, 2, CLASSIC},
    {"move-large", move_large, 1, CLASSIC},
    {"move-small", move_small, 2, CLASSIC},
    {"grow-symlink", grow_symlink, 2, BOTH},
    {"grow-mode", grow_mode, 2, CLASSIC},
    {"grow-owner", grow_owner, 2, BOTH},
    {"record-var", add_record_var, 3, BOTH},
    {"fixed-var", add_fixed_var, 3, BOTH},
    {"add-linked", add_linked, 3, CLASSIC},
    {"att-data", att_in_data_mode, 4, BOTH},
    {"rename", rename_in_data_mode, 4, BOTH},
    {"aligned", aligned, 4, CLASSIC},
    {"nofill", nofill, 4, BOTH},
    {"single", single, 4, BOTH},
    {"abort", aborted, 3, BOTH},
    {"close-define", close_defining, 3, BOTH},
    {NULL, NULL, 0, 0},
};
