/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A process that ends by exit or quick_exit without nc_close loses nothing of what it put in data mode. */
#include "check.h"
#include <sys/wait.h>

int main(void) {
    static const int flags[] = {NC_CLOBBER, NC_64BIT_OFFSET, NC_64BIT_DATA};
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            int nc = small_file("drain.nc", flags[i % 3]);
            for (size_t r = 0; r < 1000; r++) {
                int row[3] = {(int)r, (int)r + 1, (int)r + 2};
                OK(nc_put_vara_int(nc, 0, (size_t[]){r, 0}, (size_t[]){1, 3}, row));
            }
            if (i >= 3) quick_exit(0);
            exit(0);
        }
        int status, nc, last = 0;
        size_t len;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        OK(nc_open("drain.nc", NC_NOWRITE, &nc));
        OK(nc_inq_dimlen(nc, 0, &len));
        CHECK(len == 1000);
        for (size_t r = 0; r < 1000; r++) {
            OK(nc_get_var1_int(nc, 0, (size_t[]){r, 2}, &last));
            CHECK(last == (int)r + 2);
        }
        OK(nc_close(nc));
    }
    return 0;
}
