/* SPDX-License-Identifier: MIT */
#include "shim/heap/pool_fill.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/heap/extent.h"
#include "shim/heap/huge.h"
#include "shim/heap/limit.h"
#include "shim/heap/part.h"
#include "shim/os/proc.h"

/* Share of the machine's memory that pools leave to others. */
#define SPARED_SHARE 8u

/* A request makes that much resident where there is no helper. */
#define REQUEST_BYTES ((size_t)512 << 10)

/* --- memory ----------------------------------------------------------------------------------- */

/* Make memory resident by MADV_POPULATE_WRITE. False: the kernel has no such call. */
static bool populate(char *at, size_t bytes)
{
	int err = tm_limit_is_near(bytes) ? 0
		  : tm_zone.os->populate  ? tm_zone.os->populate(at, bytes)
					  : -EINVAL;

	return err != -EINVAL && err != -ENOSYS;
}

void tm_pool_fill_resident(char *at, size_t bytes)
{
	if (!populate(at, bytes))
		for (size_t i = 0; i < bytes; i += TM_PAGE_BYTES)
			*(volatile char *)(at + i) = 0;
}

/* Advise huge pages for whole untouched units, and for the last one if slots fill most of it. */
static void advise(const struct tm_pool *pool, uint32_t page, size_t pages)
{
	size_t units = (pages + TM_UNIT_PAGES / 4) / TM_UNIT_PAGES;
	struct tm_part_state *ps;

	if (page % TM_UNIT_PAGES != 0 || units == 0 || tm_huge_allowed() != TM_HUGE_ON_THP)
		return;
	ps = tm_extent_lock((enum tm_part)pool->part);
	tm_huge_advise(page, units);
	tm_extent_unlock(ps);
}

static bool add_chunk(struct tm_pool *pool, uint32_t slots)
{
	size_t pages = (size_t)slots * pool->slot_pages, taken = pages;
	struct tm_pool_chunk *chunk = &pool->chunk[pool->chunks];
	char *at;

	/* whole units, so that no other blocks share a huge page with the slots */
	if (pages >= TM_UNIT_PAGES)
		taken = tm_bits_align_up(pages, TM_UNIT_PAGES);
	at = tm_extent_take((enum tm_part)pool->part, taken,
			    taken > pages || pages >= TM_UNIT_PAGES ? TM_UNIT_PAGES
			    : pool->per_span != 0                   ? TM_GRANULE_PAGES
								    : 1);
	if (at == NULL)
		return false;
	*chunk = (struct tm_pool_chunk){tm_zone_page(at), slots, 0, 0};
	advise(pool, chunk->page, pages);
	pool->waiting += slots;
	pool->left += pages;
	/* release: rebuild, after a raw fork, must see only complete chunks */
	__atomic_store_n(&pool->chunks, (uint8_t)(pool->chunks + 1), __ATOMIC_RELEASE);
	return true;
}

/* Slots that the machine has memory for: filling its memory up would make it kill processes. */
static uint32_t room_of(const struct tm_pool *pool)
{
	uint64_t available = tm_proc_available_bytes();
	uint64_t spared = tm_proc_memory_bytes() / SPARED_SHARE;

	if (available == UINT64_MAX)
		return UINT32_MAX;
	available = available > spared ? available - spared : 0;
	return (uint32_t)tm_bits_min(available / ((uint64_t)pool->slot_pages << TM_PAGE_SHIFT),
				     UINT32_MAX);
}

/* Halves are tried where the whole fails. */
void tm_pool_fill_extend(struct tm_pool *pool)
{
	uint32_t left = (uint32_t)tm_bits_min(pool->count - pool->owned, room_of(pool));
	uint32_t slots = left;

	while (pool->chunks < TM_POOL_CHUNKS && slots != 0) {
		if (add_chunk(pool, slots))
			left -= slots;
		else
			slots /= 2;
		slots = (uint32_t)tm_bits_min(slots, left);
	}
	/* tried again later, since memory may become free, but ever more rarely */
	pool->next_fill = (uint32_t)tm_bits_min(pool->misses * 2 + 1, UINT32_MAX);
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* A piece of a chunk that is to be made resident. */
struct piece {
	struct tm_pool_chunk *chunk;
	uint32_t first, end; /* pages of the chunk */
};

/* [lock] At most so many pages, and none beyond their unit. False: all are resident. */
static bool next_piece(struct tm_pool *pool, uint32_t pages_max, struct piece *ret_piece)
{
	for (struct tm_pool_chunk *c = pool->chunk; c < pool->chunk + pool->chunks; c++) {
		uint32_t all = c->slots * pool->slot_pages;
		uint32_t unit = (uint32_t)TM_UNIT_PAGES - (c->page + c->pages) % TM_UNIT_PAGES;

		if (c->pages == all)
			continue;
		ret_piece->chunk = c;
		ret_piece->first = c->pages;
		ret_piece->end =
			(uint32_t)tm_bits_min(all, c->pages + tm_bits_min(unit, pages_max));
		return true;
	}
	return false;
}

static uint32_t page_of(const struct piece *piece)
{
	return piece->chunk->page + piece->first;
}

static size_t piece_bytes(const struct piece *piece)
{
	return (size_t)(piece->end - piece->first) << TM_PAGE_SHIFT;
}

/* A block that was handed out keeps its contents, but not what else the program did to its pages. */
static bool populate_piece(const struct piece *piece)
{
	if (tm_zone_is_tainted(page_of(piece), piece->end - piece->first))
		return true;
	return populate(tm_zone_page_addr(page_of(piece)), piece_bytes(piece));
}

/* [lock] The same by hand, for what was not handed out. */
static void touch_piece(const struct tm_pool *pool, const struct piece *piece)
{
	uint32_t first =
		(uint32_t)tm_bits_max(piece->first, piece->chunk->ready * pool->slot_pages);

	for (; first < piece->end; first++)
		*(volatile char *)tm_zone_page_addr(piece->chunk->page + first) = 0;
}

/*
 * [lock] This many slots of the chunk are ready. They go below those that are free, so that the lowest
 * is handed out first.
 */
static void make_ready(struct tm_pool *pool, struct tm_pool_chunk *chunk, uint32_t ready)
{
	uint32_t more = ready > chunk->ready ? ready - chunk->ready : 0;

	for (uint32_t i = pool->free; more != 0 && i-- > 0;)
		pool->slot[i + more] = pool->slot[i];
	for (uint32_t i = 0; i < more; i++) {
		uint32_t page = chunk->page + (ready - 1 - i) * pool->slot_pages;

		/* also makes its entry of the page map resident */
		__atomic_store_n(&tm_zone_granule(tm_zone_page_addr(page))->owner, TM_OWNER_NONE,
				 __ATOMIC_RELAXED);
		pool->slot[i] = page;
	}
	pool->free += more;
	pool->owned += more;
	pool->waiting -= more;
	chunk->ready += more;
}

/* [lock] The piece is resident, by whomever. */
static void note_piece(struct tm_pool *pool, const struct piece *piece)
{
	if (piece->end > piece->chunk->pages) {
		pool->left -= piece->end - piece->chunk->pages;
		piece->chunk->pages = piece->end;
	}
	make_ready(pool, piece->chunk, piece->chunk->pages / pool->slot_pages);
}

void tm_pool_fill_some(struct tm_pool *pool)
{
	struct piece piece;

	if (!next_piece(pool, REQUEST_BYTES >> TM_PAGE_SHIFT, &piece))
		return;
	if (!populate_piece(&piece))
		touch_piece(pool, &piece);
	note_piece(pool, &piece);
}

void tm_pool_fill_overtake(struct tm_pool *pool)
{
	for (struct tm_pool_chunk *c = pool->chunk; c < pool->chunk + pool->chunks; c++)
		if (c->ready < c->slots) {
			make_ready(pool, c, c->ready + 1);
			return;
		}
}

bool tm_pool_fill_piece(void)
{
	uint32_t count = atomic_load_explicit(&tm_pools.count, memory_order_acquire);

	for (struct tm_pool *pool = tm_pools.pool; pool < tm_pools.pool + count; pool++) {
		struct piece piece;
		bool found;

		if (__atomic_load_n(&pool->left, __ATOMIC_RELAXED) == 0)
			continue;
		tm_pool_lock(pool);
		found = next_piece(pool, TM_UNIT_PAGES, &piece);
		tm_lock_release(&pool->lock);
		if (!found)
			continue;
		found = populate_piece(&piece);
		tm_pool_lock(pool);
		if (!found)
			touch_piece(pool, &piece);
		note_piece(pool, &piece);
		tm_lock_release(&pool->lock);
		return true;
	}
	return false;
}
