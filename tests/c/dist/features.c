/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What netcdf_meta.h says of the library is true: each feature is tried. A line for each, `NAME yes` or
 * `NAME no`, as nc-config has it; those where the header says otherwise go to standard error and fail it.
 * Called in a folder of its own (../dist.sh). */
#include <netcdf.h>
#include <netcdf_aux.h>
#include <netcdf_dispatch.h>
#include <netcdf_filter.h>
#include <netcdf_meta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wrong, tried;

#define SAYS(name, works) says(#name, NC_HAS_##name, works)

static void says(const char *name, int claim, int works) {
    printf("%s %s\n", name, works ? "yes" : "no");
    tried++;
    if ((claim != 0) == (works != 0)) return;
    fprintf(stderr, "NC_HAS_%s is %d, and it %s\n", name, claim, works ? "works" : "does not");
    wrong++;
}

/* Of netcdf_par.h, which wants MPI; communicator and information as numbers. */
extern int nc_create_par_fortran(const char *path, int cmode, int comm, int info, int *ncidp);

static int creates_parallel(int mode) {
    int nc = -1;
    return nc_create_par_fortran("parallel.nc", mode, 0, 0, &nc) != NC_ENOPAR;
}

/* Whether a path is opened for what it is: it may be missing or out of reach. */
static int opens(const char *path) {
    int nc = -1, answer = nc_open(path, NC_NOWRITE, &nc);
    if (answer == NC_NOERR) nc_close(nc);
    return answer != NC_ENOTBUILT && answer != NC_EINVAL;
}

static int creates(const char *path, int mode) {
    int nc = -1;
    if (nc_create(path, mode, &nc) != NC_NOERR) return 0;
    return nc_close(nc) == NC_NOERR;
}

enum { N = 4096 };
static float data[N], back[N];

/* A variable in chunks with what `define` gives it: its values come back, and its chunks are smaller. */
static int packs(int (*define)(int, int)) {
    int nc = -1, dim, var, ok;
    size_t len = 0;
    for (int i = 0; i < N; i++) data[i] = (float)(i / 64);
    memset(back, 0, sizeof back);
    if (nc_create("packed.nc", NC_NETCDF4, &nc)) return 0;
    nc_def_dim(nc, "x", N, &dim);
    nc_def_var(nc, "v", NC_FLOAT, 1, &dim, &var);
    ok = define(nc, var) == NC_NOERR && nc_put_var_float(nc, var, data) == NC_NOERR;
    ok = nc_close(nc) == NC_NOERR && ok;
    FILE *file = fopen("packed.nc", "rb");
    if (file) {
        fseek(file, 0, SEEK_END);
        len = (size_t)ftell(file);
        fclose(file);
    }
    if (nc_open("packed.nc", NC_NOWRITE, &nc)) return 0;
    ok = ok && nc_get_var_float(nc, 0, back) == NC_NOERR;
    nc_close(nc);
    return ok && len < sizeof data && memcmp(data, back, sizeof data) == 0;
}
static int szip(int nc, int var) { return nc_def_var_szip(nc, var, 32, 16); }
static int zstd(int nc, int var) { return nc_def_var_zstandard(nc, var, 3); }
static int bzip2(int nc, int var) { return nc_def_var_bzip2(nc, var, 9); }
static int blosc(int nc, int var) { return nc_def_var_blosc(nc, var, BLOSC_LZ4, 5, 0, BLOSC_SHUFFLE); }
static int several(int nc, int var) {
    unsigned level = 4, ids[8];
    size_t n = 0;
    int answer = nc_def_var_filter(nc, var, H5Z_FILTER_SHUFFLE, 0, NULL);
    if (!answer) answer = nc_def_var_filter(nc, var, H5Z_FILTER_DEFLATE, 1, &level);
    if (!answer) answer = nc_inq_var_filter_ids(nc, var, &n, ids);
    return answer ? answer : n == 2 ? NC_NOERR : NC_EFILTER;
}

static int quantizes(void) {
    int nc = -1, dim, var, mode = -1, digits = -1, ok;
    float value = 1.23456789f, got = 0;
    if (nc_create("quantized.nc", NC_NETCDF4, &nc)) return 0;
    nc_def_dim(nc, "x", 1, &dim);
    nc_def_var(nc, "v", NC_FLOAT, 1, &dim, &var);
    ok = nc_def_var_quantize(nc, var, NC_QUANTIZE_BITGROOM, 3) == NC_NOERR &&
         nc_inq_var_quantize(nc, var, &mode, &digits) == NC_NOERR && digits == 3 &&
         nc_put_var_float(nc, var, &value) == NC_NOERR;
    nc_close(nc);
    if (nc_open("quantized.nc", NC_NOWRITE, &nc)) return 0;
    ok = ok && nc_get_var_float(nc, 0, &got) == NC_NOERR && got != value && got > 1.2f && got < 1.3f;
    nc_close(nc);
    return ok;
}

static int in_memory(int mode) {
    int nc = -1, dim;
    remove("memory.nc");
    if (nc_create("memory.nc", mode, &nc)) return 0;
    int ok = nc_def_dim(nc, "x", 3, &dim) == NC_NOERR && nc_close(nc) == NC_NOERR;
    return ok && (mode & NC_PERSIST || access("memory.nc", F_OK) != 0);
}

/* Values out of range of a classic variable: stored as the fill value, or converted somehow. */
static int erange_fills(void) {
    int nc = -1, dim, var, value = 1000;
    signed char got = 0;
    nc_create("range.nc", NC_CLOBBER, &nc);
    nc_def_dim(nc, "x", 1, &dim);
    nc_def_var(nc, "v", NC_BYTE, 1, &dim, &var);
    nc_enddef(nc);
    if (nc_put_var_int(nc, var, &value) != NC_ERANGE) wrong++;
    nc_get_var_schar(nc, var, &got);
    nc_close(nc);
    return got == NC_FILL_BYTE;
}

static int relaxed_bound(void) {
    int nc = -1, dim, var, value = 0;
    size_t start = 2, count = 0;
    nc_create("bound.nc", NC_CLOBBER, &nc);
    nc_def_dim(nc, "x", 2, &dim);
    nc_def_var(nc, "v", NC_INT, 1, &dim, &var);
    nc_enddef(nc);
    int answer = nc_get_vara_int(nc, var, &start, &count, &value);
    nc_close(nc);
    return answer == NC_NOERR;
}

/* Whether anything is said at the highest level of the log. */
static int logs(void) {
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    if (!freopen("log.txt", "w", stderr)) return -1;
    nc_set_log_level(5);
    creates("logged.nc", NC_NETCDF4);
    nc_set_log_level(-1);
    fflush(stderr);
    long n = ftell(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    return n > 0;
}

int main(void) {
    int id;
    FILE *file = fopen("hdf4.hdf", "wb");
    fwrite("\016\003\023\001\0\0\0\0\0\0\0\0\0\0\0\0", 1, 16, file);
    fclose(file);

    SAYS(NC2, (id = nccreate("two.nc", NC_CLOBBER)) >= 0 && ncclose(id) == 0);
    SAYS(NC4, creates("four.nc", NC_NETCDF4));
    SAYS(HDF5, opens("four.nc"));
    SAYS(HDF4, opens("hdf4.hdf"));
    SAYS(SZIP, nc_inq_filter_avail(0, H5Z_FILTER_SZIP) != NC_ENOFILTER);
    SAYS(SZIP_WRITE, packs(szip));
    SAYS(DAP2, opens("http://127.0.0.1:1/a.nc#mode=dap2"));
    SAYS(DAP4, opens("http://127.0.0.1:1/a.nc#mode=dap4"));
    SAYS(BYTERANGE, opens("http://127.0.0.1:1/a.nc#mode=bytes"));
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
    SAYS(S3, opens("s3://bucket/a.nc#mode=s3,bytes"));
    SAYS(DISKLESS, in_memory(NC_DISKLESS));
    SAYS(MMAP, in_memory(NC_MMAP));
    SAYS(JNA, 0);
    SAYS(PNETCDF, creates_parallel(NC_64BIT_DATA));
    SAYS(PARALLEL4, creates_parallel(NC_NETCDF4));
    SAYS(PARALLEL, creates_parallel(NC_NETCDF4) || creates_parallel(0));
    SAYS(CDF5, creates("five.nc", NC_64BIT_DATA));
    SAYS(ERANGE_FILL, erange_fills());
    SAYS(PAR_FILTERS, creates_parallel(NC_NETCDF4));
    SAYS(NCZARR, creates("file://store#mode=nczarr,file", NC_NETCDF4));
    SAYS(MULTIFILTERS, packs(several));
    SAYS(LOGGING, logs());
    SAYS(QUANTIZE, quantizes());
    SAYS(ZSTD, packs(zstd));
    SAYS(BZ2, packs(bzip2));
    SAYS(BLOSC, packs(blosc));
    SAYS(BENCHMARKS, 0);
    says("RELAX_COORD_BOUND", NC_RELAX_COORD_BOUND, relaxed_bound());

    static NC_Dispatch table;
    table.model = NC_FORMATX_UDF0;
    table.dispatch_version = NC_DISPATCH_VERSION;
    if (nc_def_user_format(NC_UDF0, &table, NULL)) {
        fprintf(stderr, "NC_DISPATCH_VERSION %d is not taken\n", NC_DISPATCH_VERSION);
        wrong++;
    }
    if (strncmp(nc_inq_libvers(), NC_VERSION, strlen(NC_VERSION)) != 0) {
        fprintf(stderr, "NC_VERSION is %s, the library says %s\n", NC_VERSION, nc_inq_libvers());
        wrong++;
    }
    fprintf(stderr, "%d features tried, %d claims wrong\n", tried, wrong);
    return wrong != 0;
}
