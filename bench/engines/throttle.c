/* throttle: a slower device for any program, put in front of libc by LD_PRELOAD.
 *
 *   THROTTLE=500e6:100e-6        bytes per second, seconds of latency of each call
 *   THROTTLE_FOLDER=/some/where  only files under it
 *
 * A read or write is done as ever and then takes as long as on a device that moves one thing after
 * the other and answers each call after the latency. Calls of several threads queue for the
 * bandwidth; their latencies overlap. bench/run.py puts it in front of each library and of the
 * limit, so all of them see the same storage; what bypasses these functions is not slowed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 4096 };
static atomic_bool slow[MOST_FILES]; /* by file descriptor */
static double per_byte, latency;     /* nanoseconds */
static _Atomic int64_t free_at;      /* when the device has moved what it was given */
static const char *folder;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

__attribute__((constructor)) static void start(void)
{
    const char *spec = getenv("THROTTLE");
    double bandwidth = 0, seconds = 0;
    folder = getenv("THROTTLE_FOLDER");
    int got = spec ? sscanf(spec, "%lf:%lf", &bandwidth, &seconds) : 0;
    if (!folder || got != 2 || !(bandwidth > 0)) {
        fprintf(stderr, "throttle: THROTTLE is bytes per second:seconds, with THROTTLE_FOLDER\n");
        _exit(2);
    }
    per_byte = 1e9 / bandwidth, latency = 1e9 * seconds;
    prctl(PR_SET_TIMERSLACK, 1000); /* sleeps that end within a microsecond, not fifty */
}

/* Waits as long as `n` bytes take. */
static ssize_t taken(int fd, ssize_t n)
{
    if (n < 0 || fd < 0 || fd >= MOST_FILES || !slow[fd]) return n;
    int saved = errno;
    int64_t was = free_at, begin, end;
    do {
        begin = now();
        if (was > begin) begin = was;
        end = begin + (int64_t)(per_byte * (double)n);
    } while (!atomic_compare_exchange_weak(&free_at, &was, end));
    end += (int64_t)latency;
    /* Sleeping wakes late; the last of it is waited awake. */
    for (int64_t left; (left = end - now()) > 0;) {
        if (left < 80000) continue;
        struct timespec t = {(left - 60000) / 1000000000, (left - 60000) % 1000000000};
        nanosleep(&t, NULL);
    }
    errno = saved;
    return n;
}

static int opened(int fd)
{
    if (fd < 0 || fd >= MOST_FILES) return fd;
    char link[40], path[4096];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    slow[fd] = n > 0 && strncmp(path, folder, strlen(folder)) == 0;
    errno = saved;
    return fd;
}

/* The function of this name behind ours. */
#define BEHIND(type, name)                                                                         \
    static __typeof__(type) behind;                                                                \
    if (!behind) *(void **)&behind = dlsym(RTLD_NEXT, name)

#define TRANSFER(name, type, ...) TRANSFER_(name, type, __VA_ARGS__)
#define TRANSFER_(name, type, parameters, values)                                                  \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        BEHIND(type, #name);                                                                       \
        return taken(fd, behind values);                                                           \
    }

typedef ssize_t (*Read)(int, void *, size_t);
typedef ssize_t (*Write)(int, const void *, size_t);
typedef ssize_t (*Pread)(int, void *, size_t, off_t);
typedef ssize_t (*Pwrite)(int, const void *, size_t, off_t);
typedef ssize_t (*Vector)(int, const struct iovec *, int);
typedef ssize_t (*Pvector)(int, const struct iovec *, int, off_t);
typedef ssize_t (*Pvector2)(int, const struct iovec *, int, off_t, int);
TRANSFER(read, Read, (int fd, void *to, size_t n), (fd, to, n))
TRANSFER(write, Write, (int fd, const void *from, size_t n), (fd, from, n))
TRANSFER(pread, Pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
TRANSFER(pwrite, Pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
TRANSFER(pread64, Pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
TRANSFER(pwrite64, Pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
TRANSFER(readv, Vector, (int fd, const struct iovec *v, int n), (fd, v, n))
TRANSFER(writev, Vector, (int fd, const struct iovec *v, int n), (fd, v, n))
TRANSFER(preadv, Pvector, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
TRANSFER(pwritev, Pvector, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
TRANSFER(preadv64, Pvector, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
TRANSFER(pwritev64, Pvector, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
TRANSFER(preadv2, Pvector2, (int fd, const struct iovec *v, int n, off_t at, int flags),
         (fd, v, n, at, flags))
TRANSFER(pwritev2, Pvector2, (int fd, const struct iovec *v, int n, off_t at, int flags),
         (fd, v, n, at, flags))
TRANSFER(preadv64v2, Pvector2, (int fd, const struct iovec *v, int n, off_t at, int flags),
         (fd, v, n, at, flags))
TRANSFER(pwritev64v2, Pvector2, (int fd, const struct iovec *v, int n, off_t at, int flags),
         (fd, v, n, at, flags))

/* The mode, where the flags say that there is one. */
#define MODE(after)                                                                                \
    mode_t mode = 0;                                                                               \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                                     \
        va_list more;                                                                              \
        va_start(more, after);                                                                     \
        mode = va_arg(more, mode_t);                                                               \
        va_end(more);                                                                              \
    }
#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        BEHIND(int (*)(const char *, int, ...), #name);                                            \
        MODE(flags)                                                                                \
        return opened(behind(path, flags, mode));                                                  \
    }
#define OPENAT(name)                                                                               \
    int name(int from, const char *path, int flags, ...)                                           \
    {                                                                                              \
        BEHIND(int (*)(int, const char *, int, ...), #name);                                       \
        MODE(flags)                                                                                \
        return opened(behind(from, path, flags, mode));                                            \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd)
{
    BEHIND(int (*)(int), "close");
    if (fd >= 0 && fd < MOST_FILES) slow[fd] = 0;
    return behind(fd);
}
