/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The marks of a run that counts (tests/counts/run.py), and its own main loop:
 *
 *   PROGRAM ROW:CALLS:FILE[:LIKE] ...
 *
 * does each row in a child of its own, once for what is done only once, and once between the marks. Callgrind counts from one
 * to the other and leaves a dump that is named as the row; the preloaded counter.c is asked for its numbers, which are
 * printed.
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

enum { COUNTED = 4 };
static void (*counter)(uint64_t *numbers);
static uint64_t numbers_before[COUNTED];

static inline void count_begin(void)
{
    /* ISO C has no conversion of what dlsym gives. */
    *(void **)&counter = dlsym(RTLD_DEFAULT, "counter_numbers");
    if (counter) counter(numbers_before);
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

static inline void count_end(const char *row)
{
    CALLGRIND_DUMP_STATS_AT(row);
    CALLGRIND_STOP_INSTRUMENTATION;
    uint64_t numbers[COUNTED] = {0};
    if (counter) counter(numbers);
    if (!counter) return;
    printf("%s", row);
    for (int i = 0; i < COUNTED; i++) printf(" %llu", (unsigned long long)(numbers[i] - numbers_before[i]));
    printf("\n");
    fflush(stdout);
}

#endif
