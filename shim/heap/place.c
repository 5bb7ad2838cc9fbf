/* SPDX-License-Identifier: MIT */
/*
 * place: chooses where in a part's free memory a request goes: the best fit at the lowest address
 * or, if that was purged, a place that is still resident. Changes nothing. Called under the
 * part's lock. See extent.h and part.h.
 */
#include "shim/base/bits.h"
#include "shim/heap/part.h"

#define CANDIDATES 8     /* runs examined per bin for the lowest address */
#define ALIGNED_TRIES 64 /* runs examined in all bins for a place that satisfies an alignment */

/*
 * If the best fit is not resident, up to WARM_RUNS free runs are searched for a place that is, over
 * at most WARM_GRANULES granules: some 10 us to avoid a fault of 90. Such a place must have at
 * least a sixteenth of the request's pages fewer to make resident.
 */
#define WARM_RUNS 64
#define WARM_GRANULES 4096u
#define WARMER_SHARE 16u

/* The first page of the run where an aligned block could start; TM_PAGE_NIL if it doesn't fit. */
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
			*best = (struct tm_place){run, at, false};
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

static bool granule_is_cold(uint32_t granule)
{
	return !(tm_zone.units[granule / TM_UNIT_GRANULES].touched >> granule % TM_UNIT_GRANULES &
		 1);
}

uint32_t tm_place_cold_pages(uint32_t at, size_t pages)
{
	uint32_t from = at / TM_GRANULE_PAGES;
	uint32_t to = (at + (uint32_t)pages - 1) / TM_GRANULE_PAGES + 1;
	uint32_t cold = 0;

	while (from < to) {
		uint32_t bit = from % TM_UNIT_GRANULES;
		uint32_t n = (uint32_t)tm_bits_min(to - from, TM_UNIT_GRANULES - bit);
		uint32_t mask = UINT32_MAX >> (TM_UNIT_GRANULES - n) << bit;
		/* the helper reads it without the lock; a slightly old value does no harm */
		uint32_t touched = __atomic_load_n(&tm_zone.units[from / TM_UNIT_GRANULES].touched,
						   __ATOMIC_RELAXED);

		if (TM_UNLIKELY((touched & mask) != mask))
			cold += (uint32_t)__builtin_popcount(~touched & mask);
		from += n;
	}
	return (uint32_t)tm_bits_min(cold * TM_GRANULE_PAGES, pages);
}

/* Try the place behind the last one found resident, then the units that became free last. */
static bool warm_at_once(const struct tm_part_state *ps, uint32_t pages, uint32_t align,
			 struct tm_place *best)
{
	uint32_t run = ps->warm_page; /* never inside a free run: see part.h */
	uint32_t units = (pages + TM_UNIT_PAGES - 1) / TM_UNIT_PAGES;
	uint32_t at, unit;

	if (run < (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_PAGE_SHIFT) &&
	    tm_zone_unit(run)->part == tm_part_of(ps) && (*tm_part_tag(run) & TM_TAG_FREE)) {
		at = place_in(run, pages, align);
		if (at != TM_PAGE_NIL && tm_place_cold_pages(at, pages) == 0) {
			*best = (struct tm_place){run, at, true};
			return true;
		}
	}
	if (ps->whole.count < units || align > TM_UNIT_PAGES)
		return false;
	unit = tm_unit_youngest(ps, units);
	if (unit == TM_UNIT_NIL)
		return false;
	at = unit * TM_UNIT_PAGES;
	*best = (struct tm_place){tm_extent_run_start(ps, at), at, true};
	return true;
}

struct search {
	uint32_t pages;
	uint32_t align;
	uint32_t cold; /* pages of the best place that are not resident */
	uint32_t work; /* granules that may still be examined */
	struct tm_place best;
};

/* Slide a window of the request's length through a run by granules, for the fewest cold pages. */
static void look_through(struct search *s, uint32_t run)
{
	uint32_t end = run + (*tm_part_tag(run) & ~TM_TAG_FREE);
	uint32_t at = place_in(run, s->pages, s->align);
	uint32_t cold;

	if (at == TM_PAGE_NIL)
		return;
	cold = tm_place_cold_pages(at, s->pages);
	for (;;) {
		uint32_t next = (at | (TM_GRANULE_PAGES - 1)) + 1;

		if (cold + s->pages / WARMER_SHARE < s->cold) {
			s->cold = cold;
			s->best = (struct tm_place){run, at, false};
		}
		if (s->cold == 0 || s->work == 0 || s->align > 1 || next + s->pages > end)
			return;
		if (granule_is_cold((next + s->pages - 1) / TM_GRANULE_PAGES))
			cold += TM_GRANULE_PAGES;
		if (granule_is_cold(at / TM_GRANULE_PAGES))
			cold -= TM_GRANULE_PAGES < cold ? TM_GRANULE_PAGES : cold;
		at = next;
		s->work--;
	}
}

void tm_place_warmest(const struct tm_part_state *ps, uint32_t pages, uint32_t align,
		      struct tm_place *found)
{
	struct search s = {pages, align, tm_place_cold_pages(found->at, pages), WARM_GRANULES,
			   *found};
	uint32_t level, step;

	if (warm_at_once(ps, pages, align, found))
		return;
	/* spans are many and short, and their part is kept dense by other means (trim.c) */
	if (tm_part_of(ps) == TM_PART_SPAN || pages < TM_GRANULE_PAGES ||
	    tm_part_idle_pages(ps) < pages / 2)
		return;
	tm_part_bin(pages, &level, &step);
	for (int runs = WARM_RUNS; s.cold && s.work && runs > 0 && next_bin(ps, &level, &step);
	     step++)
		for (uint32_t run = ps->bins[level][step]; run != TM_PAGE_NIL && runs > 0;
		     run = *tm_part_tag(run + 1), runs--)
			look_through(&s, run);
	*found = s.best;
}
