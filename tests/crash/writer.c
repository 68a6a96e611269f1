/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Carries out a scenario through the public C interface and says, as it goes, what it began and
 * what was promised:
 *
 *   writer SCENARIO VERSION FOLDER [ROUNDS]      version 1, 2 or 5
 *   writer --list                                the scenarios
 *   writer --ops SCENARIO VERSION [ROUNDS]       a letter per operation: `d` may change definitions
 *
 * Marks are lines: `B k` operation k begins, `P k` everything up to k is promised, `F k code` it
 * failed. They are appended to the file CRASH_MARKS, and handed to crash_mark() where the log shim
 * is loaded, so that they stand between the calls that changed files.
 *
 * WRITER_ON_ERROR: `stop` (default) closes the file and exits with 3; `die` exits without closing;
 * `retry` makes the call that failed a second time and goes on. Status 4: what a move has to keep
 * (mode, owner, links, extended attributes) was not kept. */
#define _GNU_SOURCE
#include "plan.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SOMEBODY 65534

static int marks = -1;
static void (*shim_mark)(const char *);
static const char *folder;
static char path[4200], link_path[4200], folder_real[4200];
static size_t kept_mode;
static int kept_xattr, kept_symlink, kept_link;

static void mark(const char *format, int k, int code) {
    char line[64];
    int n = snprintf(line, sizeof line, format, k, code);
    if (marks >= 0 && write(marks, line, (size_t)n) != n) _exit(70);
    if (shim_mark) shim_mark(line);
}

static int put(int ncid, const struct plan *plan, int k) {
    const struct op *op = &plan->ops[k];
    nc_type type;
    size_t shape[MAX_RANK] = {0}, n = 1;
    int dims[MAX_RANK];
    int code = nc_inq_vartype(ncid, op->var, &type);
    if (code) return code;
    if ((code = nc_inq_vardimid(ncid, op->var, dims))) return code;
    for (int i = 0; i < op->rank; i++) {
        if ((code = nc_inq_dimlen(ncid, dims[i], &shape[i]))) return code;
        n *= op->count[i];
    }
    const size_t size = type_size(type);
    char *data = must(malloc(n * size + 1));
    /* All selections are whole but in their first index, so the elements follow each other. */
    size_t row = 1;
    for (int i = 1; i < op->rank; i++) row *= op->count[i];
    const size_t first = op->rank ? op->start[0] * row : 0;
    for (size_t i = 0; i < n; i++) value_of(type, op->var, first + i, k, data + i * size);
    code = nc_put_vara(ncid, op->var, op->start, op->count, data);
    free(data);
    return code;
}

/* Names that the program itself makes are its own business to make durable. */
static int sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) ? errno : 0;
    if (fd >= 0) close(fd);
    return code;
}

static int guise(const struct op *op) {
    if (chmod(path, (mode_t)op->n)) return errno;
    kept_mode = op->n;
    kept_xattr = !setxattr(path, "user.crash", "kept", 4, 0);
    if (op->arg && geteuid() == 0) return seteuid(SOMEBODY) ? errno : 0;
    return 0;
}

static int version_bits(int version) {
    return version == 5 ? NC_64BIT_DATA : version == 2 ? NC_64BIT_OFFSET : 0;
}

static int run(int *ncid, const struct plan *plan, int k) {
    const struct op *op = &plan->ops[k];
    int id, code;
    char values[16384];
    switch (op->kind) {
        case OP_CREATE:
            return nc_create(path, NC_CLOBBER | version_bits(plan->version) | op->arg, ncid);
        case OP_OPEN: return nc_open(path, NC_WRITE | op->arg, ncid);
        case OP_REDEF: return nc_redef(*ncid);
        case OP_DIM: return nc_def_dim(*ncid, op->name, op->n ? op->n : NC_UNLIMITED, &id);
        case OP_VAR: return nc_def_var(*ncid, op->name, op->type, op->rank, op->dims, &id);
        case OP_ATT:
            if (op->n * type_size(op->type) > sizeof values) return NC_ENOMEM;
            att_values(op->type, k, op->n, values);
            return nc_put_att(*ncid, op->var, op->name, op->type, op->n, values);
        case OP_RENAME_DIM: return nc_rename_dim(*ncid, op->var, op->to);
        case OP_RENAME_VAR: return nc_rename_var(*ncid, op->var, op->to);
        case OP_RENAME_ATT: return nc_rename_att(*ncid, op->var, op->name, op->to);
        case OP_FILL: return nc_set_fill(*ncid, op->arg, &id);
        case OP_ENDDEF:
            if (op->n == 0) return nc_enddef(*ncid);
            return nc__enddef(*ncid, op->align[0], op->align[1], op->align[2], op->align[3]);
        case OP_ABORT: return nc_abort(*ncid);
        case OP_PUT: return put(*ncid, plan, k);
        case OP_SYNC: return nc_sync(*ncid);
        case OP_CLOSE: return nc_close(*ncid);
        case OP_LINK:
            kept_link = 1;
            return link(path, link_path) && errno != EEXIST ? errno : sync_folder(folder);
        case OP_SYMLINK:
            kept_symlink = 1;
            code = mkdir(folder_real, 0777) && errno != EEXIST ? errno : 0;
            if (!code && chmod(folder_real, 0777)) code = errno;
            if (!code && symlink(REAL_NAME, path) && errno != EEXIST) code = errno;
            return code ? code : sync_folder(folder);
        case OP_GUISE: return guise(op);
    }
    return NC_EINVAL;
}

static int lost(const char *what) {
    fprintf(stderr, "writer: the file lost its %s\n", what);
    return 4;
}

/* Whether the file is still what it was in all that is not its content. */
static int kept(void) {
    struct stat at, other;
    char value[16];
    if (geteuid() == SOMEBODY && seteuid(0)) return lost("place");
    if (lstat(path, &at)) return lost("name");
    if (kept_symlink) {
        if (!S_ISLNK(at.st_mode)) return lost("symbolic link");
        return 0;
    }
    if (kept_link) {
        if (stat(link_path, &other) || other.st_ino != at.st_ino) return lost("second name");
    }
    if (kept_mode) {
        if ((at.st_mode & 07777) != kept_mode) return lost("mode");
        if (at.st_uid != getuid()) return lost("owner");
        if (kept_xattr && getxattr(path, "user.crash", value, sizeof value) != 4)
            return lost("extended attribute");
    }
    return 0;
}

/* Which operations may change the header beyond the record count. */
static void show_ops(const struct plan *plan) {
    for (int k = 0; k < plan->n; k++) {
        const enum kind kind = plan->ops[k].kind;
        putchar(kind == OP_CREATE || (kind >= OP_REDEF && kind <= OP_ABORT && kind != OP_FILL)
                    ? 'd'
                    : '-');
    }
    putchar('\n');
}

static void say(const char *name) { puts(name); }

int main(int argc, char **argv) {
    struct plan plan;
    int ncid = -1, failed = 0;
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        plan_names(say);
        return 0;
    }
    if (argc >= 4 && !strcmp(argv[1], "--ops")) {
        if (!plan_build(&plan, argv[2], atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 0)) return 64;
        show_ops(&plan);
        return 0;
    }
    if (argc < 4 || !plan_build(&plan, argv[1], atoi(argv[2]), argc > 4 ? atoi(argv[4]) : 0)) {
        fprintf(stderr, "usage: writer SCENARIO VERSION FOLDER [ROUNDS]\n");
        return 64;
    }
    folder = argv[3];
    snprintf(path, sizeof path, "%s/%s", argv[3], FILE_NAME);
    snprintf(link_path, sizeof link_path, "%s/%s", argv[3], LINK_NAME);
    snprintf(folder_real, sizeof folder_real, "%s/real", argv[3]);
    const char *on_error = getenv("WRITER_ON_ERROR");
    const char *marks_path = getenv("CRASH_MARKS");
    const int retry = on_error && !strcmp(on_error, "retry");
    const int die = on_error && !strcmp(on_error, "die");
    shim_mark = (void (*)(const char *))dlsym(RTLD_DEFAULT, "crash_mark");
    if (marks_path) {
        marks = open(marks_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (marks < 0) return 70;
    }

    for (int k = 0; k < plan.n; k++) {
        mark("B %d\n", k, 0);
        int code = run(&ncid, &plan, k);
        if (code) {
            mark("F %d %d\n", k, code);
            fprintf(stderr, "writer: operation %d failed: %s\n", k, nc_strerror(code));
            failed = 1;
            if (retry) code = run(&ncid, &plan, k);
            if (retry && code) fprintf(stderr, "writer: once more: %s\n", nc_strerror(code));
        }
        if (code) {
            if (die) _exit(3);
            if (plan.ops[k].kind != OP_CLOSE && nc_close(ncid) == NC_NOERR)
                mark("P %d\n", k - 1, 0);
            return 3;
        }
        if (op_commits(&plan.ops[k])) mark("P %d\n", k, 0);
    }
    const int status = kept();
    return status ? status : failed ? 5 : 0;
}
