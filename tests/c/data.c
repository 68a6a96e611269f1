/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Data through every call shape, with conversion, and more of it than any buffer. */
#include "check.h"

enum { ROWS = 40, COLUMNS = 50000 };

int main(void) {
    int nc, dims[2], v, w, letters;
    double *out = malloc(sizeof *out * ROWS * COLUMNS);
    short *in = malloc(sizeof *in * ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = (short)(i % 30011);
    OK(nc_create("data.nc", NC_64BIT_DATA, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", COLUMNS, &dims[1]));
    OK(nc_def_var(nc, "v", NC_FLOAT, 2, dims, &v));
    OK(nc_def_var(nc, "w", NC_INT64, 2, dims, &w));
    OK(nc_def_var(nc, "c", NC_CHAR, 1, dims, &letters));
    OK(nc_enddef(nc));
    for (size_t r = ROWS; r-- > 0;) {
        OK(nc_put_vara_short(nc, v, (size_t[]){r, 0}, (size_t[]){1, COLUMNS}, in + r * COLUMNS));
        OK(nc_put_vara_short(nc, w, (size_t[]){r, 0}, (size_t[]){1, COLUMNS}, in + r * COLUMNS));
    }
    OK(nc_get_var_double(nc, v, out));
    for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(out[i] == in[i]);
    OK(nc_close(nc));
    OK(nc_open("data.nc", NC_WRITE, &nc));
    OK(nc_get_var_double(nc, w, out));
    for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(out[i] == in[i]);
    /* every 7th column of every 3rd row, transposed */
    size_t start[2] = {1, 2}, count[2] = {10, 1000};
    ptrdiff_t stride[2] = {3, 7}, imap[2] = {1, 10};
    OK(nc_get_varm_double(nc, v, start, count, stride, imap, out));
    for (size_t r = 0; r < count[0]; r++)
        for (size_t c = 0; c < count[1]; c++)
            CHECK(out[c * 10 + r] == in[(1 + 3 * r) * COLUMNS + 2 + 7 * c]);
    OK(nc_put_varm_double(nc, w, start, count, stride, imap, out));
    OK(nc_get_vars_double(nc, w, start, count, stride, out));
    CHECK(out[0] == in[COLUMNS + 2] && out[9999] == in[28 * COLUMNS + 2 + 7 * 999]);
    signed char small[4];
    int big[4] = {1, 300, -129, 127};
    OK(nc_put_vara_int(nc, v, (size_t[]){0, 0}, (size_t[]){1, 4}, big));
    FAILS(nc_get_vara_schar(nc, v, (size_t[]){0, 0}, (size_t[]){1, 4}, small), NC_ERANGE);
    CHECK(small[0] == 1 && small[3] == 127);
    FAILS(nc_put_var1_int(nc, v, (size_t[]){0, COLUMNS}, big), NC_EINVALCOORDS);
    FAILS(nc_get_vara_int(nc, v, (size_t[]){0, 0}, (size_t[]){ROWS + 1, 1}, big), NC_EEDGE);
    FAILS(nc_get_var1_text(nc, v, (size_t[]){0, 0}, (char *)small), NC_ECHAR);
    OK(nc_put_var1_text(nc, letters, (size_t[]){50}, "q"));
    size_t len;
    OK(nc_inq_dimlen(nc, 0, &len));
    CHECK(len == 51);
    OK(nc_get_var1_double(nc, v, (size_t[]){45, 7}, out));
    CHECK(out[0] == (double)NC_FILL_FLOAT);
    OK(nc_close(nc));
    free(in);
    free(out);
    return 0;
}
