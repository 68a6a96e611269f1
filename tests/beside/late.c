/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A writer of definitions that say what they are, and a reader that looks them up late: for late.py.
 * Commands line by line, each answered by one line.
 *
 *   make N PATH         a file of N variables, and stays open as the writer
 *   open r|w PATH
 *   change TIMES SEED   define mode, random definitions, nc_enddef; so many times
 *   look FROM TO        variables of these numbers, by name and by number, with all their attributes
 *   close
 *   quit
 *
 * Variable i is called v<i> or w<i>. It holds i, as does its attribute "me"; "a<k>" is 100 i + k; the text
 * "gen" begins with the number, and the rest of it is one letter. Groups and the file likewise. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTS = 11, ROOT = 99999, LONGEST = 900 };
static int nc = -1, n_vars, n_groups, errors, good;
static char wrong[400];
static unsigned seed;
static unsigned next(unsigned n) {
    seed = seed * 1103515245 + 12345;
    return (seed >> 12) % n;
}

/* Of the writer: all must work. */
static void ok(int status, int line) {
    if (status) {
        printf("FAILED line %d: %s\n", line, nc_strerror(status));
        exit(1);
    }
}
#define OK(call) ok((call), __LINE__)

static void gen(int grp, int var, int me) {
    char text[LONGEST + 32];
    int n = sprintf(text, "%d:", me), len = n + (int)next(LONGEST);
    memset(text + n, 'a' + (int)next(26), (size_t)(len - n));
    OK(nc_put_att_text(grp, var, "gen", (size_t)len, text));
}

static void atts(int grp, int var, int me) {
    OK(nc_put_att_int(grp, var, "me", NC_INT, 1, &me));
    for (int k = 0; k < ATTS; k++) {
        char name[8];
        int value = 100 * me + k;
        sprintf(name, "a%d", k);
        OK(nc_put_att_int(grp, var, name, NC_INT, 1, &value));
    }
    gen(grp, var, me);
}

static void add_var(void) {
    char name[16];
    int id;
    sprintf(name, "v%d", n_vars);
    OK(nc_def_var(nc, name, NC_INT, 0, NULL, &id));
    atts(nc, id, n_vars++);
}

static void change(void) {
    char name[16], other[16];
    int id, before = n_vars;
    OK(nc_redef(nc));
    for (unsigned steps = 1 + next(4); steps > 0; steps--) {
        int i = (int)next((unsigned)before), is_v = 1;
        sprintf(name, "v%d", i);
        if (nc_inq_varid(nc, name, &id)) {
            is_v = 0;
            name[0] = 'w';
            OK(nc_inq_varid(nc, name, &id));
        }
        switch (next(6)) {
        case 0:
            strcpy(other, name);
            other[0] = is_v ? 'w' : 'v';
            OK(nc_rename_var(nc, id, other));
            break;
        case 1: add_var(); break;
        case 2: gen(nc, id, i); break;
        case 3: gen(nc, NC_GLOBAL, ROOT); break;
        case 4: {
            int value = 100 * i + 3;
            OK(nc_del_att(nc, id, "a3"));
            OK(nc_put_att_int(nc, id, "a3", NC_INT, 1, &value));
            break;
        }
        default: {
            int grp;
            sprintf(name, "g%d", n_groups);
            OK(nc_def_grp(nc, name, &grp));
            atts(grp, NC_GLOBAL, 5000 + n_groups++);
        }
        }
    }
    OK(nc_enddef(nc));
    for (int i = before; i < n_vars; i++) {
        sprintf(name, "v%d", i);
        OK(nc_inq_varid(nc, name, &id));
        OK(nc_put_var_int(nc, id, &i));
    }
    OK(nc_sync(nc));
}

/* Of the reader: an error is one more, a value must be right. */
static int read_ok(int status) {
    if (status) errors++; else good++;
    return status == NC_NOERR;
}

#define WRONG(...) do { if (!wrong[0]) snprintf(wrong, sizeof wrong, __VA_ARGS__); } while (0)

static void check_att(int grp, int var, int me, const char *name) {
    char text[LONGEST + 64] = "";
    size_t len;
    nc_type type;
    if (!read_ok(nc_inq_att(grp, var, name, &type, &len))) return;
    if (strcmp(name, "gen") == 0) {
        if (type != NC_CHAR || len > LONGEST + 32) WRONG("%d gen has type %d, length %zu", me, type, len);
        else if (read_ok(nc_get_att_text(grp, var, name, text))) {
            char begins[16];
            size_t n = (size_t)sprintf(begins, "%d:", me);
            int is_good = len >= n && memcmp(text, begins, n) == 0;
            for (size_t k = n; is_good && k < len; k++) is_good = text[k] == text[n] && text[k] >= 'a' && text[k] <= 'z';
            if (!is_good) WRONG("%d gen is %.40s", me, text);
        }
        return;
    }
    int value[4] = {0}, want = strcmp(name, "me") == 0 ? me : 100 * me + atoi(name + 1);
    if (strcmp(name, "me") != 0 && name[0] != 'a') WRONG("%d has an attribute %s", me, name);
    else if (type != NC_INT || len != 1) WRONG("%d %s has type %d, length %zu", me, name, type, len);
    else if (read_ok(nc_get_att_int(grp, var, name, value)) && value[0] != want) WRONG("%d %s is %d", me, name, value[0]);
}

static void check_atts(int grp, int var, int me) {
    char name[NC_MAX_NAME + 1];
    int n;
    check_att(grp, var, me, "me");
    check_att(grp, var, me, "gen");
    check_att(grp, var, me, "a10");
    if (!read_ok(nc_inq_varnatts(grp, var, &n))) return;
    for (int k = 0; k < n; k++)
        if (read_ok(nc_inq_attname(grp, var, k, name))) check_att(grp, var, me, name);
}

static void check_var(int id, int me) {
    int value = me;
    check_atts(nc, id, me);
    if (read_ok(nc_get_var_int(nc, id, &value)) && value != me && value != NC_FILL_INT) WRONG("%d holds %d", me, value);
}

static void look(int from, int to) {
    char name[NC_MAX_NAME + 1];
    int id, n, groups[4096];
    for (int i = from; i < to; i++) {
        sprintf(name, "v%d", i);
        int status = nc_inq_varid(nc, name, &id);
        name[0] = 'w';
        if (status) status = nc_inq_varid(nc, name, &id);
        if (read_ok(status)) check_var(id, i);
        if (read_ok(nc_inq_varname(nc, i, name))) check_var(i, atoi(name + 1));
    }
    check_atts(nc, NC_GLOBAL, ROOT);
    if (!read_ok(nc_inq_grps(nc, &n, NULL)) || n > 4096 || !read_ok(nc_inq_grps(nc, &n, groups))) return;
    for (int k = 0; k < n; k++)
        if (read_ok(nc_inq_grpname(groups[k], name))) check_atts(groups[k], NC_GLOBAL, 5000 + atoi(name + 1));
}

int main(void) {
    char line[1100], mode[8], path[1024];
    int a, b;
    unsigned s;
    while (fgets(line, sizeof line, stdin)) {
        int status = 0;
        if (sscanf(line, "make %d %1023s", &a, path) == 2) {
            OK(nc_create(path, NC_NETCDF4, &nc));
            atts(nc, NC_GLOBAL, ROOT);
            while (n_vars < a) add_var();
            OK(nc_enddef(nc));
            for (int i = 0; i < n_vars; i++) OK(nc_put_var_int(nc, i, &i));
            OK(nc_sync(nc));
        } else if (sscanf(line, "open %7s %1023s", mode, path) == 2) {
            status = nc_open(path, mode[0] == 'w' ? NC_WRITE : NC_NOWRITE, &nc);
        } else if (sscanf(line, "change %d %u", &a, &s) == 2) {
            for (seed = s; a > 0; a--) change();
        } else if (sscanf(line, "look %d %d", &a, &b) == 2) {
            errors = good = 0;
            wrong[0] = 0;
            look(a, b);
            printf("%d right %d errors %s%s\n", good, errors, wrong[0] ? "WRONG " : "", wrong);
            fflush(stdout);
            continue;
        } else if (strncmp(line, "close", 5) == 0) {
            status = nc_close(nc);
        } else {
            break;
        }
        printf("%d %d variables\n", status, n_vars);
        fflush(stdout);
    }
    return 0;
}
