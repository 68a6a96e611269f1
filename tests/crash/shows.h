/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Which of the definitions that may be there a file shows. */
#ifndef CRASH_SHOWS_H
#define CRASH_SHOWS_H

#include "model.h"

#define GOON_NAME "after_crash" /* of an attribute that the checker itself puts */

struct shown {
    struct defs defs; /* its attributes are those of the model */
    int has_dim[MAX_DIMS], has_var[MAX_VARS];
    int group_id[MAX_GROUPS], var_id[MAX_VARS]; /* for the interface */
    int gone_on; /* the checker wrote to it */
};

/* Whether the file shows definitions of the model, as a whole; of a netCDF-4 file, whose objects
 * change one by one, each group and each variable may have those of another moment. */
int shows(int ncid, const struct model *m, struct shown *shown);

#endif
