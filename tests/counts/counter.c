/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded: how often memory was asked for, how many bytes memcpy and memmove moved, how often the system was called about
 * files, and how many bytes that read and wrote; in all threads. Calls of the system that libc makes for itself are not seen
 * (one of realpath is one). Not by ptrace: a call at which another program is waited for looks to the library like one of a
 * slow device. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Shorter ones are moves of values as well, which compilers make inline or do not make. */
enum { LEAST_COPY = 512 };

static atomic_ullong allocations, copied, calls, moved;

void counter_numbers(uint64_t *numbers)
{
    numbers[0] = atomic_load(&allocations);
    numbers[1] = atomic_load(&copied);
    numbers[2] = atomic_load(&calls);
    numbers[3] = atomic_load(&moved);
}

/* ---- the system ------------------------------------------------------------------------------- */

/* The libc's function behind one of this name. */
#define BEHIND(name)                                                                               \
    static __typeof__(name) *real;                                                                 \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                          \
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed)
#define CALL(type, name, parameters, words)                                                        \
    type name parameters                                                                           \
    {                                                                                              \
        BEHIND(name);                                                                              \
        return real words;                                                                         \
    }
/* The same of what gives a number of bytes. */
#define MOVE(name, parameters, words)                                                              \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        BEHIND(name);                                                                              \
        ssize_t done = real words;                                                                 \
        if (done > 0) atomic_fetch_add(&moved, (unsigned long long)done);                          \
        return done;                                                                               \
    }

typedef const struct iovec *Pieces;
MOVE(read, (int fd, void *to, size_t n), (fd, to, n))
MOVE(pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
MOVE(pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
MOVE(readv, (int fd, Pieces to, int n), (fd, to, n))
MOVE(preadv, (int fd, Pieces to, int n, off_t at), (fd, to, n, at))
MOVE(preadv64, (int fd, Pieces to, int n, off64_t at), (fd, to, n, at))
MOVE(preadv2, (int fd, Pieces to, int n, off_t at, int flags), (fd, to, n, at, flags))
MOVE(preadv64v2, (int fd, Pieces to, int n, off64_t at, int flags), (fd, to, n, at, flags))
MOVE(write, (int fd, const void *from, size_t n), (fd, from, n))
MOVE(pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
MOVE(pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
MOVE(writev, (int fd, Pieces from, int n), (fd, from, n))
MOVE(pwritev, (int fd, Pieces from, int n, off_t at), (fd, from, n, at))
MOVE(pwritev64, (int fd, Pieces from, int n, off64_t at), (fd, from, n, at))
MOVE(pwritev2, (int fd, Pieces from, int n, off_t at, int flags), (fd, from, n, at, flags))
MOVE(pwritev64v2, (int fd, Pieces from, int n, off64_t at, int flags), (fd, from, n, at, flags))
MOVE(copy_file_range, (int from, off64_t *at, int to, off64_t *there, size_t n, unsigned flags), (from, at, to, there, n, flags))

CALL(int, close, (int fd), (fd))
CALL(off_t, lseek, (int fd, off_t at, int from), (fd, at, from))
CALL(off64_t, lseek64, (int fd, off64_t at, int from), (fd, at, from))
CALL(int, stat, (const char *path, struct stat *to), (path, to))
CALL(int, stat64, (const char *path, struct stat64 *to), (path, to))
CALL(int, lstat, (const char *path, struct stat *to), (path, to))
CALL(int, lstat64, (const char *path, struct stat64 *to), (path, to))
CALL(int, fstat, (int fd, struct stat *to), (fd, to))
CALL(int, fstat64, (int fd, struct stat64 *to), (fd, to))
CALL(int, fstatat, (int fd, const char *path, struct stat *to, int flags), (fd, path, to, flags))
CALL(int, fstatat64, (int fd, const char *path, struct stat64 *to, int flags), (fd, path, to, flags))
CALL(int, statx, (int fd, const char *path, int flags, unsigned what, struct statx *to), (fd, path, flags, what, to))
CALL(int, fstatvfs, (int fd, struct statvfs *to), (fd, to))
CALL(int, fstatvfs64, (int fd, struct statvfs64 *to), (fd, to))
CALL(int, ftruncate, (int fd, off_t n), (fd, n))
CALL(int, ftruncate64, (int fd, off64_t n), (fd, n))
CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
CALL(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
CALL(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n))
CALL(int, posix_fallocate64, (int fd, off64_t at, off64_t n), (fd, at, n))
CALL(int, posix_fadvise, (int fd, off_t at, off_t n, int advice), (fd, at, n, advice))
CALL(int, posix_fadvise64, (int fd, off64_t at, off64_t n, int advice), (fd, at, n, advice))
CALL(int, fsync, (int fd), (fd))
CALL(int, fdatasync, (int fd), (fd))
CALL(int, flock, (int fd, int what), (fd, what))
CALL(int, access, (const char *path, int mode), (path, mode))
CALL(int, unlink, (const char *path), (path))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, link, (const char *from, const char *to), (from, to))
CALL(ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n))
CALL(char *, realpath, (const char *path, char *to), (path, to))
CALL(char *, getcwd, (char *to, size_t n), (to, n))
CALL(FILE *, fopen, (const char *path, const char *mode), (path, mode))
CALL(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
CALL(int, getrlimit, (__rlimit_resource_t what, struct rlimit *to), (what, to))
CALL(int, getrlimit64, (__rlimit_resource_t what, struct rlimit64 *to), (what, to))
CALL(int, pthread_create, (pthread_t *thread, const pthread_attr_t *how, void *(*start)(void *), void *with), (thread, how, start, with))

/* Those of as many words as there are: the system takes no more than are meant. */
#define MORE(last, type)                                                                           \
    va_list list;                                                                                  \
    va_start(list, last);                                                                          \
    type more = va_arg(list, type);                                                                \
    va_end(list)
#define OPEN(name, parameters, words, before)                                                      \
    int name parameters                                                                            \
    {                                                                                              \
        MORE(before, int);                                                                         \
        BEHIND(name);                                                                              \
        return real words;                                                                         \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, more), flags)
OPEN(open64, (const char *path, int flags, ...), (path, flags, more), flags)
OPEN(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, more), flags)
OPEN(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, more), flags)

int fcntl(int fd, int what, ...)
{
    MORE(what, void *);
    BEHIND(fcntl);
    return real(fd, what, more);
}

int fcntl64(int fd, int what, ...)
{
    MORE(what, void *);
    BEHIND(fcntl64);
    return real(fd, what, more);
}

/* Whatever has no function of its own; locks and waits depend on other threads. */
long syscall(long number, ...)
{
    long words[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) words[i] = va_arg(list, long);
    va_end(list);
    BEHIND(syscall);
    if (number == SYS_futex) atomic_fetch_sub_explicit(&calls, 1, memory_order_relaxed);
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* glibc's own names, so that nothing has to be looked up, which asks for memory. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static void one_more(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void *malloc(size_t n)
{
    one_more();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    one_more();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    one_more();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    one_more();
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
    one_more();
    *p = __libc_memalign(alignment, n);
    return *p || n == 0 ? 0 : ENOMEM;
}

/* Byte by byte, and not made a call of itself by the compiler, nor is the call of one the other. */
__attribute__((noinline, optimize("no-tree-loop-distribute-patterns"))) static void *move_bytes(void *to, const void *from, size_t n)
{
    unsigned char *a = to;
    const unsigned char *b = from;
    if (n >= LEAST_COPY) atomic_fetch_add_explicit(&copied, n, memory_order_relaxed);
    if (a <= b || a >= b + n) for (size_t i = 0; i < n; i++) a[i] = b[i];
    else for (size_t i = n; i-- > 0;) a[i] = b[i];
    return to;
}

void *memmove(void *to, const void *from, size_t n) { return move_bytes(to, from, n); }
void *memcpy(void *restrict to, const void *restrict from, size_t n) { return move_bytes(to, from, n); }
