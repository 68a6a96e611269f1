/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A variable with a filter that is not built in: without its plugin everything but its data can be
 * had; with it, from HDF5_PLUGIN_PATH or nc_plugin_path_set(), the data too. */
#include "check.h"
#include <netcdf_filter.h>
#include <sys/wait.h>
#include <zonda.h>

static char path[1000];

/* What is known of the variable, with its plugin or without. */
static void inquire(int nc) {
    int id, dims[2], storage;
    nc_type type;
    size_t n, params[2] = {0}, chunks[2];
    unsigned ids[2] = {0}, values[2] = {0};
    OK(nc_inq_varid(nc, "filtered", &id));
    OK(nc_inq_var(nc, id, NULL, &type, NULL, dims, NULL));
    CHECK(type == NC_INT);
    OK(nc_inq_dimlen(nc, dims[0], &n));
    CHECK(n == 4);
    OK(nc_inq_var_chunking(nc, id, &storage, chunks));
    CHECK(storage == NC_CHUNKED && chunks[0] == 2 && chunks[1] == 3);
    OK(nc_inq_var_filter_ids(nc, id, &n, ids));
    CHECK(n == 1 && ids[0] == 300);
    OK(nc_inq_var_filter_info(nc, id, 300, params, values));
    CHECK(params[0] == 1 && values[0] == 0x5a);
    OK(nc_inq_varid(nc, "known", &id));
    OK(nc_get_var_int(nc, id, (int[4]){0}));
}

static void lacks_filter(int nc) {
    int id, data[12];
    inquire(nc);
    OK(nc_inq_varid(nc, "filtered", &id));
    FAILS(nc_inq_filter_avail(nc, 300), NC_ENOFILTER);
    FAILS(nc_get_var_int(nc, id, data), NC_ENOFILTER);
    CHECK(strstr(nc_zonda_last_error(), "300") && strstr(nc_zonda_last_error(), "filtered"));
    FAILS(nc_get_var1_int(nc, id, (size_t[]){3, 0}, data), NC_ENOFILTER);
    CHECK(strstr(nc_zonda_last_error(), "300"));
    inquire(nc);
}

static void has_filter(int nc) {
    int id, data[12];
    inquire(nc);
    OK(nc_inq_varid(nc, "filtered", &id));
    OK(nc_inq_filter_avail(nc, 300));
    memset(data, 0x7e, sizeof data);
    OK(nc_get_var_int(nc, id, data));
    for (int i = 0; i < 12; i++) CHECK(data[i] == i * 1000 - 1);
}

/* In a process of its own: what is found is found once and for all. */
static void in_child(const char *variable, int set, void (*look)(int)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int nc;
        if (variable) CHECK(setenv("HDF5_PLUGIN_PATH", variable, 1) == 0);
        OK(nc_open(path, NC_NOWRITE, &nc));
        if (set) {
            char *folders[] = {(char *)"/nonexistent", getenv("ZONDA_PLUGINS")};
            NCPluginList list = {2, folders};
            lacks_filter(nc);
            OK(nc_plugin_path_set(&list));
            OK(nc_close(nc)); /* what was missing is looked for again when the file is opened */
            OK(nc_open(path, NC_NOWRITE, &nc));
        }
        look(nc);
        OK(nc_close(nc));
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    const char *folder = getenv("ZONDA_NC4_DATA"), *plugins = getenv("ZONDA_PLUGINS");
    char both[2000];
    CHECK(folder && plugins);
    snprintf(path, sizeof path, "%s/foreign.h5", folder);
    snprintf(both, sizeof both, "/nonexistent:%s", plugins);
    in_child("/nonexistent", 0, lacks_filter);
    in_child(plugins, 0, has_filter);
    in_child(both, 0, has_filter);
    in_child("/nonexistent", 1, has_filter);
    in_child(NULL, 1, has_filter);
    return 0;
}
