/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Preloaded: writes the processor time of the first thread, in seconds, to the file that THREAD_TIME names when the program ends. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((destructor)) static void write_time(void) {
    struct timespec time;
    const char *path = getenv("THREAD_TIME");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    fprintf(file, "%.6f\n", (double)time.tv_sec + 1e-9 * (double)time.tv_nsec);
    fclose(file);
}
