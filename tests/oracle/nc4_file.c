/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A netCDF-4 file as a whole, open for reading. */
#include "nc4_tree.h"
#include <netcdf_mem.h>

static void state(int nc) {
    int format = -77, mode = -77, old = -77, pe = -77;
    size_t len = 77;
    char path[300];
    note("id %x", nc);
    R(nc_inq_format(nc, &format));
    ints("format", &format, 1);
    R(nc_inq_format(nc, NULL));
    format = -77;
    R(nc_inq_format_extended(nc, &format, &mode));
    ints("extended", (int[]){format, mode}, 2);
    R(nc_inq_format_extended(nc, NULL, NULL));
    poison(path);
    R(nc_inq_path(nc, &len, path));
    text("path", path, 30);
    sizes("len", &len, 1);
    R(nc_redef(nc));
    R(nc_enddef(nc));
    R(nc__enddef(nc, 1, 2, 3, 4));
    R(nc_sync(nc));
    R(nc_set_fill(nc, NC_NOFILL, &old));
    ints("old", &old, 1);
    R(nc_set_fill(nc, NC_FILL, &old));
    R(nc_set_fill(nc, 77, &old));
    R(nc_set_base_pe(nc, 0));
    R(nc_inq_base_pe(nc, &pe));
    ints("pe", &pe, 1);
}

static void open_with(const char *path, int mode) {
    int nc = -77, format = -77, m = -77;
    int code = R(nc_open(path, mode, &nc));
    note("%s mode %x", path, mode);
    if (code) return;
    R(nc_inq_format_extended(nc, &format, &m));
    ints("extended", (int[]){format, m}, 2);
    describe(nc);
    R(nc_close(nc));
}

int main(int argc, char **argv) {
    if (prepared(argc, argv)) return 0;
    static const int modes[] = {NC_NOWRITE, NC_NETCDF4, NC_CLASSIC_MODEL, NC_SHARE, NC_64BIT_OFFSET, NC_64BIT_DATA,
                                NC_DISKLESS, NC_DISKLESS | NC_NETCDF4, NC_NOFILL, NC_MMAP, NC_PERSIST,
                                NC_DISKLESS | NC_PERSIST, NC_INMEMORY | NC_DISKLESS, NC_NETCDF4 | NC_CLASSIC_MODEL};
    int nc, other, g;
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    state(nc);
    g = group_at(nc, "g1", "g2", NULL);
    state(g);
    state(nc + 17);
    R(nc_close(nc + 17));
    R(nc_inq_format(nc, &other));
    R(nc_close(g));
    R(nc_inq_format(nc, &other));
    R(nc_abort(nc + 17));
    R(nc_inq_format(nc, &other));
    R(nc_close(nc));
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    R(nc_close(nc));
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    g = group_at(nc, "g1", "g2", NULL);
    R(nc_abort(g));
    R(nc_close(nc));
    R(nc_open("tree.nc", NC_NOWRITE, &nc));
    R(nc_open("tree.nc", NC_NOWRITE, &other));
    note("%x %x", nc, other);
    R(nc_close(nc));
    R(nc_close(other));
    for (size_t i = 0; i < COUNT(modes); i++) {
        open_with("strict.nc", modes[i]);
    }
    size_t hint = 5000;
    R(nc__open("strict.nc", NC_NOWRITE, &hint, &nc));
    R(nc_close(nc));

    FILE *f = fopen("tree.nc", "rb");
    static char image[1 << 20];
    size_t n = fread(image, 1, sizeof image, f);
    fclose(f);
    R(nc_open_mem("named", NC_NOWRITE, n, image, &nc));
    state(nc);
    describe(nc);
    R(nc_close(nc));
    R(nc_open_mem("named", NC_NETCDF4, n, image, &nc));
    R(nc_close(nc));
    NC_memio memio = {n, malloc(n), 0};
    memcpy(memio.memory, image, n);
    R(nc_open_memio("named", NC_NOWRITE, &memio, &nc));
    state(nc);
    NC_memio back = {77, NULL, 77};
    R(nc_close_memio(nc, &back));
    note("%d %d", back.size == n, back.memory != NULL);

    write_file("cut.nc", image, 600);
    write_file("head.nc", image, 8);
    open_with("cut.nc", 0);
    open_with("head.nc", 0);
    return 0;
}
