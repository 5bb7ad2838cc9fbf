/* SPDX-License-Identifier: MIT */
/*
 * ruling: reads rules from TIERMALLOC_RULES, TIERMALLOC_PROFILE and tiermalloc_set_tier into the
 * table that routing.c consults.
 */
#ifndef TM_RULING_H
#define TM_RULING_H

#include "shim/base/attrs.h"

/* At boot, by tm_routing_init. */
void tm_ruling_init(void);

/*
 * Appends one rule. 0, -EINVAL: not a rule; -ENOMEM; -ENOSPC: too many rules; -EOPNOTSUPP: it has
 * guard=, but the guard variants of malloc were not installed at boot.
 */
int tm_ruling_add(const char *line);

#endif
