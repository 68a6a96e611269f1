/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs that end, or fork, when nobody expects it. All is chosen by the seed: formats, threads, what they do, when and
 * how it ends. What a program was promised it writes to an oath, memory that outlives it; then a reader looks.
 *
 *   sudden show SEED exit|fork        the environment that it wants, and what it is
 *   sudden live SEED exit|fork STEM   the life; files STEM.0.nc ..., oath STEM.oath
 *   sudden look SEED exit|fork STEM   reads the files: all that was promised is there. To be run on any library
 *   sudden mend SEED exit|fork STEM   opens the files for writing and closes them */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netcdf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../c/outside_malloc.h"

enum { MOST_FILES = 2, MOST_THREADS = 4, MOST_ROWS = 8, SCALE = 4096, CHILD_SECONDS = 10 };
/* How a process ends. */
enum { IN_MAIN, IN_HANDLER, IN_THREAD, BY_RETURN, MAIN_LEAVES, QUICKLY, KILLED, N_ENDS };
static const char *const end_names[] = {"exit in main", "exit in a handler", "exit in a thread", "return of main",
                                        "pthread_exit of main", "quick_exit", "kill -9"};
/* Where a process forks, and how often. */
enum { FORK_IN_MAIN, FORK_IN_HANDLER, FORK_IN_THREAD, FORK_NESTED, N_FORKS };
static const char *const fork_names[] = {"fork in main", "fork in a handler", "fork in a thread", "fork in a child"};

static struct {
    int forks, way, format, n_files, n_threads, rows, width, handler_everywhere, child_exits;
    const char *async, *sync, *io;
    unsigned delay_us;
} plan;
static const struct {
    const char *name;
    int flags, deflates;
} formats[] = {{"classic", 0, 0},          {"CDF-5", NC_64BIT_DATA, 0},
               {"netCDF-4", NC_NETCDF4, 0}, {"netCDF-4 deflated", NC_NETCDF4, 1},
               {"netCDF-4 classic", NC_NETCDF4 | NC_CLASSIC_MODEL, 0}};

/* Versions of a row of a thread's variable. */
typedef struct {
    _Atomic int64_t started, done, sworn;
} Row;
typedef struct {
    _Atomic int is_made;
    Row rows[MOST_THREADS][MOST_ROWS];
    /* An attribute that is put again and again; attributes that were added. */
    Row att, added;
} FileOath;
typedef struct {
    FileOath files[MOST_FILES];
    _Atomic int n_children, n_children_well, error, error_line, ended, n_puts, n_syncs;
    char said[400];
} Oath;
static Oath *oath;
static const char *stem;

static uint64_t random_state;
static uint64_t below(uint64_t *state, uint64_t n) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % n;
}
#define ANY(n) ((int)below(&random_state, (uint64_t)(n)))
#define ONE_OF(list) list[ANY(sizeof list / sizeof *list)]

static void make_plan(uint64_t seed, int forks) {
    static const char *const asyncs[] = {"off", "off", "on", "mem=256K", "helper"};
    static const char *const syncs[] = {"none", "none", "data", "full"};
    static const char *const ios[] = {NULL, NULL, "cache,throttle:20M,file", "cachea:16:8:4,throttle:20M,file",
                                      "cache,throttle:40M:1ms,file", "bufa:64:4,throttle:20M,file", "file"};
    static const int widths[] = {16, 1000, 8192, 32768};
    random_state = seed * 2 + (uint64_t)forks + 77;
    plan.forks = forks;
    plan.way = ANY(forks ? N_FORKS : N_ENDS);
    plan.format = ANY(sizeof formats / sizeof *formats);
    plan.async = ONE_OF(asyncs);
    plan.sync = ONE_OF(syncs);
    plan.io = ONE_OF(ios);
    plan.n_files = 1 + ANY(MOST_FILES);
    plan.n_threads = 1 + ANY(MOST_THREADS);
    plan.rows = 2 + ANY(MOST_ROWS - 1);
    plan.width = ONE_OF(widths);
    plan.handler_everywhere = ANY(2);
    plan.child_exits = ANY(3);
    plan.delay_us = (unsigned)(ANY(2) ? ANY(20000) : ANY(400000));
}

static const char *path_of(int file) {
    static _Thread_local char path[300];
    snprintf(path, sizeof path, "%s.%d.nc", stem, file);
    return path;
}

/* What is wrong goes into the oath: the process may be in a handler, or at its end. */
static _Atomic int is_ending;
static int wrong(int code, int line) {
    int none = 0;
    if (atomic_compare_exchange_strong(&oath->error_line, &none, line)) {
        const char *(*last_error)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "nc_zonda_last_error");
        if (last_error && last_error()) snprintf(oath->said, sizeof oath->said, "%s", last_error());
        oath->error = code;
    }
    return code;
}
#define WANT(good)                                                                                                     \
    do {                                                                                                               \
        if (!(good)) {                                                                                                 \
            wrong(-9999, __LINE__);                                                                                    \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)

/* ---- The life */

static _Atomic int ids[MOST_FILES];
static int vars[MOST_THREADS];
static _Atomic int stop;

/* What another thread may be the cause of: it redefines the file, or has it closed. */
static int may_be(int code) {
    return code == NC_NOERR || code == NC_EINDEFINE || code == NC_ENOTINDEFINE || code == NC_EBADID || code == NC_EPERM ||
           (code == NC_EINVALCOORDS) || is_ending;
}
static int done(int code, int line) {
    if (!may_be(code)) wrong(code, line);
    return code == NC_NOERR;
}
#define DONE(call) done((call), __LINE__)

static double value(int64_t version, int row, int k) { return (double)version * SCALE + (k * 7 + row * 31) % SCALE; }

static void make(int file) {
    int id, dims[2];
    char name[20];
    WANT(nc_create(path_of(file), NC_CLOBBER | formats[plan.format].flags, &id) == NC_NOERR);
    WANT(nc_def_dim(id, "t", NC_UNLIMITED, &dims[0]) == NC_NOERR);
    WANT(nc_def_dim(id, "x", (size_t)plan.width, &dims[1]) == NC_NOERR);
    for (int thread = 0; thread < plan.n_threads; thread++) {
        snprintf(name, sizeof name, "v%d", thread);
        WANT(nc_def_var(id, name, NC_DOUBLE, 2, dims, &vars[thread]) == NC_NOERR);
        if (formats[plan.format].deflates) WANT(nc_def_var_deflate(id, vars[thread], 1, 1, 1) == NC_NOERR);
    }
    int zero = 0;
    WANT(nc_put_att_int(id, NC_GLOBAL, "version", NC_INT, 1, &zero) == NC_NOERR);
    WANT(nc_enddef(id) == NC_NOERR);
    WANT(nc_sync(id) == NC_NOERR);
    ids[file] = id;
    oath->files[file].is_made = 1;
}

/* All that was done before a commit began is sworn when it is done. */
typedef struct {
    int64_t rows[MOST_THREADS][MOST_ROWS], att, added;
} Before;
static Before before_commit(int file) {
    Before before;
    FileOath *of = &oath->files[file];
    for (int thread = 0; thread < MOST_THREADS; thread++)
        for (int row = 0; row < MOST_ROWS; row++) before.rows[thread][row] = of->rows[thread][row].done;
    before.att = of->att.done;
    before.added = of->added.done;
    return before;
}
static void swear_one(Row *row, int64_t version) {
    int64_t known = row->sworn;
    while (known < version && !atomic_compare_exchange_weak(&row->sworn, &known, version)) {}
}
static void swear(int file, const Before *before) {
    FileOath *of = &oath->files[file];
    for (int thread = 0; thread < MOST_THREADS; thread++)
        for (int row = 0; row < MOST_ROWS; row++) swear_one(&of->rows[thread][row], before->rows[thread][row]);
    swear_one(&of->att, before->att);
    swear_one(&of->added, before->added);
}

static void put_row(int thread, int file, int row, double *values) {
    Row *of = &oath->files[file].rows[thread][row];
    int64_t version = ++of->started;
    for (int k = 0; k < plan.width; k++) values[k] = value(version, row, k);
    size_t start[2] = {(size_t)row, 0}, count[2] = {1, (size_t)plan.width};
    if (DONE(nc_put_vara_double(ids[file], vars[thread], start, count, values))) {
        of->done = version;
        oath->n_puts++;
    }
}

static void get_row(int thread, int file, int row, double *values) {
    Row *of = &oath->files[file].rows[thread][row];
    size_t start[2] = {(size_t)row, 0}, count[2] = {1, (size_t)plan.width};
    if (of->done == 0 || of->done != of->started) return;
    if (!DONE(nc_get_vara_double(ids[file], vars[thread], start, count, values)) || is_ending) return;
    for (int k = 0; k < plan.width; k++)
        if (values[k] != value(of->done, row, k)) {
            if (wrong(-9998, __LINE__) && oath->error == -9998)
                snprintf(oath->said, sizeof oath->said, "thread %d, row %d, element %d: %.17g, not %.17g (version %d, sworn %d)", thread, row, k,
                         values[k], value(of->done, row, k), (int)of->done, (int)of->sworn);
            return;
        }
}

static void sync_file(int file) {
    Before before = before_commit(file);
    if (DONE(nc_sync(ids[file]))) {
        swear(file, &before);
        oath->n_syncs++;
    }
}

/* Only one thread redefines and closes, so that it knows what it waits for. */
static void redefine(int file) {
    char name[40];
    FileOath *of = &oath->files[file];
    if (!DONE(nc_redef(ids[file]))) return;
    int n = (int)of->added.started + 1;
    snprintf(name, sizeof name, "added_%d", n);
    double values[40];
    for (int k = 0; k < 40; k++) values[k] = n + k;
    of->added.started = n;
    int code = nc_put_att_double(ids[file], NC_GLOBAL, name, NC_DOUBLE, 40, values);
    if (!DONE(code)) {
        /* The end of the process has ended define mode: there is none of this number, yet. */
        of->added.started = n - 1;
        return;
    }
    of->added.done = n;
    Before before = before_commit(file);
    if (DONE(nc_enddef(ids[file]))) swear(file, &before);
}

static void put_att(int file) {
    Row *of = &oath->files[file].att;
    int version = (int)++of->started;
    if (DONE(nc_put_att_int(ids[file], NC_GLOBAL, "version", NC_INT, 1, &version))) of->done = version;
}

static void reopen(int file) {
    Before before = before_commit(file);
    if (!DONE(nc_close(ids[file]))) return;
    swear(file, &before);
    int id;
    if (DONE(nc_open(path_of(file), NC_WRITE, &id))) ids[file] = id;
}

static void end_here(int line);
static void fork_here(void);
static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
static int64_t began;

/* What a thread does until it is stopped. */
static void work(int thread, uint64_t state, int64_t act_at_us) {
    double *values = malloc((size_t)plan.width * sizeof *values);
    WANT(values != NULL);
    while (!stop) {
        if (act_at_us >= 0 && now_us() - began >= act_at_us) {
            act_at_us = -1;
            if (plan.forks)
                fork_here();
            else if (plan.way == MAIN_LEAVES)
                stop = 1;
            else
                end_here(__LINE__);
        }
        int file = (int)below(&state, (uint64_t)plan.n_files), row = (int)below(&state, (uint64_t)plan.rows);
        switch (below(&state, 12)) {
        case 0: case 1: case 2: case 3: case 4: put_row(thread, file, row, values); break;
        case 5: case 6: get_row(thread, file, row, values); break;
        case 7: case 8: sync_file(file); break;
        case 9: if (thread == 0) redefine(file); break;
        case 10: if (thread == 0) put_att(file); break;
        default: if (thread == 0 && file == 0) reopen(file);
        }
    }
    free(values);
}

static void *thread_main(void *of) {
    int thread = (int)(size_t)of;
    int acts = plan.forks ? plan.way == FORK_IN_THREAD : plan.way == IN_THREAD || plan.way == MAIN_LEAVES;
    work(thread, (uint64_t)thread * 1000 + plan.delay_us, acts && thread == plan.n_threads - 1 ? (int64_t)plan.delay_us : -1);
    return NULL;
}

static void end_here(int line) {
    is_ending = 1;
    oath->ended = line;
    if (plan.way == QUICKLY) quick_exit(7);
    if (plan.way == KILLED) kill(getpid(), SIGKILL);
    exit(7);
}

/* ---- The child */

static _Noreturn void child(int depth);
static pid_t nested(int depth) {
    pid_t made = fork();
    if (made == 0) child(depth + 1);
    return made;
}

static _Noreturn void child(int depth) {
    is_ending = 0;
    alarm(0);
    signal(SIGALRM, SIG_DFL);
    int all_well = 1;
    double *values = malloc((size_t)plan.width * sizeof *values);
    WANT(values != NULL);
    for (int file = 0; file < plan.n_files; file++) {
        int n, id = ids[file];
        int code = nc_inq_ndims(id, &n), lost = code == ECHILD;
        /* A close of the parent's may have been under way: then each call finds a file that has ended. */
        if (code == NC_EBADID) continue;
        if (code != NC_NOERR && !lost) all_well = 0, wrong(code, __LINE__);
        for (int row = 0; row < plan.rows; row++) {
            size_t start[2] = {(size_t)row, 0}, count[2] = {1, (size_t)plan.width};
            code = nc_get_vara_double(id, vars[0], start, count, values);
            if (lost ? code != ECHILD
                     : code != NC_NOERR && code != ECHILD && code != NC_EINVALCOORDS && code != NC_EEDGE && code != NC_EINDEFINE &&
                           code != NC_EBADID)
                all_well = 0, wrong(code, __LINE__);
        }
        code = nc_put_vara_double(id, vars[0], (size_t[]){0, 0}, (size_t[]){1, (size_t)plan.width}, values);
        if (code != ECHILD && code != NC_EBADID) all_well = 0, wrong(code, __LINE__);
        code = nc_sync(id);
        if (code != ECHILD && code != NC_EINDEFINE && code != NC_EBADID) all_well = 0, wrong(code, __LINE__);
        code = nc_close(id);
        if (code != (lost ? ECHILD : NC_NOERR) && code != NC_EBADID) all_well = 0, wrong(code, __LINE__);
    }
    char path[320];
    int id, dim, var;
    snprintf(path, sizeof path, "%s.child%d.nc", stem, depth);
    int flags = NC_CLOBBER | formats[plan.format].flags, code;
    if ((code = nc_create(path, flags, &id)) || (code = nc_def_dim(id, "x", (size_t)plan.width, &dim)) ||
        (code = nc_def_var(id, "v", NC_DOUBLE, 1, &dim, &var)) ||
        (formats[plan.format].deflates && (code = nc_def_var_deflate(id, var, 1, 1, 1))) || (code = nc_enddef(id)))
        all_well = 0, wrong(code, __LINE__);
    for (int k = 0; k < plan.width; k++) values[k] = value(depth, 0, k);
    if ((code = nc_put_var_double(id, var, values)) || (code = nc_sync(id))) all_well = 0, wrong(code, __LINE__);
    if ((code = nc_get_var_double(id, var, values)) || values[plan.width - 1] != value(depth, 0, plan.width - 1))
        all_well = 0, wrong(code, __LINE__);
    if (plan.way == FORK_NESTED && depth < 2) {
        pid_t made = nested(depth);
        int status;
        if (waitpid(made, &status, 0) != made || !WIFEXITED(status) || WEXITSTATUS(status) != 5) all_well = 0, wrong(-1, __LINE__);
    }
    if (plan.child_exits != 2 && (code = nc_close(id))) all_well = 0, wrong(code, __LINE__);
    free(values);
    oath->n_children_well += all_well;
    if (plan.child_exits) exit(5);
    _exit(5);
}

static void fork_here(void) {
    oath->n_children++;
    int64_t begin = now_us();
    pid_t made = fork();
    if (made == 0) child(1);
    if (made < 0 || now_us() - begin > 9000000) wrong(-1, __LINE__);
    int status;
    for (int n = 0;; n++) {
        pid_t got = waitpid(made, &status, WNOHANG);
        if (got == made) break;
        if (n > CHILD_SECONDS * 200) {
            wrong(-2, __LINE__);
            /* The driver looks at it. */
            for (;;) pause();
        }
        usleep(5000);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) wrong(status, __LINE__);
}

static void handler(int number) {
    (void)number;
    int saved = errno;
    if (plan.forks && come_back_later()) {
        errno = saved;
        return;
    }
    if (plan.forks)
        fork_here();
    else
        end_here(__LINE__);
    errno = saved;
}

static int live(void) {
    pthread_t threads[MOST_THREADS];
    sigset_t mask;
    for (int file = 0; file < plan.n_files; file++) make(file);
    began = now_us();
    int in_handler = plan.forks ? plan.way == FORK_IN_HANDLER : plan.way == IN_HANDLER;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    if (in_handler) signal(SIGALRM, handler);
    if (!plan.handler_everywhere) pthread_sigmask(SIG_BLOCK, &mask, NULL);
    /* The main thread is one of those that work where it gets the signal. */
    int main_works = in_handler && !plan.handler_everywhere;
    for (int thread = main_works; thread < plan.n_threads; thread++)
        WANT(pthread_create(&threads[thread], NULL, thread_main, (void *)(size_t)thread) == 0);
    if (in_handler) {
        pthread_sigmask(plan.handler_everywhere ? SIG_BLOCK : SIG_UNBLOCK, &mask, NULL);
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 1 + (int)plan.delay_us}}, NULL);
    }
    if (!plan.forks) {
        if (main_works) work(0, plan.delay_us, -1);
        /* The last thread ends the process. */
        if (plan.way == MAIN_LEAVES) pthread_exit(NULL);
        if (in_handler || plan.way == IN_THREAD)
            for (;;) pause();
        usleep(plan.delay_us);
        is_ending = 1;
        if (plan.way == BY_RETURN) {
            oath->ended = __LINE__;
            return 7;
        }
        end_here(__LINE__);
    }
    /* Where a signal comes, main works until it came; it ends 0.1 s later. */
    int64_t until = plan.delay_us + 100000;
    if (main_works) {
        int64_t begin = now_us();
        double *values = malloc((size_t)plan.width * sizeof *values);
        WANT(values != NULL);
        while (now_us() - begin < until) {
            put_row(0, 0, 0, values);
            get_row(0, 0, 0, values);
            sync_file(0);
        }
        free(values);
    } else if (plan.way == FORK_IN_MAIN || plan.way == FORK_NESTED) {
        usleep(plan.delay_us);
        fork_here();
        usleep(20000);
    } else {
        while (now_us() - began < until) usleep(5000);
    }
    stop = 1;
    for (int thread = main_works; thread < plan.n_threads; thread++) pthread_join(threads[thread], NULL);
    for (int file = 0; file < plan.n_files; file++) {
        Before before = before_commit(file);
        if (DONE(nc_close(ids[file]))) swear(file, &before);
    }
    oath->ended = __LINE__;
    return 7;
}

/* ---- What is left */

static int n_wrong;
#define SAY(...) (n_wrong++, printf(__VA_ARGS__), printf("\n"))

static void look_at_row(int id, int file, int thread, int row, double *values) {
    Row *of = &oath->files[file].rows[thread][row];
    /* A helper process has what was accepted, and carries it out. */
    const int has_all = !plan.forks && plan.way == KILLED && strcmp(plan.async, "helper") == 0;
    const int64_t promised = has_all ? of->done : of->sworn;
    char name[20];
    int var;
    snprintf(name, sizeof name, "v%d", thread);
    int code = nc_inq_varid(id, name, &var);
    if (code == NC_NOERR)
        code = nc_get_vara_double(id, var, (size_t[]){(size_t)row, 0}, (size_t[]){1, (size_t)plan.width}, values);
    if (code != NC_NOERR) {
        if (promised > 0) SAY("file %d, %s, row %d: %s; version %ld was promised", file, name, row, nc_strerror(code), (long)promised);
        return;
    }
    for (int k = 0; k < plan.width; k++) {
        double version = floor(values[k] / SCALE);
        int is_fill = values[k] == NC_FILL_DOUBLE || values[k] == 0;
        if (is_fill && promised == 0) continue;
        if (!is_fill && version >= (double)promised && version <= (double)of->started &&
            values[k] == value((int64_t)version, row, k))
            continue;
        SAY("file %d, %s, row %d, element %d: %g (version %g); synced %ld, done %ld, begun %ld", file, name, row, k, values[k], version,
            (long)of->sworn, (long)of->done, (long)of->started);
        return;
    }
}

static int look(void) {
    double *values = malloc((size_t)plan.width * sizeof *values);
    for (int file = 0; file < plan.n_files; file++) {
        FileOath *of = &oath->files[file];
        if (!of->is_made) continue;
        int id, code = nc_open(path_of(file), NC_NOWRITE, &id);
        if (code != NC_NOERR) {
            SAY("file %d cannot be opened: %s", file, nc_strerror(code));
            continue;
        }
        for (int thread = 0; thread < plan.n_threads; thread++)
            for (int row = 0; row < plan.rows; row++) look_at_row(id, file, thread, row, values);
        int version = -1;
        code = nc_get_att_int(id, NC_GLOBAL, "version", &version);
        if (code != NC_NOERR || version < of->att.sworn || version > of->att.started)
            SAY("file %d: attribute `version` is %d (%s); synced %ld, begun %ld", file, version, nc_strerror(code),
                (long)of->att.sworn, (long)of->att.started);
        for (int n = 1; n <= of->added.sworn; n++) {
            char name[40];
            double got[40];
            snprintf(name, sizeof name, "added_%d", n);
            code = nc_get_att_double(id, NC_GLOBAL, name, got);
            if (code != NC_NOERR || got[39] != n + 39) SAY("file %d: attribute %s: %s", file, name, nc_strerror(code));
        }
        nc_close(id);
    }
    for (int depth = 1; plan.forks && depth <= 2; depth++) {
        char path[320];
        int id;
        snprintf(path, sizeof path, "%s.child%d.nc", stem, depth);
        if (access(path, F_OK)) continue;
        int code = nc_open(path, NC_NOWRITE, &id);
        if (code == NC_NOERR) code = nc_get_var_double(id, 0, values);
        for (int k = 0; code == NC_NOERR && k < plan.width; k++)
            if (values[k] != value(depth, 0, k)) code = -9997;
        if (code != NC_NOERR) SAY("the child's file %s: %s", path, nc_strerror(code));
        else nc_close(id);
    }
    if (oath->error_line) SAY("line %d of the life: code %d: %s", oath->error_line, oath->error, oath->said);
    if (oath->n_children != oath->n_children_well - (plan.way == FORK_NESTED && plan.forks && oath->n_children))
        SAY("%d children, %d ended well", oath->n_children, oath->n_children_well);
    free(values);
    return n_wrong != 0;
}

static int mend(void) {
    for (int file = 0; file < plan.n_files; file++) {
        int id, code = oath->files[file].is_made ? nc_open(path_of(file), NC_WRITE, &id) : NC_NOERR;
        if (code == NC_NOERR && oath->files[file].is_made) code = nc_close(id);
        if (code != NC_NOERR) SAY("file %d cannot be opened for writing: %s", file, nc_strerror(code));
    }
    return n_wrong != 0;
}

int main(int n_args, char **args) {
    if (n_args < 4) return 2;
    make_plan(strtoull(args[2], NULL, 10), strcmp(args[3], "fork") == 0);
    if (strcmp(args[1], "show") == 0) {
        printf("ZONDA_ASYNC=%s\nZONDA_SYNC=%s\nZONDA_IO=%s\n%s; %s, %d files, %d threads, %d rows of %d, after %u us\n", plan.async, plan.sync,
               plan.io ? plan.io : "", (plan.forks ? fork_names : end_names)[plan.way], formats[plan.format].name, plan.n_files,
               plan.n_threads, plan.rows, plan.width, plan.delay_us);
        return 0;
    }
    if (n_args < 5) return 2;
    stem = args[4];
    char path[320];
    snprintf(path, sizeof path, "%s.oath", stem);
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, sizeof *oath) != 0) return 2;
    oath = mmap(NULL, sizeof *oath, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (oath == MAP_FAILED) return 2;
    close(fd);
    if (strcmp(args[1], "look") == 0) return look();
    if (strcmp(args[1], "mend") == 0) return mend();
    return live();
}
