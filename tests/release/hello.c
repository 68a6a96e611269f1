/* Says which library it runs on, and reads a file: exit 0 if both worked. */
#include <netcdf.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int nc, dims = 0, answer = argc > 1 ? nc_open(argv[1], NC_NOWRITE, &nc) : NC_EINVAL;
    if (answer == NC_NOERR) answer = nc_inq_ndims(nc, &dims);
    if (answer == NC_NOERR) answer = nc_close(nc);
    printf("%s\n%d dimensions: %s\n", nc_inq_libvers(), dims, nc_strerror(answer));
    return answer != NC_NOERR || dims != 2;
}
