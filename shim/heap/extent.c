/* SPDX-License-Identifier: MIT */
#include "shim/heap/extent.h"

#include "shim/base/bits.h"
#include "shim/heap/dense.h"
#include "shim/heap/grow.h"
#include "shim/heap/huge.h"
#include "shim/heap/numa.h"
#include "shim/heap/part.h"
#include "shim/heap/purge.h"

/*
 * Pages made resident by requests of the part of spans before other parts are asked to give up as
 * much, and the most that is asked of them at once, however long they had nothing to give.
 */
#define COLD_PAGES TM_UNIT_PAGES
#define COLD_PAGES_MAX (4 * TM_UNIT_PAGES)

/* The zone grows by the part's size up to now, clamped to these bounds. */
#define STEP_MIN_BYTES TM_UNIT_BYTES
#define STEP_MAX_BYTES ((size_t)64 << 20)
/*
 * The part of spans grows by a quarter of its size: spans are short and come one by one, so a
 * larger step would only hold address space.
 */
#define SPAN_STEP_SHARE 4u

struct tm_part_state tm_parts[TM_PART_COUNT];
/*
 * Not in tm_parts, so that the state of an unused part stays untouched, at the start and in a fork.
 */
static struct tm_lock locks[TM_PART_COUNT] TM_AT_FORK_DATA;

static void part_reset(struct tm_part_state *ps)
{
	for (uint32_t i = 0; i < TM_BIN_LEVELS; i++) {
		ps->steps[i] = 0;
		for (uint32_t k = 0; k < TM_BIN_STEPS; k++)
			ps->bins[i][k] = TM_PAGE_NIL;
	}
	ps->levels = 0;
	ps->free_pages = 0;
	ps->warm_page = TM_PAGE_NIL;
	__builtin_memset(ps->recent, 0, sizeof(ps->recent));
	ps->recent_pages = 0;
	tm_unit_init(ps);
	ps->ready = true;
}

TM_AT_START_CODE void tm_extent_init(void)
{
	for (unsigned part = 0; part < TM_PART_COUNT; part++) {
		locks[part].rank = TM_RANK_EXTENT;
		tm_lock_register(&locks[part]);
	}
}

/*
 * A thread that vanished in a raw fork may have left this part half changed. Its free memory is
 * abandoned in this process, and blocks from before the fork are not reused when they are freed.
 */
static TM_COLD void part_abandon(struct tm_part_state *ps)
{
	part_reset(ps);
	tm_zone_forsake(tm_part_of(ps));
	ps->trusted = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE) >> TM_PAGE_SHIFT);
}

struct tm_part_state *tm_extent_lock_as_is(enum tm_part part)
{
	struct tm_part_state *ps = &tm_parts[part];

	if (TM_UNLIKELY(tm_lock_acquire(&locks[part]) == TM_LOCK_STOLEN))
		part_abandon(ps);
	else if (TM_UNLIKELY(!ps->ready))
		part_reset(ps);
	return ps;
}

struct tm_part_state *tm_extent_lock(enum tm_part part)
{
	struct tm_part_state *ps = tm_extent_lock_as_is(part);

	if (ps->recent_pages != 0)
		tm_recent_flush(ps);
	return ps;
}

void tm_extent_unlock(struct tm_part_state *ps)
{
	tm_lock_release(&locks[tm_part_of(ps)]);
}

static void run_link(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	uint32_t level, step, head;

	*tm_part_tag(page) = TM_TAG_FREE | pages;
	*tm_part_tag(page + pages - 1) = TM_TAG_FREE | pages;
	if (pages < TM_BIN_STEPS)
		return;
	tm_part_bin(pages, &level, &step);
	head = ps->bins[level][step];
	*tm_part_tag(page + 1) = head;
	*tm_part_tag(page + 2) = TM_PAGE_NIL;
	if (head != TM_PAGE_NIL)
		*tm_part_tag(head + 2) = page;
	ps->bins[level][step] = page;
	ps->steps[level] |= (uint16_t)(1u << step);
	ps->levels |= 1u << level;
}

static void run_unlink(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	uint32_t level, step, next, prev;

	*tm_part_tag(page) = 0;
	*tm_part_tag(page + pages - 1) = 0;
	if (pages < TM_BIN_STEPS)
		return;
	tm_part_bin(pages, &level, &step);
	next = *tm_part_tag(page + 1);
	prev = *tm_part_tag(page + 2);
	if (next != TM_PAGE_NIL)
		*tm_part_tag(next + 2) = prev;
	if (prev != TM_PAGE_NIL) {
		*tm_part_tag(prev + 1) = next;
	} else {
		ps->bins[level][step] = next;
		if (next == TM_PAGE_NIL) {
			ps->steps[level] &= (uint16_t) ~(1u << step);
			if (!ps->steps[level])
				ps->levels &= ~(1u << level);
		}
	}
}

/* Cut the pages at `at` out of the free run that begins at `run`. */
void tm_extent_carve(struct tm_part_state *ps, uint32_t run, uint32_t at, uint32_t pages)
{
	uint32_t run_pages = *tm_part_tag(run) & ~TM_TAG_FREE;
	uint32_t head = at - run;
	uint32_t tail = run_pages - head - pages;

	run_unlink(ps, run, run_pages);
	if (head)
		run_link(ps, run, head);
	if (tail)
		run_link(ps, at + pages, tail);
	tm_part_add(&ps->free_pages, -(uint64_t)pages);
}

/* Make pages free and coalesce them with free neighbours of the same part. Returns the run. */
void tm_extent_join(struct tm_part_state *ps, uint32_t start, uint32_t pages, uint32_t *ret_run,
		    uint32_t *ret_pages)
{
	uint8_t part = (uint8_t)tm_part_of(ps);
	uint32_t end = start + pages;
	uint32_t front =
		(uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_PAGE_SHIFT);
	uint32_t run = start;
	uint32_t tag;

	tm_part_add(&ps->free_pages, pages);
	if (start > ps->trusted && tm_zone_unit(start - 1)->part == part) {
		tag = *tm_part_tag(start - 1);
		if (tag & TM_TAG_FREE) {
			run -= tag & ~TM_TAG_FREE;
			run_unlink(ps, run, start - run);
		}
	}
	if (end < front && tm_zone_unit(end)->part == part) {
		tag = *tm_part_tag(end);
		if (tag & TM_TAG_FREE) {
			run_unlink(ps, end, tag & ~TM_TAG_FREE);
			end += tag & ~TM_TAG_FREE;
		}
	}
	run_link(ps, run, end - run);
	if (ps->warm_page > run && ps->warm_page < end)
		ps->warm_page = run;
	*ret_run = run;
	*ret_pages = end - run;
}

/* Length of the free run that ends where the part's next step begins; 0: there is none. */
static uint32_t free_at_front(const struct tm_part_state *ps)
{
	uint32_t next = tm_zone_next(tm_part_of(ps));

	if (next <= ps->trusted || next == 0 || tm_zone_unit(next - 1)->part != tm_part_of(ps))
		return 0;
	return *tm_part_tag(next - 1) & TM_TAG_FREE ? *tm_part_tag(next - 1) & ~TM_TAG_FREE : 0;
}

static bool grow(struct tm_part_state *ps, uint32_t pages, uint32_t align)
{
	size_t more = (size_t)pages + (align > TM_UNIT_PAGES ? align - TM_UNIT_PAGES : 0);
	size_t have = align <= TM_GRANULE_PAGES ? free_at_front(ps) & ~(TM_GRANULE_PAGES - 1) : 0;
	size_t need, want, got;
	uint32_t page, run, run_pages;

	/* in a partly mapped unit, alignment may cost up to align pages */
	if (align > TM_GRANULE_PAGES && align <= TM_UNIT_PAGES &&
	    tm_zone_next(tm_part_of(ps)) % TM_UNIT_PAGES)
		more += align;
	have = have < more ? have : 0;
	need = tm_bits_align_up((more - have) << TM_PAGE_SHIFT, TM_GRANULE_BYTES);
	want = (size_t)ps->mapped_pages << TM_PAGE_SHIFT;
	if (tm_part_of(ps) == TM_PART_SPAN)
		want /= SPAN_STEP_SHARE;
	want = tm_bits_clamp(want, STEP_MIN_BYTES, STEP_MAX_BYTES);
	got = tm_zone_step(tm_part_of(ps), need, want, &page);
	if (!got)
		return false;
	tm_part_add(&ps->mapped_pages, got >> TM_PAGE_SHIFT);
	ps->zone_steps++;
	tm_numa_fresh(tm_part_of(ps), page, got >> TM_PAGE_SHIFT);
	tm_huge_fresh(tm_part_of(ps), page, got, (size_t)ps->mapped_pages << TM_PAGE_SHIFT);
	tm_extent_join(ps, page, (uint32_t)(got >> TM_PAGE_SHIFT), &run, &run_pages);
	tm_unit_give(ps, page, (uint32_t)(got >> TM_PAGE_SHIFT), run, run_pages);
	return true;
}

static bool find_or_grow(struct tm_part_state *ps, size_t pages, size_t align,
			 struct tm_place *ret_found)
{
	size_t zone_pages = tm_zone.limit >> TM_PAGE_SHIFT;

	if (pages > zone_pages || align > zone_pages || pages + align > zone_pages)
		return false;
	if (tm_place_find(ps, (uint32_t)pages, (uint32_t)align, ret_found))
		return true;
	/*
	 * at the end of a chunk the step need not adjoin the part's free end: then it takes a
	 * second one
	 */
	for (int i = 0; i < 2; i++)
		if (grow(ps, (uint32_t)pages, (uint32_t)align) &&
		    tm_place_find(ps, (uint32_t)pages, (uint32_t)align, ret_found))
			return true;
	return false;
}

enum place {
	PLACE_NONE,
	PLACE_FOUND,
	PLACE_WARM, /* found, and no page is known to be non-resident */
};

/*
 * Before memory is made resident, use idle resident memory of other parts. Purged memory counts as
 * new here: as the part makes it resident piece by piece, other parts give up as much in whole
 * units.
 */
static enum place find_or_use_others(struct tm_part_state *ps, size_t pages, size_t align,
				     struct tm_place *ret_found)
{
	size_t fresh = pages;
	bool found;

	if (pages > tm_zone.limit >> TM_PAGE_SHIFT || align > TM_UNIT_PAGES)
		return PLACE_NONE;
	found = tm_place_find(ps, (uint32_t)pages, (uint32_t)align, ret_found);
	if (found) {
		if (tm_place_cold_pages(ret_found->at, pages) == 0)
			return PLACE_WARM;
		tm_place_warmest(ps, (uint32_t)pages, (uint32_t)align, ret_found);
		fresh = tm_place_cold_pages(ret_found->at, pages);
		if (fresh == 0)
			return PLACE_WARM;
		ps->cold_pages =
			tm_bits_min(ps->cold_pages + fresh, tm_bits_max(fresh, COLD_PAGES_MAX));
		fresh = ps->cold_pages + ps->unpaid_pages;
		if (tm_part_of(ps) == TM_PART_SPAN && fresh < COLD_PAGES)
			return PLACE_FOUND;
	}
	ps->unpaid_pages = 0;
	if (!tm_purge_others_idle(tm_part_of(ps), fresh))
		return found ? PLACE_FOUND : PLACE_NONE;
	ps->cold_pages = 0;
	/* what exceeds the limit of one call is asked for at the next one */
	if (fresh > TM_PURGE_CALLER_BYTES >> TM_PAGE_SHIFT)
		ps->unpaid_pages = fresh - (TM_PURGE_CALLER_BYTES >> TM_PAGE_SHIFT);
	/* two parts' locks are never held at once */
	tm_extent_unlock(ps);
	(void)tm_purge_use_others(tm_part_of(ps), found ? pages : fresh, fresh);
	(void)tm_extent_lock(tm_part_of(ps));
	found = tm_place_find(ps, (uint32_t)pages, (uint32_t)align, ret_found);
	if (found && tm_place_cold_pages(ret_found->at, pages) != 0)
		tm_place_warmest(ps, (uint32_t)pages, (uint32_t)align, ret_found);
	return found ? PLACE_FOUND : PLACE_NONE;
}

/*
 * The start of the free run that `page`, the first page of a granule, belongs to: over free
 * granules by the masks of the units, then by the tags of the granule in which the run begins.
 */
uint32_t tm_extent_run_start(const struct tm_part_state *ps, uint32_t page)
{
	uint8_t part = (uint8_t)tm_part_of(ps);

	while (page > ps->trusted && tm_zone_unit(page - 1)->part == part) {
		const struct tm_unit *u = tm_zone_unit(page - 1);
		uint32_t below = (page - 1) % TM_UNIT_PAGES / TM_GRANULE_PAGES;

		if (u->used >> below & 1)
			break;
		page -= u->used == 0 ? below * TM_GRANULE_PAGES + TM_GRANULE_PAGES
				     : TM_GRANULE_PAGES;
	}
	while (!(*tm_part_tag(page) & TM_TAG_FREE))
		page--;
	return page;
}

/* Tell the part's swing that its use has changed, by `taken` pages taken or by a free (0). */
static void tell(struct tm_part_state *ps, size_t taken)
{
	if (tm_swing_note(&ps->swing, ps->mapped_pages - ps->free_pages, tm_part_idle_pages(ps),
			  taken)) {
		tm_purge_consider(ps);
		tm_settle(ps);
	}
}

/* A request for pages. */
struct want {
	size_t pages;
	size_t align;
	bool grown; /* a growing block will be copied there */
};

static uint32_t take(struct tm_part_state *ps, const struct want *want)
{
	size_t pages = want->pages;
	struct tm_place f;
	enum place place = find_or_use_others(ps, pages, want->align, &f);
	uint32_t cold;

	if (place == PLACE_NONE && !find_or_grow(ps, pages, want->align, &f))
		return TM_PAGE_NIL;
	cold = place == PLACE_WARM ? 0 : tm_place_cold_pages(f.at, pages);
	if (cold != 0) {
		tm_part_add(&ps->fresh_pages, cold);
		tm_swing_cold(&ps->swing, cold, tm_part_idle_pages(ps));
		if (want->grown)
			tm_dense_grown(tm_part_of(ps), f.at, pages);
		else
			tm_dense_note(tm_part_of(ps), f.at, pages);
	}
	tm_extent_carve(ps, f.run, f.at, (uint32_t)pages);
	/* not before: of a place left free it would be the last page of a run, which also has a tag */
	if (f.warm)
		ps->warm_page = f.at + (uint32_t)pages;
	ps->takes++;
	return f.at;
}

static void *take_any(enum tm_part part, const struct want *want)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	uint32_t at = take(ps, want);

	if (at != TM_PAGE_NIL) {
		tm_unit_take(ps, at, (uint32_t)want->pages);
		tell(ps, want->pages);
	}
	tm_extent_unlock(ps);
	return at == TM_PAGE_NIL ? NULL : tm_zone_page_addr(at);
}

/* False for a request far larger than all free memory: it fails without purging first. */
static bool may_be_rescued(size_t pages)
{
	uint64_t free_pages = tm_grow_retained() >> TM_PAGE_SHIFT;

	for (int i = 0; i < TM_PART_COUNT; i++)
		free_pages += __atomic_load_n(&tm_parts[i].free_pages, __ATOMIC_RELAXED);
	return pages / 8 <= free_pages;
}

static void *take_or_rescue(enum tm_part part, const struct want *want)
{
	void *p = take_any(part, want);

	if (TM_UNLIKELY(p == NULL) && may_be_rescued(want->pages) && tm_purge_rescue(part))
		p = take_any(part, want);
	return p;
}

void *tm_extent_take(enum tm_part part, size_t pages, size_t align_pages)
{
	return take_or_rescue(part, &(struct want){pages, align_pages, false});
}

void *tm_extent_take_grown(enum tm_part part, size_t pages)
{
	return take_or_rescue(part, &(struct want){pages, 1, true});
}

static void *take_zero(enum tm_part part, size_t pages, size_t align_pages)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	uint32_t at = take(ps, &(struct want){pages, align_pages, false});
	struct tm_unit_run run = {at, 0};
	struct tm_unit edge[2];
	uint32_t first, last, end;

	if (at == TM_PAGE_NIL) {
		tm_extent_unlock(ps);
		return NULL;
	}
	/*
	 * The state from before the take says which pages may hold data. Edge units are shared with
	 * other blocks, so they are copied. The inner ones belong to this block alone: their words
	 * stay unchanged until the block was zeroed without the lock.
	 */
	end = at + (uint32_t)pages;
	first = at / TM_UNIT_PAGES;
	last = (end - 1) / TM_UNIT_PAGES;
	edge[0] = tm_zone.units[first];
	edge[1] = tm_zone.units[last];
	tm_unit_take_edges(ps, at, (uint32_t)pages);
	tell(ps, pages);
	tm_extent_unlock(ps);

	for (uint32_t i = first; i <= last; i++) {
		struct tm_unit *u = &tm_zone.units[i];
		uint32_t base = i * TM_UNIT_PAGES;

		tm_unit_zero(i == first  ? &edge[0]
			     : i == last ? &edge[1]
					 : u,
			     base, i == first ? at - base : 0,
			     i == last ? end - base : TM_UNIT_PAGES, &run);
		if (i != first && i != last) {
			__atomic_store_n(&u->touched, UINT32_MAX, __ATOMIC_RELAXED);
			u->fresh = (uint16_t)TM_UNIT_PAGES;
		}
	}
	tm_unit_zero_run(&run);
	return tm_zone_page_addr(at);
}

void *tm_extent_take_zero(enum tm_part part, size_t pages, size_t align_pages)
{
	void *p = take_zero(part, pages, align_pages);

	if (TM_UNLIKELY(p == NULL) && may_be_rescued(pages) && tm_purge_rescue(part))
		p = take_zero(part, pages, align_pages);
	return p;
}

bool tm_extent_fits(enum tm_part part, size_t pages)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	struct tm_place place;
	bool fits = pages <= tm_zone.limit >> TM_PAGE_SHIFT &&
		    tm_place_find(ps, (uint32_t)pages, 1, &place);

	tm_extent_unlock(ps);
	return fits;
}

bool tm_extent_take_at(enum tm_part part, void *start, size_t pages)
{
	struct tm_part_state *ps;
	uint32_t at = tm_zone_page(start);
	bool ok = false;

	/* the block may end at the zone's front, where there is no next unit */
	if (tm_zone_offset(start) >= __atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED))
		return false;
	ps = tm_extent_lock(part);
	if (at >= ps->trusted && tm_zone_unit(at)->part == part &&
	    (*tm_part_tag(at) & TM_TAG_FREE) && (*tm_part_tag(at) & ~TM_TAG_FREE) >= pages) {
		if (tm_place_cold_pages(at, pages) != 0)
			tm_dense_grown(part, at, pages);
		tm_extent_carve(ps, at, at, (uint32_t)pages);
		tm_unit_take(ps, at, (uint32_t)pages);
		tell(ps, pages);
		ok = true;
	}
	tm_extent_unlock(ps);
	return ok;
}

void tm_extent_release(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	uint32_t run, run_pages;

	tm_extent_join(ps, page, pages, &run, &run_pages);
	tm_unit_give(ps, page, pages, run, run_pages);
	tell(ps, 0);
}

void tm_extent_give(enum tm_part part, void *start, size_t pages)
{
	uint32_t at = tm_zone_page(start);
	struct tm_part_state *ps;
	uint64_t event;

	if (TM_UNLIKELY(tm_zone_is_tainted(at, pages)) && tm_zone_cleanse(at, pages))
		return;
	ps = tm_extent_lock(part);
	if (at >= ps->trusted)
		tm_extent_release(ps, at, (uint32_t)pages);
	event = ps->gives++;
	tm_extent_unlock(ps);
	tm_purge_notice(event);
}

/*
 * Move units that were cut out of the free memory of `ps` to part `to`. They are relabelled under
 * the old part's lock, so that its neighbours don't coalesce with them; then they are made free in
 * the new part. Releases the lock of `ps`.
 */
void tm_extent_relabel(struct tm_part_state *ps, enum tm_part to, uint32_t page, uint32_t pages)
{
	uint32_t run, run_pages;

	/*
	 * they count as used until they are given: whoever walks the new part must not find them
	 * free
	 */
	for (uint32_t i = 0; i < pages / TM_UNIT_PAGES; i++) {
		tm_unit_unlist(ps, page / TM_UNIT_PAGES + i);
		tm_zone_unit(page)[i].used = UINT32_MAX;
		__atomic_store_n(&tm_zone_unit(page)[i].part, (uint8_t)to, __ATOMIC_RELAXED);
	}
	tm_part_add(&ps->mapped_pages, -(uint64_t)pages);
	tm_numa_relabel(tm_part_of(ps), to, page, pages);
	tm_extent_unlock(ps);

	ps = tm_extent_lock(to);
	tm_part_add(&ps->mapped_pages, pages);
	/* the part was abandoned after these pages were mapped: they are lost */
	if (TM_UNLIKELY(page < ps->trusted)) {
		tm_extent_unlock(ps);
		return;
	}
	tm_extent_join(ps, page, pages, &run, &run_pages);
	tm_unit_give(ps, page, pages, run, run_pages);
	tm_extent_unlock(ps);
}

bool tm_extent_hand_over(enum tm_part from, enum tm_part to, size_t units_max)
{
	struct tm_part_state *ps = tm_extent_lock(from);
	struct tm_place f;
	uint32_t end;

	if (!tm_place_find(ps, TM_UNIT_PAGES, TM_UNIT_PAGES, &f)) {
		tm_extent_unlock(ps);
		return false;
	}
	end = (f.run + (*tm_part_tag(f.run) & ~TM_TAG_FREE)) & ~(TM_UNIT_PAGES - 1);
	end = (uint32_t)tm_bits_min(end, f.at + units_max * TM_UNIT_PAGES);
	tm_extent_carve(ps, f.run, f.at, end - f.at);
	tm_extent_relabel(ps, to, f.at, end - f.at);
	return true;
}

void tm_extent_stats(enum tm_part part, struct tm_part_stats *ret_stats)
{
	struct tm_part_state *ps = &tm_parts[part];
	bool is_held = tm_lock_try(&locks[part]);

	if (is_held)
		tm_recent_flush(ps);
	*ret_stats = (struct tm_part_stats){
		.mapped_bytes = ps->mapped_pages << TM_PAGE_SHIFT,
		.free_bytes = ps->free_pages << TM_PAGE_SHIFT,
		.retained_bytes = (size_t)ps->whole.count << TM_UNIT_SHIFT,
		.sparse_bytes = ((size_t)ps->sparse_granules << TM_GRANULE_SHIFT) +
				((size_t)ps->recent_pages << TM_PAGE_SHIFT),
		.purged_bytes = ps->purged_pages << TM_PAGE_SHIFT,
		.takes = ps->takes,
		.gives = ps->gives,
		.steps = ps->zone_steps,
	};
	if (is_held)
		tm_extent_unlock(ps);
}

void tm_extent_clear(void)
{
	for (int i = 0; i < TM_PART_COUNT; i++) {
		tm_parts[i] = (struct tm_part_state){0};
		part_reset(&tm_parts[i]);
	}
}
