/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Copies of attributes and variables; values in memory; strings. */
#include "check.h"

enum { ROWS = 3, COLUMNS = 900000 };

int main(void) {
    int in, out, id, *row = malloc(sizeof *row * COLUMNS), value = 0;
    /* rows larger than a block of the copy, so that they go in pieces */
    OK(nc_create("from.nc", NC_64BIT_OFFSET, &in));
    OK(nc_def_dim(in, "t", NC_UNLIMITED, NULL));
    OK(nc_def_dim(in, "half", 2, NULL));
    OK(nc_def_dim(in, "x", COLUMNS, NULL));
    OK(nc_def_var(in, "big", NC_INT, 3, (int[]){0, 1, 2}, NULL));
    OK(nc_def_var(in, "scalar", NC_DOUBLE, 0, NULL, NULL));
    OK(nc_put_att_text(in, 0, "note", 5, "hello"));
    OK(nc_enddef(in));
    for (size_t r = 0; r < 2 * ROWS; r++) {
        for (int i = 0; i < COLUMNS; i++) row[i] = (int)r * 1000003 + i;
        OK(nc_put_vara_int(in, 0, (size_t[]){r / 2, r % 2, 0}, (size_t[]){1, 1, COLUMNS}, row));
    }
    OK(nc_put_var_int(in, 1, (int[]){42}));
    OK(nc_create("to.nc", NC_64BIT_DATA, &out));
    OK(nc_def_dim(out, "x", COLUMNS, NULL));
    OK(nc_def_dim(out, "t", NC_UNLIMITED, NULL));
    OK(nc_def_dim(out, "half", 2, NULL));
    OK(nc_copy_var(in, 0, out));
    OK(nc_copy_var(in, 1, out));
    FAILS(nc_copy_var(in, 0, out), NC_ENAMEINUSE);
    OK(nc_copy_att(in, 0, "note", out, NC_GLOBAL));
    OK(nc_enddef(out));
    for (size_t r = 0; r < 2 * ROWS; r++) {
        OK(nc_get_vara_int(out, 0, (size_t[]){r / 2, r % 2, 0}, (size_t[]){1, 1, COLUMNS}, row));
        for (int i = 0; i < COLUMNS; i++) CHECK(row[i] == (int)r * 1000003 + i);
    }
    OK(nc_get_var_int(out, 1, &value));
    CHECK(value == 42);
    OK(nc_inq_attid(out, NC_GLOBAL, "note", &id));
    char *text = NULL, *words[2] = {"one", NULL};
    void *copied = NULL;
    OK(nc_dump_data(out, NC_INT, row, 2, &text));
    CHECK(strchr(text, ' ') != NULL);
    free(text);
    OK(nc_copy_data_all(out, NC_STRING, words, 2, &copied));
    CHECK(strcmp(((char **)copied)[0], "one") == 0 && ((char **)copied)[1] == NULL);
    OK(nc_reclaim_data_all(out, NC_STRING, copied, 2));
    OK(nc_close(in));
    OK(nc_close(out));
    free(row);
    return 0;
}
