/* SPDX-License-Identifier: MIT */
/*
 * decisions: copies the tier decision of each call site, and the rules that matched nothing, into
 * the ledger's table of decisions, so that 'tiermalloc explain' can show them, also after the
 * process has ended.
 */
#ifndef TM_DECISIONS_H
#define TM_DECISIONS_H

#include "policies/route.h"

/* Sets the policy state to report; it must never be freed. Called once, by routing.c. */
void tm_decisions_follow(const struct tm_route *route);

/*
 * Updates the table: at process end or on request. One caller at a time (the ledger's tick lock).
 * No effect without a ledger or before tm_decisions_follow.
 */
void tm_decisions_write(void);

/* Called each second; updates the table every few calls. */
void tm_decisions_tick(void);

#endif
