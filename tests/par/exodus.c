/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * exodus LIBRARY FILE: Debian's exodusII library, which is linked with libnetcdf_mpi, writes a mesh of one square. Debian has no headers of it. */
#include <dlfcn.h>
#include <stdio.h>

enum { CLOBBER = 8, API = 602 };

int main(int argc, char **argv) {
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int word = 8, id;
    double x[4] = {0, 1, 1, 0}, y[4] = {0, 0, 1, 1};
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    int (*create)(const char *, int, int *, int *, int) = dlsym(library, "ex_create_int");
    int (*init)(int, const char *, int, int, int, int, int, int) = dlsym(library, "ex_put_init");
    int (*coord)(int, const void *, const void *, const void *) = dlsym(library, "ex_put_coord");
    int (*end)(int) = dlsym(library, "ex_close");
    int (*create_of_netcdf)(const char *, int, int *) = dlsym(library, "nc_create");
    if (!create || !init || !coord || !end || !create_of_netcdf) return 3;
    id = create(argv[2], CLOBBER, &word, &word, API);
    if (id < 0) return 4;
    return init(id, "square", 2, 4, 0, 0, 0, 0) || coord(id, x, y, NULL) || end(id);
}
