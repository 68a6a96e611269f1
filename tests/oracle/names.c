/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Names of all objects: what is allowed, and when two are the same. */
#include "harness.h"

static const char *const NAMES[] = {
    "a", "_a", "9a", "a b", "a ", " a", "a\t", "a\n", "a\x01" "b", "a\x7f", "a/b", "/", "a:b", "a.b",
    "a@b", "a+b-c", "a(b)", "a[b]", "a{b}", "a*b", "a\\b", "a\"b", "a'b", "a#b", "a%b", "a&b", "a;b",
    "a<b>", "a?b", "a^b", "a|b", "a~b", "a!b", "a$b", "a,b", "a=b", "+a", "-a", "@a", ".a", "!a", "~",
    "#a", "a`", "temp\xc3\xa9rature", "tempe\xcc\x81rature", "\xc3\xa9", "e\xcc\x81",
    "\xe6\xb8\xa9\xe5\xba\xa6", "\xf0\x9f\x8c\x8a", "\xe2\x84\xab", "\xc3\x85", "A\xcc\x8a",
    "\xff", "\xc3", "a\xc3(", "\xed\xa0\x80", "\xc0\xaf", "a\xe2\x80", "\xef\xac\x81", "fi",
    "\xe1\xbe\xb3", "_FillValue", "_NCProperties", "_Netcdf4Dimid", "NaN",
};

static void try_all(int nc, int v) {
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        int id = -77;
        text("name", NAMES[i], 99);
        R(nc_def_dim(nc, NAMES[i], 1, &id));
        ints("id", &id, 1);
        id = -77;
        R(nc_def_var(nc, NAMES[i], NC_INT, 0, NULL, &id));
        ints("id", &id, 1);
        R(nc_put_att_int(nc, v, NAMES[i], NC_INT, 1, &id));
    }
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        int id = -77;
        size_t len = 77;
        text("name", NAMES[i], 99);
        R(nc_inq_dimid(nc, NAMES[i], &id));
        ints("id", &id, 1);
        id = -77;
        R(nc_inq_varid(nc, NAMES[i], &id));
        ints("id", &id, 1);
        id = -77;
        R(nc_inq_attid(nc, v, NAMES[i], &id));
        ints("id", &id, 1);
        R(nc_inq_attlen(nc, v, NAMES[i], &len));
    }
}

static void lengths(int nc, int v) {
    static const size_t lens[] = {1, 3, 4, 5, 255, 256, 257, 300, 1000};
    for (size_t i = 0; i < COUNT(lens); i++) {
        char name[1001];
        int id = -77;
        memset(name, 'n', lens[i]);
        name[lens[i]] = 0;
        note("%zu bytes", lens[i]);
        R(nc_def_dim(nc, name, 1, &id));
        R(nc_def_var(nc, name, NC_BYTE, 0, NULL, &id));
        R(nc_put_att_int(nc, v, name, NC_INT, 1, &id));
        R(nc_inq_dimid(nc, name, &id));
        R(nc_inq_varid(nc, name, &id));
        R(nc_inq_attid(nc, v, name, &id));
        R(nc_rename_dim(nc, 0, name));
        R(nc_rename_var(nc, 0, name));
        R(nc_rename_att(nc, v, "a", name));
    }
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        int nc, v;
        char *path = path_of("names", FORMATS[f].name);
        note("format %s", FORMATS[f].name);
        R(nc_create(path, FORMATS[f].flags, &nc));
        R(nc_def_var(nc, "holder", NC_INT, 0, NULL, &v));
        try_all(nc, v);
        try_all(nc, NC_GLOBAL);
        lengths(nc, v);
        note("renames");
        for (size_t i = 0; i < COUNT(NAMES); i++) {
            text("name", NAMES[i], 99);
            R(nc_rename_dim(nc, 0, NAMES[i]));
            R(nc_rename_var(nc, 0, NAMES[i]));
            R(nc_rename_att(nc, v, "NaN", NAMES[i]));
            R(nc_rename_att(nc, v, NAMES[i], "NaN"));
        }
        R(nc_close(nc));
        describe_file(path);
    }
    return 0;
}
