/* libzonda-preload.so: the public functions of libnetcdf, put before the library that a program has of its own.
 *
 * The functions are in preload.S and jump to libnetcdf.so.19 beside this file. It is loaded by its path, since the program's own library
 * may have the same name, and for this file alone: its internal functions, which the other library has under the same names,
 * are nobody else's then (abi/generate.py).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libnetcdf.so.19"

#define hidden __attribute__((visibility("hidden")))

/* Where the functions are, in the order of their names. */
extern void *zonda_preload_slots[] hidden;

static const char *const names[] = {
#define ZONDA_NAME(name, index) #name,
#include "preload_names.h"
};
enum { N_NAMES = sizeof names / sizeof *names };

static void *found[N_NAMES];
static char failure[PATH_MAX + 256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void say(void) {
    static const char begin[] = "zonda: libzonda-preload.so: ";
    /* Nothing else can be done where this fails. */
    if (write(STDERR_FILENO, begin, sizeof begin - 1) < 0 || write(STDERR_FILENO, failure, strlen(failure)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        return;
}

static void find_all(void) {
    Dl_info here;
    char path[PATH_MAX], real[PATH_MAX];
    /* The file itself, where a symbolic link to it was preloaded. */
    const char *self = dladdr(names, &here) != 0 ? here.dli_fname : NULL;
    if (self != NULL && realpath(self, real) != NULL)
        self = real;
    const char *slash = self != NULL ? strrchr(self, '/') : NULL;
    const int folder = slash == NULL ? 0 : (int)(slash - self) + 1;
    const int length = snprintf(path, sizeof path, "%.*s" LIBRARY, folder, slash == NULL ? "" : self);
    if (slash == NULL || length < 0 || (size_t)length >= sizeof path) {
        snprintf(failure, sizeof failure, "its own folder is not known, in which " LIBRARY " is");
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (int index = 0; library != NULL && index < N_NAMES; index++) {
        found[index] = dlsym(library, names[index]);
        if (found[index] == NULL)
            library = NULL;
    }
    if (library == NULL) {
        const char *why = dlerror();
        snprintf(failure, sizeof failure, "%s", why == NULL ? "no " LIBRARY : why);
        return;
    }
    for (int index = 0; index < N_NAMES; index++)
        __atomic_store_n(&zonda_preload_slots[index], found[index], __ATOMIC_RELEASE);
}

/* Where a function is, by its number; called by each that is called before its slot is filled. A program that would go on without it
 * would mix two libraries. */
hidden void *zonda_preload_find(long index) {
    pthread_once(&once, find_all);
    if (failure[0] != '\0') {
        say();
        _exit(127);
    }
    return found[index];
}

/* When the program starts, as the loader would do it: so that it may change its root, or the file go. */
__attribute__((constructor)) static void begin(void) {
    pthread_once(&once, find_all);
    if (failure[0] != '\0')
        say();
}
