/* SPDX-License-Identifier: MIT OR Apache-2.0
 * The netCDF-2 interface. */
#include "check.h"

int main(void) {
    ncopts = 0;
    int nc = nccreate("v2.nc", NC_CLOBBER), dims[2], v, n, ids[5], got[6], data[6] = {1, 2, 3, 4, 5, 6};
    long start[2] = {0, 0}, count[2] = {2, 3}, sizes[5], len;
    CHECK(nc >= 0);
    dims[0] = ncdimdef(nc, "t", NC_UNLIMITED);
    dims[1] = ncdimdef(nc, "x", 3);
    v = ncvardef(nc, "v", NC_INT, 2, dims);
    CHECK(v == 0 && ncattput(nc, v, "a", NC_CHAR, 3, "abc") == 0 && ncendef(nc) == 0);
    CHECK(ncvarput(nc, v, start, count, data) == 0);
    CHECK(ncvarget(nc, v, start, count, got) == 0 && got[5] == 6);
    CHECK(ncrecinq(nc, &n, ids, sizes) == 1 && n == 1 && ids[0] == 0 && sizes[0] == 12);
    void *record[1] = {data};
    CHECK(ncrecput(nc, 4, record) == 0);
    record[0] = got;
    CHECK(ncrecget(nc, 4, record) == 0 && got[0] == 1);
    CHECK(ncdiminq(nc, 0, NULL, &len) == 0 && len == 5);
    CHECK(ncdimid(nc, "nope") == -1 && ncerr == NC_EBADDIM);
    CHECK(ncopen("missing.nc", NC_NOWRITE) == -1 && ncerr == NC_SYSERR);
    CHECK(ncclose(nc) == 0 && ncclose(nc) == -1 && ncerr == NC_EBADID);
    return 0;
}
