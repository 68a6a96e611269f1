/* SPDX-License-Identifier: MIT OR Apache-2.0
   Compares the table of constants of this MPI's kind with its mpi.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void zonda_mpi_constants(int kind, void (*see)(const char *, int64_t, const char *));

static int seen, wrong;

static struct {
    const char *name;
    int64_t value;
} list[32];
static int n;

#define ADD(constant) (list[n].name = #constant, list[n++].value = (int64_t)(intptr_t)(constant))

static void see(const char *name, int64_t value, const char *symbol)
{
    int at = 0;
    while (at < n && strcmp(list[at].name, name))
        at++;
    int64_t expected = list[at].value;
    Dl_info info;
    seen++;
    if (at == n) {
        printf("%s is not compared\n", name);
        wrong++;
    } else if (symbol) {
        /* The constant is the address of the symbol, as the program sees it. */
        if (dlsym(RTLD_DEFAULT, symbol) != (void *)(intptr_t)expected) {
            const char *other = dladdr((void *)(intptr_t)expected, &info) && info.dli_sname ? info.dli_sname : "?";
            printf("%s is not %s, but %s\n", name, symbol, other);
            wrong++;
        }
    } else if (value != expected) {
        printf("%s is %#llx, not %#llx\n", name, (long long)expected, (long long)value);
        wrong++;
    }
}

int main(void)
{
    ADD(MPI_COMM_NULL);
    ADD(MPI_COMM_WORLD);
    ADD(MPI_COMM_SELF);
    ADD(MPI_INFO_NULL);
    ADD(MPI_REQUEST_NULL);
    ADD(MPI_ERRORS_RETURN);
    ADD(MPI_BYTE);
    ADD(MPI_UINT64_T);
    ADD(MPI_INT64_T);
    ADD(MPI_SUM);
    ADD(MPI_MAX);
    ADD(MPI_MIN);
    ADD(MPI_BOR);
    ADD(MPI_STATUS_IGNORE);
    ADD(MPI_ANY_SOURCE);
    ADD(MPI_THREAD_SERIALIZED);
    ADD(MPI_THREAD_FUNNELED);
    ADD(MPI_MAX_INFO_KEY);
    ADD(sizeof(MPI_Comm));
#if defined OPEN_MPI
    int kind = 1;
#else
    int kind = sizeof(MPI_Comm) == 4 ? 0 : 2;
#endif
    zonda_mpi_constants(kind, see);
    /* What the crate takes for granted of all ABIs. */
    wrong += MPI_SUCCESS != 0 || sizeof(MPI_Count) != 8 || sizeof(MPI_Request) != sizeof(MPI_Comm);
    wrong += !(MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_FUNNELED < MPI_THREAD_SERIALIZED);
    wrong += !(MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE) || MPI_MAX_ERROR_STRING > 4096 || MPI_MAX_INFO_VAL > 4096;
    wrong += seen != n;
    printf("kind %d: %d constants, %d wrong\n", kind, seen, wrong);
    return wrong != 0;
}
