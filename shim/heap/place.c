/* SPDX-License-Identifier: MIT */
/*
 * place: where in a part's free memory a request goes. The best fit at the lowest address; where that
 * was given back, a place that is still resident. Changes nothing but the note of the last such
 * place; under the part's lock. See extent.h and part.h.
 */
#include "shim/heap/part.h"

#define CANDIDATES 8     /* runs looked at per bin, for the lowest address */
#define ALIGNED_TRIES 64 /* and for a place that satisfies an alignment, over all bins */

/* Where in the run a block could start; TM_PAGE_NIL if it doesn't fit. */
static uint32_t place_in(uint32_t run, uint32_t pages, uint32_t align)
{
	uint32_t run_pages = *tm_part_tag(run) & ~TM_TAG_FREE;
	/* the zone's base is a multiple of 2 MiB only: larger alignments count from address 0 */
	uint64_t base = tm_zone.base >> TM_PAGE_SHIFT;
	uint64_t at = (base + run + align - 1) & ~(uint64_t)(align - 1);
	uint64_t skip = at - base - run;

	if (skip + pages > run_pages)
		return TM_PAGE_NIL;
	return run + (uint32_t)skip;
}

static void look_in_bin(uint32_t head, uint32_t pages, uint32_t align, int limit,
			struct tm_place *best)
{
	for (uint32_t run = head; run != TM_PAGE_NIL && limit;
	     run = *tm_part_tag(run + 1), limit--) {
		uint32_t at;

		if (run > best->run)
			continue;
		at = place_in(run, pages, align);
		if (at != TM_PAGE_NIL)
			*best = (struct tm_place){run, at};
	}
}

/* The first non-empty bin at or above (level, step). */
static bool next_bin(const struct tm_part_state *ps, uint32_t *level, uint32_t *step)
{
	uint32_t in_level = *step < TM_BIN_STEPS ? ps->steps[*level] & (0xffffu << *step) : 0;

	if (!in_level) {
		uint32_t above =
			*level + 1 < TM_BIN_LEVELS ? ps->levels & (~0u << (*level + 1)) : 0;

		if (!above)
			return false;
		*level = (uint32_t)__builtin_ctz(above);
		in_level = ps->steps[*level];
	}
	*step = (uint32_t)__builtin_ctz(in_level);
	return true;
}

bool tm_place_find(const struct tm_part_state *ps, uint32_t pages, uint32_t align,
		   struct tm_place *best)
{
	uint32_t least = pages < TM_BIN_STEPS ? TM_BIN_STEPS : pages;
	uint32_t level, step;
	int tries = align > 1 ? ALIGNED_TRIES : 2 * CANDIDATES;

	best->run = TM_PAGE_NIL;
	tm_part_bin(least, &level, &step);
	for (; tries > 0 && next_bin(ps, &level, &step); step++, tries -= CANDIDATES) {
		look_in_bin(ps->bins[level][step], pages, align, CANDIDATES, best);
		if (best->run != TM_PAGE_NIL)
			return true;
	}
	/* every run from here on fits wherever it begins */
	tm_part_bin(least + align - 1 + (least + align - 1) / TM_BIN_STEPS, &level, &step);
	if (!next_bin(ps, &level, &step))
		return false;
	look_in_bin(ps->bins[level][step], pages, align, CANDIDATES, best);
	return best->run != TM_PAGE_NIL;
}

/* Pages from here on were given back: to take them is to get new memory. Looks at both ends only. */
bool tm_place_is_cold(uint32_t at, size_t pages)
{
	uint32_t last = at + (uint32_t)pages - 1;

	return !(tm_zone_unit(at)->touched >> at % TM_UNIT_PAGES / TM_GRANULE_PAGES & 1) ||
	       !(tm_zone_unit(last)->touched >> last % TM_UNIT_PAGES / TM_GRANULE_PAGES & 1);
}

/*
 * A place that is resident, where the best fit is not: behind the last one found so, else in the
 * units that became free last.
 */
bool tm_place_warm(struct tm_part_state *ps, uint32_t pages, uint32_t align,
		   struct tm_place *ret_found)
{
	uint32_t run = ps->warm_page; /* never inside a free run: join sees to it */
	uint32_t units = (pages + TM_UNIT_PAGES - 1) / TM_UNIT_PAGES;
	uint32_t at, unit;

	if (run < (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_PAGE_SHIFT) &&
	    tm_zone_unit(run)->part == tm_part_of(ps) && (*tm_part_tag(run) & TM_TAG_FREE)) {
		at = place_in(run, pages, align);
		if (at != TM_PAGE_NIL && !tm_place_is_cold(at, pages))
			goto found;
	}
	if (ps->whole.count < units)
		return false;
	unit = tm_unit_youngest(ps, units);
	if (unit == TM_UNIT_NIL)
		return false;
	at = unit * TM_UNIT_PAGES;
	run = tm_extent_run_start(ps, at);
found:
	*ret_found = (struct tm_place){run, at};
	ps->warm_page = at + pages;
	return true;
}
