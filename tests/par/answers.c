/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a parallel library answers: one case for each run, named by the first argument, in the file that the second one names.
 *
 *     mpiexec -n 2 answers CASE FILE
 *
 * Each rank writes lines "case call: answer" on a stream of its own, FILE.rank, so that they are never mixed. Cases that may hang are
 * cases of their own; who runs this has a limit of time.
 */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_meta.h>
#include <netcdf_mem.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static const char *path, *name;
static FILE *out;

static int say(const char *call, int code) {
    fprintf(out, "%s %s: %d\n", name, call, code);
    fflush(out);
    return code;
}

static void show(const char *what, long long value) {
    fprintf(out, "%s %s = %lld\n", name, what, value);
    fflush(out);
}

#define SAY(call) say(#call, call)

static int create(int mode) {
    int id = -1;
    if (say("create", nc_create_par(path, mode | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &id))) return -1;
    return id;
}

static int reopen(int mode) {
    int id = -1;
    if (say("open", nc_open_par(path, mode, MPI_COMM_WORLD, MPI_INFO_NULL, &id))) return -1;
    return id;
}

/* A file with x(4 * size), made in parallel and closed. */
static int defined(int mode, int nx, int *var) {
    int id = create(mode), dim;
    if (id < 0) return -1;
    if (SAY(nc_def_dim(id, "x", nx, &dim))) return -1;
    if (SAY(nc_def_var(id, "v", NC_INT, 1, &dim, var))) return -1;
    return id;
}

static void serial(int mode) {
    if (rank == 0) {
        int id, dim, var, some[4] = {1, 2, 3, 4};
        nc_create(path, mode | NC_CLOBBER, &id);
        nc_def_dim(id, "x", 4, &dim);
        nc_def_var(id, "v", NC_INT, 1, &dim, &var);
        nc_enddef(id);
        nc_put_var_int(id, var, some);
        nc_close(id);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void extended(int id) {
    int kind = -1, mode = -1, format = -1;
    SAY(nc_inq_format_extended(id, &kind, &mode));
    fprintf(out, "%s format_extended = %d, mode 0x%x\n", name, kind, mode);
    SAY(nc_inq_format(id, &format));
    show("format", format);
}

/* ---- Creating and opening */

static void modes(void) {
    static const struct { const char *name; int mode; } all[] = {
        {"NETCDF4", NC_NETCDF4}, {"NETCDF4|MPIIO", NC_NETCDF4 | NC_MPIIO}, {"NETCDF4|MPIPOSIX", NC_NETCDF4 | 0x4000},
        {"NETCDF4|PNETCDF", NC_NETCDF4 | NC_PNETCDF}, {"NETCDF4|CLASSIC_MODEL", NC_NETCDF4 | NC_CLASSIC_MODEL},
        {"0", 0}, {"PNETCDF", NC_PNETCDF}, {"MPIIO", NC_MPIIO}, {"64BIT_OFFSET", NC_64BIT_OFFSET}, {"64BIT_OFFSET|PNETCDF", NC_64BIT_OFFSET | NC_PNETCDF},
        {"CDF5", NC_CDF5}, {"CDF5|PNETCDF", NC_CDF5 | NC_PNETCDF}, {"NETCDF4|CDF5", NC_NETCDF4 | NC_CDF5}, {"CLASSIC_MODEL", NC_CLASSIC_MODEL},
        {"NETCDF4|WRITE", NC_NETCDF4 | NC_WRITE}, {"NETCDF4|NOFILL", NC_NETCDF4 | NC_NOFILL}, {"NETCDF4|SHARE", NC_NETCDF4 | NC_SHARE},
        {"NETCDF4|LOCK", NC_NETCDF4 | NC_LOCK},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int id = -1, code;
        char label[100];
        snprintf(label, sizeof label, "create %s", all[i].name);
        code = say(label, nc_create_par(path, all[i].mode, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
        if (code == 0) { extended(id); SAY(nc_close(id)); }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void one_mode(int mode) {
    int id = create(mode), file = -1;
    if (id < 0) return;
    extended(id);
    SAY(nc_close(id));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { FILE *f = fopen(path, "r"); file = f != NULL; if (f) fclose(f); show("a file is there", file); }
}
static void diskless(void) { one_mode(NC_NETCDF4 | NC_DISKLESS); }
static void diskless_classic(void) { one_mode(NC_DISKLESS | NC_PNETCDF); }
static void inmemory(void) { one_mode(NC_NETCDF4 | NC_INMEMORY); }
static void mmapped(void) { one_mode(NC_NETCDF4 | NC_MMAP); }
static void null_path(void) { int id; SAY(nc_create_par(NULL, NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); SAY(nc_open_par(NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); }
static void null_id(void) { SAY(nc_create_par(path, NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, NULL)); }
static void null_id_open(void) { serial(NC_NETCDF4); SAY(nc_open_par(path, 0, MPI_COMM_WORLD, MPI_INFO_NULL, NULL)); }
static void null_comm(void) { int id; SAY(nc_create_par(path, NC_NETCDF4, MPI_COMM_NULL, MPI_INFO_NULL, &id)); }
static void null_comm_open(void) { int id; serial(NC_NETCDF4); SAY(nc_open_par(path, 0, MPI_COMM_NULL, MPI_INFO_NULL, &id)); }
static void null_comm_classic(void) { int id; SAY(nc_create_par(path, NC_PNETCDF, MPI_COMM_NULL, MPI_INFO_NULL, &id)); }
static void noclobber(void) {
    int id;
    serial(NC_NETCDF4);
    SAY(nc_create_par(path, NC_NETCDF4 | NC_NOCLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
    serial(0);
    SAY(nc_create_par(path, NC_NOCLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
}
static void self(void) {
    int id = -1, dim, var;
    char own[4096];
    snprintf(own, sizeof own, "%s.self%d", path, rank);
    SAY(nc_create_par(own, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_SELF, MPI_INFO_NULL, &id));
    SAY(nc_def_dim(id, "x", NC_UNLIMITED, &dim));
    SAY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    SAY(nc_enddef(id));
    size_t at = 3;
    SAY(nc_put_var1_int(id, var, &at, &rank));
    SAY(nc_close(id));
}
static void no_folder(void) { int id; SAY(nc_create_par("/nowhere/at/all.nc", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); SAY(nc_create_par("/nowhere/at/all.nc", 0, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); }
static void no_file(void) { int id; SAY(nc_open_par("/nowhere/at/all.nc", 0, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); SAY(nc_open_par("/nowhere/at/all.nc", NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); }
static void no_netcdf(void) {
    int id;
    if (rank == 0) { FILE *f = fopen(path, "w"); fputs("this is no netCDF file at all", f); fclose(f); }
    MPI_Barrier(MPI_COMM_WORLD);
    SAY(nc_open_par(path, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
}

static void opens(int how) {
    static const struct { const char *name; int mode; } all[] = {
        {"0", 0}, {"WRITE", NC_WRITE}, {"MPIIO", NC_MPIIO}, {"MPIPOSIX", 0x4000}, {"PNETCDF", NC_PNETCDF}, {"WRITE|PNETCDF", NC_WRITE | NC_PNETCDF},
        {"NETCDF4", NC_NETCDF4}, {"SHARE", NC_SHARE}, {"DISKLESS", NC_DISKLESS}, {"MMAP", NC_MMAP},
    };
    serial(how);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int id = -1, code;
        char label[100];
        snprintf(label, sizeof label, "open %s", all[i].name);
        code = say(label, nc_open_par(path, all[i].mode, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
        if (code == 0) {
            int four[4] = {0};
            extended(id);
            SAY(nc_get_var_int(id, 0, four));
            show("v[3]", four[3]);
            SAY(nc_put_var_int(id, 0, four));
            SAY(nc_redef(id));
            SAY(nc_close(id));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
static void open_inmemory(void) { int id; serial(NC_NETCDF4); SAY(nc_open_par(path, NC_INMEMORY, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); }
static void open_classic_model(void) { /* the reference dies of a redef that it refuses */
    int id, four[4] = {0};
    serial(NC_NETCDF4);
    SAY(nc_open_par(path, NC_CLASSIC_MODEL, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
    extended(id);
    SAY(nc_get_var_int(id, 0, four));
    SAY(nc_close(id));
}
static void open_nc4(void) { opens(NC_NETCDF4); }
static void open_classic(void) { opens(0); }
static void open_cdf2(void) { opens(NC_64BIT_OFFSET); }
static void open_cdf5(void) { opens(NC_CDF5); }

/* ---- Access */

static void accesses(int id, int var) {
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_var_par_access(id, var, NC_INDEPENDENT));
    SAY(nc_var_par_access(id, var, 2));
    SAY(nc_var_par_access(id, var, -1));
    SAY(nc_var_par_access(id, NC_GLOBAL, NC_COLLECTIVE));
    SAY(nc_var_par_access(id, NC_GLOBAL, NC_INDEPENDENT));
    SAY(nc_var_par_access(id, NC_GLOBAL, 2));
    SAY(nc_var_par_access(id, 99, NC_COLLECTIVE));
    SAY(nc_var_par_access(id, -2, NC_COLLECTIVE));
    SAY(nc_var_par_access(id, 99, 7));
    SAY(nc_var_par_access(id + 1000, var, NC_COLLECTIVE));
}
static void access_nc4(void) { int var, id = defined(NC_NETCDF4, 8, &var); accesses(id, var); SAY(nc_enddef(id)); accesses(id, var); SAY(nc_close(id)); }
static void access_classic(void) { int var, id = defined(NC_PNETCDF, 8, &var); if (id >= 0) { accesses(id, var); SAY(nc_enddef(id)); accesses(id, var); SAY(nc_close(id)); } }
static void access_serial(int mode) {
    int id;
    serial(mode);
    SAY(nc_open(path, 0, &id)); 
    accesses(id, 0);
    SAY(nc_close(id));
}
static void access_serial_nc4(void) { access_serial(NC_NETCDF4); }
static void access_serial_classic(void) { access_serial(0); }
static void access_group(void) {
    int id = create(NC_NETCDF4), group, dim, var;
    SAY(nc_def_dim(id, "x", 4, &dim));
    SAY(nc_def_grp(id, "g", &group));
    SAY(nc_def_var(group, "v", NC_INT, 1, &dim, &var));
    SAY(nc_var_par_access(group, var, NC_COLLECTIVE));
    SAY(nc_var_par_access(group, NC_GLOBAL, NC_COLLECTIVE));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_close(id));
}
static void default_classic(int mode) { /* is a put independent at first? one rank alone puts */
    int var, id = defined(mode, 8, &var);
    size_t at = 2;
    if (id < 0) return;
    SAY(nc_enddef(id));
    if (rank == 0) SAY(nc_put_var1_int(id, var, &at, &size));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) SAY(nc_get_var1_int(id, var, &at, &size));
    SAY(nc_close(id));
}
static void independent_nc4(void) { default_classic(NC_NETCDF4); }
static void independent_classic(void) { default_classic(NC_PNETCDF); }

/* ---- Growth */

static void growth(int mode, int collective, int uneven) {
    int id = create(mode), dims[2], var, row[4] = {1, 2, 3, 4};
    size_t start[2] = {0, 0}, count[2] = {1, 4}, len = 99;
    if (id < 0) return;
    SAY(nc_def_dim(id, "t", NC_UNLIMITED, &dims[0]));
    SAY(nc_def_dim(id, "x", 4, &dims[1]));
    SAY(nc_def_var(id, "v", NC_INT, 2, dims, &var));
    SAY(nc_enddef(id));
    if (collective) SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    start[0] = (size_t)rank;
    if (!uneven || rank == 0) SAY(nc_put_vara_int(id, var, start, count, row));
    SAY(nc_inq_dimlen(id, dims[0], &len));
    show("length before sync", (long long)len);
    SAY(nc_sync(id));
    SAY(nc_inq_dimlen(id, dims[0], &len));
    show("length after sync", (long long)len);
    SAY(nc_close(id));
    MPI_Barrier(MPI_COMM_WORLD);
    SAY(nc_open(path, 0, &id));
    SAY(nc_inq_dimlen(id, dims[0], &len));
    show("length in the file", (long long)len);
    SAY(nc_close(id));
}
static void grow_independent_nc4(void) { growth(NC_NETCDF4, 0, 0); }
static void grow_collective_nc4(void) { growth(NC_NETCDF4, 1, 0); }
static void grow_one_nc4(void) { growth(NC_NETCDF4, 0, 1); }
static void grow_independent_classic(void) { growth(NC_PNETCDF, 0, 0); }
static void grow_collective_classic(void) { growth(NC_PNETCDF, 1, 0); }
static void grow_one_classic(void) { growth(NC_PNETCDF, 0, 1); }

/* A collective call in which one rank puts nothing, and one in which one rank is wrong. */
static void none(int mode) {
    int id = create(mode), dims[2], var, row[4] = {1, 2, 3, 4};
    size_t start[2] = {0, 0}, count[2] = {1, 4}, len = 99;
    if (id < 0) return;
    SAY(nc_def_dim(id, "t", NC_UNLIMITED, &dims[0]));
    SAY(nc_def_dim(id, "x", 4, &dims[1]));
    SAY(nc_def_var(id, "v", NC_INT, 2, dims, &var));
    SAY(nc_enddef(id));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    if (rank) count[0] = count[1] = 0;
    start[0] = rank ? 0 : 2;
    SAY(nc_put_vara_int(id, var, start, count, row));
    SAY(nc_inq_dimlen(id, dims[0], &len));
    show("length", (long long)len);
    SAY(nc_get_vara_int(id, var, start, count, row));
    SAY(nc_close(id));
}
static void nothing_nc4(void) { none(NC_NETCDF4); }
static void nothing_classic(void) { none(NC_PNETCDF); }
static void wrong_start(int mode) {
    int var, id = defined(mode, 8, &var), four[4] = {0};
    size_t start = rank ? 100 : 0, count = 4;
    if (id < 0) return;
    SAY(nc_enddef(id));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_put_vara_int(id, var, &start, &count, four));
    SAY(nc_close(id));
}
static void wrong_start_nc4(void) { wrong_start(NC_NETCDF4); }
static void wrong_start_classic(void) { wrong_start(NC_PNETCDF); }
static void beyond_read(int mode) { /* collective get beyond the records */
    int id = create(mode), dim, var, got = 77;
    size_t at = 5;
    if (id < 0) return;
    SAY(nc_def_dim(id, "t", NC_UNLIMITED, &dim));
    SAY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    SAY(nc_enddef(id));
    SAY(nc_get_var1_int(id, var, &at, &got));
    SAY(nc_close(id));
}
static void beyond_nc4(void) { beyond_read(NC_NETCDF4); }
static void beyond_classic(void) { beyond_read(NC_PNETCDF); }

/* ---- Fill */

static void what_nobody_wrote(int mode, int fillmode, int unlimited) {
    int id = create(mode), dims[2], var, fixed, one = 1, old = -1, no_fill = -1, value = -1;
    int all[8] = {0};
    size_t at[2] = {1, 2}, len = 0;
    if (id < 0) return;
    SAY(nc_set_fill(id, fillmode, &old));
    show("fill mode before", old);
    SAY(nc_def_dim(id, "t", unlimited ? NC_UNLIMITED : 2, &dims[0]));
    SAY(nc_def_dim(id, "x", 4, &dims[1]));
    SAY(nc_def_var(id, "v", NC_INT, 2, dims, &var));
    SAY(nc_def_var(id, "w", NC_INT, 1, dims + 1, &fixed));
    SAY(nc_inq_var_fill(id, var, &no_fill, &value));
    show("no_fill", no_fill);
    SAY(nc_enddef(id));
    SAY(nc_inq_var_fill(id, var, &no_fill, &value));
    show("no_fill in data mode", no_fill);
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    /* Both ranks put one element; seven are nobody's. */
    SAY(nc_put_var1_int(id, var, at, &one));
    SAY(nc_close(id));
    MPI_Barrier(MPI_COMM_WORLD);
    if (SAY(nc_open(path, 0, &id))) return;
    SAY(nc_inq_dimlen(id, dims[0], &len));
    show("length", (long long)len);
    SAY(nc_get_var_int(id, var, all));
    for (int i = 0; i < 8; i++) fprintf(out, "%s v[%d] = %s\n", name, i, all[i] == NC_FILL_INT ? "fill" : all[i] == 1 ? "1" : all[i] == 0 ? "0" : "other");
    SAY(nc_get_var_int(id, fixed, all));
    for (int i = 0; i < 4; i++) fprintf(out, "%s w[%d] = %s\n", name, i, all[i] == NC_FILL_INT ? "fill" : all[i] == 0 ? "0" : "other");
    SAY(nc_close(id));
}
static void fill_nc4(void) { what_nobody_wrote(NC_NETCDF4, NC_FILL, 0); }
static void fill_nc4_records(void) { what_nobody_wrote(NC_NETCDF4, NC_FILL, 1); }
static void nofill_nc4(void) { what_nobody_wrote(NC_NETCDF4, NC_NOFILL, 0); }
static void nofill_nc4_records(void) { what_nobody_wrote(NC_NETCDF4, NC_NOFILL, 1); }
static void fill_classic(void) { what_nobody_wrote(NC_PNETCDF, NC_FILL, 0); }
static void fill_classic_records(void) { what_nobody_wrote(NC_PNETCDF, NC_FILL, 1); }
static void nofill_classic(void) { what_nobody_wrote(NC_PNETCDF, NC_NOFILL, 0); }
static void nofill_classic_records(void) { what_nobody_wrote(NC_PNETCDF, NC_NOFILL, 1); }
static void default_fill(int mode) { /* without a call of nc_set_fill */
    int id = create(mode), dim, var, one = 1, all[8] = {0}, no_fill = -1, value, own, minus = -5;
    size_t at = 2;
    if (id < 0) return;
    SAY(nc_def_dim(id, "x", 4, &dim));
    SAY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    SAY(nc_inq_var_fill(id, var, &no_fill, &value));
    show("no_fill", no_fill);
    SAY(nc_def_var(id, "w", NC_INT, 1, &dim, &own));
    SAY(nc_def_var_fill(id, own, NC_FILL, &minus));
    SAY(nc_enddef(id));
    SAY(nc_put_var1_int(id, var, &at, &one));
    SAY(nc_put_var1_int(id, own, &at, &one));
    SAY(nc_close(id));
    MPI_Barrier(MPI_COMM_WORLD);
    SAY(nc_open(path, 0, &id));
    SAY(nc_get_var_int(id, var, all));
    for (int i = 0; i < 4; i++) fprintf(out, "%s v[%d] = %s\n", name, i, all[i] == NC_FILL_INT ? "fill" : all[i] == 1 ? "1" : all[i] == 0 ? "0" : "other");
    SAY(nc_get_var_int(id, own, all));
    for (int i = 0; i < 4; i++) show("w[i]", all[i]);
    SAY(nc_close(id));
}
static void default_fill_nc4(void) { default_fill(NC_NETCDF4); }
static void default_fill_classic(void) { default_fill(NC_PNETCDF); }

/* ---- Kinds of variables in netCDF-4 */

static void compact(void) {
    int id = create(NC_NETCDF4), dim, var, storage = -1, four[4] = {rank, rank, rank, rank};
    SAY(nc_def_dim(id, "x", 4, &dim));
    SAY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    SAY(nc_def_var_chunking(id, var, NC_COMPACT, NULL));
    SAY(nc_enddef(id));
    SAY(nc_inq_var_chunking(id, var, &storage, NULL));
    show("storage", storage);
    SAY(nc_put_var_int(id, var, four));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_put_var_int(id, var, four));
    SAY(nc_get_var_int(id, var, four));
    SAY(nc_close(id));
}
static void strings(void) {
    int id = create(NC_NETCDF4), dim, var;
    const char *two[] = {"some", "text"};
    char *got[2] = {0};
    SAY(nc_def_dim(id, "x", 2, &dim));
    SAY(nc_def_var(id, "v", NC_STRING, 1, &dim, &var));
    SAY(nc_put_att_string(id, var, "a", 2, two));
    SAY(nc_enddef(id));
    SAY(nc_get_var_string(id, var, got));
    SAY(nc_put_var_string(id, var, two));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_put_var_string(id, var, two));
    SAY(nc_close(id));
}
static void read_strings(void) {
    int id, dim, var;
    const char *two[] = {"some", "text"};
    char *got[2] = {0};
    if (rank == 0) {
        nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id);
        nc_def_dim(id, "x", 2, &dim);
        nc_def_var(id, "v", NC_STRING, 1, &dim, &var);
        nc_put_var_string(id, var, two);
        nc_close(id);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    id = reopen(0);
    SAY(nc_get_var_string(id, 0, got));
    fprintf(out, "%s v[1] = %s\n", name, got[1]);
    SAY(nc_var_par_access(id, 0, NC_COLLECTIVE));
    SAY(nc_get_var_string(id, 0, got));
    SAY(nc_close(id));
}
static void vlens(void) {
    int id = create(NC_NETCDF4), dim, var, some[2] = {1, 2};
    nc_type type;
    nc_vlen_t row[1] = {{2, some}};
    SAY(nc_def_vlen(id, "t", NC_INT, &type));
    SAY(nc_def_dim(id, "x", 1, &dim));
    SAY(nc_def_var(id, "v", type, 1, &dim, &var));
    SAY(nc_put_att(id, var, "a", type, 1, row));
    SAY(nc_enddef(id));
    SAY(nc_put_var(id, var, row));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_put_var(id, var, row));
    SAY(nc_close(id));
}
static void compounds(void) {
    struct { int a; double b; } one = {rank, 2.5};
    int id = create(NC_NETCDF4), dim, var;
    size_t at = (size_t)rank;
    nc_type type;
    SAY(nc_def_compound(id, sizeof one, "t", &type));
    SAY(nc_insert_compound(id, type, "a", 0, NC_INT));
    SAY(nc_insert_compound(id, type, "b", 8, NC_DOUBLE));
    SAY(nc_def_dim(id, "x", (size_t)size, &dim));
    SAY(nc_def_var(id, "v", type, 1, &dim, &var));
    SAY(nc_enddef(id));
    SAY(nc_put_var1(id, var, &at, &one));
    SAY(nc_close(id));
}
static void filtered(int which, int collective) {
    int id = create(NC_NETCDF4), dim, var, four[4] = {rank, rank, rank, rank}, sum[8];
    size_t start = 4 * (size_t)rank, count = 4;
    SAY(nc_def_dim(id, "x", 4 * (size_t)size, &dim));
    SAY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    if (which == 0) SAY(nc_def_var_deflate(id, var, 0, 1, 1));
    if (which == 1) SAY(nc_def_var_deflate(id, var, 1, 0, 0));
    if (which == 2) SAY(nc_def_var_fletcher32(id, var, NC_FLETCHER32));
    SAY(nc_var_par_access(id, var, NC_INDEPENDENT));
    SAY(nc_enddef(id));
    SAY(nc_var_par_access(id, var, collective ? NC_COLLECTIVE : NC_INDEPENDENT));
    SAY(nc_put_vara_int(id, var, &start, &count, four));
    SAY(nc_get_vara_int(id, var, &start, &count, sum));
    show("what was put", sum[0] == rank);
    SAY(nc_close(id));
}
static void deflate_independent(void) { filtered(0, 0); }
static void deflate_collective(void) { filtered(0, 1); }
static void shuffle_independent(void) { filtered(1, 0); }
static void shuffle_collective(void) { filtered(1, 1); }
static void fletcher_independent(void) { filtered(2, 0); }
static void fletcher_collective(void) { filtered(2, 1); }
static void deflate_read(void) {
    int id, dim, var, four[4] = {1, 2, 3, 4}, got[4];
    if (rank == 0) {
        nc_create(path, NC_NETCDF4 | NC_CLOBBER, &id);
        nc_def_dim(id, "x", 4, &dim);
        nc_def_var(id, "v", NC_INT, 1, &dim, &var);
        nc_def_var_deflate(id, var, 1, 1, 4);
        nc_put_var_int(id, var, four);
        nc_close(id);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    id = reopen(NC_WRITE);
    SAY(nc_get_var_int(id, 0, got));
    show("v[3]", got[3]);
    SAY(nc_var_par_access(id, 0, NC_INDEPENDENT));
    SAY(nc_put_var_int(id, 0, four));
    SAY(nc_var_par_access(id, 0, NC_COLLECTIVE));
    SAY(nc_put_var_int(id, 0, four));
    SAY(nc_close(id));
}

/* ---- Modes, other calls */

static void define_mode(int mode) {
    int var, id = defined(mode, 8, &var), four[4] = {0};
    size_t start = 4 * (size_t)rank, count = 4;
    if (id < 0) return;
    SAY(nc_get_vara_int(id, var, &start, &count, four));
    SAY(nc_put_vara_int(id, var, &start, &count, four));
    SAY(nc_enddef(id));
    SAY(nc_enddef(id));
    SAY(nc_put_vara_int(id, var, &start, &count, four));
    SAY(nc_redef(id));
    SAY(nc_redef(id));
    SAY(nc_get_vara_int(id, var, &start, &count, four));
    SAY(nc_sync(id));
    SAY(nc_enddef(id));
    SAY(nc_put_att_int(id, var, "a", NC_INT, 1, four));
    SAY(nc_def_var(id, "w", NC_INT, 0, NULL, &var));
    SAY(nc_sync(id));
    SAY(nc_close(id));
}
static void define_mode_nc4(void) { define_mode(NC_NETCDF4); }
static void define_mode_nc4_classic(void) { define_mode(NC_NETCDF4 | NC_CLASSIC_MODEL); }
static void define_mode_classic(void) { define_mode(NC_PNETCDF); }

static void others(int mode) {
    int var, id = defined(mode, 8, &var), four[4] = {9, 9, 9, 9}, old, nvars = -1;
    size_t start = (size_t)rank, count = 4, len = 99;
    ptrdiff_t stride = 2, map = 1;
    char where[4096] = "";
    if (id < 0) return;
    SAY(nc_enddef(id));
    SAY(nc_inq_path(id, &len, where));
    show("path is the one given", strcmp(where, path) == 0);
    SAY(nc_set_fill(id, NC_NOFILL, &old));
    SAY(nc_put_vars_int(id, var, &start, &count, &stride, four));
    SAY(nc_get_vars_int(id, var, &start, &count, &stride, four));
    SAY(nc_put_varm_int(id, var, &start, &count, &stride, &map, four));
    SAY(nc_get_varm_int(id, var, &start, &count, &stride, &map, four));
    SAY(nc_set_var_chunk_cache(id, var, 100, 7, 0.5f));
    SAY(nc_inq_nvars(id, &nvars));
    show("variables", nvars);
    SAY(nc_redef(id));
    SAY(nc_rename_var(id, var, "renamed"));
    SAY(nc_put_att_text(id, NC_GLOBAL, "title", 5, "hello"));
    SAY(nc_enddef(id));
    SAY(nc_abort(id));
}
static void others_nc4(void) { others(NC_NETCDF4); }
static void others_classic(void) { others(NC_PNETCDF); }
static void aborted(int mode) {
    int var, id = defined(mode, 8, &var);
    if (id < 0) return;
    SAY(nc_abort(id));
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *f = fopen(path, "r");
    show("a file is there", f != NULL);
}
static void abort_nc4(void) { aborted(NC_NETCDF4); }
static void abort_classic(void) { aborted(NC_PNETCDF); }
static void scalar(int mode) {
    int id = create(mode), var, seven = 7 + rank, got = 0;
    if (id < 0) return;
    SAY(nc_def_var(id, "s", NC_INT, 0, NULL, &var));
    SAY(nc_enddef(id));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_put_var_int(id, var, &seven));
    SAY(nc_get_var_int(id, var, &got));
    show("one of them", got == 7 || got == 8);
    SAY(nc_close(id));
}
static void scalar_nc4(void) { scalar(NC_NETCDF4); }
static void scalar_classic(void) { scalar(NC_PNETCDF); }
static void chunk_defaults(void) {
    int id = create(NC_NETCDF4), dims[2], var, other, storage = -1;
    size_t chunks[2] = {0, 0};
    SAY(nc_def_dim(id, "t", NC_UNLIMITED, &dims[0]));
    SAY(nc_def_dim(id, "x", 1000, &dims[1]));
    SAY(nc_def_var(id, "v", NC_INT, 2, dims, &var));
    SAY(nc_def_var(id, "w", NC_INT, 1, dims + 1, &other));
    SAY(nc_enddef(id));
    SAY(nc_inq_var_chunking(id, var, &storage, chunks));
    show("storage", storage);
    show("chunk of t", (long long)chunks[0]);
    show("chunk of x", (long long)chunks[1]);
    SAY(nc_inq_var_chunking(id, other, &storage, chunks));
    show("storage of w", storage);
    SAY(nc_close(id));
}
static void range(int mode) { /* NC_ERANGE on one rank of a collective put */
    int id = create(mode), dim, var;
    size_t start = (size_t)rank, count = 1;
    double value = rank ? 1e10 : 5;
    if (id < 0) return;
    SAY(nc_def_dim(id, "x", (size_t)size, &dim));
    SAY(nc_def_var(id, "v", NC_SHORT, 1, &dim, &var));
    SAY(nc_enddef(id));
    SAY(nc_var_par_access(id, var, NC_COLLECTIVE));
    SAY(nc_put_vara_double(id, var, &start, &count, &value));
    SAY(nc_get_vara_double(id, var, &start, &count, &value));
    SAY(nc_close(id));
}
static void range_nc4(void) { range(NC_NETCDF4); }
static void range_classic(void) { range(NC_PNETCDF); }
static void differing_attribute(void) {
    int var, id = defined(NC_NETCDF4, 8, &var), got = -1;
    SAY(nc_put_att_int(id, NC_GLOBAL, "rank", NC_INT, 1, &rank));
    SAY(nc_enddef(id));
    SAY(nc_close(id));
    MPI_Barrier(MPI_COMM_WORLD);
    SAY(nc_open(path, 0, &id));
    SAY(nc_get_att_int(id, NC_GLOBAL, "rank", &got));
    show("attribute", got);
    SAY(nc_close(id));
}
static void differing_dimension(int mode) {
    int id = create(mode), dim, var;
    if (id < 0) return;
    SAY(nc_def_dim(id, "x", 4 + (size_t)rank, &dim));
    SAY(nc_def_var(id, "v", NC_INT, 1, &dim, &var));
    SAY(nc_enddef(id));
    SAY(nc_close(id));
}
static void differing_nc4(void) { differing_dimension(NC_NETCDF4); }
static void differing_classic(void) { differing_dimension(NC_PNETCDF); }
static void differing_mode(void) { int id; SAY(nc_create_par(path, rank ? NC_NETCDF4 | NC_CLASSIC_MODEL : NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &id)); SAY(nc_close(id)); }
static void finalized(void) { int var, id = defined(NC_NETCDF4, 8, &var); SAY(nc_enddef(id)); MPI_Barrier(MPI_COMM_WORLD); MPI_Finalize(); SAY(nc_close(id)); fclose(out); exit(0); }

static const struct { const char *name; void (*run)(void); } CASES[] = {
#define CASE(f) {#f, f}
    CASE(modes), CASE(diskless), CASE(diskless_classic), CASE(inmemory), CASE(mmapped), CASE(null_path), CASE(null_id), CASE(null_id_open), CASE(null_comm), CASE(null_comm_open),
    CASE(null_comm_classic), CASE(noclobber), CASE(self), CASE(no_folder), CASE(no_file), CASE(no_netcdf), CASE(open_inmemory), CASE(open_classic_model), CASE(open_nc4), CASE(open_classic),
    CASE(open_cdf2), CASE(open_cdf5), CASE(access_nc4), CASE(access_classic), CASE(access_serial_nc4), CASE(access_serial_classic),
    CASE(access_group), CASE(independent_nc4), CASE(independent_classic), CASE(grow_independent_nc4), CASE(grow_collective_nc4),
    CASE(grow_one_nc4), CASE(grow_independent_classic), CASE(grow_collective_classic), CASE(grow_one_classic), CASE(nothing_nc4),
    CASE(nothing_classic), CASE(wrong_start_nc4), CASE(wrong_start_classic), CASE(beyond_nc4), CASE(beyond_classic), CASE(fill_nc4),
    CASE(fill_nc4_records), CASE(nofill_nc4), CASE(nofill_nc4_records), CASE(fill_classic), CASE(fill_classic_records), CASE(nofill_classic),
    CASE(nofill_classic_records), CASE(default_fill_nc4), CASE(default_fill_classic), CASE(compact), CASE(strings), CASE(read_strings),
    CASE(vlens), CASE(compounds), CASE(deflate_independent), CASE(deflate_collective), CASE(shuffle_independent), CASE(shuffle_collective),
    CASE(fletcher_independent), CASE(fletcher_collective), CASE(deflate_read), CASE(define_mode_nc4), CASE(define_mode_nc4_classic),
    CASE(define_mode_classic), CASE(others_nc4), CASE(others_classic), CASE(abort_nc4), CASE(abort_classic), CASE(scalar_nc4), CASE(scalar_classic),
    CASE(chunk_defaults), CASE(range_nc4), CASE(range_classic), CASE(differing_attribute), CASE(differing_nc4), CASE(differing_classic),
    CASE(differing_mode), CASE(finalized),
};

int main(int argc, char **argv) {
    char own[4096];
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) puts(CASES[i].name);
        return 0;
    }
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    name = argv[1];
    path = argv[2];
    snprintf(own, sizeof own, "%s.said.%d", path, rank);
    out = fopen(own, "w");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(CASES[i].name, name) == 0) {
            CASES[i].run();
            fclose(out);
            MPI_Finalize();
            return 0;
        }
    return 2;
}
