/* SPDX-License-Identifier: MIT OR Apache-2.0
   A program of some MPI, which gives its communicators to the library of crates/zonda-mpi/examples/selftest.

       steps CASE [NUMBER...]

   Each rank that is content prints "ok". */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int zonda_mpi_selftest(uintptr_t comm, uint64_t seed, uintptr_t round_bytes);
int zonda_mpi_refused(uintptr_t comm);
int zonda_mpi_refused_fortran(int comm);
int zonda_mpi_count_fortran(int comm);
int zonda_mpi_info(uintptr_t info, int of_fortran, const char *key, char *value);
int zonda_mpi_absent(uintptr_t comm, int which);
int zonda_mpi_absent_at_new(uintptr_t comm);
int zonda_mpi_late(uintptr_t comm, const char *path);
int zonda_mpi_thread(uintptr_t comm, int is_refused);
void *zonda_mpi_keep(uintptr_t comm);
int zonda_mpi_end(void *team, const char *words);
int zonda_mpi_many(uintptr_t comm, int count);
int zonda_mpi_large(uintptr_t comm);
int zonda_mpi_measure(uintptr_t comm);

/* The standard ABI has these names for it. */
#if !defined OPEN_MPI && !defined MPICH_NUMVERSION && !defined MPI_Comm_c2f
#define MPI_Comm_c2f MPI_Comm_toint
#define MPI_Info_c2f MPI_Info_toint
#endif

#ifndef LIMIT
#define LIMIT 300
#endif

enum { NOT_INITIALIZED = 5, FINALIZED, NULL_COMMUNICATOR, INTER_COMMUNICATOR, FORBIDDEN_THREAD };

static int rank, size;

/* As a C compiler passes a handle: of one with 32 bits, the upper half of the register is whatever it was. */
static uintptr_t word(MPI_Comm comm)
{
    uintptr_t all = (uintptr_t)0xdeadbeef << 32;
    if (sizeof comm == sizeof all)
        all = 0;
    memcpy(&all, &comm, sizeof comm);
    return all;
}

static uintptr_t info_word(MPI_Info info)
{
    uintptr_t all = sizeof info == sizeof all ? 0 : (uintptr_t)0x12345678 << 32;
    memcpy(&all, &info, sizeof info);
    return all;
}

#define MUST(what) \
    do { \
        if (!(what)) { \
            printf("rank %d, line %d: not so: %s\n", rank, __LINE__, #what); \
            return 1; \
        } \
    } while (0)

static int communicators(void)
{
    MUST(zonda_mpi_refused(word(MPI_COMM_WORLD)) == 0);
    MUST(zonda_mpi_refused(word(MPI_COMM_SELF)) == 0);
    MUST(zonda_mpi_refused(word(MPI_COMM_NULL)) == NULL_COMMUNICATOR);
    MUST(zonda_mpi_refused(0) == NULL_COMMUNICATOR);
    MUST(zonda_mpi_refused_fortran((int)MPI_Comm_c2f(MPI_COMM_NULL)) == NULL_COMMUNICATOR);
    MUST(zonda_mpi_count_fortran((int)MPI_Comm_c2f(MPI_COMM_WORLD)) == size);
    MUST(zonda_mpi_count_fortran((int)MPI_Comm_c2f(MPI_COMM_SELF)) == 1);
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    /* A team outlives the communicator that it was made of, and goes by its order. */
    int halves = (size + 1 - rank % 2) / 2;
    MUST(zonda_mpi_count_fortran((int)MPI_Comm_c2f(half)) == halves);
    MUST(zonda_mpi_selftest(word(half), 77, 0) == 0);
    if (size > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? (size - 1) / 2 * 2 : (size / 2) * 2 - 1, 5, &inter);
        MUST(zonda_mpi_refused(word(inter)) == INTER_COMMUNICATOR);
        MPI_Comm_free(&inter);
    }
    void *team = zonda_mpi_keep(word(half));
    MPI_Comm_free(&half);
    MUST(team != NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(zonda_mpi_end(team, "forked child"));
    int status = -1;
    MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static int infos(void)
{
    char value[256] = "", key[300];
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "zonda_attributes", "rank 0's");
    MPI_Info_set(info, "zonda_long", "0123456789012345678901234567890123456789012345678901234567890123456789");
    MUST(zonda_mpi_info(info_word(info), 0, "zonda_attributes", value) == 1 && !strcmp(value, "rank 0's"));
    MUST(zonda_mpi_info(info_word(info), 0, "zonda_long", value) == 1 && strlen(value) == 70);
    MUST(zonda_mpi_info((uintptr_t)(intptr_t)MPI_Info_c2f(info), 1, "zonda_attributes", value) == 1);
    MUST(zonda_mpi_info(info_word(info), 0, "zonda_other", value) == 0);
    MUST(zonda_mpi_info(info_word(info), 0, "", value) == 0);
    MUST(zonda_mpi_info(info_word(MPI_INFO_NULL), 0, "zonda_attributes", value) == 0);
    MUST(zonda_mpi_info((uintptr_t)(intptr_t)MPI_Info_c2f(MPI_INFO_NULL), 1, "zonda_attributes", value) == 0);
    MUST(zonda_mpi_info(0, 0, "zonda_attributes", value) == 0);
    /* The longest key that each MPI has, and longer ones, for which MPI would end the program. */
    for (int length = 30; length < 299; length++) {
        memset(key, 'k', sizeof key);
        key[length] = 0;
        MUST(zonda_mpi_info(info_word(info), 0, key, value) == 0);
    }
    memset(key, 'k', sizeof key);
    key[35] = 0;
    MPI_Info_set(info, key, "long");
    MUST(zonda_mpi_info(info_word(info), 0, key, value) == 1 && !strcmp(value, "long"));
    MPI_Info_free(&info);
    return 0;
}

static void *make_elsewhere(void *result)
{
    *(int *)result = zonda_mpi_refused(word(MPI_COMM_WORLD));
    return NULL;
}

/* Steps by another thread than MPI's main one, where MPI was asked for a level of threads. */
static int threads(int level)
{
    int is_refused = level < MPI_THREAD_SERIALIZED, made = -1;
    MUST(zonda_mpi_thread(word(MPI_COMM_WORLD), is_refused) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, make_elsewhere, &made) == 0 && pthread_join(thread, NULL) == 0);
    MUST(made == (is_refused ? FORBIDDEN_THREAD : 0));
    return 0;
}

static int number(int argc, char **argv, int at)
{
    return argc > at ? (int)strtol(argv[at], NULL, 10) : 0;
}

static int ok(void)
{
    printf("ok\n");
    fflush(stdout);
    return 0;
}

/* Cases after which MPI may wait for ever at its end, so there is none: whoever runs this ends it when all ranks are content. */
static void without_end(int failed)
{
    if (failed)
        _exit(1);
    ok();
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    int level = !strcmp(name, "threads") ? levels[number(argc, argv, 2) & 3] : MPI_THREAD_FUNNELED, has = 0, failed = 1;
    void *kept = NULL;

    /* Nothing is left of what hangs. */
    alarm(LIMIT);
    if (!strcmp(name, "times") && (zonda_mpi_refused(word(MPI_COMM_WORLD)) != NOT_INITIALIZED || zonda_mpi_refused_fortran(0) != NOT_INITIALIZED)) {
        printf("before MPI_Init: no error\n");
        return 1;
    }
    MPI_Init_thread(&argc, &argv, level, &has);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(name, "random")) {
        failed = zonda_mpi_selftest(word(MPI_COMM_WORLD), (uint64_t)number(argc, argv, 2), (uintptr_t)number(argc, argv, 3));
    } else if (!strcmp(name, "communicators")) {
        failed = communicators();
    } else if (!strcmp(name, "infos")) {
        failed = infos();
    } else if (!strcmp(name, "threads")) {
        failed = threads(has);
    } else if (!strcmp(name, "many")) {
        failed = zonda_mpi_many(word(MPI_COMM_WORLD), number(argc, argv, 2));
    } else if (!strcmp(name, "large")) {
        failed = zonda_mpi_large(word(MPI_COMM_WORLD));
    } else if (!strcmp(name, "late")) {
        failed = zonda_mpi_late(word(MPI_COMM_WORLD), argc > 2 ? argv[2] : "/");
    } else if (!strcmp(name, "absent")) {
        /* Ranks come to the team at about one moment, and to its step. */
        MPI_Barrier(MPI_COMM_WORLD);
        without_end(zonda_mpi_absent(word(MPI_COMM_WORLD), number(argc, argv, 2)));
    } else if (!strcmp(name, "absent-at-new")) {
        without_end(rank == size - 1 ? 0 : zonda_mpi_absent_at_new(word(MPI_COMM_WORLD)));
    } else if (!strcmp(name, "measure")) {
        failed = zonda_mpi_measure(word(MPI_COMM_WORLD));
    } else if (!strcmp(name, "times")) {
        kept = zonda_mpi_keep(word(MPI_COMM_WORLD));
        failed = kept == NULL;
    }
    MPI_Finalize();
    if (!strcmp(name, "times") && !failed)
        failed = zonda_mpi_refused(word(MPI_COMM_WORLD)) != FINALIZED || zonda_mpi_end(kept, "MPI is finalized") != 0;
    return failed ? 1 : ok();
}
