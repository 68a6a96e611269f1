/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Calls that a signal or a fork can come into the middle of, each on slow storage, so that it takes long. */
#ifndef DURING_H
#define DURING_H
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 64 * 1024, RECORDS = 5 };
/* A call that takes longer than this hangs. */
enum { HANGS = 60 };

typedef struct {
    const char *name;
    int flags;
    /* ZONDA_ASYNC. */
    const char *async;
    void (*once)(int step);
} Case;

static char path[64], other_path[64];
static _Atomic int open_id;
static int var;
static int flags_of_case;
static double row[WIDTH];

static double value(size_t record, size_t k) {
    return (double)(record * 1000 + k % 977) + 0.37;
}

/* Record `record` is put. */
static void put_record(int nc, size_t record) {
    for (size_t k = 0; k < WIDTH; k++) row[k] = value(record, k);
    OK(nc_put_vara_double(nc, var, (size_t[]){record, 0}, (size_t[]){1, WIDTH}, row));
}

static int checked(int nc, size_t record) {
    static double got[WIDTH];
    int id;
    OK(nc_inq_varid(nc, "v", &id));
    OK(nc_get_vara_double(nc, id, (size_t[]){record, 0}, (size_t[]){1, WIDTH}, got));
    for (size_t k = 0; k < WIDTH; k++)
        if (got[k] != value(record, k)) return 0;
    return 1;
}

static void put_once(int step) { put_record(open_id, (size_t)step % RECORDS); }

static void sync_once(int step) {
    put_record(open_id, (size_t)step % RECORDS);
    OK(nc_sync(open_id));
}

static void enddef_once(int step) {
    char name[40];
    snprintf(name, sizeof name, "attribute_%d", step);
    OK(nc_redef(open_id));
    OK(nc_put_att_double(open_id, NC_GLOBAL, name, NC_DOUBLE, 4096, row));
    OK(nc_enddef(open_id));
}

static void close_once(int step) {
    int nc = open_id;
    put_record(nc, (size_t)step % RECORDS);
    open_id = -1;
    OK(nc_close(nc));
    OK(nc_open(path, NC_WRITE, &nc));
    open_id = nc;
}

static void define_once(int step) {
    int nc, x;
    (void)step;
    OK(nc_create(other_path, NC_CLOBBER | flags_of_case, &nc));
    OK(nc_def_dim(nc, "x", 10, &x));
    for (int k = 0; k < 500; k++) {
        char name[40];
        int id;
        snprintf(name, sizeof name, "variable_%d", k);
        OK(nc_def_var(nc, name, NC_DOUBLE, 1, &x, &id));
        OK(nc_put_att_text(nc, id, "units", 1, "m"));
    }
    OK(nc_close(nc));
}

static void get_once(int step) {
    (void)step;
    CHECK(checked(open_id, 0));
}

static const Case cases[] = {
    {"put-1", 0, "off", put_once},
    {"put-5", NC_64BIT_DATA, "off", put_once},
    {"put-4", NC_NETCDF4, "off", put_once},
    {"put-1-async", 0, "on", put_once},
    {"put-4-async", NC_NETCDF4, "mem=1M", put_once},
    {"put-1-helper", 0, "helper", put_once},
    {"put-4-helper", NC_NETCDF4, "helper,mem=2M", put_once},
    {"sync-1", 0, "off", sync_once},
    {"sync-4", NC_NETCDF4, "off", sync_once},
    {"sync-4-async", NC_NETCDF4, "on", sync_once},
    {"enddef-1", 0, "off", enddef_once},
    {"enddef-4", NC_NETCDF4, "off", enddef_once},
    {"close-1", 0, "off", close_once},
    {"close-4", NC_NETCDF4, "off", close_once},
    {"define-1", 0, "off", define_once},
    {"define-4", NC_NETCDF4, "off", define_once},
    {"get-1", 0, "off", get_once},
    {"get-4", NC_NETCDF4, "off", get_once},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* A file with one record that is synced, open for writing. */
static void set_up(const Case *c) {
    int nc, d[2];
    setenv("ZONDA_ASYNC", c->async, 1);
    setenv("ZONDA_IO", "cache,throttle:4M,file", 1);
    flags_of_case = c->flags;
    OK(nc_create(path, NC_CLOBBER | c->flags, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &d[0]));
    OK(nc_def_dim(nc, "x", WIDTH, &d[1]));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 2, d, &var));
    if (c->flags & NC_NETCDF4) {
        OK(nc_def_var_chunking(nc, var, NC_CHUNKED, (size_t[]){1, 8192}));
        OK(nc_def_var_deflate(nc, var, 1, 1, 6));
    }
    OK(nc_enddef(nc));
    put_record(nc, 0);
    OK(nc_sync(nc));
    open_id = nc;
}

/* What was synced can be read. */
static void still_there(void) {
    int nc;
    setenv("ZONDA_ASYNC", "off", 1);
    unsetenv("ZONDA_IO");
    OK(nc_open(path, NC_NOWRITE, &nc));
    CHECK(checked(nc, 0));
    OK(nc_close(nc));
}

/* Runs `body` in a process; its process id. This one never calls the library. */
static pid_t process(void (*body)(const Case *, int), const Case *c, int variant) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        snprintf(path, sizeof path, "%s-%d.nc", c->name, variant);
        snprintf(other_path, sizeof other_path, "%s-%d.other.nc", c->name, variant);
        body(c, variant);
        _exit(0);
    }
    return child;
}

static int ends(pid_t child, const char *what, const Case *c, int variant) {
    int status;
    for (int n = 0; n < HANGS * 100; n++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 1;
            fprintf(stderr, "%s %s, variant %d: status %#x\n", c->name, what, variant, (unsigned)status);
            return 0;
        }
        usleep(10000);
    }
    fprintf(stderr, "%s %s, variant %d: does not end\n", c->name, what, variant);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 0;
}

static void reads(const Case *c, int variant) {
    (void)c, (void)variant;
    still_there();
}

/* All cases in all variants, as many at a time as there are cases: they wait most of the time. */
static int all_cases(void (*body)(const Case *, int), int n_variants) {
    int n_failed = 0;
    for (int variant = 0; variant < n_variants; variant++) {
        pid_t children[N_CASES];
        for (int k = 0; k < N_CASES; k++) children[k] = process(body, &cases[k], variant);
        for (int k = 0; k < N_CASES; k++) n_failed += !ends(children[k], "itself", &cases[k], variant);
        /* A helper process may have something left to do. */
        usleep(300000);
        for (int k = 0; k < N_CASES; k++) {
            pid_t child = process(reads, &cases[k], variant);
            n_failed += !ends(child, "what is left", &cases[k], variant);
        }
    }
    return n_failed;
}
#endif
