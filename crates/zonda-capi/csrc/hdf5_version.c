/* libzonda-hdf5-version.so: the one HDF5 function that programs take from libnetcdf's dependencies.
 *
 * Debian's netCDF4-python calls H5get_libversion, but lists only libnetcdf as needed: the symbol came
 * with the libhdf5 under it. Zonda has none under it, and libnetcdf.so must not export HDF5 names
 * itself, since a program may hold a real libhdf5. So the symbol lives here. libnetcdf.so names this
 * file as an auxiliary (DT_AUXILIARY): the loader takes it where it is there and goes on where not.
 *
 * A real libhdf5 behind this file in the search order answers instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

/* The HDF5 release whose file format Zonda follows, and that Debian's libnetcdf 4.9.0 reports. */
enum { MAJOR = 1, MINOR = 10, RELEASE = 8 };

int H5get_libversion(unsigned *major, unsigned *minor, unsigned *release)
{
    int (*real)(unsigned *, unsigned *, unsigned *);
    *(void **)&real = dlsym(RTLD_NEXT, "H5get_libversion");
    if (real != NULL)
        return real(major, minor, release);
    if (major != NULL)
        *major = MAJOR;
    if (minor != NULL)
        *minor = MINOR;
    if (release != NULL)
        *release = RELEASE;
    return 0;
}
