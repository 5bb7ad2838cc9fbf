/* SPDX-License-Identifier: MIT */
#include "shim/heap/span.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/heap/account.h"
#include "shim/heap/annex.h"
#include "shim/heap/arena.h"
#include "shim/heap/extent.h"
#include "shim/heap/limit.h"
#include "shim/heap/look.h"
#include "shim/heap/pool.h"
#include "shim/heap/remote.h"
#include "shim/heap/store.h"
#include "shim/heap/tier.h"
#include "shim/heap/trim.h"
#include "shim/os/clock.h"
#include "shim/os/mem.h"

/*
 * Before a heap that has grown by an eighth since the last look takes another span, its wholly free
 * spans go back for use by any class: programs work in phases, each with other sizes.
 */
#define LOOK_SPANS_MIN 32u
#define LOOK_GROWTH 8u

/* Where little may be mapped, a class without a span of its own uses slots up to twice as long. */
#define STAND_IN_FACTOR 2u

bool tm_span_keeps_entries = true;

static size_t entry_bytes(unsigned klass)
{
	return klass < TM_SMALL_CLASSES ? 3 : 8;
}

/* One entry more than slots, for the rest of the span behind the last slot: it always says free. */
static size_t side_bytes(unsigned klass)
{
	return (tm_class_shape[klass].slots + (size_t)1) * entry_bytes(klass);
}

/* Update `first` after carving, and mark granules of SOLO slots from the first carved one on. */
static void set_first(struct tm_granule *head)
{
	uint32_t first = tm_span_first(head);

	for (unsigned i = 0; i < head->granules; i++) {
		head[i].first = (uint16_t)(first == 0 ? 1 : first);
		if (head->klass == TM_SOLO_CLASS && i > 0 && i >= first)
			__atomic_store_n(&head[i].owner, head[i].owner | TM_OWNER_SOLO,
					 __ATOMIC_RELAXED);
	}
}

static void link_span(struct tm_heap *h, struct tm_granule *g)
{
	struct tm_granule *next = tm_granule_at(h->span_first);

	g->prev = 0;
	g->next = h->span_first;
	if (next != NULL)
		next->prev = tm_granule_ref(g);
	h->span_first = tm_granule_ref(g);
	h->span_count++;
}

static void unlink_span(struct tm_heap *h, struct tm_granule *g)
{
	struct tm_granule *prev = tm_granule_at(g->prev);
	struct tm_granule *next = tm_granule_at(g->next);

	if (prev != NULL)
		prev->next = g->next;
	else
		h->span_first = g->next;
	if (next != NULL)
		next->prev = g->prev;
	tm_look_skip(h, g);
	if (h->census_span == tm_granule_ref(g))
		h->census_span = g->next;
	h->span_count--;
}

/*
 * Where little may be mapped, spans are as short as wastes at most an eighth at their end; and a
 * class's first one is one granule or two: python3 needs 2 MiB less for its few blocks of many sizes.
 */
static unsigned short_span(const struct tm_heap *h, unsigned klass)
{
	size_t slot_bytes = tm_class_bytes(klass);
	/* a single slot would be slot 0, whose free is slow */
	unsigned granules = slot_bytes > TM_GRANULE_BYTES / 2 ? 2 : 1;

	while (h->current[klass] != 0 && granules < tm_class_shape[klass].granules &&
	       granules * TM_GRANULE_BYTES % slot_bytes > granules * TM_GRANULE_BYTES / 8)
		granules++;
	return granules;
}

static struct tm_granule *new_span(struct tm_heap *h, unsigned klass)
{
	const struct tm_class_shape *shape = &tm_class_shape[klass];
	enum tm_span_kind kind = klass < TM_SMALL_CLASSES ? TM_SPAN_SMALL : TM_SPAN_MEDIUM;
	unsigned granules = shape->granules, slots = shape->slots;
	size_t pages;
	enum tm_tier tier =
		(enum tm_tier)atomic_load_explicit(&tm_tier_of_spans, memory_order_relaxed);
	struct tm_pool *pool = tm_pool_of_class(klass);
	uint8_t *side = NULL;
	char *base = NULL;

	if (TM_UNLIKELY(h->tier != TM_TIER_ALL)) {
		tier = (enum tm_tier)h->tier;
		if (pool != NULL && pool->tier != h->tier)
			pool = NULL;
	}
	if (TM_UNLIKELY(pool != NULL) && pool->tier != TM_TIER_ALL)
		tier = (enum tm_tier)pool->tier;
	if (tm_zone_is_scanty() && pool == NULL) {
		granules = short_span(h, klass);
		slots = granules * (unsigned)TM_GRANULE_BYTES / shape->slot_bytes;
	}
	pages = granules * (TM_GRANULE_BYTES / TM_PAGE_BYTES);
	if (!tm_tier_admits(tier, pages << TM_PAGE_SHIFT))
		return NULL;
	if (tm_span_keeps_entries) {
		side = tm_account_side_take(side_bytes(klass));
		if (side == NULL)
			return NULL;
		__builtin_memset(side + slots * entry_bytes(klass), 0xff, entry_bytes(klass));
	}
	if (TM_UNLIKELY(pool != NULL))
		base = tm_pool_take_span(pool);
	if (base == NULL)
		base = tm_extent_take((enum tm_part)h->part, pages, TM_GRANULE_PAGES);
	if (base == NULL) {
		if (side != NULL)
			tm_account_side_give(side, side_bytes(klass));
		return NULL;
	}

	struct tm_granule *head = tm_zone_granule(base);
	for (unsigned i = 0; i < granules; i++) {
		struct tm_granule *g = head + i;

		g->recip = shape->recip;
		g->index = (uint16_t)i;
		g->charge = shape->charge;
		g->kind = (unsigned)kind & 0xfu;
		g->tier = (unsigned)tier & 0xfu;
		g->klass = (uint8_t)klass;
		g->side = side;
		if (klass == TM_SOLO_CLASS && i > 0 && side != NULL)
			g->side += 8 * i;
		g->head = tm_granule_ref(head);
		g->nslots = (uint16_t)slots;
		g->carved = 0;
		g->granules = (uint16_t)granules;
		g->mark = 0;
		g->parked = NULL;
		g->looked = NULL;
		g->owner = (uintptr_t)h;
		if (kind == TM_SPAN_MEDIUM)
			g->owner |= TM_OWNER_MEDIUM;
	}
	set_first(head);
	tm_tier_add_span(tier, pages << TM_PAGE_SHIFT);
	link_span(h, head);
	if (TM_UNLIKELY(h->part != TM_PART_SPAN))
		tm_annex_grown(h, head);
	if (tm_account_store.span != NULL)
		tm_account_store.span(head);
	return head;
}

/*
 * Carve a page's worth of slots, at least one, onto the empty list, in address order. Pages are
 * carved from the span's end towards its start, so that slot 0, whose free asks for a look at the
 * heap, is in use only when the span is full.
 */
static void carve(struct tm_heap *h, struct tm_granule *g)
{
	size_t slot_bytes = tm_class_bytes(g->klass);
	uint32_t end = tm_span_first(g);
	uint32_t n = (uint32_t)(TM_PAGE_BYTES / slot_bytes);

	if (n == 0)
		n = 1;
	if (n > end)
		n = end;
	char *begin = tm_span_base(g) + (end - n) * slot_bytes;
	char *p = begin;
	if (g->side != NULL) {
		size_t bytes = entry_bytes(g->klass);

		__builtin_memset(g->side + (end - n) * bytes, 0xff, n * bytes);
	}
	for (uint32_t i = 0; i < n; i++, p += slot_bytes) {
		struct tm_slot *slot = (struct tm_slot *)(void *)p;

		slot->next = i + 1 < n ? (struct tm_slot *)(void *)(p + slot_bytes) : NULL;
		slot->entry = g->side == NULL ? NULL : tm_span_entry(g, end - n + i);
	}
	g->carved = (uint16_t)(g->carved + n);
	set_first(g);
	if (tm_account_store.span != NULL)
		tm_account_store.span(g);
	TM_SIGNAL_FENCE(); /* a fork's child may see the count without the slots, never the reverse */
	h->list[g->klass] = (struct tm_slot *)(void *)begin;
}

unsigned tm_span_stand_in(struct tm_heap *h, unsigned klass, size_t limit)
{
	size_t align = tm_class_bytes(klass) & -tm_class_bytes(klass);

	for (unsigned k = klass + 1; k < TM_CLASSES && tm_class_bytes(k) <= limit; k++) {
		struct tm_granule *g = tm_granule_at(h->current[k]);

		if ((tm_class_bytes(k) & (align - 1)) != 0 || tm_pool_of_class(k) != NULL)
			continue;
		if (h->list[k] != NULL)
			return k;
		if (g != NULL && g->carved < g->nslots) {
			carve(h, g);
			return k;
		}
	}
	return 0;
}

/*
 * The class to make a span of where neither this class nor any that could stand in has one: of the next
 * power of two, which serves all classes down to half of it. It gets one such span; then each its own.
 */
static unsigned shared_class(const struct tm_heap *h, unsigned klass)
{
	unsigned shared = tm_class_of((size_t)1 << tm_bits_log2_up(tm_class_bytes(klass)));

	return shared == TM_SOLO_CLASS || h->current[shared] != 0 ||
			       tm_pool_of_class(shared) != NULL
		       ? klass
		       : shared;
}

int tm_span_fill(struct tm_heap *h, unsigned klass)
{
	struct tm_granule *g;

	if (tm_remote_waits(h)) {
		tm_remote_drain_some(h);
		if (h->list[klass] != NULL)
			return (int)klass;
	}
	if (tm_look_refill(h, klass))
		return (int)klass;
	g = tm_granule_at(h->current[klass]);
	if (g != NULL && g->carved < g->nslots) {
		carve(h, g);
		return (int)klass;
	}
	if (tm_trim_unpark(h, klass))
		return (int)klass;
	if (!tm_annex_is(h) && tm_heap_take_from_orphans(h, klass))
		return (int)klass;
	if (tm_trim_goes_on(h) ||
	    (h->span_count >= h->look_spans && h->span_count >= LOOK_SPANS_MIN &&
	     tm_clock_ns() >= h->next_growth_ns)) {
		(void)tm_trim_before_growth(h);
		h->look_spans = h->span_count + h->span_count / LOOK_GROWTH;
		if (h->list[klass] != NULL || tm_look_refill(h, klass))
			return (int)klass;
	}
	if (tm_limit_is_near((size_t)tm_class_shape[klass].granules << TM_GRANULE_SHIFT)) {
		tm_trim_for_memory(h);
		tm_limit_settle();
	}
	if (tm_zone_is_scanty() && h->current[klass] == 0 && tm_pool_of_class(klass) == NULL) {
		unsigned other =
			tm_span_stand_in(h, klass, STAND_IN_FACTOR * tm_class_bytes(klass));

		if (other != 0)
			return (int)other;
		klass = shared_class(h, klass);
	}
	g = new_span(h, klass);
	if (g == NULL)
		return -ENOMEM;
	h->current[klass] = tm_granule_ref(g);
	carve(h, g);
	return (int)klass;
}

/*
 * The id of the same site's row in another heap. Objects that move are not counted again there,
 * since rows count allocations.
 */
static uint16_t translate(struct tm_heap *from, struct tm_heap *to, uint16_t id)
{
	const struct tm_row *row = tm_account_row((uintptr_t)from, id & ~15u);
	uint64_t key = row->key;

	if (row->height != 0)
		key += (uint64_t)(to->stack_top - from->stack_top) * TM_KEY_HEIGHT_FACTOR;
	struct tm_site site = {row->site, to->stack_top - 16 * (uintptr_t)(row->height - 1)};
	return (uint16_t)tm_account_find(to, key, site, TM_ACCOUNT_ALWAYS);
}

static bool replace_byte(uint8_t *at, uint8_t old, uint8_t fresh)
{
	return __atomic_compare_exchange_n(at, &old, fresh, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/*
 * Replace the id unless another thread frees the slot meanwhile, which stores TM_ENTRY_FREE for
 * good. Byte by byte, since entries of three bytes are not aligned: a locked access over two cache
 * lines stops the whole machine, or traps.
 */
static void replace_id(uint8_t *entry, uint16_t old, uint16_t id)
{
	uint8_t high;

	if (!replace_byte(entry + 1, (uint8_t)(old >> 8), (uint8_t)(id >> 8)))
		return;
	if (replace_byte(entry, (uint8_t)old, (uint8_t)id)) {
		high = __atomic_load_n(entry + 1, __ATOMIC_RELAXED);
		if (high == (uint8_t)(id >> 8))
			return;
	}
	/* freed meanwhile */
	__atomic_store_n(entry, (uint8_t)TM_ENTRY_FREE, __ATOMIC_RELAXED);
	__atomic_store_n(entry + 1, (uint8_t)(TM_ENTRY_FREE >> 8), __ATOMIC_RELAXED);
}

struct tm_span_rows *tm_span_rows_clear(void)
{
	static struct tm_span_rows known;

	__builtin_memset(&known, 0, sizeof(known));
	return &known;
}

uint32_t tm_span_translate(struct tm_heap *from, struct tm_heap *to, const struct tm_granule *head,
			   struct tm_span_rows *known)
{
	size_t bytes = tm_span_entry_bytes(head);
	uint8_t *entry = head->side + tm_span_first(head) * bytes;
	uint32_t replaced = 0;

	for (uint8_t *end = head->side + head->nslots * bytes; entry < end; entry += bytes) {
		uint16_t old, id;

		__builtin_memcpy(&old, entry, sizeof(old));
		/* without a row it must not be read: its page may not exist */
		if (old == TM_ENTRY_FREE || old < 16)
			continue;
		if (known->id[old / 16] == 0)
			known->id[old / 16] = translate(from, to, old) | 1;
		id = (uint16_t)((known->id[old / 16] & ~1u) | (old & 15));
		if (id != old) {
			replace_id(entry, old, id);
			replaced++;
		}
	}
	return replaced;
}

static void move_set(struct tm_slot_set **from, struct tm_slot_set **to, struct tm_slot_set *set)
{
	if (set == NULL)
		return;
	tm_slot_set_unlink(from, set);
	tm_slot_set_link(to, set);
}

uint32_t tm_span_move(struct tm_heap *from, struct tm_heap *to, struct tm_granule *head,
		      struct tm_span_rows *known)
{
	unsigned klass = head->klass;
	uint32_t replaced = 0;

	unlink_span(from, head);
	if (head->side != NULL)
		replaced = tm_span_translate(from, to, head, known);
	for (unsigned i = 0; i < head->granules; i++)
		__atomic_store_n(&head[i].owner, (uintptr_t)to | (head[i].owner & TM_OWNER_BITS),
				 __ATOMIC_RELEASE);
	move_set(&from->look->looked[klass], &to->look->looked[klass], head->looked);
	move_set(&from->look->parked[klass], &to->look->parked[klass], head->parked);
	head->mark = 0;
	link_span(to, head);
	if (from->current[klass] == tm_granule_ref(head)) {
		from->current[klass] = 0;
		to->current[klass] = tm_granule_ref(head);
	}
	if (tm_account_store.span != NULL)
		tm_account_store.span(head);
	return replaced;
}

void tm_span_release(struct tm_heap *h, struct tm_granule *head)
{
	unsigned granules = head->granules;
	uint8_t *side = head->side;
	size_t bytes = side_bytes(head->klass);
	struct tm_pool *pool = tm_pool_of_class(head->klass);
	char *base = tm_span_base(head);

	if (tm_account_store.gone != NULL)
		tm_account_store.gone(head);
	tm_tier_sub_span((enum tm_tier)head->tier, (size_t)granules << TM_GRANULE_SHIFT);
	unlink_span(h, head);
	if (h->current[head->klass] == tm_granule_ref(head))
		h->current[head->klass] = 0;
	for (unsigned i = 0; i < granules; i++) {
		head[i].owner = 0;
		head[i].kind = TM_SPAN_NONE;
		head[i].side = NULL;
		head[i].recip = 0;
	}
	if (side != NULL)
		tm_account_side_give(side, bytes);
	if (pool == NULL || !tm_pool_give_span(pool, base))
		tm_extent_give((enum tm_part)h->part, base, granules * TM_GRANULE_PAGES);
}

int32_t tm_span_index(const struct tm_granule *head, const void *p)
{
	uint64_t offset = (uint64_t)((const char *)p - tm_span_base(head));
	uint64_t index = tm_class_index(offset, head->recip,
					head->kind == TM_SPAN_SMALL ? TM_RECIP_SHIFT_SMALL
								    : TM_RECIP_SHIFT_MEDIUM);

	if (index < tm_span_first(head) || index >= head->nslots)
		return -1;
	return (int32_t)index;
}

void tm_span_taint(const void *addr, size_t bytes)
{
	const char *end = (const char *)addr + bytes;
	const char *from;

	if (!tm_zone_contains(addr))
		return;
	/* a free reads the granule where its slot starts, at most one before */
	from = (const char *)addr - (uintptr_t)addr % TM_GRANULE_BYTES;
	if (tm_zone_contains(from - TM_GRANULE_BYTES))
		from -= TM_GRANULE_BYTES;
	for (const char *p = from; p < end && tm_zone_contains(p); p += TM_GRANULE_BYTES) {
		struct tm_granule *g = tm_zone_granule(p);

		if (g->kind == TM_SPAN_MEDIUM)
			__atomic_fetch_or(&g->owner, TM_OWNER_TAINTED, __ATOMIC_RELAXED);
	}
}

size_t tm_span_slot_bytes(const struct tm_granule *head, uint32_t index)
{
	return tm_arena_is(head) ? tm_arena_bytes(head, index) : tm_class_bytes(head->klass);
}

void tm_span_cleanse(const struct tm_granule *head, void *slot)
{
	size_t bytes = tm_span_slot_bytes(head, (uint32_t)tm_span_index(head, slot));
	uintptr_t first = ((uintptr_t)slot + TM_PAGE_BYTES - 1) & ~(TM_PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)slot + bytes) & ~(TM_PAGE_BYTES - 1);

	if (first < end)
		tm_mem_map_fixed((void *)first, end - first, PROT_READ | PROT_WRITE);
}
