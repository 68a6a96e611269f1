/* SPDX-License-Identifier: MIT OR Apache-2.0
 * netCDF-4 files written from C memory: strings, sequences and compounds go in and come back, files in
 * memory grow and are handed over, and every null pointer is answered. Valgrind looks on. */
#include "check.h"
#include <netcdf_mem.h>
#include <stddef.h>

typedef struct {
    char *name;
    nc_vlen_t row;
    short two[2];
} item_t;

static void user_types(void) {
    int nc, g, x, row, item, flag, v, s, e;
    OK(nc_create("types.nc", NC_NETCDF4, &nc));
    OK(nc_def_grp(nc, "g", &g));
    OK(nc_def_dim(nc, "x", 2, &x));
    OK(nc_def_vlen(nc, "row", NC_INT, &row));
    OK(nc_def_compound(nc, sizeof(item_t), "item", &item));
    OK(nc_insert_compound(nc, item, "name", offsetof(item_t, name), NC_STRING));
    OK(nc_insert_compound(nc, item, "row", offsetof(item_t, row), row));
    OK(nc_insert_array_compound(nc, item, "two", offsetof(item_t, two), NC_SHORT, 1, (int[]){2}));
    OK(nc_def_enum(nc, NC_BYTE, "flag", &flag));
    OK(nc_insert_enum(nc, flag, "up", &(signed char){1}));
    FAILS(nc_insert_enum(nc, flag, "down", NULL), NC_EINVAL);
    FAILS(nc_insert_enum(nc, flag, NULL, &(signed char){1}), NC_EINVAL);
    FAILS(nc_def_compound(nc, 8, NULL, &e), NC_EINVAL);
    FAILS(nc_inq_type_equal(nc, item, nc, item, &e), NC_EHDFERR); /* not stored yet */
    FAILS(nc_insert_array_compound(nc, item, "q", 0, NC_INT, 2, NULL), NC_EINVAL);
    FAILS(nc_def_grp(nc, NULL, &e), NC_EINVAL);
    OK(nc_def_grp(g, "no id wanted", NULL));
    OK(nc_def_var(g, "v", item, 1, &x, &v));
    OK(nc_def_var(g, "s", NC_STRING, 1, &x, &s));
    OK(nc_def_var(g, "e", flag, 1, &x, &e));
    char *fill = "none";
    OK(nc_def_var_fill(g, s, NC_FILL, &fill));
    FAILS(nc_def_var_filter(g, e, 1, 1, NULL), NC_EINVAL);

    int numbers[3] = {1, 2, 3};
    item_t items[2] = {{"first", {3, numbers}, {5, 6}}, {NULL, {0, NULL}, {7, 8}}};
    FAILS(nc_put_var(g, v, NULL), NC_EINVAL);
    OK(nc_put_var(g, v, items));
    OK(nc_put_att(g, v, "own", item, 2, items));
    FAILS(nc_put_att(g, v, "null", item, 2, NULL), NC_EINVAL);
    OK(nc_put_att_string(g, NC_GLOBAL, "words", 2, (const char *[]){"one", NULL}));
    FAILS(nc_put_att_string(g, NC_GLOBAL, "words", 2, NULL), NC_EINVAL);
    OK(nc_put_var1_string(g, s, (size_t[]){1}, (const char *[]){"text"}));
    OK(nc_put_varm_string(g, s, (size_t[]){0}, (size_t[]){2}, NULL, (ptrdiff_t[]){-1},
                          (const char *[]){"b", "a"} + 1));
    OK(nc_put_var1_string(g, s, (size_t[]){1}, (const char *[]){"a rather longer text than the one before"}));
    OK(nc_put_var(g, e, "\1\1"));
    OK(nc_close(nc));

    item_t back[2];
    char *strings[2];
    OK(nc_open("types.nc", NC_WRITE, &nc));
    OK(nc_inq_ncid(nc, "g", &g));
    OK(nc_get_var(g, v, back));
    CHECK(!strcmp(back[0].name, "first") && back[0].row.len == 3 && ((int *)back[0].row.p)[2] == 3);
    CHECK(back[1].row.len == 0 && back[1].two[1] == 8 && !back[1].name);
    OK(nc_put_var1(g, v, (size_t[]){1}, back));
    OK(nc_reclaim_data(nc, item, back, 2));
    OK(nc_get_att(g, v, "own", back));
    CHECK(back[1].two[0] == 7);
    OK(nc_reclaim_data(nc, item, back, 2));
    OK(nc_get_var_string(g, s, strings));
    CHECK(!strcmp(strings[0], "a") && strstr(strings[1], "longer"));
    OK(nc_free_string(2, strings));
    OK(nc_inq_var_fill(g, s, NULL, &strings[0]));
    CHECK(!strcmp(strings[0], "none"));
    OK(nc_free_string(1, strings));
    OK(nc_inq_type_equal(nc, item, g, item, &e));
    CHECK(e == 1);

    /* Into another file, where the types are by another number. */
    int out, dummy, other;
    OK(nc_create("copy.nc", NC_NETCDF4, &out));
    OK(nc_def_dim(out, "x", 2, &dummy));
    FAILS(nc_copy_var(g, v, out), NC_EBADTYPE);
    OK(nc_def_opaque(out, 5, "lump", &dummy));
    OK(nc_def_vlen(out, "row", NC_INT, &other));
    OK(nc_def_compound(out, sizeof(item_t), "item", &dummy));
    OK(nc_insert_compound(out, dummy, "name", offsetof(item_t, name), NC_STRING));
    OK(nc_insert_compound(out, dummy, "row", offsetof(item_t, row), other));
    OK(nc_insert_array_compound(out, dummy, "two", offsetof(item_t, two), NC_SHORT, 1, (int[]){2}));
    OK(nc_copy_var(g, v, out));
    OK(nc_copy_var(g, s, out));
    OK(nc_get_var1(out, 0, (size_t[]){1}, back));
    CHECK(!strcmp(back[0].name, "first"));
    OK(nc_reclaim_data(out, dummy, back, 1));
    OK(nc_close(out));
    OK(nc_close(nc));
}

static void in_memory(void) {
    int nc, x, v;
    NC_memio memory = {0};
    OK(nc_create_mem("none", NC_NETCDF4, 100, &nc));
    OK(nc_def_dim(nc, "x", 10000, &x));
    OK(nc_def_var(nc, "v", NC_INT, 1, &x, &v));
    int *values = malloc(10000 * sizeof *values), back = 0;
    for (int i = 0; i < 10000; i++) values[i] = i;
    OK(nc_put_var_int(nc, v, values));
    OK(nc_close_memio(nc, &memory));
    CHECK(memory.memory && memory.size > 40000);
    OK(nc_open_mem("none", NC_NOWRITE, memory.size, memory.memory, &nc));
    OK(nc_get_var1_int(nc, 0, (size_t[]){9999}, &back));
    CHECK(back == 9999);
    OK(nc_close(nc));
    memory.flags = 0;
    OK(nc_open_memio("none", NC_WRITE, &memory, &nc));
    OK(nc_redef(nc));
    OK(nc_def_var(nc, "w", NC_INT, 1, &x, &v));
    OK(nc_put_var_int(nc, v, values));
    OK(nc_close_memio(nc, &memory));
    CHECK(memory.size > 80000);
    free(memory.memory);
    OK(nc_create("persists.nc", NC_NETCDF4 | NC_DISKLESS | NC_PERSIST, &nc));
    OK(nc_def_dim(nc, "x", 10, &x));
    OK(nc_close(nc));
    OK(nc_open("persists.nc", NC_NOWRITE, &nc));
    OK(nc_inq_dimid(nc, "x", &x));
    OK(nc_close(nc));
    free(values);
}

/* A definition that cannot be stored leaves the file open, to be completed. */
static void completed(void) {
    int nc, flag, pair;
    NC_memio memory = {0, NULL, 0};
    OK(nc_create("completed.nc", NC_NETCDF4, &nc));
    OK(nc_def_enum(nc, NC_UBYTE, "flag", &flag));
    FAILS(nc_close(nc), NC_EINVAL);
    OK(nc_redef(nc));
    OK(nc_insert_enum(nc, flag, "one", &(unsigned char){1}));
    OK(nc_close(nc));
    OK(nc_open("completed.nc", NC_NOWRITE, &nc));
    OK(nc_inq_typeid(nc, "flag", &flag));
    OK(nc_close(nc));
    /* A compound without fields, however often it is tried; the definitions stay what they are. */
    OK(nc_create("completed.nc", NC_NETCDF4, &nc));
    OK(nc_def_compound(nc, 8, "pair", &pair));
    FAILS(nc_close(nc), NC_EHDFERR);
    FAILS(nc_close(nc), NC_EHDFERR);
    OK(nc_insert_compound(nc, pair, "a", 0, NC_INT));
    OK(nc_close(nc));
    FAILS(nc_close(nc), NC_EBADID);
    OK(nc_open("completed.nc", NC_NOWRITE, &nc));
    OK(nc_inq_typeid(nc, "pair", &pair));
    OK(nc_close(nc));
    /* The same in memory. */
    OK(nc_create_mem("none", NC_NETCDF4, 0, &nc));
    OK(nc_def_compound(nc, 8, "pair", &pair));
    FAILS(nc_close_memio(nc, &memory), NC_EHDFERR);
    CHECK(memory.memory == NULL);
    OK(nc_insert_compound(nc, pair, "a", 0, NC_INT));
    OK(nc_close_memio(nc, &memory));
    CHECK(memory.memory != NULL);
    free(memory.memory);
    /* Who does not complete it gives the file up. */
    OK(nc_create("given_up.nc", NC_NETCDF4, &nc));
    OK(nc_def_compound(nc, 8, "pair", &pair));
    FAILS(nc_close(nc), NC_EHDFERR);
    OK(nc_abort(nc));
    FAILS(nc_abort(nc), NC_EBADID);
    CHECK(access("given_up.nc", F_OK) != 0);
}

/* A get of data ends define mode; with the classic model it is refused there. */
static void get_in_define_mode(void) {
    int nc, v, got;
    char letter;
    OK(nc_create("get.nc", NC_NETCDF4, &nc));
    OK(nc_def_var(nc, "v", NC_INT, 0, NULL, &v));
    /* What is refused before the data are looked at does not. */
    FAILS(nc_get_var_int(nc, 5, &got), NC_ENOTVAR);
    FAILS(nc_get_var_text(nc, v, &letter), NC_ECHAR);
    OK(nc_redef(nc));
    OK(nc_get_var_int(nc, v, &got));
    CHECK(got == NC_FILL_INT);
    FAILS(nc_enddef(nc), NC_ENOTINDEFINE);
    OK(nc_redef(nc));
    FAILS(nc_get_var1_int(nc, v + 1, NULL, &got), NC_ENOTVAR);
    OK(nc_get_var(nc, v, &got));
    FAILS(nc_enddef(nc), NC_ENOTINDEFINE);
    OK(nc_abort(nc));
    OK(nc_open("get.nc", NC_NOWRITE, &nc));
    OK(nc_get_var_int(nc, v, &got));
    OK(nc_close(nc));
    OK(nc_create("get.nc", NC_NETCDF4 | NC_CLASSIC_MODEL, &nc));
    OK(nc_def_var(nc, "v", NC_INT, 0, NULL, &v));
    FAILS(nc_get_var_int(nc, v, &got), NC_EINDEFINE);
    OK(nc_enddef(nc));
    OK(nc_close(nc));
}

/* Names that are null, where the distribution's library crashes. */
static void null_names(void) {
    int nc, group;
    OK(nc_create("null.nc", NC_NETCDF4, &nc));
    FAILS(nc_def_grp(nc, NULL, &group), NC_EINVAL);
    OK(nc_def_grp(nc, "g", &group));
    FAILS(nc_rename_grp(group, NULL), NC_EINVAL);
    FAILS(nc_inq_grp_full_ncid(nc, NULL, &group), NC_EINVAL);
    FAILS(nc_inq_typeid(nc, NULL, &group), NC_EINVAL);
    FAILS(nc_def_compound(nc, 4, NULL, &group), NC_EINVAL);
    OK(nc_close(nc));
}

/* The functions for Fortran count percent, and for a variable MiB. */
int nc_set_chunk_cache_ints(int, int, int), nc_get_chunk_cache_ints(int *, int *, int *);
int nc_set_var_chunk_cache_ints(int, int, int, int, int);
int nc_get_var_chunk_cache_ints(int, int, int *, int *, int *);
static void caches(void) {
    int nc, x, v, mib, n, percent;
    size_t bytes, slots, was_bytes, was_slots;
    float part, was_part;
    OK(nc_get_chunk_cache(&was_bytes, &was_slots, &was_part));
    OK(nc_set_chunk_cache_ints(5, 7, 40));
    OK(nc_get_chunk_cache(&bytes, &slots, &part));
    CHECK(bytes == 5 && slots == 7 && part == 0.4f);
    OK(nc_set_chunk_cache((3 << 20) + 1, 11, 0.25f));
    OK(nc_get_chunk_cache_ints(&mib, &n, &percent));
    CHECK(mib == (3 << 20) + 1 && n == 11 && percent == 25);
    FAILS(nc_set_chunk_cache_ints(0, 7, 40), NC_EINVAL);
    FAILS(nc_set_chunk_cache_ints(5, 7, 101), NC_EINVAL);
    OK(nc_create("caches.nc", NC_NETCDF4, &nc));
    OK(nc_def_dim(nc, "x", 10, &x));
    OK(nc_def_var(nc, "v", NC_INT, 1, &x, &v));
    OK(nc_get_var_chunk_cache_ints(nc, v, &mib, &n, &percent));
    CHECK(n == 11 && percent == 25);
    OK(nc_set_var_chunk_cache_ints(nc, v, 9, 13, 50));
    OK(nc_get_var_chunk_cache(nc, v, &bytes, &slots, &part));
    CHECK(bytes == 9 << 20 && slots == 13 && part == 0.5f);
    OK(nc_get_var_chunk_cache_ints(nc, v, &mib, &n, &percent));
    CHECK(mib == 9 && n == 13 && percent == 50);
    FAILS(nc_set_var_chunk_cache_ints(nc, v + 1, 9, 13, 50), NC_ENOTVAR);
    OK(nc_close(nc));
    OK(nc_set_chunk_cache(was_bytes, was_slots, was_part));
}

int main(void) {
    completed();
    get_in_define_mode();
    null_names();
    caches();
    user_types();
    in_memory();
    return 0;
}
