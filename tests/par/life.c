/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Lives of files that several ranks write, for who kills, stops and starves them: kills.py.
 *
 *     mpiexec -n N life SCENE FILE FORMAT [NAME=NUMBER ...]
 *
 * FORMAT is 1, 2, 5, 4 or c (the classic model in netCDF-4). Each rank writes lines on a stream of its own, FILE.said.RANK, whose first
 * one has its process. Rank 0 writes what is committed to FILE.told, once nc_sync or nc_close has returned on all ranks:
 *
 *     FILE RECORDS EXTRAS STEP
 *
 * Values follow from where they are: fixed(x) is x, rec(time, x) is 1000 * time + x % 997, stamp(time) is time, and the variables that are added
 * later, extra0 and on, are 10 * x + their number. The attribute `now` is a number of records, `step` one letter many times. Of netCDF-4
 * files `chunk(time, x)` is as `rec`: with `packed` it goes through filters, with 2 ranks put to it alone. With `block` so many records are put at once.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zonda.h>

static int rank, size, mode;
static const char *base;
static FILE *said;
/* What the runner asks for. */
static int who = 0, records = 20, every = 4, width = 64, files = 1, limit = 0, seed = 1, packed = 0, block = 1;

static void say(const char *form, ...) {
    va_list values;
    va_start(values, form);
    vfprintf(said, form, values);
    va_end(values);
    fputc('\n', said);
    fflush(said);
}

/* Ends what must not be; the runner shows the line. */
static void wrong(const char *form, ...) {
    va_list values;
    va_start(values, form);
    fprintf(said, "WRONG ");
    vfprintf(said, form, values);
    fputc('\n', said);
    va_end(values);
    fflush(said);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* A call that failed is said once, with what the library says of it. */
static int failed(const char *call, int code) {
    if (code) say("failed %s %d %s", call, code, nc_zonda_last_error());
    return code;
}

#define TRY(call) do { int code_ = call; if (code_) return failed(#call, code_); } while (0)
#define MUST(call) do { int code_ = call; if (code_) wrong("%s: %d %s", #call, code_, nc_zonda_last_error()); } while (0)

typedef struct File {
    const char *path;
    MPI_Comm team;
    int rank, size, id, time, x, rec, stamp, chunk, n_extras, step;
} File;

/* Waits without holding up the ranks that share its processor, as some MPIs do in a barrier. The library gives others up after
 * ZONDA_PAR_TIMEOUT; so must this, as a rank may be stopped after a call of the library has ended here and before it ends there. */
static int wait_for(MPI_Request *request) {
    const char *seconds = getenv("ZONDA_PAR_TIMEOUT");
    long patience = seconds ? (long)(atof(seconds) * 1e6) : LONG_MAX;
    for (int done = 0; !done; patience -= 200) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done && patience <= 0) {
            say("nobody meets");
            return 1;
        }
        if (!done) usleep(200);
    }
    return 0;
}

static int meet(MPI_Comm team) {
    MPI_Request request;
    MPI_Ibarrier(team, &request);
    return wait_for(&request);
}

static int is_hdf5(void) { return (mode & NC_NETCDF4) != 0; }

static int define(File *f) {
    int id = f->id, dims[2];
    TRY(nc_set_fill(id, NC_FILL, NULL));
    TRY(nc_def_dim(id, "time", NC_UNLIMITED, &f->time));
    TRY(nc_def_dim(id, "x", (size_t)width * (size_t)f->size, &f->x));
    dims[0] = f->time, dims[1] = f->x;
    int fixed;
    TRY(nc_def_var(id, "fixed", NC_INT, 1, &f->x, &fixed));
    TRY(nc_def_var(id, "rec", NC_DOUBLE, 2, dims, &f->rec));
    TRY(nc_def_var(id, "stamp", NC_INT, 1, dims, &f->stamp));
    if (is_hdf5()) {
        size_t chunk[2] = {3, (size_t)(width * f->size / 2 + 1)};
        TRY(nc_def_var(id, "chunk", NC_FLOAT, 2, dims, &f->chunk));
        TRY(nc_def_var_chunking(id, f->chunk, NC_CHUNKED, chunk));
        /* Chunks through filters have owners. */
        if (packed) TRY(nc_def_var_deflate(id, f->chunk, 1, 1, 1));
    }
    int now = 0;
    TRY(nc_put_att_int(id, NC_GLOBAL, "now", NC_INT, 1, &now));
    TRY(nc_put_att_text(id, NC_GLOBAL, "step", 1, "a"));
    TRY(nc_enddef(id));
    size_t start = (size_t)(width * f->rank), count = (size_t)width;
    int *row = malloc(sizeof *row * count);
    for (size_t i = 0; i < count; i++) row[i] = (int)(start + i);
    int code = nc_put_vara_int(id, fixed, &start, &count, row);
    free(row);
    if (code) return failed("nc_put_vara_int", code);
    return 0;
}

/* All puts of these are made by all ranks together. */
static int together(const File *f) {
    TRY(nc_var_par_access(f->id, f->rec, NC_COLLECTIVE));
    TRY(nc_var_par_access(f->id, f->stamp, NC_COLLECTIVE));
    if (is_hdf5()) TRY(nc_var_par_access(f->id, f->chunk, NC_COLLECTIVE));
    return 0;
}

/* One rank's part makes the variable longer, together with all; the others then put theirs alone, as does that one some of its again. */
static int chunk_alone(const File *f, const size_t *start, const size_t *count, const double *rows) {
    const int is_first = (int)start[0] / block % f->size == f->rank;
    const size_t nothing[2] = {0, count[1]}, half[2] = {count[0], (count[1] + 1) / 2};
    TRY(nc_var_par_access(f->id, f->chunk, NC_COLLECTIVE));
    TRY(nc_put_vara_double(f->id, f->chunk, start, is_first ? count : nothing, rows));
    TRY(nc_var_par_access(f->id, f->chunk, NC_INDEPENDENT));
    if (!is_first) TRY(nc_put_vara_double(f->id, f->chunk, start, count, rows));
    else if (count[0] == 1) TRY(nc_put_vara_double(f->id, f->chunk, start, half, rows));
    return 0;
}

/* What this rank has of some records, row after row. */
static double *rows_of(const size_t *start, const size_t *count) {
    double *rows = malloc(sizeof *rows * count[0] * count[1]);
    for (size_t n = 0; n < count[0]; n++)
        for (size_t i = 0; i < count[1]; i++) rows[n * count[1] + i] = 1000.0 * (double)(start[0] + n) + (double)((start[1] + i) % 997);
    return rows;
}

static int record(const File *f, int at) {
    const size_t start[2] = {(size_t)at, (size_t)(width * f->rank)}, count[2] = {(size_t)block, (size_t)width};
    if (at % block == 0) {
        double *rows = rows_of(start, count);
        int code = nc_put_vara_double(f->id, f->rec, start, count, rows);
        if (!code && is_hdf5()) code = packed == 2 ? chunk_alone(f, start, count, rows) : nc_put_vara_double(f->id, f->chunk, start, count, rows);
        free(rows);
        if (code) return failed("nc_put_vara_double", code);
    }
    size_t one[1] = {at % f->size == f->rank};
    TRY(nc_put_vara_int(f->id, f->stamp, start, one, &at));
    return 0;
}

static int tell(File *f, int n) {
    if (meet(f->team)) return 1;
    if (f->rank) return 0;
    char name[4096];
    snprintf(name, sizeof name, "%s.told", base);
    FILE *told = fopen(name, "a");
    if (!told) wrong("%s", name);
    fprintf(told, "%s %d %d %d\n", f->path, n, f->n_extras, f->step);
    fclose(told);
    return 0;
}

/* New definitions: an attribute that gets longer, and sometimes a variable. */
static int more(File *f) {
    char letters[64], name[32];
    int step = f->step + 1, var = -1;
    size_t n = (size_t)(step % 60 + 1);
    memset(letters, 'a' + step % 26, n);
    TRY(nc_redef(f->id));
    TRY(nc_put_att_text(f->id, NC_GLOBAL, "step", n, letters));
    if (step % 2) {
        snprintf(name, sizeof name, "extra%d", f->n_extras);
        TRY(nc_def_var(f->id, name, NC_INT, 1, &f->x, &var));
    }
    TRY(nc_enddef(f->id));
    f->step = step;
    if (var >= 0) {
        size_t start = (size_t)(width * f->rank), count = (size_t)width;
        int *row = malloc(sizeof *row * count);
        for (size_t i = 0; i < count; i++) row[i] = (int)(10 * (start + i)) + f->n_extras;
        int code = nc_put_vara_int(f->id, var, &start, &count, row);
        free(row);
        if (code) return failed("nc_put_vara_int", code);
        f->n_extras++;
    }
    return 0;
}

static int create(File *f, MPI_Comm team, const char *path) {
    memset(f, 0, sizeof *f);
    f->path = path, f->team = team, f->id = -1;
    MPI_Comm_rank(team, &f->rank);
    MPI_Comm_size(team, &f->size);
    MPI_Info info = MPI_INFO_NULL;
    if (packed == 2) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "zonda_independent_filters", "true");
    }
    int code = nc_create_par(path, mode | NC_CLOBBER, team, info, &f->id);
    if (packed == 2) MPI_Info_free(&info);
    TRY(code);
    return 0;
}

static int write_records(File *f, int first, int n) {
    for (int at = first; at < first + n; at++) {
        if (record(f, at)) return 1;
        if ((at + 1) % every) continue;
        int now = at + 1;
        if ((at + 1) % (2 * every) == 0 && more(f)) return 1;
        TRY(nc_put_att_int(f->id, NC_GLOBAL, "now", NC_INT, 1, &now));
        TRY(nc_sync(f->id));
        if (tell(f, at + 1)) return 1;
    }
    return 0;
}

/* A whole life; files after each other. */
static void live(void) {
    static char path[4096];
    for (int n = 0; n < files; n++) {
        File f;
        snprintf(path, sizeof path, "%s.%d.nc", base, n);
        if (create(&f, MPI_COMM_WORLD, path) || define(&f) || together(&f) || write_records(&f, 0, records)) {
            /* What an error leaves can be closed. */
            if (f.id >= 0) {
                int code = nc_close(f.id);
                say("closed %d %s", code, code ? nc_zonda_last_error() : "");
            }
            return;
        }
        MUST(nc_put_att_int(f.id, NC_GLOBAL, "now", NC_INT, 1, &records));
        MUST(nc_close(f.id));
        tell(&f, records);
        /* Files that are whole are judged at once in a small sample, so that they do not fill the disk. */
        if (n > 3 && rank == 0) {
            char old[4096];
            snprintf(old, sizeof old, "%s.%d.nc", base, n - 3);
            unlink(old);
        }
    }
    say("closed 0 ");
}

/* Goes on with a file that another life left. */
static void resume(void) {
    File f;
    memset(&f, 0, sizeof f);
    f.path = base, f.team = MPI_COMM_WORLD, f.rank = rank, f.size = size;
    MUST(nc_open_par(base, NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &f.id));
    size_t n;
    MUST(nc_inq_dimid(f.id, "time", &f.time));
    MUST(nc_inq_dimid(f.id, "x", &f.x));
    MUST(nc_inq_dimlen(f.id, f.time, &n));
    MUST(nc_inq_varid(f.id, "rec", &f.rec));
    MUST(nc_inq_varid(f.id, "stamp", &f.stamp));
    if (is_hdf5()) MUST(nc_inq_varid(f.id, "chunk", &f.chunk));
    MUST(together(&f));
    /* Records that were not committed are written again. */
    for (int at = n > 3 ? (int)n - 3 : 0; at < (int)n + 5; at++) MUST(record(&f, at));
    MUST(nc_close(f.id));
    tell(&f, (int)n + 5);
    say("closed 0 ");
}

/* The same on all ranks. */
static int same(const char *what, int code) {
    int both[2] = {code, -code}, most[2];
    MPI_Request request;
    MPI_Iallreduce(both, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    wait_for(&request);
    if (code || strcmp(what, "put")) say("%s %d %s", what, code, code ? nc_zonda_last_error() : "");
    if (most[0] != -most[1]) wrong("%s gives %d here, and %d to %d elsewhere", what, code, -most[1], most[0]);
    return code;
}

/* Files that must not get longer, by the limit of a process or that of the disk. */
static void full(void) {
    File f;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit most = {(rlim_t)limit, RLIM_INFINITY};
    if (limit && (who < 0 || who == rank)) setrlimit(RLIMIT_FSIZE, &most);
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f)) wrong("begins badly");
    int at, code = 0;
    for (at = 0; at < records && !code; at++) {
        size_t start[2] = {(size_t)at, (size_t)(width * rank)}, count[2] = {1, (size_t)width};
        double *row = malloc(sizeof *row * count[1]);
        for (size_t i = 0; i < count[1]; i++) row[i] = 1000.0 * at + (double)((start[1] + i) % 997);
        code = same("put", nc_put_vara_double(f.id, f.rec, start, count, row));
        if (!code && is_hdf5()) code = same("put", nc_put_vara_double(f.id, f.chunk, start, count, row));
        free(row);
        size_t one[1] = {at % size == rank};
        if (!code) code = same("put", nc_put_vara_int(f.id, f.stamp, start, one, &at));
        if (code || (at + 1) % every) continue;
        code = same("sync", nc_sync(f.id));
        if (!code) tell(&f, at + 1);
    }
    if (!code) wrong("the disk is not full after %d records", at);
    same("sync after it", nc_sync(f.id));
    same("close", nc_close(f.id));
    /* The process can still write files. */
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
}

/* The same where the header does not fit. */
static void full_enddef(void) {
    File f;
    signal(SIGXFSZ, SIG_IGN);
    if (create(&f, MPI_COMM_WORLD, base) || define(&f)) wrong("begins badly");
    MUST(nc_sync(f.id));
    tell(&f, 0);
    struct stat now;
    MUST(stat(base, &now));
    struct rlimit most = {(rlim_t)now.st_size + 100, RLIM_INFINITY};
    meet(MPI_COMM_WORLD);
    if (who < 0 || who == rank) setrlimit(RLIMIT_FSIZE, &most);
    MUST(nc_redef(f.id));
    for (int n = 0; n < 40; n++) {
        char name[300];
        memset(name, 'n', sizeof name);
        snprintf(name + 200, sizeof name - 200, "%d", n);
        int var;
        MUST(nc_def_var(f.id, name, NC_DOUBLE, 1, &f.x, &var));
    }
    if (!same("enddef", nc_enddef(f.id))) say("it fits");
    same("close", nc_close(f.id));
}

/* What ranks put alone is not lost by a commit and a close that meet the limit of a file's length: they can be made again. */
static void full_alone(void) {
    File f;
    signal(SIGXFSZ, SIG_IGN);
    packed = 2;
    if (!is_hdf5()) mode = NC_NETCDF4;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, 2 * every)) wrong("begins badly");
    const size_t start[2] = {(size_t)(2 * every), (size_t)(width * rank)}, count[2] = {(size_t)every, (size_t)width}, nothing[2] = {0, (size_t)width};
    double *rows = rows_of(start, count), *found = malloc(sizeof *found * count[0] * count[1]);
    MUST(nc_put_vara_double(f.id, f.rec, start, count, rows));
    MUST(nc_var_par_access(f.id, f.chunk, NC_COLLECTIVE));
    MUST(nc_put_vara_double(f.id, f.chunk, start, rank == 0 ? count : nothing, rows));
    for (int at = 2 * every; at < 3 * every; at++) MUST(nc_put_vara_int(f.id, f.stamp, (size_t[]){(size_t)at}, (size_t[]){at % size == rank}, &at));
    int now = 3 * every;
    MUST(nc_put_att_int(f.id, NC_GLOBAL, "now", NC_INT, 1, &now));
    MUST(nc_sync(f.id));
    MUST(nc_var_par_access(f.id, f.chunk, NC_INDEPENDENT));
    meet(MPI_COMM_WORLD);
    /* Chunks go behind the definitions, into space that others left or not. */
    if (who < 0 || who == rank) setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, RLIM_INFINITY});
    for (int n = 0; n < 2; n++) {
        if (rank) MUST(nc_put_vara_double(f.id, f.chunk, start, count, rows));
        if (!same("sync", nc_sync(f.id))) say("it fits");
        MUST(nc_get_vara_double(f.id, f.chunk, start, count, found));
        if (memcmp(rows, found, sizeof *found * count[0] * count[1])) wrong("what was put alone is gone after nc_sync");
    }
    const int code = same("close", nc_close(f.id));
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    meet(MPI_COMM_WORLD);
    if (code && same("close again", nc_close(f.id))) wrong("it cannot be closed where there is room");
    tell(&f, 3 * every);
    free(rows);
    free(found);
}

/* From now on one rank has only so much more memory. */
static void end_memory(void) {
    long pages = 0;
    if (who != rank) return;
    FILE *now = fopen("/proc/self/statm", "r");
    if (!now || fscanf(now, "%ld", &pages) != 1) wrong("no statm");
    fclose(now);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)limit;
    setrlimit(RLIMIT_AS, &(struct rlimit){most, RLIM_INFINITY});
}

/* Memory of one rank ends in puts of short runs, which ranks send each other: all learn that, and can put again. */
static void memory_put(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f)) wrong("begins badly");
    const size_t start[2] = {0, (size_t)(width * rank)}, count[2] = {(size_t)records, (size_t)width};
    double *rows = rows_of(start, count);
    int *stamps = malloc(sizeof *stamps * (size_t)records);
    for (int at = 0; at < records; at++) stamps[at] = at;
    /* What all ranks do alike has to find memory on all: the variables have their length before. */
    const size_t last[2] = {(size_t)records - 1, start[1]}, one[2] = {1, count[1]};
    const double *last_row = rows + count[1] * last[0];
    MUST(nc_put_vara_double(f.id, f.rec, last, one, last_row));
    if (is_hdf5()) MUST(nc_put_vara_double(f.id, f.chunk, last, one, last_row));
    MUST(nc_sync(f.id));
    end_memory();
    int code = same("column", nc_put_vara_double(f.id, f.rec, start, count, rows));
    if (is_hdf5()) same("column", nc_put_vara_double(f.id, f.chunk, start, count, rows));
    setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    if (code) MUST(nc_put_vara_double(f.id, f.rec, start, count, rows));
    if (is_hdf5()) MUST(nc_put_vara_double(f.id, f.chunk, start, count, rows));
    MUST(nc_put_vara_int(f.id, f.stamp, (size_t[]){0}, (size_t[]){rank == 0 ? (size_t)records : 0}, stamps));
    MUST(nc_close(f.id));
    tell(&f, records);
    free(stamps);
    free(rows);
}

/* Memory of one rank ends. */
static void memory(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, 2 * every)) wrong("begins badly");
    /* Too much for that rank, which has the caller's copy already; the others learn of it when definitions end. */
    size_t n = (size_t)limit * 2;
    char *text = calloc(n, 1);
    end_memory();
    MUST(nc_redef(f.id));
    int code = nc_put_att_text(f.id, NC_GLOBAL, "large", n, text);
    say("put_att %d %s", code, code ? nc_zonda_last_error() : "");
    if (who == rank && !code) wrong("an attribute of %zu bytes has room in %d", n, limit);
    free(text);
    same("enddef", nc_enddef(f.id));
    same("close", nc_close(f.id));
    if (who == rank) setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
}

/* One rank cannot open another file: all learn that, and can when it can. */
static void descriptors(void) {
    File f;
    struct rlimit now;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, 2 * every)) wrong("fails");
    MUST(nc_close(f.id));
    int next = dup(0), id, code;
    close(next);
    getrlimit(RLIMIT_NOFILE, &now);
    if (who == rank) setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, now.rlim_max});
    char other[4096];
    snprintf(other, sizeof other, "%s.other.nc", base);
    code = same("create", nc_create_par(other, mode | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
    if (!code) wrong("a file is created without a descriptor");
    code = same("open", nc_open_par(base, NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
    if (!code) wrong("a file is opened without a descriptor");
    setrlimit(RLIMIT_NOFILE, &now);
    MUST(nc_open_par(base, NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
    MUST(nc_close(id));
    MUST(nc_create_par(other, mode | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &id));
    MUST(nc_close(id));
}

/* The program ends without a close: by MPI_Finalize and return, or by exit. */
static int begun(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, records)) wrong("fails");
    MUST(record(&f, records));
    return f.id;
}

static void unclosed(void) {
    begun();
    if (limit) {
        /* No MPI_Finalize either. */
        say("ends");
        exit(0);
    }
}

/* One rank ends by itself, the others close. */
static void deserted(void) {
    int id = begun();
    meet(MPI_COMM_WORLD);
    if (rank == who) exit(limit);
    int code = nc_close(id);
    say("closed %d %s", code, code ? nc_zonda_last_error() : "");
}

/* One rank goes to MPI_Finalize, the others close first: with ZONDA_PAR_TIMEOUT they get there, too. */
static void finalized(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, records)) wrong("fails");
    if (rank == who) return;
    int code = nc_close(f.id);
    say("closed %d %s", code, code ? nc_zonda_last_error() : "");
    if (code == 0) wrong("nc_close succeeds without rank %d", who);
}

/* Definitions that differ make enddef fail, and the file can be closed. */
static void differing(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, 2 * every)) wrong("fails");
    int var;
    MUST(nc_redef(f.id));
    MUST(nc_def_var(f.id, rank == who ? "mine" : "ours", NC_INT, 1, &f.x, &var));
    if (!same("enddef", nc_enddef(f.id))) wrong("enddef succeeds");
    same("close", nc_close(f.id));
    /* The number is free again. */
    if (nc_close(f.id) != NC_EBADID) wrong("it is still open");
}

static char *named(const char *suffix) {
    char *name = malloc(strlen(base) + strlen(suffix) + 40);
    sprintf(name, "%s%s", base, suffix);
    return name;
}

/* Files of each rank alone beside files of all, and of halves of the ranks, in an order of each rank's own. */
static void beside(void) {
    File all, half, alone, copy;
    char name[40];
    MPI_Comm halves, again;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    snprintf(name, sizeof name, ".alone%d.nc", rank);
    char *of_alone = named(name);
    snprintf(name, sizeof name, ".half%d.nc", rank % 2);
    char *of_half = named(name), *of_all = named(".all.nc"), *of_copy = named(".copy.nc");
    if (rank % 2 && (create(&alone, MPI_COMM_SELF, of_alone) || define(&alone))) wrong("alone");
    if (create(&all, MPI_COMM_WORLD, of_all) || define(&all) || together(&all)) wrong("all");
    if (!(rank % 2) && (create(&alone, MPI_COMM_SELF, of_alone) || define(&alone))) wrong("alone");
    if (create(&half, halves, of_half) || define(&half) || together(&half) || together(&alone)) wrong("half");
    if (create(&copy, again, of_copy)) wrong("copy");
    /* A communicator may be freed while files have it. */
    MPI_Comm_free(&again);
    copy.team = MPI_COMM_WORLD;
    if (define(&copy) || together(&copy)) wrong("copy");
    for (int at = 0; at < records; at++) {
        /* How often a rank writes its own file is its own affair. */
        for (int n = 0; n <= rank; n++) MUST(record(&alone, at * (rank + 1) + n));
        if (at % 2) MUST(record(&half, at));
        MUST(record(&all, at));
        if (rank % 2) MUST(nc_sync(alone.id));
        if (!(at % 2)) MUST(record(&half, at));
        MUST(record(&copy, at));
        if (at % 3 == 0) MUST(nc_sync(half.id));
        if (at % 4 == 0) MUST(nc_sync(all.id));
    }
    if (rank % 2) MUST(nc_close(half.id));
    MUST(nc_close(alone.id));
    if (!(rank % 2)) MUST(nc_close(half.id));
    MUST(nc_close(copy.id));
    MUST(nc_close(all.id));
    tell(&all, records);
    tell(&copy, records);
    MPI_Comm_free(&halves);
}

/* A child of one rank, which inquires, closes and exits; the rank goes on. */
static void forked(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, every)) wrong("fails");
    fflush(said);
    pid_t child = rank == who ? fork() : -1;
    if (child == 0) {
        /* MPI is the parent's. A call that needs the others fails, and does not wait for them. */
        alarm(20);
        int n = 0, code = nc_inq_nvars(f.id, &n);
        if (code || n < 3) _exit(20);
        if (!nc_sync(f.id)) _exit(21);
        say("child sync %s", nc_zonda_last_error());
        size_t start[2] = {0, 0}, count[2] = {1, 1};
        double zero = -1;
        if (!nc_put_vara_double(f.id, f.rec, start, count, &zero)) _exit(22);
        if (seed % 3 == 0) _exit(0);
        code = nc_close(f.id);
        say("child close %d %s", code, code ? nc_zonda_last_error() : "");
        if (seed % 3 == 1) _exit(0);
        exit(0);
    }
    if (child > 0) {
        int status = 0;
        waitpid(child, &status, 0);
        if (status) wrong("the child ends with 0x%x", (unsigned)status);
    }
    if (write_records(&f, every, every)) wrong("fails after a fork");
    MUST(nc_close(f.id));
    tell(&f, 2 * every);
}

static void *one_thread(void *of) {
    File *f = of;
    for (int at = 0; at < records; at++) {
        MUST(record(f, at));
        if ((at + 1) % every == 0) MUST(nc_sync(f->id));
    }
    return NULL;
}

/* Two threads, each with a file of all ranks. */
static void threads(void) {
    File one, two;
    MPI_Comm again;
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    if (create(&one, MPI_COMM_WORLD, named(".one.nc")) || create(&two, again, named(".two.nc"))) wrong("create");
    if (define(&one) || define(&two) || together(&one) || together(&two)) wrong("define");
    pthread_t other;
    pthread_create(&other, NULL, one_thread, rank % 2 ? &one : &two);
    one_thread(rank % 2 ? &two : &one);
    pthread_join(other, NULL);
    MUST(nc_close(one.id));
    MUST(nc_close(two.id));
    tell(&one, records);
    tell(&two, records);
    MPI_Comm_free(&again);
}

/* One file opened twice: readers always; a second writer is told the same on all ranks. */
static void twice(void) {
    File f;
    if (create(&f, MPI_COMM_WORLD, base) || define(&f) || together(&f) || write_records(&f, 0, every)) wrong("fails");
    MUST(nc_close(f.id));
    tell(&f, every);
    int one, two, n;
    MUST(nc_open_par(base, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &one));
    MUST(nc_open_par(base, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &two));
    MUST(nc_inq_nvars(two, &n));
    MUST(nc_close(one));
    MUST(nc_close(two));
    MUST(nc_open_par(base, NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &one));
    int code = same("second writer", nc_open_par(base, NC_WRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &two));
    if (!code) same("close of the second", nc_close(two));
    same("close of the first", nc_close(one));
}

static const struct { const char *name; void (*run)(void); } scenes[] = {
    {"live", live}, {"resume", resume}, {"full", full}, {"full-enddef", full_enddef}, {"full-alone", full_alone}, {"memory", memory}, {"memory-put", memory_put}, {"unclosed", unclosed}, {"deserted", deserted},
    {"finalized", finalized}, {"differing", differing}, {"beside", beside}, {"forked", forked}, {"threads", threads}, {"descriptors", descriptors}, {"twice", twice},
};

static void asked(const char *text) {
    static const struct { const char *name; int *number; } all[] = {
        {"who", &who}, {"records", &records}, {"every", &every}, {"width", &width}, {"files", &files}, {"limit", &limit}, {"seed", &seed},
        {"packed", &packed}, {"block", &block},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].name);
        if (strncmp(text, all[i].name, n) == 0 && text[n] == '=') *all[i].number = atoi(text + n + 1);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return 64;
    int level;
    MPI_Init_thread(&argc, &argv, strcmp(argv[1], "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    base = argv[2];
    for (int i = 4; i < argc; i++) asked(argv[i]);
    mode = strchr("4c", *argv[3]) ? NC_NETCDF4 : *argv[3] == '5' ? NC_CDF5 : *argv[3] == '2' ? NC_64BIT_OFFSET : 0;
    if (*argv[3] == 'c') mode |= NC_CLASSIC_MODEL;
    char name[4096];
    snprintf(name, sizeof name, "%s.said.%d", base, rank);
    said = fopen(name, "w");
    if (!said) MPI_Abort(MPI_COMM_WORLD, 8);
    say("process %d", (int)getpid());
    int found = 0;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, argv[1])) continue;
        if (level < MPI_THREAD_MULTIPLE && !strcmp(argv[1], "threads")) {
            say("no threads");
        } else {
            scenes[i].run();
        }
        found = 1;
    }
    MPI_Finalize();
    say("ends");
    return found ? 0 : 64;
}
