/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded: the first close of a file in the folder CLOSE_FAILS that is open for writing and has bytes does what it
 * is to do, and then says that it failed with CLOSE_ERRNO, as NFS and quotas do. With CLOSE_SUFFIX only files count whose
 * names end so; with CLOSE_AFTER so many closes of those are fine first, and with CLOSE_ALWAYS all that follow fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_ours(int fd)
{
    const char *folder = getenv("CLOSE_FAILS");
    char name[64], path[4096];
    struct stat stat;
    int flags = fcntl(fd, F_GETFL);
    if (!folder || flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(name, path, sizeof path - 1);
    if (len < 0 || strncmp(path, folder, strlen(folder)) != 0)
        return 0;
    path[len] = 0;
    const char *suffix = getenv("CLOSE_SUFFIX");
    if (suffix && ((size_t)len < strlen(suffix) || strcmp(path + len - strlen(suffix), suffix) != 0))
        return 0;
    return fstat(fd, &stat) == 0 && stat.st_size > 0;
}

int close(int fd)
{
    static int n;
    const char *after = getenv("CLOSE_AFTER");
    int fails = is_ours(fd);
    if (fails) {
        int nth = __sync_fetch_and_add(&n, 1) - (after ? atoi(after) : 0);
        fails = getenv("CLOSE_ALWAYS") ? nth >= 0 : nth == 0;
    }
    int done = (int)syscall(SYS_close, fd);
    if (!fails)
        return done;
    errno = atoi(getenv("CLOSE_ERRNO"));
    return -1;
}
