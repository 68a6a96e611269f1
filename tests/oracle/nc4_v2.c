/* SPDX-License-Identifier: MIT OR Apache-2.0
 * netCDF-2 calls on netCDF-4 files, and copies out of them. */
#include "nc4_tree.h"

static void old_calls(const char *path) {
    int nd, nv, na, rec, type, dims[20], n, len;
    char name[300];
    long length, at[2] = {0, 0}, edge[2] = {2, 3}, stride[2] = {1, 2}, two[2] = {2, 2};
    _Alignas(8) unsigned char out[400];
    ncopts = NC_VERBOSE;
    int nc = ncopen(path, NC_NOWRITE);
    note("%s: %x", path, nc);
    nd = nv = na = rec = -77;
    note("%d", ncinquire(nc, &nd, &nv, &na, &rec) == nc);
    ints("inquire", (int[]){nd, nv, na, rec}, 4);
    R(ncdimid(nc, "x"));
    R(ncdimid(nc, "none"));
    for (int d = -1; d < 3; d++) {
        poison(name);
        length = -77;
        R(ncdiminq(nc, d, name, &length));
        text("name", name, 5);
        note("%ld", length);
    }
    R(ncvarid(nc, "x"));
    for (int v = -1; v < nv; v++) {
        poison(name);
        type = n = na = -77;
        if (R(ncvarinq(nc, v, name, &type, &n, dims, &na)) < 0) continue;
        text("name", name, 9);
        note("%d %d %d", type, n, na);
        poison(out);
        R(ncvarget1(nc, v, at, out));
        poison(out);
        if (type != NC_STRING && n == 2) {
            if (!R(ncvarget(nc, v, at, edge, out))) bytes("out", out, 16);
            poison(out);
            if (!R(ncvargets(nc, v, at, two, stride, out))) bytes("out", out, 16);
            long map[2] = {40, 8};
            poison(out);
            if (!R(ncvargetg(nc, v, at, two, stride, map, out))) bytes("out", out, 64);
        }
        R(ncattinq(nc, v, "own", &type, &len));
        poison(name);
        R(ncattname(nc, v, 0, name));
        text("name", name, 8);
        poison(out);
        R(ncattget(nc, v, "own", out));
        bytes("own", out, 24);
    }
    int ids[40];
    long recs[40];
    n = -77;
    poison(ids);
    poison(recs);
    R(ncrecinq(nc, &n, ids, recs));
    ints("ids", ids, n < 0 ? 0 : (size_t)n);
    for (int k = 0; k < n; k++) note("%ld", recs[k]);
    void *data[40] = {0};
    poison(out);
    data[0] = out;
    R(ncrecget(nc, 1, data));
    bytes("record", out, 32);
    R(ncrecget(nc, 100, data));
    R(ncsetfill(nc, NC_NOFILL));
    R(ncredef(nc));
    R(ncsync(nc));
    R(ncclose(nc));
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    int nc, out, v, d, g1;
    old_calls("strict.nc");
    old_calls("tree.nc");
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    g1 = group_at(nc, "g1", NULL, NULL);
    R(nc_create("out.nc", NC_CLOBBER | NC_64BIT_DATA, &out));
    R(nc_def_dim(out, "t", NC_UNLIMITED, &d));
    R(nc_def_dim(out, "x", 4, &d));
    R(nc_def_dim(out, "y", 5, &d));
    R(nc_enddef(out));
    static const char *const names[] = {"v_int", "v_char", "x", "scalar", "strings", "plains", "flags"};
    for (size_t i = 0; i < COUNT(names); i++) {
        R(nc_inq_varid(nc, names[i], &v));
        R(nc_copy_var(nc, v, out));
    }
    R(nc_inq_varid(g1, "deflated", &v));
    R(nc_copy_var(g1, v, out));
    R(nc_copy_var(nc, 99, out));
    R(nc_copy_var(nc, 0, nc));
    R(nc_close(out));
    R(nc_close(nc));
    describe_file("out.nc");
    return 0;
}
