/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Forks while the library that does TLS is loaded for the first https:// URL of the process. Each child opens a file by
 * itself, as the parent does.
 *
 *     forks URL FILE around N   three threads fork up to N times each, while the first one opens the URL for the first time;
 *                               their children open URL and FILE in turn
 *     forks URL FILE within     a library that says when it is half loaded (half.c) takes the place of the true one: one thread
 *                               forks at this moment, and the child opens URL
 *
 * One line for each child that fails, and one at the end with the number of children; the status says whether all went well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netcdf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 3
/* A child that waits for ever ends by this. */
#define CHILD_SECONDS 60
/* How often a thread has to be seen asleep before it counts as one that waits for the loader. */
#define TIMES_ASLEEP 100

const char *nc_zonda_last_error(void);

static const char *url, *file;
static int n_forks;
static pthread_barrier_t begin;
static atomic_int is_open, n_children, n_failed;
static atomic_int is_loading, is_about_to_fork, has_forked;
static atomic_int forker;

static void nap(void) {
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
}

/* Opens, reads all of the first variable, closes; what failed, or NULL. */
static const char *attempt(const char *path) {
    static char said[1000];
    int id, type, n_dims, dims[NC_MAX_VAR_DIMS], i, code;
    size_t n = 1, len;
    void *values;

    if ((code = nc_open(path, NC_NOWRITE, &id))) {
        snprintf(said, sizeof said, "%s (%s)", nc_strerror(code), nc_zonda_last_error());
        return said;
    }
    if ((code = nc_inq_var(id, 0, NULL, &type, &n_dims, dims, NULL))) return nc_strerror(code);
    for (i = 0; i < n_dims; i++) {
        if ((code = nc_inq_dimlen(id, dims[i], &len))) return nc_strerror(code);
        n *= len;
    }
    if (!(values = malloc(n * 8 + 1))) return "no memory";
    if ((code = nc_get_var(id, 0, values))) return nc_strerror(code);
    free(values);
    return (code = nc_close(id)) ? nc_strerror(code) : NULL;
}

static void child(const char *path) {
    const char *why;

    alarm(CHILD_SECONDS);
    if ((why = attempt(path))) {
        printf("a child cannot read %s: %s\n", path, why);
        fflush(stdout);
        _exit(1);
    }
    _exit(0);
}

/* Waits for a child, and counts it. */
static void ended(pid_t pid) {
    int status;

    atomic_fetch_add(&n_children, 1);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        printf("no child: %s\n", strerror(errno));
        atomic_fetch_add(&n_failed, 1);
    } else if (WIFSIGNALED(status)) {
        printf("a child ends by signal %d\n", WTERMSIG(status));
        atomic_fetch_add(&n_failed, 1);
    } else if (WEXITSTATUS(status)) {
        atomic_fetch_add(&n_failed, 1);
    }
}

static void *fork_around(void *number) {
    pid_t pids[64];
    int i, first = (int)(size_t)number;

    pthread_barrier_wait(&begin);
    for (i = 0; i < n_forks && i < 64 && !is_open; i++) {
        fflush(NULL);
        if ((pids[i] = fork()) == 0) child((first + i) % 2 ? file : url);
    }
    while (i-- > 0) ended(pids[i]);
    return NULL;
}

static void *fork_within(void *unused) {
    pid_t pid;

    (void)unused;
    forker = (int)syscall(SYS_gettid);
    while (!is_loading) nap();
    is_about_to_fork = 1;
    if ((pid = fork()) == 0) child(url);
    has_forked = 1;
    ended(pid);
    return NULL;
}

/* Whether a thread of this process waits for something. */
static int is_asleep(int thread) {
    char path[64], text[400], *end;
    FILE *stat;
    size_t n;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    if (!(stat = fopen(path, "r"))) return 0;
    n = fread(text, 1, sizeof text - 1, stat);
    fclose(stat);
    text[n] = 0;
    /* Behind the name, which may have anything in it. */
    return (end = strrchr(text, ')')) && end[1] == ' ' && end[2] == 'S';
}

/* Called while the loader is at work: returns when the other thread has forked, or waits for the loader. */
void forks_in_loader(void) {
    int n = 0;

    is_loading = 1;
    while (!is_about_to_fork) nap();
    while (!has_forked && n < TIMES_ASLEEP) {
        n += is_asleep(forker);
        nap();
    }
}

int main(int argc, char **argv) {
    pthread_t threads[N_THREADS];
    size_t i, n;
    const char *why;
    void *(*work)(void *);

    if (argc < 4) return 2;
    url = argv[1], file = argv[2], n_forks = argc > 4 ? atoi(argv[4]) : 1;
    work = n_forks && !strcmp(argv[3], "around") ? fork_around : fork_within;
    n = work == fork_around ? N_THREADS : 1;
    pthread_barrier_init(&begin, NULL, N_THREADS + 1);
    for (i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    }
    if (work == fork_around) pthread_barrier_wait(&begin);
    if ((why = attempt(url))) {
        printf("the parent cannot read %s: %s\n", url, why);
        fflush(stdout);
        _exit(1);
    }
    is_open = 1;
    if (work == fork_within && !is_loading) {
        printf("nothing was loaded that says so\n");
        fflush(stdout);
        _exit(1);
    }
    for (i = 0; i < n; i++) pthread_join(threads[i], NULL);
    printf("%d children, %d of them failed\n", n_children, n_failed);
    return n_failed != 0;
}
