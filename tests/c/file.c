/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Creating, opening, modes, abort, errors on the way. */
#include "check.h"

int main(void) {
    static const int flags[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
    for (int i = 0; i < 3; i++) {
        int nc = small_file("file.nc", flags[i]), n, d, v, value = 0, format, mode;
        char path[100];
        size_t len;
        OK(nc_inq_path(nc, &len, path));
        CHECK(len == 7 && strcmp(path, "file.nc") == 0);
        OK(nc_inq_format_extended(nc, &format, &mode));
        CHECK(format == NC_FORMATX_NC3);
        OK(nc_redef(nc));
        FAILS(nc_redef(nc), NC_EINDEFINE);
        OK(nc_def_dim(nc, "more", 5, &d));
        OK(nc_def_var(nc, "added", NC_SHORT, 1, &d, &v));
        OK(nc__enddef(nc, 100, 4, 0, 4));
        OK(nc_sync(nc));
        OK(nc_get_var1_int(nc, 0, (size_t[]){1, 2}, &value));
        CHECK(value == 6);
        OK(nc_close(nc));
        FAILS(nc_close(nc), NC_EBADID);
        OK(nc_open("file.nc", NC_NOWRITE, &nc));
        FAILS(nc_redef(nc), NC_EPERM);
        OK(nc_inq_nvars(nc, &n));
        CHECK(n == 4);
        OK(nc_close(nc));
    }
    int nc;
    FAILS(nc_create("file.nc", NC_NOCLOBBER, &nc), NC_EEXIST);
    OK(nc_create("gone.nc", NC_CLOBBER, &nc));
    OK(nc_abort(nc));
    CHECK(access("gone.nc", F_OK) != 0);
    CHECK(nc_open("missing.nc", NC_NOWRITE, &nc) == 2);
    FILE *f = fopen("junk.nc", "w");
    fputs("this is no netCDF file at all", f);
    fclose(f);
    FAILS(nc_open("junk.nc", NC_NOWRITE, &nc), NC_ENOTNC);
    /* A name so long that nothing with a longer one can stand beside it. */
    char name[252], text[3000];
    memset(name, 'n', 251), name[251] = 0;
    memset(text, 't', sizeof text);
    nc = small_file(name, NC_CLOBBER);
    OK(nc_close(nc));
    OK(nc_open(name, NC_WRITE, &nc));
    OK(nc_redef(nc));
    OK(nc_put_att_text(nc, NC_GLOBAL, "long", sizeof text, text));
    OK(nc_enddef(nc));
    OK(nc_close(nc));
    OK(nc_open(name, NC_NOWRITE, &nc));
    int moved = 0;
    OK(nc_get_var1_int(nc, 0, (size_t[]){1, 2}, &moved));
    CHECK(moved == 6);
    OK(nc_close(nc));
    int ids[100];
    for (int i = 0; i < 100; i++) OK(nc_open("file.nc", NC_NOWRITE, &ids[i]));
    for (int i = 0; i < 100; i++) OK(nc_close(ids[i]));
    return 0;
}
