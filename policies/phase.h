/* SPDX-License-Identifier: MIT */
/*
 * phase: is the program loading, or is it serving? Told from the stream of requests above 1 KiB alone.
 *
 * Each thread notes its requests in a tm_phase_local, which costs two additions and a compare; once in
 * a while that is handed to the shared tm_phase, and the verdict may change. No clock, no lock.
 */
#ifndef TM_POLICIES_PHASE_H
#define TM_POLICIES_PHASE_H

#include <stdatomic.h>

#include "policies/rules.h"
#include "shim/base/attrs.h"

/* [owner] */
struct tm_phase_local {
	uint64_t born_bytes, died_bytes; /* since the last hand-over */
	uint64_t known_bytes; /* of them: asked for by call sites that have freed before */
	uint32_t events;
};

/* [atomic] all fields; zeros are the start: loading. */
struct tm_phase {
	_Atomic uint32_t kind; /* enum tm_phase_kind; 0 counts as loading */
	_Atomic uint64_t born_bytes, died_bytes, known_bytes;
	_Atomic uint64_t mark_born, mark_died, mark_known; /* at the start of the window */
	_Atomic uint64_t peak_bytes;
	_Atomic uint32_t quiet; /* windows in a row that look like serving */
	_Atomic uint32_t lock;  /* one thread at a time judges, others go on */
};

TM_INLINE enum tm_phase_kind tm_phase_now(const struct tm_phase *phase)
{
	return atomic_load_explicit(&phase->kind, memory_order_relaxed) == TM_PHASE_SERVE
		       ? TM_PHASE_SERVE
		       : TM_PHASE_LOAD;
}

/* Hands the thread's notes over and judges. */
void tm_phase_flush(struct tm_phase *phase, struct tm_phase_local *local);

/* The program says where a step begins (tiermalloc_step, tiermalloc_session_begin): serving. */
void tm_phase_step(struct tm_phase *phase);

#endif
