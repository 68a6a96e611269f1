/* raw_write: what the machine can do with the bytes of a history file, no library between.
 *
 * `raw` moves them with read(2)/write(2) in large blocks. `convert` also does the work that a
 * classic netCDF file cannot avoid: every value is turned to big-endian (and to float, if that is
 * the type in the file) once, block by block, and the block is written or was read once. The
 * second is the limit for any classic netCDF library. `direct` is the limit of the device: large
 * aligned blocks past the page cache (O_DIRECT), and fdatasync at the end.
 *
 *     cc -std=c99 -O3 -march=native raw_write.c -o raw_write
 *     ./raw_write --bytes 200000000 file.raw       (see --help)
 */
#define _GNU_SOURCE /* O_DIRECT; clock_gettime, pwrite */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: raw_write [options] FILE\n"
    "Writes FILE and reads it back; prints one JSON line for each of the two.\n"
    "\n"
    "  --phase both|write|read   what to do (both)\n"
    "  --mode raw|convert|direct bytes as they are; converted to a classic file's form; as they are,\n"
    "                            past the page cache and synced (raw)\n"
    "  --type double|float       convert: type in the file (double); in memory it is double\n"
    "  --bytes N                 bytes of the file (200000000); read: at most the file's own\n"
    "  --record N                bytes of one record, held in memory as the model holds it\n"
    "                            (20000000)\n"
    "  --block N                 bytes of one read(2) or write(2) (raw 1048576, convert 262144,\n"
    "                            direct 4194304)\n"
    "  --positioned              pwrite/pread instead of write/read\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { DIRECT = 4096 }; /* alignment of memory, position and length for O_DIRECT */

typedef struct {
    const char *path;
    bool write, read, convert, direct, to_float, positioned;
    size_t bytes, record, block;
} Options;

static void fail(const char *what)
{
    fprintf(stderr, "raw_write: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void usage_error(const char *what)
{
    fprintf(stderr, "raw_write: do not understand '%s' (--help lists the options)\n", what);
    exit(2);
}

/* Whether `value` is the second of two words. */
static bool second(const char *value, const char *first_word, const char *second_word)
{
    if (strcmp(value, first_word) != 0 && strcmp(value, second_word) != 0) usage_error(value);
    return strcmp(value, second_word) == 0;
}

static size_t size(const char *value)
{
    char *end;
    unsigned long long n = strtoull(value, &end, 10);
    if (end == value || *end != '\0' || n == 0 || value[0] == '-') usage_error(value);
    return (size_t)n;
}

static Options parse(int argc, char **argv)
{
    Options o = {.write = true, .read = true, .bytes = 200000000, .record = 20000000};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--help") == 0) { fputs(help, stdout); exit(0); }
        if (strcmp(a, "--positioned") == 0) { o.positioned = true; continue; }
        if (a[0] != '-' && !o.path) { o.path = a; continue; }
        if (a[0] != '-' || !v) usage_error(a);
        if (strcmp(a, "--phase") == 0 && strcmp(v, "both") == 0) o.write = o.read = true;
        else if (strcmp(a, "--phase") == 0) o.read = second(v, "write", "read"), o.write = !o.read;
        else if (strcmp(a, "--mode") == 0 && strcmp(v, "direct") == 0) o.direct = true;
        else if (strcmp(a, "--mode") == 0) o.convert = second(v, "raw", "convert");
        else if (strcmp(a, "--type") == 0) o.to_float = second(v, "double", "float");
        else if (strcmp(a, "--bytes") == 0) o.bytes = size(v);
        else if (strcmp(a, "--record") == 0) o.record = size(v);
        else if (strcmp(a, "--block") == 0) o.block = size(v);
        else usage_error(a);
        i++;
    }
    if (!o.path) { fputs(help, stderr); exit(2); }
    if (o.convert && o.direct) usage_error("two modes");
    if (o.block == 0) o.block = o.direct ? 4194304 : o.convert ? 262144 : 1048576;
    size_t unit = o.direct ? DIRECT : 8; /* whole pages, or whole values */
    o.block = (o.block + unit - 1) / unit * unit;
    if (o.direct) o.record = o.block;
    if (o.record > o.bytes) o.record = o.bytes;
    o.record = (o.record + unit - 1) / unit * unit;
    return o;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- conversion: the loops are simple so that the compiler vectorises them -------------------- */

static uint32_t swap32(uint32_t x)
{
    return x >> 24 | (x >> 8 & 0xff00u) | (x << 8 & 0xff0000u) | x << 24;
}

static uint64_t swap64(uint64_t x)
{
    return (uint64_t)swap32((uint32_t)x) << 32 | swap32((uint32_t)(x >> 32));
}

static bool little_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static void encode(const double *restrict from, void *restrict to, size_t n, bool to_float)
{
    bool swap = little_endian();
    if (to_float) {
        uint32_t *restrict out = to;
        for (size_t i = 0; i < n; i++) {
            float x = (float)from[i];
            uint32_t bits;
            memcpy(&bits, &x, 4);
            out[i] = swap ? swap32(bits) : bits;
        }
    } else {
        uint64_t *restrict out = to;
        for (size_t i = 0; i < n; i++) {
            uint64_t bits;
            memcpy(&bits, &from[i], 8);
            out[i] = swap ? swap64(bits) : bits;
        }
    }
}

static void decode(const void *restrict from, double *restrict to, size_t n, bool from_float)
{
    bool swap = little_endian();
    if (from_float) {
        const uint32_t *restrict in = from;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = swap ? swap32(in[i]) : in[i];
            float x;
            memcpy(&x, &bits, 4);
            to[i] = x;
        }
    } else {
        const uint64_t *restrict in = from;
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = swap ? swap64(in[i]) : in[i];
            memcpy(&to[i], &bits, 8);
        }
    }
}

/* ---- moving bytes --------------------------------------------------------------------------- */

/* Moves exactly `n` bytes at the file's position, or at `at` if transfers are positioned. */
static void transfer(const Options *o, int fd, bool write_it, char *bytes, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t done = write_it ? (o->positioned ? pwrite(fd, bytes, n, at) : write(fd, bytes, n))
                                : (o->positioned ? pread(fd, bytes, n, at) : read(fd, bytes, n));
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = EIO; /* the file ended early */
        if (done <= 0) fail(o->path);
        bytes += done;
        n -= (size_t)done;
        at += done;
    }
}

static void run(const Options *o, bool write_it)
{
    int flags = (write_it ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY) | (o->direct ? O_DIRECT : 0);
    int fd = open(o->path, flags, 0666);
    if (fd < 0) fail(o->path);
    size_t bytes = o->bytes;
    if (!write_it) {
        off_t end = lseek(fd, 0, SEEK_END);
        if (end < 0 || lseek(fd, 0, SEEK_SET) < 0) fail(o->path);
        if ((size_t)end < bytes) bytes = (size_t)end;
    }

    /* Memory holds one record: the next one is computed into the same place. */
    size_t value = o->convert && o->to_float ? 4 : 8; /* bytes of a value in the file */
    size_t values = o->record / value;
    void *room = NULL;
    errno = posix_memalign(&room, DIRECT, values * sizeof(double));
    double *record = room;
    char *block = malloc(o->block);
    if (!record || !block) fail("memory");
    for (size_t i = 0; i < values; i++) record[i] = 270 + 0.001 * (double)(i % 100000);
    memset(block, 0, o->block);

    double from = now();
    size_t at = 0, calls = 0;
    while (at < bytes) {
        size_t in_record = at % o->record, n = o->block;
        if (n > o->record - in_record) n = o->record - in_record;
        if (n > bytes - at) n = bytes - at;
        if (o->direct && write_it) n = (n + DIRECT - 1) / DIRECT * DIRECT; /* cut off below */
        char *place = o->convert ? block : (char *)record + in_record;
        double *numbers = record + in_record / value;
        if (write_it && o->convert) encode(numbers, block, n / value, o->to_float);
        transfer(o, fd, write_it, place, n, (off_t)at);
        if (!write_it && o->convert) decode(block, numbers, n / value, o->to_float);
        at += n;
        calls++;
    }
    if (o->direct && write_it && (ftruncate(fd, (off_t)bytes) != 0 || fdatasync(fd) != 0))
        fail(o->path);
    if (close(fd) != 0) fail(o->path);
    double seconds = now() - from;

    printf("{\"workload\": \"%s %s\", \"params\": {\"type\": \"%s\", \"block\": %zu, \"record\": %zu, "
           "\"positioned\": %s}, \"seconds\": %.6f, \"bytes\": %zu, \"calls\": %zu, "
           "\"digest\": null}\n",
           o->direct ? "direct" : o->convert ? "convert" : "raw", write_it ? "write" : "read",
           o->to_float ? "float" : "double", o->block, o->record, o->positioned ? "true" : "false",
           seconds, bytes, calls);
    fflush(stdout);
    free(record);
    free(block);
}

int main(int argc, char **argv)
{
    Options o = parse(argc, argv);
    if (o.write) run(&o, true);
    if (o.read) run(&o, false);
    return 0;
}
