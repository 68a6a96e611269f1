/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Times and strlcat, which no public header declares: the distribution's tools import them.
 *
 * What is reported on standard error is counted, not compared. Left out is what the reference has
 * no answer for: words that overflow its arrays, years so far that its loops do not end, and text
 * of times whose units are wrong, which it makes of uninitialised memory. */
#include "harness.h"

#include <math.h>

typedef struct {
    long year;
    short month, day;
    double hour;
} comp_time;

typedef struct {
    long year;
    short month, day;
    double hour;
    long base_year;
    int type;
} human_time;

int cdSetErrOpts(int opts);
int cdParseRelunits(int calendar, char *units, int *unit, comp_time *base);
void cdRel2Iso(int calendar, char *units, int separator, double value, char *text);
void cdChar2Comp(int calendar, char *text, comp_time *time);
void Cdh2e(human_time *time, double *hours);
size_t strlcat(char *dst, const char *src, size_t size);

/* The last two are no calendars: only functions that do not look it up get them. */
static const struct {
    const char *name;
    int type;
} CALENDARS[] = {
    {"proleptic_gregorian", 0x1111}, {"julian", 0x11111}, {"noleap", 0x1011}, {"360_day", 0x11},
    {"366_day", 0x2011}, {"none", 0x1000}, {"none with leap years", 0x1100}, {"none of 360", 0},
    {"standard", 0x21111}, {"relative", 0x1101}, {"unknown", 0x7300},
};
#define N_NAMED 9

static FILE *reported;
static int terminal;

/* Lines on standard error since the last call. */
static int reports(void) {
    char line[500];
    int n = 0;
    fflush(stderr);
    rewind(reported);
    while (fgets(line, sizeof line, reported)) n += line[0] != '\n';
    if (ftruncate(fileno(reported), 0)) exit(3);
    lseek(STDERR_FILENO, 0, SEEK_SET);
    return n;
}

static void show(const comp_time *t) {
    printf("   %ld-%hd-%hd %.17g, %d reports\n", t->year, t->month, t->day, t->hour, reports());
}

static void iso(int calendar, const char *units, int separator, double value) {
    char out[200];
    memset(out, 0, sizeof out);
    cdRel2Iso(calendar, (char *)units, separator, value, out);
    printf("   %#x \"%s\" %.17g:", calendar, units, value);
    text("", out, sizeof out);
    int n = reports();
    if (n) printf("   %d reports\n", n);
}

static const char *const DATES[] = {
    "", " ", "1990", "1990-", "1990-2", "1990-2-", "1990-02-03", "1990-02-03 ", "1990-02-03 4",
    "1990-02-03 4:5", "1990-02-03 4:5:6", "1990-02-03 04:05:06.789", "1990-02-03 23:59:59.9999999",
    "1990-02-03 23:59:60", "1990-02-03 23:59:60.5", "1990-02-03 24:00", "1990-02-03 -1",
    "1990-02-03 12:60", "1990-02-03 12:-1", "1990-02-03 12:30:-1", "1990-02-03 12:30:nan",
    "1990-02-03 12:30:inf", "1990-02-03 12:30:0x1p4", "1990-02-03 12:30:1e1", "1990-02-03 12:30:1e",
    "1990-02-03 12:30:.5", "1990-02-03 12:30:.", "1990-02-03 12:30:5.5.5", "1990-02-03 12:30:7Z",
    "1990-02-03T12:30", "1990-02-03  12 :30", "1990-02-03 12: 30: 15", "1990- 2- 3", "1990 -2-3",
    "1990-+2-+3", "+1990-2-3", "1990-2--3", "-1990-2-3", "--1990-2-3", "0-0-0", "0-1-1", "1-1-0",
    "1990-13-1", "1990-1-32", "1990-2-31", "1990-65537-1", "1990-32769-1", "1990-1-65540",
    "99999999999999999999-1-1", "-99999999999999999999-1-1", "1990-99999999999999999999-1",
    "1990-1-1 4294967301:0:0", "1990-1-1 99999999999999999999:0:0", "19900203", "19900203T1200",
    "1990/02/03", "noon", "\t1990-2-3\v4:5", "\n1990-2-3", "3-15", "3-15 6", "3-15 6:30:36",
    "12-31 23:59:59.5", "13-1", "0-5", "00-01-01 00:00:00", "1e3-1-1", "0x10-1-1", "1990-2-3 4:5:6:7",
};

static const char *const UNITS[] = {
    "s", "sec", "SECONDS", "second", "mn", "min", "minutes", "m", "h", "hr", "hrs", "hour", "Hours",
    "hou", "d", "dy", "day", "Days", "da", "wk", "week", "weeks", "mo", "mon", "month", "MONTHS",
    "season", "seasons", "sea", "yr", "yrs", "year", "years", "common_year", "ms", "msec", "decade",
    "\xc3\xa9", "-",
};

static const char *const BASES[] = {
    "", " ", " since", " since ", " SINCE 1990-2-3", " since1990-2-3", " since  1990-2-3\t4:30",
    " since 1990-2-3 4:30:15.5 6:00", " since 1990-2-3T4:30", " since 1990-2-3T4:30:15Z",
    " since 1990-2-3T 4:30", " since 1990-2-3T", " since T4:30", " since 1990-2-3 T4:30",
    " since 1990-2-3TT4", " after 1990-2-3", "  since -4713-1-1 12:00", " since 0000-00-00",
    " since 1-1-1 00:00:0.0", " since 3-15 6:00", " since Tuesday", " since 1990-2-3UTC",
    " @ 1990", " since 2000-01-01 00:00:00 UTC", " since 1990-13-45", " since 1990-2-3t4:30",
};

static void reading(void) {
    for (size_t c = 0; c < COUNT(CALENDARS); c++) {
        int calendar = CALENDARS[c].type;
        note("calendar %s", CALENDARS[c].name);
        for (size_t i = 0; i < COUNT(DATES); i++) {
            comp_time t;
            poison(t);
            cdChar2Comp(calendar, (char *)DATES[i], &t);
            text("date", DATES[i], 99);
            show(&t);
        }
        for (size_t u = 0; u < COUNT(UNITS); u++) {
            for (size_t b = 0; b < COUNT(BASES); b++) {
                char relative[200];
                int unit = -77;
                comp_time t;
                poison(t);
                snprintf(relative, sizeof relative, "%s%s", UNITS[u], BASES[b]);
                text("units", relative, 99);
                R(cdParseRelunits(calendar, relative, &unit, &t));
                ints("unit", &unit, 1);
                show(&t);
            }
        }
    }
    comp_time t;
    int unit = -77;
    R(cdParseRelunits(0x1111, "", &unit, &t));
    R(cdParseRelunits(0x1111, " \n", &unit, &t));
    note("%d reports", reports());
}

static const double VALUES[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 0.1, 1.0 / 3, -1.0 / 3, 1e-3, 1e-5, 1e-6, 1e-7, 1e-9, -1e-9, 1.9999999,
    0.99999999999, 11.9999999999, 12, 13.5, -13, 23.9999999999, 24, 30, 31, 59, 59.9999995, 59.9999994,
    60, 90, 100.25, 365, 366, 730.125, 1461, 3599.9999, 3600, 86399.9999999, 86400, 86400.0078125,
    146097, -146097, 577737, 577747, 1e6, -1e6, 123456.789, 1e7 / 3, 1e9, -1e9, 1.5e9, 2.1e9,
};

static const char *const RELATIVE[] = {
    "seconds since 1970-01-01", "seconds since 2000-02-29 12:30:15.25", "minutes since 1900-1-1",
    "hours since 1900-01-01 00:00:0.0", "hours since 1-1-1 00:00:0.0", "hours", "days",
    "days since 1990-1-1", "days since 1582-10-04", "days since 1582-10-15", "days since 1582-10-10",
    "days since 0000-01-01", "days since -4713-01-01 12:00", "days since 1850-01-01T06:00",
    "days since 0-0-0", "days since 2001-02-31", "weeks since 1999-12-31 23:59:59.9999999",
    "days since 20000101", "months since 1980-01-31 06:00", "months since 1582-10-15",
    "months since 3-15", "seasons since 1999-12-01", "seasons", "years since 1970-06-15",
    "years since 0-1-1", "years since 1990-13-45", "days since 6-30 12:00", "days since 9999-12-31",
    "months since 1990-13-01",
};

static int is_years(const char *units) { return strncmp(units, "years", 5) == 0; }

static void writing(void) {
    for (size_t c = 0; c < N_NAMED; c++) {
        int calendar = CALENDARS[c].type;
        note("calendar %s", CALENDARS[c].name);
        for (size_t u = 0; u < COUNT(RELATIVE); u++) {
            if (is_years(RELATIVE[u]) && !(calendar & 0x11)) continue;
            for (size_t v = 0; v < COUNT(VALUES); v++) {
                /* Years count in the reference, and months of far years overflow it. */
                int far = fabs(VALUES[v]) > 1e5 && !strstr(RELATIVE[u], "s since");
                int months = strstr(RELATIVE[u], "month") || strstr(RELATIVE[u], "seas") ||
                             is_years(RELATIVE[u]);
                if ((far || months) && fabs(VALUES[v]) > 2e6) continue;
                iso(calendar, RELATIVE[u], (v & 1) ? 'T' : ' ', VALUES[v]);
            }
        }
        iso(calendar, "days since 1990-1-1", 'T', 1e20);
        iso(calendar, "days since 1990-1-1", 'T', -1e20);
        iso(calendar, "days since 1990-1-1", 'T', NAN);
        iso(calendar, "days since 1990-1-1", 'T', INFINITY);
        iso(calendar, "seconds since 1990-1-1", 0x154, 3600);
        iso(calendar, "seconds since 1990-1-1", 0, 3600);
    }
}

/* Values without a system, the same on every run. */
static double random_value(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void at_random(void) {
    static const char *const units[] = {"seconds", "minutes", "hours", "days", "weeks", "months"};
    static const double scales[] = {1e10, 1e8, 5e6, 1e6, 1e5, 2e4};
    for (int i = 0; i < 20000; i++) {
        char relative[100];
        size_t u = (size_t)(random_value() * COUNT(units));
        size_t c = (size_t)(random_value() * N_NAMED);
        int climatological = !(CALENDARS[c].type & 0x11);
        int n = snprintf(relative, sizeof relative, "%s since ", units[u]);
        if (!climatological)
            n += snprintf(relative + n, 20, "%d-", (int)(random_value() * 4000) - 500);
        snprintf(relative + n, sizeof relative - (size_t)n, "%d-%d %d:%d:%.3f",
                 1 + (int)(random_value() * 12), 1 + (int)(random_value() * 28),
                 (int)(random_value() * 24), (int)(random_value() * 60), random_value() * 60);
        double value = (random_value() * 2 - 1) * scales[u];
        if (i & 1) value = rint(value * 8) / 8;
        iso(CALENDARS[c].type, relative, 'T', value);
    }
}

static void hours(void) {
    static const long years[] = {-5000, -401, -400, -4, -1, 0, 1, 3, 4, 99, 100, 400, 1582, 1899,
                                 1900, 1969, 1970, 1971, 1972, 2000, 2001, 2100, 9999, 100000,
                                 -100000, 1000000};
    for (size_t c = 0; c < COUNT(CALENDARS); c++) {
        note("calendar %s", CALENDARS[c].name);
        for (size_t y = 0; y < COUNT(years); y++) {
            for (short month = 0; month <= 13; month++) {
                human_time t = {years[y], month, (short)(month * 3 - 4), month * 1.7 - 2,
                                y % 3 ? 1970 : 1234, CALENDARS[c].type};
                double result = -77;
                Cdh2e(&t, &result);
                printf("   %ld %d: %.17g, %d reports\n", t.year, month, result, reports());
            }
        }
    }
}

static void options(void) {
    comp_time t;
    for (int opts = 3; opts >= -2; opts--) R(cdSetErrOpts(opts));
    R(cdSetErrOpts(0));
    cdChar2Comp(0x1111, "noon", &t);
    note("silent: %d reports", reports());
    cdSetErrOpts(2);
    cdChar2Comp(0x1111, "noon", &t);
    note("verbose: %d reports", reports());
}

static void appending(void) {
    static const char *const texts[] = {"", "x", "xyz", "a longer text than that"};
    for (size_t before = 0; before < COUNT(texts); before++) {
        for (size_t after = 0; after < COUNT(texts); after++) {
            for (size_t size = 0; size <= 40; size++) {
                char array[64];
                poison(array);
                strcpy(array, texts[before]);
                printf("   strlcat %zu %zu %zu: %zu\n", before, after, size,
                       strlcat(array, texts[after], size));
                bytes("array", array, sizeof array);
            }
        }
    }
}

int main(void) {
    reported = tmpfile();
    terminal = dup(STDERR_FILENO);
    if (!reported || dup2(fileno(reported), STDERR_FILENO) < 0) return 3;
    options();
    reading();
    writing();
    at_random();
    hours();
    appending();
    fflush(stdout);
    /* The last call: an error that ends the program. */
    dup2(terminal, STDERR_FILENO);
    cdSetErrOpts(1);
    comp_time t;
    cdChar2Comp(0x1111, "1990-13-1", &t);
    printf("   not reached\n");
    return 0;
}
