/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A file system without locks, for who loads this before the C library: NO_LOCKS is the errno. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

static int refuse(void) {
    errno = atoi(getenv("NO_LOCKS"));
    return -1;
}

int flock(int fd, int what) {
    (void)fd, (void)what;
    return refuse();
}

static int passed(const char *name, int fd, int command, void *argument) {
    if (command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_SETLK) return refuse();
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
    return real(fd, command, argument);
}

int fcntl(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return passed("fcntl", fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return passed("fcntl64", fd, command, argument);
}
