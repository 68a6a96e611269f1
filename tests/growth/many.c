/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* n objects are defined, asked for, renamed, overwritten, deleted: the processor seconds of each step.
 *
 *   many MODE N FILE WHAT      MODE: classic, cdf5, netcdf4; `many` alone lists what there is */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int nc, n;
static double began;
static char text[NC_MAX_NAME], other[NC_MAX_NAME];

static void check(int status, const char *call, int line) {
    if (status != NC_NOERR) {
        fprintf(stderr, "many: line %d: %s: %s\n", line, call, nc_strerror(status));
        exit(1);
    }
}
#define OK(call) check((call), #call, __LINE__)
#define EACH for (int i = 0; i < n; i++)

static void lap(const char *step) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (step != NULL) printf("%s %.4f\n", step, seconds - began);
    began = seconds;
}

static const char *name(const char *stem, int i) {
    snprintf(text, sizeof text, "%s%d", stem, i);
    return text;
}

static void vars(void) {
    int id, dim;
    OK(nc_def_dim(nc, "x", 1, &dim));
    lap(NULL);
    EACH OK(nc_def_var(nc, name("variable", i), NC_INT, i % 2, &dim, &id));
    lap("def_var");
    EACH OK(nc_inq_varid(nc, name("variable", i), &id));
    lap("inq_varid");
    EACH OK(nc_inq_varname(nc, i, other));
    lap("inq_varname");
    EACH OK(nc_rename_var(nc, i, name("another", i)));
    lap("rename_var_define");
    EACH OK(nc_put_att_int(nc, i, "a", NC_INT, 1, &i));
    lap("put_att_of_each");
    OK(nc_enddef(nc));
    lap("enddef");
    EACH OK(nc_rename_var(nc, i, name("short", i)));
    lap("rename_var_data");
    EACH OK(nc_put_var_int(nc, i, &i));
    lap("put_var");
    EACH {
        int value;
        OK(nc_get_var_int(nc, i, &value));
    }
    lap("get_var");
    OK(nc_redef(nc));
    lap("redef");
    EACH OK(nc_del_att(nc, i, "a"));
    lap("del_att_of_each");
}

static void dims(void) {
    int id;
    size_t len;
    EACH OK(nc_def_dim(nc, name("dimension", i), 3, &id));
    lap("def_dim");
    EACH OK(nc_inq_dimid(nc, name("dimension", i), &id));
    lap("inq_dimid");
    EACH OK(nc_inq_dim(nc, i, other, &len));
    lap("inq_dim");
    EACH OK(nc_rename_dim(nc, i, name("another", i)));
    lap("rename_dim_define");
    OK(nc_enddef(nc));
    lap("enddef");
    EACH OK(nc_rename_dim(nc, i, name("short", i)));
    lap("rename_dim_data");
    OK(nc_redef(nc));
    lap("redef");
}

static void atts_of(int to) {
    int id;
    EACH OK(nc_put_att_int(nc, to, name("attribute", i), NC_INT, 1, &i));
    lap("put_att");
    EACH {
        int value;
        OK(nc_get_att_int(nc, to, name("attribute", i), &value));
    }
    lap("get_att");
    EACH OK(nc_inq_attid(nc, to, name("attribute", i), &id));
    lap("inq_attid");
    EACH OK(nc_inq_attname(nc, to, i, other));
    lap("inq_attname");
    EACH OK(nc_put_att_int(nc, to, name("attribute", i), NC_INT, 1, &i));
    lap("overwrite_define");
    EACH {
        snprintf(other, sizeof other, "attribute%d", i);
        OK(nc_rename_att(nc, to, other, name("another", i)));
    }
    lap("rename_att_define");
    OK(nc_enddef(nc));
    lap("enddef");
    EACH {
        snprintf(other, sizeof other, "another%d", i);
        OK(nc_rename_att(nc, to, other, name("short", i)));
    }
    lap("rename_att_data");
    EACH OK(nc_put_att_int(nc, to, name("short", i), NC_INT, 1, &i));
    lap("overwrite_data");
    OK(nc_sync(nc));
    lap("sync");
    OK(nc_redef(nc));
    /* From the front, from the middle, and what is left. */
    EACH if (i % 4 == 0) OK(nc_del_att(nc, to, name("short", i)));
    lap("del_att_some");
    EACH if (i % 4 != 0) OK(nc_inq_attid(nc, to, name("short", i), &id));
    lap("inq_attid_of_rest");
    EACH if (i % 4 == 0) OK(nc_put_att_int(nc, to, name("short", i), NC_INT, 1, &i));
    lap("put_again");
    EACH OK(nc_del_att(nc, to, name("short", n - 1 - i)));
    lap("del_att_from_the_end");
    EACH OK(nc_put_att_int(nc, to, name("attribute", i), NC_INT, 1, &i));
    lap("put_anew");
}

static void global(void) { atts_of(NC_GLOBAL); }

static void var_atts(void) {
    int id;
    OK(nc_def_var(nc, "v", NC_INT, 0, NULL, &id));
    lap(NULL);
    atts_of(id);
}

/* Each change is a commit of its own: of few, since each costs more than a definition. */
static void committed_to(int to, const char *put, const char *again, const char *longer, const char *del) {
    const int few = n / 4;
    for (int i = 0; i < few; i++) {
        OK(nc_redef(nc));
        OK(nc_put_att_int(nc, to, name("attribute", i), NC_INT, 1, &i));
        OK(nc_enddef(nc));
    }
    lap(put);
    for (int i = 0; i < few; i++) {
        OK(nc_put_att_int(nc, to, name("attribute", i * 7 % few), NC_INT, 1, &i));
        OK(nc_sync(nc));
    }
    lap(again);
    for (int i = 0; i < few; i++) {
        OK(nc_redef(nc));
        OK(nc_put_att_int(nc, to, name("attribute", i * 7 % few), NC_INT, 2, (int[]){i, 2}));
        OK(nc_enddef(nc));
    }
    lap(longer);
    for (int i = 0; i < few; i++) {
        OK(nc_redef(nc));
        OK(nc_del_att(nc, to, name("attribute", i * 7 % few)));
        OK(nc_enddef(nc));
    }
    lap(del);
}

static void commits(void) {
    int id;
    OK(nc_def_var(nc, "v", NC_INT, 0, NULL, &id));
    OK(nc_enddef(nc));
    lap(NULL);
    committed_to(NC_GLOBAL, "commit_att", "commit_att_again", "commit_att_longer", "commit_del_att");
    committed_to(id, "commit_var_att", "commit_var_att_again", "commit_var_att_longer", "commit_del_var_att");
    OK(nc_redef(nc));
}

static void grps(void) {
    int id;
    EACH OK(nc_def_grp(nc, name("group", i), &id));
    lap("def_grp");
    EACH OK(nc_inq_ncid(nc, name("group", i), &id));
    lap("inq_ncid");
    EACH {
        OK(nc_inq_ncid(nc, name("group", i), &id));
        OK(nc_rename_grp(id, name("another", i)));
    }
    lap("rename_grp");
}

static void types(void) {
    nc_type id;
    size_t size;
    EACH OK(nc_def_opaque(nc, 5, name("type", i), &id));
    lap("def_opaque");
    EACH OK(nc_inq_typeid(nc, name("type", i), &id));
    lap("inq_typeid");
    EACH {
        OK(nc_inq_typeid(nc, name("type", i), &id));
        OK(nc_inq_type(nc, id, other, &size));
    }
    lap("inq_type");
}

static const struct {
    const char *name;
    void (*run)(void);
} all[] = {{"vars", vars}, {"dims", dims}, {"global", global}, {"var_atts", var_atts}, {"commits", commits}, {"grp", grps}, {"type", types}};

int main(int argc, char **argv) {
    size_t n_all = sizeof all / sizeof *all;
    if (argc < 5) {
        for (size_t i = 0; i < n_all; i++) puts(all[i].name);
        return 0;
    }
    int mode = 0;
    if (strcmp(argv[1], "cdf5") == 0) mode = NC_64BIT_DATA;
    if (strcmp(argv[1], "netcdf4") == 0) mode = NC_NETCDF4;
    n = atoi(argv[2]);
    OK(nc_create(argv[3], NC_CLOBBER | mode, &nc));
    lap(NULL);
    for (size_t i = 0; i < n_all; i++)
        if (strcmp(argv[4], all[i].name) == 0) all[i].run();
    OK(nc_close(nc));
    lap("close");
    OK(nc_open(argv[3], NC_NOWRITE, &nc));
    int found;
    OK(nc_inq_natts(nc, &found));
    lap("open");
    EACH {
        int id;
        int status = nc_inq_attid(nc, NC_GLOBAL, name("attribute", i), &id);
        if (status != NC_NOERR && status != NC_ENOTATT) OK(status);
    }
    lap("inq_attid_as_read");
    OK(nc_close(nc));
    return 0;
}
