/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   seers PATH FORMAT child|rename|link
 *
 * Writes 60 records of 1 MB and closes the file. Then somebody opens it who cannot know that its server may still be writing: a process that was forked
 * before, with a file of its own at the servers ("child"); this one, by another name of the file. Prints the number of records that are seen.
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zonda.h>

enum { COLUMNS = 250000, STEPS = 60 };

static void check(int status, const char *call) {
    if (status == NC_NOERR) return;
    printf("%s %d %s\n", call, status, nc_zonda_last_error());
    fflush(stdout);
    _exit(1);
}
#define CHECK(call) check(call, #call)

static int create(const char *path, int mode, int *var) {
    int file, dims[2];
    CHECK(nc_create(path, mode, &file));
    CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[1]));
    CHECK(nc_def_var(file, "v", NC_FLOAT, 2, dims, var));
    CHECK(nc_enddef(file));
    return file;
}

static void see(const char *path) {
    int file;
    size_t length = 0;
    CHECK(nc_open(path, NC_NOWRITE, &file));
    CHECK(nc_inq_dimlen(file, 0, &length));
    printf("%zu\n", length);
    CHECK(nc_close(file));
}

int main(int argc, char **argv) {
    if (argc < 4) return 64;
    int mode = argv[2][0] == '4' ? NC_NETCDF4 : NC_64BIT_DATA, var, closed[2], status = 0;
    char name[4096];
    static float values[COLUMNS];
    if (pipe(closed)) return 65;
    pid_t child = strcmp(argv[3], "child") == 0 ? fork() : -1;
    if (child == 0) {
        snprintf(name, sizeof name, "%s.own", argv[1]);
        int own = create(name, mode, &var);
        char byte;
        close(closed[1]);
        if (read(closed[0], &byte, 1) != 1) return 66;
        see(argv[1]);
        CHECK(nc_close(own));
        exit(0);
    }
    int file = create(argv[1], mode, &var);
    for (size_t step = 0; step < STEPS; step++) {
        size_t start[] = {step, 0}, count[] = {1, COLUMNS};
        for (int i = 0; i < COLUMNS; i++) values[i] = (float)(step + i);
        CHECK(nc_put_vara_float(file, var, start, count, values));
    }
    CHECK(nc_close(file));
    if (child > 0) {
        if (write(closed[1], "x", 1) != 1) return 67;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    snprintf(name, sizeof name, "%s.%s", argv[1], argv[3]);
    if (strcmp(argv[3], "rename") == 0 ? rename(argv[1], name) : link(argv[1], name)) return 68;
    see(name);
    return 0;
}
