/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a program takes from its environment: the plugin path and a setting of a configuration file. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    size_t ndirs;
    char **dirs;
} List;
int nc_plugin_path_get(List *);
char *nc_rc_get(const char *);

int main(int argc, char **argv)
{
    List list = {0, NULL};
    int ncid, code = nc_plugin_path_get(&list);
    char *value = nc_rc_get("ZONDA.TEST");
    printf("path %s\n", code || !list.ndirs ? "none" : list.dirs[0]);
    printf("rc %s\n", value ? value : "none");
    if (argc > 1)
        printf("open %d\n", nc_open(argv[1], NC_NOWRITE, &ncid));
    return 0;
}
