/* SPDX-License-Identifier: MIT */
/*
 * tier: what the heap knows of tiers: which part serves which tier, what each tier holds, and its
 * ceiling. policies/ decide which request gets which tier; here a tier is a number in a granule's
 * entry.
 *
 * Persistent blocks above 64 KiB have a part of the zone to themselves if they were asked for, and
 * so have temporary ones (tm_tier_part). Slots up to 64 KiB share spans of one part; a span belongs
 * to the tier that small requests have when the span begins, except for slots that a rule or a call
 * asked for in a tier (annex.h).
 *
 * Any thread may call; counters are relaxed, and exact once threads stand still.
 */
#ifndef TM_HEAP_TIER_H
#define TM_HEAP_TIER_H

#include <stdatomic.h>

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

struct tm_tier_state {
	uint64_t max_bytes;           /* [const after boot] UINT64_MAX: no ceiling */
	_Atomic uint64_t block_bytes; /* requested bytes of blocks above 64 KiB */
	_Atomic uint64_t span_bytes;  /* bytes of spans */
	/* largest sum of the two; in TM_TIER_ALL of all tiers together */
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t refused; /* requests refused, beyond the ceiling */
	_Atomic bool told;        /* tm_tier_tell_refusal has */
} TM_ALIGNED(TM_CACHE_LINE);

extern TM_HIDDEN struct tm_tier_state tm_tiers[TM_TIER_COUNT];

/* The tier of new spans: persistent while the program loads, then session. */
extern TM_HIDDEN _Atomic uint8_t tm_tier_of_spans;

/* TIERMALLOC=observe: tiers are recorded, but all blocks lie in the session tier's part. */
extern TM_HIDDEN bool tm_tier_observe;

/*
 * Which rules choose a tier for requests of 1 to 64 KiB: enum tm_tier_ruled. Bits are set, never
 * cleared. Requests of the last class (SOLO) don't read their row, so while a rule concerns them no
 * thread's heap may have free slots of that class.
 */
enum tm_tier_ruled { TM_TIER_RULED = 1, TM_TIER_RULED_SOLO = 2 };
extern TM_HIDDEN _Atomic uint8_t tm_tier_ruled;

TM_INLINE bool tm_tier_is_ruled(void)
{
	return atomic_load_explicit(&tm_tier_ruled, memory_order_relaxed) != 0;
}

/* [const after boot] Some setting is specific to the temporary tier. */
extern TM_HIDDEN bool tm_tier_temporary_apart;

/* Who chose the tier: the user or program (a rule, a call, a setting of that tier), or a policy. */
enum tm_tier_choice { TM_TIER_GUESSED, TM_TIER_ASKED };

/*
 * The part for a block. Blocks that are persistent only by a guess, because the program loads or
 * its model came from there, share a part with session blocks, and so do temporary ones unless
 * their tier was asked for. What dies within a step leaves room that the next step needs whatever
 * its tier is: parts of their own held a quarter more memory on tensor churn with no fault less.
 */
TM_INLINE enum tm_part tm_tier_part(enum tm_tier tier, enum tm_tier_choice choice)
{
	if (tm_tier_observe)
		return TM_PART_LARGE;
	if (tier == TM_TIER_PERSISTENT)
		return choice == TM_TIER_ASKED ? TM_PART_PERSISTENT : TM_PART_LARGE;
	return tier == TM_TIER_TEMPORARY && (choice == TM_TIER_ASKED || tm_tier_temporary_apart)
		       ? TM_PART_TEMPORARY
		       : TM_PART_LARGE;
}

/* The tier whose settings apply to a part. */
TM_INLINE enum tm_tier tm_tier_of_part(enum tm_part part)
{
	return part == TM_PART_PERSISTENT  ? TM_TIER_PERSISTENT
	       : part == TM_PART_TEMPORARY ? TM_TIER_TEMPORARY
					   : TM_TIER_SESSION;
}

/* Before threads exist. */
void tm_tier_configure(const uint64_t max_bytes[TM_TIER_COUNT]);

/* Whether `bytes` more may live in the tier. A false is counted as a refusal. */
bool tm_tier_admits(enum tm_tier tier, size_t bytes);

/* The same without counting. */
bool tm_tier_has_room(enum tm_tier tier, size_t bytes);

/*
 * To be called once a request of so many bytes has failed: if that was the first refusal by a
 * tier's ceiling, says so in one line. It writes to descriptor 2, which may block: not under a lock,
 * nor while the heap is in use.
 */
void tm_tier_tell_refusal(size_t bytes);

/* Requests refused; TM_TIER_ALL: by all tiers. */
uint64_t tm_tier_refused(enum tm_tier tier);

/* Count a block's requested bytes, or a span's bytes, as they come and go. */
void tm_tier_add_block(enum tm_tier tier, size_t bytes);
void tm_tier_sub_block(enum tm_tier tier, size_t bytes);
void tm_tier_add_span(enum tm_tier tier, size_t bytes);
void tm_tier_sub_span(enum tm_tier tier, size_t bytes);

#endif
