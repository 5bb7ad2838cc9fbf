/* SPDX-License-Identifier: MIT */
/*
 * pooling: decides which requests are served by fixed-size pools (heap/pool.h): requests of a size
 * listed in TIERMALLOC_POOLS, and requests matched by a rule with pool= or keep=. Also writes the
 * pools' figures into the ledger and the reports.
 */
#ifndef TM_POOLING_H
#define TM_POOLING_H

#include "policies/route.h"
#include "shim/base/fmt.h"
#include "shim/heap/pool.h"

/* At boot, after the rules were read. */
void tm_pooling_init(void);

/*
 * Warns about actions of a rule (pool, keep, huge, node) that have no effect because the rule is
 * limited to sizes up to 64 KiB. file: where the rule stands, for the message.
 */
void tm_pooling_check(const char *file, const struct tm_rule *rule);

/*
 * The pool for this request, or NULL. Changes the decision's tier if TIERMALLOC_POOLS names another
 * one for this size: the user's choice takes precedence. The caller holds a heap.
 */
struct tm_pool *tm_pooling_choose(size_t size, struct tm_route_decision *decision);

TM_INLINE struct tm_pool *tm_pooling_of(size_t size, struct tm_route_decision *decision)
{
	if (TM_LIKELY(decision->rule == 0 &&
		      atomic_load_explicit(&tm_pools.count, memory_order_relaxed) == 0))
		return NULL;
	return tm_pooling_choose(size, decision);
}

/* tm_pool_take; records an event in the ledger when the pool is exhausted. */
void *tm_pooling_take(struct tm_pool *pool, const struct tm_large_request *r);

/* Writes the pools' records into the ledger; under the lock of samples.c. */
void tm_pooling_write(void);

/*
 * Adds to the report's verdict: the requests that found a pool exhausted, and those refused by a
 * tier's ceiling.
 */
void tm_pooling_verdict(struct tm_fmt_out *out);

/* Adds the table of pools to the report at exit; nothing if there are no pools. */
void tm_pooling_report(struct tm_fmt_out *out);

#endif
