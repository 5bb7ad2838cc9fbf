/* SPDX-License-Identifier: MIT */
/*
 * slot_set: a bitmap of the slots of one span, for slots that are on no list (trim.h, look.h). Private
 * memory, unlike the side entries, which may lie in a ledger that a forked child does not keep.
 *
 * The sets of one heap and class are a list, so that one is found without a walk over all spans. A
 * list can be cut by a fork while another thread changes it: then `prev` may be wrong, but never a
 * list read forward.
 *
 * All functions are for the holder of the span's heap.
 */
#ifndef TM_HEAP_SLOT_SET_H
#define TM_HEAP_SLOT_SET_H

#include "shim/heap/heap.h"

/* A span's marked slots. */
struct tm_slot_set {
	struct tm_slot_set *next, *prev; /* of the same heap and class */
	struct tm_granule *head;
	uint64_t count;
	uint64_t bits[];
};

/* Words of the bitmap. */
TM_INLINE uint32_t tm_slot_set_words(const struct tm_granule *head)
{
	return (head->nslots + 63u) / 64;
}

TM_INLINE bool tm_slot_set_has(const uint64_t *bits, uint32_t slot)
{
	return (bits[slot / 64] >> (slot % 64) & 1) != 0;
}

TM_INLINE void tm_slot_set_add(uint64_t *bits, uint32_t slot)
{
	bits[slot / 64] |= UINT64_C(1) << (slot % 64);
}

TM_INLINE void tm_slot_set_remove(uint64_t *bits, uint32_t slot)
{
	bits[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

/* Make an empty set for the span, on no list yet. NULL: no memory. */
struct tm_slot_set *tm_slot_set_make(struct tm_granule *head);
void tm_slot_set_free(struct tm_slot_set *set);

void tm_slot_set_link(struct tm_slot_set **list, struct tm_slot_set *set);
void tm_slot_set_unlink(struct tm_slot_set **list, struct tm_slot_set *set);

/* Put the slots onto the list of their class, in the order of addresses. */
void tm_slot_set_list(struct tm_heap *h, const struct tm_slot_set *set);

/* Mark the entries of the slots of all sets of a list free, see inherit.h. */
void tm_slot_set_are_free(const struct tm_slot_set *list);

/*
 * 0, or the line that failed: the sets are of this heap and class, linked both ways, and count what
 * they hold.
 */
int tm_slot_set_check(const struct tm_heap *h, unsigned klass, const struct tm_slot_set *list);

#endif
