/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Attributes and variables copied within a file and across formats. */
#include "harness.h"

static void fill_source(const char *path, int flags, nc_type last) {
    int nc, t, x, y, n[5] = {1, 2, 3, 4, 5};
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &t));
    R(nc_def_dim(nc, "x", 3, &x));
    R(nc_def_dim(nc, "y", 5, &y));
    for (nc_type type = NC_BYTE; type <= last; type++) {
        char name[20];
        int v;
        snprintf(name, sizeof name, "f%d", type);
        R(nc_def_var(nc, name, type, 2, (int[]){x, y}, &v));
        if (type != NC_CHAR) R(nc_put_att_int(nc, v, "n", type, 5, n));
        R(nc_put_att_text(nc, v, "c", 4, "text"));
        R(nc_put_att_text(nc, v, "empty", 0, ""));
        snprintf(name, sizeof name, "r%d", type);
        R(nc_def_var(nc, name, type, 2, (int[]){t, y}, &v));
        snprintf(name, sizeof name, "s%d", type);
        R(nc_def_var(nc, name, type, 0, NULL, &v));
    }
    R(nc_put_att_int(nc, NC_GLOBAL, "g", NC_INT, 5, n));
    R(nc_enddef(nc));
    int nvars = 0;
    nc_inq_nvars(nc, &nvars);
    for (int v = 0; v < nvars; v++) {
        char letters[20] = "abcdefghijklmno";
        int numbers[20];
        nc_type type;
        size_t count[2] = {3, 5};
        for (int i = 0; i < 20; i++) numbers[i] = 10 * v + i > 100 ? i : 10 * v + i;
        nc_inq_vartype(nc, v, &type);
        if (type == NC_CHAR) R(nc_put_vara_text(nc, v, (size_t[]){0, 0}, count, letters));
        else R(nc_put_vara_int(nc, v, (size_t[]){0, 0}, count, numbers));
    }
    R(nc_close(nc));
}

static void target(const char *path, int flags, size_t xlen) {
    int nc, d;
    R(nc_create(path, flags, &nc));
    R(nc_def_dim(nc, "y", 5, &d));
    R(nc_def_dim(nc, "t", NC_UNLIMITED, &d));
    R(nc_def_dim(nc, "x", xlen, &d));
    R(nc_close(nc));
}

static void copy_all(const char *from, const char *to) {
    int in, out, nvars = 0;
    R(nc_open(from, NC_NOWRITE, &in));
    R(nc_open(to, NC_WRITE, &out));
    nc_inq_nvars(in, &nvars);
    for (int v = 0; v < nvars; v++) {
        note("variable %d", v);
        R(nc_copy_var(in, v, out));
    }
    R(nc_copy_var(in, -1, out));
    R(nc_copy_var(in, 99, out));
    R(nc_copy_var(99, 0, out));
    R(nc_copy_var(in, 0, 99));
    R(nc_copy_var(in, 0, in));
    R(nc_copy_var(out, 0, out));
    R(nc_copy_var(in, 0, out));
    R(nc_redef(out));
    static const char *const names[] = {"n", "c", "empty", "g", "nope", ""};
    for (size_t i = 0; i < COUNT(names); i++) {
        note("attribute %s", names[i]);
        R(nc_copy_att(in, 0, names[i], out, NC_GLOBAL));
        R(nc_copy_att(in, NC_GLOBAL, names[i], out, 0));
        R(nc_copy_att(in, 99, names[i], out, 0));
        R(nc_copy_att(in, 0, names[i], out, 99));
        R(nc_copy_att(in, 0, names[i], in, 0));
        R(nc_copy_att(in, 0, names[i], in, 1));
        R(nc_copy_att(99, 0, names[i], out, 0));
        R(nc_copy_att(in, 0, names[i], 99, 0));
        R(nc_copy_att(out, 0, names[i], out, 0));
        R(nc_copy_att(out, 0, names[i], out, NC_GLOBAL));
    }
    R(nc_enddef(out));
    R(nc_copy_att(in, 0, "c", out, 0));
    R(nc_copy_att(in, 0, "c", out, 2));
    R(nc_close(in));
    R(nc_close(out));
    describe_file(to);
}

static void data_values(int nc) {
    int numbers[4] = {1, -2, 300, 70000};
    double wide[3] = {1.5, -2.25, 1e30};
    float narrow[2] = {0.1f, -7};
    char letters[3] = {'a', 'b', 0x7f};
    signed char small[2] = {-1, 100};
    unsigned short us[2] = {1, 65535};
    long long big[2] = {-5, 1ll << 60};
    unsigned long long ubig[2] = {5, ~0ull};
    struct {
        nc_type type;
        void *data;
        size_t n;
    } sets[] = {{NC_INT, numbers, 4}, {NC_DOUBLE, wide, 3}, {NC_FLOAT, narrow, 2}, {NC_CHAR, letters, 3},
                {NC_BYTE, small, 2}, {NC_UBYTE, small, 2}, {NC_SHORT, us, 2}, {NC_USHORT, us, 2},
                {NC_UINT, numbers, 4}, {NC_INT64, big, 2}, {NC_UINT64, ubig, 2}, {0, numbers, 1},
                {13, numbers, 1}, {33, numbers, 1}, {-1, numbers, 1}};
    for (size_t i = 0; i < COUNT(sets); i++) {
        char *shown = NULL;
        void *copy = NULL;
        unsigned char direct[64];
        note("type %d", sets[i].type);
        R(nc_dump_data(nc, sets[i].type, sets[i].data, sets[i].n, &shown));
        if (shown) text("shown", shown, 100);
        if (R(nc_copy_data_all(nc, sets[i].type, sets[i].data, sets[i].n, &copy)) == NC_NOERR)
            bytes("copy", copy, sets[i].n);
        poison(direct);
        R(nc_copy_data(nc, sets[i].type, sets[i].data, sets[i].n, direct));
        bytes("direct", direct, 40);
        R(nc_copy_data(nc, sets[i].type, sets[i].data, 0, NULL));
        R(nc_copy_data(nc, sets[i].type, NULL, 1, direct));
        R(nc_reclaim_data(nc, sets[i].type, sets[i].data, sets[i].n));
        R(nc_reclaim_data(nc, sets[i].type, NULL, 0));
        R(nc_reclaim_data(nc, sets[i].type, NULL, 1));
        free(shown);
        if (copy) R(nc_reclaim_data_all(nc, sets[i].type, copy, sets[i].n));
    }
    char *words[3] = {"one", NULL, ""};
    void *copy = NULL;
    R(nc_copy_data_all(nc, NC_STRING, words, 3, &copy));
    char **copied = copy;
    if (copied) note("%s %d \"%s\"", copied[0], copied[1] == NULL, copied[2]);
    R(nc_reclaim_data_all(nc, NC_STRING, copy, 3));
    char **strings = malloc(2 * sizeof(char *));
    strings[0] = strdup("a");
    strings[1] = NULL;
    R(nc_free_string(2, strings));
    free(strings);
    R(nc_free_string(0, NULL));
    nc_vlen_t vlens[2] = {{1, malloc(4)}, {0, NULL}};
    R(nc_free_vlens(2, vlens));
    nc_vlen_t one = {1, malloc(4)};
    R(nc_free_vlen(&one));
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++) {
        char source[100];
        snprintf(source, sizeof source, "source_%s.nc", FORMATS[f].name);
        fill_source(source, FORMATS[f].flags, FORMATS[f].last_type);
        for (size_t g = 0; g < COUNT(FORMATS); g++)
            for (size_t xlen = 2; xlen <= 4; xlen++) {
                char to[100];
                snprintf(to, sizeof to, "%s_to_%s_%zu.nc", FORMATS[f].name, FORMATS[g].name, xlen);
                note("%s", to);
                target(to, FORMATS[g].flags, xlen);
                copy_all(source, to);
            }
    }
    int nc;
    R(nc_open("source_cdf1.nc", NC_NOWRITE, &nc));
    data_values(nc);
    data_values(-1);
    R(nc_close(nc));
    return 0;
}
