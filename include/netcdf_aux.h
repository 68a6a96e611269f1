/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * netcdf_aux.h - helpers around the interface. Include netcdf.h first.
 */
#ifndef NCAUX_H
#define NCAUX_H

#define NCAUX_ALIGN_C 0       /* fields where the C compiler would put them */
#define NCAUX_ALIGN_UNIFORM 1 /* fields at multiples of the largest alignment */

#if defined(__cplusplus)
extern "C" {
#endif

/* Older names of nc_reclaim_data(), nc_copy_data() and their _all forms in netcdf.h. The copies
 * and all of the next two came with 4.9.3. */
EXTERNL int ncaux_reclaim_data(int ncid, int xtype, void *memory, size_t count);
EXTERNL int ncaux_reclaim_data_all(int ncid, int xtype, void *memory, size_t count);
EXTERNL int ncaux_copy_data(int ncid, int xtype, void *memory, size_t count, void *copy);
EXTERNL int ncaux_copy_data_all(int ncid, int xtype, void *memory, size_t count, void **copyp);
EXTERNL int ncaux_dump_data(int ncid, nc_type xtypeid, void *memory, size_t count, char **buf);
/* nc_inq_user_type() for atomic types too. */
EXTERNL int ncaux_inq_any_type(int ncid, nc_type xtype, char *name, size_t *size,
                               nc_type *basetypep, size_t *nfieldsp, int *classp);

/* A filter and its parameters. */
typedef struct NC_H5_Filterspec {
    unsigned int filterid;
    size_t nparams;
    unsigned int *params;
} NC_H5_Filterspec;

/* Text form "id,param,...": one filter; a list separated by '|'; one parameter with an optional
 * type suffix, which gives one or two words. Results are the caller's to free. */
EXTERNL int ncaux_h5filterspec_parse(const char *txt, unsigned int *idp, size_t *nparamsp,
                                     unsigned int **paramsp);
EXTERNL int ncaux_h5filterspec_parselist(const char *txt0, int *formatp, size_t *nspecsp,
                                         struct NC_H5_Filterspec ***vectorp);
EXTERNL int ncaux_h5filterspec_parse_parameter(const char *txt, size_t *nuiparamsp,
                                               unsigned int *uiparams);
EXTERNL void ncaux_h5filterspec_free(struct NC_H5_Filterspec *f);
/* Puts the 8 bytes of a two-word parameter into the order filters expect, or back. */
EXTERNL void ncaux_h5filterspec_fix8(unsigned char *mem, int decode);

/* A whole file in or out of memory; content is the caller's to free(). */
EXTERNL int ncaux_readfile(const char *filename, size_t *sizep, void **content);
EXTERNL int ncaux_writefile(const char *filename, size_t size, void *content);

/* Alignment in bytes that C gives values of a type, or of a class of types. */
EXTERNL int ncaux_type_alignment(int xtype, int ncid, size_t *alignp);
EXTERNL int ncaux_class_alignment(int ncclass, size_t *alignp);

/* Builds a compound type field by field, with offsets computed. A tag ends with a successful
 * ncaux_end_compound() or with ncaux_abort_compound(); when the former fails, the latter is due. */
EXTERNL int ncaux_begin_compound(int ncid, const char *name, int alignmode, void **tag);
EXTERNL int ncaux_add_field(void *tag, const char *name, nc_type field_type, int ndims,
                            const int *dimsizes);
EXTERNL int ncaux_end_compound(void *tag, nc_type *xtypeid);
EXTERNL int ncaux_abort_compound(void *tag);

/* 4.10.0: the _NCProperties text as a list of name, value, name, value, ... ending with NULL. The
 * list and the strings are the caller's to free(). */
EXTERNL int ncaux_parse_provenance(const char *ncprop, char ***pairsp);

/* 4.9.3: lists of plugin folders (struct NCPluginList of netcdf_filter.h). sep is ':' or ';', or
 * 0 for the platform's. _clear frees the folders, _reclaim the struct too. */
struct NCPluginList;
EXTERNL int ncaux_plugin_path_parse(const char *pathlist, char sep, struct NCPluginList *dirs);
EXTERNL int ncaux_plugin_path_parsen(size_t plen, const char *pathlist, char sep,
                                     struct NCPluginList *dirs);
EXTERNL int ncaux_plugin_path_tostring(const struct NCPluginList *dirs, char sep, char **catp);
EXTERNL int ncaux_plugin_path_append(struct NCPluginList *dirs, const char *dir);
EXTERNL int ncaux_plugin_path_prepend(struct NCPluginList *dirs, const char *dir);
EXTERNL int ncaux_plugin_path_clear(struct NCPluginList *dirs);
EXTERNL int ncaux_plugin_path_reclaim(struct NCPluginList *dirs);
/* The list in use as one string, separated by ';', for callers without C structs (Fortran). */
EXTERNL int ncaux_plugin_path_stringlen(void);
EXTERNL int ncaux_plugin_path_stringget(int pathlen, char *path);
EXTERNL int ncaux_plugin_path_stringset(int pathlen, const char *path);

#if defined(__cplusplus)
}
#endif

#endif /* NCAUX_H */
