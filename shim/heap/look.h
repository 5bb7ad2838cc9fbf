/* SPDX-License-Identifier: MIT */
/*
 * look: finds the wholly free spans of a heap and returns them to their part, in steps of bounded
 * length, since a program's thread pays for them while it waits for a block. No system call: the
 * memory stays with the part for its next span.
 *
 * A look first examines the side entries of all spans, then takes the free slots of each class that
 * has candidates off its list, one by one. A slot of a candidate is marked in a bitmap of its span,
 * and the span is released once that has all its slots; other slots go back to the list when their
 * class is done. Lists do not wait for that: one that runs empty in the meantime is filled from
 * what was and what was not examined yet. Entries alone do not decide, as an entry also says free
 * while another thread has not handed its slot over.
 *
 * Invariants (tm_heap_check): a free slot is on one of h->list, `rest`, `kept` and `stray`, or marked
 * in one of the bitmaps of its span (`looked`, and `parked` of trim.h). Order of stores as in
 * heap.h.
 *
 * All functions are for the holder of the heap, unless said otherwise.
 */
#ifndef TM_HEAP_LOOK_H
#define TM_HEAP_LOOK_H

#include "shim/heap/slot_set.h"

/* Work of one step: 1 for a slot, more for a span. About .3 ms where each slot is a cache miss. */
#define TM_LOOK_WORK 4096u

/* Of a heap; made by its first look or trim. [owner] */
struct tm_look {
	struct tm_slot *rest[TM_CLASSES];       /* not examined yet, or what was left of a list */
	struct tm_slot *stray[TM_CLASSES];      /* chains of free slots, see stray.h */
	struct tm_slot_set *looked[TM_CLASSES]; /* marked slots */
	struct tm_slot_set *parked[TM_CLASSES]; /* and those of trim.h */
	uint32_t left[TM_CLASSES];              /* listed slots of candidates */
	struct tm_slot *kept, *last;            /* examined slots of `klass` that stay, a chain */
	uint32_t klass;                         /* whose slots are being examined */
	uint32_t span;                          /* the next one to examine, by reference */
	uint32_t chosen;                        /* candidates */
	bool taken;                             /* the list of `klass` was taken off */
};

/* What a look is at. Written by the holder, read by any thread as a hint. */
enum tm_look_state { TM_LOOK_OFF, TM_LOOK_CHOOSES, TM_LOOK_SORTS };

TM_INLINE bool tm_look_is_on(const struct tm_heap *h)
{
	return __atomic_load_n(&h->look_state, __ATOMIC_RELAXED) != TM_LOOK_OFF;
}

/* Begin a look, unless one is on. */
void tm_look_begin(struct tm_heap *h);

/* The span is about to leave the heap. */
TM_INLINE void tm_look_skip(struct tm_heap *h, const struct tm_granule *head)
{
	if (h->look != NULL && h->look->span == tm_granule_ref(head))
		h->look->span = head->next;
}

/* Go on with the look, if one is on. Returns the bytes of the spans released. */
size_t tm_look_step(struct tm_heap *h);

/* End the look and put all slots back onto the lists. Not bounded. */
void tm_look_end(struct tm_heap *h);

/* Put slots that a look has taken back onto the class's empty list. False: there are none. */
bool tm_look_refill(struct tm_heap *h, unsigned klass);

/* Slots of a span that are marked. */
TM_INLINE uint32_t tm_look_count(const struct tm_granule *head)
{
	return head->looked == NULL ? 0
				    : (uint32_t)((const struct tm_slot_set *)head->looked)->count;
}

/* Make the heap's struct tm_look. False: no memory. */
bool tm_look_ready(struct tm_heap *h);

/* A look that is at this class ends there: its slots are on h->list and `rest`. */
void tm_look_leave(struct tm_heap *h, unsigned klass);

/* True if free slots of this class are on none of h->list. */
TM_INLINE bool tm_look_has(const struct tm_heap *h, unsigned klass)
{
	const struct tm_look *l = h->look;

	return l != NULL &&
	       (l->rest[klass] != NULL || l->looked[klass] != NULL || l->stray[klass] != NULL ||
		l->parked[klass] != NULL || (l->kept != NULL && l->klass == klass));
}

/* Mark the entries of marked slots of a class free, see inherit.h. */
void tm_look_marked_are_free(const struct tm_heap *h, unsigned klass);

/* 0, or the line that failed. */
int tm_look_check(const struct tm_heap *h);

#endif
