/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The log shim's inside: which files are ours, what goes into the log, which call is to fail. */
#ifndef CRASH_LOG_CORE_H
#define CRASH_LOG_CORE_H

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>

enum event_kind {
    EV_MARK = 1,
    EV_CREATE,
    EV_WRITE,
    EV_LENGTH,
    EV_ALLOCATE,
    EV_RENAME,
    EV_UNLINK,
    EV_LINK,
    EV_SYMLINK,
    EV_MKDIR,
    EV_FSYNC,
    EV_FDATASYNC,
    EV_FSYNC_FOLDER,
    EV_CLOSE,
    EV_EXCHANGE,
};

/* Nothing of this is for the program. */
#pragma GCC visibility push(hidden)

extern pthread_mutex_t lock;
extern char folder[]; /* CRASH_FOLDER; empty: nothing is logged */
extern size_t folder_len;
extern int log_fd, fail_full;
extern long fail_errno;

/* The real syscall(): ours is a door like the others. */
long (*sys_door(void))(long, ...);
#define sys (sys_door())

/* Ends the process: the log would have a hole. */
void die(const char *why) __attribute__((noreturn));
/* `path` below the folder, as a name relative to it; NULL if it is elsewhere. The last part is not
 * followed if it is a symbolic link, unless `follow`. */
char *ours(int dirfd, const char *path, int follow, char *out);
/* The number of a file, 0 if it has none; gives one to a new file; of the file behind fd. */
uint64_t lookup(const struct stat *st);
uint64_t enter(const struct stat *st);
uint64_t file_of(int fd);
void event(enum event_kind kind, uint64_t file, uint64_t at, const char *path, const char *path2,
           const void *data, size_t n);
/* With `lost`: what a change of `n` bytes at `at` is about to take away, the length included; forgets
 * that after a good sync; puts it back. */
void remember(int fd, uint64_t id, off_t at, size_t n);
void keep(uint64_t id);
void lose(int fd, uint64_t id);
/* Whether this changing call is to fail: 0 no, 1 with errno set, 2 (writes only) be short. */
int fails(const char *call, int is_write);

#pragma GCC visibility pop

#define BEGIN pthread_mutex_lock(&lock)
#define END(result)                  \
    do {                             \
        int end_errno = errno;       \
        pthread_mutex_unlock(&lock); \
        errno = end_errno;           \
        return result;               \
    } while (0)

#endif
