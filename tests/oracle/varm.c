/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Mapped transfers: transposing, strided, overlapping and senseless maps, in several types. */
#include "harness.h"

static const ptrdiff_t MAPS[][3] = {{12, 4, 1}, {1, 2, 6}, {4, 12, 1}, {1, 1, 1}, {0, 0, 0}, {24, 8, 2}, {12, 4, 2}, {6, 1, 2}};
static const size_t STARTS[][3] = {{0, 0, 0}, {1, 0, 2}, {0, 2, 0}, {2, 0, 0}, {0, 3, 0}};
static const size_t COUNTS[][3] = {{2, 3, 4}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, {2, 4, 1}, {3, 1, 1}};
static const ptrdiff_t STRIDES[][3] = {{1, 1, 1}, {1, 2, 3}, {2, 1, 2}, {0, 1, 1}, {1, -1, 1}};

#define BOTH(fam, T, f, P)                                                                        \
    static int both_##fam(int nc, int v, const size_t *start, const size_t *count,                \
                           const ptrdiff_t *stride, const ptrdiff_t *map) {                       \
        T in[200], out[200];                                                                      \
        poison(out);                                                                              \
        /* what a transfer that fails did before is not compared, see exceptions.txt */           \
        if (R(nc_get_varm_##fam(nc, v, start, count, stride, map, out)) == NC_NOERR)              \
            bytes("out", out, 48 * sizeof(T));                                                    \
        for (int i = 0; i < 200; i++) in[i] = (T)(i % 100);                                       \
        return R(nc_put_varm_##fam(nc, v, start, count, stride, map, in));                        \
    }
NUMERIC_FAMILIES(BOTH)

/* Two rows or records of zeros in a 3 x 4 plane, text and a scalar beside them. */
static int fresh(const char *path, int flags, int record) {
    int nc, dims[3], id, zeros[24] = {0};
    nc_create(path, flags, &nc);
    nc_def_dim(nc, "a", record ? NC_UNLIMITED : 2, &dims[0]);
    nc_def_dim(nc, "b", 3, &dims[1]);
    nc_def_dim(nc, "c", 4, &dims[2]);
    nc_def_var(nc, "v", NC_INT, 3, dims, &id);
    nc_def_var(nc, "t", NC_CHAR, 3, dims, &id);
    nc_def_var(nc, "s", NC_INT, 0, NULL, &id);
    nc_enddef(nc);
    for (int i = 0; i < 24; i++) zeros[i] = 50 + i;
    nc_put_vara_int(nc, 0, (size_t[]){0, 0, 0}, (size_t[]){2, 3, 4}, zeros);
    return nc;
}

static void all_maps(const char *path, int flags, int record) {
    unsigned char base[24 * 8];
    for (size_t s = 0; s < COUNT(STARTS); s++)
        for (size_t c = 0; c < COUNT(COUNTS); c++)
            for (size_t k = 0; k <= COUNT(STRIDES); k++)
                for (size_t m = 0; m <= COUNT(MAPS); m++) {
                    const ptrdiff_t *stride = k ? STRIDES[k - 1] : NULL, *map = m ? MAPS[m - 1] : NULL;
                    int nc = fresh(path, flags, record), code;
                    note("start %zu count %zu stride %zu map %zu", s, c, k, m);
                    if (m % 3 == 0) code = both_double(nc, 0, STARTS[s], COUNTS[c], stride, map);
                    else if (m % 3 == 1) code = both_short(nc, 0, STARTS[s], COUNTS[c], stride, map);
                    else code = both_int(nc, 0, STARTS[s], COUNTS[c], stride, map);
                    if (code == NC_NOERR) {
                        size_t len = 77;
                        poison(base);
                        R(nc_get_vara(nc, 0, (size_t[]){0, 0, 0}, (size_t[]){2, 3, 4}, base));
                        bytes("all", base, 96);
                        R(nc_inq_dimlen(nc, 0, &len));
                        sizes("records", &len, 1);
                    }
                    nc_close(nc);
                }
}

int main(void) {
    for (size_t f = 0; f < COUNT(FORMATS); f++)
        for (int record = 0; record < 2; record++) {
            int nc, v = 0, text_var = 1, scalar = 2, d, zeros[60] = {0};
            char letters[24], out[50];
            char *path = path_of(record ? "varmrec" : "varm", FORMATS[f].name);
            note("format %s record %d", FORMATS[f].name, record);
            all_maps(path, FORMATS[f].flags, record);
            nc = fresh(path, FORMATS[f].flags, record);
            note("every family once");
#define ONCE(fam, T, f, P) both_##fam(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[1]);
            NUMERIC_FAMILIES(ONCE)
            for (int i = 0; i < 24; i++) letters[i] = (char)('a' + i);
            R(nc_put_varm_text(nc, text_var, STARTS[0], COUNTS[0], NULL, MAPS[1], letters));
            poison(out);
            R(nc_get_varm_text(nc, text_var, STARTS[0], COUNTS[0], NULL, MAPS[2], out));
            bytes("out", out, 30);
            R(nc_put_varm_text(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[1], letters));
            R(nc_get_varm_int(nc, text_var, STARTS[0], COUNTS[0], NULL, MAPS[1], zeros));
            note("untyped");
            R(nc_put_varm(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[1], zeros));
            poison(out);
            R(nc_get_varm(nc, v, STARTS[0], COUNTS[1], STRIDES[1], MAPS[2], zeros));
            R(nc_put_varm_int(nc, scalar, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_get_varm_int(nc, scalar, STARTS[0], COUNTS[0], STRIDES[0], MAPS[0], &d));
            R(nc_put_varm_int(nc, 99, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_get_varm_int(nc, -1, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_redef(nc));
            R(nc_get_varm_int(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_put_varm_int(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_get_varm_int(nc, v, STARTS[0], COUNTS[0], STRIDES[3], MAPS[0], zeros));
            R(nc_close(nc));
            describe_file(path);
            R(nc_open(path, NC_NOWRITE, &nc));
            R(nc_put_varm_int(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_get_varm_int(nc, v, STARTS[0], COUNTS[0], NULL, MAPS[0], zeros));
            R(nc_close(nc));
        }
    return 0;
}
