/* SPDX-License-Identifier: MIT */
/*
 * extent_check: walks a part and verifies the invariants that extent.h and part.h state. Takes the
 * part's lock; for tests and debug builds.
 */
#include "shim/heap/part.h"

struct census {
	uint64_t free_pages;
	uint64_t binned; /* runs of 16 pages and more */
	uint32_t whole;
	uint32_t sparse;
	uint32_t sparse_granules;
};

/* Check a unit's masks against its free runs. `used`: a bit per granule that has a used page. */
static const char *check_unit(const struct tm_part_state *ps, uint32_t at, uint32_t used,
			      struct census *c)
{
	const struct tm_unit *u = &tm_zone.units[at];
	uint32_t idle = u->touched & ~u->used;
	bool listed = idle && !(u->flags & (TM_UNIT_KEPT | TM_UNIT_HUGETLB));

	(void)ps;
	if (u->used != used)
		return "unit: used is what no free run covers";
	if (listed != ((u->flags & TM_UNIT_LISTED) != 0))
		return "unit: listed while free granules may be resident";
	if (!listed)
		return NULL;
	if (u->used == 0) {
		c->whole++;
	} else {
		c->sparse++;
		c->sparse_granules += (uint32_t)__builtin_popcount(idle);
	}
	return NULL;
}

static const char *check_bins(const struct tm_part_state *ps, uint64_t binned)
{
	uint64_t seen = 0;

	for (uint32_t level = 0; level < TM_BIN_LEVELS; level++) {
		if (((ps->levels >> level & 1) != 0) != (ps->steps[level] != 0))
			return "extent: the level's bit says whether it has runs";
		for (uint32_t step = 0; step < TM_BIN_STEPS; step++) {
			uint32_t prev = TM_PAGE_NIL;

			if ((ps->bins[level][step] != TM_PAGE_NIL) !=
			    (ps->steps[level] >> step & 1))
				return "extent: the bin's bit says whether it has runs";
			for (uint32_t run = ps->bins[level][step]; run != TM_PAGE_NIL;
			     run = tm_zone.tags[run + 1]) {
				uint32_t pages = tm_zone.tags[run] & ~TM_TAG_FREE;

				if (!(tm_zone.tags[run] & TM_TAG_FREE))
					return "extent: bins hold free runs";
				if (pages >> level < TM_BIN_STEPS ||
				    pages >> level >= 2 * TM_BIN_STEPS ||
				    (pages >> level & (TM_BIN_STEPS - 1)) != step)
					return "extent: a run is in the bin of its length";
				if (tm_zone.tags[run + 2] != prev)
					return "extent: links of a bin agree";
				prev = run;
				if (++seen > binned)
					return "extent: a bin holds each run once";
			}
		}
	}
	return seen == binned ? NULL : "extent: every run of 16 pages is in a bin";
}

static const char *check_list(const struct tm_unit_list *list, bool whole)
{
	uint32_t n = 0, prev = TM_UNIT_NIL;

	for (uint32_t at = list->first; at != TM_UNIT_NIL; at = tm_zone.units[at].next) {
		if ((tm_zone.units[at].used == 0) != whole)
			return "unit: wholly free units and others have a list each";
		if (tm_zone.units[at].prev != prev || n++ > list->count)
			return "unit: links of a list agree";
		prev = at;
	}
	return n == list->count && list->last == prev ? NULL : "unit: a list's count is its length";
}

/* Length of the free run that begins at this page, or 0. */
static uint32_t run_pages(uint32_t page)
{
	uint32_t tag = tm_zone.tags[page];

	return tag & TM_TAG_FREE ? tag & ~TM_TAG_FREE : 0;
}

static const char *check_pages(const struct tm_part_state *ps, uint8_t part, uint32_t end,
			       struct census *c)
{
	uint32_t run_end = 0; /* pages below belong to the free run seen last */
	uint32_t used = 0;

	for (uint32_t page = ps->trusted; page < end; page++) {
		const char *err;

		if (tm_zone_unit(page)->part != part) {
			page |= TM_UNIT_PAGES - 1;
			continue;
		}
		if (page >= run_end) {
			uint32_t pages = run_pages(page);

			if (pages) {
				if (run_end == page && page > ps->trusted && c->free_pages &&
				    tm_zone_unit(page - 1)->part == part)
					return "extent: free neighbours are one run";
				run_end = page + pages;
				if (run_end > end ||
				    tm_zone.tags[run_end - 1] != tm_zone.tags[page])
					return "extent: both ends of a run say its length";
				c->free_pages += pages;
				c->binned += pages >= TM_BIN_STEPS;
			} else {
				used |= 1u << (page % TM_UNIT_PAGES / TM_GRANULE_PAGES);
			}
		} else if ((tm_zone.tags[page] & TM_TAG_FREE) && page != run_end - 1) {
			return "extent: no tag inside a run";
		} else if (page == ps->warm_page) {
			return "extent: no run is entered in its middle";
		}
		if ((page + 1) % TM_UNIT_PAGES == 0) {
			err = check_unit(ps, page / TM_UNIT_PAGES, used, c);
			if (err)
				return err;
			used = 0;
		}
	}
	return NULL;
}

const char *tm_extent_check(enum tm_part part)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	struct census c = {0};
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE) >> TM_PAGE_SHIFT);
	const char *err = check_pages(ps, (uint8_t)part, end, &c);

	if (!err)
		err = check_bins(ps, c.binned);
	if (!err)
		err = check_list(&ps->whole, true);
	if (!err)
		err = check_list(&ps->sparse, false);
	if (!err && c.free_pages != ps->free_pages)
		err = "extent: free pages are counted";
	if (!err && (c.whole != ps->whole.count || c.sparse != ps->sparse.count ||
		     c.sparse_granules != ps->sparse_granules || ps->whole_low > ps->whole.count))
		err = "unit: retained memory is counted";
	tm_extent_unlock(ps);
	return err;
}
