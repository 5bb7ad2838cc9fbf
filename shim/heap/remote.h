/* SPDX-License-Identifier: MIT */
/*
 * remote: slots freed by a thread that does not own their heap (remote frees).
 *
 * The freeing thread collects pointers in a batch, an array of its own, and does not touch the
 * slots: what the owner last wrote into them stays in the owner's cache. A full batch is handed
 * over by one atomic push. When one of its lists runs dry, the owner takes all batches with one
 * exchange, links the slots into its lists, and pushes each empty batch back to the heap it came
 * from. Where no batch can be had, in signal handlers and past a thread's end, slots are linked and
 * pushed as a chain.
 *
 * Magazines (one per owner that this thread frees for) belong to the busy caller; pushes are
 * lock-free and safe in signal handlers.
 */
#ifndef TM_HEAP_REMOTE_H
#define TM_HEAP_REMOTE_H

#include "shim/heap/heap.h"

/*
 * Capacity of a magazine: 64 KiB of slots, each charged at least 1 KiB, and no more slots than a
 * batch holds. That much memory is out of its owner's reach. It takes .03 to .1 atomic operations
 * per slot up to 8 KiB.
 */
#define TM_MAGAZINE_ROOM (64 << 10)
#define TM_BATCH_SLOTS 60u

/* A batch of slots, handed between threads. 512 bytes. */
struct tm_batch {
	struct tm_batch *next;
	struct tm_heap *home; /* [const] the heap it returns to once it is empty */
	uint64_t count;
	uint64_t pad;
	void *slot[TM_BATCH_SLOTS];
};
_Static_assert(sizeof(struct tm_batch) == 512, "eight batches a page");

/* Slots that this thread freed into one other heap and has not handed over. */
struct tm_magazine {
	uintptr_t owner; /* TM_MAGAZINE_NOBODY: none */
	struct tm_batch *batch;
	uint32_t count;
	int32_t room; /* bytes of charge that still fit */
	uint64_t pad;
};
#define TM_MAGAZINE_NOBODY ((uintptr_t)1)

/* A thread's state for remote frees; allocated at its first one. */
#define TM_MAGAZINES 64u
struct tm_outbox {
	struct tm_magazine magazine[TM_MAGAZINES];
	struct tm_batch *empty; /* [owner] batches ready for use */
	uint32_t batches;       /* [owner] made so far */
};

/* Push a chain of slots to their owner. Any thread, any context. */
void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last);

TM_INLINE struct tm_magazine *tm_remote_magazine(struct tm_outbox *box, uintptr_t owner)
{
	return &box->magazine[owner / TM_HEAP_STRIDE % TM_MAGAZINES];
}

/* Add a slot of the magazine's owner. True: the magazine is full now and must be handed over. */
TM_INLINE bool tm_remote_collect(struct tm_magazine *m, void *slot, uint16_t charge)
{
	uint32_t n = m->count;

	m->batch->slot[n] = slot;
	m->count = ++n;
	m->room -= charge;
	return m->room < 0 || n == TM_BATCH_SLOTS;
}

void tm_remote_hand_over(struct tm_heap *mine, struct tm_magazine *m);
/* The same as the tail of the fast path, which jumps here: leaves the heap too. */
void tm_remote_hand_over_and_leave(uintptr_t word, struct tm_magazine *m);

/*
 * Collect one slot, whose entry already says free; hands the magazine over when full. The caller
 * holds `mine`.
 */
void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, uint16_t charge);

/* Hand over all magazines. */
void tm_remote_flush(struct tm_heap *mine);

/* Whether the heap's magazines hold slots. Any thread; a hint. */
bool tm_remote_collects(const struct tm_heap *h);

/* Whether other threads pushed slots to this heap that it has not linked. */
TM_INLINE bool tm_remote_waits(const struct tm_heap *h)
{
	return atomic_load_explicit(&h->batches_rest, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&h->remote_rest, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&h->remote, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&h->batches, memory_order_relaxed) != NULL;
}

/*
 * Link the slots that other threads pushed into the heap's lists. The caller holds the heap.
 * Returns the number of slots. The second form is for requests: it links TM_DRAIN_SLOTS, or a batch
 * more, .3 ms if none is cached; the others wait for the next call.
 */
#define TM_DRAIN_SLOTS 1024u
size_t tm_remote_drain(struct tm_heap *h);
size_t tm_remote_drain_some(struct tm_heap *h);

#endif
