/* SPDX-License-Identifier: MIT OR Apache-2.0
 * What a thread has of the library goes when the thread ends: many short threads leave no memory behind. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>

static void *work(void *unused) {
    int nc, var;
    double values[100];
    OK(nc_open("ends.nc", NC_NOWRITE, &nc));
    OK(nc_inq_varid(nc, "v", &var));
    OK(nc_get_var_double(nc, var, values));
    CHECK(values[99] == 99);
    OK(nc_close(nc));
    return unused;
}

static size_t after_threads(int n) {
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return mallinfo2().uordblks;
}

int main(void) {
    for (int form = 0; form < 2; form++) {
        int nc, dim, var;
        double values[100];
        for (int i = 0; i < 100; i++) values[i] = i;
        OK(nc_create("ends.nc", NC_CLOBBER | (form ? NC_NETCDF4 : 0), &nc));
        OK(nc_def_dim(nc, "x", 100, &dim));
        OK(nc_def_var(nc, "v", NC_DOUBLE, 1, &dim, &var));
        if (form) OK(nc_def_var_deflate(nc, var, 1, 1, 1));
        OK(nc_enddef(nc));
        OK(nc_put_var_double(nc, var, values));
        OK(nc_close(nc));
        /* One arena, so that what is counted is what is taken. */
        mallopt(M_ARENA_MAX, 1);
        size_t before = after_threads(100), after = after_threads(1000);
        /* A value left behind by each thread is at least 16 bytes. */
        if (after > before + 8000) fprintf(stderr, "form %d: %zu bytes grow to %zu\n", form, before, after);
        CHECK(after <= before + 8000);
    }
    return 0;
}
