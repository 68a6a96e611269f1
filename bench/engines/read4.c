/* read4: a list of hyperslabs read from one variable, or a file opened and asked everything.
 *
 * --op read     each line of --list is start, count and stride of one read (rank numbers each);
 *               --var is read as its own type. --cache BYTES sets the variable's chunk cache.
 *               Reports the time of the first read, which opens the file, and of all
 * --op open     --cycles times open, close
 * --op inquire  --cycles times open, everything there is to ask, close
 * --op strings  the whole of --var, which has strings
 *
 * --threads N shares the reads (or, with --files a,b,c, the files) among N threads.
 * The peak of the process's memory is reported with each line, in KiB, over what it was before.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"
#include <pthread.h>
#include <sys/resource.h>

enum { RANK = 4 };

struct read { size_t start[RANK], count[RANK]; ptrdiff_t stride[RANK]; int strided; };
struct job {
    pthread_t thread;
    const char *file, *var;
    const struct read *reads;
    size_t n_reads, first, step, size, bytes, cache;
    int ncid;
    double seconds;
    uint64_t digest;
};

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* The same in numpy: each word times its place, so that values in the wrong place show. */
static uint64_t digest_values(const void *memory, size_t n, size_t size)
{
    uint64_t sum = 0;
    if (size == 2) for (size_t i = 0; i < n; i++) sum += ((const uint16_t *)memory)[i] * (i % 1021 + 1);
    if (size == 4) for (size_t i = 0; i < n; i++) sum += ((const uint32_t *)memory)[i] * (uint64_t)(i % 1021 + 1);
    if (size == 8) for (size_t i = 0; i < n; i++) sum += ((const uint64_t *)memory)[i] * (i % 1021 + 1);
    return sum;
}

static void *run(void *argument)
{
    struct job *job = argument;
    size_t most = 0;
    for (size_t r = job->first; r < job->n_reads; r += job->step) {
        size_t n = 1;
        for (int d = 0; d < RANK; d++) n *= job->reads[r].count[d] ? job->reads[r].count[d] : 1;
        if (n > most) most = n;
    }
    char *memory = touched(most * 8);
    int varid, ncid = job->ncid;
    nc_type type;
    if (job->file) NC(nc_open(job->file, NC_NOWRITE, &ncid));
    NC(nc_inq_varid(ncid, job->var, &varid));
    NC(nc_inq_vartype(ncid, varid, &type));
    NC(nc_inq_type(ncid, type, NULL, &job->size));
    if (job->cache) NC(nc_set_var_chunk_cache(ncid, varid, job->cache, 4133, 0.75f));
    for (size_t r = job->first; r < job->n_reads; r += job->step) {
        const struct read *read = &job->reads[r];
        size_t n = 1;
        for (int d = 0; d < RANK; d++) n *= read->count[d] ? read->count[d] : 1;
        double from = now();
        if (read->strided) NC(nc_get_vars(ncid, varid, read->start, read->count, read->stride, memory));
        else NC(nc_get_vara(ncid, varid, read->start, read->count, memory));
        job->seconds += now() - from;
        job->bytes += n * job->size;
        job->digest += digest_values(memory, n, job->size) * (r + 1);
    }
    if (job->file) NC(nc_close(ncid));
    free(memory);
    return NULL;
}

static struct read *read_list(const char *path, size_t *n)
{
    FILE *in = fopen(path, "r");
    if (!in) { perror(path); exit(1); }
    struct read *reads = NULL;
    char line[512];
    for (*n = 0; fgets(line, sizeof line, in); ++*n) {
        if ((*n & (*n - 1)) == 0) reads = realloc(reads, (*n ? 2 * *n : 1) * sizeof *reads);
        struct read *read = memset(&reads[*n], 0, sizeof *read);
        long long numbers[3 * RANK];
        int have = 0;
        for (char *p = line, *end; have < 3 * RANK; p = end) {
            numbers[have] = strtoll(p, &end, 10);
            if (end == p) break;
            have++;
        }
        int rank = have / 3;
        for (int d = 0; d < rank; d++) {
            read->start[d] = (size_t)numbers[d];
            read->count[d] = (size_t)numbers[rank + d];
            read->stride[d] = (ptrdiff_t)numbers[2 * rank + d];
            if (read->stride[d] != 1) read->strided = 1;
        }
    }
    fclose(in);
    return reads;
}

static void op_read(int argc, char **argv, const char *file, long before)
{
    size_t n, n_threads = option_size(argc, argv, "--threads", "1");
    struct read *reads = read_list(option(argc, argv, "--list", NULL), &n);
    const char *var = option(argc, argv, "--var", "v0");
    size_t cache = option_size(argc, argv, "--cache", "0");
    char *files = strdup(option(argc, argv, "--files", "")), *more;
    struct job *jobs = calloc(n_threads, sizeof *jobs);
    int shared = files[0] == '\0', ncid = -1;

    double from = now();
    if (shared) NC(nc_open(file, NC_NOWRITE, &ncid));
    if (n_threads == 1 && shared) {
        /* One thread: the clock counts the calls alone, and the first with the open. */
        double opened = now() - from;
        struct job first = {.var = var, .reads = reads, .n_reads = 1, .step = 1, .ncid = ncid, .cache = cache};
        run(&first);
        struct job rest = {.var = var, .reads = reads, .n_reads = n, .first = 1, .step = 1, .ncid = ncid};
        run(&rest);
        from = now();
        NC(nc_close(ncid));
        double all = opened + first.seconds + rest.seconds + now() - from;
        uint64_t digest = first.digest + rest.digest;
        char params[120];
        snprintf(params, sizeof params, "{\"first\": %.9f, \"peak_kib\": %ld}", opened + first.seconds,
                 peak_kib() - before);
        result("read", params, all, first.bytes + rest.bytes, n, &digest);
    } else {
        uint64_t digest = 0;
        size_t bytes = 0;
        for (size_t t = 0; t < n_threads; t++) {
            jobs[t] = (struct job){.var = var, .reads = reads, .n_reads = n, .first = t,
                                   .step = n_threads, .ncid = ncid, .cache = cache};
            if (!shared) jobs[t].file = strtok_r(t ? NULL : files, ",", &more);
            if (!shared && !jobs[t].file) { fprintf(stderr, "fewer files than threads\n"); exit(2); }
            if (pthread_create(&jobs[t].thread, NULL, run, &jobs[t]) != 0) exit(1);
        }
        for (size_t t = 0; t < n_threads; t++) {
            pthread_join(jobs[t].thread, NULL);
            digest += jobs[t].digest, bytes += jobs[t].bytes;
        }
        if (shared) NC(nc_close(ncid));
        char params[120];
        snprintf(params, sizeof params, "{\"threads\": %zu, \"peak_kib\": %ld}", n_threads, peak_kib() - before);
        result("read", params, now() - from, bytes, n, &digest);
    }
    free(jobs), free(files), free(reads);
}

static uint64_t ask_group(uint64_t h, int ncid)
{
    int n_vars, n_atts, n_groups, dimids[NC_MAX_VAR_DIMS], rank, n_dims;
    char name[NC_MAX_NAME + 1];
    NC(nc_inq(ncid, &n_dims, &n_vars, &n_atts, NULL));
    for (int v = -1; v < n_vars; v++) {
        nc_type type;
        if (v >= 0) {
            NC(nc_inq_var(ncid, v, name, &type, &rank, dimids, &n_atts));
            h = digest_word(digest_text(h, name), (uint64_t)type + (uint64_t)rank * 100);
            int storage, no_fill, endian, shuffle, deflate, level;
            size_t chunks[NC_MAX_VAR_DIMS];
            char fill[16];
            NC(nc_inq_var_chunking(ncid, v, &storage, chunks));
            NC(nc_inq_var_fill(ncid, v, &no_fill, fill));
            NC(nc_inq_var_endian(ncid, v, &endian));
            NC(nc_inq_var_deflate(ncid, v, &shuffle, &deflate, &level));
            h = digest_word(h, (uint64_t)(storage + 10 * no_fill + 100 * shuffle + 1000 * deflate));
        }
        for (int a = 0; a < n_atts; a++) {
            size_t len;
            NC(nc_inq_attname(ncid, v, a, name));
            NC(nc_inq_att(ncid, v, name, &type, &len));
            h = digest_word(digest_text(h, name), (uint64_t)type + len * 100);
            char value[256];
            if (type == NC_CHAR && len < sizeof value) {
                NC(nc_get_att_text(ncid, v, name, value));
                h = digest_bytes(h, value, len);
            }
        }
    }
    NC(nc_inq_grps(ncid, &n_groups, NULL));
    int *groups = malloc(((size_t)n_groups + 1) * sizeof *groups);
    NC(nc_inq_grps(ncid, &n_groups, groups));
    for (int g = 0; g < n_groups; g++) {
        NC(nc_inq_grpname(groups[g], name));
        h = ask_group(digest_text(h, name), groups[g]);
    }
    free(groups);
    return h;
}

static void op_cycles(int argc, char **argv, const char *file, const char *op, long before)
{
    size_t cycles = option_size(argc, argv, "--cycles", "1");
    uint64_t digest = DIGEST_START;
    char params[64];
    double from = now();
    for (size_t c = 0; c < cycles; c++) {
        int ncid;
        NC(nc_open(file, NC_NOWRITE, &ncid));
        if (op[0] == 'i') digest = ask_group(DIGEST_START, ncid);
        NC(nc_close(ncid));
    }
    double seconds = now() - from;
    snprintf(params, sizeof params, "{\"peak_kib\": %ld}", peak_kib() - before);
    result(op, params, seconds, 0, cycles, &digest);
}

static void op_strings(const char *file, const char *var, long before)
{
    int ncid, varid, dimid;
    size_t n;
    NC(nc_open(file, NC_NOWRITE, &ncid));
    NC(nc_inq_varid(ncid, var, &varid));
    NC(nc_inq_vardimid(ncid, varid, &dimid));
    NC(nc_inq_dimlen(ncid, dimid, &n));
    char **texts = touched(n * sizeof *texts), params[64];
    double from = now();
    NC(nc_get_var_string(ncid, varid, texts));
    double seconds = now() - from;
    uint64_t digest = DIGEST_START;
    for (size_t i = 0; i < n; i++) digest = digest_text(digest, texts[i]);
    from = now();
    NC(nc_free_string(n, texts));
    seconds += now() - from;
    snprintf(params, sizeof params, "{\"peak_kib\": %ld}", peak_kib() - before);
    NC(nc_close(ncid));
    result("strings", params, seconds, 0, n, &digest);
    free(texts);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--list", "--var", "--cache", "--cycles",
                                        "--threads", "--files", NULL};
    known_options(argc, argv, known);
    const char *op = option(argc, argv, "--op", "read"), *file = option(argc, argv, "--file", NULL);
    int warm;
    nc_open("", NC_NOWRITE, &warm); /* what a library sets up once is not the file's */
    long before = peak_kib();
    if (strcmp(op, "read") == 0) op_read(argc, argv, file, before);
    else if (strcmp(op, "strings") == 0) op_strings(file, option(argc, argv, "--var", "v0"), before);
    else op_cycles(argc, argv, file, op, before);
    return 0;
}
