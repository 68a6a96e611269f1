/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Gets the first element of `v` in a program that may be set-user-id: secure LIBRARY FILE. Says whether
 * the system takes it for one, and the code of the get. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>

int main(int argc, char **argv)
{
    void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!lib) {
        fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "usage");
        return 2;
    }
    int (*open)(const char *, int, int *) = (int (*)(const char *, int, int *))dlsym(lib, "nc_open");
    int (*find)(int, const char *, int *) = (int (*)(int, const char *, int *))dlsym(lib, "nc_inq_varid");
    int (*get)(int, int, const size_t *, double *) =
        (int (*)(int, int, const size_t *, double *))dlsym(lib, "nc_get_var1_double");
    int file, var;
    size_t at[1] = {0};
    double value = -77;
    int code = open(argv[2], 0, &file);
    if (!code)
        code = find(file, "v", &var);
    if (!code)
        code = get(file, var, at, &value);
    printf("%lu %d %g\n", getauxval(AT_SECURE), code, value);
    return 0;
}
