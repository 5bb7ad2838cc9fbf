/* SPDX-License-Identifier: MIT */
/* config_man: writes tiermalloc-tunables(5) out of tunables.def. */
#ifndef TM_TOOLS_CONFIG_MAN_H
#define TM_TOOLS_CONFIG_MAN_H

/* The page in mdoc on standard output; the same for every run of one build. */
void tm_config_man_print(void);

#endif
