/* SPDX-License-Identifier: MIT */
/*
 * dense: decides which blocks get transparent huge pages.
 *
 * A huge page under memory that a program reserves but hardly touches makes 2 MiB resident for
 * every byte touched: an engine that touched 70 of 456 MiB held 309 (H58); its small blocks were
 * full and its large ones nearly empty. So blocks are classified by length, in bands of powers of
 * two. A band starts on small pages. Its blocks are sampled for how much of them is resident after
 * two further blocks of the band have come, whether they are still live or already free. While a
 * band's blocks are full, MADV_HUGEPAGE is given for its next blocks before their first touch.
 * Blocks of 32 MiB and more that were not requested zeroed are weights and caches: they get huge
 * pages at once.
 *
 * A sample is one mincore(2): for a band's first 64 samples every block, then one block in 16. None
 * is taken under a system call filter (H68).
 *
 * All counters are relaxed atomics, since several parts may note blocks at once; see each function
 * for the lock it needs.
 */
#ifndef TM_HEAP_DENSE_H
#define TM_HEAP_DENSE_H

#include "shim/base/attrs.h"
#include "shim/heap/large.h"

/*
 * [part lock] The part is about to hand out these pages, some of which are not resident: sample an
 * older block of the band, and advise or decline huge pages for this one.
 */
void tm_dense_note(enum tm_part part, uint32_t page, size_t pages);

/*
 * [part lock] The same for pages that a growing block gets: a longer copy of it, or its extension
 * in place. What it held so far was written, and the rest will be. So these pages get huge pages at
 * once if the part is large enough that a few units more don't matter, and enough was grown before;
 * buffers that grow row by row would otherwise fault for every row.
 */
void tm_dense_grown(enum tm_part part, uint32_t page, size_t pages);

/*
 * [purge lock] At each tick, before anything is purged: sample the blocks that have waited since
 * the previous tick. If a program rests between its steps, they would be purged before further
 * blocks of their bands come.
 */
void tm_dense_tick(void);

/*
 * A block of `pages` pages at p, owned by the caller, was handed out: advise its whole units if it
 * is 32 MiB or longer. Takes no lock.
 */
void tm_dense_born(void *p, size_t pages, enum tm_fill fill);

void tm_dense_clear(void);

#endif
