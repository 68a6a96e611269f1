/* Calls whose number and bytes are known: what a recording of it must say. known FILE [deflate] */
#include <stdio.h>
#include <string.h>
#include <netcdf.h>

#define OK(call)                                                                     \
    do {                                                                             \
        int code = (call);                                                           \
        if (code != NC_NOERR) {                                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, nc_strerror(code));           \
            return 1;                                                                \
        }                                                                            \
    } while (0)

int main(int argc, char **argv) {
    static double data[7][1000], back[7 * 1000];
    int nc, dims[2], temp, wind, deflate = argc > 2 && !strcmp(argv[2], "deflate");
    for (int t = 0; t < 7; t++)
        for (int x = 0; x < 1000; x++) data[t][x] = t + x / 1000.0;
    OK(nc_create(argv[1], deflate ? NC_NETCDF4 : 0, &nc));
    OK(nc_def_dim(nc, "time", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(nc, "x", 1000, &dims[1]));
    OK(nc_def_var(nc, "temp", NC_FLOAT, 2, dims, &temp));
    OK(nc_def_var(nc, "wind", NC_DOUBLE, 1, dims + 1, &wind));
    if (deflate) OK(nc_def_var_deflate(nc, temp, 1, 1, 4));
    OK(nc_enddef(nc));
    for (size_t t = 0; t < 7; t++) {
        size_t start[] = {t, 0}, count[] = {1, 1000};
        OK(nc_put_vara_double(nc, temp, start, count, data[t]));
    }
    OK(nc_put_var_double(nc, wind, data[0]));
    /* Refused, and counted as such. */
    size_t beyond[] = {0, 1000}, one[] = {1, 1};
    if (nc_put_vara_double(nc, temp, beyond, one, data[0]) != NC_EINVALCOORDS) return 1;
    OK(nc_close(nc));
    OK(nc_open(argv[1], NC_NOWRITE, &nc));
    OK(nc_get_var_double(nc, temp, back));
    /* Of a chunked variable the second and third find what the first left. */
    for (size_t x = 0; x < 3; x++) {
        size_t at[] = {3, x};
        OK(nc_get_var1_double(nc, temp, at, back + 3000 + x));
    }
    OK(nc_close(nc));
    return back[6 * 1000 + 500] == 6.5 ? 0 : 1;
}
