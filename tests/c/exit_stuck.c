/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A signal handler calls exit in the middle of an allocation, of the program's own or of a call. The lock
 * of the allocator is never given back; the program ends all the same, with its own status, its own
 * exit functions are called, and what was synced is there. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static void handler(int number) {
    (void)number;
    exit(7);
}

static void last_word(void) {
    if (write(3, "x", 1) != 1) _exit(9);
}

static void *idle(void *unused) {
    for (;;) pause();
    return unused;
}

/* Nearly all the time is spent in the allocator, with its lock. */
static void allocate(void) {
    static void *volatile taken;
    for (;;) {
        taken = malloc(4 << 20);
        free(taken);
    }
}

static void put(int nc) {
    static double values[200000];
    for (int i = 0; i < 200000; i++) values[i] = i % 1000;
    for (size_t t = 1;; t++)
        nc_put_vara_double(nc, 0, (size_t[]){t % 20, 0}, (size_t[]){1, 200000}, values);
}

static void child(int variant, int flags) {
    int nc, dims[2], var;
    pthread_t thread;
    sigset_t mask;
    atexit(last_word);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 4096);
    OK(nc_create("stuck.nc", flags | NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", 200000, &dims[1]));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 2, dims, &var));
    if (flags & NC_NETCDF4) OK(nc_def_var_deflate(nc, var, 0, 1, 1));
    OK(nc_enddef(nc));
    OK(nc_put_var1_double(nc, var, (size_t[]){0, 1}, &(double){42}));
    OK(nc_sync(nc));
    /* With one thread alone the C library takes no locks. */
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    CHECK(pthread_create(&thread, NULL, idle, NULL) == 0);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 30000 + 7919 * variant}}, NULL);
    if (variant % 2) put(nc);
    allocate();
}

int main(void) {
    for (int variant = 0; variant < 8; variant++) {
        int flags = variant & 2 ? NC_NETCDF4 : 0, status, nc, ends[2];
        double value = 0;
        char word;
        CHECK(pipe(ends) == 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            CHECK(dup2(ends[1], 3) == 3);
            child(variant, flags);
        }
        close(ends[1]);
        for (time_t begin = time(NULL); waitpid(pid, &status, WNOHANG) == 0;) {
            if (time(NULL) > begin + 20) kill(pid, SIGKILL);
            usleep(1000);
        }
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        CHECK(read(ends[0], &word, 1) == 1);
        close(ends[0]);
        OK(nc_open("stuck.nc", NC_NOWRITE, &nc));
        OK(nc_get_var1_double(nc, 0, (size_t[]){0, 1}, &value));
        CHECK(value == 42);
        OK(nc_close(nc));
    }
    return 0;
}
