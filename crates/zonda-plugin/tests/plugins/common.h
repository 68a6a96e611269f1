/* What a plugin takes from HDF5's headers, so that the tests need none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int version, id;
    unsigned encoder_present, decoder_present;
    const char *name;
    void *can_apply, *set_local;
    size_t (*filter)(unsigned flags, size_t cd_nelmts, const unsigned cd_values[], size_t nbytes,
                     size_t *buf_size, void **buf);
} H5Z_class2_t;

#define H5Z_FLAG_REVERSE 0x0100

#ifndef PLUGIN_TYPE
#define PLUGIN_TYPE 0
#endif
int H5PLget_plugin_type(void) { return PLUGIN_TYPE; }

#define PLUGIN(id, name, encodes, filter)                                                          \
    const void *H5PLget_plugin_info(void)                                                          \
    {                                                                                              \
        static const H5Z_class2_t class = {1, id, encodes, 1, name, NULL, NULL, filter};           \
        return &class;                                                                             \
    }
