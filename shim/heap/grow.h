/* SPDX-License-Identifier: MIT */
/*
 * grow: blocks that realloc grew past 1 MiB, such as a KV cache. Each has an address range of its own
 * with room behind it, of which only the front is mapped, in whole 2 MiB units of huge pages. So it
 * grows in place without a copy; beyond its range it moves by mremap, which moves page tables.
 *
 * Owns the ranges, in metadata. Freed ranges wait with their memory for the next block and are given
 * back when nobody wanted them (tm_grow_tick). Any thread may call; one lock (rank LARGE), which is
 * not held while pages are copied.
 *
 * Invariant (tm_grow_check): the mapped units of a range are its first ones; a range that is not in
 * use is on one list; their bytes are counted.
 */
#ifndef TM_HEAP_GROW_H
#define TM_HEAP_GROW_H

#include "shim/heap/zone.h"

struct tm_range;

/*
 * A range for so many bytes from its start, of a block that had old_bytes; contents undefined; NULL: no
 * memory.
 */
struct tm_range *tm_grow_alloc(size_t bytes, size_t old_bytes);

/* Where the range starts, a multiple of 2 MiB. */
void *tm_grow_start(const struct tm_range *range);

/*
 * The range's block from now on ends so far from its start. Returns the range that it then lies in: this one, or
 * another to which its pages have been moved; NULL: no memory, nothing has changed.
 */
struct tm_range *tm_grow_resize(struct tm_range *range, size_t bytes);

void tm_grow_free(struct tm_range *range);

/* Gives back what was not used for so many ticks. Returns the bytes that later ticks may give back. */
size_t tm_grow_tick(uint32_t ticks, size_t keep_bytes, size_t bytes_max);

/* Gives back about so many units of freed ranges, those that have waited longest. Returns the bytes. */
size_t tm_grow_give(size_t units);

/* Gives back all that no block covers. Returns the bytes. */
size_t tm_grow_release(void);

/* Mapped bytes that no block covers; no lock, approximate. */
size_t tm_grow_retained(void);

/* Bytes mapped in all. */
size_t tm_grow_mapped(void);

const char *tm_grow_check(void);

/* Forget everything; tests only. */
void tm_grow_clear(void);

/* At boot: the lock must be in the fork handlers' walk before anybody forks. */
void tm_grow_init(void);

#endif
