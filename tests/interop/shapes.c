/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cases.h"

static int nested(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), at = nc;
    fill_all(nc, var(nc, "v", NC_INT, x), 0);
    for (unsigned level = 1; level <= 20; level++) {
        char name[40];
        snprintf(name, sizeof name, "level %u", level);
        at = group(at, name);
        if (level % 4 == 0) x = dim(at, "x", level);        /* hides the one above */
        text_att(at, NC_GLOBAL, "where", name);
        int v = var(at, "v", NC_INT, x);
        fill_all(at, v, level);
        MUST(nc_put_att_int(at, v, "level", NC_INT, 1, &(int){(int)level}));
    }
    return nc;
}

static int groups_300(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3);
    for (unsigned i = 0; i < 300; i++) {
        char name[40];
        snprintf(name, sizeof name, "g%u", (i * 131) % 300);
        int g = group(nc, name);
        MUST(nc_put_att_int(g, NC_GLOBAL, "i", NC_INT, 1, &(int){(int)i}));
        if (i % 10 == 0) fill_all(g, var(g, "v", NC_SHORT, x), i);
        if (i % 50 == 0) group(g, "child");
    }
    return nc;
}

static int variables_1000(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), t = dim(nc, "t", NC_UNLIMITED), ids[1000];
    for (unsigned i = 0; i < 1000; i++) {
        char name[40];
        snprintf(name, sizeof name, "variable_%u", (i * 377) % 1000);
        ids[i] = i % 2 ? var(nc, name, NC_FLOAT, t, x) : var(nc, name, NC_INT, x);
        text_att(nc, ids[i], "units", "m s-1");
        MUST(nc_put_att_int(nc, ids[i], "number", NC_INT, 1, &(int){(int)i}));
        if (i % 2) MUST(nc_def_var_chunking(nc, ids[i], NC_CHUNKED, AT(1, 3)));
    }
    MUST(nc_enddef(nc));
    for (unsigned i = 0; i < 1000; i += 3) {
        if (i % 2) fill_block(nc, ids[i], AT(0, 0), AT(2, 3), i);
        else fill_all(nc, ids[i], i);
    }
    return nc;
}

static int several_unlimited(const char *path) {
    int nc = create(path, 0), t = dim(nc, "t", NC_UNLIMITED), u = dim(nc, "u", NC_UNLIMITED), never = dim(nc, "never", NC_UNLIMITED);
    int x = dim(nc, "x", 3), g = group(nc, "g"), inner = dim(g, "inner", NC_UNLIMITED), shadow = dim(g, "t", NC_UNLIMITED);
    int both = var(nc, "both", NC_INT, t, u), tx = var(nc, "tx", NC_SHORT, t, x), all = var(g, "all", NC_DOUBLE, t, x, inner, u);
    var(nc, "empty", NC_INT, never);
    var(nc, "empty too", NC_FLOAT, x, never);
    fill_block(nc, both, AT(0, 0), AT(2, 3), 1);
    fill_block(nc, both, AT(1, 5), AT(3, 1), 2);
    fill_block(nc, tx, AT(6, 0), AT(1, 3), 3);
    fill_block(g, all, AT(1, 0, 0, 1), AT(2, 3, 4, 2), 4);
    fill_block(g, var(g, "own", NC_INT, shadow), AT(0), AT(2), 5);
    fill_block(nc, var(nc, "u", NC_INT, u), AT(0), AT(2), 6);
    return nc;
}

/* Each of many unlimited dimensions has a coordinate and is shared with the next; all of one length,
 * because netCDF-C misplaces what is read of variables that are shorter. */
static int many_unlimited(const char *path) {
    int nc = create(path, 0), g = group(nc, "g"), ids[16], scales[16], pairs[16];
    for (int i = 0; i < 16; i++) {
        char name[40];
        snprintf(name, sizeof name, "t%d", i);
        ids[i] = dim(i % 2 ? g : nc, name, NC_UNLIMITED);
        if (i % 3) scales[i] = var(i % 2 ? g : nc, name, NC_INT, ids[i]);
        snprintf(name, sizeof name, "pair %d", i);
        if (i) pairs[i] = var(g, name, NC_SHORT, ids[i - 1], ids[i]);
    }
    for (size_t r = 0; r < 5; r++)
        for (int i = 0; i < 16; i++) {
            if (i % 3) fill_block(i % 2 ? g : nc, scales[i], AT(r), AT(1), (unsigned)i);
            if (i) {
                fill_block(g, pairs[i], AT(r, 0), AT(1, r + 1), (unsigned)i);
                fill_block(g, pairs[i], AT(0, r), AT(r + 1, 1), (unsigned)i + 50);
            }
        }
    return nc;
}

/* One variable makes a record dimension longer; the others give fill values there. */
static int past_the_end(const char *path) {
    int nc = create(path, 0), t = dim(nc, "t", NC_UNLIMITED), x = dim(nc, "x", 4);
    int kinds[] = {NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE, NC_UINT64, NC_STRING}, v[8];
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char name[40];
        snprintf(name, sizeof name, "v%zu", i);
        v[i] = var(nc, name, kinds[i], t, x);
    }
    int owned = var(nc, "owned", NC_INT, t, x), bare = var(nc, "bare", NC_INT, t), scale = var(nc, "t", NC_DOUBLE, t);
    MUST(nc_def_var_fill(nc, owned, NC_FILL, &(int){-1}));
    for (size_t i = 0; i < COUNT(kinds); i++) fill_block(nc, v[i], AT(0, 0), AT(i % 3, 4), (unsigned)i);
    fill_block(nc, owned, AT(0, 1), AT(2, 2), 9);
    fill_block(nc, bare, AT(9), AT(1), 10);
    int read[40];
    SAY(nc_get_vara_int(nc, owned, AT(0, 0), AT(10, 4), read));
    for (int i = 0; i < 40; i++) printf(" %d", read[i]);
    SAY(nc_get_vara_int(nc, owned, AT(10, 0), AT(1, 4), read));
    MUST(nc_close(nc));
    nc = reopen(path);
    fill_block(nc, owned, AT(3, 0), AT(2, 4), 11);
    fill_block(nc, scale, AT(0), AT(3), 12);
    return nc;
}

static int coordinates(const char *path) {
    int nc = create(path, 0), t = dim(nc, "time", NC_UNLIMITED), y = dim(nc, "lat", 4), x = dim(nc, "lon", 5), n = dim(nc, "name", 8);
    int z = dim(nc, "level", 2), g = group(nc, "g"), own = dim(g, "own", 3);
    /* Some before their users, some after; not in the order of the dimensions. */
    int lon = var(nc, "lon", NC_FLOAT, x), data = var(nc, "data", NC_FLOAT, t, z, y, x), lat = var(nc, "lat", NC_DOUBLE, y);
    int time = var(nc, "time", NC_INT, t), level = var(nc, "level", NC_SHORT, z), text = var(nc, "text", NC_CHAR, t, n);
    text_att(nc, lon, "units", "degrees_east");
    text_att(nc, lat, "units", "degrees_north");
    text_att(nc, time, "units", "days since 2000-01-01");
    fill_all(nc, lon, 1);
    fill_all(nc, lat, 2);
    fill_all(nc, level, 3);
    fill_all(g, var(g, "own", NC_INT, own), 4);
    fill_all(g, var(g, "uses", NC_INT, own, y), 5);
    for (unsigned r = 0; r < 3; r++) {
        fill_block(nc, time, AT(r), AT(1), r);
        fill_block(nc, data, AT(r, 0, 0, 0), AT(1, 2, 4, 5), r + 10);
        fill_block(nc, text, AT(r, 0), AT(1, 8), r);
    }
    return nc;
}

static int many_dimensional_coordinates(const char *path) {
    int nc = create(path, 0), t = dim(nc, "time", NC_UNLIMITED), n = dim(nc, "name_len", 6), s = dim(nc, "station", 3), x = dim(nc, "x", 2);
    int station = var(nc, "station", NC_CHAR, s, n), time = var(nc, "time", NC_DOUBLE, t, x), user = var(nc, "user", NC_INT, t, s);
    int cube = var(nc, "x", NC_SHORT, x, s, n);
    fill_all(nc, station, 1);
    fill_block(nc, time, AT(0, 0), AT(2, 2), 2);
    fill_block(nc, user, AT(0, 0), AT(3, 3), 3);
    fill_all(nc, cube, 4);
    text_att(nc, station, "long_name", "name of the station");
    return nc;
}

/* Variables named like a dimension that is not their first one. */
static int not_coordinates(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), y = dim(nc, "y", 2), z = dim(nc, "z", 4), g = group(nc, "g");
    fill_all(nc, var(nc, "x", NC_INT, y), 1);
    fill_all(nc, var(nc, "y", NC_INT, x, y), 2);
    fill_all(nc, var(nc, "z", NC_INT), 3);
    fill_all(nc, var(nc, "plain", NC_INT, z, y, x), 4);
    /* In a group below, the same name is a variable like any other. */
    fill_all(g, var(g, "x", NC_INT, x), 5);
    MUST(nc_close(nc));
    nc = reopen(path);
    int x2 = dim(nc, "later", 2);
    fill_all(nc, var(nc, "later", NC_INT, x), 6);
    fill_all(nc, var(nc, "uses later", NC_INT, x2), 7);
    return nc;
}

static int coordinate_later(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), y = dim(nc, "y", 2), t = dim(nc, "t", NC_UNLIMITED);
    fill_all(nc, var(nc, "a", NC_INT, y, x), 1);
    int r = var(nc, "r", NC_FLOAT, t, x);
    fill_block(nc, r, AT(0, 0), AT(2, 3), 2);
    MUST(nc_redef(nc));
    fill_all(nc, var(nc, "x", NC_DOUBLE, x), 3);
    MUST(nc_close(nc));
    nc = reopen(path);
    fill_block(nc, var(nc, "t", NC_DOUBLE, t), AT(0), AT(2), 4);
    fill_all(nc, var(nc, "y", NC_DOUBLE, y), 5);
    fill_all(nc, var(nc, "b", NC_INT, y, x), 6);
    return nc;
}

static int repeated(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 3), t = dim(nc, "t", NC_UNLIMITED);
    fill_all(nc, var(nc, "covariance", NC_DOUBLE, x, x), 1);
    fill_all(nc, var(nc, "cube", NC_SHORT, x, x, x), 2);
    fill_block(nc, var(nc, "records", NC_INT, t, x, x), AT(0, 0, 0), AT(2, 3, 3), 3);
    return nc;
}

static int ranks(const char *path) {
    int nc = create(path, 0), dims[10];
    for (int d = 0; d < 10; d++) {
        char name[40];
        snprintf(name, sizeof name, "d%d", d);
        dims[d] = dim(nc, name, (size_t)(d % 3 + 1));
        snprintf(name, sizeof name, "rank %d", d + 1);
        fill_all(nc, var_(nc, name, NC_INT, dims, d + 1), (unsigned)d);
    }
    for (int t = NC_BYTE; t <= NC_STRING; t++) {
        char name[40];
        snprintf(name, sizeof name, "scalar of type %d", t);
        int v = var_(nc, name, t, NULL, 0);
        if (t % 3) fill_all(nc, v, (unsigned)t);
        text_att(nc, v, "a", "b");
    }
    return nc;
}

static int empty(const char *path) {
    return create(path, 0);
}

static int only_dimensions(const char *path) {
    int nc = create(path, 0), g = group(nc, "g");
    dim(nc, "a", 4);
    dim(nc, "b", NC_UNLIMITED);
    dim(g, "a", 5);
    dim(nc, "large", 3000000000u);
    return nc;
}

static int no_scales_attached(const char *path) {
    int nc = create(path, NC_NODIMSCALE_ATTACH), x = dim(nc, "x", 3), t = dim(nc, "t", NC_UNLIMITED);
    fill_all(nc, var(nc, "x", NC_INT, x), 1);
    fill_block(nc, var(nc, "v", NC_INT, t, x), AT(0, 0), AT(2, 3), 2);
    return nc;
}

/* More users of one dimension than its list fits in a message, were there 64 KiB. */
static int much_used(const char *path) {
    int nc = create(path, 0), x = dim(nc, "x", 2);
    for (int i = 0; i < 700; i++) {
        char name[40];
        snprintf(name, sizeof name, "v%d", i);
        var(nc, name, NC_BYTE, x, x, x);
    }
    return nc;
}

const case_t SHAPE_CASES[] = {
    {"nested-groups", nested},
    {"groups-300", groups_300},
    {"variables-1000", variables_1000},
    {"several-unlimited", several_unlimited},
    {"many-unlimited", many_unlimited},
    {"past-the-end", past_the_end},
    {"coordinates", coordinates},
    {"coordinates-2d", many_dimensional_coordinates},
    {"not-coordinates", not_coordinates},
    {"coordinate-later", coordinate_later},
    {"repeated-dims", repeated},
    {"ranks", ranks},
    {"empty", empty},
    {"only-dims", only_dimensions},
    {"no-scales-attached", no_scales_attached},
    {"much-used", much_used},
    {NULL, NULL},
};
