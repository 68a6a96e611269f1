/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded: how often memory was asked for, and how many bytes memcpy and memmove moved, in all threads. Copies that the
 * compiler makes inline are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static atomic_ullong allocations, copied;

void counter_numbers(uint64_t *numbers)
{
    numbers[0] = atomic_load(&allocations);
    numbers[1] = atomic_load(&copied);
}

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
__attribute__((noinline, optimize("no-tree-loop-distribute-patterns"))) static void *moved(void *to, const void *from, size_t n)
{
    unsigned char *a = to;
    const unsigned char *b = from;
    atomic_fetch_add_explicit(&copied, n, memory_order_relaxed);
    if (a <= b || a >= b + n) for (size_t i = 0; i < n; i++) a[i] = b[i];
    else for (size_t i = n; i-- > 0;) a[i] = b[i];
    return to;
}

void *memmove(void *to, const void *from, size_t n) { return moved(to, from, n); }
void *memcpy(void *restrict to, const void *restrict from, size_t n) { return moved(to, from, n); }
