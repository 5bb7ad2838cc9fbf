/* SPDX-License-Identifier: MIT */
/*
 * source_drop: TIERMALLOC_SOURCE_DROP=1. Once the program serves, evicts the resident pages of
 * mapped model files whose contents were repacked into allocated memory; policies/source.h decides
 * which and when. Touches only read-only file mappings without private pages: the data stays in the
 * file and is faulted in again from the page cache if it is read.
 *
 * Free when not enabled. Any thread may call; one at a time does the work, the others return.
 */
#ifndef TM_SOURCE_DROP_H
#define TM_SOURCE_DROP_H

#include "shim/base/attrs.h"

/* At boot. */
void tm_source_drop_init(void);

/* The program begins to serve. The caller holds its heap and no lock. */
void tm_source_drop_begin(void);

/* The helper's tick. True: call again, there may be more to evict. */
bool tm_source_drop_tick(uint64_t now_ms);

/* [const after boot] */
extern TM_HIDDEN bool tm_source_drop_wanted;

/*
 * Called for requests that the policies route: does what is due if there can be no helper, else
 * starts the helper when it is overdue.
 */
void tm_source_drop_pass_slow(void);
TM_INLINE void tm_source_drop_pass(void)
{
	if (TM_UNLIKELY(tm_source_drop_wanted))
		tm_source_drop_pass_slow();
}

#endif
