/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Dimensions, variables and attributes: definitions, inquiries, edits. */
#include "check.h"

int main(void) {
    int nc = small_file("define.nc", NC_CLOBBER), id, n, dims[4], no_fill, many[300];
    char name[NC_MAX_NAME + 1], text[20];
    size_t len;
    nc_type type;
    double fill;
    OK(nc_inq_dimid(nc, "x", &id));
    OK(nc_inq_dim(nc, id, name, &len));
    CHECK(id == 1 && len == 3 && strcmp(name, "x") == 0);
    OK(nc_inq_dimlen(nc, 0, &len));
    CHECK(len == 2);
    FAILS(nc_inq_dimid(nc, "nope", &id), NC_EBADDIM);
    OK(nc_inq_var(nc, 0, name, &type, &n, dims, &id));
    CHECK(type == NC_INT && n == 2 && dims[0] == 0 && dims[1] == 1 && id == 1);
    FAILS(nc_inq_varname(nc, 9, name), NC_ENOTVAR);
    OK(nc_inq_var_fill(nc, 1, &no_fill, &fill));
    CHECK(no_fill == 0 && fill == NC_FILL_DOUBLE);
    OK(nc_redef(nc));
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "v%d", i);
        OK(nc_def_var(nc, name, NC_FLOAT, 1, (int[]){1}, &many[i]));
        for (int a = 0; a < 5; a++) {
            snprintf(text, sizeof text, "a%d", a);
            OK(nc_put_att_double(nc, many[i], text, NC_DOUBLE, 1, &fill));
        }
    }
    for (int i = 0; i < 300; i += 3) OK(nc_del_att(nc, many[i], "a2"));
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "renamed_to_something_longer_%d", i);
        OK(nc_rename_var(nc, many[i], name));
    }
    FAILS(nc_def_var(nc, "r", NC_INT, 0, NULL, &id), NC_ENAMEINUSE);
    OK(nc_rename_dim(nc, 1, "longitude"));
    OK(nc_rename_att(nc, 0, "units", "unit of measure"));
    OK(nc_enddef(nc));
    OK(nc_inq_varid(nc, "renamed_to_something_longer_299", &id));
    CHECK(id == many[299]);
    OK(nc_get_att_text(nc, 0, "unit of measure", text));
    CHECK(text[0] == 'm');
    int six[6];
    OK(nc_get_att_int(nc, NC_GLOBAL, "six", six));
    CHECK(six[5] == 6);
    OK(nc_put_att_int(nc, NC_GLOBAL, "six", NC_SHORT, 2, six));
    FAILS(nc_put_att_int(nc, NC_GLOBAL, "new", NC_INT, 6, six), NC_ENOTINDEFINE);
    OK(nc_close(nc));
    OK(nc_open("define.nc", NC_NOWRITE, &nc));
    OK(nc_inq_varnatts(nc, many[0], &n));
    CHECK(n == 4);
    OK(nc_get_var(nc, 0, six));
    CHECK(six[0] == 1 && six[5] == 6);
    OK(nc_close(nc));
    return 0;
}
