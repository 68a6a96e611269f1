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

#ifdef WITH_TABLE_MEMBERS
/* tst_udf puts the addresses of these into its tables, and calls none of them. */
#define MEMBER(name)                                                                                \
    int name(void)                                                                                  \
    {                                                                                               \
        return -1;                                                                                  \
    }
MEMBER(NC4_inq)
MEMBER(NC4_inq_type)
MEMBER(NC4_inq_dimid)
MEMBER(HDF5_inq_dim)
MEMBER(NC4_inq_unlimdim)
MEMBER(NC4_inq_att)
MEMBER(NC4_inq_attid)
MEMBER(NC4_inq_attname)
MEMBER(NC4_get_att)
MEMBER(NC4_inq_varid)
MEMBER(NC4_inq_var_all)
MEMBER(NC4_show_metadata)
MEMBER(NC4_inq_unlimdims)
MEMBER(NC4_inq_ncid)
MEMBER(NC4_inq_grps)
MEMBER(NC4_inq_grpname)
MEMBER(NC4_inq_grpname_full)
MEMBER(NC4_inq_grp_parent)
MEMBER(NC4_inq_grp_full_ncid)
MEMBER(NC4_inq_varids)
MEMBER(NC4_inq_dimids)
MEMBER(NC4_inq_typeids)
MEMBER(NC4_inq_type_equal)
MEMBER(NC4_inq_user_type)
MEMBER(NC4_inq_typeid)
#endif
