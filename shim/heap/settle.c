/* SPDX-License-Identifier: MIT */
/*
 * settle: prefaults the page tables of the zone, that is its tags and granules, for memory that is
 * reused.
 *
 * A program that works in steps places its blocks differently in every step. Each new block
 * boundary falls on table entries that were never written, so the pages of the tables became
 * resident one fault at a time over some twenty steps. Once a part's memory was seen to be given up
 * and taken again (tm_swing_is_step), the tables of its resident memory are faulted in ahead: one
 * page of each table per 4 MiB, a thousandth. A program that only grows, or does not write what it
 * takes, pays nothing.
 *
 * Called by extent.c under the part's lock.
 */
#include "shim/base/bits.h"
#include "shim/heap/limit.h"
#include "shim/heap/part.h"
#include "shim/os/sys.h"

/* Units of the zone that one page of each table describes. */
#define CHUNK_UNITS ((uint32_t)(TM_PAGE_BYTES / sizeof(uint32_t) / TM_UNIT_PAGES))
/* Units examined per call: some 10 us if there is nothing to do. */
#define LOOKS_MAX 64u

_Static_assert(TM_PAGE_BYTES / sizeof(struct tm_granule) == CHUNK_UNITS * TM_UNIT_GRANULES,
	       "a page of tags and one of granules describe as much");

/* True if any page of the unit's first touched granule is resident. */
static bool is_resident(uint32_t unit, uint32_t touched)
{
	unsigned char resident[TM_GRANULE_PAGES];
	uint32_t page = unit * TM_UNIT_PAGES + tm_bits_lowest(touched) * TM_GRANULE_PAGES;

	if (tm_sys_mincore(tm_zone_page_addr(page), TM_GRANULE_BYTES, resident) != 0)
		return false;
	for (uint32_t i = 0; i < TM_GRANULE_PAGES; i++)
		if (resident[i] & 1)
			return true;
	return false;
}

/* Write to the tables without changing a value, since other threads may write there meanwhile. */
static void fault_in(uint32_t unit)
{
	uint32_t page = unit * TM_UNIT_PAGES;

	(void)__atomic_fetch_or(tm_part_tag(page), 0, __ATOMIC_RELAXED);
	(void)__atomic_fetch_or(&tm_zone.granules[page / TM_GRANULE_PAGES].owner, 0,
				__ATOMIC_RELAXED);
}

void tm_settle(struct tm_part_state *ps)
{
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	uint32_t at = ps->settle_unit;
	uint32_t looks = 0;

	if (ps->settled_pages == ps->fresh_pages || !tm_swing_is_step(&ps->swing) ||
	    !tm_limit_may_look())
		return;
	if (at == 0)
		ps->settle_pages = ps->fresh_pages;
	for (; at < end && looks < LOOKS_MAX; at++) {
		/* a block's owner changes it without the lock */
		uint32_t touched = __atomic_load_n(&tm_zone.units[at].touched, __ATOMIC_RELAXED);

		if (__atomic_load_n(&tm_zone.units[at].part, __ATOMIC_RELAXED) != tm_part_of(ps) ||
		    touched == 0)
			continue;
		looks++;
		if (!is_resident(at, touched))
			continue;
		fault_in(at);
		at |= CHUNK_UNITS - 1;
	}
	ps->settle_unit = at < end ? at : 0;
	if (at >= end)
		ps->settled_pages = ps->settle_pages;
}
