/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "log_core.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct event {
    uint32_t kind, path_bytes, path2_bytes, pad;
    uint64_t file, at,
        data_bytes; /* EV_LENGTH: at is the length; EV_ALLOCATE: data is (mode, len) */
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
char folder[PATH_MAX];
size_t folder_len;
int log_fd = -1, fail_full;
long fail_errno;
static long n_changes, fail_from;
static int fail_short, fail_once, fail_lost, failing, has_failed;
/* What was there before the changes since the last sync, newest last. */
static struct before {
    uint64_t id;
    off_t at, len;
    size_t n;
    char *data;
} *befores;
static size_t n_befores;
static struct {
    dev_t dev;
    ino_t ino;
    uint64_t id;
} *files;
static size_t n_files;
static uint64_t next_id = 1;

long (*sys_door(void))(long, ...) {
    static long (*door)(long, ...);
    if (!door) door = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return door;
}

void die(const char *why) {
    fprintf(stderr, "crash: the log shim cannot follow: %s\n", why);
    _exit(71);
}

static void raw_write(const void *data, size_t n) {
    while (n > 0) {
        long got = sys(SYS_write, log_fd, data, n);
        if (got <= 0) die("the log cannot be written");
        data = (const char *)data + got, n -= (size_t)got;
    }
}

/* Which of our files. */

char *ours(int dirfd, const char *path, int follow, char *out) {
    char whole[2 * PATH_MAX], parent[PATH_MAX];
    int saved = errno;
    if (folder_len == 0 || !path) return NULL;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char base[PATH_MAX], link[64];
        ssize_t n = -1;
        if (dirfd == AT_FDCWD) {
            if (getcwd(base, sizeof base)) n = (ssize_t)strlen(base);
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
            n = readlink(link, base, sizeof base - 1);
        }
        if (n < 0) return NULL;
        base[n] = 0;
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    char *last;
    if (follow && realpath(whole, parent)) {
        snprintf(whole, sizeof whole, "%s", parent);
    } else if (follow) {
        /* A link to a file that is still to be created. */
        char to[PATH_MAX];
        ssize_t n = readlink(whole, to, sizeof to - 1);
        if (n > 0) {
            to[n] = 0;
            last = strrchr(whole, '/');
            if (to[0] == '/')
                snprintf(whole, sizeof whole, "%s", to);
            else
                snprintf(last + 1, sizeof whole - (size_t)(last + 1 - whole), "%s", to);
        }
    }
    last = strrchr(whole, '/');
    *last = 0;
    if (!realpath(last == whole ? "/" : whole, parent)) {
        errno = saved;
        return NULL;
    }
    errno = saved;
    size_t n = strlen(parent);
    if (n < folder_len || memcmp(parent, folder, folder_len)) return NULL;
    if (parent[folder_len] && parent[folder_len] != '/') return NULL;
    snprintf(out, PATH_MAX, "%s%s%s", parent + folder_len + (n > folder_len),
             n > folder_len ? "/" : "", last + 1);
    return out;
}

uint64_t lookup(const struct stat *st) {
    for (size_t i = n_files; i-- > 0;)
        if (files[i].dev == st->st_dev && files[i].ino == st->st_ino) return files[i].id;
    return 0;
}

uint64_t enter(const struct stat *st) {
    void *grown = realloc(files, (n_files + 1) * sizeof *files);
    if (!grown) die("no memory");
    files = grown;
    files[n_files].dev = st->st_dev, files[n_files].ino = st->st_ino;
    files[n_files].id = next_id;
    n_files++;
    return next_id++;
}

uint64_t file_of(int fd) {
    struct stat st;
    int saved = errno;
    uint64_t id = 0;
    if (folder_len && fd >= 0 && fd != log_fd && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        id = lookup(&st);
    errno = saved;
    return id;
}

void event(enum event_kind kind, uint64_t file, uint64_t at, const char *path, const char *path2,
           const void *data, size_t n) {
    if (failing || log_fd < 0) return;
    struct event e = {
        kind, path ? (uint32_t)strlen(path) : 0, path2 ? (uint32_t)strlen(path2) : 0, 0, file, at,
        n};
    raw_write(&e, sizeof e);
    raw_write(path, e.path_bytes);
    raw_write(path2, e.path2_bytes);
    raw_write(data, n);
}

void crash_mark(const char *text);
void crash_mark(const char *text) {
    pthread_mutex_lock(&lock);
    event(EV_MARK, 0, 0, NULL, NULL, text, strlen(text));
    pthread_mutex_unlock(&lock);
}

/* What is in the folder already goes into the log first. */
static void scan(const char *below) {
    char at[2 * PATH_MAX + 2], name[PATH_MAX], target[PATH_MAX];
    struct stat st;
    struct dirent *entry;
    snprintf(at, sizeof at, "%s/%s", folder, below);
    DIR *dir = opendir(at);
    if (!dir) die("CRASH_FOLDER cannot be read");
    while ((entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        int n = snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", entry->d_name);
        int m = snprintf(at, sizeof at, "%s/%s", folder, name);
        if (n < 0 || m < 0 || (size_t)m >= sizeof at || lstat(at, &st)) die("a name in the folder");
        if (S_ISDIR(st.st_mode)) {
            event(EV_MKDIR, 0, 0, name, NULL, NULL, 0);
            scan(name);
        } else if (S_ISLNK(st.st_mode)) {
            ssize_t len = readlink(at, target, sizeof target - 1);
            target[len > 0 ? len : 0] = 0;
            event(EV_SYMLINK, 0, 0, name, target, NULL, 0);
        } else if (lookup(&st)) {
            event(EV_LINK, lookup(&st), 0, name, NULL, NULL, 0);
        } else {
            uint64_t id = enter(&st);
            char *data = malloc((size_t)st.st_size + 1);
            int fd = (int)sys(SYS_openat, AT_FDCWD, at, O_RDONLY | O_CLOEXEC, 0);
            if (!data || fd < 0 || pread(fd, data, (size_t)st.st_size, 0) != st.st_size)
                die("a file in the folder");
            sys(SYS_close, fd);
            event(EV_CREATE, id, 0, name, NULL, NULL, 0);
            event(EV_WRITE, id, 0, NULL, NULL, data, (size_t)st.st_size);
            free(data);
        }
    }
    closedir(dir);
}

__attribute__((constructor)) static void start(void) {
    const char *where = getenv("CRASH_FOLDER"), *to = getenv("CRASH_LOG"),
               *fail = getenv("CRASH_FAIL");
    if (!where || !to) return;
    folder_len = strlen(where);
    if (folder_len >= sizeof folder) die("CRASH_FOLDER is too long");
    strcpy(folder, where);
    log_fd = (int)sys(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log_fd < 0) die("CRASH_LOG cannot be opened");
    failing = !!fail;
    scan("");
    crash_mark("start");
    if (fail) {
        fail_from = atol(fail);
        const char *kind = strchr(fail, ':');
        if (!kind || fail_from < 1) die("CRASH_FAIL is not N:KIND");
        fail_errno = strstr(kind, "eio") ? EIO : ENOSPC;
        fail_short = !!strstr(kind, "short");
        fail_full = !!strstr(kind, "full");
        fail_lost = !!strstr(kind, "lost");
        fail_once = fail_lost || strstr(kind, ":once");
        if (fail_lost) fail_errno = EIO;
    }
}

int fails(const char *call, int is_write) {
    if (!failing) return 0;
    if (fail_lost && strcmp(call, "fsync") && strcmp(call, "fdatasync")) return 0;
    n_changes++;
    if (n_changes < fail_from || (fail_once && has_failed)) return 0;
    if (fail_short && !is_write) return 0;
    if (!has_failed) {
        char line[80];
        raw_write(line,
                  (size_t)snprintf(line, sizeof line, "failed %s, change %ld\n", call, n_changes));
    }
    int first = !has_failed;
    has_failed = 1;
    if (fail_short || (fail_full && first && is_write)) return 2;
    errno = (int)fail_errno;
    return 1;
}

void remember(int fd, uint64_t id, off_t at, size_t n) {
    struct stat st;
    char link[64];
    if (!fail_lost || has_failed) return;
    if (fstat(fd, &st)) die("a file without a length");
    size_t there = st.st_size > at ? (size_t)(st.st_size - at) : 0;
    if (n > there) n = there;
    void *grown = realloc(befores, (n_befores + 1) * sizeof *befores);
    if (!grown) die("no memory");
    befores = grown;
    struct before *b = &befores[n_befores++];
    *b = (struct before){id, at, st.st_size, n, malloc(n + 1)};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int in = (int)sys(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    if (!b->data || in < 0 || pread(in, b->data, n, at) != (ssize_t)n)
        die("a change of what cannot be read");
    sys(SYS_close, in);
}

void keep(uint64_t id) {
    size_t left = 0;
    for (size_t i = 0; i < n_befores; i++) {
        if (befores[i].id == id)
            free(befores[i].data);
        else
            befores[left++] = befores[i];
    }
    n_befores = left;
}

void lose(int fd, uint64_t id) {
    if (!fail_lost || !id) return;
    for (size_t i = n_befores; i-- > 0;) {
        const struct before *b = &befores[i];
        if (b->id != id) continue;
        if (sys(SYS_pwrite64, fd, b->data, b->n, b->at) != (long)b->n ||
            sys(SYS_ftruncate, fd, b->len))
            die("what was there cannot be put back");
    }
    keep(id);
}
