/* SPDX-License-Identifier: MIT */
/*
 * swing: estimates how much of a part's idle memory (free, but still resident) the program will
 * want again, so that the rest can go back to the kernel at once.
 *
 * A decay clock would have to wait half a second. Sessions that begin and end hundreds of times in
 * that time leave a third more resident than is live, while a program whose steps end as often
 * needs all of that memory. So time is measured in memory taken, not in seconds:
 *
 * - The low-water mark of idle memory over the last 64 to 128 MiB taken was not needed.
 * - Except that as much stays as the program gave up and took again (a rebound of its working
 *   set) within the last 256 to 512 MiB taken; of a program that works in steps, for longer.
 * - Where a request makes memory resident although other memory is idle, because the idle pieces
 *   are too small, the part owes that much: idle memory of the same size may go. Where that happens
 *   often, more idle memory stays.
 *
 * Pure arithmetic on the numbers of one part, in 4 KiB pages; the caller holds that part's lock.
 * Calls nothing else.
 */
#ifndef TM_HEAP_SWING_H
#define TM_HEAP_SWING_H

#include "shim/base/attrs.h"

struct tm_swing {
	uint64_t taken;    /* pages taken since the start */
	uint64_t low_from; /* value of `taken` when the current low window began */
	uint64_t low;      /* fewest idle pages in the current low window */
	uint64_t low_before;
	uint64_t back_from; /* value of `taken` when the current back window began */
	/* most pages in use since back_from, or earlier while a step may be under way */
	uint64_t peak;
	uint64_t trough;   /* fewest pages in use since the peak */
	uint32_t peak_age; /* back windows since the peak */
	/* largest rebound in the current back window: pages given up and taken again */
	uint64_t back;
	uint64_t back_before;
	uint64_t cold; /* pages made resident by requests in the current back window */
	uint64_t cold_before;
	/* pages made resident while as many were idle elsewhere; less what was purged since */
	uint64_t debt;
};

/*
 * Record the part's state after `taken` more pages were handed out (0: after a free). True: a low
 * window ended or the debt is large, so the caller should ask for the surplus.
 */
bool tm_swing_note(struct tm_swing *s, uint64_t used, uint64_t idle, uint64_t taken);

/*
 * Record that `pages` pages were taken again that had been given back last, which changes nothing
 * but the length of windows. False: nothing was recorded, since a window ends.
 */
bool tm_swing_again(struct tm_swing *s, uint64_t pages);

/* Record that a request is about to make `pages` resident while `idle` pages are idle. */
void tm_swing_cold(struct tm_swing *s, uint64_t pages, uint64_t idle);

/* Idle pages that may be purged now; at least `keep` idle pages stay. */
uint64_t tm_swing_surplus(const struct tm_swing *s, uint64_t used, uint64_t idle, uint64_t keep);

/* True for a program that works in steps: the last rebounds reach a quarter of the peak. */
bool tm_swing_is_step(const struct tm_swing *s);

/* Record that `pages` idle pages were purged. */
void tm_swing_purged(struct tm_swing *s, uint64_t pages);

#endif
