/* SPDX-License-Identifier: MIT */
/* annex: see annex.h. */
#include "shim/heap/annex.h"

#include "shim/heap/extent.h"
#include "shim/heap/huge.h"
#include "shim/heap/look.h"
#include "shim/heap/part.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/tcache.h"
#include "shim/heap/tier.h"
#include "shim/heap/trim.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"

/*
 * The persistent annex gets huge pages once its spans have this many bytes: fewer fill no huge
 * page.
 */
#define HUGE_FROM_BYTES ((size_t)1 << 20)
/* An annex is trimmed when others have freed this much plus an eighth of its size into it. */
#define LOOK_BYTES ((size_t)256 << 10)
/* But not again within this time: free slots serve the next requests without a trim. */
#define LOOK_PAUSE_MS 100u
/* Repeated trims: examine one free slot per this many bytes freed since the last trim. */
#define LOOK_AGAIN_BYTES ((size_t)64)

#define LOCK TM_LOCK_INIT(TM_RANK_ANNEX)
static struct tm_lock locks[TM_TIER_COUNT] = {LOCK, LOCK, LOCK, LOCK};
_Static_assert(TM_TIER_COUNT == 4, "a lock for each");
static uint64_t taken[TM_TIER_COUNT]; /* [lock] requests so far */

static enum tm_part part_of(enum tm_tier tier)
{
	return tier == TM_TIER_PERSISTENT  ? TM_PART_PERSISTENT
	       : tier == TM_TIER_TEMPORARY ? TM_PART_TEMPORARY
					   : TM_PART_SPAN;
}

/*
 * Lock the tier's annex. If its holder vanished in a fork, its lists may be half changed: make a
 * new one.
 */
static struct tm_heap *lock(enum tm_tier tier)
{
	if (tm_lock_acquire(&locks[tier]) == TM_LOCK_STOLEN)
		return tm_heap_annex_anew(tier, part_of(tier));
	return tm_heap_annex(tier, part_of(tier));
}

void *tm_annex_take(enum tm_tier tier, unsigned klass, size_t requested, struct tm_site site)
{
	struct tm_heap *h = lock(tier);
	void *p;

	taken[tier]++;
	p = h == NULL ? NULL : tm_tcache_refill(h, klass, requested, site);

	tm_lock_release(&locks[tier]);
	return p;
}

void tm_annex_grown(const struct tm_heap *h, const struct tm_granule *head)
{
	uint32_t page = tm_zone_page(tm_span_base(head)), unit = page - page % TM_UNIT_PAGES;
	uint32_t last = page + head->granules * TM_GRANULE_PAGES - 1;
	struct tm_part_state *ps;

	if (h->part != TM_PART_PERSISTENT ||
	    (size_t)h->span_count << TM_GRANULE_SHIFT < HUGE_FROM_BYTES ||
	    tm_huge_allowed() != TM_HUGE_ON_THP)
		return;
	ps = tm_extent_lock(TM_PART_PERSISTENT);
	tm_huge_advise(unit, (last - unit) / TM_UNIT_PAGES + 1);
	tm_extent_unlock(ps);
}

static size_t trim(struct tm_heap *h)
{
	atomic_store_explicit(&h->orphan_freed, 0, memory_order_relaxed);
	return tm_trim_heap(h);
}

/* Does not wait, since the caller may hold any lock, this one included. */
static bool try_lock(const struct tm_heap *h)
{
	struct tm_lock *l = &locks[h->tier];

	if (tm_lock_is_mine(l) || !tm_lock_try(l))
		return false;
	if (h == tm_heap_annex((enum tm_tier)h->tier, (enum tm_part)h->part))
		return true;
	tm_lock_release(l);
	return false;
}

void tm_annex_freed(struct tm_heap *h, size_t bytes)
{
	bytes += atomic_fetch_add_explicit(&h->orphan_freed, bytes, memory_order_relaxed);
	if ((!tm_look_is_on(h) &&
	     (bytes < LOOK_BYTES + ((size_t)h->span_count << TM_GRANULE_SHIFT) / 8 ||
	      tm_clock_ms() < __atomic_load_n(&h->next_look_ms, __ATOMIC_RELAXED))) ||
	    !try_lock(h))
		return;
	if (!tm_look_is_on(h)) {
		atomic_store_explicit(&h->orphan_freed, 0, memory_order_relaxed);
		tm_look_begin(h);
	}
	(void)tm_look_step(h);
	__atomic_store_n(&h->next_look_ms, tm_clock_ms() + LOOK_PAUSE_MS, __ATOMIC_RELAXED);
	tm_lock_release(&locks[h->tier]);
}

struct sum {
	enum tm_annex_trim which;
	size_t bytes;
};

static void trim_one(struct tm_heap *h, void *arg)
{
	struct sum *sum = arg;

	if (!tm_annex_is(h) || !try_lock(h))
		return;
	if (sum->which == TM_ANNEX_ALL ||
	    atomic_load_explicit(&h->orphan_freed, memory_order_relaxed) >=
		    h->trim_rest * LOOK_AGAIN_BYTES)
		sum->bytes += trim(h);
	tm_lock_release(&locks[h->tier]);
}

size_t tm_annex_trim(enum tm_annex_trim which)
{
	struct sum sum = {which, 0};

	tm_heap_each(trim_one, &sum);
	return sum.bytes;
}

/* Trim an annex that served no request since the previous tick and changed since its last trim. */
static void trim_idle(struct tm_heap *h, void *arg)
{
	size_t *bytes = arg;

	if (!tm_annex_is(h) || !try_lock(h))
		return;
	if (h->idle_mark == taken[h->tier] &&
	    (h->trimmed_mark != h->idle_mark || tm_remote_waits(h))) {
		*bytes += trim(h);
		h->trimmed_mark = taken[h->tier];
	}
	h->idle_mark = taken[h->tier];
	tm_lock_release(&locks[h->tier]);
}

size_t tm_annex_tick(void)
{
	size_t bytes = 0;

	tm_heap_each(trim_idle, &bytes);
	return bytes;
}

TM_AT_START_CODE void tm_annex_init(void)
{
	for (int i = 0; i < TM_TIER_COUNT; i++)
		tm_lock_register(&locks[i]);
}
