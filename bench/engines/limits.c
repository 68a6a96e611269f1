/* limits: what the machine allows, with no library between. Linked with nothing.
 *
 * --op memcpy   one copy of the bytes in memory
 * --op rawwrite, rawread   write(2), read(2) in 1 MiB blocks
 * --op write, read   the work no classic library can avoid: each value converted and byte-swapped
 *                    once, in blocks that stay in cache, each block written or read once. Values
 *                    out of the file type's range are noticed, as netCDF must. --external all: for
 *                    each pair of types; the file then holds the values alone
 * --op create   open, truncate, one pwrite of --bytes, close, over and over
 * --op open     open, one pread of up to --bytes, close, over and over
 * --op shift    a file of --mb moved up by 4 KiB, in blocks of 4 MiB from its end, what a header
 *               that grows makes necessary; the file is made before
 *
 * Compile with -O3 -march=native -fno-trapping-math: the loops are written so that the compiler
 * vectorises them, and the range check with them.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"

enum { BLOCK = 256 * 1024, RAW_BLOCK = 1024 * 1024 };

/* Byte order of the file, for each size of value. */
static uint8_t swap1(uint8_t x) { return x; }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static uint16_t swap2(uint16_t x) { return __builtin_bswap16(x); }
static uint32_t swap4(uint32_t x) { return __builtin_bswap32(x); }
static uint64_t swap8(uint64_t x) { return __builtin_bswap64(x); }
#else
static uint16_t swap2(uint16_t x) { return x; }
static uint32_t swap4(uint32_t x) { return x; }
static uint64_t swap8(uint64_t x) { return x; }
#endif
#define SWAP(bits) _Generic((bits), uint8_t: swap1, uint16_t: swap2, uint32_t: swap4, \
                            uint64_t: swap8)(bits)

/* The unsigned integer of each type in the file. */
typedef uint64_t bits_double, bits_int64, bits_uint64;
typedef uint32_t bits_float, bits_int, bits_uint;
typedef uint16_t bits_short, bits_ushort;
typedef uint8_t bits_byte, bits_char, bits_ubyte;

/* Smallest and largest value of each type in the file, as the caller's type holds them. */
#define LEAST_double(T) ((T)-DBL_MAX)
#define MOST_double(T) ((T)DBL_MAX)
#define LEAST_float(T) ((T)-FLT_MAX)
#define MOST_float(T) ((T)FLT_MAX)
#define LEAST_byte(T) ((T)INT8_MIN)
#define MOST_byte(T) ((T)INT8_MAX)
#define LEAST_short(T) ((T)INT16_MIN)
#define MOST_short(T) ((T)INT16_MAX)
#define LEAST_int(T) ((T)INT32_MIN)
#define MOST_int(T) ((T)INT32_MAX)
#define LEAST_int64(T) ((T)INT64_MIN)
#define MOST_int64(T) ((T)INT64_MAX)
#define LEAST_char(T) ((T)CHAR_MIN)
#define MOST_char(T) ((T)CHAR_MAX)
#define LEAST_ubyte(T) ((T)0)
#define MOST_ubyte(T) ((T)UINT8_MAX)
#define LEAST_ushort(T) ((T)0)
#define MOST_ushort(T) ((T)UINT16_MAX)
#define LEAST_uint(T) ((T)0)
#define MOST_uint(T) ((T)UINT32_MAX)
#define LEAST_uint64(T) ((T)0)
#define MOST_uint64(T) ((T)UINT64_MAX)
#define FRACTIONS(T) ((T)0.5 != 0)
/* Whether x of one type does not fit into the other, where it became y. The compiler drops what
 * cannot be: the conditions on the types are constants. */
#define OUTSIDE(from, to, to_c, x, y)                                                              \
    (FRACTIONS(to_c) ? FRACTIONS(from) && sizeof(from) > sizeof(to_c)                              \
                           && ((x) < LEAST_##to(from)) | ((x) > MOST_##to(from))                   \
     : FRACTIONS(from) ? ((x) < LEAST_##to(from)) | ((x) > MOST_##to(from))                        \
                       : ((from)(y) != (x)) | (((y) < 0) != ((x) < 0)))

typedef struct {
    const char *external, *internal;
    size_t external_size, internal_size;
    void (*fill)(void *, size_t);
    size_t (*encode)(const void *, void *, size_t); /* gives whether any is out of range */
    void (*decode)(const void *, void *, size_t);
} Pair;

#define DEFINE(ext, ext_c, mem, mem_c, suffix)                                                     \
    static void fill_##ext##_##mem(void *to, size_t n)                                             \
    {                                                                                              \
        mem_c *values = to;                                                                        \
        for (size_t i = 0; i < n; i++) values[i] = (mem_c)pattern(i);                              \
    }                                                                                              \
    static size_t encode_##ext##_##mem(const void *restrict from, void *restrict to, size_t n)     \
    {                                                                                              \
        const mem_c *restrict in = from;                                                           \
        bits_##ext *restrict out = to;                                                             \
        unsigned outside = 0;                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            mem_c x = in[i];                                                                       \
            ext_c y = (ext_c)x;                                                                    \
            outside |= OUTSIDE(mem_c, ext, ext_c, x, y);                                           \
            bits_##ext bits;                                                                       \
            memcpy(&bits, &y, sizeof bits);                                                        \
            out[i] = SWAP(bits);                                                                   \
        }                                                                                          \
        return outside;                                                                            \
    }                                                                                              \
    static void decode_##ext##_##mem(const void *restrict from, void *restrict to, size_t n)       \
    {                                                                                              \
        const bits_##ext *restrict in = from;                                                      \
        mem_c *restrict out = to;                                                                  \
        for (size_t i = 0; i < n; i++) {                                                           \
            bits_##ext bits = SWAP(in[i]);                                                         \
            ext_c y;                                                                               \
            memcpy(&y, &bits, sizeof y);                                                           \
            out[i] = (mem_c)y;                                                                     \
        }                                                                                          \
    }
FOR_EACH_PAIR(DEFINE)

#define ENTRY(ext, ext_c, mem, mem_c, suffix)                                                      \
    {#ext, #mem, sizeof(ext_c), sizeof(mem_c), fill_##ext##_##mem, encode_##ext##_##mem,           \
     decode_##ext##_##mem},
static const Pair pairs[] = {FOR_EACH_PAIR(ENTRY)};

static void fail(const char *what)
{
    fprintf(stderr, "limits: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("write");
        bytes += done, n -= (size_t)done;
    }
}

static void read_all(int fd, char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = read(fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = EIO; /* the file is too short */
        if (done <= 0) fail("read");
        bytes += done, n -= (size_t)done;
    }
}

/* Converted and written, or read and converted, in blocks. */
static double convert(const Pair *p, const char *file, int writing, char *values, size_t n)
{
    static char block[BLOCK];
    int fd = writing ? open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666) : open(file, O_RDONLY);
    if (fd < 0) fail(file);
    size_t step = BLOCK / p->external_size, outside = 0;
    memset(block, 0, sizeof block);
    /* The only variable of a netCDF file is at its end. */
    off_t length = (off_t)(n * p->external_size);
    if (!writing && lseek(fd, -length, SEEK_END) < 0) fail(file);
    double from = now();
    for (size_t i = 0; i < n; i += step) {
        size_t m = n - i < step ? n - i : step;
        if (writing) {
            outside |= p->encode(values + i * p->internal_size, block, m);
            write_all(fd, block, m * p->external_size);
        } else {
            read_all(fd, block, m * p->external_size);
            p->decode(block, values + i * p->internal_size, m);
        }
    }
    if (close(fd) != 0) fail(file);
    double seconds = now() - from;
    if (outside) {
        fprintf(stderr, "limits: values out of range\n");
        exit(1);
    }
    return seconds;
}

static int arrays(int argc, char **argv, const char *file, const char *op)
{
    const char *external = option(argc, argv, "--external", NULL);
    const char *internal = option(argc, argv, "--internal", "all");
    int writing = strcmp(op, "write") == 0, all = strcmp(external, "all") == 0, some = 0;
    for (const Pair *p = pairs; p < pairs + sizeof pairs / sizeof pairs[0]; p++) {
        if (!wanted(external, internal, p->external, p->internal)) continue;
        size_t n = option_size(argc, argv, "--mb", "64") * 1000000 / p->external_size;
        char path[4096], name[100], params[200];
        snprintf(path, sizeof path, "%s%s%s", file, all ? "." : "", all ? p->external : "");
        if (all) snprintf(name, sizeof name, "array %s %s and %s", op, p->external, p->internal);
        else snprintf(name, sizeof name, "array %s", op);
        snprintf(params, sizeof params, "{\"external\": \"%s\", \"internal\": \"%s\", "
                 "\"values\": %zu}", p->external, p->internal, n);
        char *values = touched(n * p->internal_size);
        if (writing) p->fill(values, n);
        if (writing && all) unlink(path);
        double seconds = convert(p, path, writing, values, n);
        if (writing) { /* the digest is over what is in the file, as that of arrays.c */
            int fd = open(path, O_RDONLY);
            values = realloc(values, n * 8);
            if (fd < 0 || !values) fail(path);
            read_all(fd, values, n * p->external_size);
            close(fd);
        }
        size_t size = writing ? p->external_size : p->internal_size;
        uint64_t sum = digest_bytes(DIGEST_START, values, n * size);
        result(name, params, seconds, n * p->external_size, 1, &sum);
        if (writing && all) unlink(path);
        free(values);
        some = 1;
    }
    if (!some) fprintf(stderr, "limits: no such pair of types\n");
    return some ? 0 : 2;
}

static void bytes_only(const char *op, const char *file, size_t bytes)
{
    char *values = touched(bytes), *copy = touched(strcmp(op, "memcpy") == 0 ? bytes : 1);
    uint64_t sum = 0;
    double from = now();
    if (strcmp(op, "memcpy") == 0) {
        memcpy(copy, values, bytes);
    } else {
        int writing = strcmp(op, "rawwrite") == 0;
        int fd = writing ? open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666) : open(file, O_RDONLY);
        if (fd < 0) fail(file);
        from = now();
        for (size_t i = 0; i < bytes; i += RAW_BLOCK) {
            size_t m = bytes - i < RAW_BLOCK ? bytes - i : RAW_BLOCK;
            if (writing) write_all(fd, values + i, m);
            else read_all(fd, values + i, m);
        }
        if (close(fd) != 0) fail(file);
    }
    double seconds = now() - from;
    sum = digest_bytes(DIGEST_START, op[0] == 'm' ? copy : values, bytes); /* the copy is needed */
    char name[64];
    snprintf(name, sizeof name, "limit %s", op);
    result(name, "{}", seconds, bytes, 1, &sum);
    free(values);
    free(copy);
}

/* A small file's life in system calls. */
static void cycles(const char *op, const char *file, size_t bytes, size_t n)
{
    int creating = strcmp(op, "create") == 0;
    int flags = creating ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY;
    char *header = touched(bytes), name[64];
    double from = now();
    for (size_t i = 0; i < n; i++) {
        int fd = open(file, flags, 0666);
        if (fd < 0) fail(file);
        ssize_t done = creating ? pwrite(fd, header, bytes, 0) : pread(fd, header, bytes, 0);
        if (done <= 0 || close(fd) != 0) fail(file);
    }
    double seconds = now() - from;
    snprintf(name, sizeof name, "limit %s", op);
    result(name, "{}", seconds, bytes * n, n, NULL);
    free(header);
}

static void shift(const char *file, size_t bytes)
{
    enum { PIECE = 4 << 20, BY = 4096 };
    char *piece = touched(PIECE);
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) fail(file);
    for (size_t at = 0; at < bytes; at += PIECE)
        write_all(fd, piece, bytes - at < PIECE ? bytes - at : PIECE);
    double from = now();
    for (size_t end = bytes; end > 0;) {
        size_t n = end < PIECE ? end : PIECE;
        end -= n;
        if (pread(fd, piece, n, (off_t)end) != (ssize_t)n) fail(file);
        if (pwrite(fd, piece, n, (off_t)(end + BY)) != (ssize_t)n) fail(file);
    }
    if (close(fd) != 0) fail(file);
    result("limit shift", "{}", now() - from, bytes, 1, NULL);
    free(piece);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--external", "--internal", "--mb",
                                        "--bytes", "--cycles", NULL};
    known_options(argc, argv, known);
    const char *op = option(argc, argv, "--op", NULL), *file = option(argc, argv, "--file", "");
    size_t million = option_size(argc, argv, "--mb", "64") * 1000000;
    if (strcmp(op, "write") == 0 || strcmp(op, "read") == 0) return arrays(argc, argv, file, op);
    if (strcmp(op, "memcpy") == 0 || strcmp(op, "rawwrite") == 0 || strcmp(op, "rawread") == 0)
        bytes_only(op, file, million);
    else if (strcmp(op, "create") == 0 || strcmp(op, "open") == 0)
        cycles(op, file, option_size(argc, argv, "--bytes", "1048576"),
               option_size(argc, argv, "--cycles", "2000"));
    else if (strcmp(op, "shift") == 0) shift(file, million);
    else {
        fprintf(stderr, "limits: no such --op: %s\n", op);
        return 2;
    }
    return 0;
}
