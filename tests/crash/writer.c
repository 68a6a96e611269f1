/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Carries out a scenario through the public C interface and says, as it goes, what it began and
 * what was promised:
 *
 *   writer SCENARIO VERSION FOLDER [ROUNDS]      version 1, 2, 5, or 4 for netCDF-4
 *   writer --list                                the scenarios, each with its versions
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

/* Groups and variables of a file by their numbers in the plan. Within a group the library numbers
 * variables in the order of their definition, dimensions throughout the file. */

static int group_id(int ncid, const struct plan *plan, int group, int *id) {
    char path[MAX_GROUPS * NAME_BYTES] = "", below[sizeof path];
    for (int g = group; g > 0;) {
        const struct op *op = plan->ops;
        for (int n = 0; op->kind != OP_GROUP || ++n < g; op++) continue;
        snprintf(below, sizeof below, "/%s%s", op->name, path);
        strcpy(path, below);
        g = op->arg;
    }
    *id = ncid;
    return group ? nc_inq_grp_full_ncid(ncid, path, id) : NC_NOERR;
}

static int var_id(int ncid, const struct plan *plan, int var, int *group, int *id) {
    int seen[MAX_GROUPS] = {0};
    for (const struct op *op = plan->ops;; op++) {
        if (op->kind != OP_VAR) continue;
        if (var-- == 0) {
            *id = seen[op->arg];
            return group_id(ncid, plan, op->arg, group);
        }
        seen[op->arg]++;
    }
}

/* Where the attributes of an operation are. */
static int att_place(int ncid, const struct plan *plan, const struct op *op, int *group, int *id) {
    *id = NC_GLOBAL;
    return op->var == NC_GLOBAL ? group_id(ncid, plan, op->arg, group)
                                : var_id(ncid, plan, op->var, group, id);
}

static int put(int ncid, const struct plan *plan, int k) {
    const struct op *op = &plan->ops[k];
    const nc_type type = plan->vars[op->var].type;
    const size_t size = type_size(type);
    size_t n = 1, row = 1;
    int id, code = var_id(ncid, plan, op->var, &ncid, &id);
    if (code) return code;
    /* All selections are whole but in their first index, so the elements follow each other. */
    for (int i = 0; i < op->rank; i++) n *= op->count[i];
    for (int i = 1; i < op->rank; i++) row *= op->count[i];
    const size_t first = op->rank ? op->start[0] * row : 0;
    char *data = must(malloc(n * size + 1));
    for (size_t i = 0; i < n; i++) value_of(type, op->var, first + i, k, data + i * size);
    void *packed = pack(type, data, n);
    code = nc_put_vara(ncid, id, op->start, op->count, packed);
    packed_free(type, packed, n);
    free(data);
    return code;
}

static int put_att(int ncid, const struct plan *plan, int k) {
    const struct op *op = &plan->ops[k];
    int group, id, code = att_place(ncid, plan, op, &group, &id);
    if (code) return code;
    char *values = must(malloc(op->n * type_size(op->type) + 1));
    att_values(op->type, k, op->n, values);
    void *packed = pack(op->type, values, op->n);
    code = nc_put_att(group, id, op->name, type_id(ncid, op->type), op->n, packed);
    packed_free(op->type, packed, op->n);
    free(values);
    return code;
}

static int def_type(int ncid, const struct op *op) {
    nc_type id;
    int code;
    short values[] = {0, 1, 2};
    switch (op->type) {
        case TYPE_LIST: return nc_def_vlen(ncid, op->name, NC_INT, &id);
        case TYPE_BLOB: return nc_def_opaque(ncid, type_size(TYPE_BLOB), op->name, &id);
        case TYPE_KIND:
            code = nc_def_enum(ncid, NC_SHORT, op->name, &id);
            for (int i = 0; i < 3 && !code; i++)
                code = nc_insert_enum(ncid, id, (const char *[]){"a", "b", "c"}[i], &values[i]);
            return code;
        default:
            code = nc_def_compound(ncid, type_size(TYPE_PAIR), op->name, &id);
            for (int i = 0; i < 2 && !code; i++)
                code = nc_insert_compound(ncid, id, i ? "y" : "x", 4 * (size_t)i, NC_UINT);
            return code;
    }
}

static int def_layout(int ncid, const struct plan *plan, const struct op *op) {
    int group, id, code = var_id(ncid, plan, op->var, &group, &id);
    if (code) return code;
    if (op->arg & LAYOUT_CONTIGUOUS) return nc_def_var_chunking(group, id, NC_CONTIGUOUS, NULL);
    if ((code = nc_def_var_chunking(group, id, NC_CHUNKED, op->count))) return code;
    if (op->arg & LAYOUT_CHECKSUM && (code = nc_def_var_fletcher32(group, id, NC_FLETCHER32)))
        return code;
    if (!op->n) return NC_NOERR;
    return nc_def_var_deflate(group, id, !!(op->arg & LAYOUT_SHUFFLE), 1, (int)op->n);
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
    return version == NETCDF4 ? NC_NETCDF4
           : version == 5     ? NC_64BIT_DATA
           : version == 2     ? NC_64BIT_OFFSET
                              : 0;
}

static int run(int *ncid, const struct plan *plan, int k) {
    const struct op *op = &plan->ops[k];
    int group, id, code;
    switch (op->kind) {
        case OP_CREATE:
            return nc_create(path, NC_CLOBBER | version_bits(plan->version) | op->arg, ncid);
        case OP_OPEN: return nc_open(path, NC_WRITE | op->arg, ncid);
        case OP_REDEF: return nc_redef(*ncid);
        case OP_DIM:
            if ((code = group_id(*ncid, plan, op->arg, &group))) return code;
            return nc_def_dim(group, op->name, op->n ? op->n : NC_UNLIMITED, &id);
        case OP_VAR:
            if ((code = group_id(*ncid, plan, op->arg, &group))) return code;
            return nc_def_var(group, op->name, type_id(*ncid, op->type), op->rank, op->dims, &id);
        case OP_GROUP:
            if ((code = group_id(*ncid, plan, op->arg, &group))) return code;
            return nc_def_grp(group, op->name, &id);
        case OP_TYPE: return def_type(*ncid, op);
        case OP_LAYOUT: return def_layout(*ncid, plan, op);
        case OP_ATT: return put_att(*ncid, plan, k);
        case OP_DEL_ATT:
            if ((code = att_place(*ncid, plan, op, &group, &id))) return code;
            return nc_del_att(group, id, op->name);
        case OP_RENAME_DIM: return nc_rename_dim(*ncid, op->var, op->to);
        case OP_RENAME_VAR:
            if ((code = var_id(*ncid, plan, op->var, &group, &id))) return code;
            return nc_rename_var(group, id, op->to);
        case OP_RENAME_ATT:
            if ((code = att_place(*ncid, plan, op, &group, &id))) return code;
            return nc_rename_att(group, id, op->name, op->to);
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

/* An nc_enddef of a netCDF-4 file that fails has ended definitions, as in the reference: the next
 * sync commits them. */
static int once_more(int *ncid, const struct plan *plan, int k) {
    const int is_enddef = plan->ops[k].kind == OP_ENDDEF;
    return is_enddef && plan->version == NETCDF4 ? nc_sync(*ncid) : run(ncid, plan, k);
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
        const struct op *op = &plan->ops[k];
        putchar(op_defines(op) || op->kind == OP_CREATE || op->kind == OP_REDEF ||
                        op->kind == OP_ENDDEF || op->kind == OP_ABORT
                    ? 'd'
                    : '-');
    }
    putchar('\n');
}

static void say(const char *name, int version) { printf("%s %d\n", name, version); }

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
            if (retry) code = once_more(&ncid, &plan, k);
            if (retry && code) fprintf(stderr, "writer: once more: %s\n", nc_strerror(code));
        }
        if (code) {
            if (die) _exit(3);
            if (plan.ops[k].kind != OP_CLOSE && nc_close(ncid) == NC_NOERR)
                mark("P %d\n", k - 1, 0);
            return 3;
        }
        const int committed = op_commits(&plan, k);
        if (committed >= 0) mark("P %d\n", committed, 0);
    }
    const int status = kept();
    return status ? status : failed ? 5 : 0;
}
