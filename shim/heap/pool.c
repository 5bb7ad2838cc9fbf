/* SPDX-License-Identifier: MIT */
#include "shim/heap/pool.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/heap/extent.h"
#include "shim/heap/huge.h"
#include "shim/heap/limit.h"
#include "shim/heap/meta.h"
#include "shim/heap/part.h"
#include "shim/heap/pool_fill.h"
#include "shim/heap/purge.h"
#include "shim/heap/tier.h"
#include "shim/os/proc.h"

struct tm_pools tm_pools;
static struct tm_lock making = TM_LOCK_INIT(TM_RANK_POOL);
static uint64_t memory; /* [const after boot] of the machine, bytes; 0: not known */

/* --- making ----------------------------------------------------------------------------------- */

static void enter(unsigned number, const struct tm_pool *pool)
{
	size_t at = tm_hash_slot(tm_pool_key(pool->bytes, pool->rule), TM_POOL_INDEX_BITS);

	while (atomic_load_explicit(&tm_pools.index[at], memory_order_relaxed) != 0)
		at = (at + 1) % TM_ARRAY_LEN(tm_pools.index);
	/* release: pairs with tm_pool_find's acquire */
	atomic_store_explicit(&tm_pools.index[at], (uint8_t)(number + 1), memory_order_release);
}

/* What a pool holds: a slot per block, or spans for sizes up to 64 KiB. */
struct shape {
	uint64_t count, pages;
	unsigned klass; /* 0: blocks */
};

static struct shape shape_of(const struct tm_pool_wish *wish)
{
	struct shape s = {wish->count, (wish->bytes + TM_PAGE_BYTES - 1) >> TM_PAGE_SHIFT, 0};

	if (wish->bytes <= TM_GRANULE_BYTES) {
		s.klass = tm_class_of(tm_bits_max(wish->bytes, 1));
		s.count = (wish->count - 1) / tm_class_shape[s.klass].slots + 1;
		s.pages = tm_class_shape[s.klass].granules * TM_GRANULE_PAGES;
	}
	return s;
}

static int make(const struct tm_pool_wish *wish)
{
	uint32_t number = atomic_load_explicit(&tm_pools.count, memory_order_relaxed);
	struct tm_pool *pool = &tm_pools.pool[number];
	struct shape shape = shape_of(wish);
	uint64_t bytes = wish->fills ? (shape.pages << TM_PAGE_SHIFT) * shape.count : 0;
	uint32_t *slot;

	if (shape.klass != 0 ? tm_pool_of_class(shape.klass) != NULL
			     : tm_pool_find((size_t)wish->bytes, wish->rule) != NULL)
		return -EEXIST;
	if (number == TM_POOLS_MAX)
		return -ENOSPC;
	/* making more resident than the machine has would kill this process or another */
	if (memory != 0 && bytes > memory - tm_pools.wished)
		return -EFBIG;
	slot = tm_meta_alloc((size_t)shape.count * sizeof(*slot), 16);
	if (slot == NULL)
		return -ENOMEM;
	tm_pools.wished += bytes;
	pool->lock.rank = TM_RANK_POOL;
	tm_lock_register(&pool->lock);
	pool->rule = (uint16_t)wish->rule;
	pool->tier = (uint8_t)wish->tier;
	pool->part = (uint8_t)(shape.klass != 0 ? TM_PART_SPAN : wish->part);
	pool->count = (uint32_t)shape.count;
	pool->bytes = wish->bytes;
	pool->slot_pages = (uint32_t)shape.pages;
	pool->per_span = shape.klass != 0 ? tm_class_shape[shape.klass].slots : 0;
	pool->fills = wish->fills;
	pool->slot = slot;
	atomic_store_explicit(&tm_pools.count, number + 1, memory_order_relaxed);
	if (shape.klass != 0)
		tm_pools.of_class[shape.klass] = (uint8_t)(number + 1);
	else
		enter(number, pool);
	return 0;
}

int tm_pool_make(const struct tm_pool_wish *wish)
{
	uint64_t bytes;
	int rc;

	if ((wish->bytes <= TM_GRANULE_BYTES && wish->rule != 0) || wish->bytes > tm_zone.limit ||
	    wish->count == 0 || wish->count > UINT32_MAX || wish->rule > UINT16_MAX ||
	    __builtin_mul_overflow(wish->bytes + TM_PAGE_BYTES - 1, wish->count, &bytes) ||
	    bytes > tm_zone.limit / 2)
		return -EINVAL;
	/* if the lock was stolen, the pool that was being made is not counted yet */
	(void)tm_lock_acquire(&making);
	rc = make(wish);
	tm_lock_release(&making);
	return rc;
}

/* --- the lock --------------------------------------------------------------------------------- */

static void push(struct tm_pool *pool, uint32_t page)
{
	pool->slot[pool->free++] = page;
}

static bool is_out(const struct tm_pool *pool, uint32_t page)
{
	const struct tm_granule *g = tm_zone_granule(tm_zone_page_addr(page));

	if (pool->per_span != 0)
		return tm_granule_owner(g) != TM_OWNER_NONE;
	return tm_granule_owner(g) == TM_OWNER_LARGE && g->large.page == page &&
	       tm_large_pool(g) == pool;
}

/* After a raw fork that lost the lock's holder: find by the granules which slots are in use. */
static TM_COLD void rebuild(struct tm_pool *pool)
{
	pool->owned = pool->free = pool->in_use = pool->waiting = 0;
	pool->left = 0;
	if (!pool->fills) {
		/* free blocks that were kept are lost to this child */
		for (size_t i = 0; i < tm_zone.len >> TM_GRANULE_SHIFT; i++)
			pool->in_use += tm_granule_owner(&tm_zone.granules[i]) == TM_OWNER_LARGE &&
					tm_large_pool(&tm_zone.granules[i]) == pool;
		pool->owned = pool->in_use;
		return;
	}
	for (uint32_t c = 0; c < pool->chunks; c++) {
		pool->waiting += pool->chunk[c].slots - pool->chunk[c].ready;
		pool->left +=
			(uint64_t)pool->chunk[c].slots * pool->slot_pages - pool->chunk[c].pages;
		for (uint32_t i = pool->chunk[c].ready; i-- > 0;) {
			uint32_t page = pool->chunk[c].page + i * pool->slot_pages;

			pool->owned++;
			if (is_out(pool, page))
				pool->in_use++;
			else
				push(pool, page);
		}
	}
}

void tm_pool_lock(struct tm_pool *pool)
{
	if (TM_UNLIKELY(tm_lock_acquire(&pool->lock) == TM_LOCK_STOLEN))
		rebuild(pool);
}

/* --- taking and giving ------------------------------------------------------------------------ */

static void note_use(struct tm_pool *pool)
{
	pool->in_use++;
	if (pool->high_water < pool->in_use)
		pool->high_water = pool->in_use;
}

/* [lock] Take the top slot if it is aligned as requested. */
static void *pop(struct tm_pool *pool, const struct tm_large_request *r)
{
	void *p = tm_zone_page_addr(pool->slot[pool->free - 1]);
	/* kept blocks may be of any part, as a rule need not choose one */
	enum tm_part part = (enum tm_part)tm_zone_unit(tm_zone_page(p))->part;

	if (r->align > TM_PAGE_BYTES && ((uintptr_t)p & (r->align - 1)) != 0)
		return NULL;
	pool->free--;
	note_use(pool);
	pool->hits++;
	tm_large_publish(p, r->bytes, (struct tm_large_home){r->tier, part, pool});
	return p;
}

/*
 * [lock] Put a slot back, which has no owner now. True: the caller gives its pages back to the
 * part.
 */
static bool put_back(struct tm_pool *pool, uint32_t page)
{
	uint32_t pages = pool->slot_pages;

	pool->in_use--;
	if (!pool->fills && pool->free >= pool->count) {
		pool->owned--;
		return true;
	}
	/* undo what the program did to these pages */
	if (TM_UNLIKELY(tm_zone_is_tainted(page, pages))) {
		if (!pool->fills) {
			pool->owned--;
			return true;
		}
		if (tm_zone_cleanse(page, pages) == 0)
			tm_pool_fill_resident(tm_zone_page_addr(page),
					      (size_t)pages << TM_PAGE_SHIFT);
	}
	push(pool, page);
	return false;
}

static void fill_when_due(struct tm_pool *pool)
{
	if (TM_UNLIKELY(pool->free == 0) && pool->fills && pool->waiting == 0 &&
	    pool->owned < pool->count && pool->misses >= pool->next_fill)
		tm_pool_fill_extend(pool);
	if (TM_UNLIKELY(pool->left != 0) && pool->by_requests)
		tm_pool_fill_some(pool);
	if (TM_UNLIKELY(pool->free == 0) && pool->waiting != 0)
		tm_pool_fill_overtake(pool);
}

/* Without the lock: have the helper fill, if anything is left. */
static void call_helper(struct tm_pool *pool)
{
	if (TM_UNLIKELY(__atomic_load_n(&pool->left, __ATOMIC_RELAXED) != 0))
		__atomic_store_n(&pool->by_requests, !tm_purge_call_helper(), __ATOMIC_RELAXED);
}

void *tm_pool_take_span(struct tm_pool *pool)
{
	void *p = NULL;

	tm_pool_lock(pool);
	fill_when_due(pool);
	if (pool->free != 0) {
		p = tm_zone_page_addr(pool->slot[--pool->free]);
		note_use(pool);
		pool->hits++;
	} else if (pool->owned == pool->count) {
		pool->exhausted++;
	} else {
		pool->misses++;
	}
	tm_lock_release(&pool->lock);
	call_helper(pool);
	return p;
}

bool tm_pool_give_span(struct tm_pool *pool, void *base)
{
	uint32_t page = tm_zone_page(base);
	bool mine = false;

	tm_pool_lock(pool);
	for (uint32_t c = 0; c < pool->chunks && !mine; c++)
		mine = page - pool->chunk[c].page < pool->chunk[c].slots * pool->slot_pages;
	if (mine)
		(void)put_back(pool, page);
	tm_lock_release(&pool->lock);
	return mine;
}

void *tm_pool_take(struct tm_pool *pool, const struct tm_large_request *r,
		   enum tm_pool_answer *ret_answer)
{
	void *p = NULL;

	*ret_answer = TM_POOL_MISS;
	/* the ordinary path refuses the request and counts that */
	if (!tm_tier_has_room(r->tier, r->bytes))
		return NULL;
	tm_pool_lock(pool);
	fill_when_due(pool);
	if (TM_LIKELY(pool->free != 0))
		p = pop(pool, r);
	if (TM_UNLIKELY(p == NULL)) {
		if (pool->free == 0 && pool->fills && pool->owned == pool->count) {
			pool->exhausted++;
			*ret_answer = TM_POOL_EXHAUSTED;
		} else {
			pool->misses++;
		}
	}
	tm_lock_release(&pool->lock);
	call_helper(pool);
	if (p == NULL)
		return NULL;
	*ret_answer = TM_POOL_HIT;
	tm_tier_add_block(r->tier, r->bytes);
	if (r->fill == TM_FILL_ZERO)
		__builtin_memset(p, 0, r->bytes);
	return p;
}

void tm_pool_miss(struct tm_pool *pool)
{
	tm_pool_lock(pool);
	pool->misses++;
	tm_lock_release(&pool->lock);
}

void tm_pool_adopt(struct tm_pool *pool, void *p)
{
	struct tm_granule *g = tm_zone_granule(p);

	if (g->large.part == TM_PART_GROW || g->large.pages != pool->slot_pages)
		return;
	tm_pool_lock(pool);
	g->large.pool = pool;
	pool->owned++;
	note_use(pool);
	tm_lock_release(&pool->lock);
}

int tm_pool_give(void *p, struct tm_granule *g)
{
	struct tm_pool *pool = tm_large_pool(g);
	size_t requested;
	enum tm_part part;
	enum tm_tier tier;
	bool leaves;

	if (pool == NULL)
		return -EINVAL;
	tm_pool_lock(pool);
	/* a second free of the block is detected here, under the lock */
	if (!tm_large_starts_at(p, g) || tm_large_pool(g) != pool) {
		tm_lock_release(&pool->lock);
		return -EINVAL;
	}
	requested = g->large.requested;
	part = (enum tm_part)g->large.part;
	tier = (enum tm_tier)g->tier;
	__atomic_store_n(&g->owner, TM_OWNER_NONE, __ATOMIC_RELAXED);
	leaves = put_back(pool, tm_zone_page(p));
	tm_lock_release(&pool->lock);
	tm_tier_sub_block(tier, requested);
	if (leaves)
		tm_extent_give(part, p, pool->slot_pages);
	return 0;
}

/* --- figures ---------------------------------------------------------------------------------- */

size_t tm_pool_idle_bytes(enum tm_part part)
{
	uint32_t count = atomic_load_explicit(&tm_pools.count, memory_order_relaxed);
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct tm_pool *pool = &tm_pools.pool[i];

		if (pool->part == part)
			bytes += ((size_t)__atomic_load_n(&pool->free, __ATOMIC_RELAXED) +
				  __atomic_load_n(&pool->waiting, __ATOMIC_RELAXED)) *
					 pool->slot_pages
				 << TM_PAGE_SHIFT;
	}
	return bytes;
}

bool tm_pool_stats(unsigned number, struct tm_pool_stats *ret_stats)
{
	const struct tm_pool *pool = &tm_pools.pool[number];
	uint64_t each = tm_bits_max(pool->per_span, 1);

	if (number >= atomic_load_explicit(&tm_pools.count, memory_order_relaxed))
		return false;
	*ret_stats = (struct tm_pool_stats){
		.slot_bytes = pool->bytes,
		.count = pool->count * each,
		.owned = __atomic_load_n(&pool->owned, __ATOMIC_RELAXED) * each,
		.hits = __atomic_load_n(&pool->hits, __ATOMIC_RELAXED) * each,
		.misses = __atomic_load_n(&pool->misses, __ATOMIC_RELAXED) * each,
		.exhausted = __atomic_load_n(&pool->exhausted, __ATOMIC_RELAXED) * each,
		.high_water = __atomic_load_n(&pool->high_water, __ATOMIC_RELAXED) * each,
		.in_use = __atomic_load_n(&pool->in_use, __ATOMIC_RELAXED) * each,
		.tier = (enum tm_tier)pool->tier,
	};
	return true;
}

TM_AT_START_CODE void tm_pool_init(uint64_t memory_bytes)
{
	memory = memory_bytes;
	tm_lock_register(&making);
}

void tm_pool_expect_rules(void)
{
	for (uint32_t i = atomic_load(&tm_pools.count); i < TM_POOLS_MAX; i++) {
		tm_pools.pool[i].lock.rank = TM_RANK_POOL;
		tm_lock_register(&tm_pools.pool[i].lock);
	}
}

static const char *check_one(struct tm_pool *pool)
{
	for (uint32_t i = 0; i < pool->free; i++) {
		if (is_out(pool, pool->slot[i]))
			return "pool: free slots have no owner";
		for (uint32_t k = 0; k < i; k++)
			if (pool->slot[k] == pool->slot[i])
				return "pool: no slot is twice on the stack";
	}
	if (pool->free + pool->in_use != pool->owned)
		return "pool: slots are free or in use";
	return pool->fills && pool->owned + pool->waiting > pool->count
		       ? "pool: no more slots than asked for"
		       : NULL;
}

const char *tm_pool_check(void)
{
	const char *broken = NULL;

	for (uint32_t i = 0; !broken && i < atomic_load(&tm_pools.count); i++) {
		tm_pool_lock(&tm_pools.pool[i]);
		broken = check_one(&tm_pools.pool[i]);
		tm_lock_release(&tm_pools.pool[i].lock);
	}
	return broken;
}

void tm_pool_clear(void)
{
	for (uint32_t i = 0; i < atomic_load(&tm_pools.count); i++) {
		struct tm_pool *pool = &tm_pools.pool[i];
		struct tm_lock lock = pool->lock;

		tm_meta_free(pool->slot, pool->count * sizeof(*pool->slot), 16);
		*pool = (struct tm_pool){.lock = lock};
	}
	for (size_t i = 0; i < TM_ARRAY_LEN(tm_pools.index); i++)
		atomic_store(&tm_pools.index[i], 0);
	atomic_store(&tm_pools.count, 0);
	__builtin_memset(tm_pools.of_class, 0, sizeof(tm_pools.of_class));
	tm_pools.wished = 0;
}
