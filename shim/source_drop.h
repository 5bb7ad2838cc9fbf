/* SPDX-License-Identifier: MIT */
/*
 * source_drop: TIERMALLOC_SOURCE_DROP=1. Once the program serves, the resident pages of mapped model
 * files go whose bytes were repacked into allocated memory; policies/source.h says which and when. Only
 * mappings of files that can neither be written nor hold pages of the process's own are touched: what
 * is dropped is in the file, and comes back from the page cache when it is read.
 *
 * Costs nothing where it is not asked for. Any thread may call; one at a time works, others return.
 */
#ifndef TM_SOURCE_DROP_H
#define TM_SOURCE_DROP_H

#include "shim/base/attrs.h"

/* At boot. */
void tm_source_drop_init(void);

/* The program begins to serve. The caller holds its heap and no lock. */
void tm_source_drop_begin(void);

/* The helper's tick. Returns whether there is something left to wait for. */
bool tm_source_drop_tick(uint64_t now_ms);

/* [const after boot] */
extern TM_HIDDEN bool tm_source_drop_wanted;

/* A request that policies decide about: where no helper may run, it does what is due. */
void tm_source_drop_pass_slow(void);
TM_INLINE void tm_source_drop_pass(void)
{
	if (TM_UNLIKELY(tm_source_drop_wanted))
		tm_source_drop_pass_slow();
}

#endif
