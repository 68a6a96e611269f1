/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The scenarios that only netCDF-4 files have. */
#include "build.h"

#include <stddef.h>

#define ONLY (1 << NETCDF4)
#define FILTERED (LAYOUT_CHUNKED | LAYOUT_SHUFFLE)

/* The last variable of a group. */
static int add_var(struct plan *p, int in, const char *name, nc_type type, int d0, int d1) {
    return var(p, in, name, type, d1 < 0 ? 1 : 2, (int[]){d0, d1});
}

/* All that the data model has: groups in groups, types, two unlimited dimensions, filters. */
static void whole_model(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    for (nc_type t = TYPE_PAIR; t < TYPE_BLOB; t++) type(p, t);
    const int time = dim(p, "time", 0), x = dim(p, "x", 41);
    const int sea = group(p, 0, "sea"), deep = group(p, sea, "deep"), ice = group(p, 0, "ice");
    const int event = dim_in(p, sea, "event", 0), level = dim_in(p, deep, "level", 7);
    add_var(p, 0, "depth", NC_DOUBLE, x, -1);
    add_var(p, 0, "time", NC_DOUBLE, time, -1);
    layout(p, add_var(p, 0, "temp", NC_FLOAT, time, x), FILTERED, 1, 3);
    layout(p, add_var(p, 0, "a_pair", TYPE_PAIR, time, x), FILTERED | LAYOUT_CHECKSUM, 4, 2);
    add_var(p, sea, "a_kind", TYPE_KIND, event, -1);
    add_var(p, sea, "label", NC_STRING, event, -1);
    layout(p, add_var(p, deep, "a_list", TYPE_LIST, event, level), LAYOUT_CHUNKED, 0, 2);
    add_var(p, deep, "level", NC_SHORT, level, -1);
    add_var(p, ice, "names", NC_STRING, x, -1);
    att(p, NC_GLOBAL, "title", NC_STRING, 3);
    att(p, 2, "pairs", TYPE_PAIR, 3);
    att_in(p, deep, "lists", TYPE_LIST, 2);
    att_in(p, ice, "kinds", TYPE_KIND, 5);
    enddef_plain(p);
    put_fixed(p);
    for (int r = 0; r < 3; r++) put_record(p, r);
    add(p, OP_SYNC);
    reopen(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        put_record(p, p->n_records);
        put(p, i * 3 % p->n_vars, 1, 2); /* over what is there */
        if (i % 2) add(p, OP_SYNC);
        add(p, OP_REDEF);
        if (i == 0) {
            /* A type, and at once somebody who has it in another group. */
            type(p, TYPE_BLOB);
            att(p, 3, "blobs", TYPE_BLOB, 2);
            att_in(p, sea, "blobs", TYPE_BLOB, 3);
            add_var(p, sea, "a_blob", TYPE_BLOB, time, x);
        }
        indexed(name, "more_", i);
        const int g = i % 3 == 0 ? 0 : i % 3 == 1 ? sea : deep;
        const nc_type t = (nc_type[]){NC_STRING, TYPE_PAIR, NC_INT64}[i % 3];
        const int v = add_var(p, g, name, t, i % 2 ? x : time, -1);
        att_in(p, g, name, NC_STRING, 2);
        enddef_plain(p);
        put(p, v, 0, 2);
        go_on(p);
    }
}

/* Records into filtered chunks, complete and incomplete ones, and over both. */
static void filtered(struct plan *p) {
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 300), y = dim(p, "y", 37);
    layout(p, add_var(p, 0, "fixed", NC_DOUBLE, x, y), FILTERED, 1, 50);
    layout(p, add_var(p, 0, "one", NC_DOUBLE, time, x), FILTERED, 1, 1);
    layout(p, add_var(p, 0, "four", NC_FLOAT, time, x), LAYOUT_CHUNKED, 9, 4);
    layout(p, add_var(p, 0, "sums", NC_SHORT, time, y), LAYOUT_CHUNKED | LAYOUT_CHECKSUM, 0, 3);
    layout(p, add_var(p, 0, "long", NC_INT, time, -1), FILTERED, 2, 64);
    enddef_plain(p);
    put(p, 0, 20, 100);
    for (int r = 0; r < 6; r++) put_record(p, r);
    reopen(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        if (i % 2) put(p, 0, (size_t)(i * 7 % 200), 90);
        if (i % 3 == 0) put(p, 1 + i % 4, (size_t)(i % p->n_records), 1);
        if (i % 5 == 0) put(p, 1, 0, (size_t)p->n_records);
        if (i % 3 == 2) add(p, OP_SYNC);
        if (i % 16 == 15) reopen(p, 0);
    }
}

/* A contiguous variable, chunks without filters and a chunk that is most of the file: written over
 * where they are. */
static void in_place(struct plan *p) {
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 300), y = dim(p, "y", 37);
    layout(p, add_var(p, 0, "fixed", NC_DOUBLE, x, y), LAYOUT_CONTIGUOUS, 0, 0);
    layout(p, add_var(p, 0, "rows", NC_DOUBLE, time, x), LAYOUT_CHUNKED, 0, 1);
    layout(p, add_var(p, 0, "many", NC_FLOAT, time, y), LAYOUT_CHUNKED, 0, 1000);
    layout(p, add_var(p, 0, "tiles", NC_SHORT, x, y), LAYOUT_CHUNKED, 0, 7);
    enddef_plain(p);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        put(p, 0, (size_t)(i * 31 % 200), 40);
        put(p, 3, (size_t)(i * 17 % 200), 10);
        if (i % 2) put(p, 1 + i % 3 / 2, 0, (size_t)p->n_records);
        if (i % 3 == 2) add(p, OP_SYNC);
        if (i % 8 == 7) reopen(p, 0);
    }
}

/* Attributes and names beyond what headers hold, and large attributes. */
static void dense(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 5);
    add_var(p, 0, "first", NC_INT, x, -1);
    add_var(p, 0, "rows", NC_DOUBLE, time, x);
    for (int i = 0; i < 58; i++) {
        indexed(name, "note_", i);
        att(p, NC_GLOBAL, name, NC_CHAR, 20 + (size_t)i);
        att(p, 1, name, i % 4 ? NC_DOUBLE : NC_STRING, 2);
        indexed(name, "v_", i);
        add_var(p, 0, name, NC_SHORT, x, -1);
    }
    enddef_plain(p);
    put_record(p, 0);
    add(p, OP_SYNC);
    for (int i = 0; i < p->rounds; i++) {
        add(p, OP_REDEF);
        for (int k = 0; k < 3; k++) {
            indexed(name, "more_", 3 * i + k);
            att(p, k ? 1 : NC_GLOBAL, name, NC_DOUBLE, 4);
            att(p, k ? NC_GLOBAL : 1, name, NC_STRING, 2);
            add_var(p, 0, name, NC_INT, k ? x : time, -1);
        }
        if (i % 3 == 1) att(p, i % 2 ? NC_GLOBAL : 1, "large", NC_DOUBLE, 8000 + 500 * (size_t)i);
        if (i % 3 == 2) {
            indexed(name, "note_", i);
            del_att(p, i % 2 ? NC_GLOBAL : 1, name);
        }
        enddef_plain(p);
        go_on(p);
    }
}

/* Variables become coordinates and cease to be; dimensions get other names. */
static void scales(struct plan *p) {
    char name[NAME_BYTES], was[NAME_BYTES] = "y";
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 9), y = dim(p, "y", 4);
    const int sub = group(p, 0, "sub"), z = dim_in(p, sub, "z", 3);
    add_var(p, 0, "x", NC_DOUBLE, x, -1);
    const int b = add_var(p, 0, "b", NC_FLOAT, y, -1);
    const int t = add_var(p, 0, "t", NC_INT, time, -1);
    add_var(p, 0, "data", NC_DOUBLE, time, x);
    add_var(p, sub, "z", NC_DOUBLE, z, -1);
    add_var(p, sub, "inner", NC_SHORT, time, z);
    add_var(p, sub, "outer", NC_SHORT, x, y);
    enddef_plain(p);
    put_fixed(p);
    put_record(p, 0);
    reopen(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        rename_it(p, OP_RENAME_VAR, b, i % 2 ? was : "b", i % 2 ? "b" : was);
        go_on(p);
        rename_it(p, OP_RENAME_VAR, t, i % 2 ? "time" : "t", i % 2 ? "t" : "time");
        add(p, OP_SYNC);
        if (i % 4 == 1) {
            indexed(name, "y", i);
            rename_it(p, OP_RENAME_DIM, y, was, name);
            indexed(was, "y", i);
            add(p, OP_SYNC);
        }
        if (i % 4 == 2) rename_it(p, OP_RENAME_DIM, x, "x", "across");
        if (i % 4 == 3) rename_it(p, OP_RENAME_DIM, x, "across", "x");
        indexed(name, "new_", i);
        const int d = i % 3 == 1 ? y : dim_in(p, i % 3 ? sub : 0, name, 3);
        put_all(p, add_var(p, i % 3 == 2 ? 0 : sub, name, NC_INT, i % 3 == 2 ? y : d, -1));
        go_on(p);
    }
}

/* Many variables, which all change in one commit. */
static void many(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 6);
    for (int i = 0; i < 200; i++) {
        indexed(name, "variable_", i);
        const nc_type t = i % 2 ? NC_FLOAT : NC_SHORT;
        const int v = add_var(p, 0, name, t, i % 5 ? time : x, i % 5 ? x : -1);
        if (i % 3 == 0) layout(p, v, FILTERED, 1, 2);
        att(p, v, "long_name", NC_CHAR, 40);
    }
    enddef_plain(p);
    put_fixed(p);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        add(p, OP_SYNC);
    }
}

/* Strings and lists, put over others of other lengths, in all layouts. */
static void strings(struct plan *p) {
    create(p, 0);
    type(p, TYPE_LIST);
    const int time = dim(p, "time", 0), x = dim(p, "x", 130);
    layout(p, add_var(p, 0, "names", NC_STRING, x, -1), LAYOUT_CONTIGUOUS, 0, 0);
    add_var(p, 0, "lists", TYPE_LIST, x, -1);
    layout(p, add_var(p, 0, "rows", NC_STRING, time, x), LAYOUT_CHUNKED, 0, 2);
    layout(p, add_var(p, 0, "wide", NC_STRING, time, x), LAYOUT_CHUNKED, 0, 16);
    add_var(p, 0, "tags", TYPE_LIST, time, -1);
    att(p, 0, "words", NC_STRING, 40);
    enddef_plain(p);
    put_fixed(p);
    for (int i = 0; i < p->rounds; i++) {
        put_record(p, p->n_records);
        put(p, i % 2, (size_t)(i * 7 % 60), 50);
        if (i % 2) put(p, 2 + i / 2 % 3, 0, (size_t)p->n_records);
        att(p, 0, "words", NC_STRING, 40);
        add(p, OP_SYNC);
        if (i % 4 == 3) reopen(p, 0);
    }
}

/* Nobody says redef or enddef, and much is defined when there are data already. */
static void implicit(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 30);
    add_var(p, 0, "fixed", NC_INT, x, -1);
    add_var(p, 0, "rows", NC_DOUBLE, time, x);
    put_fixed(p);
    put_record(p, 0);
    for (int i = 0; i < p->rounds; i++) {
        indexed(name, "more_", i);
        att(p, i % 2 ? NC_GLOBAL : 1, name, NC_FLOAT, 3);
        const int d = i % 2 ? dim(p, name, 12) : time;
        put_record(p, p->n_records);
        const int v = add_var(p, 0, name, NC_SHORT, d, -1);
        put(p, v, 0, 1);
        rename_it(p, OP_RENAME_ATT, i % 2 ? NC_GLOBAL : 1, name, "same");
        del_att(p, i % 2 ? NC_GLOBAL : 1, "same");
        if (i % 2) add(p, OP_SYNC);
        if (i % 4 == 2) reopen(p, 0);
    }
}

static void classic_model(struct plan *p) {
    char name[NAME_BYTES];
    create(p, NC_CLASSIC_MODEL);
    const int time = dim(p, "time", 0), x = dim(p, "x", 30);
    add_var(p, 0, "fixed", NC_INT, x, -1);
    add_var(p, 0, "rows", NC_DOUBLE, time, x);
    enddef_plain(p);
    put_fixed(p);
    for (int i = 0; i < p->rounds; i++) {
        go_on(p);
        add(p, OP_REDEF);
        indexed(name, "more_", i);
        add_var(p, 0, name, NC_SHORT, time, x);
        att(p, i % 2, name, NC_DOUBLE, 10);
        enddef_plain(p);
        if (i % 2) reopen(p, 0);
    }
}

#define COMMIT_BYTES ((size_t)64 << 20) /* put since the last commit */
#define COUNTED_BYTES ((size_t)512 << 10)

/* A put that begins a record commits those before it, when so much was put. The chunks stay
 * incomplete, so that little is written. */
static void counted(struct plan *p) {
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", COUNTED_BYTES / 8);
    layout(p, add_var(p, 0, "rows", NC_DOUBLE, time, x), FILTERED, 1, 3);
    enddef_plain(p);
    for (int i = 0; i < p->rounds; i++) {
        const size_t record = (size_t)p->n_records;
        for (size_t done = 0; done < COMMIT_BYTES; done += COUNTED_BYTES)
            put(p, 0, record + done / COUNTED_BYTES % 2, 1);
        put(p, 0, (size_t)p->n_records, 1);
        p->ops[p->n - 1].arg = 1;
    }
}

/* Of attributes beyond what headers hold a few change in each commit: added, put again with as many
 * values, and with more, deleted, renamed, one that is long. */
static void few_of_many(struct plan *p) {
    char name[NAME_BYTES];
    create(p, 0);
    const int time = dim(p, "time", 0), x = dim(p, "x", 5);
    add_var(p, 0, "first", NC_INT, x, -1);
    add_var(p, 0, "rows", NC_DOUBLE, time, x);
    for (int i = 0; i < 100; i++) {
        indexed(name, "note_", i);
        att(p, NC_GLOBAL, name, NC_CHAR, 20 + (size_t)i % 7);
        att(p, 1, name, i % 9 ? NC_DOUBLE : NC_STRING, 2);
    }
    enddef_plain(p);
    put_record(p, 0);
    add(p, OP_SYNC);
    for (int i = 0; i < p->rounds; i++) {
        const int to = i % 3 == 2 ? NC_GLOBAL : 1;
        add(p, OP_REDEF);
        indexed(name, "more_", i);
        att(p, to, name, NC_DOUBLE, 1 + (size_t)i % 3);
        if (i % 4 == 1) {
            indexed(name, "note_", 3 * i + 1);
            att(p, 1, name, NC_DOUBLE, 2);
            att(p, NC_GLOBAL, name, NC_CHAR, 40);
        }
        if (i % 4 == 2) {
            indexed(name, "note_", 3 * i + 2);
            del_att(p, to, name);
        }
        if (i % 4 == 3) {
            indexed(name, "note_", 3 * i);
            rename_it(p, OP_RENAME_ATT, to, name, "another");
            del_att(p, to, "another");
        }
        if (i % 8 == 5) att(p, to, "large", NC_DOUBLE, 600 + 10 * (size_t)i);
        enddef_plain(p);
        if (i % 5 == 4) put_record(p, p->n_records);
        if (i % 5 == 4) add(p, OP_SYNC);
    }
    reopen(p, 0);
    add(p, OP_REDEF);
    att(p, 1, "last", NC_INT, 3);
    enddef_plain(p);
    add(p, OP_REDEF);
    att(p, 1, "very_last", NC_INT, 3);
    enddef_plain(p);
}

const struct scene scenes4[] = {
    {"model4", whole_model, 3, ONLY},
    {"filtered", filtered, 12, ONLY},
    {"in-place", in_place, 9, ONLY},
    {"dense", dense, 5, ONLY},
    {"few-of-many", few_of_many, 24, ONLY},
    {"scales", scales, 5, ONLY},
    {"many4", many, 2, ONLY},
    {"strings", strings, 5, ONLY},
    {"implicit", implicit, 6, ONLY},
    {"classic-model", classic_model, 4, ONLY},
    {"counted", counted, 2, ONLY},
    {NULL, NULL, 0, 0},
};
