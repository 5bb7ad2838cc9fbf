/* SPDX-License-Identifier: MIT */
/*
 * sizes: how many blocks of each exact size there are and were at once, in the ledger: what fixed
 * pools are cut from. Of blocks of whole pages (above 64 KiB) each is told. Slots of 4 to 64 KiB are not
 * told of one by one, which would cost their fast path a fifth: they are counted with everything else
 * once a second (census.c), so that of them the live ones are exact at those moments, the most at once is
 * that of those moments, and how many there were is what is certain: all objects of sites that only ever
 * asked for this size. TIERMALLOC_LEDGER=deep tells of each.
 */
#ifndef TM_SIZES_H
#define TM_SIZES_H

#include "shim/base/attrs.h"

void tm_sizes_init(void);

#define TM_SIZES_FROM ((size_t)4 << 10)

/* A block begins, ends. Any thread; the lock of new sizes ranks SITES. */
void tm_sizes_add(uint64_t size, unsigned tier);
void tm_sizes_remove(uint64_t size);

/* A count of all slots, under the lock of samples.c: begin, each slot, what is certain by site, end. */
void tm_sizes_census_begin(void);
void tm_sizes_census_slot(uint64_t size, unsigned tier);
void tm_sizes_census_site(uint64_t size, uint64_t objects);
void tm_sizes_census_end(void);

/* In a forked child: a table of its own follows. */
void tm_sizes_fork_child(void);

#endif
