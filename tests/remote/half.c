/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Stands for the library that does TLS: it is half loaded for as long as the program (forks.c) wants, and loads the true
 * one (TRUE_LIBRARY) then. A process that has it half for ever gets no table from it.
 */
#include <dlfcn.h>
#include <stddef.h>

void forks_in_loader(void);

static const void *(*table)(void);

__attribute__((constructor)) static void load(void) {
    void *library;

    forks_in_loader();
    if ((library = dlopen(TRUE_LIBRARY, RTLD_NOW | RTLD_LOCAL))) table = (const void *(*)(void))dlsym(library, "zonda_tls_table");
}

const void *zonda_tls_table(void) {
    return table ? table() : NULL;
}
