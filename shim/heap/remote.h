/* SPDX-License-Identifier: MIT */
/*
 * remote: slots freed by a thread that does not own their heap.
 *
 * The freeing thread notes them in a batch, an array of its own, and does not touch them: what the
 * owner wrote into them last stays in the owner's cache. A full batch is handed over by one atomic
 * push; the owner takes all batches with one exchange when a list of its own has run dry, links the
 * slots into its lists, and pushes the empty batch back to where it came from. Where no batch is to
 * be had, in signal handlers and past a thread's end, slots are linked and pushed as a chain.
 *
 * Magazines (one per owner that this thread frees for) belong to the busy caller; pushes are
 * lock-free and safe in signal handlers.
 */
#ifndef TM_HEAP_REMOTE_H
#define TM_HEAP_REMOTE_H

#include "shim/heap/heap.h"

/*
 * What a magazine takes: 64 KiB out of its owner's reach, where a slot is charged at least 1 KiB, and
 * no more than a batch holds: .03 to .1 atomic operations per slot up to 8 KiB.
 */
#define TM_MAGAZINE_ROOM (64 << 10)
#define TM_BATCH_SLOTS 60u

/* Handed between threads. 512 bytes. */
struct tm_batch {
	struct tm_batch *next;
	struct tm_heap *home; /* [const] who has it back once it is empty */
	uint64_t count;
	uint64_t pad;
	void *slot[TM_BATCH_SLOTS];
};
_Static_assert(sizeof(struct tm_batch) == 512, "eight batches a page");

/* Slots that this thread freed for one other heap. */
struct tm_magazine {
	uintptr_t owner; /* TM_MAGAZINE_NOBODY: none */
	struct tm_batch *batch;
	uint32_t count;
	int32_t room; /* bytes that still fit */
	uint64_t pad;
};
#define TM_MAGAZINE_NOBODY ((uintptr_t)1)

/* What a thread needs once it frees for others; in memory of its own. */
#define TM_MAGAZINES 64u
struct tm_outbox {
	struct tm_magazine magazine[TM_MAGAZINES];
	struct tm_batch *empty; /* [owner] */
	uint32_t batches;       /* [owner] made so far */
};

/* Hand a chain over at once. Any thread, any context. */
void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last);

TM_INLINE struct tm_magazine *tm_remote_magazine(struct tm_outbox *box, uintptr_t owner)
{
	return &box->magazine[owner / TM_HEAP_STRIDE % TM_MAGAZINES];
}

/* True: it is full now and wants to be handed over. The magazine is this owner's. */
TM_INLINE bool tm_remote_collect(struct tm_magazine *m, void *slot, uint16_t charge)
{
	uint32_t n = m->count;

	m->batch->slot[n] = slot;
	m->count = ++n;
	m->room -= charge;
	return m->room < 0 || n == TM_BATCH_SLOTS;
}

void tm_remote_hand_over(struct tm_heap *mine, struct tm_magazine *m);
/* The same at the end of the fast path, which jumps here. */
void tm_remote_hand_over_and_leave(uintptr_t word, struct tm_magazine *m);

/* Collect one slot, whose entry says free; hands over when full. `mine` is held by the caller. */
void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, uint16_t charge);

/* Hand over everything that is collected. */
void tm_remote_flush(struct tm_heap *mine);

/* Whether it holds slots of others. Any thread; a hint. */
bool tm_remote_collects(const struct tm_heap *h);

/* Whether others pushed something to this heap. */
TM_INLINE bool tm_remote_waits(const struct tm_heap *h)
{
	return atomic_load_explicit(&h->remote, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&h->batches, memory_order_relaxed) != NULL;
}

/* Distribute what others pushed to this heap onto its lists. Returns the number of slots. */
size_t tm_remote_drain(struct tm_heap *h);

#endif
