/* Calls a function of the program, whose address its two parameters are, and turns over the bits if that says 0. Not built for
 * files that others read. */
#include "common.h"

static size_t filter(unsigned flags, size_t n, const unsigned *values, size_t nbytes,
                     size_t *buf_size, void **buf)
{
    unsigned char *bytes = *buf;
    int (*function)(void);
    uintptr_t address;
    (void)flags, (void)buf_size;
    if (n != 2)
        return 0;
    address = (uintptr_t)((uint64_t)values[1] << 32 | values[0]);
    memcpy(&function, &address, sizeof function);
    if (function() != 0)
        return 0;
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] ^= 0x5a;
    return nbytes;
}

PLUGIN(306, "calling", 1, filter)
