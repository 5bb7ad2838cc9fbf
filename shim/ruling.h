/* SPDX-License-Identifier: MIT */
/*
 * ruling: where rules come from: TIERMALLOC_RULES, TIERMALLOC_PROFILE, tiermalloc_set_tier. What routing.c
 * asks is the table that is made of them.
 */
#ifndef TM_RULING_H
#define TM_RULING_H

#include "shim/base/attrs.h"

/* At boot, by tm_routing_init. */
void tm_ruling_init(void);

/*
 * Appends one rule. 0, -EINVAL for a rule that is none, -ENOMEM, -ENOSPC; -EOPNOTSUPP for one that
 * guards blocks where the environment asked for no guards: the family was chosen at boot.
 */
int tm_ruling_add(const char *line);

#endif
