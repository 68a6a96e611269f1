/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Functions younger than the distribution's header: this test compiles against ours only. */
#include "check.h"
#include <netcdf_aux.h>
#include <netcdf_filter.h>
#include <zonda.h>

/* Kinds of memory: their names, and that their sum is what is held in all. */
static void held(void) {
    const char *name;
    size_t bytes, most, sum = 0, all, limit;
    int kind = 0, has_pages = 0;
    for (; nc_zonda_memory(kind, &name, &bytes, &most) == NC_NOERR; kind++) {
        CHECK(strlen(name) > 0 && bytes <= most);
        has_pages |= strcmp(name, "pages") == 0;
        sum += bytes;
    }
    CHECK(kind >= 6 && has_pages);
    FAILS(nc_zonda_memory(kind, &name, &bytes, &most), NC_EINVAL);
    FAILS(nc_zonda_memory(-2, &name, &bytes, &most), NC_EINVAL);
    OK(nc_zonda_memory(NC_ZONDA_MEMORY_ALL, &name, &all, &limit));
    CHECK(strcmp(name, "all") == 0 && all == sum && limit > 0);
    OK(nc_zonda_memory(0, NULL, NULL, NULL));
}

int main(void) {
    NCPluginList list = {0, NULL};
    size_t n;
    char *text, **pairs, room[20];
    void *tag;
    int nc;
    OK(ncaux_plugin_path_parse("/a:/b", 0, &list));
    OK(ncaux_plugin_path_append(&list, "/c"));
    OK(ncaux_plugin_path_prepend(&list, "/0"));
    CHECK(list.ndirs == 4 && strcmp(list.dirs[0], "/0") == 0 && strcmp(list.dirs[3], "/c") == 0);
    OK(nc_plugin_path_set(&list));
    OK(ncaux_plugin_path_tostring(&list, ';', &text));
    CHECK(strcmp(text, "/0;/a;/b;/c") == 0);
    CHECK(ncaux_plugin_path_stringlen() == (int)strlen(text));
    OK(ncaux_plugin_path_stringget(sizeof room, room));
    CHECK(strcmp(room, text) == 0);
    free(text);
    OK(ncaux_plugin_path_clear(&list));
    OK(nc_plugin_path_ndirs(&n));
    CHECK(n == 4);
    OK(nc_plugin_path_get(&list));
    CHECK(list.ndirs == 4 && strcmp(list.dirs[1], "/a") == 0);
    OK(ncaux_plugin_path_clear(&list));
    OK(nc_rc_set("ZONDA.TEST", " value "));
    text = nc_rc_get("ZONDA.TEST");
    CHECK(text && strcmp(text, "value") == 0);
    free(text);
    CHECK(nc_rc_get("NOT.THERE") == NULL);
    OK(nc_set_meta_block_size(4096));
    OK(nc_get_meta_block_size(&n));
    CHECK(n == 4096);
    OK(ncaux_parse_provenance("version=2,netcdf=4.9.0", &pairs));
    CHECK(strcmp(pairs[3], "4.9.0") == 0 && pairs[4] == NULL);
    for (char **p = pairs; *p; p++) free(*p);
    free(pairs);
    nc = small_file("newer.nc", NC_CLOBBER);
    OK(ncaux_begin_compound(nc, "c", 0, &tag));
    OK(ncaux_add_field(tag, "f", NC_INT, 0, NULL));
    FAILS(ncaux_end_compound(tag, &(nc_type){0}), NC_ENOTNC4);
    OK(ncaux_abort_compound(tag));
    OK(ncaux_abort_compound(tag));
    FAILS(nc_open("missing.nc", NC_NOWRITE, &(int){0}), 2);
    CHECK(strstr(nc_zonda_last_error(), "missing.nc") != NULL);
    OK(nc_zonda_inq_stack(nc, &n, NULL));
    text = malloc(n + 1);
    OK(nc_zonda_inq_stack(nc, NULL, text));
    CHECK(strlen(text) == n);
    free(text);
    OK(nc_close(nc));
    held();
    return 0;
}
