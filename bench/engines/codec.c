/* codec: what reading compressed chunks costs with nothing around it. For the chunks that the reads
 * of --list touch, each once: pread, inflate (libdeflate) or zstd, unshuffle, into memory of its own,
 * on --threads threads (default: all cores). Where the chunks are is found out before the clock
 * starts, by libhdf5. --op kept: the same, but each chunk stays in fresh memory of its own (one
 * mapping, whose pages the kernel makes by one call a chunk), as whoever needs it again has to have
 * it. --op requests: as kept, but read after read: the chunks that one is the first to touch, on all
 * threads, then its elements copied to the program. Threads wait for each other by spinning.
 * --op pread: the reads of the stored bytes alone, in 1 MiB blocks for contiguous data; --op memcpy:
 * one copy of the bytes that the reads ask for.
 */
#define _GNU_SOURCE
#include "engine.h"
#include <fcntl.h>
#include <hdf5.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <zstd.h>

enum { RANK = 4, SPARE = 4096 };

struct chunk { haddr_t at; hsize_t size; };
struct request { size_t start[RANK], count[RANK], stride[RANK], first[RANK], last[RANK], end_chunk; };
static struct chunk *chunks; /* in the order in which the reads come to them */
static struct request *requests;
static size_t n_chunks, n_requests, chunk_bytes, elem;
static int fd, shuffled, deflated, zstd, pread_only;
static uint8_t *kept; /* the chunks, decoded, in the order of `chunks`; null where they are not kept */
static atomic_size_t next_chunk, end_chunk, done_chunks;

/* Four and two byte elements are what the benchmarks have; the compiler vectorises these. */
static void unshuffle(const uint8_t *restrict from, uint8_t *restrict to, size_t n)
{
    if (elem == 4) {
        const uint8_t *a = from, *b = a + n, *c = b + n, *d = c + n;
        for (size_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
    } else if (elem == 2) {
        for (size_t i = 0; i < n; i++) ((uint16_t *)to)[i] = (uint16_t)(from[i] | from[n + i] << 8);
    } else {
        for (size_t k = 0; k < elem; k++)
            for (size_t i = 0; i < n; i++) to[i * elem + k] = from[k * n + i];
    }
}

struct memory { struct libdeflate_decompressor *inflate; uint8_t *stored, *raw, *out; };

static struct memory memory(void)
{
    return (struct memory){libdeflate_alloc_decompressor(), malloc(chunk_bytes * 2 + SPARE), malloc(chunk_bytes), malloc(chunk_bytes)};
}

static void decode(const struct memory *m, size_t i)
{
    size_t got = 0, done = 0;
    if (chunks[i].size == 0) return; /* it is not in the file */
    while (done < chunks[i].size) {
        ssize_t r = pread(fd, m->stored + done, chunks[i].size - done, (off_t)(chunks[i].at + done));
        if (r <= 0) { fprintf(stderr, "codec: short read\n"); exit(1); }
        done += (size_t)r;
    }
    if (pread_only) return;
    uint8_t *out = m->out;
    if (kept) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), from = i * chunk_bytes & ~(page - 1);
        out = kept + i * chunk_bytes;
        madvise(kept + from, i * chunk_bytes + chunk_bytes - from, MADV_POPULATE_WRITE); /* if it fails, the pages come one by one */
    }
    uint8_t *last = shuffled ? m->raw : out;
    if (deflated && libdeflate_zlib_decompress(m->inflate, m->stored, done, last, chunk_bytes, &got) != 0) exit(1);
    if (zstd && ZSTD_isError(ZSTD_decompress(last, chunk_bytes, m->stored, done))) exit(1);
    if (shuffled) unshuffle(deflated || zstd ? m->raw : m->stored, out, chunk_bytes / elem);
    else if (!deflated && !zstd) memcpy(out, m->stored, chunk_bytes);
}

/* All chunks, in no order but that of their numbers. */
static void *work(void *unused)
{
    (void)unused;
    const struct memory m = memory();
    for (size_t i; (i = atomic_fetch_add(&next_chunk, 1)) < n_chunks;) decode(&m, i);
    return NULL;
}

/* Chunks below `end_chunk`, which a read's thread moves on. */
static void some(const struct memory *m)
{
    for (size_t i = atomic_load(&next_chunk); i < atomic_load(&end_chunk);)
        if (atomic_compare_exchange_weak(&next_chunk, &i, i + 1)) decode(m, i), atomic_fetch_add(&done_chunks, 1), i = atomic_load(&next_chunk);
}

static void *help(void *unused)
{
    (void)unused;
    const struct memory m = memory();
    while (atomic_load(&done_chunks) < n_chunks) some(&m);
    return NULL;
}

/* Copies what `r` asks for out of the chunks, box by box; `places` says where a chunk is kept. */
static void copy(const struct request *r, int rank, const hsize_t *chunk, const size_t *grid, const size_t *places, uint8_t *to)
{
    size_t at[RANK];
    memcpy(at, r->first, sizeof at);
    for (int d = 0; d >= 0;) {
        size_t linear = 0, low[RANK], n[RANK], skip[RANK], from = 0, into = 0, inner = 1, outer = 1;
        for (int e = 0; e < rank; e++) {
            size_t begin = at[e] * chunk[e], end = begin + chunk[e], past = r->start[e] + (r->count[e] - 1) * r->stride[e] + 1;
            size_t k = begin > r->start[e] ? (begin - r->start[e] + r->stride[e] - 1) / r->stride[e] : 0;
            low[e] = k, skip[e] = r->start[e] + k * r->stride[e];
            n[e] = skip[e] < (end < past ? end : past) ? ((end < past ? end : past) - skip[e] + r->stride[e] - 1) / r->stride[e] : 0;
            linear = linear * grid[e] + at[e], outer *= n[e];
            from = from * chunk[e] + (n[e] ? skip[e] - begin : 0), into = into * r->count[e] + low[e];
        }
        if (r->stride[rank - 1] == 1) inner = n[rank - 1], outer /= inner ? inner : 1;
        const uint8_t *source = kept ? kept + places[linear] * chunk_bytes : NULL;
        size_t i[RANK] = {0};
        for (size_t row = 0; row < outer && inner; row++) {
            size_t a = 0, b = 0;
            for (int e = 0; e < rank; e++) a = a * chunk[e] + i[e] * r->stride[e], b = b * r->count[e] + i[e];
            if (inner == 1 && elem == 4) memcpy(to + (into + b) * 4, source + (from + a) * 4, 4);
            else if (inner == 1 && elem == 2) memcpy(to + (into + b) * 2, source + (from + a) * 2, 2);
            else memcpy(to + (into + b) * elem, source + (from + a) * elem, inner * elem);
            int e = r->stride[rank - 1] == 1 ? rank - 2 : rank - 1;
            while (e >= 0 && ++i[e] == n[e]) i[e--] = 0;
        }
        for (d = rank - 1; d >= 0 && at[d] == r->last[d]; d--) at[d] = r->first[d];
        if (d >= 0) at[d]++;
    }
}

static size_t number(const char *p, char **end) { return strtoull(p, end, 10); }

/* Notes the reads, and the chunks in the order in which they come to them; gives the bytes they ask for. */
static size_t touch(const char *list, int rank, const hsize_t *chunk, const size_t *grid, uint8_t *marks, size_t *order)
{
    FILE *in = fopen(list, "r");
    char line[512];
    size_t asked = 0, room = 0;
    while (in && fgets(line, sizeof line, in)) {
        if (n_requests == room) requests = realloc(requests, (room = room * 2 + 64) * sizeof *requests);
        struct request *r = &requests[n_requests++];
        size_t at[RANK], n = 1;
        char *p = line;
        for (int i = 0; i < rank; i++) r->start[i] = number(p, &p);
        for (int i = 0; i < rank; i++) r->count[i] = number(p, &p);
        for (int i = 0; i < rank; i++) r->stride[i] = number(p, &p);
        for (int d = 0; d < rank; d++) {
            n *= r->count[d];
            at[d] = r->first[d] = r->start[d] / chunk[d];
            r->last[d] = (r->start[d] + (r->count[d] - 1) * r->stride[d]) / chunk[d];
        }
        asked += n * elem;
        for (int d = rank - 1; d >= 0;) {
            size_t linear = 0;
            for (int e = 0; e < rank; e++) linear = linear * grid[e] + at[e];
            if (!marks[linear]) marks[linear] = 1, order[n_chunks++] = linear;
            for (d = rank - 1; d >= 0 && at[d] == r->last[d]; d--) at[d] = r->first[d];
            if (d >= 0) at[d]++;
        }
        r->end_chunk = n_chunks;
    }
    if (in) fclose(in);
    return asked;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--list", "--var", "--op", "--threads", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL), *op = option(argc, argv, "--op", "codec");
    const char *list = option(argc, argv, "--list", NULL);
    char cores[16];
    snprintf(cores, sizeof cores, "%d", get_nprocs());
    size_t n_threads = option_size(argc, argv, "--threads", cores);
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t d = f < 0 ? f : H5Dopen2(f, option(argc, argv, "--var", "v0"), H5P_DEFAULT);
    if (d < 0) return 1;
    hid_t space = H5Dget_space(d), type = H5Dget_type(d), plist = H5Dget_create_plist(d);
    hsize_t dims[RANK], chunk[RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    elem = H5Tget_size(type);
    size_t grid[RANK], total = 1;
    int chunked = H5Pget_layout(plist) == H5D_CHUNKED;
    chunk_bytes = elem;
    if (chunked) H5Pget_chunk(plist, rank, chunk);
    else memcpy(chunk, dims, sizeof chunk);
    for (int i = 0; i < rank; i++) {
        grid[i] = (dims[i] + chunk[i] - 1) / chunk[i];
        total *= grid[i];
        chunk_bytes *= chunk[i];
    }
    for (int i = 0; i < H5Pget_nfilters(plist); i++) {
        unsigned flags, config;
        size_t none = 0;
        char name[2];
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &none, NULL, 1, name, &config);
        shuffled |= id == H5Z_FILTER_SHUFFLE, deflated |= id == H5Z_FILTER_DEFLATE, zstd |= id == 32015;
    }
    uint8_t *marks = calloc(total, 1);
    size_t *order = calloc(total, sizeof *order), *places = calloc(total, sizeof *places), stored = 0;
    size_t asked = touch(list, rank, chunk, grid, marks, order);
    chunks = calloc(total, sizeof *chunks);
    for (size_t i = 0; i < n_chunks && chunked; i++) {
        hsize_t offset[RANK];
        size_t rest = order[i];
        for (int e = rank - 1; e >= 0; e--) offset[e] = rest % grid[e] * chunk[e], rest /= grid[e];
        unsigned mask;
        struct chunk *c = &chunks[i];
        if (H5Dget_chunk_info_by_coord(d, offset, &mask, &c->at, &c->size) < 0) return 1;
        stored += c->size, places[order[i]] = i;
    }
    haddr_t at = chunked ? 0 : H5Dget_offset(d);
    H5Fclose(f);
    fd = open(file, O_RDONLY);
    pread_only = strcmp(op, "pread") == 0;
    double from;
    if (strcmp(op, "memcpy") == 0) {
        char *a = touched(asked), *b = touched(asked);
        from = now();
        memcpy(b, a, asked);
        stored = asked + (size_t)(b[asked / 2] & 0);
    } else if (!chunked) {
        char *block = touched(1 << 20);
        from = now();
        for (size_t done = 0; done < asked; done += 1 << 20)
            if (pread(fd, block, 1 << 20, (off_t)(at + done)) <= 0) return 1;
        stored = asked;
    } else {
        pthread_t threads[64];
        if (n_threads > 64) n_threads = 64;
        int in_order = strcmp(op, "requests") == 0;
        size_t largest = 0;
        for (size_t i = 0; i < n_requests; i++) {
            size_t n = elem;
            for (int e = 0; e < rank; e++) n *= requests[i].count[e];
            largest = n > largest ? n : largest;
        }
        uint8_t *answer = touched(largest);
        from = now();
        if (in_order || strcmp(op, "kept") == 0) {
            kept = mmap(NULL, n_chunks * chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (kept == MAP_FAILED) return 1;
        }
        for (size_t t = in_order; t < n_threads; t++) pthread_create(&threads[t], NULL, in_order ? help : work, NULL);
        const struct memory m = in_order ? memory() : (struct memory){0};
        for (size_t i = 0; i < n_requests && in_order; i++) {
            atomic_store(&end_chunk, requests[i].end_chunk);
            some(&m);
            while (atomic_load(&done_chunks) < requests[i].end_chunk) {}
            copy(&requests[i], rank, chunk, grid, places, answer);
        }
        for (size_t t = in_order; t < n_threads; t++) pthread_join(threads[t], NULL);
    }
    char params[80];
    snprintf(params, sizeof params, "{\"chunks\": %zu, \"stored\": %zu}", n_chunks, stored);
    result(op, params, now() - from, asked, 1, NULL);
    return 0;
}
