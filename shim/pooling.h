/* SPDX-License-Identifier: MIT */
/*
 * pooling: which requests fixed pools serve (heap/pool.h): those of the sizes that TIERMALLOC_POOLS lists,
 * and those of rules with pool= or keep=. Also what the ledger and the reports tell of pools.
 */
#ifndef TM_POOLING_H
#define TM_POOLING_H

#include "policies/route.h"
#include "shim/base/fmt.h"
#include "shim/heap/pool.h"

/* At boot, after the rules were read. */
void tm_pooling_init(void);

/* Says so where a rule asks for a pool that no request reaches: smaller ones ask no rule. */
void tm_pooling_check(const char *file, const struct tm_rule *rule);

/* The caller holds a heap. May change the tier: a listed pool that names one is the user's word. */
struct tm_pool *tm_pooling_choose(size_t size, struct tm_route_decision *decision);

TM_INLINE struct tm_pool *tm_pooling_of(size_t size, struct tm_route_decision *decision)
{
	if (TM_LIKELY(decision->rule == 0 &&
		      atomic_load_explicit(&tm_pools.count, memory_order_relaxed) == 0))
		return NULL;
	return tm_pooling_choose(size, decision);
}

/* tm_pool_take, and the event that a pool is exhausted. */
void *tm_pooling_take(struct tm_pool *pool, const struct tm_large_request *r);

/* Into the ledger; under the lock of samples.c. */
void tm_pooling_write(void);

/* Requests that found a pool exhausted, and that a tier's ceiling refused: what a verdict tells first. */
void tm_pooling_verdict(struct tm_fmt_out *out);

/* The table of TIERMALLOC_REPORT=exit; nothing where there are no pools. */
void tm_pooling_report(struct tm_fmt_out *out);

#endif
