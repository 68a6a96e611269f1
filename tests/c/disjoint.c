/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Processes that have one classic file open put pieces that lie between each other's, through every
 * stack of layers, and close in any order: none is lost. Each has read the whole file before, so
 * what it knows of the pieces of others is old. The file is judged by its bytes. */
#include "check.h"
#include <stdint.h>
#include <sys/wait.h>

enum { PROCESSES = 3, BYTES = 30000, RECORDS = 40, ROW = 300, SHORTS = 7 };
/* A record: a row of doubles, and shorts with what fills up to four bytes. */
enum { RECORD = ROW * 8 + (SHORTS * 2 + 3) / 4 * 4 };

static const char *const stacks[] = {
    NULL, "file", "cache:1:4", "cache:64:128", "cachea:1:4:2", "bufa:4:2", "eie:4:4:1",
    "cache:29:141,eie.sds:64:4:1", "cache:4:4,direct", "direct", "mmap",
};
static const size_t pieces[] = {1, 37, 1000, 4096, 5001};

static signed char byte_of(size_t i) { return (signed char)(i * 7 + i / 251 + 1); }
static double double_of(size_t record, size_t i) { return (double)(record * 1000 + i) + 0.5; }
static short short_of(size_t record, size_t i) { return (short)(record * 100 + i + 3); }

/* One of the processes: its pieces, in an order of its own, with gets between. */
static void puts_its_pieces(size_t rank, size_t piece, int mode, int ready, int go) {
    static signed char old[BYTES], now[BYTES];
    static double row[RECORDS * ROW];
    const size_t n = (BYTES + piece - 1) / piece;
    int nc;
    char byte;
    OK(nc_open("disjoint.nc", NC_WRITE | mode, &nc));
    OK(nc_set_fill(nc, NC_NOFILL, NULL));
    OK(nc_get_var_schar(nc, 0, old));
    OK(nc_get_var_double(nc, 1, row));
    CHECK(write(ready, "r", 1) == 1);
    CHECK(read(go, &byte, 1) == 0);
    for (size_t i = 0; i < BYTES; i++) now[i] = byte_of(i);
    for (size_t k = 0; k < n; k++) {
        /* 7919 is a prime: every piece once. */
        const size_t number = k * 7919 % n, at = number * piece;
        const size_t len = at + piece < BYTES ? piece : BYTES - at;
        if (number % PROCESSES != rank) continue;
        OK(nc_put_vara_schar(nc, 0, &at, &len, now + at));
        if (k % 500 == 7) OK(nc_get_vara_schar(nc, 0, &at, &len, old));
        if (k % 5000 == 11) OK(nc_sync(nc));
    }
    for (size_t record = 0; record < RECORDS; record++)
        for (size_t i = (rank + record) % PROCESSES; i < ROW; i += PROCESSES) {
            const double value = double_of(record, i);
            OK(nc_put_var1_double(nc, 1, (size_t[]){record, i}, &value));
        }
    for (size_t record = rank; record < RECORDS; record += PROCESSES) {
        short values[SHORTS];
        for (size_t i = 0; i < SHORTS; i++) values[i] = short_of(record, i);
        OK(nc_put_vara_short(nc, 2, (size_t[]){record, 0}, (size_t[]){1, SHORTS}, values));
    }
    OK(nc_close(nc));
}

static void make(int fill) {
    static signed char zeros[BYTES];
    int nc, dims[4], v;
    OK(nc_create("disjoint.nc", NC_CLOBBER, &nc));
    OK(nc_set_fill(nc, fill, NULL));
    OK(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "n", BYTES, &dims[1]));
    OK(nc_def_dim(nc, "x", ROW, &dims[2]));
    OK(nc_def_dim(nc, "y", SHORTS, &dims[3]));
    OK(nc_def_var(nc, "f", NC_BYTE, 1, dims + 1, &v));
    OK(nc_def_var(nc, "r", NC_DOUBLE, 2, (int[]){dims[0], dims[2]}, &v));
    OK(nc_def_var(nc, "s", NC_SHORT, 2, (int[]){dims[0], dims[3]}, &v));
    OK(nc_enddef(nc));
    if (fill == NC_NOFILL) OK(nc_put_vara_schar(nc, 0, (size_t[]){0}, (size_t[]){100}, zeros));
    /* With NC_NOFILL the file has holes. */
    OK(nc_put_var1_short(nc, 2, (size_t[]){RECORDS - 1, SHORTS - 1}, &(short){1}));
    OK(nc_close(nc));
}

static uint64_t big_endian(const unsigned char *at, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value = value << 8 | at[i];
    return value;
}

static size_t lost(void) {
    static unsigned char file[1 << 20];
    FILE *in = fopen("disjoint.nc", "rb");
    CHECK(in);
    const size_t len = fread(file, 1, sizeof file, in);
    fclose(in);
    CHECK(len > BYTES + RECORDS * RECORD && len < sizeof file);
    const unsigned char *records = file + len - RECORDS * RECORD, *bytes = records - BYTES;
    size_t n = 0;
    for (size_t i = 0; i < BYTES; i++) n += (signed char)bytes[i] != byte_of(i);
    for (size_t record = 0; record < RECORDS; record++) {
        const unsigned char *at = records + record * RECORD;
        for (size_t i = 0; i < ROW; i++) {
            const uint64_t bits = big_endian(at + 8 * i, 8);
            double value;
            memcpy(&value, &bits, 8);
            n += value != double_of(record, i);
        }
        for (size_t i = 0; i < SHORTS; i++)
            n += (short)big_endian(at + ROW * 8 + 2 * i, 2) != short_of(record, i);
    }
    return n;
}

int main(void) {
    int tried = 0;
    for (size_t s = 0; s < sizeof stacks / sizeof *stacks; s++)
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            for (int how = 0; how < 4; how++) {
                const int mode = how & 1 ? NC_SHARE : NC_NOWRITE;
                int ready[2], go[2], status;
                char byte;
                unsetenv("ZONDA_IO");
                make(how & 2 ? NC_NOFILL : NC_FILL);
                if (stacks[s]) setenv("ZONDA_IO", stacks[s], 1);
                CHECK(pipe(ready) == 0 && pipe(go) == 0);
                fflush(stdout);
                for (size_t rank = 0; rank < PROCESSES; rank++) {
                    const pid_t child = fork();
                    CHECK(child >= 0);
                    if (child) continue;
                    close(go[1]);
                    puts_its_pieces(rank, pieces[p], mode, ready[1], go[0]);
                    exit(0);
                }
                for (int i = 0; i < PROCESSES; i++) CHECK(read(ready[0], &byte, 1) == 1);
                close(go[1]);
                for (int i = 0; i < PROCESSES; i++) {
                    CHECK(wait(&status) > 0);
                    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
                }
                close(ready[0]), close(ready[1]), close(go[0]);
                const size_t n = lost();
                if (n) {
                    fprintf(stderr, "%s, pieces of %zu, NC_SHARE %d, no fill %d: %zu lost\n",
                            stacks[s] ? stacks[s] : "default", pieces[p], how & 1, how >> 1, n);
                    return 1;
                }
                tried++;
            }
    printf("%d runs of %d processes\n", tried, PROCESSES);
    return 0;
}
