/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Datasets in memory that are written to their path when they are closed: whoever is killed, or ends, while a thread does
 * that leaves a whole file, with what was closed last or what is being closed. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WIDTH = 60000, ROUNDS = 40 };

/* Closed last, and begun last: memory that outlives the process. */
static _Atomic int *said;

static void make(const char *path, int format) {
    static int zeros[WIDTH];
    int nc, dim, var;
    OK(nc_create(path, NC_CLOBBER | format, &nc));
    OK(nc_def_dim(nc, "x", WIDTH, &dim));
    OK(nc_def_var(nc, "v", NC_INT, 1, &dim, &var));
    OK(nc_enddef(nc));
    OK(nc_put_var_int(nc, var, zeros));
    OK(nc_close(nc));
}

static void *closes(void *path) {
    static int values[WIDTH];
    for (int n = 1;; n++) {
        int nc;
        for (int i = 0; i < WIDTH; i++) values[i] = n;
        said[1] = n;
        OK(nc_open(path, NC_WRITE | NC_DISKLESS | NC_PERSIST, &nc));
        /* At the end of the process a file in memory may have been committed already. */
        if (nc_put_var_int(nc, 0, values) != NC_NOERR || nc_close(nc) != NC_NOERR) return NULL;
        said[0] = n;
    }
}

static _Noreturn void life(char *path, unsigned delay, int is_killed) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, closes, path) == 0);
    usleep(delay);
    if (is_killed) kill(getpid(), SIGKILL);
    exit(0);
}

int main(void) {
    static int values[WIDTH];
    static char path[] = "persist.nc";
    int n_changed = 0;
    said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(said != MAP_FAILED);
    for (int round = 0; round < ROUNDS; round++) {
        int nc, status, format = round & 2 ? NC_NETCDF4 : 0;
        make(path, format);
        said[0] = said[1] = 0;
        pid_t made = fork();
        CHECK(made >= 0);
        if (made == 0) life(path, 1000 + (unsigned)(round * 7919 % 20000), round & 1);
        CHECK(waitpid(made, &status, 0) == made);
        OK(nc_open(path, NC_NOWRITE, &nc));
        OK(nc_get_var_int(nc, 0, values));
        OK(nc_close(nc));
        if (values[0] < said[0] || values[0] > said[1])
            fprintf(stderr, "round %d: %d; %d was closed, %d begun\n", round, values[0], said[0], said[1]);
        CHECK(values[0] >= said[0] && values[0] <= said[1]);
        for (int i = 0; i < WIDTH; i++) CHECK(values[i] == values[0]);
        n_changed += values[0] > 0;
    }
    CHECK(n_changed > ROUNDS / 4);
    printf("%d programs ended while they wrote a file anew, each left a whole one\n", ROUNDS);
    return 0;
}
