/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * netcdf_meta.h - what the library can do, for the preprocessor.
 *
 * The version is that of the interface Zonda offers, not of Zonda (nc_zonda_version() in
 * zonda.h). A feature counts as present when it works; what is absent answers NC_ENOTBUILT,
 * NC_ENOPAR or "none". tests/c/dist/features.c tries each. There are two of this
 * file: in include, for programs without MPI, and in lib/netcdf/mpi/include one that says parallel,
 * which scripts/link.sh makes of the first.
 */
#ifndef NETCDF_META_H
#define NETCDF_META_H

#define NC_VERSION_MAJOR 4
#define NC_VERSION_MINOR 9
#define NC_VERSION_PATCH 0
#define NC_VERSION_NOTE ""
#define NC_VERSION "4.9.0"

#define NC_HAS_NC2 1           /* netCDF-2 functions */
#define NC_HAS_NC4 1           /* netCDF-4 data model */
#define NC_HAS_HDF4 0          /* reading HDF4 SD files */
#define NC_HAS_HDF5 1          /* netCDF-4 files; no libhdf5 is used */
#define NC_HAS_SZIP 1          /* reading szip */
#define NC_HAS_SZIP_WRITE 1    /* writing szip */
#define NC_HAS_DAP2 1          /* OPeNDAP 2 */
#define NC_HAS_DAP4 1          /* DAP 4 */
#define NC_HAS_BYTERANGE 1     /* files read over HTTP by byte ranges */
#define NC_HAS_S3 1            /* 4.9.2: files read from S3 by byte ranges */
#define NC_HAS_DISKLESS 1      /* NC_DISKLESS and netcdf_mem.h */
#define NC_HAS_MMAP 1          /* NC_MMAP */
#define NC_HAS_JNA 0           /* work-arounds for Java callers */
#ifndef NC_HAS_PNETCDF         /* PnetCDF itself is built over the library with -DNC_HAS_PNETCDF=0 */
#define NC_HAS_PNETCDF 0       /* parallel classic files; no libpnetcdf is used */
#endif
#define NC_HAS_PARALLEL4 0     /* parallel netCDF-4 files */
#define NC_HAS_PARALLEL 0      /* either of these two */
#define NC_HAS_CDF5 1          /* 64-bit data format */
#define NC_HAS_ERANGE_FILL 0   /* classic files: values out of range are stored as fill value */
#define NC_RELAX_COORD_BOUND 1 /* start may equal the length where count is 0 */
#define NC_DISPATCH_VERSION 5  /* of struct NC_Dispatch in netcdf_dispatch.h */
#define NC_HAS_PAR_FILTERS 0   /* filters in parallel writes */
#define NC_HAS_NCZARR 0        /* Zarr stores */
#define NC_HAS_MULTIFILTERS 1  /* several filters on one variable */
#define NC_HAS_LOGGING 0       /* log messages chosen by nc_set_log_level() */
#define NC_HAS_QUANTIZE 1      /* nc_def_var_quantize() */
#define NC_HAS_ZSTD 1          /* nc_def_var_zstandard(); built in, no plugin needed */
#define NC_HAS_BZ2 1           /* 4.9.1: nc_def_var_bzip2(); built in */
#define NC_HAS_BLOSC 1         /* 4.9.1: nc_def_var_blosc(); built in */
#define NC_HAS_BENCHMARKS 0    /* benchmarks in the installation */

#endif /* NETCDF_META_H */
