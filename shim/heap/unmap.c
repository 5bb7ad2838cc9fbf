/* SPDX-License-Identifier: MIT */
/*
 * unmap: gives address space of a part back where nothing of it is resident. Called by purge.c; the
 * zone keeps the addresses for later steps of the part. Also holds tm_purge_rescue, for when no
 * memory can be had for a part. See part.h.
 */
#include "shim/heap/part.h"
#include "shim/heap/purge.h"

/* Units that the part of spans gets of another part when memory is short. */
#define HANDED_UNITS 4u

/* Free units at the end of the part's mapped memory that are certainly not resident. */
static uint32_t clean_at_end(const struct tm_part_state *ps, uint32_t end)
{
	uint32_t n = 0;

	while (end - n > ps->trusted / TM_UNIT_PAGES) {
		const struct tm_unit *u = &tm_zone.units[end - n - 1];

		if (u->part != ps - tm_parts || u->used || u->touched)
			break;
		n++;
	}
	return n;
}

/*
 * Unmap free units of which nothing is resident, which keeps the call short: the lock is held.
 * Returns the bytes.
 */
static size_t unmap_units(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	uint32_t run, run_pages;

	tm_extent_carve(ps, tm_extent_run_start(ps, page), page, pages);
	if (tm_zone_unmap(tm_part_of(ps), page, pages)) {
		tm_extent_join(ps, page, pages, &run, &run_pages);
		tm_unit_give(ps, page, pages, run, run_pages);
		return 0;
	}
	tm_part_add(&ps->mapped_pages, -(uint64_t)pages);
	return (size_t)pages << TM_PAGE_SHIFT;
}

/*
 * Address space counts against address limits, and as memory where the kernel does not overcommit.
 * Only units at the end are unmapped, so that no mapping is split; keep_units of them stay.
 */
size_t tm_unmap_end(struct tm_part_state *ps, uint32_t keep_units)
{
	uint32_t next = tm_zone_next(tm_part_of(ps));
	uint32_t end = next / TM_UNIT_PAGES;
	uint32_t units = next % TM_UNIT_PAGES ? 0 : clean_at_end(ps, end);

	if (units <= keep_units)
		return 0;
	return unmap_units(ps, (end - units) * TM_UNIT_PAGES, units * TM_UNIT_PAGES);
}

/* For when addresses ran out: unmap every free, non-resident unit of the part. Splits mappings. */
size_t tm_unmap_all(enum tm_part part)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	size_t bytes = 0;

	for (uint32_t at = ps->trusted / TM_UNIT_PAGES; at < end; at++) {
		uint32_t units = 0;

		while (at + units < end && tm_zone.units[at + units].part == part &&
		       !tm_zone.units[at + units].used && !tm_zone.units[at + units].touched)
			units++;
		if (units)
			bytes += unmap_units(ps, at * TM_UNIT_PAGES, units * TM_UNIT_PAGES);
		at += units;
	}
	tm_extent_unlock(ps);
	return bytes;
}

bool tm_purge_rescue(enum tm_part part)
{
	size_t bytes = tm_purge_now();
	/* spans need no long runs, so most units stay together for blocks */
	size_t units_max = part == TM_PART_SPAN ? HANDED_UNITS : TM_PAGE_NIL / TM_UNIT_PAGES;

	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != TM_PART_GROW)
			bytes += tm_unmap_all((enum tm_part)i);
	/* where the kernel refuses to unmap, or more is needed */
	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != (int)part && i != TM_PART_GROW)
			while (tm_extent_hand_over((enum tm_part)i, part, units_max)) {
				bytes++;
				if (part == TM_PART_SPAN)
					return true;
			}
	return bytes != 0;
}
