/* SPDX-License-Identifier: MIT */
/*
 * unit: tracks which memory may be resident, per 2 MiB. Called by extent.c and purge.c under the
 * part's lock; calls nothing. See struct tm_unit and part.h.
 */
#include "shim/heap/huge.h"
#include "shim/heap/part.h"

#define ALL_GRANULES UINT32_MAX
/* Of what is in use, as in tm_part_may_idle; more than what collapse.c fills, which would alternate. */
#define SPARE_SHARE 5u

static void list_remove(struct tm_unit_list *list, uint32_t at)
{
	struct tm_unit *u = &tm_zone.units[at];

	if (u->prev == TM_UNIT_NIL)
		list->first = u->next;
	else
		tm_zone.units[u->prev].next = u->next;
	if (u->next == TM_UNIT_NIL)
		list->last = u->prev;
	else
		tm_zone.units[u->next].prev = u->prev;
	list->count--;
	u->flags &= (uint8_t)~TM_UNIT_LISTED;
}

static void list_append(struct tm_unit_list *list, uint32_t at)
{
	struct tm_unit *u = &tm_zone.units[at];

	u->prev = list->last;
	u->next = TM_UNIT_NIL;
	if (list->last == TM_UNIT_NIL)
		list->first = at;
	else
		tm_zone.units[list->last].next = at;
	list->last = at;
	list->count++;
	u->flags |= TM_UNIT_LISTED;
}

/* Take a unit off its list; to be called before its masks change. */
void tm_unit_unlist(struct tm_part_state *ps, uint32_t at)
{
	struct tm_unit *u = &tm_zone.units[at];

	if (!(u->flags & TM_UNIT_LISTED))
		return;
	if (u->used == 0) {
		list_remove(&ps->whole, at);
		if (ps->whole.count < ps->whole_low)
			ps->whole_low = ps->whole.count;
	} else {
		ps->sparse_granules -= (uint32_t)__builtin_popcount(u->touched & ~u->used);
		list_remove(&ps->sparse, at);
	}
}

/* Put a unit on the list where it belongs by its masks, as the youngest. */
void tm_unit_enlist(struct tm_part_state *ps, uint32_t at)
{
	struct tm_unit *u = &tm_zone.units[at];
	uint32_t idle = u->touched & ~u->used;

	if (!idle || (u->flags & (TM_UNIT_KEPT | TM_UNIT_HUGETLB)))
		return;
	u->tick = ps->tick;
	if (u->used == 0) {
		list_append(&ps->whole, at);
	} else {
		ps->sparse_granules += (uint32_t)__builtin_popcount(idle);
		list_append(&ps->sparse, at);
	}
}

/*
 * Make a partly free unit the oldest of its list again, with its former tick, after its masks
 * changed.
 */
void tm_unit_age(struct tm_part_state *ps, uint32_t at, uint32_t tick)
{
	struct tm_unit *u = &tm_zone.units[at];
	struct tm_unit_list *list = &ps->sparse;

	if (!(u->flags & TM_UNIT_LISTED) || u->used == 0)
		return;
	list_remove(list, at);
	u->prev = TM_UNIT_NIL;
	u->next = list->first;
	if (list->first == TM_UNIT_NIL)
		list->last = at;
	else
		tm_zone.units[list->first].prev = at;
	list->first = at;
	list->count++;
	u->flags |= TM_UNIT_LISTED;
	u->tick = tick;
}

/*
 * The oldest of the sparse units is due to be purged: make it the youngest instead if that would
 * split a huge page that is hardly worth splitting.
 */
bool tm_unit_spare(struct tm_part_state *ps, uint32_t at)
{
	const struct tm_unit *u = &tm_zone.units[at];

	if (u->stand != TM_HUGE_ON_THP ||
	    (uint32_t)__builtin_popcount(~u->used) > TM_NEARLY_USED_GRANULES ||
	    !tm_part_may_idle(ps, ps->sparse_granules, SPARE_SHARE))
		return false;
	tm_unit_unlist(ps, at);
	tm_unit_enlist(ps, at);
	return true;
}

/*
 * The first of `units` adjoining wholly free units, among them the one freed last; TM_UNIT_NIL:
 * none.
 */
uint32_t tm_unit_youngest(const struct tm_part_state *ps, uint32_t units)
{
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	uint32_t from = ps->whole.last;
	uint32_t to = from + 1;

	while (from > 0 && to - from < units && tm_unit_is_whole(ps, from - 1))
		from--;
	while (to < end && to - from < units && tm_unit_is_whole(ps, to))
		to++;
	return to - from >= units ? from : TM_UNIT_NIL;
}

/* Granules from..to-1 of a unit; from < to <= 32. */
static uint32_t granule_mask(uint32_t from, uint32_t to)
{
	return (ALL_GRANULES << from) & (ALL_GRANULES >> (TM_UNIT_GRANULES - to));
}

TM_AT_START_CODE void tm_unit_init(struct tm_part_state *ps)
{
	ps->whole = (struct tm_unit_list){TM_UNIT_NIL, TM_UNIT_NIL, 0};
	ps->sparse = ps->whole;
	ps->sparse_granules = 0;
	ps->whole_low = 0;
}

/*
 * The granules that may be resident once those in `mask` are written. The kernel backs an untouched
 * unit by a huge page as a whole; if it does not, the rest only counts as idle until it is purged.
 * Spans follow one another, so the rest of their unit is soon in use.
 */
static uint32_t backed(const struct tm_part_state *ps, const struct tm_unit *u, uint32_t mask)
{
	bool whole = (u->flags & TM_UNIT_HUGE) && u->touched == 0 && tm_part_of(ps) != TM_PART_SPAN;

	return u->touched | (whole ? ALL_GRANULES : mask);
}

enum touch {
	TOUCH_ALL,
	TOUCH_EDGES, /* the first and the last unit only */
};

static void take(struct tm_part_state *ps, uint32_t page, uint32_t pages, enum touch touch)
{
	uint32_t end = page + pages;
	uint32_t first = page / TM_UNIT_PAGES;
	uint32_t last = (end - 1) / TM_UNIT_PAGES;

	for (uint32_t at = first; at <= last; at++) {
		struct tm_unit *u = &tm_zone.units[at];
		uint32_t base = at * TM_UNIT_PAGES;
		uint32_t from = at == first ? page - base : 0;
		uint32_t to = at == last ? end - base : TM_UNIT_PAGES;
		uint32_t mask = granule_mask(from / TM_GRANULE_PAGES,
					     (to + TM_GRANULE_PAGES - 1) / TM_GRANULE_PAGES);

		tm_unit_unlist(ps, at);
		u->used |= mask;
		u->flags &= (uint8_t)~TM_UNIT_KEPT;
		if (touch == TOUCH_ALL || at == first || at == last) {
			__atomic_store_n(&u->touched, backed(ps, u, mask), __ATOMIC_RELAXED);
			if (u->fresh < to)
				u->fresh = (uint16_t)to;
		}
		tm_unit_enlist(ps, at);
	}
}

/* Pages are handed out: mark their granules used and touched. */
void tm_unit_take(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	take(ps, page, pages, TOUCH_ALL);
}

/* The same, but leaves `touched` and `fresh` of inner units for tm_extent_take_zero to read. */
void tm_unit_take_edges(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	take(ps, page, pages, TOUCH_EDGES);
}

/*
 * Pages were given back and are part of this free run: granules that the run covers become unused.
 */
void tm_unit_give(struct tm_part_state *ps, uint32_t page, uint32_t pages, uint32_t run,
		  uint32_t run_pages)
{
	uint32_t first = page & ~(TM_GRANULE_PAGES - 1);
	uint32_t last = (page + pages + TM_GRANULE_PAGES - 1) & ~(TM_GRANULE_PAGES - 1);

	if (first < run)
		first += TM_GRANULE_PAGES;
	if (last > run + run_pages)
		last -= TM_GRANULE_PAGES;
	/* downwards, so that the lowest units are the youngest: reused first and purged last */
	while (first < last) {
		uint32_t at = (last - 1) / TM_UNIT_PAGES;
		struct tm_unit *u = &tm_zone.units[at];
		uint32_t base = at * TM_UNIT_PAGES;
		uint32_t from = first > base ? first - base : 0;

		tm_unit_unlist(ps, at);
		u->used &= ~granule_mask(from / TM_GRANULE_PAGES, (last - base) / TM_GRANULE_PAGES);
		/* every block in it was cleansed when it was given back */
		if (u->used == 0)
			u->tainted = 0;
		tm_unit_enlist(ps, at);
		last = base + from;
	}
}

void tm_unit_zero_run(const struct tm_unit_run *run)
{
	__builtin_memset(tm_zone_page_addr(run->page), 0, (size_t)run->pages << TM_PAGE_SHIFT);
}

/*
 * Zero those pages [from, to) of the unit that may hold data. The last ones are only noted in `run`,
 * for they may go on in the next unit: one long memset takes a third of the time of many short ones,
 * as it does not read what it overwrites.
 */
void tm_unit_zero(const struct tm_unit *u, uint32_t page, uint32_t from, uint32_t to,
		  struct tm_unit_run *run)
{
	uint32_t base = page & ~(uint32_t)(TM_UNIT_PAGES - 1);
	uint32_t end = to < u->fresh ? to : u->fresh;

	while (from < end) {
		uint32_t stop = (from | (TM_GRANULE_PAGES - 1)) + 1;

		stop = stop < end ? stop : end;
		if ((u->touched >> (from / TM_GRANULE_PAGES) & 1) != 0) {
			if (run->page + run->pages != base + from) {
				tm_unit_zero_run(run);
				*run = (struct tm_unit_run){base + from, 0};
			}
			run->pages += stop - from;
		}
		from = stop;
	}
}

bool tm_extent_lacks(enum tm_part part, size_t bytes)
{
	const struct tm_part_state *ps = &tm_parts[part];
	size_t whole = __atomic_load_n(&ps->whole.count, __ATOMIC_RELAXED);
	size_t sparse = __atomic_load_n(&ps->sparse_granules, __ATOMIC_RELAXED);
	size_t recent = __atomic_load_n(&ps->recent_pages, __ATOMIC_RELAXED);

	return (whole << TM_UNIT_SHIFT) + (sparse << TM_GRANULE_SHIFT) + (recent << TM_PAGE_SHIFT) <
	       bytes;
}

size_t tm_extent_fresh_bytes(enum tm_part part)
{
	return (size_t)__atomic_load_n(&tm_parts[part].fresh_pages, __ATOMIC_RELAXED)
	       << TM_PAGE_SHIFT;
}

size_t tm_extent_used_bytes(void)
{
	uint64_t mapped = 0, unused = 0;

	for (const struct tm_part_state *ps = tm_parts; ps < tm_parts + TM_PART_COUNT; ps++) {
		mapped += __atomic_load_n(&ps->mapped_pages, __ATOMIC_RELAXED);
		unused += __atomic_load_n(&ps->free_pages, __ATOMIC_RELAXED);
	}
	return mapped > unused ? (mapped - unused) << TM_PAGE_SHIFT : 0;
}
