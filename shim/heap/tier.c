/* SPDX-License-Identifier: MIT */
#include "shim/heap/tier.h"

#include "shim/base/fmt.h"
#include "shim/os/msg.h"

struct tm_tier_state tm_tiers[TM_TIER_COUNT] = {
	[TM_TIER_ALL] = {.max_bytes = UINT64_MAX},
	[TM_TIER_PERSISTENT] = {.max_bytes = UINT64_MAX},
	[TM_TIER_SESSION] = {.max_bytes = UINT64_MAX},
	[TM_TIER_TEMPORARY] = {.max_bytes = UINT64_MAX},
};
_Atomic uint8_t tm_tier_of_spans = TM_TIER_PERSISTENT;
_Atomic uint8_t tm_tier_ruled;
bool tm_tier_observe;
bool tm_tier_temporary_apart;

TM_AT_START_CODE void tm_tier_configure(const uint64_t max_bytes[TM_TIER_COUNT])
{
	for (int i = TM_TIER_PERSISTENT; i < TM_TIER_COUNT; i++)
		tm_tiers[i].max_bytes = max_bytes[i];
}

static uint64_t live(const struct tm_tier_state *t)
{
	return atomic_load_explicit(&t->block_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&t->span_bytes, memory_order_relaxed);
}

bool tm_tier_has_room(enum tm_tier tier, size_t bytes)
{
	const struct tm_tier_state *t = &tm_tiers[tier];
	uint64_t held;

	if (TM_LIKELY(t->max_bytes == UINT64_MAX))
		return true;
	held = live(t);
	return held <= t->max_bytes && bytes <= t->max_bytes - held;
}

bool tm_tier_admits(enum tm_tier tier, size_t bytes)
{
	if (TM_LIKELY(tm_tier_has_room(tier, bytes)))
		return true;
	atomic_fetch_add_explicit(&tm_tiers[tier].refused, 1, memory_order_relaxed);
	return false;
}

void tm_tier_tell_refusal(size_t bytes)
{
	for (int i = TM_TIER_PERSISTENT; i < TM_TIER_COUNT; i++) {
		struct tm_tier_state *t = &tm_tiers[i];
		char limit[24], held[24];

		if (atomic_load_explicit(&t->refused, memory_order_relaxed) == 0 ||
		    atomic_exchange_explicit(&t->told, true, memory_order_relaxed))
			continue;
		tm_fmt_size(limit, sizeof(limit), t->max_bytes);
		tm_fmt_bytes(held, sizeof(held), live(t));
		tm_msg(TM_MSG_WARN,
		       "%s=%s: a request of %zu bytes was refused (ENOMEM), the tier holds %s; "
		       "further ones are only counted",
		       tm_tunables_rows[TM_TUNABLE_TIERMALLOC_PERSISTENT_MAX + i -
					TM_TIER_PERSISTENT]
			       .name,
		       limit, bytes, held);
	}
}
_Static_assert(TM_TUNABLE_TIERMALLOC_TEMPORARY_MAX - TM_TUNABLE_TIERMALLOC_PERSISTENT_MAX ==
		       TM_TIER_TEMPORARY - TM_TIER_PERSISTENT,
	       "the variables are in the order of the tiers");

static void raise_peak(struct tm_tier_state *t, uint64_t now)
{
	uint64_t peak = atomic_load_explicit(&t->peak_bytes, memory_order_relaxed);

	while (now > peak &&
	       !atomic_compare_exchange_weak_explicit(&t->peak_bytes, &peak, now,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

static void note_peak(struct tm_tier_state *t)
{
	uint64_t all = 0;

	for (int i = TM_TIER_PERSISTENT; i < TM_TIER_COUNT; i++)
		all += live(&tm_tiers[i]);
	raise_peak(t, live(t));
	raise_peak(&tm_tiers[TM_TIER_ALL], all);
}

void tm_tier_add_block(enum tm_tier tier, size_t bytes)
{
	atomic_fetch_add_explicit(&tm_tiers[tier].block_bytes, bytes, memory_order_relaxed);
	note_peak(&tm_tiers[tier]);
}

void tm_tier_sub_block(enum tm_tier tier, size_t bytes)
{
	atomic_fetch_sub_explicit(&tm_tiers[tier].block_bytes, bytes, memory_order_relaxed);
}

void tm_tier_add_span(enum tm_tier tier, size_t bytes)
{
	atomic_fetch_add_explicit(&tm_tiers[tier].span_bytes, bytes, memory_order_relaxed);
	note_peak(&tm_tiers[tier]);
}

void tm_tier_sub_span(enum tm_tier tier, size_t bytes)
{
	atomic_fetch_sub_explicit(&tm_tiers[tier].span_bytes, bytes, memory_order_relaxed);
}

uint64_t tm_tier_refused(enum tm_tier tier)
{
	uint64_t sum = 0;

	if (tier != TM_TIER_ALL)
		return atomic_load_explicit(&tm_tiers[tier].refused, memory_order_relaxed);
	for (unsigned i = TM_TIER_ALL + 1; i < TM_TIER_COUNT; i++)
		sum += tm_tier_refused((enum tm_tier)i);
	return sum;
}
