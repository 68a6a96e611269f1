/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A file without room in its header, and a redef for which all of its data move.
 *
 *   room make|redef|persist|check fixed|records FILE KB      see run.py; persist does it with the file in memory
 *   room waits DIR KB                                chunks of a netCDF-4 file that wait for more data, under a small ZONDA_MEMORY */
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

/* Half of each chunk is put, so that all of them wait; their bytes, and no more, have room on the device. */
static int waits(const char *path, size_t kb) {
    enum { WIDE = 16384 };
    static int row[WIDE];
    int nc, dims[2], id, n = (int)(kb * 1024 / (2 * sizeof row));
    size_t chunk[2] = {2, WIDE};
    OK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "t", 2, &dims[0]));
    OK(nc_def_dim(nc, "x", (size_t)n * WIDE, &dims[1]));
    OK(nc_def_var(nc, "v", NC_INT, 2, dims, &id));
    OK(nc_def_var_chunking(nc, id, NC_CHUNKED, chunk));
    OK(nc_enddef(nc));
    for (int c = 0; c < n; c++) {
        size_t start[2] = {0, (size_t)c * WIDE}, count[2] = {1, WIDE};
        for (int k = 0; k < WIDE; k++) row[k] = c * 7919 + k;
        OK(nc_put_vara_int(nc, id, start, count, row));
    }
    OK(nc_sync(nc));
    OK(nc_close(nc));
    OK(nc_open(path, NC_NOWRITE, &nc));
    for (int c = 0; c < n; c++) {
        size_t start[2] = {0, (size_t)c * WIDE}, count[2] = {1, WIDE};
        OK(nc_get_vara_int(nc, 0, start, count, row));
        for (int k = 0; k < WIDE; k++)
            if (row[k] != c * 7919 + k) {
                printf("chunk %d is wrong from %d on\n", c, k);
                return 1;
            }
    }
    OK(nc_close(nc));
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "waits") == 0) return waits(argv[2], (size_t)atoi(argv[3]));
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
