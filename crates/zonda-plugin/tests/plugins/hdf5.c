/* Writes every byte as often as its parameter says, in memory that HDF5 gives. */
#include <stdbool.h>

#include "common.h"

extern void *H5allocate_memory(size_t size, bool clear);
extern int H5free_memory(void *memory);
extern int H5Epush2(int64_t stack, const char *file, const char *function, unsigned line,
                    int64_t class, int64_t major, int64_t minor, const char *text, ...);
extern int64_t H5E_ERR_CLS_g, H5E_PLINE_g;
/* Not of HDF5: what the plugins of netCDF-C take from its library. */
extern size_t strlcat(char *dst, const char *src, size_t size);

static size_t filter(unsigned flags, size_t n, const unsigned *values, size_t nbytes,
                     size_t *buf_size, void **buf)
{
    size_t times = n > 0 ? values[0] : 0;
    char said[8] = "filter";
    if (strlcat(said, " 301", sizeof said) != 10 || strcmp(said, "filter ") != 0)
        return 0;
    bool undo = flags & H5Z_FLAG_REVERSE;
    if (times == 0 || (undo && nbytes % times != 0)) {
        H5Epush2(0, __FILE__, __func__, __LINE__, H5E_ERR_CLS_g, H5E_PLINE_g, 0, "times %zu", times);
        return 0;
    }
    size_t len = undo ? nbytes / times : nbytes * times;
    unsigned char *from = *buf, *to = H5allocate_memory(len, false);
    for (size_t i = 0; i < len; i++)
        to[i] = undo ? from[i * times] : from[i / times];
    H5free_memory(*buf);
    *buf = to;
    *buf_size = len;
    return len;
}

PLUGIN(301, "hdf5", 1, filter)
