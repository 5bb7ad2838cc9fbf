/* SPDX-License-Identifier: MIT */
/*
 * alloc_slow: the slow paths: refills, blocks of whole pages, remote frees, invalid pointers,
 * reallocation, and callers that can hold no heap (emergency memory).
 */
#include <errno.h>
#include <string.h>

#include "shim/alloc.h"
#include "shim/boot.h"
#include "shim/early.h"
#include "shim/foreign.h"
#include "shim/heap/annex.h"
#include "shim/heap/arena.h"
#include "shim/heap/emergency.h"
#include "shim/heap/extent.h"
#include "shim/heap/large.h"
#include "shim/heap/limit.h"
#include "shim/heap/look.h"
#include "shim/heap/purge.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/store.h"
#include "shim/heap/tcache.h"
#include "shim/heap/tier.h"
#include "shim/heap/trim.h"
#include "shim/helper.h"
#include "shim/ledger/samples.h"
#include "shim/medium.h"
#include "shim/os/clock.h"
#include "shim/pooling.h"
#include "shim/routing.h"
#include "shim/thread.h"

/* Requests with an explicit tier get a block of whole pages from this size on. */
#define TIER_FROM_BYTES ((size_t)32 << 10)

struct request {
	size_t size;
	size_t align;
	enum tm_fill fill;
	enum tm_tier tier; /* TM_TIER_ALL: the policies choose */
	struct tm_site site;
	size_t asked; /* the program's size if `size` includes canaries; 0: it is `size` */
};

/* Large blocks freed where no lock may be taken; the next holder of a heap frees them. */
static _Atomic(struct tm_slot *) deferred;

static void defer_large(void *p)
{
	struct tm_slot *slot = p;

	slot->next = atomic_load_explicit(&deferred, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&deferred, &slot->next, slot,
						      memory_order_release, memory_order_relaxed))
		;
}

/* Tells the ledger first: after the free the range may already be reused. */
static int free_large(struct tm_heap *h, void *p, struct tm_granule *g)
{
	struct tm_route_death death = tm_routing_dies(g);
	int rc;

	if (tm_account_store.gone != NULL)
		tm_account_store.gone(g);
	rc = tm_large_free(p, g);
	if (rc == 0)
		tm_routing_died(h, death);
	return rc;
}

static void free_deferred(struct tm_heap *h)
{
	struct tm_slot *slot;

	if (TM_LIKELY(atomic_load_explicit(&deferred, memory_order_relaxed) == NULL))
		return;
	slot = atomic_exchange_explicit(&deferred, NULL, memory_order_acquire);
	while (slot != NULL) {
		struct tm_slot *next = slot->next;

		free_large(h, slot, tm_zone_granule(slot));
		slot = next;
	}
}

/* Out of memory: returns the free spans of all accessible heaps to the parts. */
static size_t collect_spans(struct tm_heap *h)
{
	size_t bytes;

	tm_trim_lock();
	bytes = tm_trim_heap(h) + tm_trim_orphans();
	tm_trim_unlock();
	return bytes + tm_annex_trim(TM_ANNEX_ALL);
}

/*
 * The load phase is a guess: a part of its own for it cost 50 % more memory in programs that go on.
 */
static bool is_sure(struct tm_route_decision d)
{
	return d.authority == TM_AUTHORITY_RULE ||
	       (d.tier == TM_TIER_PERSISTENT &&
		(d.authority == TM_AUTHORITY_LEARNED || d.authority == TM_AUTHORITY_PROFILE));
}

/*
 * Goes on with a look, or begins one if frees had to wait because they came too soon after the last
 * one.
 */
static void look_later(struct tm_heap *h)
{
	if (tm_look_is_on(h) || (h->first_slot_frees != 0 && tm_clock_ms() >= h->next_look_ms))
		tm_trim_after_frees(h);
}

static void *take_pages(struct tm_heap *h, const struct tm_large_request *large)
{
	void *p = tm_large_take_again(large);

	if (p != NULL)
		return p;
	tm_trim_before_block(h, large->part, large->bytes);
	if (tm_limit_is_near(large->bytes)) {
		tm_trim_for_memory(h);
		tm_limit_settle();
	}
	p = tm_large_take(large);
	/* a ceiling refuses once */
	if (p == NULL && tm_tier_has_room(large->tier, large->bytes) && collect_spans(h) != 0)
		p = tm_large_take(large);
	return p;
}

/* A block of whole pages, in the tier of the request or of the policies' choice. */
static void *large_take(struct tm_heap *h, const struct request *r)
{
	struct tm_route_decision d = {.tier = (uint8_t)r->tier, .authority = TM_AUTHORITY_RULE};
	struct tm_large_request large = {r->size, r->align, r->fill, r->tier, TM_PART_LARGE};
	size_t size = r->size;

	free_deferred(h);
	look_later(h);
	if (d.tier == TM_TIER_ALL)
		d = tm_routing_decide(
			h, &(struct tm_routing_request){size, r->align, r->site, r->asked});
	struct tm_pool *pool = tm_pooling_of(size, &d);
	large.tier = (enum tm_tier)d.tier;
	large.part = tm_tier_part(large.tier, is_sure(d) ? TM_TIER_ASKED : TM_TIER_GUESSED);
	void *p = pool == NULL ? NULL : tm_pooling_take(pool, &large);
	if (p == NULL)
		p = take_pages(h, &large);
	if (p == NULL) {
		if (!tm_tier_has_room(large.tier, size))
			tm_samples_event(TM_LEDGER_TIER_CEILING, d.tier, size, 0);
		return NULL;
	}
	if (TM_UNLIKELY(pool != NULL && !pool->fills) && tm_large_pool(tm_zone_granule(p)) == NULL)
		tm_pool_adopt(pool, p);
	tm_routing_born(p, d);
	struct tm_granule *g = tm_zone_granule(p);
	if (tm_account_is_kept) {
		unsigned id = tm_account_id(h, r->site, size);

		tm_account_count(h, id, size);
		tm_account_sample(h, id, size, r->site);
		g->large.account = tm_entry8_make(id, h->birth, h->index);
		if (tm_account_store.block != NULL)
			tm_account_store.block(g);
	}
	return p;
}

static void *slot_take(struct tm_heap *h, unsigned klass, const struct request *r)
{
	if (klass >= TM_SMALL_CLASSES)
		return tm_medium_take(h, &(struct tm_medium_request){r->size, r->align, klass,
								     r->tier, r->site, r->asked});
	return tm_tcache_refill(h, klass, r->size, r->site);
}

static void *serve(struct tm_heap *h, const struct request *r)
{
	unsigned klass = TM_CLASSES;
	void *p;

	if (r->size <= TM_SLOT_MAX && (r->tier == TM_TIER_ALL || r->size < TIER_FROM_BYTES))
		klass = r->align <= 16 ? tm_class_of(r->size)
				       : tm_class_of_aligned(r->size, r->align);
	if (klass >= TM_CLASSES)
		return large_take(h, r);
	p = slot_take(h, klass, r);
	if (p == NULL) {
		bool collected = collect_spans(h) != 0;

		if (tm_purge_rescue(TM_PART_SPAN) || collected)
			p = slot_take(h, klass, r);
		if (p == NULL && r->tier == TM_TIER_ALL && !tm_tier_is_ruled())
			p = tm_tcache_stand_in(h, klass, r->size, r->site);
	}
	if (p != NULL && r->fill == TM_FILL_ZERO)
		memset(p, 0, r->size);
	return p;
}

static void *slow_any(const struct request *r)
{
	void *p = NULL;

	if (r->size <= PTRDIFF_MAX) {
		struct tm_thread_heap held = tm_thread_enter();

		p = held.hold == TM_THREAD_NONE ? tm_emergency_alloc(r->size, r->align)
						: serve(held.heap, r);
		tm_thread_leave(held);
		if (TM_UNLIKELY(p == NULL && held.hold == TM_THREAD_NONE) && tm_thread_desert())
			return slow_any(r);
		if (TM_UNLIKELY(p == NULL) && held.hold != TM_THREAD_NONE)
			tm_tier_tell_refusal(r->asked ? r->asked : r->size);
	}
	if (p == NULL) {
		tm_samples_event(TM_LEDGER_OUT_OF_MEMORY, r->tier, r->size, 0);
		errno = ENOMEM;
	}
	return p;
}

static void *slow(size_t size, size_t align, enum tm_fill fill, struct tm_site site)
{
	return slow_any(&(struct request){size, align, fill, TM_TIER_ALL, site, 0});
}

void *tm_alloc_padded(const struct tm_alloc_padded *r, struct tm_site site)
{
	return slow_any(&(struct request){r->size, r->align, r->zero ? TM_FILL_ZERO : TM_FILL_ANY,
					  TM_TIER_ALL, site, r->asked});
}

void *tm_alloc_tier(size_t size, size_t align, enum tm_tier tier, struct tm_site site)
{
	return slow_any(&(struct request){size, align, TM_FILL_ANY, tier, site, 0});
}

TM_NOINLINE void *tm_alloc_slow(size_t size, struct tm_site site)
{
	return slow(size, 16, TM_FILL_ANY, site);
}

TM_NOINLINE void *tm_alloc_zero_slow(size_t size, struct tm_site site)
{
	void *p = tm_account_is_kept ? tm_alloc_flat(size, site) : NULL;

	return p != NULL ? memset(p, 0, size) : slow(size, 16, TM_FILL_ZERO, site);
}

TM_NOINLINE void *tm_alloc_aligned_slow(size_t align, size_t size, struct tm_site site)
{
	void *p = NULL;

	/* counts the program's size: guarded blocks get their size from it */
	if (tm_account_is_kept && align <= TM_ARENA_LINE)
		p = tm_arena_try(size, site);
	else if (tm_account_is_kept && align > TM_ARENA_LINE && align <= TM_PAGE_BYTES &&
		 size <= TM_SLOT_MAX)
		p = tm_alloc_page_aligned(align, size, site);
	return p != NULL ? p : slow(size, align, TM_FILL_ANY, site);
}

void *tm_alloc_zero_aligned(size_t align, size_t size, struct tm_site site)
{
	return slow(size, align, TM_FILL_ZERO, site);
}

static void give_large(void *p, struct tm_granule *g, struct tm_thread_heap held)
{
	if (!tm_large_starts_at(p, g)) {
		tm_thread_leave(held);
		tm_error_count(TM_ERROR_INTERIOR, p);
		return;
	}
	if (held.hold == TM_THREAD_NONE)
		defer_large(p);
	else if (free_large(held.heap, p, g) != 0)
		tm_error_count(TM_ERROR_DOUBLE, p);
	tm_thread_leave(held);
}

static void give_slot(void *p, struct tm_granule *g, struct tm_thread_heap held)
{
	enum tm_give_result result = tm_tcache_give_any(held.heap, p, g);
	bool big = false;

	if (result == TM_GIVE_TRIM) {
		tm_trim_after_frees(held.heap);
		big = tm_heap_size(held.heap) >= TM_PURGE_KICK_BYTES / TM_GRANULE_BYTES;
	}
	tm_thread_leave(held);
	switch (result) {
	case TM_GIVE_DONE: break;
	case TM_GIVE_TRIM:
		if (big)
			tm_helper_kick();
		break;
	case TM_GIVE_INTERIOR: tm_error_count(TM_ERROR_INTERIOR, p); break;
	case TM_GIVE_DOUBLE: tm_error_count(TM_ERROR_DOUBLE, p); break;
	}
}

/*
 * free of an address in the zone whose granule has no owner: the inside of a large block, the start
 * of a freed one, or no block at all. Slow: the block's head may be thousands of granules back.
 */
static void free_unowned(void *p, struct tm_granule *g)
{
	uint32_t page = tm_zone_page(p);

	if (tm_zone_page_addr(page) == p && g->large.page == page && g->kind == TM_SPAN_NONE &&
	    g->large.pages != 0) {
		tm_error_count(TM_ERROR_DOUBLE, p);
		return;
	}
	for (struct tm_granule *head = g; head-- > tm_zone.granules;) {
		uintptr_t owner = tm_granule_owner(head);

		if (owner == TM_OWNER_NONE)
			continue;
		if (owner == TM_OWNER_LARGE && head->large.page + head->large.pages > page) {
			tm_error_count(TM_ERROR_INTERIOR, p);
			return;
		}
		break;
	}
	tm_foreign_free(p);
}

TM_NOINLINE void tm_alloc_free_slow(void *p, struct tm_granule *g)
{
	uintptr_t owner = tm_granule_owner(g);

	int saved = errno;
	if (owner == TM_OWNER_NONE) {
		free_unowned(p, g);
		errno = saved;
		return;
	}
	struct tm_thread_heap held = tm_thread_enter();
	if (owner == TM_OWNER_LARGE)
		give_large(p, g, held);
	else
		give_slot(p, g, held);
	errno = saved;
}

/* Requested bytes; 0: no block starts at p. Without the account, of small blocks the class size. */
static size_t requested_bytes(const void *p, struct tm_granule *g, size_t size)
{
	uintptr_t owner = tm_granule_owner(g);

	if (owner == TM_OWNER_LARGE)
		return tm_large_starts_at(p, g) ? g->large.requested : 0;
	if (owner == TM_OWNER_NONE)
		return 0;
	struct tm_granule *head = tm_span_head(g);
	int32_t index = tm_span_index(head, p);
	if (index < 0 || (head->side != NULL && tm_span_entry_is_free(head, (uint32_t)index)))
		return 0;
	if (!tm_account_is_kept)
		return size <= TM_SLOT_MAX && tm_class_of(size) == head->klass
			       ? size
			       : tm_class_bytes(head->klass);
	void *entry = tm_span_entry(head, (uint32_t)index);
	if (head->kind == TM_SPAN_SMALL) {
		uint16_t id = ((struct tm_entry3 *)entry)->id;

		/* inherited from a parent whose side entries were in its ledger */
		return id == 0 ? 0 : tm_entry3_requested(tm_class_bytes(head->klass), id);
	}
	return *(tm_entry8 *)entry >> 24;
}

char *tm_alloc_block_of(const void *p, size_t *ret_bytes)
{
	struct tm_granule *g = tm_zone_granule(p);
	uint32_t page = tm_zone_page(p);
	uintptr_t owner = tm_granule_owner(g);
	char *base;

	/*
	 * the head of a large block may be thousands of granules back, or begin behind p in this
	 * one
	 */
	while (g > tm_zone.granules &&
	       (owner == TM_OWNER_NONE || (owner == TM_OWNER_LARGE && g->large.page > page)))
		owner = tm_granule_owner(--g);
	if (owner == TM_OWNER_LARGE) {
		base = tm_zone_page_addr(g->large.page);
		*ret_bytes = g->large.requested;
		return g->large.page <= page && page - g->large.page < g->large.pages ? base : NULL;
	}
	if (owner == TM_OWNER_NONE || g != tm_zone_granule(p))
		return NULL;
	struct tm_granule *head = tm_span_head(g);
	size_t slot_bytes = tm_class_bytes(head->klass);
	base = tm_span_base(head);
	base += (size_t)((const char *)p - base) / slot_bytes * slot_bytes;
	while (tm_arena_is(head) && base > tm_span_base(head) &&
	       tm_arena_bytes(head, (uint32_t)((size_t)(base - tm_span_base(head)) / slot_bytes)) ==
		       0)
		base -= slot_bytes;
	*ret_bytes = requested_bytes(base, g, 0);
	int32_t index = tm_span_index(head, base);
	/* inherited, or of row 0: its entry tells only that it is in use */
	if (*ret_bytes == 0 && head->side != NULL && index >= 0 &&
	    !tm_span_entry_is_free(head, (uint32_t)index))
		*ret_bytes = tm_span_slot_bytes(head, (uint32_t)index);
	return *ret_bytes != 0 ? base : NULL;
}

TM_NOINLINE void tm_alloc_check_size(const void *p, size_t size)
{
	if (size == 0) /* counts as one byte, see account.h */
		size = 1;
	tm_thread_arrive();
	size_t requested = requested_bytes(p, tm_zone_granule(p), size);
	/* longer where a larger class stands in: of small slots the size is only known by class */
	if (requested != 0 && requested != size && !(requested > size && tm_zone_is_scanty()))
		tm_error_count(TM_ERROR_SIZE_MISMATCH, p);
}

TM_NOINLINE void tm_alloc_free_outside(void *p)
{
	if (p == NULL)
		return;
	int saved = errno;
	if (tm_emergency_owns(p)) {
		if (!tm_emergency_free(p))
			tm_error_count(TM_ERROR_DOUBLE, p);
	} else {
		tm_foreign_free(p);
	}
	errno = saved;
}

static void *move(void *p, size_t old_bytes, size_t size, struct tm_site site)
{
	int saved = errno;
	void *fresh = size > TM_SLOT_MAX && size > old_bytes ? slow(size, 16, TM_FILL_GROWN, site)
							     : tm_alloc_any(size, site);

	if (fresh == NULL) { /* what shrinks can stay where it is */
		errno = size <= old_bytes ? saved : errno;
		return size <= old_bytes ? p : NULL;
	}
	memcpy(fresh, p, old_bytes < size ? old_bytes : size);
	tm_root.ops.free(p);
	return fresh;
}

static void *resize_slot(void *p, struct tm_granule *g, size_t size, struct tm_site site)
{
	struct tm_granule *head = tm_span_head(g);
	int32_t index = tm_span_index(head, p);

	tm_thread_arrive();
	tm_thread_settle(g);
	if (index < 0 || (head->side != NULL && tm_span_entry_is_free(head, (uint32_t)index))) {
		tm_error_count(index < 0 ? TM_ERROR_INTERIOR : TM_ERROR_DOUBLE, p);
		errno = ENOMEM;
		return NULL;
	}
	size_t bytes = tm_span_slot_bytes(head, (uint32_t)index);
	bool stays = tm_arena_is(head) ? size > TM_SMALL_MAX && size <= TM_ARENA_MAX &&
						 tm_arena_room(size) == bytes
				       : size <= TM_SLOT_MAX && tm_class_of(size) == head->klass;
	if (!stays && tm_zone_is_scanty() && !tm_arena_is(head)) /* another class stands in */
		stays = size <= bytes && size > bytes / 2;
	if (!stays)
		return move(p, bytes, size, site);
	struct tm_thread_heap held = tm_thread_enter();
	if (held.heap != NULL)
		tm_tcache_resized(held.heap, p, g, size, site);
	tm_thread_leave(held);
	return p;
}

static void *resize_large(void *p, struct tm_granule *g, size_t size, struct tm_site site)
{
	if (!tm_large_starts_at(p, g)) {
		tm_error_count(TM_ERROR_INTERIOR, p);
		errno = ENOMEM;
		return NULL;
	}
	if (size <= TM_SLOT_MAX)
		return move(p, tm_large_usable(g), size, site);
	struct tm_thread_heap held = tm_thread_enter();
	if (held.hold == TM_THREAD_NONE) {
		tm_thread_leave(held);
		return move(p, tm_large_usable(g), size, site);
	}
	if (tm_account_store.gone != NULL)
		tm_account_store.gone(g);
	struct tm_route_decision birth = {.site = g->large.site, .epoch = g->large.epoch};
	void *fresh = tm_large_resize(p, g, size);
	if (fresh == NULL && tm_account_store.block != NULL)
		tm_account_store.block(g);
	if (fresh != NULL) {
		struct tm_granule *now = tm_zone_granule(fresh);

		tm_routing_born(fresh, birth);
		if (tm_account_is_kept) {
			unsigned id = tm_account_id(held.heap, site, size);

			tm_account_count(held.heap, id, size);
			now->large.account = tm_entry8_make(id, held.heap->birth, held.heap->index);
			if (tm_account_store.block != NULL)
				tm_account_store.block(now);
		}
	}
	tm_thread_leave(held);
	if (fresh == NULL) {
		tm_tier_tell_refusal(size);
		errno = ENOMEM;
	}
	return fresh;
}

TM_NOINLINE void *tm_alloc_realloc_slow(void *p, size_t size, struct tm_site site)
{
	if (p == NULL)
		return tm_alloc_any(size, site);
	if (size == 0) {
		tm_root.ops.free(p);
		return NULL;
	}
	if (size > PTRDIFF_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	if (tm_zone_contains(p)) {
		struct tm_granule *g = tm_zone_granule(p);
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE)
			return resize_large(p, g, size, site);
		if (owner != TM_OWNER_NONE)
			return resize_slot(p, g, size, site);
	}
	if (tm_emergency_owns(p))
		return move(p, tm_emergency_bytes(p), size, site);
	return tm_foreign_realloc(p, size);
}

size_t tm_alloc_usable(void *p)
{
	if (p == NULL)
		return 0;
	if (tm_zone_contains(p)) {
		struct tm_granule *g = tm_zone_granule(p);
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE)
			return tm_large_starts_at(p, g) ? tm_large_usable(g) : 0;
		if (owner != TM_OWNER_NONE)
			return tm_tcache_usable(p, g);
	}
	if (tm_emergency_owns(p))
		return tm_emergency_bytes(p);
	return tm_foreign_usable(p);
}

/* tier: TM_TIER_ALL: all. */
size_t tm_alloc_trim_tier(enum tm_tier tier)
{
	size_t bytes = 0;
	int saved = errno;
	struct tm_thread_heap held = tm_thread_enter();

	if (held.hold != TM_THREAD_NONE) {
		if (tier == TM_TIER_ALL || tier == TM_TIER_SESSION) {
			tm_trim_lock();
			bytes += tm_trim_heap(held.heap);
			bytes += tm_trim_orphans();
			tm_trim_unlock();
		}
		tm_remote_flush(held.heap);
		bytes += tm_annex_trim(TM_ANNEX_CHANGED);
		bytes += tm_purge_tier(tier);
	}
	tm_thread_leave(held);
	errno = saved;
	return bytes;
}

size_t tm_alloc_trim(void)
{
	return tm_alloc_trim_tier(TM_TIER_ALL);
}
