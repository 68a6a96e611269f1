/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops of small changes, each followed by a commit, and how long the file is then.
 *
 *   growth LOOP N FILE          a new file
 *   growth LOOP N FILE keep     goes on with a file that is there
 *   growth LOOP N FILE reopen   the same, and each commit is a close, behind which it is opened again
 *
 * Prints the length of the file after nc_close. `growth` alone lists the loops. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int nc;

static void ok(int status, const char *call, int line) {
    if (status != NC_NOERR) {
        fprintf(stderr, "growth: line %d: %s: %s\n", line, call, nc_strerror(status));
        exit(1);
    }
}
#define OK(call) ok((call), #call, __LINE__)

/* In files that go on, names must differ from those that are there. */
static const char *prefix = "";
static char *name(const char *stem, int i) {
    static char text[NC_MAX_NAME];
    snprintf(text, sizeof text, "%s%s%d", prefix, stem, i);
    return text;
}

static const char *file;
static int reopens;
static void commit(void) {
    OK(nc_enddef(nc));
    if (reopens) {
        OK(nc_close(nc));
        OK(nc_open(file, NC_WRITE, &nc));
    }
}
static void sync_or_close(void) {
    if (reopens) {
        OK(nc_close(nc));
        OK(nc_open(file, NC_WRITE, &nc));
    } else {
        OK(nc_sync(nc));
    }
}
static void redef(void) { OK(nc_redef(nc)); }

static int dim(const char *stem, size_t len) {
    int id;
    OK(nc_def_dim(nc, name(stem, 0), len, &id));
    return id;
}

static void loop_var(int n) {
    for (int i = 0; i < n; i++) {
        int id;
        redef();
        OK(nc_def_var(nc, name("v", i), NC_INT, 0, NULL, &id));
        commit();
    }
}

static void loop_var_of_dim(int n) {
    redef();
    int d = dim("x", 4);
    commit();
    for (int i = 0; i < n; i++) {
        int id, values[4] = {i, 1, 2, 3};
        redef();
        OK(nc_def_var(nc, name("v", i), NC_INT, 1, &d, &id));
        commit();
        OK(nc_put_var_int(nc, id, values));
    }
}

static void loop_dim(int n) {
    for (int i = 0; i < n; i++) {
        int id;
        redef();
        OK(nc_def_dim(nc, name("d", i), 5, &id));
        commit();
    }
}

static void loop_grp(int n) {
    for (int i = 0; i < n; i++) {
        int id;
        redef();
        OK(nc_def_grp(nc, name("g", i), &id));
        commit();
    }
}

static void loop_type(int n) {
    for (int i = 0; i < n; i++) {
        nc_type id;
        redef();
        OK(nc_def_opaque(nc, 7 + i % 5, name("t", i), &id));
        commit();
    }
}

static void loop_att(int n) {
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_put_att_int(nc, NC_GLOBAL, name("a", i), NC_INT, 1, &i));
        commit();
    }
}

static void loop_var_att(int n) {
    int id;
    redef();
    OK(nc_def_var(nc, name("v", 0), NC_INT, 0, NULL, &id));
    commit();
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_put_att_int(nc, id, name("a", i), NC_INT, 1, &i));
        commit();
    }
}

static void loop_att_again(int n) {
    char text[600];
    memset(text, 'h', sizeof text);
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_put_att_text(nc, NC_GLOBAL, "history", 100 + (size_t)(i * 37 % 500), text));
        commit();
    }
}

/* Among as many others one gets another text, some of them as long as before. */
static void loop_att_one_of_many(int n) {
    char text[600];
    memset(text, 'h', sizeof text);
    redef();
    for (int i = 0; i < n; i++) OK(nc_put_att_int(nc, NC_GLOBAL, name("a", i), NC_INT, 1, &i));
    commit();
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_put_att_text(nc, NC_GLOBAL, name("a", i % 100), 1 + (size_t)(i * 37 % 7), text));
        commit();
    }
}

/* Two come, one is made anew, one goes. */
static void loop_att_del(int n) {
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_put_att_int(nc, NC_GLOBAL, name("a", i), NC_INT, 1, &i));
        commit();
        redef();
        OK(nc_put_att_int(nc, NC_GLOBAL, name("b", i), NC_INT, 1, &i));
        commit();
        redef();
        OK(nc_del_att(nc, NC_GLOBAL, name("b", i / 2)));
        OK(nc_put_att_int(nc, NC_GLOBAL, name("b", i / 2), NC_INT, 1, &i));
        OK(nc_del_att(nc, NC_GLOBAL, name("a", i)));
        commit();
    }
}

static void loop_att_longer(int n) {
    char *text = malloc(40 * (size_t)n + 40);
    memset(text, 'h', 40 * (size_t)n + 40);
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_put_att_text(nc, NC_GLOBAL, "history", 40 * (size_t)(i % 1000 + 1), text));
        commit();
    }
    free(text);
}

static void loop_rename(int n) {
    int id[20];
    redef();
    for (int i = 0; i < 20; i++) OK(nc_def_var(nc, name("v", i), NC_INT, 0, NULL, &id[i]));
    commit();
    for (int i = 0; i < n; i++) {
        redef();
        OK(nc_rename_var(nc, id[i % 20], name(i / 20 % 2 ? "renamed" : "other", i % 20)));
        commit();
    }
}

static void loop_string(int n) {
    redef();
    int id, d = dim("x", 8);
    OK(nc_def_var(nc, name("s", 0), NC_STRING, 1, &d, &id));
    commit();
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i % 8;
        char text[64];
        snprintf(text, sizeof text, "%.*s", 10 + i % 40, "what is put here is of another length each time ...");
        const char *value = text;
        OK(nc_put_var1_string(nc, id, &at, &value));
        sync_or_close();
    }
}

static void loop_vlen(int n) {
    nc_type type;
    redef();
    int id, d = dim("x", 8);
    OK(nc_def_vlen(nc, name("list", 0), NC_INT, &type));
    OK(nc_def_var(nc, name("s", 0), type, 1, &d, &id));
    commit();
    int values[64] = {0};
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i % 8;
        nc_vlen_t value = {1 + (size_t)i % 60, values};
        OK(nc_put_var1(nc, id, &at, &value));
        sync_or_close();
    }
}

static void loop_chunk(int n) {
    int id, d[2];
    size_t chunk[2] = {16, 64};
    redef();
    OK(nc_def_dim(nc, name("t", 0), 32, &d[0]));
    OK(nc_def_dim(nc, name("x", 0), 64, &d[1]));
    OK(nc_def_var(nc, name("c", 0), NC_INT, 2, d, &id));
    OK(nc_def_var_chunking(nc, id, NC_CHUNKED, chunk));
    OK(nc_def_var_deflate(nc, id, 0, 1, 1));
    commit();
    static int values[16 * 64];
    unsigned seed = 1;
    for (int i = 0; i < n; i++) {
        size_t start[2] = {(size_t)(i % 2) * 16, 0}, count[2] = {16, 64};
        for (int k = 0; k < 16 * 64; k++) {
            seed = seed * 1103515245 + 12345;
            values[k] = k < (i * 131) % 1024 ? (int)seed : 3;
        }
        OK(nc_put_vara_int(nc, id, start, count, values));
        sync_or_close();
    }
}

static void loop_record(int n) {
    int id, d;
    size_t chunk = 16;
    redef();
    OK(nc_def_dim(nc, name("t", 0), NC_UNLIMITED, &d));
    OK(nc_def_var(nc, name("r", 0), NC_DOUBLE, 1, &d, &id));
    OK(nc_def_var_chunking(nc, id, NC_CHUNKED, &chunk));
    OK(nc_def_var_deflate(nc, id, 0, 1, 1));
    commit();
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i;
        double value = i * 1.37;
        OK(nc_put_var1_double(nc, id, &at, &value));
        sync_or_close();
    }
}

static const struct {
    const char *name;
    void (*run)(int);
} loops[] = {
    {"var", loop_var}, {"var_of_dim", loop_var_of_dim}, {"dim", loop_dim}, {"grp", loop_grp},
    {"type", loop_type}, {"att", loop_att}, {"var_att", loop_var_att}, {"att_again", loop_att_again},
    {"att_one_of_many", loop_att_one_of_many}, {"att_del", loop_att_del},
    {"att_longer", loop_att_longer}, {"rename", loop_rename}, {"string", loop_string},
    {"vlen", loop_vlen}, {"chunk", loop_chunk}, {"record", loop_record},
};

int main(int argc, char **argv) {
    size_t n_loops = sizeof loops / sizeof *loops;
    if (argc < 4) {
        for (size_t i = 0; i < n_loops; i++) puts(loops[i].name);
        return 0;
    }
    file = argv[3];
    if (argc > 4) {
        prefix = "more_";
        reopens = strcmp(argv[4], "reopen") == 0;
        OK(nc_open(file, NC_WRITE, &nc));
    } else {
        OK(nc_create(file, NC_NETCDF4 | NC_CLOBBER, &nc));
        OK(nc_enddef(nc));
    }
    for (size_t i = 0; i < n_loops; i++)
        if (strcmp(argv[1], loops[i].name) == 0) loops[i].run(atoi(argv[2]));
    OK(nc_close(nc));
    struct stat status;
    if (stat(file, &status) != 0) return 1;
    printf("%lld\n", (long long)status.st_size);
    return 0;
}
