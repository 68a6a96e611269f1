/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Dimensions: definitions, names, inquiries, renames. */
#include "harness.h"

static void inquiries(int nc) {
    static const int ids[] = {-2, -1, 0, 1, 2, 3, 99};
    char name[NC_MAX_NAME + 1];
    size_t len;
    int id;
    for (size_t i = 0; i < COUNT(ids); i++) {
        note("dim %d", ids[i]);
        poison(name);
        len = 77;
        R(nc_inq_dim(nc, ids[i], name, &len));
        text("name", name, 20);
        sizes("len", &len, 1);
        R(nc_inq_dim(nc, ids[i], NULL, NULL));
        poison(name);
        R(nc_inq_dimname(nc, ids[i], name));
        text("name", name, 20);
        len = 77;
        R(nc_inq_dimlen(nc, ids[i], &len));
        sizes("len", &len, 1);
    }
    static const char *const names[] = {"x", "t", "X", "", " x", "nope", "y/z"};
    for (size_t i = 0; i < COUNT(names); i++) {
        id = -77;
        note("name \"%s\"", names[i]);
        R(nc_inq_dimid(nc, names[i], &id));
        ints("id", &id, 1);
        R(nc_inq_dimid(nc, names[i], NULL));
    }
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        int nc, id = -77, ro;
        char *path = path_of("dim", FORMATS[f].name);
        note("format %s", FORMATS[f].name);
        R(nc_create(path, FORMATS[f].flags, &nc));
        inquiries(nc);
        R(nc_def_dim(nc, "x", 3, &id));
        ints("id", &id, 1);
        R(nc_def_dim(nc, "t", NC_UNLIMITED, &id));
        ints("id", &id, 1);
        id = -77;
        R(nc_def_dim(nc, "t2", NC_UNLIMITED, &id));
        R(nc_def_dim(nc, "x", 4, &id));
        R(nc_def_dim(nc, "", 4, &id));
        R(nc_def_dim(nc, "a/b", 4, &id));
        R(nc_def_dim(nc, "trailing ", 4, &id));
        ints("id untouched", &id, 1);
        R(nc_def_dim(nc, "one", 1, NULL));
        static const size_t lens[] = {1, 2147483647u, 2147483644u, 2147483648u, 4294967291u,
                                      4294967292u, 4294967295u, 4294967296u, 1ul << 62, ~0ul};
        for (size_t i = 0; i < COUNT(lens); i++) {
            char name[40];
            snprintf(name, sizeof name, "len%zu", i);
            id = -77;
            note("length %zu", lens[i]);
            R(nc_def_dim(nc, name, lens[i], &id));
            ints("id", &id, 1);
        }
        inquiries(nc);
        R(nc_rename_dim(nc, 0, "t"));
        R(nc_rename_dim(nc, 0, "x"));
        R(nc_rename_dim(nc, 0, "a much longer name"));
        R(nc_rename_dim(nc, 0, "x"));
        R(nc_rename_dim(nc, 0, ""));
        R(nc_rename_dim(nc, 0, "a/b"));
        R(nc_rename_dim(nc, -1, "q"));
        R(nc_rename_dim(nc, 99, "q"));
        R(nc_enddef(nc));
        R(nc_def_dim(nc, "late", 4, &id));
        R(nc_rename_dim(nc, 0, "y"));
        R(nc_rename_dim(nc, 0, "longer"));
        R(nc_rename_dim(nc, 0, "z"));
        R(nc_rename_dim(nc, 0, "t"));
        inquiries(nc);
        R(nc_close(nc));
        describe_file(path);
        R(nc_open(path, NC_NOWRITE, &ro));
        inquiries(ro);
        R(nc_rename_dim(ro, 0, "q"));
        R(nc_def_dim(ro, "q", 2, &id));
        R(nc_close(ro));
        R(nc_open(path, NC_WRITE, &nc));
        R(nc_rename_dim(nc, 0, "b"));
        R(nc_rename_dim(nc, 0, "bb"));
        R(nc_redef(nc));
        R(nc_rename_dim(nc, 0, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"));
        R(nc_def_dim(nc, "again", 2, &id));
        R(nc_def_dim(nc, "t3", NC_UNLIMITED, &id));
        R(nc_close(nc));
        describe_file(path);
    }
    return 0;
}
