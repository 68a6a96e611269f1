/* codec: what reading compressed chunks costs with nothing around it. For the chunks that the reads
 * of --list touch, each once: pread, inflate (libdeflate) or zstd, unshuffle, into memory of its own,
 * on --threads threads (default: all cores). Where the chunks are is found out before the clock
 * starts, by libhdf5. --op pread: the reads of the stored bytes alone, in 1 MiB blocks for contiguous
 * data; --op memcpy: one copy of the bytes that the reads ask for.
 */
#define _GNU_SOURCE
#include "engine.h"
#include <fcntl.h>
#include <hdf5.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <zstd.h>

enum { RANK = 4, SPARE = 4096 };

struct chunk { haddr_t at; hsize_t size; };
static struct chunk *chunks;
static size_t n_chunks, chunk_bytes, elem;
static int fd, shuffled, deflated, zstd, pread_only;
static atomic_size_t next_chunk;

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

static void *work(void *unused)
{
    (void)unused;
    struct libdeflate_decompressor *inflate = libdeflate_alloc_decompressor();
    uint8_t *stored = malloc(chunk_bytes * 2 + SPARE), *raw = malloc(chunk_bytes), *out = malloc(chunk_bytes);
    for (size_t i; (i = atomic_fetch_add(&next_chunk, 1)) < n_chunks;) {
        size_t got = 0, done = 0;
        while (done < chunks[i].size) {
            ssize_t r = pread(fd, stored + done, chunks[i].size - done, (off_t)(chunks[i].at + done));
            if (r <= 0) { fprintf(stderr, "codec: short read\n"); exit(1); }
            done += (size_t)r;
        }
        if (pread_only) continue;
        uint8_t *bytes = stored;
        if (deflated) {
            if (libdeflate_zlib_decompress(inflate, stored, done, raw, chunk_bytes, &got) != 0) exit(1);
            bytes = raw;
        } else if (zstd) {
            if (ZSTD_isError(ZSTD_decompress(raw, chunk_bytes, stored, done))) exit(1);
            bytes = raw;
        }
        if (shuffled) unshuffle(bytes, out, chunk_bytes / elem);
        else if (bytes == stored) memcpy(out, bytes, chunk_bytes);
    }
    libdeflate_free_decompressor(inflate);
    free(stored), free(raw), free(out);
    return NULL;
}

static size_t number(const char *p, char **end) { return strtoull(p, end, 10); }

/* Marks the chunks that the reads touch; gives the bytes they ask for. */
static size_t touch(const char *list, int rank, const hsize_t *chunk, const size_t *grid, uint8_t *marks)
{
    FILE *in = fopen(list, "r");
    char line[512];
    size_t asked = 0;
    while (in && fgets(line, sizeof line, in)) {
        size_t v[3 * RANK], n = 1;
        char *p = line;
        for (int i = 0; i < 3 * rank; i++) v[i] = number(p, &p);
        size_t at[RANK], first[RANK], last[RANK];
        for (int d = 0; d < rank; d++) {
            n *= v[rank + d];
            at[d] = first[d] = v[d] / chunk[d];
            last[d] = (v[d] + (v[rank + d] - 1) * v[2 * rank + d]) / chunk[d];
        }
        asked += n * elem;
        for (int d = rank - 1; d >= 0;) {
            size_t linear = 0;
            for (int e = 0; e < rank; e++) linear = linear * grid[e] + at[e];
            marks[linear] = 1;
            for (d = rank - 1; d >= 0 && at[d] == last[d]; d--) at[d] = first[d];
            if (d >= 0) at[d]++;
        }
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
    size_t asked = touch(list, rank, chunk, grid, marks), stored = 0;
    chunks = calloc(total, sizeof *chunks);
    for (size_t i = 0; i < total && chunked; i++) {
        if (!marks[i]) continue;
        hsize_t offset[RANK];
        size_t rest = i;
        for (int e = rank - 1; e >= 0; e--) offset[e] = rest % grid[e] * chunk[e], rest /= grid[e];
        unsigned mask;
        struct chunk *c = &chunks[n_chunks];
        if (H5Dget_chunk_info_by_coord(d, offset, &mask, &c->at, &c->size) < 0) return 1;
        if (c->size > 0) n_chunks++, stored += c->size;
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
        from = now();
        for (size_t t = 0; t < n_threads; t++) pthread_create(&threads[t], NULL, work, NULL);
        for (size_t t = 0; t < n_threads; t++) pthread_join(threads[t], NULL);
    }
    char params[80];
    snprintf(params, sizeof params, "{\"chunks\": %zu, \"stored\": %zu}", n_chunks, stored);
    result(op, params, now() - from, asked, 1, NULL);
    return 0;
}
