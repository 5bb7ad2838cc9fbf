/* SPDX-License-Identifier: MIT */
/*
 * trim: gives back what a heap holds but does not use.
 *
 * A trim walks the heap's free lists, counts the free slots per span, and releases spans that are
 * wholly free; then it parks the slots of wholly free pages in spans that are partly used, and gives
 * those pages to the kernel. It takes as long as there are free slots: threads of the program trim
 * only small heaps or when memory is short, and look for wholly free spans in steps (look.h) else.
 *
 * The caller must hold the heap: as its owner (busy), as the helper that stole it from a sleeping
 * thread, or under the heaps lock if it is an orphan.
 */
#ifndef TM_HEAP_TRIM_H
#define TM_HEAP_TRIM_H

#include "shim/heap/heap.h"

/*
 * Trim one heap. Returns the bytes of the spans and pages released. The caller holds tm_trim_lock.
 */
size_t tm_trim_heap(struct tm_heap *h);

/* Held while a heap is stolen or slots are between lists; the fork handlers take it. */
void tm_trim_lock(void);
void tm_trim_unlock(void);
void tm_trim_init(void);

/*
 * Memory is short: give what is unused in this heap, in orphans, in annexes and in heaps of
 * sleeping threads back to the parts, and all free memory of the parts to the kernel. Takes
 * tm_trim_lock. Returns the bytes.
 */
size_t tm_trim_for_memory(struct tm_heap *h);

/*
 * The heap is about to grow: give wholly free spans of this heap and what is free in orphans back
 * to the parts; once per 8 to 32 MiB of growth also what is free in heaps whose threads sleep. One
 * call does a bounded part of that; while tm_trim_goes_on, each growth is to call again. Takes
 * tm_trim_lock. Returns the bytes.
 */
size_t tm_trim_before_growth(struct tm_heap *h);
bool tm_trim_goes_on(const struct tm_heap *h);

/* Frees left room in many spans: look for wholly free ones. Goes on with a look that is on. */
void tm_trim_after_frees(struct tm_heap *h);

/*
 * The same before a block of this many bytes is taken from `part`, at most once per 8 MiB of
 * growth.
 */
void tm_trim_before_block(struct tm_heap *h, enum tm_part part, size_t bytes);

/* Put a span's parked slots back onto the heap's empty list. False: the class has none. */
bool tm_trim_unpark(struct tm_heap *h, unsigned klass);

/* Free the record of a span's parked slots, before the span itself is released. */
void tm_trim_forget(struct tm_heap *h, struct tm_granule *head);
uint32_t tm_trim_parked(const struct tm_granule *head);

/*
 * The helper's tick: trims orphans, and heaps whose threads are asleep in a system call and
 * allocated nothing since the last look. Returns the bytes released, plus the bytes of large heaps
 * whose threads still work: 0 says that the helper need not stay.
 */
size_t tm_trim_heaps(uint64_t now_ms);

/* Trim all orphans; takes the heaps lock. Returns the bytes. */
size_t tm_trim_orphans(void);

/*
 * Wait until the helper returns the caller's heap. False: the heap was stolen before a raw fork, in
 * whose child there is no such helper.
 */
bool tm_trim_wait(struct tm_heap *h);

#endif
