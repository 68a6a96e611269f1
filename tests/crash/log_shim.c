/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sees every call of a process that changes files under one folder; loaded with LD_PRELOAD.
 *
 *   CRASH_FOLDER  absolute path, without links in it
 *   CRASH_LOG     file that gets the log, outside the folder
 *   CRASH_FAIL    N:KIND fails changing calls instead of logging them, from the N-th on:
 *                 enospc, eio   the call does nothing and gives that error
 *                 short         a write takes the first half (1 byte at least)
 *                 full          a write stops at a page border halfway, what follows gets ENOSPC
 *                 N:KIND:once   the N-th call only
 *                 lost          the N-th fsync or fdatasync gives EIO, and what was written to its file
 *                               since the last good one is gone, as on Linux when memory runs short;
 *                               other calls are not counted
 *                 CRASH_LOG then gets a line for the first call that failed.
 *
 * A log is a row of events: struct event, path, second path, data. A file is known by a number that
 * is never used again, unlike its inode. What cannot be seen (a shared writable mapping, io_uring)
 * ends the process: a log with a hole would prove nothing. replay.py compares what the log gives in
 * the end with the files that are there. */
#include "log_core.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name)                 \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Opening. */

static int open_with(int dirfd, const char *path, int flags, mode_t mode) {
    char name[PATH_MAX];
    struct stat st;
    const int may_change = flags & (O_CREAT | O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE;
    const int writes = (flags & O_ACCMODE) != O_RDONLY;
    BEGIN;
    char *rel =
        may_change || writes ? ours(dirfd, path, !(flags & (O_NOFOLLOW | O_EXCL)), name) : NULL;
    int existed = rel && fstatat(dirfd, path, &st, 0) == 0;
    if (rel && may_change && (!existed || flags & O_TRUNC) && fails("open", 0)) END(-1);
    int fd = (int)sys(SYS_openat, dirfd, path, flags, mode);
    if (fd >= 0 && rel && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        uint64_t id = existed ? lookup(&st) : 0;
        if (!id) {
            id = enter(&st);
            event(EV_CREATE, id, 0, (flags & O_TMPFILE) == O_TMPFILE ? "" : rel, NULL, NULL, 0);
            if (existed && st.st_size > 0) die("a file that was there before the log");
        } else if (flags & O_TRUNC) {
            event(EV_LENGTH, id, 0, NULL, NULL, NULL, 0);
        }
    }
    END(fd);
}

static mode_t mode_arg(int flags, va_list args) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

#define OPEN(name, dirfd, ...)                      \
    int name(__VA_ARGS__, ...) {                    \
        va_list args;                               \
        va_start(args, flags);                      \
        mode_t mode = mode_arg(flags, args);        \
        va_end(args);                               \
        return open_with(dirfd, path, flags, mode); \
    }
OPEN(open, AT_FDCWD, const char *path, int flags)
OPEN(open64, AT_FDCWD, const char *path, int flags)
OPEN(openat, dirfd, int dirfd, const char *path, int flags)
OPEN(openat64, dirfd, int dirfd, const char *path, int flags)
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __open_2(const char *path, int flags) { return open_with(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_with(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) {
    return open_with(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* stdio opens inside libc, past us; its mode says what it would do. */
#define FOPEN(name)                                                                       \
    FILE *name(const char *path, const char *mode) {                                      \
        char rel[PATH_MAX];                                                               \
        REAL(name);                                                                       \
        if (strpbrk(mode, "wa+") && ours(AT_FDCWD, path, 1, rel)) die("stdio on a file"); \
        return real(path, mode);                                                          \
    }
FOPEN(fopen)
FOPEN(fopen64)

int close(int fd) {
    BEGIN;
    uint64_t id = file_of(fd);
    if (id) event(EV_CLOSE, id, 0, NULL, NULL, NULL, 0);
    END((int)sys(SYS_close, fd));
}

/* Writing. All forms end here: at is -1 for the descriptor's own position. */

static ssize_t write_all(const char *call, int fd, const struct iovec *iov, int n, off_t at,
                         int flags) {
    BEGIN;
    uint64_t id = file_of(fd);
    ssize_t got;
    if (!id) {
        if (at < 0)
            got = sys(SYS_writev, fd, iov, n);
        else
            got = sys(SYS_pwritev2, fd, iov, n, (long)at, 0L, flags);
        END(got);
    }
    size_t total = 0;
    for (int i = 0; i < n; i++) total += iov[i].iov_len;
    char *data = malloc(total + 1), *to = data;
    if (!data) die("no memory");
    for (int i = 0; i < n; i++) {
        memcpy(to, iov[i].iov_base, iov[i].iov_len);
        to += iov[i].iov_len;
    }
    int fate = fails(call, 1);
    if (fate == 2 && fail_full) {
        /* The kernel takes whole pages of the file. */
        off_t from = at < 0 ? lseek(fd, 0, SEEK_CUR) : at;
        off_t border = (from + (off_t)total / 2) / 4096 * 4096;
        if (border > from)
            total = (size_t)(border - from);
        else
            fate = 1;
    } else if (fate == 2 && total > 1) {
        total /= 2;
    }
    remember(fd, id, at < 0 ? lseek(fd, 0, SEEK_CUR) : at, total);
    if (fate == 1)
        got = -1, errno = (int)fail_errno;
    else if (at < 0)
        got = sys(SYS_write, fd, data, total);
    else
        got = sys(SYS_pwrite64, fd, data, total, at);
    if (got > 0) {
        if (at < 0) at = lseek(fd, 0, SEEK_CUR) - got;
        event(EV_WRITE, id, (uint64_t)at, NULL, NULL, data, (size_t)got);
    }
    int saved = errno;
    free(data);
    errno = saved;
    END(got);
}

#define ONE(buf, n) &(struct iovec){(void *)(uintptr_t)(buf), n}, 1
ssize_t write(int fd, const void *buf, size_t n) {
    return write_all("write", fd, ONE(buf, n), -1, 0);
}
ssize_t writev(int fd, const struct iovec *iov, int n) {
    return write_all("writev", fd, iov, n, -1, 0);
}
ssize_t pwrite(int fd, const void *buf, size_t n, off_t at) {
    return write_all("pwrite", fd, ONE(buf, n), at, 0);
}
ssize_t pwrite64(int fd, const void *buf, size_t n, off_t at) {
    return write_all("pwrite", fd, ONE(buf, n), at, 0);
}
ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t at) {
    return write_all("pwritev", fd, iov, n, at, 0);
}
ssize_t pwritev64(int fd, const struct iovec *iov, int n, off_t at) {
    return write_all("pwritev", fd, iov, n, at, 0);
}
ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags) {
    return write_all("pwritev2", fd, iov, n, at, flags);
}
ssize_t pwritev64v2(int fd, const struct iovec *iov, int n, off_t at, int flags) {
    return write_all("pwritev2", fd, iov, n, at, flags);
}

/* Logs what a copy inside the kernel has written: the bytes are read back. */
static void copied(int fd, uint64_t id, off_t at, size_t n) {
    char *data = malloc(n + 1), link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int in = (int)sys(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    if (!data || in < 0 || pread(in, data, n, at) != (ssize_t)n)
        die("a copy that cannot be read back");
    sys(SYS_close, in);
    event(EV_WRITE, id, (uint64_t)at, NULL, NULL, data, n);
    free(data);
}

static ssize_t copy_with(int in, off_t *in_at, int out, off_t *out_at, size_t n, int how,
                         unsigned flags) {
    BEGIN;
    uint64_t id = file_of(out);
    if (id) {
        int fate = fails(how == SYS_sendfile ? "sendfile" : "copy_file_range", 1);
        if (fate == 1) END(-1);
        if (fate == 2 && n > 1) n /= 2;
    }
    off_t at = out_at ? *out_at : id ? lseek(out, 0, SEEK_CUR) : 0;
    if (id) remember(out, id, at, n);
    ssize_t got = how == SYS_sendfile ? sys(SYS_sendfile, out, in, in_at, n)
                                      : sys(how, in, in_at, out, out_at, n, flags);
    if (id && got > 0) copied(out, id, at, (size_t)got);
    END(got);
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n,
                        unsigned flags) {
    return copy_with(in, in_at, out, out_at, n, SYS_copy_file_range, flags);
}
ssize_t sendfile(int out, int in, off_t *at, size_t n) {
    return copy_with(in, at, out, NULL, n, SYS_sendfile, 0);
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t n) {
    return copy_with(in, at, out, NULL, n, SYS_sendfile, 0);
}
ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags) {
    return copy_with(in, in_at, out, out_at, n, SYS_splice, flags);
}

/* Length and space. */

static int length(int fd, off_t len) {
    BEGIN;
    uint64_t id = file_of(fd);
    if (id && fails("ftruncate", 0)) END(-1);
    if (id) remember(fd, id, len, SIZE_MAX);
    int got = (int)sys(SYS_ftruncate, fd, len);
    if (id && got == 0) event(EV_LENGTH, id, (uint64_t)len, NULL, NULL, NULL, 0);
    END(got);
}
int ftruncate(int fd, off_t len) { return length(fd, len); }
int ftruncate64(int fd, off64_t len) { return length(fd, len); }

static int length_of_path(const char *path, off_t len) {
    struct stat st;
    BEGIN;
    uint64_t id = folder_len && stat(path, &st) == 0 ? lookup(&st) : 0;
    if (id && fails("truncate", 0)) END(-1);
    int got = (int)sys(SYS_truncate, path, len);
    if (id && got == 0) event(EV_LENGTH, id, (uint64_t)len, NULL, NULL, NULL, 0);
    END(got);
}
int truncate(const char *path, off_t len) { return length_of_path(path, len); }
int truncate64(const char *path, off64_t len) { return length_of_path(path, len); }

static int allocate(int fd, int mode, off_t at, off_t len) {
    BEGIN;
    uint64_t id = file_of(fd);
    if (id && fails("fallocate", 0)) END(-1);
    if (id) remember(fd, id, at, (size_t)len);
    int got = (int)sys(SYS_fallocate, fd, mode, at, len);
    uint64_t args[2] = {(uint64_t)mode, (uint64_t)len};
    if (id && got == 0) event(EV_ALLOCATE, id, (uint64_t)at, NULL, NULL, args, sizeof args);
    END(got);
}
int fallocate(int fd, int mode, off_t at, off_t len) { return allocate(fd, mode, at, len); }
int fallocate64(int fd, int mode, off64_t at, off64_t len) { return allocate(fd, mode, at, len); }
int posix_fallocate(int fd, off_t at, off_t len) { return allocate(fd, 0, at, len) ? errno : 0; }
int posix_fallocate64(int fd, off64_t at, off64_t len) {
    return allocate(fd, 0, at, len) ? errno : 0;
}

/* Names. */

static int rename_with(int d1, const char *from, int d2, const char *to, unsigned flags) {
    char a[PATH_MAX], b[PATH_MAX];
    BEGIN;
    char *x = ours(d1, from, 0, a), *y = ours(d2, to, 0, b);
    if ((x || y) && fails("rename", 0)) END(-1);
    int got = (int)sys(SYS_renameat2, d1, from, d2, to, flags);
    if (got == 0 && (x || y)) {
        if (!x || !y) die("a rename into or out of the folder");
        event(flags & RENAME_EXCHANGE ? EV_EXCHANGE : EV_RENAME, 0, 0, x, y, NULL, 0);
    }
    END(got);
}
int rename(const char *from, const char *to) {
    return rename_with(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int d1, const char *from, int d2, const char *to) {
    return rename_with(d1, from, d2, to, 0);
}
int renameat2(int d1, const char *from, int d2, const char *to, unsigned flags) {
    return rename_with(d1, from, d2, to, flags);
}

static int unlink_with(int dirfd, const char *path, int flags) {
    char a[PATH_MAX];
    BEGIN;
    char *x = ours(dirfd, path, 0, a);
    if (x && fails("unlink", 0)) END(-1);
    int got = (int)sys(SYS_unlinkat, dirfd, path, flags);
    if (got == 0 && x) event(EV_UNLINK, 0, 0, x, NULL, NULL, 0);
    END(got);
}
int unlink(const char *path) { return unlink_with(AT_FDCWD, path, 0); }
int unlinkat(int dirfd, const char *path, int flags) { return unlink_with(dirfd, path, flags); }
int remove(const char *path) { return unlink_with(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlink_with(AT_FDCWD, path, AT_REMOVEDIR); }

static int link_with(int d1, const char *from, int d2, const char *to, int flags) {
    char b[PATH_MAX];
    struct stat st;
    BEGIN;
    char *y = ours(d2, to, 0, b);
    if (y && fails("link", 0)) END(-1);
    int got = (int)sys(SYS_linkat, d1, from, d2, to, flags);
    if (got == 0 && y) {
        uint64_t id = fstatat(d2, to, &st, AT_SYMLINK_NOFOLLOW) == 0 ? lookup(&st) : 0;
        if (!id) die("a link to a file that was not seen");
        event(EV_LINK, id, 0, y, NULL, NULL, 0);
    }
    END(got);
}
int link(const char *from, const char *to) { return link_with(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int d1, const char *from, int d2, const char *to, int flags) {
    return link_with(d1, from, d2, to, flags);
}

int symlink(const char *target, const char *path) {
    char a[PATH_MAX];
    BEGIN;
    char *x = ours(AT_FDCWD, path, 0, a);
    int got = (int)sys(SYS_symlinkat, target, AT_FDCWD, path);
    if (got == 0 && x) event(EV_SYMLINK, 0, 0, x, target, NULL, 0);
    END(got);
}

int mkdir(const char *path, mode_t mode) {
    char a[PATH_MAX];
    BEGIN;
    char *x = ours(AT_FDCWD, path, 0, a);
    int got = (int)sys(SYS_mkdirat, AT_FDCWD, path, mode);
    if (got == 0 && x) event(EV_MKDIR, 0, 0, x, NULL, NULL, 0);
    END(got);
}

/* Barriers. */

static int flush(int fd, int how) {
    struct stat st;
    char name[PATH_MAX], link[64];
    BEGIN;
    uint64_t id = file_of(fd);
    int is_folder = 0;
    if (folder_len && !id && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, name, sizeof name - 1);
        name[n > 0 ? n : 0] = 0;
        is_folder = n >= (ssize_t)folder_len && !memcmp(name, folder, folder_len) &&
                    (!name[folder_len] || name[folder_len] == '/');
    }
    if ((id || is_folder) && fails(how == SYS_fsync ? "fsync" : "fdatasync", 0)) {
        lose(fd, id);
        errno = (int)fail_errno;
        END(-1);
    }
    int got = (int)sys(how, fd);
    if (got == 0 && id) keep(id);
    if (got == 0 && id)
        event(how == SYS_fsync ? EV_FSYNC : EV_FDATASYNC, id, 0, NULL, NULL, NULL, 0);
    if (got == 0 && is_folder)
        event(EV_FSYNC_FOLDER, 0, 0, name + folder_len + !!name[folder_len], NULL, NULL, 0);
    END(got);
}
int fsync(int fd) { return flush(fd, SYS_fsync); }
int fdatasync(int fd) { return flush(fd, SYS_fdatasync); }

/* What would leave a hole in the log. */

static void *map_with(void *at, size_t n, int prot, int flags, int fd, off_t from) {
    if (!(flags & MAP_ANONYMOUS) && prot & PROT_WRITE &&
        flags & (MAP_SHARED | MAP_SHARED_VALIDATE) && file_of(fd))
        die("a shared writable mapping");
    return (void *)sys(SYS_mmap, at, n, prot, flags, fd, from);
}
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from) {
    return map_with(at, n, prot, flags, fd, from);
}
void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t from) {
    return map_with(at, n, prot, flags, fd, from);
}

int ioctl(int fd, unsigned long request, ...) {
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    /* Shared extents are copied the slow way, which can be logged. */
    if ((request == FICLONE || request == FICLONERANGE) && file_of(fd)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)sys(SYS_ioctl, fd, request, arg);
}

/* A program may call the kernel by number. */
long syscall(long n, ...) {
    long a[6];
    va_list args;
    va_start(args, n);
    for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
    va_end(args);
    switch (n) {
        case SYS_copy_file_range:
            return copy_with((int)a[0], (off_t *)a[1], (int)a[2], (off_t *)a[3], (size_t)a[4],
                             SYS_copy_file_range, (unsigned)a[5]);
        case SYS_renameat2:
            return rename_with((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3],
                               (unsigned)a[4]);
        case SYS_openat: return open_with((int)a[0], (const char *)a[1], (int)a[2], (mode_t)a[3]);
        case SYS_write:
        case SYS_pwrite64:
        case SYS_writev:
        case SYS_pwritev:
        case SYS_pwritev2:
        case SYS_ftruncate:
        case SYS_fallocate:
        case SYS_fsync:
        case SYS_fdatasync:
            if (file_of((int)a[0])) die("a changing call by number");
            break;
        case SYS_openat2:
        case SYS_io_uring_setup: die("openat2 or io_uring");
        default: break;
    }
    return sys(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}
