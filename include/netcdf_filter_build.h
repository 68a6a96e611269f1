/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * netcdf_filter_build.h - for sources of filter plugins.
 *
 * A plugin is a shared library in a folder of HDF5_PLUGIN_PATH. It exports H5PLget_plugin_type()
 * and H5PLget_plugin_info() (prototypes below), the second giving a H5Z_class2_t, and may export
 * NCZ_get_codec_info() for use with Zarr. Define USE_HDF5 to take the HDF5 types from hdf5.h;
 * without it this file has all that is needed.
 */
#ifndef NETCDF_FILTER_BUILD_H
#define NETCDF_FILTER_BUILD_H 1

#include <stddef.h>
#include <stdlib.h>

#include "netcdf.h"
#include "netcdf_filter.h"

#if defined(USE_HDF5)
#include <H5PLextern.h>
#include <hdf5.h>
#elif !defined(H5Zpublic_H) && !defined(_H5Zpublic_H)
/* The part of the HDF5 plugin interface that a filter sees. It is binary-compatible. */

#define H5Z_FILTER_RESERVED 256 /* ids below belong to HDF5 itself */
#define H5Z_FILTER_MAX 65535
#define H5Z_CLASS_T_VERS 1

#define H5Z_FLAG_MANDATORY 0x0000
#define H5Z_FLAG_OPTIONAL 0x0001 /* a chunk the filter cannot take is stored without it */
#define H5Z_FLAG_REVERSE 0x0100  /* decode */
#define H5Z_FLAG_SKIP_EDC 0x0200 /* do not verify checksums */

typedef int htri_t;
typedef int herr_t;
typedef unsigned long long hsize_t;
typedef long long hid_t;
typedef int H5Z_filter_t;

/* Called with HDF5 ids of the creation list, type and space. The library has none to give:
 * leave these two NULL where possible. */
typedef htri_t (*H5Z_can_apply_func_t)(hid_t dcpl_id, hid_t type_id, hid_t space_id);
typedef herr_t (*H5Z_set_local_func_t)(hid_t dcpl_id, hid_t type_id, hid_t space_id);

/* Transforms nbytes bytes in *buf, which it may replace, and returns their new number; 0 means
 * failure, and then *buf must be as it was. */
typedef size_t (*H5Z_func_t)(unsigned int flags, size_t cd_nelmts,
                             const unsigned int cd_values[], size_t nbytes, size_t *buf_size,
                             void **buf);

typedef struct H5Z_class2_t {
    int version; /* H5Z_CLASS_T_VERS */
    H5Z_filter_t id;
    unsigned encoder_present;
    unsigned decoder_present;
    const char *name;
    H5Z_can_apply_func_t can_apply;
    H5Z_set_local_func_t set_local;
    H5Z_func_t filter;
} H5Z_class2_t;

typedef enum H5PL_type_t {
    H5PL_TYPE_ERROR = -1,
    H5PL_TYPE_FILTER = 0,
    H5PL_TYPE_NONE = 1
} H5PL_type_t;

/* *buf is malloc() memory. */
#define H5allocate_memory(size,clear) ((clear) ? calloc(1, (size)) : malloc(size))
#define H5resize_memory(buf,size) realloc(buf, size)
#define H5free_memory(buf) free(buf)
#endif

/* Entry points of every plugin: returns H5PL_TYPE_FILTER; returns a const H5Z_class2_t *. */
typedef H5PL_type_t (*H5PL_get_plugin_type_proto)(void);
typedef const void *(*H5PL_get_plugin_info_proto)(void);

/* ---- Zarr codecs ---------------------------------------------------------------------------- */

#define NCZ_CODEC_CLASS_VER 1        /* NCZ_codec_t.version */
#define NCZ_CODEC_HDF5 1             /* NCZ_codec_t.sort: an HDF5 filter with a codec name */
#define NCZ_FILTER_DECODE 0x00000001 /* flag of a filter call */

/* Entry points of a plugin with codecs: one const NCZ_codec_t *; a NULL-terminated list. */
typedef const void *(*NCZ_get_codec_info_proto)(void);
typedef const void *(*NCZ_codec_info_defaults_proto)(void);

/* How a filter appears in Zarr metadata. Functions return NC_* codes; what they allocate is
 * malloc() memory of the caller. Function members may be NULL. */
typedef struct NCZ_codec_t {
    int version;
    int sort;
    const char *codecid; /* the codec's name in Zarr */
    unsigned int hdf5id; /* the filter's id in HDF5 */
    /* After loading, before unloading. */
    void (*NCZ_codec_initialize)(void);
    void (*NCZ_codec_finalize)(void);
    /* Codec JSON to filter parameters, and back. */
    int (*NCZ_codec_to_hdf5)(const char *codec, size_t *nparamsp, unsigned **paramsp);
    int (*NCZ_hdf5_to_codec)(size_t nparams, const unsigned *params, char **codecp);
    /* Parameters as stored (v...) to parameters for the filter call (w...), before first use. */
    int (*NCZ_modify_parameters)(int ncid, int varid, size_t *vnparamsp, unsigned **vparamsp,
                                 size_t *wnparamsp, unsigned **wparamsp);
} NCZ_codec_t;

#ifndef NC_UNUSED
#define NC_UNUSED(var) (void)var
#endif
#ifndef DLLEXPORT
#define DLLEXPORT
#endif

#endif /* NETCDF_FILTER_BUILD_H */
