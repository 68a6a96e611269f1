/* SPDX-License-Identifier: MIT OR Apache-2.0
 * What waits in the layers of a file when a process forks is the parent's to write: the child has it, old, and must not
 * write it over what the parent puts later, however much it reads, whatever layers are between. (A page that had to
 * leave for what the child read was written by it.) */
#include "check.h"
#include <errno.h>
#include <sys/wait.h>

enum { WIDTH = 4096, ROWS = 24, HALF = WIDTH / 2 };

static const char *const stacks[] = {
    NULL, "file", "cache:1:2", "cache:32:4", "cachea:1:2", "cachea:1:2:1:3", "cachea:32:4:1:4", "bufa:1:2", "bufa:32:4",
    "eie:16:4:1", "cache:1:2,bufa:32:2", "cache:32:4,direct", "cache:16:4,throttle:1G:1ms,file", "mmap",
};
static const int formats[] = {0, NC_64BIT_DATA, NC_NETCDF4, NC_NETCDF4 | NC_CLASSIC_MODEL};

static double value(int version, size_t row, size_t i) { return version * 1e6 + (double)(row * WIDTH + i); }

static void put(int nc, int var, int version, size_t row, size_t from, size_t n) {
    static double values[WIDTH];
    for (size_t i = 0; i < n; i++) values[i] = value(version, row, from + i);
    OK(nc_put_vara_double(nc, var, (size_t[]){row, from}, (size_t[]){1, n}, values));
}

/* Reads all that there is, again and again, and something of another file that may share pages. */
static void child(int nc, int go) {
    static double values[WIDTH];
    char byte;
    int other, var;
    CHECK(read(go, &byte, 1) == 0);
    OK(nc_open("other.nc", NC_NOWRITE, &other));
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++)
            for (size_t row = 0; row < ROWS; row++) {
                int code = nc_get_vara_double(nc, i, (size_t[]){row, 0}, (size_t[]){1, WIDTH}, values);
                /* What the parent writes meanwhile may not fit together here, but no call may change it. */
                CHECK(code == NC_NOERR || code == ECHILD || code == NC_EHDFERR || code == NC_EINVALCOORDS || code == NC_EEDGE);
                OK(nc_inq_varid(other, "v", &var));
                OK(nc_get_vara_double(other, var, (size_t[]){row, 0}, (size_t[]){1, WIDTH}, values));
            }
    FAILS(nc_sync(nc), ECHILD);
    OK(nc_close(nc));
    OK(nc_close(other));
    exit(0);
}

static void other_file(void) {
    int nc, dims[2], var;
    OK(nc_create("other.nc", NC_CLOBBER, &nc));
    OK(nc_def_dim(nc, "t", ROWS, &dims[0]));
    OK(nc_def_dim(nc, "x", WIDTH, &dims[1]));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 2, dims, &var));
    OK(nc_enddef(nc));
    for (size_t row = 0; row < ROWS; row++) put(nc, var, 9, row, 0, WIDTH);
    OK(nc_close(nc));
}

static void one(const char *stack, int format) {
    static double values[WIDTH];
    int nc, time, row_dim, x, fixed, record, gaps, pipes[2], status;
    if (stack)
        setenv("ZONDA_IO", stack, 1);
    else
        unsetenv("ZONDA_IO");
    OK(nc_create("dirty.nc", NC_CLOBBER | format, &nc));
    OK(nc_def_dim(nc, "time", NC_UNLIMITED, &time));
    OK(nc_def_dim(nc, "row", ROWS, &row_dim));
    OK(nc_def_dim(nc, "x", WIDTH, &x));
    OK(nc_def_var(nc, "fixed", NC_DOUBLE, 2, (int[]){row_dim, x}, &fixed));
    OK(nc_def_var(nc, "record", NC_DOUBLE, 2, (int[]){time, x}, &record));
    OK(nc_def_var(nc, "gaps", NC_DOUBLE, 2, (int[]){row_dim, x}, &gaps));
    OK(nc_enddef(nc));
    for (size_t row = 0; row < ROWS; row++) {
        put(nc, fixed, 1, row, 0, WIDTH);
        put(nc, record, 1, row, 0, WIDTH);
    }
    OK(nc_sync(nc));
    /* These wait, as far as there is room; the rest of `gaps` has to get its fill values. */
    for (size_t row = 0; row < ROWS; row += 5) put(nc, fixed, 2, row, HALF / 2, HALF);
    for (size_t row = 0; row < ROWS; row += 7) put(nc, record, 2, row, HALF / 2, HALF);
    put(nc, gaps, 2, 0, 1, 3);
    CHECK(pipe(pipes) == 0);
    fflush(stdout);
    pid_t made = fork();
    CHECK(made >= 0);
    if (made == 0) {
        CHECK(close(pipes[1]) == 0);
        child(nc, pipes[0]);
    }
    CHECK(close(pipes[0]) == 0);
    for (size_t row = 0; row < ROWS; row++) {
        put(nc, fixed, 3, row, 0, WIDTH);
        put(nc, record, 3, row, 0, WIDTH);
        put(nc, gaps, 3, row, 0, WIDTH);
    }
    OK(nc_sync(nc));
    CHECK(close(pipes[1]) == 0);
    CHECK(waitpid(made, &status, 0) == made);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(nc_close(nc));
    OK(nc_open("dirty.nc", NC_NOWRITE, &nc));
    for (int var = 0; var < 3; var++)
        for (size_t row = 0; row < ROWS; row++) {
            OK(nc_get_vara_double(nc, var, (size_t[]){row, 0}, (size_t[]){1, WIDTH}, values));
            for (size_t i = 0; i < WIDTH; i++) {
                if (values[i] == value(3, row, i)) continue;
                fprintf(stderr, "%s, format %d, variable %d, row %zu, element %zu: %g\n", stack ? stack : "default", format, var, row, i, values[i]);
                CHECK(!"what the parent put is in the file");
            }
        }
    OK(nc_close(nc));
}

int main(void) {
    other_file();
    for (size_t s = 0; s < sizeof stacks / sizeof *stacks; s++)
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) one(stacks[s], formats[f]);
    printf("%zu children read, and wrote nothing\n", sizeof stacks / sizeof *stacks * (sizeof formats / sizeof *formats));
    return 0;
}
