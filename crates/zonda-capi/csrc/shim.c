/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The functions of the C ABI that stable Rust cannot define, because they take "...".
 * scripts/link.sh compiles this file and links it with the static library of the crate. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "netcdf.h"

void nclog(int tag, const char *fmt, ...);
int ncsetlogging(int on);

/* ncerr and ncopts are atomics on the Rust side, and other threads may be in netCDF-2 calls. */
#define LOAD(var) __atomic_load_n(&(var), __ATOMIC_RELAXED)
#define STORE(var, value) __atomic_store_n(&(var), (value), __ATOMIC_RELAXED)

void nc_advise(const char *routine, int err, const char *fmt, ...) {
    /* Both tests below must see one value, even if another thread changes ncopts meanwhile. */
    const int options = LOAD(ncopts);

    STORE(ncerr, NC_ISSYSERR(err) ? NC_SYSERR : err);
    if (options & NC_VERBOSE) {
        va_list args;
        flockfile(stderr); /* one message in one piece */
        fprintf(stderr, "%s: ", routine);
        va_start(args, fmt);
        vfprintf(stderr, fmt, args);
        va_end(args);
        if (err != NC_NOERR) fprintf(stderr, ": %s", nc_strerror(err));
        fputc('\n', stderr);
        fflush(stderr);
        funlockfile(stderr);
    }
    if ((options & NC_FATAL) && err != NC_NOERR) exit(options);
}

/* ---- Log of the classic tools: ncdump turns it on, ncgen writes to it ------------------------ */

enum { LOG_UNDECIDED = -1, LOG_OFF = 0, LOG_ON = 1 };
enum { TAG_ERROR = 2 };
static int logging = LOG_UNDECIDED;

/* The environment decides until somebody calls ncsetlogging(). */
static int log_state(void) {
    int state = LOAD(logging);
    if (state == LOG_UNDECIDED) {
        int from_environment = getenv("NCLOGGING") != NULL ? LOG_ON : LOG_OFF;
        if (__atomic_compare_exchange_n(&logging, &state, from_environment, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            state = from_environment;
    }
    return state;
}

int ncsetlogging(int on) {
    (void)log_state(); /* so that the former state is the one that was in effect */
    return __atomic_exchange_n(&logging, on, __ATOMIC_RELAXED);
}

void nclog(int tag, const char *fmt, ...) {
    static const char *const names[] = {"Note", "Warning", "Error", "Debug"};
    const int n_names = (int)(sizeof names / sizeof names[0]);
    va_list args;

    if (fmt == NULL) return;
    /* An error is always shown, and turns the log on for what follows. */
    if (tag == TAG_ERROR) ncsetlogging(LOG_ON);
    if (!log_state()) return;
    flockfile(stderr);
    fprintf(stderr, "%s:", tag >= 0 && tag < n_names ? names[tag] : "unknown");
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(stderr);
    funlockfile(stderr);
}
