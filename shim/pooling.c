/* SPDX-License-Identifier: MIT */
#include "shim/pooling.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/base/ledger_format.h"
#include "shim/boot.h"
#include "shim/heap/tier.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/samples.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/routing.h"

/* Most sizes of one rule that get a pool of their own. */
#define SIZES_OF_A_RULE 8u
/* Most pools listed in the report at exit. */
#define REPORTED_MAX 16u

_Static_assert(TM_POOLS_MAX == TM_LEDGER_POOLS, "the ledger has a record for each");

/* --- the list --------------------------------------------------------------------------------- */

static enum tm_part part_of(enum tm_tier tier)
{
	return tm_tier_part(tier == TM_TIER_ALL ? TM_TIER_SESSION : tier, TM_TIER_ASKED);
}

static int make_listed(const struct tm_tunables_pool *item, struct tm_str text)
{
	struct tm_pool_wish wish = {.bytes = item->bytes,
				    .count = item->count,
				    .tier = item->tier,
				    .part = part_of(item->tier),
				    .fills = true};
	int rc = tm_pool_make(&wish);
	const char *why = rc == -EEXIST   ? "there is one of that size, or of its class of slots"
			  : rc == -ENOSPC ? "64 are the most, nor for what follows"
			  : rc == -ENOMEM ? "no memory"
			  : rc == -EFBIG  ? "the machine has less memory"
					  : "there are not so many addresses";

	if (rc != 0)
		tm_msg(TM_MSG_WARN, "TIERMALLOC_POOLS: no pool for '%.*s': %s", (int)text.len,
		       text.at, why);
	return rc;
}

static void read_list(const char *value)
{
	struct tm_str rest = tm_str_of(value);
	struct tm_tunables_pool item;

	for (;;) {
		struct tm_str before = rest;

		if (tm_tunables_next_pool(&rest, &item) != 1)
			return;
		before.len -= rest.len;
		if (before.len != 0 && before.at[before.len - 1] == ',')
			before.len--;
		if (make_listed(&item, before) == -ENOSPC)
			return;
	}
}

static bool is_set(const char *value)
{
	return value != NULL && value[0] != '\0';
}

TM_AT_START_CODE void tm_pooling_init(void)
{
	const char *list = tm_root.options.pools;

	/* only if pools are configured: a seccomp filter may forbid this system call */
	tm_pool_init(is_set(list) || is_set(tm_root.options.rules) ||
				     is_set(tm_root.options.profile)
			     ? tm_proc_memory_bytes()
			     : UINT64_MAX);
	if (tm_tier_observe)
		return;
	if (list != NULL && !tm_str_is(tm_str_of(list), "none"))
		read_list(list);
	if (is_set(tm_root.options.rules) || is_set(tm_root.options.profile))
		tm_pool_expect_rules();
}

/* --- rules ------------------------------------------------------------------------------------ */

void tm_pooling_check(const char *file, const struct tm_rule *rule)
{
	if (rule->size_max > TM_GRANULE_BYTES)
		return;
	if (rule->actions.huge != TM_RULE_HUGE_UNSET || rule->actions.node != TM_RULE_NODE_UNSET)
		tm_msg(TM_MSG_WARN, "%s:%u: huge and node have no effect up to 64K", file,
		       rule->line);
	if (rule->actions.pool != 0 || rule->actions.keep_set)
		tm_msg(TM_MSG_WARN,
		       "%s:%u: pool and keep have no effect up to 64K, use TIERMALLOC_POOLS", file,
		       rule->line);
}

static unsigned pools_of(unsigned rule)
{
	uint32_t count = atomic_load_explicit(&tm_pools.count, memory_order_relaxed);
	unsigned found = 0;

	for (uint32_t i = 0; i < count; i++)
		found += tm_pools.pool[i].rule == rule;
	return found;
}

static TM_COLD struct tm_pool *make_for_rule(size_t size, unsigned rule,
					     const struct tm_rule_actions *actions)
{
	static _Atomic bool told;
	int rc;
	struct tm_pool_wish wish = {.bytes = size,
				    .count = actions->pool,
				    .tier = (enum tm_tier)actions->tier,
				    .part = part_of((enum tm_tier)actions->tier),
				    .rule = rule,
				    .fills = actions->pool != 0};

	if (actions->pool == 0)
		wish.count = actions->keep_bytes / tm_bits_align_up(size, TM_PAGE_BYTES);
	if (wish.count == 0 || pools_of(rule) >= SIZES_OF_A_RULE)
		return NULL;
	wish.count = tm_bits_min(wish.count, UINT32_MAX);
	rc = tm_pool_make(&wish);
	/* one message, even for a thousand sizes */
	if ((rc == -EFBIG || rc == -EINVAL) && wish.fills &&
	    !atomic_exchange_explicit(&told, true, memory_order_relaxed))
		tm_msg(TM_MSG_WARN,
		       "rule in line %u: no pool for blocks of %zu bytes: the machine has less memory",
		       tm_routing_line(rule), size);
	return tm_pool_find(size, rule);
}

struct tm_pool *tm_pooling_choose(size_t size, struct tm_route_decision *d)
{
	struct tm_pool *pool;

	if (d->rule != 0 && !tm_tier_observe && size > TM_GRANULE_BYTES) {
		const struct tm_rule_actions *actions = tm_routing_actions(d->rule);

		if (actions->pool != 0 || actions->keep_set) {
			pool = tm_pool_find(size, d->rule);
			return pool != NULL ? pool : make_for_rule(size, d->rule, actions);
		}
	}
	pool = tm_pool_find(size, 0);
	if (pool == NULL || pool->tier == TM_TIER_ALL || pool->tier == d->tier)
		return pool;
	/* the program or a rule has chosen another tier */
	if (d->authority == TM_AUTHORITY_RULE) {
		tm_pool_miss(pool);
		return NULL;
	}
	d->tier = pool->tier;
	d->authority = TM_AUTHORITY_RULE;
	return pool;
}

void *tm_pooling_take(struct tm_pool *pool, const struct tm_large_request *r)
{
	enum tm_pool_answer answer;
	void *p = tm_pool_take(pool, r, &answer);

	if (TM_UNLIKELY(answer == TM_POOL_EXHAUSTED))
		tm_samples_event(TM_LEDGER_POOL_EXHAUSTED, r->tier, pool->bytes, pool->count);
	return p;
}

/* --- figures ---------------------------------------------------------------------------------- */

void tm_pooling_write(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_pool_stats stats;
	struct tm_ledger_pool *to;

	if (header == NULL)
		return;
	for (uint32_t i = 0; tm_pool_stats(i, &stats); i++) {
		to = tm_ledger_area(TM_LEDGER_POOLS_AT + i * sizeof(*to), sizeof(*to));
		if (to == NULL)
			return;
		to->tier = (uint32_t)stats.tier;
		to->count = (uint32_t)stats.count;
		to->hits = stats.hits;
		to->misses = stats.misses;
		to->exhausted = stats.exhausted;
		to->high_water = stats.high_water;
		to->in_use = stats.in_use;
		to->slot_bytes = stats.slot_bytes;
		if (header->pools <= i)
			__atomic_store_n(&header->pools, i + 1, __ATOMIC_RELEASE);
	}
}

void tm_pooling_verdict(struct tm_fmt_out *out)
{
	struct tm_pool_stats stats;
	uint64_t exhausted = 0, refused = tm_tier_refused(TM_TIER_ALL);

	for (unsigned i = 0; tm_pool_stats(i, &stats); i++)
		exhausted += stats.exhausted;
	if (exhausted != 0)
		tm_fmt_add(out, "; pools exhausted %zu times", (size_t)exhausted);
	if (refused != 0)
		tm_fmt_add(out, "; %zu requests refused at a tier's ceiling", (size_t)refused);
}

void tm_pooling_report(struct tm_fmt_out *out)
{
	struct tm_pool_stats stats;
	char size[24];

	for (unsigned i = 0; i < REPORTED_MAX && tm_pool_stats(i, &stats); i++) {
		if (i == 0)
			tm_fmt_add(out, "  %-12s%12s%12s%12s%12s%12s%12s\n", "pool of", "slot",
				   "slots", "hits", "misses", "exhausted", "high water");
		tm_fmt_bytes(size, sizeof(size), stats.slot_bytes);
		tm_fmt_add(out, "  %-12s%12s%12zu%12zu%12zu%12zu%12zu\n",
			   stats.tier == TM_TIER_ALL ? "any tier"
						     : tm_tunables_tier_name(stats.tier),
			   size, (size_t)stats.count, (size_t)stats.hits, (size_t)stats.misses,
			   (size_t)stats.exhausted, (size_t)stats.high_water);
	}
}
