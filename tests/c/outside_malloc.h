/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Whether this thread is in the middle of an allocation. glibc's own fork takes the locks of malloc, so a
 * fork in a signal handler that came into malloc waits for ever, in any program: tests of forks in handlers
 * look here, and come back a little later. To be included once in a program. */
#ifndef OUTSIDE_MALLOC_H
#define OUTSIDE_MALLOC_H
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Thread_local volatile int allocations __attribute__((tls_model("initial-exec")));

#define WITHIN(type, call) \
    allocations++; \
    type made = call; \
    allocations--; \
    return made

void *malloc(size_t n) { WITHIN(void *, __libc_malloc(n)); }
void *calloc(size_t n, size_t each) { WITHIN(void *, __libc_calloc(n, each)); }
void *realloc(void *old, size_t n) { WITHIN(void *, __libc_realloc(old, n)); }
void *memalign(size_t align, size_t n) { WITHIN(void *, __libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { WITHIN(void *, __libc_memalign(align, n)); }
int posix_memalign(void **to, size_t align, size_t n) {
    allocations++;
    void *made = __libc_memalign(align, n);
    allocations--;
    if (made) *to = made;
    return made ? 0 : ENOMEM;
}
void free(void *old) {
    int saved = errno;
    allocations++;
    __libc_free(old);
    allocations--;
    errno = saved;
}

/* In a handler of SIGALRM: 1 where it came into an allocation, and then it is called again soon. */
static int come_back_later(void) {
    if (!allocations) return 0;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 500}}, NULL);
    return 1;
}
#endif
