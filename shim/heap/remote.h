/* SPDX-License-Identifier: MIT */
/*
 * remote: slots freed by a thread that does not own their heap.
 *
 * The freeing thread collects them in a magazine per owner and hands a full one over by one atomic
 * push; the owner takes all of them with one exchange when a list of its own has run dry. Pushes
 * are lock-free and safe in signal handlers (tm_remote_push); magazines belong to the busy caller.
 */
#ifndef TM_HEAP_REMOTE_H
#define TM_HEAP_REMOTE_H

#include "shim/heap/heap.h"

/*
 * What a magazine takes: 64 KiB out of its owner's reach, and no more than 32 slots, since a slot is
 * charged at least 2 KiB: .03 atomic operations per slot.
 */
#define TM_MAGAZINE_ROOM (64 << 10)

/* Hand a chain over at once. Any thread, any context. */
void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last);

TM_INLINE struct tm_magazine *tm_remote_magazine(struct tm_heap *mine, uintptr_t owner)
{
	return &mine->magazine[(owner / TM_HEAP_STRIDE) % TM_MAGAZINES];
}

/* True: it is full now and wants to be handed over. The magazine is this owner's. */
TM_INLINE bool tm_remote_collect(struct tm_magazine *m, struct tm_slot *slot, uint16_t charge)
{
	slot->next = m->first;
	m->first = slot;
	m->room -= charge;
	return m->room < 0;
}

void tm_remote_hand_over(struct tm_magazine *m);

/* Collect one slot; hands over when full. `mine` is held by the caller. */
void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, uint16_t charge);

/* Hand over everything that is collected. */
void tm_remote_flush(struct tm_heap *mine);

/* Distribute what others pushed to this heap onto its lists. Returns the number of slots. */
size_t tm_remote_drain(struct tm_heap *h);

#endif
