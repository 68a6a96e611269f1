/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A session that puts one attribute and syncs, some twenty times, and ends.
 *
 *   killed FILE LENGTH kill|close      the attribute has LENGTH values and more */
#define _GNU_SOURCE
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ok(int code, int line) {
    if (code) {
        fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
        exit(1);
    }
}
#define OK(call) ok(call, __LINE__)

int main(int count, char **args) {
    enum { PUTS = 20 };
    static double values[1000];
    size_t length = count > 3 ? strtoul(args[2], NULL, 10) : 1;
    int nc;
    if (access(args[1], F_OK))
        OK(nc_create(args[1], NC_NETCDF4, &nc));
    else
        OK(nc_open(args[1], NC_WRITE, &nc));
    for (size_t k = 0; k < PUTS; k++) {
        values[0] = (double)k;
        OK(nc_put_att_double(nc, NC_GLOBAL, "a", NC_DOUBLE, length + k, values));
        OK(nc_sync(nc));
    }
    if (strcmp(args[3], "kill") == 0) kill(getpid(), SIGKILL);
    OK(nc_close(nc));
    return 0;
}
