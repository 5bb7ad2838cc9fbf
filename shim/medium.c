/* SPDX-License-Identifier: MIT */
/* medium: see medium.h. */
#include "shim/medium.h"

#include "shim/heap/account.h"
#include "shim/heap/annex.h"
#include "shim/heap/arena.h"
#include "shim/heap/tcache.h"
#include "shim/heap/tier.h"
#include "shim/routing.h"

static bool fits_arena(const struct tm_medium_request *r)
{
	return tm_account_is_kept && r->size > TM_SMALL_MAX && r->size <= TM_ARENA_MAX &&
	       r->align <= TM_ARENA_LINE;
}

/* The tier assigned by a rule; TM_TIER_ALL: none matches. */
static enum tm_tier ruled(struct tm_heap *h, const struct tm_medium_request *r)
{
	struct tm_routing_request request = {r->size, r->align, r->site, r->asked};
	enum tm_routing_reach reach;
	enum tm_tier tier;
	unsigned row = 0;

	if (tm_account_is_kept) {
		row = tm_account_id(h, r->site, r->size) / 16;
		if (row != 0 && h->lists_of_row[row] != TM_RULED_LISTS)
			return TM_TIER_ALL;
		h->medium_left--;
	}
	tier = tm_routing_ruled(h, &request, &reach);
	/* later requests of this row need not consult the rules */
	if (row != 0 && reach == TM_ROUTING_NO_RULE)
		h->lists_of_row[row] = 0;
	return tier;
}

/* The thread's own free slots would be used without asking for the tier. */
static bool must_stay_apart(const struct tm_medium_request *r)
{
	uint8_t bits = atomic_load_explicit(&tm_tier_ruled, memory_order_relaxed);

	return TM_UNLIKELY(bits != 0) &&
	       (!tm_account_is_kept || (r->klass == TM_SOLO_CLASS && (bits & TM_TIER_RULED_SOLO)));
}

void *tm_medium_take(struct tm_heap *h, const struct tm_medium_request *r)
{
	enum tm_tier tier = r->tier;
	void *p = NULL;

	/* periodically lets the policies classify sites by lifetime */
	if (tm_account_is_kept && tier == TM_TIER_ALL && h->medium_left <= 0)
		tm_routing_look(h);
	if (tier == TM_TIER_ALL && TM_UNLIKELY(tm_tier_is_ruled()))
		tier = ruled(h, r);
	if (TM_UNLIKELY(tm_tier_observe))
		tier = TM_TIER_ALL;
	if (tier == TM_TIER_TEMPORARY && fits_arena(r)) {
		p = tm_arena_take_asked(h, r->size, r->site);
		if (p != NULL || !tm_tier_admits(tier, TM_GRANULE_BYTES))
			return p;
	}
	if (tier != TM_TIER_ALL || must_stay_apart(r))
		return tm_annex_take(tier, r->klass, r->size, r->site);
	if (fits_arena(r))
		p = tm_arena_take_held(h, r->size, r->site);
	return p != NULL ? p : tm_tcache_refill(h, r->klass, r->size, r->site);
}
