/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program with files open, for run.py: takes commands line by line and answers each with one line,
 * "CODE" or "CODE VALUES". Ids are numbers of its own, so that several files can be open.
 *
 *   create ID PATH         netCDF-4, with an unlimited dimension and two variables that have it
 *   open ID r|w PATH
 *   append ID N VALUE      N records of both variables, all elements VALUE
 *   overwrite ID VALUE     all elements of both variables
 *   attribute ID NAME      an attribute of the file, of length 300
 *   variable ID NAME       a variable with the unlimited dimension
 *   group ID PATH          a group in the group of that path
 *   sync ID | close ID
 *   records ID             length of the dimension, then the distinct values of each variable
 *   names ID               names and numbers of the variables, of the first group in depth, ...
 *   fork ID                forks a child that keeps all open until "reap"
 *   reap
 *   quit
 */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 64, FILES = 16 };
static int ids[FILES];
static pid_t child;

static int create(int *nc, const char *path) {
    int dims[2], v, status = nc_create(path, NC_NETCDF4, nc);
    if (status) return status;
    size_t chunks[2] = {1, WIDTH};
    nc_def_dim(*nc, "t", NC_UNLIMITED, &dims[0]);
    nc_def_dim(*nc, "x", WIDTH, &dims[1]);
    nc_def_var(*nc, "a", NC_INT, 2, dims, &v);
    nc_def_var_chunking(*nc, v, NC_CHUNKED, chunks);
    nc_def_var(*nc, "b", NC_INT, 2, dims, &v);
    nc_def_var_chunking(*nc, v, NC_CHUNKED, chunks);
    nc_def_var_deflate(*nc, v, 1, 1, 1);
    return nc_enddef(*nc);
}

/* The number of "a" or "b": others make variables of the dimensions, too. */
static int variable(int nc, int which) {
    int v = -1;
    return nc_inq_varid(nc, which ? "b" : "a", &v) ? -1 : v;
}

static int put(int nc, size_t from, size_t n, int value) {
    int row[WIDTH], status = 0;
    for (int i = 0; i < WIDTH; i++) row[i] = value;
    for (size_t r = from; r < from + n && !status; r++)
        for (int v = 0; v < 2 && !status; v++)
            status = nc_put_vara_int(nc, variable(nc, v), (size_t[]){r, 0}, (size_t[]){1, WIDTH}, row);
    return status;
}

static int length(int nc, size_t *len) {
    int dim, status = nc_inq_dimid(nc, "t", &dim);
    return status ? status : nc_inq_dimlen(nc, dim, len);
}

/* The distinct values of a variable, in order of the records; a row of several is -1. */
static int values(int nc, int v, size_t n) {
    int row[WIDTH], last = -2, status = 0;
    printf(" |");
    for (size_t r = 0; r < n && !status; r++) {
        status = nc_get_vara_int(nc, v, (size_t[]){r, 0}, (size_t[]){1, WIDTH}, row);
        int value = row[0];
        for (int i = 1; i < WIDTH; i++)
            if (row[i] != row[0]) value = -1;
        if (value != last) printf(" %d", value);
        last = value;
    }
    return status;
}

static void names(int nc, int root) {
    char name[NC_MAX_NAME + 1];
    int n = 0, groups[64];
    nc_inq_nvars(nc, &n);
    for (int v = 0; v < n; v++) {
        nc_inq_varname(nc, v, name);
        printf(" %s", name);
    }
    if (nc_inq_grps(nc, &n, groups)) n = 0;
    for (int g = 0; g < n && g < 64; g++) {
        nc_inq_grpname(groups[g], name);
        printf(" %s:%d{", name, groups[g] - root);
        names(groups[g], root);
        printf(" }");
    }
}

int main(void) {
    char line[4096], word[32], text[4000];
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    while (fgets(line, sizeof line, stdin)) {
        int id = 0, at = 0, status = -999, n = 0, value = 0, number;
        size_t len = 0;
        text[0] = 0;
        if (sscanf(line, "%31s %d %n", word, &id, &at) < 1) continue;
        if (id < 0 || id >= FILES) return 2;
        line[strcspn(line, "\n")] = 0;
        const char *rest = at ? line + at : "";
        int *nc = &ids[id];
        if (!strcmp(word, "quit")) break;
        if (!strcmp(word, "create")) {
            status = create(nc, rest);
        } else if (!strcmp(word, "open")) {
            status = nc_open(rest + 2, rest[0] == 'w' ? NC_WRITE : NC_NOWRITE, nc);
        } else if (!strcmp(word, "append") && sscanf(rest, "%d %d", &n, &value) == 2) {
            status = length(*nc, &len);
            if (!status) status = put(*nc, len, (size_t)n, value);
        } else if (!strcmp(word, "overwrite") && sscanf(rest, "%d", &value) == 1) {
            status = length(*nc, &len);
            if (!status) status = put(*nc, 0, len, value);
        } else if (!strcmp(word, "attribute")) {
            memset(text, 'x', 300);
            nc_redef(*nc);
            status = nc_put_att_text(*nc, NC_GLOBAL, rest, 300, text);
            if (!status) status = nc_enddef(*nc);
        } else if (!strcmp(word, "variable")) {
            int dim = 0;
            nc_redef(*nc);
            status = nc_inq_dimid(*nc, "t", &dim);
            if (!status) status = nc_def_var(*nc, rest, NC_INT, 1, &dim, &number);
            if (!status) status = nc_enddef(*nc);
        } else if (!strcmp(word, "group")) {
            int inside = *nc;
            char name[300] = "", outer[300] = "";
            if (sscanf(rest, "%299s %299s", name, outer) == 2) nc_inq_grp_full_ncid(*nc, outer, &inside);
            nc_redef(*nc);
            status = nc_def_grp(inside, name, &number);
            if (!status) status = nc_enddef(*nc);
        } else if (!strcmp(word, "sync")) {
            status = nc_sync(*nc);
        } else if (!strcmp(word, "close")) {
            status = nc_close(*nc);
        } else if (!strcmp(word, "records")) {
            status = length(*nc, &len);
            printf("n %zu", len);
            for (int v = 0; v < 2 && !status; v++) status = values(*nc, variable(*nc, v), len);
            printf(" : ");
        } else if (!strcmp(word, "names")) {
            status = 0;
            names(*nc, *nc);
            printf(" : ");
        } else if (!strcmp(word, "fork")) {
            fflush(stdout);
            child = fork();
            if (!child) {
                close(0);
                for (;;) pause();
            }
            status = child < 0;
        } else if (!strcmp(word, "reap")) {
            kill(child, SIGKILL);
            status = waitpid(child, NULL, 0) != child;
        }
        printf("%d %s\n", status, status ? nc_strerror(status) : "");
        fflush(stdout);
    }
    return 0;
}
