/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A fork while another thread is in a long call waits no longer than 2 s. The child's calls on that file
 * are ECHILD at once, also on a classic file; the parent loses nothing. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1 << 20 };
static double values[N];
static int nc, var;
static _Atomic int is_over;

static void *put(void *unused) {
    OK(nc_put_var_double(nc, var, values));
    OK(nc_sync(nc));
    is_over = 1;
    return unused;
}

static void forks(int flags) {
    int dim, status;
    double got = 0;
    pthread_t thread;
    is_over = 0;
    OK(nc_create("bound.nc", NC_CLOBBER | flags, &nc));
    OK(nc_def_dim(nc, "x", N, &dim));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 1, &dim, &var));
    OK(nc_enddef(nc));
    CHECK(pthread_create(&thread, NULL, put, NULL) == 0);
    usleep(500000);
    pid_t made = fork();
    CHECK(made >= 0);
    if (made == 0) {
        alarm(30);
        FAILS(nc_get_var1_double(nc, var, (size_t[]){0}, &got), ECHILD);
        FAILS(nc_put_var1_double(nc, var, (size_t[]){0}, &got), ECHILD);
        FAILS(nc_close(nc), ECHILD);
        _exit(0);
    }
    /* The fork came back before the call did. */
    CHECK(!is_over);
    CHECK(waitpid(made, &status, 0) == made);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(nc_get_var1_double(nc, var, (size_t[]){N - 1}, &got));
    CHECK(got == N - 1);
    OK(nc_close(nc));
}

int main(void) {
    setenv("ZONDA_ASYNC", "off", 1);
    /* 8 MB in 8 s. */
    setenv("ZONDA_IO", "throttle:1M,file", 1);
    for (int i = 0; i < N; i++) values[i] = i;
    forks(0);
    forks(NC_64BIT_DATA);
    return 0;
}
