/* SPDX-License-Identifier: MIT */
#include "shim/heap/remote.h"

#include "shim/heap/inherit.h"
#include "shim/heap/meta.h"
#include "shim/heap/span.h"
#include "shim/heap/zone.h"

/*
 * Batches are made a page at a time, at most BATCHES_LIMIT per heap; beyond that slots go as
 * chains.
 */
#define BATCHES_AT_ONCE 8u
#define AHEAD 6
#define BATCHES_LIMIT 1024u

void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last)
{
	struct tm_heap *h = (struct tm_heap *)owner;
	struct tm_slot *head = atomic_load_explicit(&h->remote, memory_order_relaxed);

	do {
		last->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&h->remote, &head, first, memory_order_release, memory_order_relaxed));
}

static void push_batch(_Atomic(struct tm_batch *) *stack, struct tm_batch *b)
{
	b->next = atomic_load_explicit(stack, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(stack, &b->next, b, memory_order_release,
						      memory_order_relaxed))
		;
}

/* The slot's side entry; NULL where spans have none. */
static void *entry_of(struct tm_granule *g, const void *slot)
{
	struct tm_granule *head = tm_span_head(g);

	return head->side == NULL ? NULL : tm_span_entry(head, (uint32_t)tm_span_index(head, slot));
}

static void push_chain(uintptr_t owner, const struct tm_batch *b, uint32_t count)
{
	struct tm_slot *first = NULL, *last = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct tm_slot *slot = b->slot[i];

		slot->entry = entry_of(tm_zone_granule(slot), slot);
		slot->next = first;
		first = slot;
		if (last == NULL)
			last = slot;
	}
	tm_remote_push(owner, first, last);
}

static bool make_batches(struct tm_heap *mine, struct tm_outbox *box)
{
	if (box->batches >= BATCHES_LIMIT)
		return false;
	struct tm_batch *b = tm_meta_alloc(BATCHES_AT_ONCE * sizeof(*b), TM_PAGE_BYTES);
	if (b == NULL)
		return false;
	for (unsigned i = 0; i < BATCHES_AT_ONCE; i++) {
		b[i].home = mine;
		b[i].next = i + 1 < BATCHES_AT_ONCE ? &b[i + 1] : NULL;
	}
	box->empty = b;
	box->batches += BATCHES_AT_ONCE;
	return true;
}

/* Take an empty batch. NULL: the limit is reached, or memory is short. */
static struct tm_batch *take_batch(struct tm_heap *mine, struct tm_outbox *box)
{
	struct tm_batch *b = box->empty;

	if (b == NULL && atomic_load_explicit(&mine->returned, memory_order_relaxed) != NULL)
		b = atomic_exchange_explicit(&mine->returned, NULL, memory_order_acquire);
	if (b == NULL && make_batches(mine, box))
		b = box->empty;
	if (b != NULL)
		box->empty = b->next;
	return b;
}

/*
 * Hand over the magazine's batch and put an empty one in its place. Without one its slots go as a
 * chain.
 */
TM_NOINLINE void tm_remote_hand_over(struct tm_heap *mine, struct tm_magazine *m)
{
	uintptr_t owner = m->owner;
	struct tm_batch *full = m->batch, *fresh;
	uint32_t count = m->count;
	int32_t bytes = TM_MAGAZINE_ROOM - m->room;

	if (count == 0)
		return;
	/*
	 * the magazine is emptied before the batch is pushed: a fork's child may lose the slots,
	 * not have them twice
	 */
	m->count = 0;
	m->room = TM_MAGAZINE_ROOM;
	fresh = take_batch(mine, mine->outbox);
	TM_SIGNAL_FENCE();
	if (fresh == NULL) {
		push_chain(owner, full, count);
	} else {
		m->batch = fresh;
		full->count = count;
		push_batch(&((struct tm_heap *)owner)->batches, full);
	}
	tm_heap_freed_for((struct tm_heap *)owner, (size_t)bytes);
}

void tm_remote_hand_over_and_leave(uintptr_t word, struct tm_magazine *m)
{
	tm_remote_hand_over((struct tm_heap *)word, m);
	TM_SIGNAL_FENCE();
	tm_heap_word = word;
}

static struct tm_outbox *make_outbox(struct tm_heap *mine)
{
	struct tm_outbox *box = tm_meta_alloc(sizeof(*box), TM_CACHE_LINE);

	if (box == NULL)
		return NULL;
	for (unsigned i = 0; i < TM_MAGAZINES; i++)
		box->magazine[i].owner = TM_MAGAZINE_NOBODY;
	mine->outbox = box;
	return box;
}

void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, uint16_t charge)
{
	struct tm_outbox *box = mine->outbox != NULL ? mine->outbox : make_outbox(mine);
	struct tm_magazine *m = box == NULL ? NULL : tm_remote_magazine(box, owner);

	if (m != NULL && m->owner != owner) {
		if (m->owner != TM_MAGAZINE_NOBODY)
			tm_remote_hand_over(mine, m);
		if (m->batch == NULL)
			m->batch = take_batch(mine, box);
		m->room = TM_MAGAZINE_ROOM;
		m->owner = m->batch != NULL ? owner : TM_MAGAZINE_NOBODY;
	}
	if (m == NULL || m->batch == NULL) {
		slot->entry = entry_of(tm_zone_granule(slot), slot);
		tm_remote_push(owner, slot, slot);
		return;
	}
	if (tm_remote_collect(m, slot, charge))
		tm_remote_hand_over(mine, m);
}

void tm_remote_flush(struct tm_heap *mine)
{
	if (mine->outbox == NULL)
		return;
	for (unsigned i = 0; i < TM_MAGAZINES; i++) {
		struct tm_magazine *m = &mine->outbox->magazine[i];

		if (m->owner == TM_MAGAZINE_NOBODY)
			continue;
		tm_remote_hand_over(mine, m);
		m->owner = TM_MAGAZINE_NOBODY;
		m->batch->next = mine->outbox->empty;
		mine->outbox->empty = m->batch;
		m->batch = NULL;
	}
}

bool tm_remote_collects(const struct tm_heap *h)
{
	for (unsigned i = 0; h->outbox != NULL && i < TM_MAGAZINES; i++)
		if (h->outbox->magazine[i].count != 0)
			return true;
	return false;
}

static void link_slot(struct tm_heap *h, struct tm_slot *slot, struct tm_granule *g)
{
	slot->next = h->list[g->klass];
	h->list[g->klass] = slot;
}

static bool is_mine(const struct tm_heap *h, const struct tm_granule *g)
{
	return TM_LIKELY((tm_granule_owner(g) & ~TM_OWNER_BITS) == (uintptr_t)h);
}

/* Mark a slot free that was freed before the fork, in a child whose entries were lost. */
static TM_COLD void say_free(struct tm_granule *g, const void *slot)
{
	struct tm_granule *head = tm_span_head(g);
	int32_t index = tm_span_index(head, slot);

	if (head->side != NULL && index >= 0)
		tm_span_entry_set_free(head, (uint32_t)index);
}

/* Link the slots of a chain; what exceeds the limit waits in remote_rest, which must be empty. */
static size_t link_chain(struct tm_heap *h, struct tm_slot *slot, size_t slots_max)
{
	size_t n = 0;

	while (slot != NULL && n < slots_max) {
		struct tm_slot *next = slot->next;
		struct tm_granule *g = tm_zone_granule(slot);

		if (TM_UNLIKELY(tm_inherit_lost))
			say_free(g, slot);
		if (is_mine(h, g))
			link_slot(h, slot, g);
		else /* as in drain_batch */
			tm_remote_push(tm_granule_owner(g) & ~TM_OWNER_BITS, slot, slot);
		slot = next;
		n++;
	}
	if (slot != NULL)
		atomic_store_explicit(&h->remote_rest, slot, memory_order_relaxed);
	return n;
}

/* The entry of a pointer that is certain to be a slot's start. */
TM_INLINE void *entry_of_start(struct tm_granule *g, uintptr_t bits, const void *slot)
{
	uint64_t offset = (uint16_t)(uintptr_t)slot;

	if (TM_LIKELY(bits == 0))
		return g->side + 3 * ((offset * g->recip) >> TM_RECIP_SHIFT_SMALL);
	if (bits == TM_OWNER_SOLO)
		return g->side;
	offset += (uint64_t)g->index << TM_GRANULE_SHIFT;
	return g->side + 8 * ((offset * g->recip) >> TM_RECIP_SHIFT_MEDIUM);
}

TM_INLINE void drain_batch(struct tm_heap *h, const struct tm_batch *b, bool entries)
{
	for (void *const *at = b->slot, *const *end = at + b->count; at < end; at++) {
		struct tm_slot *slot = *at;
		struct tm_granule *g = tm_zone_granule(slot);
		__builtin_prefetch(at + AHEAD < end ? at[AHEAD] : slot, 1);
		uintptr_t bits = g->owner ^ (uintptr_t)h;

		if (entries) {
			void *entry = entry_of_start(g, bits & TM_OWNER_SOLO, slot);

			/* the freeing thread wrote this line, the next allocation will: fetch it */
			__builtin_prefetch(entry, 1);
			slot->entry = entry;
			if (TM_UNLIKELY(tm_inherit_lost))
				say_free(g, slot);
		}
		if (TM_LIKELY(bits <= TM_OWNER_BITS))
			link_slot(h, slot, g);
		else /* the span has moved to another heap since the slot was sent here */
			tm_remote_push(tm_granule_owner(g) & ~TM_OWNER_BITS, slot, slot);
	}
}

/* The same for batches and batches_rest. */
static size_t link_batches(struct tm_heap *h, struct tm_batch *b, size_t slots_max)
{
	size_t n = 0;

	while (b != NULL && n < slots_max) {
		struct tm_batch *next = b->next;

		if (tm_span_keeps_entries)
			drain_batch(h, b, true);
		else
			drain_batch(h, b, false);
		n += b->count;
		push_batch(&b->home->returned, b);
		b = next;
	}
	if (b != NULL)
		atomic_store_explicit(&h->batches_rest, b, memory_order_relaxed);
	return n;
}

/*
 * The rest of the last call is taken off before its slots are linked: a fork's child may lose
 * slots, but must not have them twice.
 */
static size_t drain(struct tm_heap *h, size_t slots_max)
{
	struct tm_batch *b = atomic_load_explicit(&h->batches_rest, memory_order_relaxed);
	struct tm_slot *slot = atomic_load_explicit(&h->remote_rest, memory_order_relaxed);
	size_t n = 0;

	atomic_store_explicit(&h->batches_rest, NULL, memory_order_relaxed);
	TM_SIGNAL_FENCE();
	n = link_batches(h, b, slots_max);
	if (n < slots_max)
		n += link_batches(h,
				  atomic_exchange_explicit(&h->batches, NULL, memory_order_acquire),
				  slots_max - n);
	if (n >= slots_max)
		return n;
	atomic_store_explicit(&h->remote_rest, NULL, memory_order_relaxed);
	TM_SIGNAL_FENCE();
	n += link_chain(h, slot, slots_max - n);
	if (n < slots_max && atomic_load_explicit(&h->remote, memory_order_relaxed) != NULL)
		n += link_chain(h, atomic_exchange_explicit(&h->remote, NULL, memory_order_acquire),
				slots_max - n);
	return n;
}

size_t tm_remote_drain(struct tm_heap *h)
{
	return drain(h, SIZE_MAX);
}

size_t tm_remote_drain_some(struct tm_heap *h)
{
	return drain(h, TM_DRAIN_SLOTS);
}
