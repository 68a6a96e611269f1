/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Descriptors and limits of the process: no file takes the place of a standard stream that the program
 * closed, where messages go; a process that may have no more open files can still commit and close those
 * that it has; limits of the length of files, of the process and of the file system, are met by what goes beyond
 * them, and by nothing else. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WIDTH = 10000 };
static double values[WIDTH];
static char text[100000];

static void fill(double base) {
    for (int i = 0; i < WIDTH; i++) values[i] = base + i;
}

static int define(const char *path, int flags) {
    int nc, dims[2], var;
    int code = nc_create(path, NC_CLOBBER | flags, &nc);
    if (code) return -code;
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", WIDTH, &dims[1]));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 2, dims, &var));
    OK(nc_enddef(nc));
    return nc;
}

static void put(int nc, size_t record, double base) {
    fill(base);
    OK(nc_put_vara_double(nc, 0, (size_t[]){record, 0}, (size_t[]){1, WIDTH}, values));
}

static void has(const char *path, size_t record, double base) {
    static double got[WIDTH];
    int nc;
    OK(nc_open(path, 0, &nc));
    OK(nc_get_vara_double(nc, 0, (size_t[]){record, 0}, (size_t[]){1, WIDTH}, got));
    OK(nc_close(nc));
    fill(base);
    CHECK(memcmp(got, values, sizeof got) == 0);
}

/* Runs a part in a child, which alone has its limits and streams. */
static void apart(void (*part)(int), int flags) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        part(flags);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        fprintf(stderr, "format %x: ends with %x\n", flags, status);
        exit(1);
    }
}

static void streams(int flags) {
    struct stat own, at;
    int log = fcntl(2, F_DUPFD, 50);
    for (int fd = 0; fd < 3; fd++) close(fd);
    int nc = define("streams.nc", flags), failed = nc < 0 || stat("streams.nc", &own);
    for (int fd = 0; fd < 3; fd++)
        if (fstat(fd, &at) == 0 && at.st_ino == own.st_ino) failed = 1;
    put(nc, 0, 5);
    OK(nc_close(nc));
    /* Now the next number is that of standard error, which gets a line of the library, about a helper that is none,
     * and one of the program. */
    CHECK(open("/dev/null", O_RDWR) == 0 && open("/dev/null", O_RDWR) == 1);
    setenv("ZONDA_ASYNC", "helper", 1);
    setenv("ZONDA_IOD", "/bin/false", 1);
    nc = define("line.nc", flags);
    put(nc, 0, 6);
    dprintf(2, "a message\n");
    OK(nc_close(nc));
    dup2(log, 2);
    CHECK(!failed);
    setenv("ZONDA_ASYNC", "off", 1);
    has("streams.nc", 0, 5);
    has("line.nc", 0, 6);
}

/* As many files as there can be, all with something left that takes another one for a moment. */
static void open_files(int flags) {
    enum { MOST = 40 };
    int ncs[MOST], n = 0, nc;
    char path[32];
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){MOST, MOST}) == 0);
    for (; n < MOST; n++) {
        snprintf(path, sizeof path, "open%d.nc", n);
        if ((nc = define(path, flags)) < 0) break;
        ncs[n] = nc;
        put(nc, 0, n);
    }
    /* One descriptor a file; the program has some, and the shell may have left it others. */
    CHECK(n >= MOST - 12);
    while (dup(0) >= 0) {}
    CHECK(errno == EMFILE);
    for (int i = 0; i < n; i++) {
        OK(nc_sync(ncs[i]));
        OK(nc_redef(ncs[i]));
        /* The header outgrows its room: data move. */
        OK(nc_put_att_text(ncs[i], NC_GLOBAL, "long", sizeof text, text));
        OK(nc_enddef(ncs[i]));
        put(ncs[i], 1, -i);
    }
    for (int i = 0; i < n; i++) OK(nc_close(ncs[i]));
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "open%d.nc", i);
        has(path, 0, i);
        has(path, 1, -i);
    }
}

/* A file that syncs often, below a limit that it never reaches. */
static void length(int flags) {
    struct stat at;
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4 << 20, 4 << 20}) == 0);
    int nc = define("length.nc", flags);
    CHECK(nc >= 0);
    for (int record = 0; record < 30; record++) {
        put(nc, record, record);
        OK(nc_sync(nc));
    }
    OK(nc_close(nc));
    has("length.nc", 29, 29);
    CHECK(stat("length.nc", &at) == 0 && at.st_size < 4 << 20);
}

/* A file that was removed with its folder is still a file. */
static void no_folder(int flags) {
    CHECK(mkdir("gone", 0777) == 0);
    int nc = define("gone/x.nc", flags);
    CHECK(nc >= 0);
    put(nc, 0, 1);
    CHECK(unlink("gone/x.nc") == 0 && rmdir("gone") == 0);
    OK(nc_redef(nc));
    OK(nc_put_att_text(nc, NC_GLOBAL, "long", sizeof text, text));
    OK(nc_enddef(nc));
    put(nc, 1, 2);
    OK(nc_sync(nc));
    OK(nc_get_vara_double(nc, 0, (size_t[]){0, 0}, (size_t[]){1, WIDTH}, values));
    CHECK(values[5] == 6);
    OK(nc_close(nc));
}

/* A place that the file system has in no file: that put is refused, and nothing else suffers. */
static void far_away(int flags) {
    const size_t length = (size_t)1 << 60;
    int nc, dims[2], far, near, got, probe = open("probe", O_RDWR | O_CREAT, 0666);
    int has_place = lseek(probe, (off_t)length, SEEK_SET) >= 0;
    close(probe);
    if (has_place || flags == 0 || flags & (NC_64BIT_OFFSET | NC_CLASSIC_MODEL)) return;
    OK(nc_create("far.nc", NC_CLOBBER | flags, &nc));
    OK(nc_set_fill(nc, NC_NOFILL, &got));
    OK(nc_def_dim(nc, "x", length, &dims[0]));
    OK(nc_def_var(nc, "near", NC_INT, 0, NULL, &near));
    OK(nc_def_var(nc, "far", NC_BYTE, 1, dims, &far));
    if (flags & NC_NETCDF4) OK(nc_def_var_chunking(nc, far, NC_CONTIGUOUS, NULL));
    OK(nc_enddef(nc));
    OK(nc_put_var_int(nc, near, (int[]){42}));
    FAILS(nc_put_var1_schar(nc, far, (size_t[]){length - 1}, (signed char[]){7}),
          flags & NC_NETCDF4 ? NC_EHDFERR : EINVAL);
    OK(nc_put_var_int(nc, near, (int[]){43}));
    OK(nc_sync(nc));
    OK(nc_close(nc));
    OK(nc_open("far.nc", 0, &nc));
    OK(nc_get_var_int(nc, near, &got));
    CHECK(got == 43);
    OK(nc_close(nc));
}

int main(void) {
    const int formats[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA, NC_NETCDF4, NC_NETCDF4 | NC_CLASSIC_MODEL};
    void (*const parts[])(int) = {streams, open_files, length, no_folder, far_away};
    memset(text, 'x', sizeof text);
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) apart(parts[part], formats[k]);
    const char *levels[] = {"data", "full"};
    for (int k = 0; k < 2; k++) {
        setenv("ZONDA_SYNC", levels[k], 1);
        apart(no_folder, 0);
        apart(no_folder, NC_NETCDF4);
    }
    return 0;
}
