/* What the engines share: options, clock, digest, result lines, type pairs. C99 and POSIX only.
 *
 * An engine is a small program on the public netCDF C interface. It runs one set of workloads and
 * prints a JSON line for each:
 *   {"workload", "params", "seconds", "bytes", "calls", "digest"}
 * `digest` is over what the library gave back (null where it gives nothing back: bench/run.py then
 * takes the digest of the file that was written). Exit status: 0 done, 1 failed, 2 wrong usage.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <netcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NC(call)                                                                                   \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        if (status_ != NC_NOERR) {                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, nc_strerror(status_));   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- options: `--name value` ---------------------------------------------------------------- */

/* The value after `name`, or `otherwise`; null as `otherwise` makes the option required. */
static inline const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    if (!otherwise) {
        fprintf(stderr, "%s: %s VALUE is missing\n", argv[0], name);
        exit(2);
    }
    return otherwise;
}

static inline size_t option_size(int argc, char **argv, const char *name, const char *otherwise)
{
    const char *value = option(argc, argv, name, otherwise);
    char *end;
    double n = strtod(value, &end);
    if (end == value || *end != '\0' || !(n >= 0) || n > 1e15) {
        fprintf(stderr, "%s: %s: not a size: %s\n", argv[0], name, value);
        exit(2);
    }
    return (size_t)n;
}

/* Ends the program unless every option is one of the null-terminated `known`. */
static inline void known_options(int argc, char **argv, const char *const *known)
{
    for (int i = 1; i < argc; i += 2) {
        const char *const *k = known;
        while (*k && strcmp(*k, argv[i]) != 0) k++;
        if (*k && i + 1 < argc) continue;
        fprintf(stderr, "%s: do not understand '%s'; options, each with a value:", argv[0], argv[i]);
        for (k = known; *k; k++) fprintf(stderr, " %s", *k);
        fputc('\n', stderr);
        exit(2);
    }
}

/* The creation flag for `--format 1|2|4|5`. */
static inline int format_flag(int argc, char **argv)
{
    switch (option_size(argc, argv, "--format", "2")) {
    case 1: return 0;
    case 2: return NC_64BIT_OFFSET;
    case 4: return NC_NETCDF4;
    case 5: return NC_64BIT_DATA;
    default: fprintf(stderr, "%s: --format is 1, 2, 4 or 5\n", argv[0]); exit(2);
    }
}

/* ---- clock, memory, digest, random numbers ---------------------------------------------------- */

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Memory whose pages are there before a clock starts. */
static inline void *touched(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0x5a, bytes);
    return p;
}

#define DIGEST_START 0xcbf29ce484222325u

static inline uint64_t digest_word(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static inline uint64_t digest_bytes(uint64_t h, const void *bytes, size_t n)
{
    const char *p = bytes;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = digest_word(h, word);
    }
    uint64_t rest = n;
    for (size_t i = 0; i < n; i++) rest = rest << 8 | (unsigned char)p[i];
    return digest_word(h, rest);
}

static inline uint64_t digest_text(uint64_t h, const char *text)
{
    return digest_bytes(h, text, strlen(text));
}

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- results ---------------------------------------------------------------------------------- */

/* One result line; `params` is the text of a JSON object. `digest` may be null. */
static inline void result(const char *workload, const char *params, double seconds, size_t bytes,
                          size_t calls, const uint64_t *digest)
{
    printf("{\"workload\": \"%s\", \"params\": %s, \"seconds\": %.9f, \"bytes\": %zu, "
           "\"calls\": %zu, \"digest\": ", workload, params, seconds, bytes, calls);
    if (digest) printf("\"%016llx\"}\n", (unsigned long long)*digest);
    else printf("null}\n");
    fflush(stdout);
}

/* ---- type pairs ------------------------------------------------------------------------------- */

/* P(file's type, its C type, memory's type, its C type, suffix of nc_put_var_ and nc_get_var_). The
 * suffixes `long` and `ubyte` are left out: on LP64 they are `longlong` and `uchar`. */
#define FOR_EACH_MEMORY(P, ext, ext_c)                                                             \
    P(ext, ext_c, schar, signed char, schar)                                                       \
    P(ext, ext_c, uchar, unsigned char, uchar)                                                     \
    P(ext, ext_c, short, short, short)                                                             \
    P(ext, ext_c, ushort, unsigned short, ushort)                                                  \
    P(ext, ext_c, int, int, int)                                                                   \
    P(ext, ext_c, uint, unsigned, uint)                                                            \
    P(ext, ext_c, longlong, long long, longlong)                                                   \
    P(ext, ext_c, ulonglong, unsigned long long, ulonglong)                                        \
    P(ext, ext_c, float, float, float)                                                             \
    P(ext, ext_c, double, double, double)

#define FOR_EACH_PAIR(P)                                                                           \
    P(char, char, char, char, text)                                                                \
    FOR_EACH_MEMORY(P, byte, int8_t)                                                               \
    FOR_EACH_MEMORY(P, short, int16_t)                                                             \
    FOR_EACH_MEMORY(P, int, int32_t)                                                               \
    FOR_EACH_MEMORY(P, float, float)                                                               \
    FOR_EACH_MEMORY(P, double, double)                                                             \
    FOR_EACH_MEMORY(P, ubyte, uint8_t)                                                             \
    FOR_EACH_MEMORY(P, ushort, uint16_t)                                                           \
    FOR_EACH_MEMORY(P, uint, uint32_t)                                                             \
    FOR_EACH_MEMORY(P, int64, int64_t)                                                             \
    FOR_EACH_MEMORY(P, uint64, uint64_t)

/* Which pairs a run takes: all, or the one named. */
static inline int wanted(const char *external, const char *internal, const char *this_external,
                         const char *this_internal)
{
    return strcmp(external, "all") == 0
        || (strcmp(external, this_external) == 0 && strcmp(internal, this_internal) == 0);
}

/* Element `i` of every array: within 0..120, so that each type can hold it, and fractional in
 * floating point, so that truncation shows. */
static inline double pattern(size_t i)
{
    return (double)((uint32_t)i * 2654435761u >> 8) / 16777216.0 * 120.0;
}

#endif
