/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A netCDF-4 file of the reference: values that own memory come and go without a leak. */
#include "check.h"

typedef struct {
    signed char a;
    double b;
    short c[2];
} pair_t;

int main(void) {
    char path[1000];
    const char *folder = getenv("ZONDA_NC4_DATA");
    int nc, g, inner, id, v, type, other;
    CHECK(folder);
    snprintf(path, sizeof path, "%s/model.nc", folder);
    OK(nc_open(path, NC_NOWRITE, &nc));
    OK(nc_inq_grp_full_ncid(nc, "/g", &g));
    OK(nc_inq_grp_full_ncid(nc, "/g/inner", &inner));
    OK(nc_inq_grp_parent(inner, &id));
    CHECK(id == g);
    FAILS(nc_inq_grp_parent(nc, &id), NC_ENOGRP);
    FAILS(nc_inq_nvars(nc + 77, &id), NC_EBADID);
    FAILS(nc_redef(nc), NC_EPERM);

    /* Strings: all of them, some of them through a map, and the fill value. */
    char *s[4], *back[4] = {0}, *fill = NULL;
    OK(nc_inq_varid(nc, "s", &v));
    OK(nc_get_var_string(nc, v, s));
    CHECK(!strcmp(s[0], "eins") && !strcmp(s[2], ""));
    OK(nc_free_string(4, s));
    OK(nc_get_varm_string(nc, v, (size_t[]){0}, (size_t[]){2}, (ptrdiff_t[]){2}, (ptrdiff_t[]){-1}, s + 1));
    CHECK(!strcmp(s[1], "eins") && !strcmp(s[0], ""));
    OK(nc_free_string(2, s));
    FAILS(nc_get_var_int(nc, v, &id), NC_EBADTYPE);
    FAILS(nc_get_vara_string(nc, v, (size_t[]){3}, (size_t[]){2}, s), NC_EEDGE);
    OK(nc_inq_var_fill(nc, v, &id, &fill));
    OK(nc_free_string(1, &fill));
    OK(nc_get_att_string(nc, NC_GLOBAL, "words", s));
    CHECK(!strcmp(s[0], "one") && !strcmp(s[1], ""));
    OK(nc_copy_data(nc, NC_STRING, s, 3, back));
    OK(nc_reclaim_data(nc, NC_STRING, s, 3));
    CHECK(!strcmp(back[0], "one"));
    OK(nc_free_string(3, back));
    FAILS(nc_get_att_string(nc, NC_GLOBAL, "title", s), NC_ECHAR);
    FAILS(nc_get_att_string(nc, NC_GLOBAL, "numbers", s), NC_EBADTYPE);

    /* Sequences and compounds. */
    nc_vlen_t r[2], *copy = NULL;
    OK(nc_inq_varid(g, "r", &v));
    OK(nc_inq_vartype(g, v, &type));
    OK(nc_get_var(g, v, r));
    CHECK(r[0].len == 3 && ((int *)r[0].p)[2] == 3 && r[1].len == 0);
    OK(nc_copy_data_all(g, type, r, 2, (void **)&copy));
    OK(nc_free_vlens(2, r));
    CHECK(copy[0].len == 3 && ((int *)copy[0].p)[1] == 2);
    size_t len;
    int items[3];
    OK(nc_get_vlen_element(g, type, copy, &len, items));
    CHECK(len == 3 && items[0] == 1);
    OK(nc_reclaim_data_all(g, type, copy, 2));
    pair_t p[2];
    OK(nc_inq_varid(g, "p", &v));
    OK(nc_get_var(g, v, p));
    CHECK(p[0].a == 1 && p[1].b == -2.5 && p[1].c[1] == 6);
    FAILS(nc_get_varm(g, v, NULL, NULL, NULL, NULL, p), NC_EINVALCOORDS);
    FAILS(nc_get_varm(g, v, (size_t[]){0}, NULL, NULL, NULL, p), NC_EMAPTYPE);
    OK(nc_inq_typeid(nc, "/g/pair", &other));
    OK(nc_inq_vartype(g, v, &type));
    CHECK(type == other);
    OK(nc_inq_type_equal(nc, type, inner, other, &id));
    CHECK(id == 1);

    /* Null pointers where there is something to be said, and where not. */
    OK(nc_inq_varid(nc, "a", &v));
    FAILS(nc_get_var_int(nc, v, NULL), NC_EINVAL);
    OK(nc_get_vara_int(nc, v, (size_t[]){0, 0}, (size_t[]){0, 0}, NULL));
    FAILS(nc_inq_varid(nc, NULL, &id), NC_EINVAL);
    FAILS(nc_inq_dimid(nc, NULL, &id), NC_EINVAL);
    FAILS(nc_inq_grp_full_ncid(nc, NULL, &id), NC_EINVAL);
    OK(nc_close(nc));
    FAILS(nc_inq_nvars(inner, &id), NC_EBADID);
    return 0;
}
