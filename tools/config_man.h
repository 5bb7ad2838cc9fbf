/* SPDX-License-Identifier: MIT */
/* config_man: writes tiermalloc-tunables(5) out of tunables.def. */
#ifndef TM_TOOLS_CONFIG_MAN_H
#define TM_TOOLS_CONFIG_MAN_H

#include "shim/base/tunables.h"

/* The page in mdoc on standard output; the same for every run of one build. */
void tm_config_man_print(void);

/* What a variable is for, in a phrase. */
const char *tm_config_man_meaning(enum tm_tunable which);

#endif
