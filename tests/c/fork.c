/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A process forks with files open for reading and for writing. The child reads, and its exit does
 * not touch the parent's file; the parent goes on writing. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

static int writing;
static volatile int stop;

/* Keeps the file busy, so that the fork happens in the middle of calls. */
static void *busy(void *argument) {
    (void)argument;
    for (int i = 0; !stop; i++) {
        int value = i;
        OK(nc_put_var1_int(writing, 0, (size_t[]){0, 0}, &value));
    }
    return NULL;
}

static void forks(int flags) {
    int reading, value = 0;
    stop = 0;
    OK(nc_close(small_file("read.nc", flags)));
    OK(nc_open("read.nc", NC_NOWRITE, &reading));
    writing = small_file("write.nc", flags);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, busy, NULL) == 0);
    for (int round = 0; round < 20; round++) {
        value = 100 + round;
        OK(nc_put_var1_int(writing, 0, (size_t[]){(size_t)round + 2, 1}, &value));
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            OK(nc_get_var1_int(reading, 0, (size_t[]){1, 2}, &value));
            CHECK(value == 6);
            FAILS(nc_put_var1_int(writing, 0, (size_t[]){0, 0}, &value), ECHILD);
            int mine = small_file("child.nc", flags);
            OK(nc_close(mine));
            if (round % 3 == 0) nc_close(writing); /* whatever it answers, the file is not its own */
            if (round % 3 == 1) exit(0);           /* with exit handlers */
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    OK(nc_close(writing));
    OK(nc_close(reading));
    OK(nc_open("write.nc", NC_NOWRITE, &reading));
    for (int round = 0; round < 20; round++) {
        OK(nc_get_var1_int(reading, 0, (size_t[]){(size_t)round + 2, 1}, &value));
        CHECK(value == 100 + round);
    }
    OK(nc_close(reading));
}

int main(void) {
    forks(NC_CLOBBER);
    forks(NC_CLOBBER | NC_NETCDF4);
    forks(NC_CLOBBER | NC_NETCDF4 | NC_CLASSIC_MODEL);
    return 0;
}
