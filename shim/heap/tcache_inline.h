/* SPDX-License-Identifier: MIT */
/*
 * tcache_inline: the whole fast path.
 *
 * Allocate: take the head of the class's list; if it is empty take the slow path. Free: find the
 * granule; if it is another heap's take the slow path. In between, the thread's word has
 * TM_HEAP_BUSY set, which costs two instructions and makes the lists look empty to a signal handler
 * that interrupts. The word of a thread without a heap points at empty lists, so no test for that
 * is needed.
 *
 * `count` is a constant at each use: TM_COUNTED keeps the account (account.h), TM_CHECKED only
 * whether a slot is in use, by which wrong frees are detected, and TM_PLAIN nothing.
 */
#ifndef TM_HEAP_TCACHE_INLINE_H
#define TM_HEAP_TCACHE_INLINE_H

#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/heap.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/zone.h"

enum tm_counting { TM_PLAIN, TM_CHECKED, TM_COUNTED };

TM_INLINE struct tm_heap *tm_tcache_enter(uintptr_t word)
{
	TM_SIGNAL_FENCE();
	tm_heap_word |= TM_HEAP_BUSY;
	TM_SIGNAL_FENCE();
	return (struct tm_heap *)word;
}

TM_INLINE void tm_tcache_leave(uintptr_t word)
{
	TM_SIGNAL_FENCE();
	tm_heap_word = word;
}

/*
 * Take a slot of the class for `size` bytes, between tm_tcache_enter and tm_tcache_leave. NULL:
 * take the slow path, as the list is empty or the site new. `form`, a constant too, says which side
 * entry the class has. `site`: NULL for the call of the function that this is inlined into,
 * computed only once it is needed.
 */
TM_INLINE void *tm_tcache_pop(struct tm_heap *h, size_t klass, size_t size, enum tm_span_kind form,
			      const struct tm_site *site, enum tm_counting count)
{
	struct tm_slot *slot = h->list[klass];

	if (TM_UNLIKELY(slot == NULL))
		return NULL;
	if (count == TM_COUNTED) {
		uint64_t id, key = tm_account_key(site == NULL ? TM_SITE_HERE : *site);
		struct tm_row *row = tm_account_probe(h, key, &id);

		if (TM_UNLIKELY(row == NULL))
			return NULL;
		row->objects++;
		row->bytes += size;
		if (form == TM_SPAN_SMALL) {
			struct tm_entry3 *entry = slot->entry;

			id |= size & 15;
			/* the low half of id; an assignment makes gcc keep the value twice */
			__builtin_memcpy(&entry->id, &id, sizeof(entry->id));
			entry->epoch = h->birth_byte[TM_BIRTH_SHIFT / 8];
		} else {
			*(tm_entry8 *)slot->entry = tm_entry8_make(id, h->birth, size);
		}
	} else if (count == TM_CHECKED) {
		if (form == TM_SPAN_SMALL)
			((struct tm_entry3 *)slot->entry)->id = 0;
		else
			*(tm_entry8 *)slot->entry = tm_entry8_make(0, 0, size);
	}
	h->list[klass] = slot->next;
	return slot;
}

TM_INLINE void *tm_tcache_take(size_t klass, size_t size, enum tm_span_kind form,
			       const struct tm_site *site, enum tm_counting count)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *h = tm_tcache_enter(word);
	void *slot = tm_tcache_pop(h, klass, size, form, site, count);

	tm_tcache_leave(word);
	return slot;
}

/*
 * The same for more than 1 KiB, with the account: a row's requests are served from the lists of its
 * tier. After medium_left requests one takes the slow path, which examines lifetimes.
 */
TM_INLINE void *tm_tcache_take_medium(size_t klass, size_t size, const struct tm_site *site)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *h = tm_tcache_enter(word);
	uint64_t key = tm_account_key(site == NULL ? TM_SITE_HERE : *site);
	uint64_t id = h->key_slot[key & h->key_mask];
	struct tm_slot **list = (struct tm_slot **)(word + h->lists_of_row[id / 16]) + klass;
	struct tm_slot *slot = *list;

	if (TM_UNLIKELY(slot == NULL))
		goto leave;
	struct tm_row *row = tm_account_row((uintptr_t)h, id);
	if (TM_UNLIKELY(row->key != key || --h->medium_left < 0)) {
		slot = NULL;
		goto leave;
	}
	row->objects++;
	row->bytes += size;
	*(tm_entry8 *)slot->entry = tm_entry8_make(id, h->birth, size);
	*list = slot->next;
leave:
	tm_tcache_leave(word);
	return slot;
}

enum tm_free_result { TM_FREE_DONE, TM_FREE_OTHER };

/*
 * The slot's entry, if p is the start of a slot. False: take the slow path, as p is a wrong
 * pointer, was never handed out, or is the first slot of its span. The latter makes the slow path
 * check, once per span and round, whether memory can be given back, without a counter here.
 */
TM_INLINE bool tm_tcache_entry(const void *p, const struct tm_granule *g, enum tm_span_kind form,
			       void **ret_entry)
{
	uint64_t index;

	if (form == TM_SPAN_SMALL) {
		/* tm_class_index, in the form that compiles to the fewest instructions */
		uint64_t product = (uint64_t)(uint16_t)(uintptr_t)p * g->recip;

		if (TM_UNLIKELY((uint32_t)product >= g->recip))
			return false;
		index = product >> TM_RECIP_SHIFT_SMALL;
	} else if (form == TM_SPAN_MEDIUM) {
		uint64_t offset = (uint16_t)(uintptr_t)p + ((uint64_t)g->index << TM_GRANULE_SHIFT);

		index = tm_class_index(offset, g->recip, TM_RECIP_SHIFT_MEDIUM);
		if (TM_UNLIKELY(index == TM_NO_INDEX))
			return false;
	} else {
		*ret_entry = g->side;
		return TM_LIKELY((uint16_t)(uintptr_t)p == 0);
	}
	if (TM_UNLIKELY((uint16_t)index < g->first))
		return false;
	*ret_entry = g->side + (form == TM_SPAN_SMALL ? 3 : 8) * index;
	return true;
}

/* Whether the slot of this entry is in use. Both forms of entries begin with the id. */
TM_INLINE bool tm_tcache_in_use(const void *entry)
{
	return TM_LIKELY(((const struct tm_entry3 *)entry)->id != TM_ENTRY_FREE);
}

/*
 * Put a slot of the caller's own heap on its list, between tm_tcache_enter and tm_tcache_leave.
 * `entry`: NULL where spans have none.
 */
TM_INLINE void tm_tcache_push(struct tm_heap *h, void *p, const struct tm_granule *g,
			      enum tm_span_kind form, void *entry)
{
	size_t klass = form == TM_SPAN_SOLO ? TM_SOLO_CLASS : g->klass;
	struct tm_slot *slot = p;

	if (entry != NULL) {
		((struct tm_entry3 *)entry)->id |= TM_ENTRY_FREE;
		slot->entry = entry;
	}
	slot->next = h->list[klass];
	h->list[klass] = slot;
}

/*
 * The granule's owner minus the caller's heap: 0 for a small slot of that heap, TM_OWNER_MEDIUM or
 * TM_OWNER_SOLO for its other slots. The counted form uses the heap's `self` instead of the word,
 * since that is wiped in the child of a raw fork.
 */
TM_INLINE uintptr_t tm_tcache_whose(const struct tm_granule *g, enum tm_counting count)
{
	uintptr_t word = tm_heap_word;

	return tm_granule_owner(g) - (count == TM_COUNTED ? ((struct tm_heap *)word)->self : word);
}

/* Whether the granule has small slots of the caller's own heap. */
TM_INLINE bool tm_tcache_is_mine(const struct tm_granule *g, enum tm_counting count)
{
	if (count == TM_COUNTED)
		return tm_tcache_whose(g, count) == 0;
	/* a plain load: gcc makes an atomic one a separate instruction */
	return g->owner == tm_heap_word;
}

/*
 * Free a slot of this form of the caller's own heap. TM_FREE_OTHER: nothing was done, take the slow
 * path. The plain form detects neither wrong pointers into a span nor second frees.
 */
TM_INLINE enum tm_free_result tm_tcache_give(void *p, struct tm_granule *g, enum tm_span_kind form,
					     enum tm_counting count)
{
	void *entry = NULL;

	if (count != TM_PLAIN) {
		if (TM_UNLIKELY(!tm_tcache_entry(p, g, form, &entry) || !tm_tcache_in_use(entry)))
			return TM_FREE_OTHER;
		if (entry == NULL)
			__builtin_unreachable();
	} else if (form != TM_SPAN_SOLO &&
		   TM_UNLIKELY(((uint16_t)(uintptr_t)p | (form == TM_SPAN_MEDIUM ? g->index : 0)) ==
			       0)) {
		return TM_FREE_OTHER;
	}
	uintptr_t word = tm_heap_word;
	tm_tcache_push(tm_tcache_enter(word), p, g, form, entry);
	tm_tcache_leave(word);
	return TM_FREE_DONE;
}

/*
 * Free an object of the caller's own arena, to the list of its class. Only used with the account,
 * since there are no arenas without.
 */
TM_INLINE enum tm_free_result tm_tcache_give_arena(void *p, struct tm_granule *g)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *h = (struct tm_heap *)word;
	const struct tm_arena_block *b = g->parked;
	struct tm_slot *slot = p;
	void *entry = NULL;

	/*
	 * self is 0 for a thread without a heap or with a busy one: then a large block's owner
	 * would equal that of the arena. After arena_left frees one takes the slow path, which
	 * examines the lists.
	 */
	if (h->self == 0 || tm_granule_owner(g) != (h->self | TM_OWNER_ARENA) ||
	    !tm_tcache_entry(p, g, TM_SPAN_MEDIUM, &entry) || !tm_tcache_in_use(entry) ||
	    TM_UNLIKELY(--h->arena_left < 0))
		return TM_FREE_OTHER;
	tm_tcache_enter(word);
	struct tm_slot **list = &h->arena[b->klass[(uint16_t)(uintptr_t)p / TM_ARENA_LINE]];
	((struct tm_entry3 *)entry)->id |= TM_ENTRY_FREE;
	slot->entry = entry;
	slot->next = *list;
	*list = slot;
	tm_tcache_leave(word);
	return TM_FREE_DONE;
}

/* Free a slot of this form of another thread's heap, for which this thread has a magazine. */
TM_INLINE enum tm_free_result tm_tcache_give_remote(void *p, struct tm_granule *g,
						    enum tm_span_kind form, enum tm_counting count)
{
	uintptr_t word = tm_heap_word;
	struct tm_outbox *box = ((struct tm_heap *)word)->outbox;
	uintptr_t owner = tm_granule_owner(g) & ~(TM_OWNER_BITS ^ TM_OWNER_TAINTED);
	void *entry = NULL;

	/* the empty heap of a thread without one, or with a busy one, has no outbox */
	if (TM_UNLIKELY(box == NULL))
		return TM_FREE_OTHER;
	if (count != TM_PLAIN) {
		if (TM_UNLIKELY(!tm_tcache_entry(p, g, form, &entry)))
			return TM_FREE_OTHER;
		/*
		 * Fetch the line from its owner's core once, for reading and writing. The fence
		 * keeps gcc from reading earlier, which would fetch it twice.
		 */
		__builtin_prefetch(entry, 1);
		TM_SIGNAL_FENCE();
		if (!tm_tcache_in_use(entry))
			return TM_FREE_OTHER;
	}
	struct tm_magazine *m = tm_remote_magazine(box, owner);
	tm_tcache_enter(word);
	/*
	 * the magazine is for another heap or nobody, or the slot is tainted; tested after
	 * entering, since a signal handler may hand the magazine over
	 */
	if (TM_UNLIKELY(m->owner != owner)) {
		tm_tcache_leave(word);
		return TM_FREE_OTHER;
	}
	if (count != TM_PLAIN) /* the slot itself is not written: it stays in its owner's cache */
		((struct tm_entry3 *)entry)->id |= TM_ENTRY_FREE;
	if (TM_UNLIKELY(tm_remote_collect(m, p, g->charge))) {
		tm_remote_hand_over_and_leave(word, m);
		return TM_FREE_DONE;
	}
	tm_tcache_leave(word);
	return TM_FREE_DONE;
}

#endif
