/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The marks of a run that counts (tests/counts/run.py), and its own main loop:
 *
 *   PROGRAM ROW:CALLS:FILE ...
 *
 * does each row in a child of its own, once for what is done only once, and once between the marks. `strace` sees them as
 * writes to nowhere, callgrind counts from one to the other and leaves a dump that is named as the row; the preloaded
 * counter.c is asked for its numbers, which are printed.
 */
#ifndef COUNT_H
#define COUNT_H

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

enum { COUNTED = 2 };
static void (*counter)(uint64_t *numbers);
static uint64_t numbers_before[COUNTED];

static inline void mark(const char *kind, const char *row)
{
    char text[80];
    int n = snprintf(text, sizeof text, "%s %s", kind, row);
    if (write(-1, text, (size_t)n) >= 0) abort();
}

static inline void count_begin(const char *row)
{
    /* ISO C has no conversion of what dlsym gives. */
    *(void **)&counter = dlsym(RTLD_DEFAULT, "counter_numbers");
    mark("begin", row);
    if (counter) counter(numbers_before);
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

static inline void count_end(const char *row, size_t calls)
{
    CALLGRIND_DUMP_STATS_AT(row);
    CALLGRIND_STOP_INSTRUMENTATION;
    uint64_t numbers[COUNTED] = {0};
    if (counter) counter(numbers);
    mark("end", row);
    if (!counter) return;
    printf("%s %zu %llu %llu\n", row, calls, (unsigned long long)(numbers[0] - numbers_before[0]),
           (unsigned long long)(numbers[1] - numbers_before[1]));
    fflush(stdout);
}

#endif
