/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What every oracle program uses: it makes calls and prints a transcript of them. The program is
 * run on the distribution's library and on Zonda's; run.sh compares transcripts and files.
 *
 *   R(call)      makes a call that returns a code, and prints source text and code
 *   note(...)    a line of context, printf style
 *   ints(...)    output values; buffers are poisoned first, so that "not written" shows as well
 *
 * Only calls whose pointers the reference tolerates are made: it crashes on others. */
#ifndef ORACLE_HARNESS_H
#define ORACLE_HARNESS_H

#include <errno.h>
#include <netcdf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define POISON 0x5a
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define R(call) report(__LINE__, #call, (call))

static inline int report(int line, const char *text, int code) {
    printf("%d: %s -> %d\n", line, text, code);
    return code;
}

__attribute__((format(printf, 1, 2))) static inline void note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("   # ");
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

#define poison(thing) memset(&(thing), POISON, sizeof(thing))

static inline void ints(const char *what, const int *values, size_t n) {
    printf("   %s =", what);
    for (size_t i = 0; i < n; i++) printf(" %d", values[i]);
    putchar('\n');
}

static inline void sizes(const char *what, const size_t *values, size_t n) {
    printf("   %s =", what);
    for (size_t i = 0; i < n; i++) printf(" %zu", values[i]);
    putchar('\n');
}

static inline void doubles(const char *what, const double *values, size_t n) {
    printf("   %s =", what);
    for (size_t i = 0; i < n; i++) printf(" %.17g", values[i]);
    putchar('\n');
}

static inline void bytes(const char *what, const void *data, size_t n) {
    printf("   %s =", what);
    for (size_t i = 0; i < n; i++) printf(" %02x", ((const unsigned char *)data)[i]);
    putchar('\n');
}

/* Text that may be unterminated: up to a NUL, n bytes at most; odd bytes in hexadecimal. */
static inline void text(const char *what, const char *value, size_t n) {
    printf("   %s = \"", what);
    for (size_t i = 0; i < n && value[i]; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c >= 32 && c < 127) putchar(c);
        else printf("\\x%02x", c);
    }
    printf("\"\n");
}

static inline uint64_t digest_of(uint64_t seed, const void *data, size_t n) {
    uint64_t hash = seed ? seed : 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return hash;
}

/* Whether a file is there; its size is the layout's business and compared by layout.c only. */
static inline void presence(const char *path) {
    struct stat st;
    printf("   %s %s\n", path, stat(path, &st) == 0 ? "exists" : "is absent");
}

static inline void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(3);
    }
}

/* Everything inquiries tell about an open file, and all its data as doubles or text. */
static inline void describe(int nc) {
    int ndims = -1, nvars = -1, natts = -1, unlim = -9, format = -1;
    char name[NC_MAX_NAME + 1];
    printf("   describe: code %d", nc_inq(nc, &ndims, &nvars, &natts, &unlim));
    printf(" format code %d", nc_inq_format(nc, &format));
    printf(" ndims %d nvars %d natts %d unlim %d format %d\n", ndims, nvars, natts, unlim, format);
    for (int d = 0; d < ndims; d++) {
        size_t len = 0;
        memset(name, 0, sizeof name);
        int code = nc_inq_dim(nc, d, name, &len);
        printf("   dim %d code %d len %zu", d, code, len);
        text("name", name, sizeof name);
    }
    for (int v = -1; v < nvars; v++) {
        int dims[NC_MAX_VAR_DIMS], nd = 0, na = natts;
        nc_type type = 0;
        if (v >= 0) {
            memset(name, 0, sizeof name);
            int code = nc_inq_var(nc, v, name, &type, &nd, dims, &na);
            printf("   var %d code %d type %d natts %d", v, code, type, na);
            ints("dims", dims, (size_t)nd);
            text("name", name, sizeof name);
        }
        for (int a = 0; a < na; a++) {
            nc_type at = 0;
            size_t len = 0;
            memset(name, 0, sizeof name);
            int c1 = nc_inq_attname(nc, v, a, name);
            int c2 = nc_inq_att(nc, v, name, &at, &len);
            printf("   att %d codes %d %d type %d len %zu", a, c1, c2, at, len);
            unsigned char *raw = calloc(len + 1, 8);
            int c3 = nc_get_att(nc, v, name, raw);
            size_t size = 0;
            nc_inq_type(nc, at, NULL, &size);
            printf(" get %d digest %016llx", c3, (unsigned long long)digest_of(0, raw, len * size));
            text("name", name, sizeof name);
            free(raw);
        }
        if (v >= 0) {
            size_t n = 1, size = 0;
            for (int d = 0; d < nd; d++) {
                size_t len = 0;
                nc_inq_dimlen(nc, dims[d], &len);
                n *= len;
            }
            nc_inq_type(nc, type, NULL, &size);
            if (n <= 1000000) {
                unsigned char *raw = calloc(n + 1, 8);
                int code = nc_get_var(nc, v, raw);
                printf("   data code %d n %zu digest %016llx\n", code, n,
                       (unsigned long long)digest_of(0, raw, n * size));
                free(raw);
            }
        }
    }
}

/* Opens, describes, closes. */
static inline void describe_file(const char *path) {
    int nc = -1, code = nc_open(path, NC_NOWRITE, &nc);
    printf("   file %s: open %d\n", path, code);
    if (code == NC_NOERR) {
        describe(nc);
        printf("   close %d\n", nc_close(nc));
    }
}

/* The numeric C families: suffix, C type, format, type that prints. */
#define NUMERIC_FAMILIES(X)                    \
    X(schar, signed char, "%d", int)           \
    X(uchar, unsigned char, "%d", int)         \
    X(short, short, "%d", int)                 \
    X(int, int, "%d", int)                     \
    X(long, long, "%ld", long)                 \
    X(float, float, "%.9g", double)            \
    X(double, double, "%.17g", double)         \
    X(ubyte, unsigned char, "%d", int)         \
    X(ushort, unsigned short, "%d", int)       \
    X(uint, unsigned int, "%u", unsigned)      \
    X(longlong, long long, "%lld", long long)  \
    X(ulonglong, unsigned long long, "%llu", unsigned long long)

/* The formats of classic files: name, creation flags, last type that they hold. */
static const struct {
    const char *name;
    int flags;
    nc_type last_type;
} FORMATS[] = {
    {"cdf1", 0, NC_DOUBLE},
    {"cdf2", NC_64BIT_OFFSET, NC_DOUBLE},
    {"cdf5", NC_64BIT_DATA, NC_UINT64},
};

static inline char *path_of(const char *stem, const char *format) {
    static char path[300];
    snprintf(path, sizeof path, "%s_%s.nc", stem, format);
    return path;
}

__attribute__((constructor)) static void line_buffered(void) { setvbuf(stdout, NULL, _IOLBF, 0); }

#endif
