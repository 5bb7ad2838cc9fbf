/* SPDX-License-Identifier: MIT */
/*
 * recent: the blocks that were given back last to each part of blocks, kept whole for the next
 * requests of their length, which programs that allocate and free in a loop make at once. Such a
 * block is not coalesced and needs no search, a third of the instructions.
 *
 * Kept blocks are free memory: free_pages contains them. In the unit table they still count as
 * used, so they are never purged or handed over. Whoever else takes the part's lock (tm_extent_lock)
 * makes them ordinary free memory first, above all a request that finds no block of its length here
 * and each tick of a purge, so what is placed where does not depend on them otherwise.
 *
 * Any thread may call, without a lock held.
 */
#ifndef TM_HEAP_RECENT_H
#define TM_HEAP_RECENT_H

#include "shim/heap/large.h"
#include "shim/heap/zone.h"

/* Longer blocks are not kept: their cost is that of their pages. */
#define TM_RECENT_BLOCK_PAGES TM_UNIT_PAGES
/* Most pages that a part keeps this way. */
#define TM_RECENT_PAGES (2 * TM_UNIT_PAGES)

/* As tm_extent_give, for a whole block of a part of blocks. */
void tm_recent_give(enum tm_part part, void *start, size_t pages);

/* A kept block of exactly this length; NULL: there is none. */
void *tm_recent_take(enum tm_part part, size_t pages, enum tm_fill fill);

#endif
