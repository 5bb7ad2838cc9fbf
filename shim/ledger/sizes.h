/* SPDX-License-Identifier: MIT */
/*
 * sizes: the ledger's table of exact block sizes of 4 KiB and more: live count, peak and total of
 * each; the basis for choosing fixed pools. Blocks of whole pages (above 64 KiB) are counted one by
 * one. Slots of 4 to 64 KiB are not, as that would cost 20 % of their fast path: the census counts
 * them once a second. So for slots the live count is exact at those moments, the peak is the
 * highest of those counts, and the total is a lower bound: the objects of sites that have only ever
 * requested this size. With TIERMALLOC_LEDGER=deep slots are counted one by one too.
 */
#ifndef TM_SIZES_H
#define TM_SIZES_H

#include "shim/base/attrs.h"

void tm_sizes_init(void);

#define TM_SIZES_FROM ((size_t)4 << 10)

/* Count a block's allocation and free. Any thread; a new size takes a lock of rank SITES. */
void tm_sizes_add(uint64_t size, unsigned tier);
void tm_sizes_remove(uint64_t size);

/*
 * A census of the slots, under the lock of samples.c. In this order: begin; slot for each live
 * slot; site for each site with a single size; end.
 */
void tm_sizes_census_begin(void);
void tm_sizes_census_slot(uint64_t size, unsigned tier);
void tm_sizes_census_site(uint64_t size, uint64_t objects);
void tm_sizes_census_end(void);

/* In a forked child: starts an empty table, for the child's own ledger. */
void tm_sizes_fork_child(void);

#endif
