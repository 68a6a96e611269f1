/* libzonda-h5shim.so: the HDF5 functions that filter plugins call, for processes without HDF5.
 *
 * A plugin that was not linked with libhdf5 expects its symbols from the program. Zonda's library
 * exports no HDF5 name, since the program may hold a real libhdf5; so they live here, and this file
 * is loaded only when a plugin does not load without them (src/load.rs).
 *
 * Memory is malloc's, as in HDF5. Reports of errors go nowhere. Everything about property lists,
 * types and spaces fails: a plugin asks for those when a data set is created, which is never done
 * through this file.
 *
 * The symbols are global while the process lives. Should a real libhdf5 be loaded later, calls that
 * its users make may land here first, so every function hands over to a real one if there is one.
 *
 * Linked with libm whether it needs it or not: some plugins call it and count on the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t hid_t;

struct search {
    const char *name;
    const void *own;
    void *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *search = data;
    (void)size;
    if (strstr(info->dlpi_name, "hdf5") == NULL)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return 0;
    void *symbol = dlsym(library, search->name);
    dlclose(library);
    if (symbol == NULL || symbol == search->own)
        return 0;
    search->found = symbol;
    return 1;
}

/* A real libhdf5's function of this name, or null. */
static void *real(const char *name, const void *own)
{
    struct search search = {name, own, NULL};
    dl_iterate_phdr(look, &search);
    return search.found;
}

#define HAND_OVER(type, name, ...)                                                                 \
    do {                                                                                           \
        type (*function)() = (type(*)())real(#name, (const void *)name);                           \
        if (function != NULL)                                                                      \
            return function(__VA_ARGS__);                                                          \
    } while (0)

/* Memory: nothing to hand over, since it is malloc's on both sides. */

void *H5allocate_memory(size_t size, bool clear)
{
    if (size == 0)
        return NULL;
    return clear ? calloc(1, size) : malloc(size);
}

void *H5resize_memory(void *memory, size_t size)
{
    if (size == 0) {
        free(memory);
        return NULL;
    }
    return realloc(memory, size);
}

int H5free_memory(void *memory)
{
    free(memory);
    return 0;
}

int H5open(void)
{
    HAND_OVER(int, H5open);
    return 0;
}

int H5check_version(unsigned major, unsigned minor, unsigned release)
{
    (void)major, (void)minor, (void)release;
    return 0;
}

int H5get_libversion(unsigned *major, unsigned *minor, unsigned *release)
{
    HAND_OVER(int, H5get_libversion, major, minor, release);
    if (major != NULL)
        *major = 1;
    if (minor != NULL)
        *minor = 10;
    if (release != NULL)
        *release = 8;
    return 0;
}

/* Errors: kept nowhere. The variable arguments of H5Epush2 cannot be handed over. */

int H5Epush1(const char *file, const char *function, unsigned line, hid_t major, hid_t minor,
             const char *text)
{
    (void)file, (void)function, (void)line, (void)major, (void)minor, (void)text;
    return 0;
}

int H5Epush2(hid_t stack, const char *file, const char *function, unsigned line, hid_t class,
             hid_t major, hid_t minor, const char *text, ...)
{
    (void)stack, (void)file, (void)function, (void)line;
    (void)class, (void)major, (void)minor, (void)text;
    return 0;
}

int H5Eprint2(hid_t stack, void *stream)
{
    HAND_OVER(int, H5Eprint2, stack, stream);
    return 0;
}

int H5Eclear2(hid_t stack)
{
    HAND_OVER(int, H5Eclear2, stack);
    return 0;
}

hid_t H5Eregister_class(const char *name, const char *library, const char *version)
{
    HAND_OVER(hid_t, H5Eregister_class, name, library, version);
    return 0;
}

hid_t H5Ecreate_msg(hid_t class, int type, const char *text)
{
    HAND_OVER(hid_t, H5Ecreate_msg, class, type, text);
    return 0;
}

int H5Eunregister_class(hid_t class)
{
    HAND_OVER(int, H5Eunregister_class, class);
    return 0;
}

/* Filters: what is available is Zonda's business. */

int H5Zregister(const void *class)
{
    HAND_OVER(int, H5Zregister, class);
    return 0;
}

int H5Zunregister(int id)
{
    HAND_OVER(int, H5Zunregister, id);
    return 0;
}

int H5Zfilter_avail(int id)
{
    HAND_OVER(int, H5Zfilter_avail, id);
    return 0;
}

/* Up to eight arguments of word size, which is what all these functions take. */
#define FAILS(name)                                                                                \
    intptr_t name(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f,          \
                  intptr_t g, intptr_t h);                                                         \
    intptr_t name(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f,          \
                  intptr_t g, intptr_t h)                                                          \
    {                                                                                              \
        HAND_OVER(intptr_t, name, a, b, c, d, e, f, g, h);                                         \
        return -1;                                                                                 \
    }

FAILS(H5Pexist)
FAILS(H5Pget)
FAILS(H5Pget_chunk)
FAILS(H5Pget_filter2)
FAILS(H5Pget_filter_by_id2)
FAILS(H5Pget_nfilters)
FAILS(H5Pinsert2)
FAILS(H5Pisa_class)
FAILS(H5Pmodify_filter)
FAILS(H5Premove_filter)
FAILS(H5Pset)
FAILS(H5Pset_filter)
FAILS(H5Sget_simple_extent_dims)
FAILS(H5Sget_simple_extent_ndims)
FAILS(H5Sis_simple)
FAILS(H5Tclose)
FAILS(H5Tconvert)
FAILS(H5Tequal)
FAILS(H5Tget_class)
FAILS(H5Tget_native_type)
FAILS(H5Tget_order)
FAILS(H5Tget_precision)
FAILS(H5Tget_sign)
FAILS(H5Tget_super)
FAILS(H5Tis_variable_str)

/* Here failing is 0. */
size_t H5Tget_size(hid_t type)
{
    HAND_OVER(size_t, H5Tget_size, type);
    return 0;
}

/* Ids that macros of the headers name: no object has the id -1. */
#define NO_ID(name) hid_t name = -1;

NO_ID(H5E_ERR_CLS_g)
NO_ID(H5E_ARGS_g)
NO_ID(H5E_BADSIZE_g)
NO_ID(H5E_BADTYPE_g)
NO_ID(H5E_BADVALUE_g)
NO_ID(H5E_CALLBACK_g)
NO_ID(H5E_CANTENCODE_g)
NO_ID(H5E_CANTDECODE_g)
NO_ID(H5E_CANTFILTER_g)
NO_ID(H5E_CANTGET_g)
NO_ID(H5E_CANTINIT_g)
NO_ID(H5E_CANTREGISTER_g)
NO_ID(H5E_NOSPACE_g)
NO_ID(H5E_OVERFLOW_g)
NO_ID(H5E_PLINE_g)
NO_ID(H5E_PLUGIN_g)
NO_ID(H5E_READERROR_g)
NO_ID(H5E_RESOURCE_g)
NO_ID(H5E_UNSUPPORTED_g)
NO_ID(H5P_CLS_DATASET_CREATE_ID_g)
NO_ID(H5T_NATIVE_DOUBLE_g)
NO_ID(H5T_NATIVE_FLOAT_g)
NO_ID(H5T_NATIVE_INT_g)
NO_ID(H5T_NATIVE_INT16_g)
NO_ID(H5T_NATIVE_UINT_g)
NO_ID(H5T_NATIVE_UINT16_g)
NO_ID(H5T_NATIVE_UINT32_g)
NO_ID(H5T_NATIVE_UINT64_g)
NO_ID(H5T_STD_U32BE_g)
NO_ID(H5T_STD_U32LE_g)
NO_ID(H5T_STD_U64BE_g)
NO_ID(H5T_STD_U64LE_g)

/* The plugins that come with netCDF-C take this from its library where libc has none: Zonda's tools
 * do not load that. Weak, and behind libc's own where there is one. */
#undef strlcat
__attribute__((weak)) size_t strlcat(char *dst, const char *src, size_t size)
{
    size_t had = dst == NULL ? 0 : strnlen(dst, size), more = strlen(src);
    if (had < size) {
        size_t fits = more < size - had ? more : size - had - 1;
        memcpy(dst + had, src, fits);
        dst[had + fits] = '\0';
    }
    return had + more;
}
