/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * With ZONDA_EXPLAIN=1 each call that fails is explained on standard error, and no other call. */
#include "check.h"
#include <fcntl.h>

/* What is on standard error from here on goes to a file. */
static int caught(void) {
    int own = dup(2), file = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(own > 2 && file > 2);
    dup2(file, 2);
    close(file);
    return own;
}

/* Ends that, and gives what was said. */
static void back(int own, char *said, size_t most) {
    lseek(2, 0, SEEK_SET);
    ssize_t n = read(2, said, most - 1);
    said[n < 0 ? 0 : n] = 0;
    dup2(own, 2);
    close(own);
}

int main(void) {
    int nc, id;
    char said[4096];
    setenv("ZONDA_EXPLAIN", "1", 1);
    nc = small_file("explain.nc", NC_CLOBBER);
    int own = caught();
    int codes[] = {
        nc_inq_varid(nc, "f", &id),
        nc_inq_varid(nc, "nowhere", &id),
        nc_put_vara_int(nc, 0, (size_t[]){0, 2}, (size_t[]){1, 2}, (int[]){1, 2}),
        nc_open("nowhere.nc", NC_NOWRITE, &id),
        nc_sync(nc),
    };
    back(own, said, sizeof said);
    CHECK(codes[0] == NC_NOERR && codes[1] == NC_ENOTVAR && codes[2] == NC_EEDGE && codes[3] == 2 && codes[4] == NC_NOERR);
    const char *expected[] = {"zonda: nc_inq_varid: ", "explain.nc", "nowhere", "\nzonda: nc_put_vara: ", "explain.nc", "start 2 + count 2", "\nzonda: nc_open: ", "nowhere.nc"};
    const char *at = said;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        at = strstr(at, expected[i]);
        if (!at) fprintf(stderr, "no \"%s\" in:\n%s", expected[i], said);
        CHECK(at);
    }
    size_t lines = 0;
    for (at = said; *at; at++) lines += *at == '\n';
    CHECK(lines == 3);
    OK(nc_close(nc));
    return 0;
}
