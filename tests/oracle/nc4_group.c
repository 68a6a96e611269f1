/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Groups and dimensions of a netCDF-4 file open for reading. */
#include "nc4_tree.h"

static void lists(int nc) {
    int n = -77, ids[64], a = -77, b = -77, c = -77, d = -77;
    char name[NC_MAX_NAME + 1];
    size_t len = 77;
    note("id %x", nc);
    poison(ids);
    R(nc_inq(nc, &a, &b, &c, &d));
    ints("inq", (int[]){a, b, c, d}, 4);
    R(nc_inq(nc, NULL, NULL, NULL, NULL));
    a = b = c = d = -77;
    R(nc_inq_ndims(nc, &a));
    R(nc_inq_nvars(nc, &b));
    R(nc_inq_natts(nc, &c));
    R(nc_inq_unlimdim(nc, &d));
    ints("inq", (int[]){a, b, c, d}, 4);
    R(nc_inq_unlimdim(nc, NULL));
    R(nc_inq_grps(nc, &n, ids));
    ints("n", &n, 1);
    ints("ids", ids, 4);
    R(nc_inq_grps(nc, NULL, NULL));
    R(nc_inq_grps(nc, &n, NULL));
    R(nc_inq_grps(nc, NULL, ids));
    poison(name);
    R(nc_inq_grpname(nc, name));
    text("name", name, 12);
    R(nc_inq_grpname(nc, NULL));
    poison(name);
    R(nc_inq_grpname_full(nc, &len, name));
    text("name", name, 30);
    sizes("len", &len, 1);
    R(nc_inq_grpname_full(nc, NULL, NULL));
    poison(name);
    R(nc_inq_grpname_full(nc, NULL, name));
    text("name", name, 30);
    len = 77;
    R(nc_inq_grpname_len(nc, &len));
    sizes("len", &len, 1);
    R(nc_inq_grpname_len(nc, NULL));
    n = -77;
    R(nc_inq_grp_parent(nc, &n));
    ints("parent", &n, 1);
    R(nc_inq_grp_parent(nc, NULL));
    n = -77;
    poison(ids);
    R(nc_inq_varids(nc, &n, ids));
    ints("n", &n, 1);
    ints("ids", ids, 30);
    R(nc_inq_varids(nc, NULL, NULL));
    R(nc_inq_varids(nc, NULL, ids));
    for (int parents = 0; parents < 3; parents++) {
        poison(ids);
        n = -77;
        R(nc_inq_dimids(nc, &n, ids, parents));
        ints("n", &n, 1);
        ints("ids", ids, 12);
        n = -77;
        R(nc_inq_dimids(nc, &n, NULL, parents));
        ints("n", &n, 1);
        poison(ids);
        R(nc_inq_dimids(nc, NULL, ids, parents));
        ints("ids", ids, 12);
        R(nc_inq_dimids(nc, NULL, NULL, parents));
    }
    n = -77;
    poison(ids);
    R(nc_inq_typeids(nc, &n, ids));
    ints("n", &n, 1);
    ints("ids", ids, 10);
    R(nc_inq_typeids(nc, NULL, NULL));
    R(nc_inq_typeids(nc, &n, NULL));
    n = -77;
    poison(ids);
    R(nc_inq_unlimdims(nc, &n, ids));
    ints("n", &n, 1);
    ints("ids", ids, 4);
    R(nc_inq_unlimdims(nc, NULL, NULL));
    n = -77;
    R(nc_inq_unlimdims(nc, &n, NULL));
    ints("n", &n, 1);
    R(nc_show_metadata(nc));
    R(nc_def_grp(nc, "g", &n));
    R(nc_def_grp(nc, "bad/name", &n));
    R(nc_def_grp(nc, "g1", &n));
    R(nc_rename_grp(nc, "g"));
    R(nc_rename_grp(nc, "bad/name"));
}

static void by_name(int nc) {
    static const char *const names[] = {"g1", "g2", "/", "", "/g1", "/g1/g2", "g1/g2", "/g1/g2/g3", "//g1", "/g1/",
                                        "h", "none", "/none", "/g1/none", "x", " g1"};
    note("id %x", nc);
    for (size_t i = 0; i < COUNT(names); i++) {
        int id = -77;
        R(nc_inq_ncid(nc, names[i], &id));
        note("%s: %x", names[i], id);
        id = -77;
        R(nc_inq_grp_ncid(nc, names[i], &id));
        note("%s: %x", names[i], id);
        id = -77;
        R(nc_inq_grp_full_ncid(nc, names[i], &id));
        note("%s: %x", names[i], id);
    }
    int id = -77;
    R(nc_inq_ncid(nc, NULL, &id));
    note("%x", id);
    R(nc_inq_ncid(nc, NULL, NULL));
    R(nc_inq_ncid(nc, "g1", NULL));
    R(nc_inq_grp_ncid(nc, NULL, &id));
    R(nc_inq_grp_full_ncid(nc, NULL, &id));
}

static void dims(int nc) {
    static const char *const names[] = {"t", "x", "y", "u", "in", "two", "", "none", "/x", "g1/x"};
    char name[NC_MAX_NAME + 1];
    note("id %x", nc);
    for (size_t i = 0; i < COUNT(names); i++) {
        int id = -77;
        R(nc_inq_dimid(nc, names[i], &id));
        note("%s: %d", names[i], id);
        R(nc_inq_dimid(nc, names[i], NULL));
    }
    for (int d = -2; d < 10; d++) {
        size_t len = 77;
        poison(name);
        R(nc_inq_dim(nc, d, name, &len));
        text("name", name, 10);
        sizes("len", &len, 1);
        len = 77;
        R(nc_inq_dimlen(nc, d, &len));
        sizes("len", &len, 1);
        R(nc_inq_dimname(nc, d, name));
        R(nc_inq_dimname(nc, d, NULL));
        R(nc_inq_dimlen(nc, d, NULL));
        R(nc_inq_dim(nc, d, NULL, NULL));
        R(nc_rename_dim(nc, d, "new"));
        R(nc_rename_dim(nc, d, "x"));
        R(nc_rename_dim(nc, d, "a/b"));
    }
    int id;
    R(nc_def_dim(nc, "q", 3, &id));
    R(nc_def_dim(nc, "x", 3, &id));
    R(nc_def_dim(nc, "q/", 3, &id));
}

/* Ids that name no group, in files that are open and not. */
static void odd_ids(int nc) {
    int ids[] = {nc + 5, nc + 6, nc + 0xffff, nc + 0x10000, -1, 0};
    for (size_t i = 0; i < COUNT(ids); i++) {
        lists(ids[i]);
        by_name(ids[i]);
    }
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    static const char *const paths[][3] = {{0}, {"g1"}, {"g1", "g2"}, {"g1", "g2", "g3"}, {"h"}};
    int nc;
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    for (size_t i = 0; i < COUNT(paths); i++) {
        int g = group_at(nc, paths[i][0], paths[i][1], paths[i][2]);
        lists(g);
        by_name(g);
        dims(g);
    }
    odd_ids(nc);
    R(nc_close(nc));
    R(nc_open("strict.nc", NC_NOWRITE, &nc));
    lists(nc);
    by_name(nc);
    dims(nc);
    R(nc_close(nc));
    return 0;
}
