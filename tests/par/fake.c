/* SPDX-License-Identifier: MIT OR Apache-2.0
   A library that looks like an MPI, and says of itself what VERSION is. */
#include <string.h>

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int MPI_Get_library_version(char *version, int *length)
{
    strcpy(version, VERSION);
    *length = (int)strlen(version);
    return 0;
}
