/* limits: what the machine allows, with no library between. Linked with nothing.
 *
 * --op memcpy   one copy of the bytes in memory
 * --op rawwrite, rawread   write(2), read(2) in 1 MiB blocks
 * --op write, read   the work no classic library can avoid: each value converted and byte-swapped
 *                    once, in blocks that stay in cache, each block written or read once. Values
 *                    out of the file type's range are counted, as netCDF must.
 *
 * Compile with -O3 -march=native -fno-trapping-math: the loops are written so that the compiler
 * vectorises them, and the range check with them.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
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

/* The unsigned integer of each type in the file, and the range that has to be checked. */
typedef uint64_t bits_double;
typedef uint32_t bits_float, bits_int;
typedef uint16_t bits_short;
typedef uint8_t bits_byte, bits_char;
#define OUTSIDE_double(x) 0
#define OUTSIDE_float(x) (((x) < -3.4028234663852886e38) | ((x) > 3.4028234663852886e38))
#define OUTSIDE_short(x) (((x) < INT16_MIN) | ((x) > INT16_MAX))
#define OUTSIDE_int(x) (((x) < INT32_MIN) | ((x) > INT32_MAX))
#define OUTSIDE_byte(x) (((x) < INT8_MIN) | ((x) > INT8_MAX))
#define OUTSIDE_char(x) 0

typedef struct {
    const char *external, *internal;
    size_t external_size, internal_size;
    void (*fill)(void *, size_t);
    size_t (*encode)(const void *, void *, size_t); /* gives the number out of range */
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
            outside |= sizeof(mem_c) != sizeof(ext_c) && OUTSIDE_##ext(x);                         \
            ext_c y = (ext_c)x;                                                                    \
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

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--op", "--external", "--internal", "--mb", NULL};
    known_options(argc, argv, known);
    const char *op = option(argc, argv, "--op", NULL);
    const char *external = option(argc, argv, "--external", "char");
    const char *internal = option(argc, argv, "--internal", "char");
    const Pair *p = pairs, *end = pairs + sizeof pairs / sizeof pairs[0];
    while (p < end && (strcmp(p->external, external) || strcmp(p->internal, internal))) p++;
    if (p == end) {
        fprintf(stderr, "limits: no such pair of types\n");
        return 2;
    }
    size_t n = option_size(argc, argv, "--mb", "64") * 1000000 / p->external_size;
    size_t bytes = n * p->external_size;
    char *values = touched(n * p->internal_size), *block = touched(BLOCK);
    p->fill(values, n);
    char name[64], params[200];
    snprintf(name, sizeof name, "limit %s", op);
    snprintf(params, sizeof params, "{\"external\": \"%s\", \"internal\": \"%s\", \"values\": %zu}",
             external, internal, n);

    if (strcmp(op, "memcpy") == 0) {
        char *copy = touched(bytes);
        double from = now();
        memcpy(copy, values, bytes);
        double seconds = now() - from;
        uint64_t sum = digest_bytes(DIGEST_START, copy, bytes); /* so that the copy is needed */
        result(name, params, seconds, bytes, 1, &sum);
        free(copy);
    } else {
        int writing = strcmp(op, "write") == 0 || strcmp(op, "rawwrite") == 0;
        int raw = strcmp(op, "rawwrite") == 0 || strcmp(op, "rawread") == 0;
        if (!writing && !raw && strcmp(op, "read") != 0) {
            fprintf(stderr, "limits: no such --op: %s\n", op);
            return 2;
        }
        const char *file = option(argc, argv, "--file", NULL);
        int fd = writing ? open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666) : open(file, O_RDONLY);
        if (fd < 0) fail(file);
        size_t step = (raw ? RAW_BLOCK : BLOCK) / p->external_size, outside = 0, calls = 0;
        double from = now();
        for (size_t i = 0; i < n; i += step, calls++) {
            size_t m = n - i < step ? n - i : step;
            char *memory = values + i * p->internal_size;
            if (writing && !raw) outside += p->encode(memory, block, m);
            if (writing) write_all(fd, raw ? memory : block, m * p->external_size);
            else read_all(fd, raw ? memory : block, m * p->external_size);
            if (!writing && !raw) p->decode(block, memory, m);
        }
        if (close(fd) != 0) fail(file);
        double seconds = now() - from;
        if (outside) {
            fprintf(stderr, "limits: values out of range\n");
            return 1;
        }
        result(name, params, seconds, bytes, calls, NULL);
    }
    free(values);
    free(block);
    return 0;
}
