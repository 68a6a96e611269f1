/* A plugin of another type (a connector of the virtual object layer). */
#define PLUGIN_TYPE 1
#include "common.h"

PLUGIN(303, "connector", 1, NULL)
