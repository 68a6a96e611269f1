/* encode: what writing chunks costs with nothing around it. --raw is a file of the chunks' values, one
 * chunk of --chunk-bytes after the other (engines/chunks.c), held in memory before the clock starts;
 * --file is written.
 *
 * --op codec    each chunk shuffled (--shuffle 1), compressed by libdeflate (--deflate LEVEL) or
 *               libzstd (--zstd LEVEL) and written, on --threads threads (default: all cores)
 * --op write    the bytes written, in blocks of 1 MiB
 * --op convert  the same from doubles in memory to floats or shorts (--elem 4 or 2) of the file,
 *               converted in blocks of 256 KiB, values out of range noticed
 *
 * What was written is decoded and compared with --raw once the clock has stopped.
 */
#define _GNU_SOURCE
#include "engine.h"
#include <fcntl.h>
#include <float.h>
#include <libdeflate.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <zstd.h>

enum { BLOCK = 1 << 20, CONVERTED = 256 * 1024, MOST_THREADS = 64 };

static const uint8_t *raw;
static size_t raw_bytes, chunk_bytes, n_chunks, elem;
static int fd, shuffled, deflate, zstd;
static atomic_size_t next_chunk, end_of_file;
static struct { size_t at, size; } *places;

static void fail(const char *why)
{
    fprintf(stderr, "encode: %s\n", why);
    exit(1);
}

/* Four and two byte elements are what the benchmarks have; the compiler vectorises these. */
static void shuffle(const uint8_t *restrict from, uint8_t *restrict to, size_t n)
{
    if (elem == 4) {
        uint8_t *restrict a = to, *restrict b = to + n, *restrict c = to + 2 * n, *restrict d = to + 3 * n;
        for (size_t i = 0; i < n; i++)
            a[i] = from[4 * i], b[i] = from[4 * i + 1], c[i] = from[4 * i + 2], d[i] = from[4 * i + 3];
    } else if (elem == 2) {
        uint8_t *restrict a = to, *restrict b = to + n;
        for (size_t i = 0; i < n; i++) a[i] = from[2 * i], b[i] = from[2 * i + 1];
    } else {
        for (size_t k = 0; k < elem; k++)
            for (size_t i = 0; i < n; i++) to[k * n + i] = from[i * elem + k];
    }
}

static void put(const void *bytes, size_t n, size_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(at + done));
        if (w <= 0) fail("cannot write");
        done += (size_t)w;
    }
}

static void *work(void *unused)
{
    (void)unused;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(deflate ? deflate : 1);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t room = libdeflate_zlib_compress_bound(compressor, chunk_bytes) + ZSTD_compressBound(chunk_bytes);
    uint8_t *planes = malloc(chunk_bytes), *stored = malloc(room);
    for (size_t i; (i = atomic_fetch_add(&next_chunk, 1)) < n_chunks;) {
        const uint8_t *bytes = raw + i * chunk_bytes;
        size_t n = chunk_bytes;
        if (shuffled) shuffle(bytes, planes, chunk_bytes / elem), bytes = planes;
        if (deflate) n = libdeflate_zlib_compress(compressor, bytes, n, stored, room), bytes = stored;
        if (zstd) n = ZSTD_compressCCtx(context, stored, room, bytes, n, zstd), bytes = stored;
        if (n == 0 || ZSTD_isError(n)) fail("a chunk that does not fit");
        places[i].at = atomic_fetch_add(&end_of_file, n);
        places[i].size = n;
        put(bytes, n, places[i].at);
    }
    libdeflate_free_compressor(compressor);
    ZSTD_freeCCtx(context);
    free(planes), free(stored);
    return NULL;
}

/* Whether the file holds what the chunks are. */
static void check_chunks(void)
{
    struct libdeflate_decompressor *inflate = libdeflate_alloc_decompressor();
    uint8_t *stored = malloc(2 * chunk_bytes + BLOCK), *bytes = malloc(chunk_bytes);
    size_t parts = shuffled ? elem : 1, n = chunk_bytes / parts;
    for (size_t i = 0; i < n_chunks; i++) {
        size_t got = places[i].size;
        if (pread(fd, stored, got, (off_t)places[i].at) != (ssize_t)got) fail("cannot read back");
        if (deflate) {
            if (libdeflate_zlib_decompress(inflate, stored, got, bytes, chunk_bytes, &got) != 0) got = 0;
        } else if (zstd) got = ZSTD_decompress(bytes, chunk_bytes, stored, got);
        else memcpy(bytes, stored, got);
        const uint8_t *expected = raw + i * chunk_bytes;
        int wrong = got != chunk_bytes;
        for (size_t k = 0; k < parts; k++)
            for (size_t e = 0; e < n; e++) wrong |= bytes[k * n + e] != expected[e * parts + k];
        if (wrong) fail("other values written");
    }
    libdeflate_free_decompressor(inflate);
    free(stored), free(bytes);
}

static void check_bytes(void)
{
    uint8_t *back = malloc(BLOCK);
    for (size_t at = 0; at < raw_bytes; at += BLOCK) {
        size_t n = raw_bytes - at < BLOCK ? raw_bytes - at : BLOCK;
        if (pread(fd, back, n, (off_t)at) != (ssize_t)n || memcmp(back, raw + at, n) != 0)
            fail("other values written");
    }
    free(back);
}

static unsigned to_float(const double *restrict from, float *restrict to, size_t n)
{
    unsigned outside = 0;
    for (size_t i = 0; i < n; i++) {
        outside |= (from[i] < -FLT_MAX) | (from[i] > FLT_MAX);
        to[i] = (float)from[i];
    }
    return outside;
}

static unsigned to_short(const double *restrict from, short *restrict to, size_t n)
{
    unsigned outside = 0;
    for (size_t i = 0; i < n; i++) {
        outside |= (from[i] < SHRT_MIN) | (from[i] > SHRT_MAX);
        to[i] = (short)from[i];
    }
    return outside;
}

static double convert(void)
{
    size_t n = raw_bytes / elem, most = CONVERTED / elem;
    double *values = touched(n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = elem == 4 ? ((const float *)raw)[i] : ((const short *)raw)[i];
    void *block = touched(CONVERTED);
    unsigned outside = 0;
    double from = now();
    for (size_t i = 0; i < n; i += most) {
        size_t m = n - i < most ? n - i : most;
        outside |= elem == 4 ? to_float(values + i, block, m) : to_short(values + i, block, m);
        put(block, m * elem, i * elem);
    }
    from = now() - from;
    if (outside) fail("values out of range");
    free(values), free(block);
    return from;
}

static void load(const char *path)
{
    int in = open(path, O_RDONLY);
    struct stat facts;
    if (in < 0 || fstat(in, &facts) != 0) fail("cannot open --raw");
    raw_bytes = (size_t)facts.st_size;
    uint8_t *bytes = touched(raw_bytes);
    for (size_t done = 0; done < raw_bytes;) {
        ssize_t r = read(in, bytes + done, raw_bytes - done);
        if (r <= 0) fail("cannot read --raw");
        done += (size_t)r;
    }
    close(in);
    raw = bytes;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--raw", "--file", "--op", "--chunk-bytes", "--elem", "--shuffle",
                                        "--deflate", "--zstd", "--threads", NULL};
    known_options(argc, argv, known);
    const char *op = option(argc, argv, "--op", "codec"), *file = option(argc, argv, "--file", NULL);
    char cores[16];
    snprintf(cores, sizeof cores, "%d", get_nprocs());
    size_t n_threads = option_size(argc, argv, "--threads", cores);
    if (n_threads > MOST_THREADS) n_threads = MOST_THREADS;
    elem = option_size(argc, argv, "--elem", "4");
    shuffled = (int)option_size(argc, argv, "--shuffle", "0");
    deflate = (int)option_size(argc, argv, "--deflate", "0");
    zstd = (int)option_size(argc, argv, "--zstd", "0");
    load(option(argc, argv, "--raw", NULL));
    chunk_bytes = option_size(argc, argv, "--chunk-bytes", "0");
    if (chunk_bytes == 0) chunk_bytes = raw_bytes;
    n_chunks = raw_bytes / chunk_bytes;
    if (n_chunks * chunk_bytes != raw_bytes || raw_bytes % elem) fail("--raw is not whole chunks");
    places = calloc(n_chunks, sizeof *places);

    double from = now(), seconds;
    fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) fail("cannot create --file");
    if (strcmp(op, "codec") == 0) {
        pthread_t threads[MOST_THREADS];
        for (size_t t = 0; t < n_threads; t++)
            if (pthread_create(&threads[t], NULL, work, NULL) != 0) fail("no thread");
        for (size_t t = 0; t < n_threads; t++) pthread_join(threads[t], NULL);
        seconds = now() - from;
        check_chunks();
    } else if (strcmp(op, "write") == 0) {
        for (size_t at = 0; at < raw_bytes; at += BLOCK)
            put(raw + at, raw_bytes - at < BLOCK ? raw_bytes - at : BLOCK, at);
        seconds = now() - from;
        end_of_file = raw_bytes;
        check_bytes();
    } else {
        seconds = convert();
        end_of_file = raw_bytes;
        check_bytes();
    }
    close(fd);
    char params[80];
    snprintf(params, sizeof params, "{\"chunks\": %zu, \"stored\": %zu}", n_chunks, (size_t)end_of_file);
    result(op, params, seconds, raw_bytes, 1, NULL);
    return 0;
}
