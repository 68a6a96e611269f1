/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Programs whose main thread leaves by pthread_exit with files open: the last thread of the library, that of a layer or of
 * write-behind, ends the process a moment later. It commits what was put, for which it may have to begin a thread like itself.
 * (It waited for its own end.) */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 32768, ROWS = 12, MOST_SECONDS = 60 };

static const char *const stacks[] = {"cachea:16:8", "bufa:16:4", "eie:16:8:2", "cache,throttle:40M:1ms,file", NULL};
static const char *const asyncs[] = {"off", "on", "mem=1M"};
static const int formats[] = {0, NC_NETCDF4};

static double value(size_t row, size_t i) { return (double)(row * WIDTH + i) + 0.25; }

static void put_rows(int nc, int var, size_t from, size_t to) {
    static double row[WIDTH];
    for (size_t r = from; r < to; r++) {
        for (size_t i = 0; i < WIDTH; i++) row[i] = value(r, i);
        OK(nc_put_vara_double(nc, var, (size_t[]){r, 0}, (size_t[]){1, WIDTH}, row));
    }
}

static _Noreturn void life(const char *name, int format, int deflates) {
    int nc, dims[2], var;
    OK(nc_create(name, NC_CLOBBER | format, &nc));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", WIDTH, &dims[1]));
    OK(nc_def_var(nc, "v", NC_DOUBLE, 2, dims, &var));
    if (format) OK(nc_def_var_chunking(nc, var, NC_CHUNKED, (size_t[]){4, WIDTH}));
    if (deflates) OK(nc_def_var_deflate(nc, var, 1, 1, 1));
    OK(nc_enddef(nc));
    put_rows(nc, var, 0, 5);
    OK(nc_sync(nc));
    /* The end of a chunk, whole ones, and a part of the last: as far as they fit they wait. */
    put_rows(nc, var, 5, ROWS - 1);
    alarm(MOST_SECONDS);
    put_rows(nc, var, ROWS - 1, ROWS);
    pthread_exit(NULL);
}

/* One of the programs, which all live at once. */
static struct program {
    const char *stack, *async;
    int format, deflates;
    char name[20];
    pid_t pid;
} programs[60];

static void begin(struct program *it) {
    fflush(stdout);
    it->pid = fork();
    CHECK(it->pid >= 0);
    if (it->pid) return;
    if (it->stack)
        setenv("ZONDA_IO", it->stack, 1);
    else
        unsetenv("ZONDA_IO");
    setenv("ZONDA_ASYNC", it->async, 1);
    life(it->name, it->format, it->deflates);
}

static void look(const struct program *it) {
    static double row[WIDTH];
    const char *stack = it->stack ? it->stack : "default";
    int status, nc, var;
    CHECK(waitpid(it->pid, &status, 0) == it->pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "%s, %s, format %d: status %d\n", stack, it->async, it->format, status);
        CHECK(!"the process ends");
    }
    OK(nc_open(it->name, NC_NOWRITE, &nc));
    OK(nc_inq_varid(nc, "v", &var));
    for (size_t r = 0; r < ROWS; r++) {
        int code = nc_get_vara_double(nc, var, (size_t[]){r, 0}, (size_t[]){1, WIDTH}, row);
        size_t i = 0;
        while (code == NC_NOERR && i < WIDTH && row[i] == value(r, i)) i++;
        if (i == WIDTH) continue;
        fprintf(stderr, "%s, %s, format %d, row %zu, element %zu: %g (%d)\n", stack, it->async, it->format, r, i, row[i], code);
        CHECK(!"what was put is in the file");
    }
    OK(nc_close(nc));
}

int main(void) {
    int n = 0;
    for (size_t s = 0; s < sizeof stacks / sizeof *stacks; s++)
        for (size_t a = 0; a < sizeof asyncs / sizeof *asyncs; a++)
            for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
                for (int deflates = 0; deflates <= (formats[f] != 0); deflates++, n++) {
                    programs[n] = (struct program){stacks[s], asyncs[a], formats[f], deflates, "", 0};
                    snprintf(programs[n].name, sizeof programs[n].name, "last%d.nc", n);
                    begin(&programs[n]);
                }
    for (int i = 0; i < n; i++) look(&programs[i]);
    printf("%d programs ended by themselves, and left what they had put\n", n);
    return 0;
}
