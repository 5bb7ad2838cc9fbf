/* SPDX-License-Identifier: MIT */
/* config_man: generates tiermalloc-tunables(5) from tunables.def. */
#ifndef TM_TOOLS_CONFIG_MAN_H
#define TM_TOOLS_CONFIG_MAN_H

#include "shim/base/tunables.h"

/* Prints the page in mdoc on standard output; identical in every run of a build. */
void tm_config_man_print(void);

/* Meaning of a variable, as a phrase. */
const char *tm_config_man_meaning(enum tm_tunable which);

#endif
