/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Creating, opening, modes, closing. */
#include "harness.h"

static const int BAD_IDS[] = {-1, 0, 1, 65535, 12345678, 0x7fffffff};

static void creation_flags(void) {
    static const int bits[] = {NC_NOCLOBBER, NC_64BIT_OFFSET, NC_64BIT_DATA, NC_SHARE,
                               NC_CLASSIC_MODEL, NC_WRITE, NC_LOCK};
    for (unsigned set = 0; set < 1u << COUNT(bits); set++) {
        int mode = 0, nc = -77, format = -77, kind = -77, flags = -77;
        for (size_t b = 0; b < COUNT(bits); b++)
            if (set >> b & 1) mode |= bits[b];
        note("mode 0x%x", mode);
        remove("flags.nc");
        if (R(nc_create("flags.nc", mode, &nc)) == NC_NOERR) {
            R(nc_inq_format(nc, &format));
            ints("format", &format, 1);
            R(nc_inq_format_extended(nc, &kind, &flags));
            note("formatx %d mode 0x%x", kind, flags);
            R(nc_close(nc));
        }
        presence("flags.nc");
        /* once more, over the file just made */
        nc = -77;
        if (R(nc_create("flags.nc", mode, &nc)) == NC_NOERR) R(nc_abort(nc));
        presence("flags.nc");
    }
}

static void default_formats(void) {
    static const int formats[] = {NC_FORMAT_CLASSIC, NC_FORMAT_64BIT_OFFSET, NC_FORMAT_CDF5,
                                  -1, 0, 6, 99, NC_FORMAT_CLASSIC};
    for (size_t i = 0; i < COUNT(formats); i++) {
        int old = -77, nc = -77, got = -77;
        note("default %d", formats[i]);
        R(nc_set_default_format(formats[i], &old));
        ints("old", &old, 1);
        R(nc_set_default_format(formats[i], NULL));
        R(nc_create("default.nc", NC_CLOBBER, &nc));
        R(nc_inq_format(nc, &got));
        ints("format", &got, 1);
        R(nc_close(nc));
        R(nc_create("default.nc", NC_CLOBBER | NC_64BIT_OFFSET, &nc));
        R(nc_inq_format(nc, &got));
        ints("format", &got, 1);
        R(nc_close(nc));
    }
}

static void bad_ids(void) {
    for (size_t i = 0; i < COUNT(BAD_IDS); i++) {
        int id = BAD_IDS[i], a = -77, b = -77, c = -77, d = -77;
        size_t len = 77;
        char path[300];
        note("id %d", id);
        R(nc_redef(id));
        R(nc_enddef(id));
        R(nc__enddef(id, 0, 4, 0, 4));
        R(nc_sync(id));
        R(nc_abort(id));
        R(nc_close(id));
        R(nc_inq(id, &a, &b, &c, &d));
        R(nc_inq_ndims(id, &a));
        R(nc_inq_nvars(id, &a));
        R(nc_inq_natts(id, &a));
        R(nc_inq_unlimdim(id, &a));
        R(nc_inq_unlimdims(id, &a, &b));
        R(nc_inq_format(id, &a));
        R(nc_inq_format_extended(id, &a, &b));
        R(nc_set_fill(id, NC_FILL, &a));
        R(nc_inq_path(id, &len, path));
        R(nc_set_base_pe(id, 0));
        R(nc_inq_base_pe(id, &a));
        ints("untouched", (int[]){a, b, c, d}, 4);
    }
}

static void modes(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        int nc = -77, d = -77, v = -77, fill = -77, ro = -77;
        int data[3] = {1, 2, 3};
        char *path = path_of("modes", FORMATS[f].name);
        note("format %s", FORMATS[f].name);
        R(nc_create(path, FORMATS[f].flags, &nc));
        R(nc_redef(nc));
        R(nc_sync(nc));
        R(nc_def_dim(nc, "x", 3, &d));
        R(nc_def_var(nc, "v", NC_INT, 1, &d, &v));
        R(nc_put_var_int(nc, v, data));
        R(nc_get_var_int(nc, v, data));
        R(nc_set_fill(nc, NC_NOFILL, &fill));
        ints("fill", &fill, 1);
        R(nc_set_fill(nc, NC_FILL, &fill));
        ints("fill", &fill, 1);
        R(nc_set_fill(nc, 77, &fill));
        R(nc_set_fill(nc, NC_FILL, NULL));
        R(nc_enddef(nc));
        R(nc_enddef(nc));
        R(nc__enddef(nc, 0, 4, 0, 4));
        R(nc_put_var_int(nc, v, data));
        R(nc_sync(nc));
        R(nc_redef(nc));
        R(nc_sync(nc));
        R(nc_redef(nc));
        R(nc_get_var_int(nc, v, data));
        R(nc_enddef(nc));
        R(nc_inq(nc, NULL, NULL, NULL, NULL));
        R(nc_inq_unlimdim(nc, NULL));
        R(nc_inq_unlimdims(nc, NULL, NULL));
        R(nc_inq_format(nc, NULL));
        R(nc_inq_format_extended(nc, NULL, NULL));
        R(nc_inq_path(nc, NULL, NULL));
        size_t len = 77;
        char got[300];
        poison(got);
        R(nc_inq_path(nc, &len, got));
        sizes("len", &len, 1);
        text("path", got, sizeof got);
        R(nc_open(path, NC_NOWRITE, &ro));
        R(nc_redef(ro));
        R(nc_enddef(ro));
        R(nc_sync(ro));
        R(nc_set_fill(ro, NC_NOFILL, &fill));
        R(nc_def_dim(ro, "y", 3, &d));
        R(nc_put_var_int(ro, 0, data));
        R(nc_put_att_int(ro, NC_GLOBAL, "a", NC_INT, 1, data));
        R(nc_del_att(ro, NC_GLOBAL, "a"));
        R(nc_rename_var(ro, 0, "w"));
        R(nc_rename_dim(ro, 0, "w"));
        R(nc_def_var(ro, "w", NC_INT, 0, NULL, &d));
        R(nc_abort(ro));
        R(nc_close(ro));
        R(nc_set_base_pe(nc, 0));
        R(nc_set_base_pe(nc, 1));
        R(nc_inq_base_pe(nc, &d));
        ints("pe", &d, 1);
        R(nc_close(nc));
        R(nc_close(nc));
        describe_file(path);
    }
}

static void aborts(void) {
    int nc = -77, d, v;
    int data[2] = {5, 6};
    note("of a file being created");
    R(nc_create("abort.nc", NC_CLOBBER, &nc));
    R(nc_def_dim(nc, "x", 2, &d));
    R(nc_abort(nc));
    presence("abort.nc");
    note("after enddef");
    R(nc_create("abort.nc", NC_CLOBBER, &nc));
    R(nc_def_dim(nc, "x", 2, &d));
    R(nc_def_var(nc, "v", NC_INT, 1, &d, &v));
    R(nc_enddef(nc));
    R(nc_put_var_int(nc, v, data));
    R(nc_abort(nc));
    presence("abort.nc");
    describe_file("abort.nc");
    note("after redef");
    R(nc_open("abort.nc", NC_WRITE, &nc));
    R(nc_redef(nc));
    R(nc_def_dim(nc, "y", 2, &d));
    R(nc_put_att_int(nc, NC_GLOBAL, "a", NC_INT, 2, data));
    R(nc_rename_var(nc, 0, "w"));
    R(nc_abort(nc));
    describe_file("abort.nc");
    note("in data mode of an opened file");
    R(nc_open("abort.nc", NC_WRITE, &nc));
    data[0] = 9;
    R(nc_put_var_int(nc, 0, data));
    R(nc_abort(nc));
    describe_file("abort.nc");
    note("close in define mode keeps definitions");
    R(nc_open("abort.nc", NC_WRITE, &nc));
    R(nc_redef(nc));
    R(nc_def_dim(nc, "z", 4, &d));
    R(nc_def_var(nc, "u", NC_SHORT, 1, &d, &v));
    R(nc_close(nc));
    describe_file("abort.nc");
}

static void refused_files(void) {
    static const char hdf5[] = "\211HDF\r\n\032\n0000000000000000000000000000000000000000000000";
    static const unsigned char cdf1_empty[32] = {'C', 'D', 'F', 1};
    int nc = -77;
    R(nc_open("missing.nc", NC_NOWRITE, &nc));
    R(nc_open("missing.nc", NC_WRITE, &nc));
    R(nc_open("no/such/folder/f.nc", NC_NOWRITE, &nc));
    R(nc_create("no/such/folder/f.nc", NC_CLOBBER, &nc));
    write_file("empty.bin", "", 0);
    R(nc_open("empty.bin", NC_NOWRITE, &nc));
    write_file("short.bin", "CD", 2);
    R(nc_open("short.bin", NC_NOWRITE, &nc));
    write_file("magic.bin", "CDF\001", 4);
    R(nc_open("magic.bin", NC_NOWRITE, &nc));
    write_file("version.bin", "CDF\003aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40);
    R(nc_open("version.bin", NC_NOWRITE, &nc));
    write_file("text.bin", "netcdf x {\n dimensions: y = 3;\n}\n such a text is no data", 57);
    R(nc_open("text.bin", NC_NOWRITE, &nc));
    write_file("hdf5.bin", hdf5, 20);
    note("an HDF5 signature alone");
    if (nc_open("hdf5.bin", NC_NOWRITE, &nc) == NC_NOERR) note("opened");
    for (size_t n = 4; n <= 32; n += 4) {
        write_file("cut.bin", cdf1_empty, n);
        int code = nc_open("cut.bin", NC_NOWRITE, &nc);
        note("%zu bytes of an empty file: %d", n, code);
        if (code == NC_NOERR) nc_close(nc);
    }
    mkdir("folder.nc", 0777);
    R(nc_create("folder.nc", NC_CLOBBER, &nc));
    R(nc_create("folder.nc", NC_NOCLOBBER, &nc));
    rmdir("folder.nc");
    ints("nc", &nc, 1);
    R(nc_delete("missing.nc"));
    R(nc_delete("empty.bin"));
    presence("empty.bin");
    R(nc_create("gone.nc", NC_CLOBBER, &nc));
    R(nc_close(nc));
    R(nc_delete("gone.nc"));
    presence("gone.nc");
    remove("short.bin");
    remove("magic.bin");
}

static void hints(void) {
    int nc = -77, d = -77;
    static const size_t chunks[] = {0, 1, 7, 256, 8192, 1 << 20};
    for (size_t i = 0; i < COUNT(chunks); i++) {
        size_t chunk = chunks[i];
        note("hint %zu", chunk);
        R(nc__create("hints.nc", NC_CLOBBER, 0, &chunk, &nc));
        R(nc_def_dim(nc, "x", 2, &d));
        R(nc_close(nc));
        chunk = chunks[i];
        R(nc__open("hints.nc", NC_NOWRITE, &chunk, &nc));
        R(nc_close(nc));
    }
    R(nc__create("hints.nc", NC_CLOBBER, 100000, NULL, &nc));
    R(nc_close(nc));
    R(nc__open("hints.nc", NC_NOWRITE, NULL, &nc));
    R(nc_close(nc));
    size_t chunk = 512;
    R(nc__create_mp("hints.nc", NC_CLOBBER, 0, 0, &chunk, &nc));
    R(nc_close(nc));
    R(nc__open_mp("hints.nc", NC_NOWRITE, 0, &chunk, &nc));
    R(nc_close(nc));
    R(nc_delete_mp("hints.nc", 0));
    presence("hints.nc");
}

static void many(void) {
    int ids[40];
    for (int i = 0; i < 40; i++) {
        char path[40];
        snprintf(path, sizeof path, "many%d.nc", i);
        ids[i] = -77;
        R(nc_create(path, NC_CLOBBER, &ids[i]));
    }
    for (int i = 0; i < 40; i += 2) R(nc_close(ids[i]));
    note("freed ids are used again");
    for (int i = 0; i < 5; i++) {
        int nc = -77;
        R(nc_open("many0.nc", NC_NOWRITE, &nc));
        ints("id", &nc, 1);
        ids[2 * i] = nc;
    }
    for (int i = 0; i < 5; i++) R(nc_close(ids[2 * i]));
    for (int i = 1; i < 40; i += 2) R(nc_close(ids[i]));
    ints("ids", ids, 40);
    for (int i = 0; i < 40; i++) {
        char path[40];
        snprintf(path, sizeof path, "many%d.nc", i);
        remove(path);
    }
}

static void messages(void) {
    for (int code = -200; code <= 40; code++) printf("%d: nc_strerror %s\n", code, nc_strerror(code));
}

/* Formats of others: by their first bytes, in files of several lengths, by every flag that may ask for one. Those that
 * both libraries could read if they were built with them are "not built", the others no netCDF files. */
static void foreign_formats(void) {
    static const struct {
        const char *name, *start;
        size_t n;
    } formats[] = {{"HDF4", "\016\003\023\001", 4}, {"GRIB", "GRIB\0\0\0\002", 8}, {"ZIP", "PK\003\004", 4},
                   {"PNG", "\x89PNG\r\n\x1a\n", 8}, {"gzip", "\x1f\x8b\010\0", 4}, {"CDF-0", "CDF\0", 4}};
    static const int modes[] = {NC_NOWRITE, NC_WRITE, NC_SHARE, NC_DISKLESS, NC_MMAP, NC_MPIIO,
                                NC_CLASSIC_MODEL, NC_64BIT_DATA, NC_UDF0, NC_UDF1};
    static const size_t lengths[] = {4, 7, 8, 9, 512, 2000};
    static char bytes[2000];
    for (size_t f = 0; f < COUNT(formats); f++) {
        for (size_t at = 0; at <= 512; at += 512) {
            memset(bytes, 0, sizeof bytes);
            memcpy(bytes + at, formats[f].start, formats[f].n);
            for (size_t l = 0; l < COUNT(lengths); l++) {
                if (lengths[l] < at + formats[f].n) continue;
                write_file("foreign.bin", bytes, lengths[l]);
                for (size_t m = 0; m < COUNT(modes); m++) {
                    int nc = -77;
                    note("%s at %zu, %zu bytes, mode 0x%x", formats[f].name, at, lengths[l], modes[m]);
                    if (R(nc_open("foreign.bin", modes[m], &nc)) == NC_NOERR) R(nc_close(nc));
                }
            }
        }
    }
    remove("foreign.bin");
}

int main(void) {
    creation_flags();
    default_formats();
    bad_ids();
    modes();
    aborts();
    refused_files();
    foreign_formats();
    hints();
    many();
    messages();
    return 0;
}
