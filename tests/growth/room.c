/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A file without room in its header, and a redef for which all of its data move.
 *
 *   room make|redef|persist|check fixed|records FILE KB      see run.py; persist does it with the file in memory */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call)                                                                   \
    do {                                                                           \
        int status = (call);                                                       \
        if (status != NC_NOERR) {                                                  \
            printf("line %d: %s: %s\n", __LINE__, #call, nc_strerror(status));     \
            return 1;                                                              \
        }                                                                          \
    } while (0)
#define ROW 1024

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    int nc, dims[2], id, is_records = strcmp(argv[2], "records") == 0;
    size_t rows = (size_t)atoi(argv[4]) * 1024 / (ROW * sizeof(int));
    int row[ROW];
    static char text[300000];
    memset(text, 'h', sizeof text);
    if (strcmp(argv[1], "make") == 0) {
        OK(nc_create(argv[3], NC_CLOBBER | NC_64BIT_OFFSET, &nc));
        OK(nc_def_dim(nc, "t", is_records ? NC_UNLIMITED : rows, &dims[0]));
        OK(nc_def_dim(nc, "x", ROW, &dims[1]));
        OK(nc_def_var(nc, "v", NC_INT, 2, dims, &id));
        OK(nc__enddef(nc, 0, 4, 0, 4));
        for (size_t r = 0; r < rows; r++) {
            size_t start[2] = {r, 0}, count[2] = {1, ROW};
            for (int k = 0; k < ROW; k++) row[k] = (int)(r * 7919) + k;
            OK(nc_put_vara_int(nc, 0, start, count, row));
        }
    } else if (strcmp(argv[1], "redef") == 0) {
        OK(nc_open(argv[3], NC_WRITE, &nc));
        OK(nc_redef(nc));
        OK(nc_put_att_text(nc, NC_GLOBAL, "history", 3000, text));
        OK(nc__enddef(nc, 0, 4, 0, 4));
    } else if (strcmp(argv[1], "persist") == 0) {
        OK(nc_open(argv[3], NC_WRITE | NC_DISKLESS | NC_PERSIST, &nc));
        OK(nc_redef(nc));
        OK(nc_put_att_text(nc, NC_GLOBAL, "history", sizeof text, text));
        OK(nc__enddef(nc, 0, 4, 0, 4));
    } else {
        size_t len;
        OK(nc_open(argv[3], NC_NOWRITE, &nc));
        OK(nc_inq_attlen(nc, NC_GLOBAL, "history", &len));
        for (size_t r = 0; r < rows; r++) {
            size_t start[2] = {r, 0}, count[2] = {1, ROW};
            OK(nc_get_vara_int(nc, 0, start, count, row));
            for (int k = 0; k < ROW; k++)
                if (row[k] != (int)(r * 7919) + k) {
                    printf("row %zu is wrong from %d on\n", r, k);
                    return 1;
                }
        }
    }
    OK(nc_close(nc));
    return 0;
}
