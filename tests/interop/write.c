/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * write list             the names of all cases
 * write CASE FOLDER      writes FOLDER/CASE.nc and FOLDER/CASE.open, which is what the library told
 *                        about the file before it was closed; codes go to standard output */
#include "cases.h"

static const case_t *const FAMILIES[] = {TYPE_CASES, ATTRIBUTE_CASES, SHAPE_CASES, RENAME_CASES, STORAGE_CASES, LIFE_CASES};

int main(int argc, char **argv) {
    char path[4000];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) return 2;
    for (size_t f = 0; f < COUNT(FAMILIES); f++)
        for (const case_t *c = FAMILIES[f]; c->name; c++) {
            if (!strcmp(argv[1], "list")) puts(c->name);
            if (argc < 3 || strcmp(argv[1], c->name)) continue;
            snprintf(path, sizeof path, "%s/%s.nc", argv[2], c->name);
            int nc = c->make(path);
            if (nc != CLOSED) {
                snprintf(path, sizeof path, "%s/%s.open", argv[2], c->name);
                FILE *open = fopen(path, "w");
                if (!open) return 3;
                print_group(open, nc, 1);
                fclose(open);
                MUST(nc_close(nc));
            }
            return 0;
        }
    if (!strcmp(argv[1], "list")) return 0;
    fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
