/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A process forks while a call is under way, on another thread or, in a signal handler, on its own. Each
 * call of the child on that file returns; the parent goes on and loses nothing. */
#include "during.h"
#include "outside_malloc.h"
#include <errno.h>
#include <pthread.h>

static const Case *running;
static _Atomic int stop, n_forks;

/* An inquiry, a get, a put and a close: each answers, and the number comes free. */
static void child(void) {
    int nc = open_id, n, code;
    double x = 0;
    /* Only hangs are bounded. */
    alarm(HANGS / 2);
    signal(SIGALRM, SIG_DFL);
    if (nc >= 0) {
        code = nc_inq_ndims(nc, &n);
        int lost = code == ECHILD;
        CHECK(code == NC_NOERR || code == ECHILD || code == NC_EBADID);
        if (code != NC_EBADID) {
            code = nc_get_var1_double(nc, var, (size_t[]){0, 1}, &x);
            CHECK(lost ? code == ECHILD : code == NC_NOERR || code == NC_EINDEFINE || code == ECHILD);
            CHECK(code != NC_NOERR || x == value(0, 1));
            FAILS(nc_put_var1_double(nc, var, (size_t[]){0, 1}, &x), ECHILD);
            code = nc_close(nc);
            CHECK(code == (lost ? ECHILD : NC_NOERR));
            FAILS(nc_inq_ndims(nc, &n), NC_EBADID);
        }
    }
    /* Other files are none of the parent's. */
    char mine[80];
    snprintf(mine, sizeof mine, "%s.child.nc", path);
    OK(nc_create(mine, NC_CLOBBER | running->flags, &nc));
    OK(nc_def_dim(nc, "x", 3, &n));
    OK(nc_close(nc));
    _exit(0);
}

static void forks(void) {
    pid_t made = fork();
    CHECK(made >= 0);
    if (made == 0) child();
    int status;
    CHECK(waitpid(made, &status, 0) == made);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        fprintf(stderr, "%s: a child ends with %#x\n", running->name, (unsigned)status);
        _exit(1);
    }
    n_forks++;
}

static void handler(int number) {
    (void)number;
    if (come_back_later()) return;
    forks();
    stop = 1;
}

static void *work(void *unused) {
    (void)unused;
    for (int step = 1; !stop; step++) running->once(step);
    return NULL;
}

/* Variants: even ones fork in a handler on the thread itself, odd ones on another thread. */
static void forks_during(const Case *c, int variant) {
    int delay = 20000 + 45000 * (variant / 2);
    set_up(c);
    running = c;
    signal(SIGALRM, handler);
    if (variant % 2) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        usleep((unsigned)delay);
        forks();
        stop = 1;
        CHECK(pthread_join(thread, NULL) == 0);
    } else {
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, delay}}, NULL);
        work(NULL);
    }
    CHECK(n_forks == 1);
    for (size_t record = 0; record < RECORDS; record++) put_record(open_id, record);
    for (size_t record = 0; record < RECORDS; record++) CHECK(checked(open_id, record));
    OK(nc_close(open_id));
}

int main(void) {
    CHECK(all_cases(forks_during, 4) == 0);
    return 0;
}
