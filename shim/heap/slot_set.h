/* SPDX-License-Identifier: MIT */
/*
 * slot_set: a bitmap of the slots of one span, for slots that are on no list (trim.h, look.h). Private
 * memory, unlike the side entries, which may lie in a ledger that a forked child does not keep.
 *
 * All functions are for the holder of the span's heap.
 */
#ifndef TM_HEAP_SLOT_SET_H
#define TM_HEAP_SLOT_SET_H

#include "shim/heap/heap.h"

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

/* Put the slots onto the list of their class, in the order of addresses. */
void tm_slot_set_list(struct tm_heap *h, const struct tm_granule *head, const uint64_t *bits);

/* Mark the entries of the slots free, see inherit.h. */
void tm_slot_set_are_free(const struct tm_granule *head, const uint64_t *bits);

#endif
