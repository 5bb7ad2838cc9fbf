/* SPDX-License-Identifier: MIT */
/*
 * tier: what the heap knows of tiers: which part serves which, what each holds, and its ceiling. Who
 * gets which tier is decided above (policies/); here it is a number in the granule's entry.
 *
 * Persistent blocks above 64 KiB have a part of the zone to themselves, temporary ones where that was
 * asked for (tm_tier_part). Slots up to 64 KiB share spans
 * of one part, and a span belongs to the tier that small requests have when it begins, but for those
 * that somebody asked for a tier (annex.h).
 * Any thread; counters are relaxed, and exact once threads stand still.
 */
#ifndef TM_HEAP_TIER_H
#define TM_HEAP_TIER_H

#include <stdatomic.h>

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

struct tm_tier_state {
	uint64_t max_bytes;           /* [const after boot] UINT64_MAX: no ceiling */
	_Atomic uint64_t block_bytes; /* requested, of blocks above 64 KiB */
	_Atomic uint64_t span_bytes;  /* of spans */
	_Atomic uint64_t peak_bytes; /* largest sum of the two; TM_TIER_ALL: of all tiers at once */
	_Atomic uint64_t refused;    /* requests beyond the ceiling */
} TM_ALIGNED(TM_CACHE_LINE);

extern TM_HIDDEN struct tm_tier_state tm_tiers[TM_TIER_COUNT];

/* The tier of new spans: persistent while the program loads, then session. */
extern TM_HIDDEN _Atomic uint8_t tm_tier_of_spans;

/* TIERMALLOC=observe: tiers are noted, everything lies in the part of the session tier. */
extern TM_HIDDEN bool tm_tier_observe;

/*
 * Rules that choose a tier for requests of 1 to 64 KiB: enum tm_tier_ruled. Only set, never cleared.
 * Requests of the last class do not look at their row, so that for them there is no free slot in any
 * thread's heap while some rule is about them.
 */
enum tm_tier_ruled { TM_TIER_RULED = 1, TM_TIER_RULED_SOLO = 2 };
extern TM_HIDDEN _Atomic uint8_t tm_tier_ruled;

TM_INLINE bool tm_tier_is_ruled(void)
{
	return atomic_load_explicit(&tm_tier_ruled, memory_order_relaxed) != 0;
}

/* [const after boot] Some setting is for the temporary tier alone. */
extern TM_HIDDEN bool tm_tier_temporary_apart;

/* Who chose the tier: the program (a rule, a call, settings of that tier), or what was learned. */
enum tm_tier_choice { TM_TIER_GUESSED, TM_TIER_ASKED };

/*
 * Blocks of which nothing is known but that the program loads, or that its model came from there,
 * session and temporary blocks share a part where nobody asked for anything else: what dies within a
 * step leaves room that the next step needs whatever its tier, and a part of its own held a quarter
 * more memory on tensor churn with no fault less.
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

/* Whose settings hold for a part. */
TM_INLINE enum tm_tier tm_tier_of_part(enum tm_part part)
{
	return part == TM_PART_PERSISTENT  ? TM_TIER_PERSISTENT
	       : part == TM_PART_TEMPORARY ? TM_TIER_TEMPORARY
					   : TM_TIER_SESSION;
}

/* Before threads exist. */
void tm_tier_configure(const uint64_t max_bytes[TM_TIER_COUNT]);

/* Whether so much more may live in the tier; no is counted as a refusal. */
bool tm_tier_admits(enum tm_tier tier, size_t bytes);

/* The same question, and nothing is counted. */
bool tm_tier_has_room(enum tm_tier tier, size_t bytes);

/* Requests beyond the ceiling; TM_TIER_ALL: of all tiers. */
uint64_t tm_tier_refused(enum tm_tier tier);

/* A block's requested bytes come, or go. */
void tm_tier_add_block(enum tm_tier tier, size_t bytes);
void tm_tier_sub_block(enum tm_tier tier, size_t bytes);
void tm_tier_add_span(enum tm_tier tier, size_t bytes);
void tm_tier_sub_span(enum tm_tier tier, size_t bytes);

#endif
