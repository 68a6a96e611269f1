/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program with files open, for the scenes of run.py: takes commands line by line and answers each with
 * one line, "CODE SECONDS VALUES". It knows write-behind only by nc_zonda_async_status, if that is there.
 *
 *   create ID FORMAT WIDTH PATH   1 2 5, 4 (netCDF-4), z (the same, deflated); dimensions t (unlimited) and x;
 *                                 variables a(t, x) double, b(t, x) float, f(x) double
 *   open ID r|w PATH
 *   put ID FIRST N                N records, a and b in turns, a record to a call; says how many calls were accepted
 *   big ID FIRST N                N records of a in one call, then of b
 *   ones ID FIRST N               the same element by element
 *   fixed ID                      f
 *   get ID VAR FIRST N            how many of the records are right, not yet there (some fill values), wrong
 *   len ID                        of t
 *   sync ID | close ID | redef ID | enddef ID | abort ID
 *   attribute ID NAME             an attribute of the file
 *   status ID                     pending bytes and kept error
 *   nulls ID                      the same without room for answers; 0 if it does what it says, also for wrong ids
 *   threads ID T FIRST N          N records by T threads in turns
 *   closer ID                     another thread closes
 *   fork ID READ_ID HOW PATH      a child tries what a child may; it ends by exit, _exit or close
 *   signals ID RECORD             a signal to the process while library threads run
 *   names                         names of the threads other than the first
 *   memory                        most resident memory so far, in bytes
 *   exit N | _exit N
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <netcdf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 16, NOT_THERE = -999 };
typedef struct {
    int nc;
    size_t width;
} File;
static File files[FILES];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What element i of a record is; exact in float. */
static double value(int var, size_t record, size_t i) {
    return var == 0 ? (double)record * 1000.0 + (double)(i % 997) : (double)record + (double)(i % 512) * 0.25;
}

static int create(File *f, const char *path, char format, size_t width) {
    static const struct { char name; int mode; } modes[] = {
        {'1', 0}, {'2', NC_64BIT_OFFSET}, {'5', NC_64BIT_DATA}, {'4', NC_NETCDF4}, {'z', NC_NETCDF4}};
    int dims[2], ids[3], mode = 0, old;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (modes[i].name == format) mode = modes[i].mode;
    int status = nc_create(path, NC_CLOBBER | mode, &f->nc);
    if (status) return status;
    f->width = width;
    nc_set_fill(f->nc, NC_FILL, &old);
    nc_def_dim(f->nc, "t", NC_UNLIMITED, &dims[0]);
    nc_def_dim(f->nc, "x", width, &dims[1]);
    nc_def_var(f->nc, "a", NC_DOUBLE, 2, dims, &ids[0]);
    nc_def_var(f->nc, "b", NC_FLOAT, 2, dims, &ids[1]);
    nc_def_var(f->nc, "f", NC_DOUBLE, 1, dims + 1, &ids[2]);
    if (mode == NC_NETCDF4)
        for (int v = 0; v < 2; v++) {
            nc_def_var_chunking(f->nc, ids[v], NC_CHUNKED, (size_t[]){1, width});
            if (format == 'z') nc_def_var_deflate(f->nc, ids[v], 1, 1, 1);
        }
    return nc_enddef(f->nc);
}

static int open_file(File *f, const char *path, int write) {
    int dim, status = nc_open(path, write ? NC_WRITE : NC_NOWRITE, &f->nc);
    if (!status) status = nc_inq_dimid(f->nc, "x", &dim);
    if (!status) status = nc_inq_dimlen(f->nc, dim, &f->width);
    return status;
}

/* `n` records of a variable in one call. */
static int put_block(const File *f, int var, size_t first, size_t n) {
    double *values = malloc(n * f->width * sizeof *values + 1);
    if (!values) return NC_ENOMEM;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < f->width; i++) values[r * f->width + i] = value(var, first + r, i);
    int status = nc_put_vara_double(f->nc, var, (size_t[]){first, 0}, (size_t[]){n, f->width}, values);
    memset(values, 0xee, n * f->width * sizeof *values);
    free(values);
    return status;
}

static int put_ones(const File *f, size_t first, size_t n, size_t *done) {
    int status = NC_NOERR;
    for (size_t r = first; r < first + n; r++)
        for (size_t i = 0; i < f->width; i++)
            for (int v = 0; v < 2; v++) {
                double x = value(v, r, i);
                status = nc_put_var1_double(f->nc, v, (size_t[]){r, i}, &x);
                if (status) return status;
                ++*done;
            }
    return status;
}

/* Records that are right, that are there in part or not at all, and that are wrong. */
static int get(const File *f, int var, size_t first, size_t n, size_t counts[3]) {
    double *values = malloc(f->width * sizeof *values + 1);
    int status = NC_NOERR;
    for (size_t r = first; r < first + n && !status; r++) {
        status = nc_get_vara_double(f->nc, var, (size_t[]){r, 0}, (size_t[]){1, f->width}, values);
        size_t absent = 0, wrong = 0;
        for (size_t i = 0; i < f->width && !status; i++)
            if (values[i] != value(var, r, i)) ++*(values[i] > 9.9e36 && values[i] < 1e37 ? &absent : &wrong);
        counts[status ? 2 : wrong ? 2 : absent ? 1 : 0]++;
    }
    free(values);
    return status;
}

static int length(const File *f, size_t *len) {
    int dim, status = nc_inq_dimid(f->nc, "t", &dim);
    return status ? status : nc_inq_dimlen(f->nc, dim, len);
}

static int behind(int nc, size_t *pending, int *kept) {
    int (*status)(int, size_t *, int *);
    *(void **)&status = dlsym(RTLD_DEFAULT, "nc_zonda_async_status");
    return status ? status(nc, pending, kept) : NOT_THERE;
}

static int nulls(int nc) {
    size_t pending = 77;
    int kept = 77;
    if (behind(nc, NULL, NULL) || behind(nc, &pending, NULL) || behind(nc, NULL, &kept)) return 1;
    if (pending == 77 || kept == 77) return 2;
    return behind(-1, &pending, &kept) == NC_EBADID && behind(nc + (1 << 20), NULL, NULL) == NC_EBADID ? 0 : 3;
}

/* ---- Threads, signals, children ---------------------------------------------------------------- */

typedef struct {
    const File *file;
    size_t first, step, end;
    int status;
} Part;

static void *put_part(void *argument) {
    Part *p = argument;
    for (size_t r = p->first; r < p->end && !p->status; r += p->step)
        for (int v = 0; v < 2 && !p->status; v++) {
            p->status = put_block(p->file, v, r, 1);
            size_t counts[3] = {0, 0, 0};
            /* What a thread put it reads, whoever else is at it. */
            if (!p->status && r % 7 == 0) p->status = get(p->file, v, r, 1, counts);
            if (!p->status && counts[1] + counts[2]) p->status = NOT_THERE;
        }
    return NULL;
}

static int put_by_threads(const File *f, size_t threads, size_t first, size_t n) {
    pthread_t ids[64];
    Part parts[64];
    int status = NC_NOERR;
    if (threads > 64) return NOT_THERE;
    for (size_t k = 0; k < threads; k++) {
        parts[k] = (Part){f, first + k, threads, first + n, NC_NOERR};
        if (pthread_create(&ids[k], NULL, put_part, &parts[k])) return NOT_THERE;
    }
    for (size_t k = 0; k < threads; k++) {
        pthread_join(ids[k], NULL);
        if (parts[k].status) status = parts[k].status;
    }
    return status;
}

static void *close_it(void *argument) {
    int *nc = argument;
    *nc = nc_close(*nc);
    return NULL;
}

static int close_elsewhere(int nc) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, close_it, &nc)) return NOT_THERE;
    pthread_join(thread, NULL);
    return nc;
}

/* "zonda-io-0 zonda-io-1 ": the other threads. */
static size_t thread_names(char *text, size_t room) {
    size_t n = 0, at = 0;
    DIR *tasks = opendir("/proc/self/task");
    text[0] = 0;
    for (struct dirent *t; tasks && (t = readdir(tasks));) {
        char path[300], name[64] = "";
        if (t->d_name[0] == '.' || atoi(t->d_name) == getpid()) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", t->d_name);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        if (fgets(name, sizeof name, f) && at + sizeof name < room) {
            name[strcspn(name, "\n")] = 0;
            at += (size_t)snprintf(text + at, room - at, " %s", name);
            n++;
        }
        fclose(f);
    }
    if (tasks) closedir(tasks);
    return n;
}

static volatile sig_atomic_t handled, handled_elsewhere;
static void handler(int signal) {
    (void)signal;
    handled++;
    if (syscall(SYS_gettid) != getpid()) handled_elsewhere++;
}

/* A signal to the process that the program's only thread blocks waits for it: no other may take it. Says how
 * often the handler ran while blocked, afterwards, and on other threads. */
static int signals(const File *f, size_t record, int said[3]) {
    sigset_t set;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    handled = handled_elsewhere = 0;
    int status = put_block(f, 0, record, 1); /* starts threads while nothing is blocked */
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 5; i++) {
        kill(getpid(), SIGUSR1);
        if (!status) status = put_block(f, 1, record, 1);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    said[0] = handled;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    said[1] = handled;
    said[2] = handled_elsewhere;
    return status;
}

/* What a child may do and may not. The number of the step at which it went wrong, or 0. */
static int child(const File *writing, const File *reading, const char *path) {
    size_t counts[3] = {0, 0, 0}, pending = 0;
    int kept = 0;
    File mine = {0, 0};
    char names[4096];
    alarm(60);
    if (thread_names(names, sizeof names)) return 1; /* threads do not come along */
    if (get(reading, 0, 0, 1, counts) || counts[0] != 1) return 2;
    if (put_block(writing, 0, 0, 1) == NC_NOERR) return 3;
    if (create(&mine, path, '5', 100)) return 4;
    if (put_block(&mine, 0, 0, 20) || put_block(&mine, 1, 0, 20)) return 5;
    counts[0] = 0;
    if (get(&mine, 0, 3, 5, counts) || counts[0] != 5) return 6;
    if (nc_sync(mine.nc)) return 7;
    if (behind(mine.nc, &pending, &kept) != NOT_THERE && (pending || kept)) return 8;
    if (nc_close(mine.nc)) return 9;
    return 0;
}

static int fork_child(const File *writing, const File *reading, const char *how, const char *path) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int step = child(writing, reading, path);
        if (!step && !strcmp(how, "close")) nc_close(writing->nc); /* whatever it says, nothing is its own */
        if (!step && strcmp(how, "_exit")) {
            close(0); /* else exit() gives back to the parent's input what was read ahead */
            close(1);
            exit(0);
        }
        _exit(step);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return NOT_THERE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static size_t most_memory(void) {
    char line[200];
    size_t kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %zu", &kb) == 1) break;
    if (f) fclose(f);
    return kb * 1024;
}

/* ---- Commands ---------------------------------------------------------------------------------- */

/* Does what a line says; gives the code and, in `said`, values. */
static int command(const char *word, int id, const char *rest, char *said, size_t room) {
    File *f = &files[id], *other;
    size_t a = 0, b = 0, c = 0, counts[3] = {0, 0, 0};
    int n = 0, status = NOT_THERE, three[3];
    char format = 0, how[16] = "";
#define IS(name) !strcmp(word, name)
    if (IS("create") && sscanf(rest, "%c %zu %n", &format, &a, &n) == 2) return create(f, rest + n, format, a);
    if (IS("open")) return open_file(f, rest + 2, rest[0] == 'w');
    if (IS("put") && sscanf(rest, "%zu %zu", &a, &b) == 2) {
        status = NC_NOERR;
        for (size_t r = a; r < a + b && !status; r++)
            for (int v = 0; v < 2 && !status; v++)
                if (!(status = put_block(f, v, r, 1))) c++;
        snprintf(said, room, "%zu", c);
    } else if (IS("big") && sscanf(rest, "%zu %zu", &a, &b) == 2) {
        status = put_block(f, 0, a, b);
        if (!status) status = put_block(f, 1, a, b);
    } else if (IS("ones") && sscanf(rest, "%zu %zu", &a, &b) == 2) {
        status = put_ones(f, a, b, &c);
        snprintf(said, room, "%zu", c);
    } else if (IS("fixed")) {
        double *values = malloc(f->width * sizeof *values + 1);
        for (size_t i = 0; i < f->width; i++) values[i] = value(0, 7, i);
        status = nc_put_var_double(f->nc, 2, values);
        free(values);
    } else if (IS("get") && sscanf(rest, "%d %zu %zu", &n, &a, &b) == 3) {
        status = get(f, n, a, b, counts);
        snprintf(said, room, "%zu %zu %zu", counts[0], counts[1], counts[2]);
    } else if (IS("len")) {
        status = length(f, &a);
        snprintf(said, room, "%zu", a);
    } else if (IS("sync")) return nc_sync(f->nc);
    else if (IS("close")) return nc_close(f->nc);
    else if (IS("redef")) return nc_redef(f->nc);
    else if (IS("enddef")) return nc_enddef(f->nc);
    else if (IS("abort")) return nc_abort(f->nc);
    else if (IS("attribute")) return nc_put_att_text(f->nc, NC_GLOBAL, rest, 5, "value");
    else if (IS("status")) {
        status = behind(f->nc, &a, &n);
        snprintf(said, room, "%zu %d", a, n);
    } else if (IS("nulls")) return nulls(f->nc);
    else if (IS("threads") && sscanf(rest, "%zu %zu %zu", &a, &b, &c) == 3) return put_by_threads(f, a, b, c);
    else if (IS("closer")) return close_elsewhere(f->nc);
    else if (IS("fork") && sscanf(rest, "%d %15s %n", &n, how, &status) == 2 && n >= 0 && n < FILES) {
        other = &files[n];
        return fork_child(f, other, how, rest + status);
    } else if (IS("signals") && sscanf(rest, "%zu", &a) == 1) {
        status = signals(f, a, three);
        snprintf(said, room, "%d %d %d", three[0], three[1], three[2]);
    } else if (IS("names")) {
        status = NC_NOERR;
        thread_names(said, room);
    } else if (IS("memory")) {
        status = NC_NOERR;
        snprintf(said, room, "%zu", most_memory());
    } else if (IS("exit")) exit(id);
    else if (IS("_exit")) _exit(id);
#undef IS
    return status;
}

int main(void) {
    static char line[8192], said[8192];
    char word[32];
    while (fgets(line, sizeof line, stdin)) {
        int id = 0, at = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%31s %d %n", word, &id, &at) < 1) continue;
        if (id < 0 || id >= FILES) return 2;
        said[0] = 0;
        double began = now();
        int status = command(word, id, at ? line + at : "", said, sizeof said);
        printf("%d %.6f %s\n", status, now() - began, said);
        fflush(stdout);
    }
    /* The end of the input is the end of the program, by exit. */
    return 0;
}
