/* Turns over the bits that its parameter says, where the bytes are. Refuses chunks of 0xff. */
#include "common.h"

static size_t filter(unsigned flags, size_t n, const unsigned *values, size_t nbytes,
                     size_t *buf_size, void **buf)
{
    unsigned char *bytes = *buf;
    (void)flags, (void)buf_size;
    if (n != 1 || nbytes == 0 || bytes[0] == 0xff)
        return 0;
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] ^= (unsigned char)values[0];
    return nbytes;
}

PLUGIN(300, "inplace", 1, filter)
