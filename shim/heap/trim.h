/* SPDX-License-Identifier: MIT */
/*
 * trim: gives back what a heap holds but does not use.
 *
 * A look walks the heap's lists, counts the free slots per span and releases spans that are free as
 * a whole: bookkeeping, no system call; the memory stays with the part for the next span. A deep
 * look also parks the slots of wholly free pages in spans that are partly used, and gives those
 * pages to the kernel.
 *
 * Whoever calls must hold the heap: its owner (busy), the helper that stole it from a sleeping
 * thread, or anyone under the heaps lock for an orphan.
 */
#ifndef TM_HEAP_TRIM_H
#define TM_HEAP_TRIM_H

#include "shim/heap/heap.h"

enum tm_trim_depth {
	TM_TRIM_SPANS, /* wholly free spans */
	TM_TRIM_PAGES, /* and wholly free pages of others */
};

/* Returns the bytes of released spans and pages. TM_TRIM_PAGES: the caller holds tm_trim_lock. */
size_t tm_trim_heap(struct tm_heap *h, enum tm_trim_depth depth);

/* Held while a heap is stolen or has slots in motion; the fork handlers take it. */
void tm_trim_lock(void);
void tm_trim_unlock(void);
void tm_trim_init(void);

/*
 * Memory is short: what lies unused in this heap and in orphans goes back to the parts, and all free
 * memory to the kernel. Takes tm_trim_lock. Returns the bytes.
 */
size_t tm_trim_for_memory(struct tm_heap *h);

/*
 * The heap is about to grow: wholly free spans of this heap, of orphans and, once per 32 MiB, of
 * heaps whose threads sleep go back to the parts. No memory goes to the kernel. Returns the bytes.
 */
size_t tm_trim_before_growth(struct tm_heap *h);

/* The same for a block, no more often than every 8 MiB of growth. */
void tm_trim_before_block(struct tm_heap *h, enum tm_part part, size_t bytes);

/* Put parked slots of the class back onto the heap's empty list. False if there are none. */
bool tm_trim_unpark(struct tm_heap *h, unsigned klass);

/* Release everything that a span's parking holds, before the span itself is released. */
void tm_trim_forget(struct tm_heap *h, struct tm_granule *head);
uint32_t tm_trim_parked(const struct tm_granule *head);

/* Entries of parked slots say that they are free, see inherit.h. */
void tm_trim_parked_are_free(const struct tm_granule *head);

/*
 * The helper's tick: trims orphans, and heaps whose threads have been asleep in a system call since
 * the last look. Returns the bytes released, and those of large heaps whose threads still work: 0
 * says that there is nothing to stay for.
 */
size_t tm_trim_heaps(uint64_t now_ms);

/* Trims heaps that nobody owns; takes the heaps lock. */
size_t tm_trim_orphans(void);

/*
 * The caller waits until the helper is done with its heap. False: the heap was stolen before a raw
 * fork, whose child has no such helper.
 */
bool tm_trim_wait(struct tm_heap *h);

#endif
