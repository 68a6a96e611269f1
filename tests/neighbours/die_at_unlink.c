/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded: the process ends where it would remove its journal, once there is one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_journal(const char *path)
{
    return strstr(path, ".zonda-journal") && access(path, F_OK) == 0;
}

int unlinkat(int folder, const char *path, int flags)
{
    if (is_journal(path))
        _exit(7);
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}
