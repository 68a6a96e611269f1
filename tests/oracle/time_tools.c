/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Times as the distribution's tools show and read them: ncdump -t, ncdump -i and the time literals
 * of ncgen, run on the library that this program runs on.
 *
 * Dates that are none are time.c's: ncdump prints what was on its stack then. */
#include "harness.h"

#include <math.h>

static const char *const CALENDARS[] = {
    NULL, "gregorian", "standard", "proleptic_gregorian", "noleap", "no_leap", "365_day", "allleap",
    "all_leap", "366_day", "360_day", "julian", "NoLeap", "martian", "",
};

static const char *const UNITS[] = {
    "seconds since 1970-01-01", "s since 2000-02-29 12:30:15.25", "sec since 1-1-1 0:0:0",
    "minutes since 1900-01-01 00:00:0.0", "mn since 2000-1-1T06:30", "hours since 1900-1-1",
    "hr since 1800-06-30 23:59:59.999", "hours since 1582-10-15 06:00:00 -6:00",
    "days since 1990-1-1", "days since 1582-10-04 18:00", "days since 1582-10-15",
    "days since 0001-01-01", "days since 0000-01-01", "days since -4713-01-01 12:00",
    "Days since 20000101", "dy since 1850-01-01T00:00:00Z", "weeks since 1999-12-31",
    "months since 1980-01-31 06:00", "months since 1582-10-15", "mo since 0-1-1",
    "seasons since 1999-12-01", "years since 1970-06-15", "yr since 1999-12-31T23:59:59",
    /* Not taken for times. */
    "hours", "fortnights since 1990-1-1", "days after 1990-1-1", "m", "h since 1990-1-1", "",
};

static const double VALUES[] = {
    0, 1, -1, 0.5, -0.5, 0.1, 1.0 / 3, -1.0 / 3, 1e-3, 1e-6, 1e-7, 1.9999999, 0.99999999999, 11.25,
    12, -13, 23.9999999999, 24, 30, 31, 59, 59.9999995, 60, 90, 100.2, 365, 366, 730.125, 1461, 3600,
    86399.9999999, 86400, 146097, -146097, 577737, 1e6, -1e6, 123456.789, 1900000, NAN, INFINITY,
    NC_FILL_DOUBLE,
};
#define N ((int)COUNT(VALUES))

/* Runs a command of the shell and shows what it prints; its messages are only counted. */
static int tool(const char *command) {
    char line[4096], whole[600];
    int n = 0;
    note("%s", command);
    snprintf(whole, sizeof whole, "%s 2>messages", command);
    FILE *output = popen(whole, "r");
    if (!output) return -1;
    while (fgets(line, sizeof line, output)) printf("   | %s", line);
    int status = pclose(output);
    FILE *messages = fopen("messages", "r");
    if (!messages) return -2;
    while (fgets(line, sizeof line, messages)) n += line[0] != '\n';
    fclose(messages);
    remove("messages");
    note("%d messages", n);
    return status;
}

static void put_text(int nc, int v, const char *name, const char *value) {
    R(nc_put_att_text(nc, v, name, strlen(value), value));
}

/* One variable of every unit, in one calendar. */
static void write_times(const char *path, int flags, const char *calendar) {
    static const nc_type types[] = {NC_DOUBLE, NC_FLOAT, NC_INT, NC_SHORT, NC_BYTE};
    int nc, dims[2], vars[COUNT(UNITS)];
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "n", COUNT(VALUES), &dims[0]));
    R(nc_def_dim(nc, "two", 2, &dims[1]));
    for (size_t u = 0; u < COUNT(UNITS); u++) {
        char name[20];
        double range[2] = {-7, 1000.5};
        snprintf(name, sizeof name, "t%zu", u);
        R(nc_def_var(nc, name, types[u % COUNT(types)], 1, dims, &vars[u]));
        put_text(nc, vars[u], "units", UNITS[u]);
        if (calendar) put_text(nc, vars[u], "calendar", calendar);
        R(nc_put_att_double(nc, vars[u], "actual_range", NC_DOUBLE, 2, range));
        R(nc_put_att_double(nc, vars[u], "many", NC_FLOAT, 9, VALUES));
    }
    int bounds;
    R(nc_def_var(nc, "bounds_of_8", NC_DOUBLE, 2, dims, &bounds));
    put_text(nc, vars[8], "bounds", "bounds_of_8");
    R(nc_enddef(nc));
    for (size_t u = 0; u < COUNT(UNITS); u++) {
        /* The last three are for floats: as integers they are days that no calendar reaches. */
        const size_t start = 0, n = u % COUNT(types) < 2 ? COUNT(VALUES) : COUNT(VALUES) - 3;
        R(nc_put_vara_double(nc, vars[u], &start, &n, VALUES));
    }
    double pairs[2 * N];
    for (int i = 0; i < 2 * N; i++) pairs[i] = i * 0.75 - 20;
    R(nc_put_var_double(nc, bounds, pairs));
    R(nc_close(nc));
}

static void show_times(void) {
    static const int flags[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
    for (size_t c = 0; c < COUNT(CALENDARS); c++) {
        char path[30], command[100];
        const char *calendar = CALENDARS[c];
        snprintf(path, sizeof path, "times%zu.nc", c);
        note("calendar %s", calendar ? calendar : "(not given)");
        write_times(path, flags[c % COUNT(flags)], calendar);
        snprintf(command, sizeof command, "ncdump -t %s", path);
        R(tool(command));
        snprintf(command, sizeof command, "ncdump -i -v t8,bounds_of_8,t5 %s", path);
        R(tool(command));
        snprintf(command, sizeof command, "ncdump -t -h %s", path);
        R(tool(command));
    }
}

/* A calendar without years: only units with a month and a day. */
static void show_climatology(void) {
    static const char *const units[] = {
        "days since 1-1", "hours since 3-15 06:00", "months since 6-15", "seasons since 12-1",
        "days since 2-28 12:00", "minutes since 12-31 23:59:30", "days",
    };
    int nc, dim, vars[COUNT(units)];
    R(nc_create("climatology.nc", 0, &nc));
    R(nc_def_dim(nc, "n", COUNT(VALUES), &dim));
    for (size_t u = 0; u < COUNT(units); u++) {
        char name[20];
        snprintf(name, sizeof name, "t%zu", u);
        R(nc_def_var(nc, name, NC_DOUBLE, 1, &dim, &vars[u]));
        put_text(nc, vars[u], "units", units[u]);
        put_text(nc, vars[u], "calendar", "none");
    }
    R(nc_enddef(nc));
    for (size_t u = 0; u < COUNT(units); u++) R(nc_put_var_double(nc, vars[u], VALUES));
    R(nc_close(nc));
    R(tool("ncdump -t climatology.nc"));
    R(tool("ncdump -i climatology.nc"));
}

static const char *const LITERALS[] = {
    "1970-01-01", "1990-02-03 04:05:06", "1990-02-03 04:05", "1990-02-03 04", "1990-02-03", "1990-02",
    "1990", "-44-3-15", "0-1-1", "9999-12-31 23:59:59.999", "1582-10-10", "2000-02-29 00:00:0.5",
    "2000-02-30", "1990-02-03T04:05:06", "20000101", "1990-13-01", "1990-01-32", "1990-01-01 25:00",
    "1990-01-01 12:61", "1990-01-01 12:30:61", "x", " 1990-1-1",
};

static void read_times(void) {
    static const char *const kinds[] = {"classic", "64-bit-offset", "64-bit-data"};
    FILE *cdl = fopen("literals.cdl", "w");
    if (!cdl) exit(3);
    fprintf(cdl, "netcdf literals {\ndimensions: n = UNLIMITED;\nvariables: double time(n);\n");
    fprintf(cdl, "int whole(n);\ntime:units = \"hours since 1970-1-1\";\n");
    fprintf(cdl, "time:range = time(\"1990-02-03\"), time(\"2000-02-03 6:30\");\ndata:\n");
    for (int v = 0; v < 2; v++) {
        fprintf(cdl, v ? "whole = " : "time = ");
        for (size_t i = 0; i < COUNT(LITERALS); i++)
            fprintf(cdl, "%stime(\"%s\")", i ? ", " : "", LITERALS[i]);
        fprintf(cdl, ";\n");
    }
    fprintf(cdl, "}\n");
    fclose(cdl);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        char command[200];
        snprintf(command, sizeof command, "ncgen -k %s -o literals%zu.nc literals.cdl", kinds[k], k);
        R(tool(command));
        snprintf(command, sizeof command, "ncdump -p 9,17 literals%zu.nc", k);
        R(tool(command));
        snprintf(command, sizeof command, "ncdump -t -v time literals%zu.nc", k);
        R(tool(command));
    }
    R(tool("ncgen -lc literals.cdl"));
}

int main(void) {
    show_times();
    show_climatology();
    read_times();
    return 0;
}
