/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Eight threads: on one file, on a file each, and opening and closing without pause. */
#include "check.h"
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 8, RECORDS = 200, COLUMNS = 500 };

static int shared;

static int expected(size_t record, int column, int var) { return (int)record * 7 + column + var * 100000; }

/* Records r with r % THREADS == me are this thread's: it writes them, reads them back, inquires. */
static void *on_one_file(void *argument) {
    size_t me = (size_t)(intptr_t)argument;
    int row[COLUMNS];
    for (size_t r = me; r < RECORDS; r += THREADS)
        for (int v = 0; v < 2; v++) {
            size_t start[2] = {r, 0}, count[2] = {1, COLUMNS}, len;
            int id;
            char name[NC_MAX_NAME + 1];
            for (int c = 0; c < COLUMNS; c++) row[c] = expected(r, c, v);
            OK(nc_put_vara_int(shared, v, start, count, row));
            OK(nc_inq_varid(shared, v ? "w" : "v", &id));
            CHECK(id == v);
            OK(nc_inq_dim(shared, 0, name, &len));
            CHECK(len > r && name[0] == 't');
            memset(row, 0, sizeof row);
            OK(nc_get_vara_int(shared, v, start, count, row));
            for (int c = 0; c < COLUMNS; c++) CHECK(row[c] == expected(r, c, v));
            FAILS(nc_inq_varid(shared, "nope", &id), NC_ENOTVAR);
        }
    return NULL;
}

static void *on_its_own(void *argument) {
    int me = (int)(intptr_t)argument, row[COLUMNS];
    char path[40];
    snprintf(path, sizeof path, "own%d.nc", me);
    for (int round = 0; round < 20; round++) {
        int nc = small_file(path, round % 2 ? NC_64BIT_DATA : 0), value = me * 1000 + round;
        for (size_t r = 2; r < 30; r++) OK(nc_put_var1_int(nc, 0, (size_t[]){r, 1}, &value));
        OK(nc_redef(nc));
        OK(nc_put_att_int(nc, NC_GLOBAL, "round", NC_INT, 1, &round));
        OK(nc_enddef(nc));
        OK(nc_close(nc));
        OK(nc_open(path, NC_NOWRITE, &nc));
        OK(nc_get_vara_int(nc, 0, (size_t[]){2, 1}, (size_t[]){28, 1}, row));
        for (int i = 0; i < 28; i++) CHECK(row[i] == value);
        OK(nc_close(nc));
    }
    return NULL;
}

static void *storm(void *argument) {
    (void)argument;
    for (int i = 0; i < 300; i++) {
        int nc, value = 0;
        OK(nc_open("storm.nc", NC_NOWRITE, &nc));
        OK(nc_get_var1_int(nc, 0, (size_t[]){1, 2}, &value));
        CHECK(value == 6);
        OK(nc_close(nc));
    }
    return NULL;
}

static void run(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void verify(const char *path) {
    int nc, *all = malloc(sizeof *all * RECORDS * COLUMNS);
    OK(nc_open(path, NC_NOWRITE, &nc));
    for (int v = 0; v < 2; v++) {
        OK(nc_get_var_int(nc, v, all));
        for (size_t r = 0; r < RECORDS; r++)
            for (int c = 0; c < COLUMNS; c++) CHECK(all[r * COLUMNS + (size_t)c] == expected(r, c, v));
    }
    OK(nc_close(nc));
    free(all);
}

int main(void) {
    int dims[2];
    OK(nc_create("shared.nc", NC_64BIT_OFFSET, &shared));
    OK(nc_def_dim(shared, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(shared, "x", COLUMNS, &dims[1]));
    OK(nc_def_var(shared, "v", NC_INT, 2, dims, NULL));
    OK(nc_def_var(shared, "w", NC_DOUBLE, 2, dims, NULL));
    OK(nc_enddef(shared));
    run(on_one_file);
    OK(nc_close(shared));
    verify("shared.nc");
    run(on_its_own);
    OK(nc_close(small_file("storm.nc", NC_CLOBBER)));
    run(storm);
    return 0;
}
