/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * digest FILE...: what this process's libnetcdf reads in each file. */
#include "digest.h"

int main(int argc, char **argv) {
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        int nc, code = nc_open(argv[i], NC_NOWRITE, &nc);
        if (argc > 2) printf("== %s\n", argv[i]);
        if (code) {
            printf("!open: %d %s\n", code, nc_strerror(code));
            bad = 1;
            continue;
        }
        print_group(stdout, nc, 1);
        code = nc_close(nc);
        if (code) printf("!close: %d\n", code);
        fflush(stdout);
    }
    return bad;
}
