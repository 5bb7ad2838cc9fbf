/* SPDX-License-Identifier: MIT */
/*
 * purge_mode: which thread gives memory back, when it is called, and what the user wants of it. See
 * purge.h.
 */
#include "shim/heap/collapse.h"
#include "shim/heap/grow.h"
#include "shim/heap/part.h"
#include "shim/heap/purge.h"
#include "shim/os/clock.h"

#define AUTO_KEEP_BYTES ((size_t)4 << 20)

static void (*call_help)(void); /* [const after watch] */
static void (*call_hurry)(void);
static _Atomic uint32_t surplus; /* enum surplus */
enum surplus { SURPLUS_NONE, SURPLUS_WAITS, SURPLUS_TOLD };
static _Atomic uint32_t mode; /* enum tm_purge_mode */

static struct tm_purge_options options TM_AT_START_DATA; /* [const after configure] */
static bool configured;

const struct tm_purge_policy *tm_purge_policy_of(enum tm_part part)
{
	static const struct tm_purge_policy automatic = {AUTO_KEEP_BYTES, TM_PURGE_USUAL_DECAY_MS};

	return configured ? &options.policy[part] : &automatic;
}

TM_AT_START_CODE void tm_purge_configure(const struct tm_purge_options *wanted)
{
	options = *wanted;
	for (int i = 0; i < TM_PART_COUNT; i++) {
		struct tm_purge_policy *p = &options.policy[i];

		if (p->keep_bytes == SIZE_MAX)
			p->keep_bytes = AUTO_KEEP_BYTES;
		if (p->decay_ms == UINT32_MAX)
			p->decay_ms = TM_PURGE_USUAL_DECAY_MS;
		if (options.giveback == TM_GIVEBACK_EAGER)
			*p = (struct tm_purge_policy){0, 0};
	}
	configured = true;
}

TM_AT_START_CODE bool tm_purge_gives_back(void)
{
	return !configured || options.giveback != TM_GIVEBACK_OFF;
}

bool tm_purge_is_eager(void)
{
	return configured && options.giveback == TM_GIVEBACK_EAGER;
}

void tm_purge_note_surplus(void)
{
	uint32_t none = SURPLUS_NONE;

	atomic_compare_exchange_strong(&surplus, &none, SURPLUS_WAITS);
}

bool tm_purge_take_surplus(void)
{
	return atomic_exchange(&surplus, SURPLUS_NONE) != SURPLUS_NONE;
}

TM_AT_START_CODE size_t tm_purge_retained(void)
{
	size_t units = 0, granules = 0, pages = 0;

	for (const struct tm_part_state *ps = tm_parts; ps < tm_parts + TM_PART_COUNT; ps++) {
		units += __atomic_load_n(&ps->whole.count, __ATOMIC_RELAXED);
		granules += __atomic_load_n(&ps->sparse_granules, __ATOMIC_RELAXED);
		pages += __atomic_load_n(&ps->recent_pages, __ATOMIC_RELAXED);
	}
	return tm_grow_retained() + (units << TM_UNIT_SHIFT) + (granules << TM_GRANULE_SHIFT) +
	       (pages << TM_PAGE_SHIFT);
}

void tm_purge_set_mode(enum tm_purge_mode now)
{
	atomic_store_explicit(&mode, now, memory_order_seq_cst);
}

TM_AT_START_CODE enum tm_purge_mode tm_purge_mode(void)
{
	return (enum tm_purge_mode)atomic_load_explicit(&mode, memory_order_relaxed);
}

TM_AT_START_CODE void tm_purge_watch(void (*help)(void), void (*hurry)(void))
{
	call_help = help;
	call_hurry = hurry;
	if (tm_purge_gives_back())
		tm_purge_set_mode(TM_PURGE_WATCHED);
}

/* Wake the helper once, however many frees happen until it comes. */
static TM_COLD void tell_helper(void)
{
	uint32_t waits = SURPLUS_WAITS;

	if (atomic_compare_exchange_strong(&surplus, &waits, SURPLUS_TOLD))
		call_hurry();
}

bool tm_purge_call_helper(void)
{
	enum tm_purge_mode before = tm_purge_mode();

	if (before != TM_PURGE_WATCHED && before != TM_PURGE_TICKING)
		return false;
	call_help();
	if (before == TM_PURGE_TICKING)
		call_hurry();
	return tm_purge_mode() == TM_PURGE_TICKING;
}

void tm_purge_notice(uint64_t event)
{
	switch (tm_purge_mode()) {
	case TM_PURGE_WATCHED:
		if (tm_purge_retained() > TM_PURGE_KICK_BYTES || tm_collapse_is_wanted())
			call_help();
		else if (event % TM_PURGE_EVENTS_PER_LOOK == 0)
			/* too little to start a helper for, so the program's own threads tick */
			tm_purge_tick_by_caller(tm_clock_ms());
		break;
	case TM_PURGE_TICKING:
		/*
		 * the helper may be gone: with the vfork child that started it, or in a raw fork's
		 * child (H46)
		 */
		if (event % TM_PURGE_EVENTS_PER_LOOK == 0)
			call_help();
		if (TM_UNLIKELY(atomic_load_explicit(&surplus, memory_order_relaxed) ==
				SURPLUS_WAITS))
			tell_helper();
		break;
	case TM_PURGE_BY_CALLERS:
		if (event % TM_PURGE_EVENTS_PER_LOOK == 0) {
			tm_purge_surplus_by_caller();
			tm_purge_tick_by_caller(tm_clock_ms());
		}
		break;
	case TM_PURGE_ALONE: break;
	}
}
