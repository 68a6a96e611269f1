/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Groups, types, filters, settings and helpers, as classic files answer. */
#include "check.h"
#include <netcdf_aux.h>
#include <netcdf_filter.h>

int main(void) {
    int nc = small_file("other.nc", NC_CLOBBER), n, ids[5], a, b;
    char name[NC_MAX_NAME + 1];
    size_t size, len;
    float f;
    OK(nc_inq_grpname_full(nc, &len, name));
    CHECK(len == 1 && strcmp(name, "/") == 0);
    OK(nc_inq_varids(nc, &n, ids));
    CHECK(n == 3 && ids[2] == 2);
    FAILS(nc_def_grp(nc, "g", &n), NC_ENOTNC4);
    FAILS(nc_inq_grp_parent(nc, &n), NC_ENOGRP);
    FAILS(nc_def_compound(nc, 8, "c", &n), NC_ENOTNC4);
    OK(nc_inq_type(nc, NC_DOUBLE, name, &size));
    CHECK(size == 8 && strcmp(name, "double") == 0);
    OK(nc_inq_var_deflate(nc, 0, &a, &b, &n));
    CHECK(a == 0 && b == 0 && n == 0);
    FAILS(nc_def_var_deflate(nc, 0, 1, 1, 1), NC_ENOTNC4);
    FAILS(nc_inq_filter_avail(nc, 1), NC_ENOFILTER);
    OK(nc_set_chunk_cache(1000, 10, 0.5f));
    OK(nc_get_chunk_cache(&size, &len, &f));
    CHECK(size == 1000 && len == 10 && f == 0.5f);
    unsigned id, *params;
    OK(ncaux_h5filterspec_parse("307,4", &id, &len, &params));
    CHECK(id == 307 && len == 1 && params[0] == 4);
    free(params);
    NC_H5_Filterspec **specs;
    OK(ncaux_h5filterspec_parselist("1,2|3", &a, &len, &specs));
    CHECK(len == 2 && specs[1]->filterid == 3);
    for (size_t i = 0; i < len; i++) ncaux_h5filterspec_free(specs[i]);
    free(specs);
    void *content;
    OK(ncaux_writefile("text", 5, "hello"));
    OK(ncaux_readfile("text", &len, &content));
    CHECK(len == 5 && memcmp(content, "hello", 5) == 0);
    free(content);
    OK(nc_close(nc));
    OK(nc_finalize());
    return 0;
}
