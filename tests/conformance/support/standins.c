/* What some test programs take from the reference's private parts only as a convenience: copying
   strings, reading and writing whole files. Nothing in here is under test. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

size_t strlcat(char *dst, const char *src, size_t size)
{
    size_t used = strnlen(dst, size), more = strlen(src);
    if (used < size) {
        size_t fits = size - used - 1;
        if (fits > more)
            fits = more;
        memcpy(dst + used, src, fits);
        dst[used + fits] = 0;
    }
    return used + more;
}

#ifdef WITH_WHOLE_FILES
struct NCbytes;
extern int ncbytesappendn(struct NCbytes *, const void *, unsigned long);

int NC_readfile(const char *path, struct NCbytes *content)
{
    static char piece[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t got;
    if (f == NULL)
        return -1;
    while ((got = fread(piece, 1, sizeof piece, f)) != 0)
        ncbytesappendn(content, piece, got);
    return fclose(f) ? -1 : 0;
}

int NC_writefile(const char *path, size_t size, void *content)
{
    FILE *f = fopen(path, "wb");
    size_t put;
    if (f == NULL)
        return -1;
    put = fwrite(content, 1, size, f);
    return fclose(f) || put != size ? -1 : 0;
}
#endif
