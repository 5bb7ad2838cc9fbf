/* SPDX-License-Identifier: MIT */
/* phase: see phase.h. The constants were tuned on the traces in tests/data/traces. */
#include "policies/phase.h"

/* The burst is over when the next large block is late by this many times the usual gap... */
#define LATE 5u
/* ...but not before this many requests. */
#define LATE_MIN 6u
/* A gap of more requests than this does not count as a gap within a burst. */
#define GAP_MAX 64u
/*
 * A model has been loaded if large blocks make up 1/4 of the live bytes and at least this many
 * bytes.
 */
#define LOADED_SHARE 4u
#define LOADED_BYTES (UINT64_C(4) << 20)
/*
 * The live bytes stay on one level until they rise by 1/8. They are turned over once TURNOVER times
 * as many bytes, and at least TURNOVER_BYTES, were born on that level.
 */
#define LEVEL_RISE 8u
#define TURNOVER 4u
#define TURNOVER_BYTES (UINT64_C(16) << 20)
/*
 * A block this many times as large as all live bytes is a model that is loaded after all the
 * imports.
 */
#define MODEL_TIMES 2u

#define GET(at) atomic_load_explicit(&(at), memory_order_relaxed)
#define PUT(at, value) atomic_store_explicit(&(at), (value), memory_order_relaxed)
#define ADD(at, value) atomic_fetch_add_explicit(&(at), (value), memory_order_relaxed)

static void turn(struct tm_phase *p, enum tm_phase_kind kind)
{
	if (tm_phase_now(p) == kind)
		return;
	PUT(p->kind, (uint32_t)kind);
	ADD(p->changes, 1);
}

static bool is_loaded(struct tm_phase *p)
{
	uint64_t live = GET(p->born_bytes) - GET(p->died_bytes);

	return GET(p->large_bytes) >= LOADED_BYTES && GET(p->large_bytes) >= live / LOADED_SHARE;
}

/* Whether the burst of large blocks is over. */
static bool is_late(struct tm_phase *p)
{
	uint32_t gap = GET(p->events) - GET(p->last_large);
	uint32_t late = LATE * GET(p->usual_gap) / 16;

	return GET(p->last_large) != 0 && gap > (late > LATE_MIN ? late : LATE_MIN);
}

/* Whether several times the live bytes were born since they last rose. */
static bool is_turned_over(struct tm_phase *p)
{
	uint64_t born = GET(p->born_bytes), live = born - GET(p->died_bytes);
	uint64_t since = born - GET(p->level_born);

	if (live > GET(p->level) + GET(p->level) / LEVEL_RISE) {
		PUT(p->level, live);
		PUT(p->level_born, born);
		return false;
	}
	return since >= TURNOVER_BYTES && since >= TURNOVER * live;
}

static void judge(struct tm_phase *p)
{
	bool over = is_turned_over(p);

	if (tm_phase_now(p) == TM_PHASE_LOAD && (over || (is_late(p) && is_loaded(p))))
		turn(p, TM_PHASE_SERVE);
}

void tm_phase_flush(struct tm_phase *phase, struct tm_phase_local *local, uint32_t requests)
{
	ADD(phase->born_bytes, local->born_bytes);
	ADD(phase->died_bytes, local->died_bytes);
	ADD(phase->events, requests);
	if (local->large_bytes != 0)
		ADD(phase->large_bytes, local->large_bytes);
	*local = (struct tm_phase_local){0};
	judge(phase);
}

static void learn_gap(struct tm_phase *p, uint32_t gap)
{
	uint32_t usual = GET(p->usual_gap);

	if (gap <= GAP_MAX)
		PUT(p->usual_gap, usual - usual / 8 + gap * 2);
}

void tm_phase_large_born(struct tm_phase *phase, uint64_t bytes)
{
	uint64_t live = GET(phase->born_bytes) - GET(phase->died_bytes) - bytes;

	ADD(phase->large_bytes, bytes);
	if (bytes < TM_PHASE_MODEL_BYTES || bytes < MODEL_TIMES * live || GET(phase->told))
		return;
	PUT(phase->level_born, GET(phase->born_bytes));
	PUT(phase->usual_gap, 0); /* the next burst has its own usual gap */
	turn(phase, TM_PHASE_LOAD);
}

void tm_phase_large_kept(struct tm_phase *phase)
{
	uint32_t gap = GET(phase->events) - GET(phase->last_large);

	PUT(phase->last_large, GET(phase->events));
	learn_gap(phase, gap);
}

void tm_phase_large_died(struct tm_phase *phase, uint64_t bytes)
{
	ADD(phase->large_bytes, 0 - bytes);
}

void tm_phase_step(struct tm_phase *phase)
{
	PUT(phase->told, 1);
	turn(phase, TM_PHASE_SERVE);
}
