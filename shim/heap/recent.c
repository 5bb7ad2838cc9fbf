/* SPDX-License-Identifier: MIT */
#include "shim/heap/recent.h"

#include "shim/heap/part.h"
#include "shim/heap/purge.h"

static struct tm_recent_block *place_of(struct tm_part_state *ps, size_t pages)
{
	return &ps->recent[(pages ^ pages / TM_RECENT_BLOCKS) % TM_RECENT_BLOCKS];
}

/* [part lock] Take a kept block out, which leaves it handed out. */
static void take_out(struct tm_part_state *ps, struct tm_recent_block *b)
{
	tm_part_add(&ps->free_pages, -(uint64_t)b->pages);
	__atomic_store_n(&ps->recent_pages, ps->recent_pages - b->pages, __ATOMIC_RELAXED);
	b->pages = 0;
}

static void make_free(struct tm_part_state *ps, struct tm_recent_block *b)
{
	uint32_t pages = b->pages;

	take_out(ps, b);
	tm_extent_release(ps, b->page, pages);
}

void tm_recent_flush(struct tm_part_state *ps)
{
	for (struct tm_recent_block *b = ps->recent; b < ps->recent + TM_RECENT_BLOCKS; b++)
		if (b->pages != 0)
			make_free(ps, b);
}

enum keep {
	KEEP_ONLY,  /* the block is kept, and no other memory became free */
	KEEP_FREED, /* another one had to make room */
};

/* [part lock] */
static enum keep keep(struct tm_part_state *ps, uint32_t page, uint32_t pages)
{
	struct tm_recent_block *b = place_of(ps, pages);
	enum keep result = KEEP_ONLY;

	if (b->pages != 0) {
		make_free(ps, b);
		result = KEEP_FREED;
	}
	if (ps->recent_pages + pages > TM_RECENT_PAGES) {
		tm_recent_flush(ps);
		result = KEEP_FREED;
	}
	*b = (struct tm_recent_block){page, pages};
	__atomic_store_n(&ps->recent_pages, ps->recent_pages + pages, __ATOMIC_RELAXED);
	tm_part_add(&ps->free_pages, pages);
	return result;
}

void tm_recent_give(enum tm_part part, void *start, size_t pages)
{
	uint32_t at = tm_zone_page(start);
	enum keep result = KEEP_ONLY;
	struct tm_part_state *ps;
	uint64_t event;

	if (pages > TM_RECENT_BLOCK_PAGES || TM_UNLIKELY(tm_zone_is_tainted(at, pages))) {
		tm_extent_give(part, start, pages);
		return;
	}
	ps = tm_extent_lock_as_is(part);
	if (TM_LIKELY(at >= ps->trusted))
		result = keep(ps, at, (uint32_t)pages);
	event = ps->gives++;
	tm_extent_unlock(ps);
	if (result == KEEP_FREED || event % TM_PURGE_EVENTS_PER_LOOK == 0)
		tm_purge_notice(event);
}

void *tm_recent_take(enum tm_part part, size_t pages, enum tm_fill fill)
{
	uint32_t at = TM_PAGE_NIL;
	struct tm_recent_block *b;
	struct tm_part_state *ps;

	/* read without the lock: a block kept meanwhile is missed, which costs a search */
	if (pages > TM_RECENT_BLOCK_PAGES ||
	    __atomic_load_n(&tm_parts[part].recent_pages, __ATOMIC_RELAXED) < pages)
		return NULL;
	ps = tm_extent_lock_as_is(part);
	b = place_of(ps, pages);
	if (b->pages == pages && tm_swing_again(&ps->swing, pages)) {
		at = b->page;
		take_out(ps, b);
		ps->takes++;
	}
	tm_extent_unlock(ps);
	if (at == TM_PAGE_NIL)
		return NULL;
	/* it was handed out since its unit was last purged, so no page is known to be zero */
	if (fill == TM_FILL_ZERO)
		__builtin_memset(tm_zone_page_addr(at), 0, pages << TM_PAGE_SHIFT);
	return tm_zone_page_addr(at);
}
