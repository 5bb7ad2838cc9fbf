/* SPDX-License-Identifier: MIT */
/*
 * swing: how much of a part's free memory the program wants again. A clock would have to wait for half
 * a second: sessions that begin and end hundreds of times in it leave a third more resident than is
 * live, and steps that end as often need all of that. So time is counted in memory taken: idle at its
 * fewest over the last 256 MiB was no need of the program's, unless in the last GiB more than that was
 * given up and wanted back. And where new memory is taken because what is idle lies in too small pieces,
 * as much of that may go; where it happens often, more must stay.
 *
 * Arithmetic on one part's numbers, in pages, under that part's lock. Calls nothing.
 */
#ifndef TM_HEAP_SWING_H
#define TM_HEAP_SWING_H

#include "shim/base/attrs.h"

struct tm_swing {
	uint64_t taken;    /* over all time */
	uint64_t low_from; /* when the window began, in pages taken */
	uint64_t low;      /* fewest idle in it */
	uint64_t low_before;
	uint64_t back_from;
	uint64_t peak;     /* most in use since then, or before if all of it may come again */
	uint64_t trough;   /* least in use since the peak */
	uint32_t peak_age; /* in windows */
	uint64_t back;     /* most that was in use, given up and taken again */
	uint64_t back_before;
	uint64_t cold; /* taken that was not resident, since then */
	uint64_t cold_before;
	uint64_t debt; /* the same while as much lay idle elsewhere, and has not gone since */
};

/* So much is in use and idle now, after so much more was taken. True: a window ends, look. */
bool tm_swing_note(struct tm_swing *s, uint64_t used, uint64_t idle, uint64_t taken);

/* So much is about to be taken that is not resident, while so much is idle. */
void tm_swing_cold(struct tm_swing *s, uint64_t pages, uint64_t idle);

/* What may go back at once of the idle pages, if so many stay at least. */
uint64_t tm_swing_surplus(const struct tm_swing *s, uint64_t used, uint64_t idle, uint64_t keep);

/* Lately a quarter of all and more was given up and taken again. */
bool tm_swing_is_step(const struct tm_swing *s);

/* It went. */
void tm_swing_purged(struct tm_swing *s, uint64_t pages);

#endif
