/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Files in memory; who frees what. */
#include "check.h"
#include <netcdf_mem.h>

int main(void) {
    int nc, value = 0;
    NC_memio image = {0, NULL, 0};
    OK(nc_create_mem("made", 0, 1000, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, NULL));
    OK(nc_def_var(nc, "v", NC_INT, 1, (int[]){0}, NULL));
    OK(nc_enddef(nc));
    for (size_t i = 0; i < 5000; i++) {
        value = (int)i;
        OK(nc_put_var1_int(nc, 0, &i, &value));
    }
    OK(nc_close_memio(nc, &image));
    CHECK(image.size >= 20000 && image.memory != NULL);
    OK(nc_open_mem("read", NC_NOWRITE, image.size, image.memory, &nc));
    OK(nc_get_var1_int(nc, 0, (size_t[]){4999}, &value));
    CHECK(value == 4999);
    OK(nc_close(nc));
    /* handed over, grown, handed back */
    OK(nc_open_memio("edit", NC_WRITE, &image, &nc));
    OK(nc_put_var1_int(nc, 0, (size_t[]){20000}, &value));
    OK(nc_close_memio(nc, &image));
    CHECK(image.size >= 80000);
    /* locked: stays the caller's */
    image.flags = NC_MEMIO_LOCKED;
    OK(nc_open_memio("locked", NC_NOWRITE, &image, &nc));
    OK(nc_close(nc));
    free(image.memory);
    /* diskless with and without a file in the end */
    nc = small_file("diskless.nc", NC_DISKLESS);
    OK(nc_close(nc));
    CHECK(access("diskless.nc", F_OK) != 0);
    nc = small_file("diskless.nc", NC_DISKLESS | NC_PERSIST);
    OK(nc_close(nc));
    OK(nc_open("diskless.nc", NC_DISKLESS, &nc));
    OK(nc_get_var1_int(nc, 0, (size_t[]){1, 1}, &value));
    CHECK(value == 5);
    OK(nc_close(nc));
    nc = small_file("dropped.nc", NC_DISKLESS);
    OK(nc_abort(nc));
    CHECK(access("dropped.nc", F_OK) != 0);
    return 0;
}
