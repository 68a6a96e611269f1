/* Needs a function that nobody has. */
#include "common.h"

extern size_t H5no_such_function(size_t nbytes);

static size_t filter(unsigned flags, size_t n, const unsigned *values, size_t nbytes,
                     size_t *buf_size, void **buf)
{
    (void)flags, (void)n, (void)values, (void)buf_size, (void)buf;
    return H5no_such_function(nbytes);
}

PLUGIN(302, "broken", 1, filter)
