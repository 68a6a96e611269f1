/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * netcdf_mem.h - files that are blocks of memory. Include netcdf.h first.
 */
#ifndef NETCDF_MEM_H
#define NETCDF_MEM_H 1

/* A block of memory that holds a file. */
typedef struct NC_memio {
    size_t size;  /* bytes */
    void *memory; /* from malloc(), unless NC_MEMIO_LOCKED */
    int flags;
/* The block stays the caller's: it is neither freed nor moved, so the file cannot grow. */
#define NC_MEMIO_LOCKED 1
} NC_memio;

#if defined(__cplusplus)
extern "C" {
#endif

/* Opens size bytes at memory for reading. The block must outlive the file. path is a name only. */
EXTERNL int nc_open_mem(const char *path, int mode, size_t size, void *memory, int *ncidp);
/* Creates a file in memory; nc_close_memio() hands over its bytes. */
EXTERNL int nc_create_mem(const char *path, int mode, size_t initialsize, int *ncidp);
/* Opens a block for reading or, with NC_WRITE, for editing. Without NC_MEMIO_LOCKED the library
 * takes the block over and info->memory must not be used again. */
EXTERNL int nc_open_memio(const char *path, int mode, NC_memio *info, int *ncidp);
/* Closes and returns the bytes of the file: the caller frees info->memory, except that of a
 * locked block, which is the caller's already. */
EXTERNL int nc_close_memio(int ncid, NC_memio *info);

#if defined(__cplusplus)
}
#endif

#endif /* NETCDF_MEM_H */
