/* SPDX-License-Identifier: MIT */
/*
 * decisions: what the policies believe of each call site, copied into the ledger's table of decisions,
 * so that 'tiermalloc explain' can show it, also after the process is gone; and which rules decided
 * nothing.
 */
#ifndef TM_DECISIONS_H
#define TM_DECISIONS_H

#include "policies/route.h"

/* From now on this state is reported; it lives for ever. Called once, by whoever routes. */
void tm_decisions_follow(const struct tm_route *route);

/*
 * Brings the table up to date: at the end, or when asked for. One caller at a time (the ledger's tick
 * lock). Nothing to do without a ledger, or while nobody routes.
 */
void tm_decisions_write(void);

/* The same once in a while; each second. */
void tm_decisions_tick(void);

#endif
