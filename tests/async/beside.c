/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Programs with ZONDA_ASYNC=helper that end by SIGKILL at a moment of their own; what they were promised is in FILE.said.
 *
 *   beside threads FILE MODE PUTS WORDS   one thread puts the whole of a variable PUTS times; for each letter of WORDS another
 *                                         one syncs (s), puts an attribute (a), renames a variable (r) or puts to another one
 *                                         (p), all the time; for R the one renames its own before each put
 *   beside files FILE MODE                the helper is killed with puts of FILE on it; then FILE.b and FILE.c get a helper
 *                                         of theirs: what FILE had is not put into these
 *   beside look FILE                      0 where the file has at least what was said, by its first variable */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <netcdf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Longer than what is collected, so that each put is by itself. */
enum { WIDTH = 20000, VARIABLES = 3 };

static int id;

static void must(int code, int line) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
    exit(1);
}
#define OK(call) must((call), __LINE__)

static _Atomic int *said_of(const char *file) {
    char path[300];
    snprintf(path, sizeof path, "%s.said", file);
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096) != 0) exit(2);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) exit(2);
    close(fd);
    return memory;
}

static int make(const char *file, int mode) {
    int nc, dim, var, none = 0;
    OK(nc_create(file, NC_CLOBBER | mode, &nc));
    OK(nc_def_dim(nc, "x", WIDTH, &dim));
    for (int i = 0; i < VARIABLES; i++) {
        char name[10];
        snprintf(name, sizeof name, "v%d", i);
        OK(nc_def_var(nc, name, NC_INT, 1, &dim, &var));
    }
    OK(nc_put_att_int(nc, NC_GLOBAL, "n", NC_INT, 1, &none));
    OK(nc_enddef(nc));
    return nc;
}

static void put(int nc, int var, int number) {
    int values[WIDTH];
    for (int i = 0; i < WIDTH; i++) values[i] = number;
    OK(nc_put_var_int(nc, var, values));
}

static void *syncs(void *unused) {
    for (;; sched_yield()) OK(nc_sync(id));
    return unused;
}
static void *annotates(void *unused) {
    for (int n = 0;; n++) OK(nc_put_att_int(id, NC_GLOBAL, "n", NC_INT, 1, &n));
    return unused;
}
static void *renames(void *unused) {
    for (int n = 0;; n++) OK(nc_rename_var(id, 2, n & 1 ? "v2" : "w2"));
    return unused;
}
static void *puts_too(void *unused) {
    for (int n = 0;; n++) put(id, 1, n);
    return unused;
}

/* The helper of this process. */
static void kill_helper(void) {
    char mine[20], path[300], words[400];
    snprintf(mine, sizeof mine, "%d", getpid());
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
        FILE *file = atoi(entry->d_name) > 1 ? fopen(path, "r") : NULL;
        if (!file) continue;
        size_t n = fread(words, 1, sizeof words - 1, file);
        fclose(file);
        words[n] = 0;
        int is_helper = 0, is_mine = 0;
        for (size_t at = 0; at < n; at += strlen(words + at) + 1) {
            is_helper |= strcmp(words + at, "iod") == 0;
            is_mine |= strcmp(words + at, mine) == 0;
        }
        if (is_helper && is_mine) kill(atoi(entry->d_name), SIGKILL);
    }
    if (folder) closedir(folder);
    usleep(20000);
}

int main(int n, char **args) {
    if (n < 3) return 2;
    const char *file = args[2];
    _Atomic int *said = said_of(file);
    if (strcmp(args[1], "look") == 0) {
        int values[WIDTH];
        OK(nc_open(file, NC_NOWRITE, &id));
        OK(nc_get_var_int(id, 0, values));
        for (int i = 0; i < WIDTH; i++)
            if (values[i] < said[0] || values[i] > said[1]) {
                printf("element %d is %d; put %d has returned, put %d was begun\n", i, values[i], said[0], said[1]);
                return 1;
            }
        return 0;
    }
    const int mode = atoi(args[3]);
    if (strcmp(args[1], "files") == 0) {
        char second[300], third[300];
        snprintf(second, sizeof second, "%s.b", file);
        snprintf(third, sizeof third, "%s.c", file);
        int first = make(file, mode);
        for (int i = 0; i < 3; i++) put(first, 0, 1);
        usleep(20000);
        kill_helper();
        /* Here it is noticed. */
        put(make(second, mode), 0, 5);
        _Atomic int *of_third = said_of(third);
        int nc = make(third, mode);
        of_third[0] = of_third[1] = 7;
        put(nc, 0, 7);
        OK(nc_sync(nc));
        put(nc, 0, 7);
        usleep(20000);
        kill(getpid(), SIGKILL);
    }
    id = make(file, mode);
    const int renames_own = strchr(args[5], 'R') != NULL;
    for (const char *word = args[5]; *word; word++) {
        pthread_t thread;
        if (*word == 'R') continue;
        void *(*body)(void *) = *word == 's' ? syncs : *word == 'a' ? annotates : *word == 'r' ? renames : puts_too;
        if (pthread_create(&thread, NULL, body, NULL)) return 2;
    }
    for (int i = 1; i <= atoi(args[4]); i++) {
        if (renames_own) OK(nc_rename_var(id, 0, i & 1 ? "w0" : "v0"));
        said[1] = i;
        put(id, 0, i);
        said[0] = i;
    }
    kill(getpid(), SIGKILL);
    return 0;
}
