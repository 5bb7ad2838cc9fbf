/* SPDX-License-Identifier: MIT */
/*
 * purge: gives free memory back to the kernel.
 *
 * Memory that the running program still uses now and then stays. Per part and tick the fewest
 * wholly free units are recorded (a low-water mark). The lowest mark of the last decay is surplus:
 * units that the program did not need in all that time. They go back oldest first, in whole 2 MiB
 * units. Free granules of units that are otherwise in use go back once nothing happened in their
 * unit for a decay. A floor of free memory stays. Where enough was taken meanwhile for the part's
 * swing to be known, its surplus goes at once (swing.h).
 *
 * The kernel is called without any lock held: the pages are first cut out of the free memory, and
 * return to it as pages known to be zero. Where the kernel refuses (locked pages, a filter), they
 * return unchanged and are not tried again until they have been used.
 *
 * tm_purge_tick may be called by the helper, or by any thread when there is none; while one call is
 * in progress, others return at once. All functions take the lock PURGE, then EXTENT or LARGE.
 */
#ifndef TM_HEAP_PURGE_H
#define TM_HEAP_PURGE_H

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

#define TM_PURGE_TICK_MS 100u
#define TM_PURGE_USUAL_DECAY_MS 500u

struct tm_purge_policy {
	size_t keep_bytes; /* free bytes of the part that stay; SIZE_MAX: auto */
	uint32_t decay_ms; /* how long memory must be unneeded before it goes; UINT32_MAX: auto */
};

struct tm_purge_options {
	/* off: only on request and when memory runs out; eager: all of it, at each tick */
	enum tm_giveback giveback;
	struct tm_purge_policy policy[TM_PART_COUNT];
};

/* Set the policies, before threads exist. Without this call everything is auto. */
void tm_purge_configure(const struct tm_purge_options *options);

/*
 * One tick: purge what a decay did not need. If the last tick was less than TM_PURGE_TICK_MS ago,
 * only what that one left is purged. Returns the bytes that later ticks may give back: 0 when there
 * is nothing to wait for.
 */
size_t tm_purge_tick(uint64_t now_ms);

/*
 * Purge the surplus of all parts by their swing (swing.h), without waiting for a decay. For the
 * helper, which is woken for it.
 */
void tm_purge_surplus(void);

/*
 * The same two for the program's own threads, at most TM_PURGE_CALLER_BYTES per call (about half a
 * millisecond of small pages); the next caller continues. tm_purge_longest: the most bytes that one
 * such call gave back.
 */
#define TM_PURGE_CALLER_BYTES ((size_t)8 << 20)
void tm_purge_tick_by_caller(uint64_t now_ms);
void tm_purge_surplus_by_caller(void);
size_t tm_purge_longest(void);

/* Purge all free memory of all parts now. Returns the bytes given back. */
size_t tm_purge_now(void);

/* The same for the parts of one tier; slots of all tiers belong to the session tier here. */
size_t tm_purge_tier(enum tm_tier tier);

/*
 * For extent.c: `part` is about to make `fresh` pages resident for a request of `pages` pages,
 * while other parts have idle resident memory. A part of blocks takes over free units of another
 * part. The part of spans does not take units of blocks, since small objects would soon be
 * scattered among blocks: instead, as much idle memory of blocks is purged as becomes resident for
 * spans. If no units were taken over, freed ranges of grown blocks are purged too.
 *
 * tm_purge_others_idle says whether other parts have enough idle memory; it takes no lock.
 * tm_purge_use_others does it; the caller holds no part's lock. True: units were taken over, so the
 * part may have room now.
 */
bool tm_purge_others_idle(enum tm_part part, size_t fresh);
bool tm_purge_use_others(enum tm_part part, size_t pages, size_t fresh);

/*
 * The kernel gives no more memory for a part: purge and unmap everything free, and hand free units
 * of other parts to this one. True if a second try may succeed. The caller holds no lock.
 */
bool tm_purge_rescue(enum tm_part part);

/* Bytes of free memory that may be resident, in all parts. Takes no lock; approximate. */
size_t tm_purge_retained(void);

/* The helper is started when more idle memory than this exists. */
#define TM_PURGE_KICK_BYTES ((size_t)32 << 20)

/* Who calls tm_purge_tick. */
enum tm_purge_mode {
	TM_PURGE_ALONE,      /* nobody: give-back is off, or not started yet */
	TM_PURGE_WATCHED,    /* nobody yet: passing TM_PURGE_KICK_BYTES starts the helper */
	TM_PURGE_TICKING,    /* the helper */
	TM_PURGE_BY_CALLERS, /* threads of the program, one in some calls that take or give memory */
};

/*
 * Enter TM_PURGE_WATCHED if memory is to be given back. `help` starts a helper, `hurry` wakes it
 * for a surplus; both are called without any lock held.
 */
void tm_purge_watch(void (*help)(void), void (*hurry)(void));
void tm_purge_set_mode(enum tm_purge_mode mode);
enum tm_purge_mode tm_purge_mode(void);

/*
 * Other work waits for the helper (pools to be filled): start it, or wake it. False: there is none,
 * the caller does the work. With any locks held.
 */
bool tm_purge_call_helper(void);

/*
 * To be called after memory was given to a part, without any lock held. `event` is a running count
 * of such calls; it need not be exact. Where no helper ticks, the clock is read once per
 * TM_PURGE_EVENTS_PER_LOOK events.
 */
#define TM_PURGE_EVENTS_PER_LOOK 64u
void tm_purge_notice(uint64_t event);

bool tm_purge_gives_back(void); /* TIERMALLOC_GIVEBACK is not off */
bool tm_purge_is_eager(void);   /* it is eager */

/* What was configured for a part. */
const struct tm_purge_policy *tm_purge_policy_of(enum tm_part part);

/* [purge.c] Note that a part has a surplus. Take the note: true if there was one. */
void tm_purge_note_surplus(void);
bool tm_purge_take_surplus(void);

/* At boot: registers the lock with the fork handlers before anybody can fork. */
void tm_purge_init(void);

#endif
