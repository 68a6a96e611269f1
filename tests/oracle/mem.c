/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Files in memory: diskless, persistent, opened from and closed into buffers. */
#include "harness.h"
#include <netcdf_mem.h>

static int define(int nc) {
    int d, t, v, data[6] = {1, 2, 3, 4, 5, 6};
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    R(nc_def_dim(nc, "x", 3, &d));
    R(nc_def_var(nc, "v", NC_INT, 2, (int[]){t, d}, &v));
    R(nc_put_att_text(nc, v, "units", 1, "m"));
    R(nc_enddef(nc));
    R(nc_put_vara_int(nc, v, (size_t[]){0, 0}, (size_t[]){2, 3}, data));
    return v;
}

static void diskless(void) {
    static const int flags[] = {NC_DISKLESS, NC_DISKLESS | NC_PERSIST, NC_DISKLESS | NC_WRITE,
                                NC_PERSIST, NC_DISKLESS | NC_64BIT_DATA | NC_PERSIST,
                                NC_DISKLESS | NC_NOCLOBBER, NC_INMEMORY, NC_DISKLESS | NC_INMEMORY,
                                NC_MMAP, NC_MMAP | NC_PERSIST};
    int nc;
    for (size_t i = 0; i < COUNT(flags); i++) {
        note("flags 0x%x", flags[i]);
        remove("diskless.nc");
        nc = -77;
        if (R(nc_create("diskless.nc", flags[i], &nc)) == NC_NOERR) {
            define(nc);
            if (!(flags[i] & NC_PERSIST)) presence("diskless.nc");
            describe(nc);
            R(nc_sync(nc));
            R(nc_close(nc));
        }
        presence("diskless.nc");
        describe_file("diskless.nc");
        if (R(nc_create("diskless.nc", flags[i], &nc)) == NC_NOERR) {
            define(nc);
            R(nc_abort(nc));
        }
        presence("diskless.nc");
    }
    remove("diskless.nc");
    R(nc_create("onfile.nc", NC_CLOBBER, &nc));
    define(nc);
    R(nc_close(nc));
    static const int modes[] = {NC_DISKLESS, NC_DISKLESS | NC_WRITE, NC_DISKLESS | NC_WRITE | NC_PERSIST,
                                NC_PERSIST | NC_WRITE, NC_MMAP};
    for (size_t i = 0; i < COUNT(modes); i++) {
        int seven = 7 + (int)i;
        note("mode 0x%x", modes[i]);
        nc = -77;
        if (R(nc_open("onfile.nc", modes[i], &nc)) != NC_NOERR) continue;
        describe(nc);
        R(nc_put_var1_int(nc, 0, (size_t[]){0, 0}, &seven));
        R(nc_redef(nc));
        R(nc_put_att_int(nc, NC_GLOBAL, "added", NC_INT, 1, &seven));
        R(nc_enddef(nc));
        R(nc_put_vara_int(nc, 0, (size_t[]){5, 0}, (size_t[]){1, 1}, &seven));
        describe(nc);
        R(nc_close(nc));
        describe_file("onfile.nc");
    }
    R(nc_open("missing.nc", NC_DISKLESS, &nc));
}

static void *load(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    void *memory = malloc(1 << 20);
    *size = fread(memory, 1, 1 << 20, f);
    fclose(f);
    return memory;
}

static void from_memory(void) {
    size_t size;
    int nc = -77, value = 42;
    R(nc_create("image.nc", NC_CLOBBER, &nc));
    define(nc);
    R(nc_close(nc));
    void *image = load("image.nc", &size);
    R(nc_open_mem("name", NC_NOWRITE, size, image, &nc));
    describe(nc);
    char path[100];
    size_t len = 77;
    poison(path);
    R(nc_inq_path(nc, &len, path));
    text("path", path, 20);
    R(nc_put_var1_int(nc, 0, (size_t[]){0, 0}, &value));
    R(nc_redef(nc));
    R(nc_close(nc));
    nc = -77;
    R(nc_open_mem("name", NC_WRITE, size, image, &nc));
    R(nc_open_mem("name", NC_NOWRITE, 0, image, &nc));
    R(nc_open_mem("name", NC_NOWRITE, size, NULL, &nc));
    R(nc_open_mem("name", NC_NOWRITE, 5, image, &nc));
    R(nc_open_mem("name", NC_NOWRITE, 3, "abc", &nc));
    R(nc_open_mem(NULL, NC_NOWRITE, size, image, &nc));
    ints("nc", &nc, 1);
    presence("name");

    NC_memio io = {size, image, 0}, out;
    note("memio, library takes the memory");
    R(nc_open_memio("name", NC_NOWRITE, &io, &nc));
    describe(nc);
    poison(out);
    R(nc_close_memio(nc, &out));
    note("size equal %d flags %d", out.size == size, out.flags);
    note("content equal %d", memcmp(out.memory, load("image.nc", &size), size) == 0);
    if (out.memory != image) note("other memory");
    free(out.memory);

    note("memio, memory locked");
    image = load("image.nc", &size);
    void *copy = malloc(size);
    memcpy(copy, image, size);
    NC_memio locked = {size, image, NC_MEMIO_LOCKED};
    R(nc_open_memio("name", NC_NOWRITE, &locked, &nc));
    R(nc_close(nc));
    note("untouched %d", memcmp(image, copy, size) == 0);
    R(nc_open_memio("name", NC_WRITE, &locked, &nc));
    R(nc_put_var1_int(nc, 0, (size_t[]){0, 0}, &value));
    describe(nc);
    poison(out);
    R(nc_close_memio(nc, &out));
    note("same memory %d flags %d", out.memory == image, out.flags);

    note("memio, written and grown");
    NC_memio grown = {size, load("image.nc", &size), 0};
    R(nc_open_memio("name", NC_WRITE, &grown, &nc));
    for (size_t r = 0; r < 300; r++) {
        int row[3] = {(int)r, 2, 3};
        if (nc_put_vara_int(nc, 0, (size_t[]){r, 0}, (size_t[]){1, 3}, row)) note("put fails");
    }
    R(nc_redef(nc));
    R(nc_put_att_int(nc, NC_GLOBAL, "added", NC_INT, 1, &value));
    R(nc_enddef(nc));
    describe(nc);
    R(nc_close_memio(nc, &out));
    R(nc_open_mem("again", NC_NOWRITE, out.size, out.memory, &nc));
    describe(nc);
    R(nc_close(nc));
    free(out.memory);
    free(copy);

    NC_memio empty = {0, NULL, 0};
    R(nc_open_memio("name", NC_NOWRITE, &empty, &nc));
    R(nc_open_memio("name", NC_NOWRITE, NULL, &nc));
    R(nc_close_memio(99999, &out));
    R(nc_open("image.nc", NC_NOWRITE, &nc));
    if (R(nc_close_memio(nc, &out)) != NC_NOERR) R(nc_close(nc));
}

static void created(void) {
    static const size_t initial[] = {0, 1, 1000, 1 << 20};
    for (size_t i = 0; i < COUNT(initial); i++)
        for (size_t f = 0; f < COUNT(FORMATS); f++) {
            int nc = -77;
            NC_memio out;
            note("initial size %zu %s", initial[i], FORMATS[f].name);
            if (R(nc_create_mem("made", FORMATS[f].flags, initial[i], &nc)) != NC_NOERR) continue;
            define(nc);
            poison(out);
            R(nc_close_memio(nc, &out));
            presence("made");
            R(nc_open_mem("made", NC_NOWRITE, out.size, out.memory, &nc));
            describe(nc);
            R(nc_close(nc));
            write_file(path_of("made", FORMATS[f].name), out.memory, out.size);
            describe_file(path_of("made", FORMATS[f].name));
            free(out.memory);
        }
    int nc = -77;
    R(nc_create_mem("made", NC_DISKLESS, 100, &nc));
    if (nc >= 0) R(nc_close(nc));
    presence("made");
    nc = -77;
    R(nc_create_mem("made", 0, 100, &nc));
    define(nc);
    R(nc_close(nc));
    presence("made");
    R(nc_create_mem("made", 0, 100, &nc));
    define(nc);
    R(nc_abort(nc));
}

int main(void) {
    diskless();
    from_memory();
    created();
    return 0;
}
