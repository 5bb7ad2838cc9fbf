/* SPDX-License-Identifier: MIT */
/*
 * purge: giving free memory back to the kernel.
 *
 * While work goes on, nothing that it needs is given back: per part the fewest wholly free units
 * since the last tick are noted, and what the last decay's ticks never needed is surplus. It goes
 * back oldest first, in whole 2 MiB units. Free granules of units that are in use otherwise go back
 * once nothing happened in their unit for a decay. A floor of free memory stays. Where so much was taken
 * meanwhile that its swing is known, the surplus goes at once (swing.h).
 *
 * The kernel is called without any lock: the pages are cut out of the free memory before, and return
 * to it as known zeros. Where the kernel refuses (locked pages, a filter), they return as they were
 * and are not tried again until they have been used.
 *
 * tm_purge_tick: from the helper, or from any caller when there is none; a second caller returns at
 * once. All functions take the locks PURGE, then EXTENT or LARGE.
 */
#ifndef TM_HEAP_PURGE_H
#define TM_HEAP_PURGE_H

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

#define TM_PURGE_TICK_MS 100u
#define TM_PURGE_USUAL_DECAY_MS 500u

struct tm_purge_policy {
	size_t keep_bytes; /* free memory that stays; SIZE_MAX: auto */
	uint32_t decay_ms; /* so long unneeded before it goes; UINT32_MAX: auto */
};

struct tm_purge_options {
	enum tm_giveback
		giveback; /* off: on request and when memory runs out; eager: at each tick */
	struct tm_purge_policy policy[TM_PART_COUNT];
};

/* Before threads exist, or never: then auto. */
void tm_purge_configure(const struct tm_purge_options *options);

/*
 * Does nothing until a tick has passed since the last one. Returns the bytes that later ticks may
 * give back: 0 when there is nothing left to wait for.
 */
size_t tm_purge_tick(uint64_t now_ms);

/*
 * What the parts' swing says that nobody needs (swing.h) goes back, without waiting for a decay. For the
 * helper, which is woken for it.
 */
void tm_purge_surplus(void);

/*
 * Both, by a thread of the program's: no more than TM_PURGE_CALLER_BYTES at once, half a millisecond of small
 * pages; whoever comes next goes on. tm_purge_longest: the most that one gave back.
 */
#define TM_PURGE_CALLER_BYTES ((size_t)8 << 20)
void tm_purge_tick_by_caller(uint64_t now_ms);
void tm_purge_surplus_by_caller(void);
size_t tm_purge_longest(void);

/* All free memory of all parts goes back now. Returns the bytes given back. */
size_t tm_purge_now(void);

/* The same of one tier's parts; slots of all tiers count as the session's. */
size_t tm_purge_tier(enum tm_tier tier);

/*
 * A part is about to get new memory while others have some idle that is resident. Blocks take over
 * what spans don't use. The other way round small objects would soon be strewn among the blocks: what
 * blocks don't use goes back instead, as much as comes new, and so do freed ranges of grown blocks. `fresh` pages are about to be new, `pages`
 * wanted together. tm_purge_others_idle takes no lock, the other wants none of a part held; true: memory
 * may have come.
 */
bool tm_purge_others_idle(enum tm_part part, size_t fresh);
bool tm_purge_use_others(enum tm_part part, size_t pages, size_t fresh);

/*
 * Memory can't be had for a part: give all back, and make the free units of other parts its own. True
 * if a second try may succeed. No lock may be held.
 */
bool tm_purge_rescue(enum tm_part part);

/* Free memory that may be resident, all parts; no lock, approximate. */
size_t tm_purge_retained(void);

/* Idle memory beyond this is worth a helper. */
#define TM_PURGE_KICK_BYTES ((size_t)32 << 20)

/* Who ticks. */
enum tm_purge_mode {
	TM_PURGE_ALONE,      /* nobody: give-back is off, or not begun */
	TM_PURGE_WATCHED,    /* nobody yet: the free that passes the threshold calls for help */
	TM_PURGE_TICKING,    /* a helper */
	TM_PURGE_BY_CALLERS, /* whoever takes or gives memory, now and then */
};

/* From now on help is called, or told that there is a surplus; off all locks. */
void tm_purge_watch(void (*help)(void), void (*hurry)(void));
void tm_purge_set_mode(enum tm_purge_mode mode);
enum tm_purge_mode tm_purge_mode(void);

/* After memory was given, off all locks. event counts them, roughly. */
void tm_purge_notice(uint64_t event);

bool tm_purge_gives_back(void); /* TIERMALLOC_GIVEBACK is not off */

/* [purge.c] A part has a surplus; true: one has, or had. */
void tm_purge_note_surplus(void);
bool tm_purge_take_surplus(void);

/* At boot: the lock must be in the fork handlers' walk before anybody forks. */
void tm_purge_init(void);

#endif
