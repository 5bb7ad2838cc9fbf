/* SPDX-License-Identifier: MIT */
/* phase: see phase.h. */
#include "policies/phase.h"

/* A window ends after this many bytes; in a window of serving nearly as much dies as is born. */
#define WINDOW_BYTES (UINT64_C(8) << 20)
#define QUIET_WINDOWS 2u

static uint64_t get(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static void put(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static void judge(struct tm_phase *p)
{
	uint64_t born = get(&p->born_bytes) - get(&p->mark_born);
	uint64_t died = get(&p->died_bytes) - get(&p->mark_died);

	if (born < WINDOW_BYTES)
		return;
	put(&p->mark_born, get(&p->born_bytes));
	put(&p->mark_died, get(&p->died_bytes));
	if (died < born / 4 * 3) {
		atomic_store_explicit(&p->quiet, 0, memory_order_relaxed);
		return;
	}
	if (atomic_fetch_add_explicit(&p->quiet, 1, memory_order_relaxed) + 1 >= QUIET_WINDOWS)
		atomic_store_explicit(&p->kind, TM_PHASE_SERVE, memory_order_relaxed);
}

void tm_phase_flush(struct tm_phase *phase, struct tm_phase_local *local)
{
	uint32_t free = 0;

	atomic_fetch_add_explicit(&phase->born_bytes, local->born_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&phase->died_bytes, local->died_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&phase->known_bytes, local->known_bytes, memory_order_relaxed);
	*local = (struct tm_phase_local){0};
	if (!atomic_compare_exchange_strong_explicit(&phase->lock, &free, 1, memory_order_acquire,
						     memory_order_relaxed))
		return;
	judge(phase);
	atomic_store_explicit(&phase->lock, 0, memory_order_release);
}

void tm_phase_step(struct tm_phase *phase)
{
	atomic_store_explicit(&phase->kind, TM_PHASE_SERVE, memory_order_relaxed);
}
