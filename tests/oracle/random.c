/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A long random walk through one file after another: definitions, data, modes, renames, copies,
 * reopening. The walk depends on its seed and on codes that both libraries must agree on anyway,
 * and on nothing else; after every step that ends a mode the whole file is digested. */
#include "harness.h"

static uint64_t state;

static unsigned below(unsigned n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

/* In data mode, names keep their lengths: exceptions.txt tells what happens to shortened ones. */
static int defining;

static int may_rename(const char *from, const char *to) {
    return defining || strlen(from) == strlen(to);
}

static const char *name_of(unsigned i) {
    static const char *const names[] = {"a", "bb", "ccc", "temperature", "a long name with blanks", "x1",
                                        "t\xc3\xa9", "zzzz", "lat", "lon", "level", "time"};
    return names[i % COUNT(names)];
}

/* The whole state of the file as one number. */
static void digest(int nc, const char *when) {
    uint64_t hash = 0;
    int nd = 0, nv = 0, na = 0, unlim = 0;
    char name[NC_MAX_NAME + 1];
    static unsigned char raw[1 << 20];
    nc_inq(nc, &nd, &nv, &na, &unlim);
    hash = digest_of(hash, (int[]){nd, nv, na, unlim}, 4 * sizeof(int));
    for (int d = 0; d < nd; d++) {
        size_t len = 0;
        memset(name, 0, sizeof name);
        nc_inq_dim(nc, d, name, &len);
        hash = digest_of(digest_of(hash, name, strlen(name)), &len, sizeof len);
    }
    for (int v = -1; v < nv; v++) {
        nc_type type = 0;
        int dims[NC_MAX_VAR_DIMS], n = 0, natts = na;
        if (v >= 0) {
            nc_inq_var(nc, v, name, &type, &n, dims, &natts);
            hash = digest_of(digest_of(hash, name, strlen(name)), dims, (size_t)n * sizeof(int));
            size_t total = 1, size = 0;
            for (int d = 0; d < n; d++) {
                size_t len = 0;
                nc_inq_dimlen(nc, dims[d], &len);
                total *= len;
            }
            nc_inq_type(nc, type, NULL, &size);
            if (total * size <= sizeof raw) {
                int code = nc_get_var(nc, v, raw);
                hash = digest_of(hash, &code, sizeof code);
                if (code == NC_NOERR) hash = digest_of(hash, raw, total * size);
            }
        }
        for (int a = 0; a < natts; a++) {
            size_t len = 0, size = 0;
            nc_inq_attname(nc, v, a, name);
            nc_inq_att(nc, v, name, &type, &len);
            nc_inq_type(nc, type, NULL, &size);
            nc_get_att(nc, v, name, raw);
            hash = digest_of(digest_of(hash, name, strlen(name)), raw, len * size);
        }
    }
    printf("   digest %s: %016llx (%d dims, %d vars, %d atts)\n", when, (unsigned long long)hash, nd, nv, na);
}

static void put_some(int nc) {
    static double values[4000];
    static char letters[4000];
    int nv = 0, n = 0, dims[NC_MAX_VAR_DIMS], unlim = -1;
    size_t start[8], count[8], total = 1;
    ptrdiff_t stride[8];
    nc_type type = 0;
    nc_inq_nvars(nc, &nv);
    nc_inq_unlimdim(nc, &unlim);
    if (nv == 0) return;
    int v = (int)below((unsigned)nv);
    if (nc_inq_var(nc, v, NULL, &type, &n, dims, NULL) != NC_NOERR) return;
    int strided = below(3) == 0;
    for (int d = 0; d < n; d++) {
        size_t len = 0;
        nc_inq_dimlen(nc, dims[d], &len);
        stride[d] = strided ? 1 + (ptrdiff_t)below(2) : 1;
        start[d] = below(dims[d] == unlim ? 6 : (unsigned)len);
        size_t room = dims[d] == unlim ? 1 + below(3) : (len - start[d] + (size_t)stride[d] - 1) / (size_t)stride[d];
        count[d] = room ? 1 + below((unsigned)room) : 0;
        total *= count[d];
    }
    if (total > COUNT(values)) return;
    for (size_t i = 0; i < total; i++) {
        values[i] = (double)below(120);
        letters[i] = (char)('a' + below(26));
    }
    note("var %d type %d total %zu strided %d", v, type, total, strided);
    if (type == NC_CHAR) R(nc_put_vars_text(nc, v, start, count, stride, letters));
    else if (strided) R(nc_put_vars_double(nc, v, start, count, stride, values));
    else R(nc_put_vara_double(nc, v, start, count, values));
}

static void put_attribute(int nc) {
    int nv = 0, owner;
    double values[12];
    nc_inq_nvars(nc, &nv);
    owner = (int)below((unsigned)nv + 1) - 1;
    const char *name = name_of(below(12));
    size_t n = below(12);
    for (size_t i = 0; i < n; i++) values[i] = below(100);
    note("owner %d name %s n %zu", owner, name, n);
    if (below(4) == 0) R(nc_put_att_text(nc, owner, name, n, "abcdefghijklmnop"));
    else R(nc_put_att_double(nc, owner, name, (nc_type[]){NC_BYTE, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE}[below(5)], n, values));
}

static void walk(unsigned seed, const char *path, int flags, nc_type last, int steps) {
    int nc = -1, nv, nd, id;
    char old[NC_MAX_NAME + 1];
    defining = 1;
    state = seed * 2654435761u + 1;
    note("seed %u %s", seed, path);
    R(nc_create(path, flags, &nc));
    for (int step = 0; step < steps; step++) {
        nv = nd = 0;
        nc_inq(nc, &nd, &nv, NULL, NULL);
        switch (below(20)) {
            case 0: case 1:
                if (R(nc_redef(nc)) == NC_NOERR) defining = 1;
                break;
            case 2: case 3: case 4:
                if (R(nc_enddef(nc)) == NC_NOERR) {
                    defining = 0;
                    digest(nc, "enddef");
                }
                break;
            case 5:
                note("dim %s", name_of(id = (int)below(12)));
                R(nc_def_dim(nc, name_of((unsigned)id), below(5) ? 1 + below(7) : NC_UNLIMITED, NULL));
                break;
            case 6: case 7: {
                int dims[4], n = (int)below(nd ? 4 : 1), unlim = -1;
                nc_type type = 1 + (nc_type)below((unsigned)last);
                nc_inq_unlimdim(nc, &unlim);
                for (int d = 0; d < n; d++) dims[d] = (int)below((unsigned)nd);
                note("var %s type %d rank %d", name_of(id = (int)below(12)), type, n);
                R(nc_def_var(nc, name_of((unsigned)id), type, n, dims, NULL));
                break;
            }
            case 8: case 9:
                put_attribute(nc);
                break;
            case 10:
                if (nd) {
                    note("to %s", name_of(id = (int)below(12)));
                    int d = (int)below((unsigned)nd);
                    nc_inq_dimname(nc, d, old);
                    if (may_rename(old, name_of((unsigned)id))) R(nc_rename_dim(nc, d, name_of((unsigned)id)));
                }
                break;
            case 11:
                if (nv) {
                    note("to %s", name_of(id = (int)below(12)));
                    int v = (int)below((unsigned)nv);
                    nc_inq_varname(nc, v, old);
                    if (may_rename(old, name_of((unsigned)id))) R(nc_rename_var(nc, v, name_of((unsigned)id)));
                }
                break;
            case 12:
                note("del %s", name_of(id = (int)below(12)));
                R(nc_del_att(nc, (int)below((unsigned)nv + 1) - 1, name_of((unsigned)id)));
                break;
            case 13:
                if (below(3) == 0) {
                    R(nc_sync(nc));
                    digest(nc, "sync");
                }
                break;
            case 14:
                if (below(3) == 0) {
                    R(nc_close(nc));
                    R(nc_open(path, NC_WRITE, &nc));
                    defining = 0;
                    digest(nc, "reopened");
                }
                break;
            case 15:
                if (nv > 1) R(nc_copy_att(nc, (int)below((unsigned)nv), name_of(below(12)), nc, (int)below((unsigned)nv + 1) - 1));
                break;
            default:
                put_some(nc);
        }
    }
    R(nc_close(nc));
    R(nc_open(path, NC_NOWRITE, &nc));
    digest(nc, "end");
    R(nc_close(nc));
}

int main(void) {
    for (unsigned seed = 1; seed <= 12; seed++)
        for (size_t f = 0; f < COUNT(FORMATS); f++) {
            char stem[40];
            snprintf(stem, sizeof stem, "walk%u", seed);
            walk(seed * 3 + (unsigned)f, path_of(stem, FORMATS[f].name), FORMATS[f].flags, FORMATS[f].last_type, 300);
        }
    return 0;
}
