/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What bm_file of netCDF-C takes from inside that library: a difference of times. Nothing in here is under test. */
#include <sys/time.h>

int nc4_timeval_subtract(struct timeval *difference, struct timeval *end, struct timeval *start) {
    timersub(end, start, difference);
    return difference->tv_sec < 0;
}
