/* SPDX-License-Identifier: MIT */
/*
 * phase: is the program loading, or is it serving? Told from the stream of requests above 1 KiB alone.
 *
 * Loading is known by large blocks that stay. They come in bursts: the phase is loading from the
 * start, until large blocks make up a good part of what lives and the burst is over, which is when the
 * next large block is late by several times the gap that was usual within the burst. From then on it
 * is serving. Programs without such bursts serve once what lives has been turned over several times
 * without growing. A single block twice as large as all that lives is a model that came late: loading again.
 *
 * Threads count their requests themselves and hand the numbers over once in a while. No clock, no lock:
 * all words are advisory, and a lost update costs a late verdict.
 */
#ifndef TM_POLICIES_PHASE_H
#define TM_POLICIES_PHASE_H

#include <stdatomic.h>

#include "policies/rules.h"
#include "shim/base/attrs.h"

/* Requests from here on are looked at one by one. */
#define TM_PHASE_LARGE_BYTES ((size_t)256 << 10)
/* And from here on a single one may be a model that came late. */
#define TM_PHASE_MODEL_BYTES ((size_t)16 << 20)

/* [owner] What a thread has not handed over yet. */
struct tm_phase_local {
	uint64_t born_bytes, died_bytes;
	uint64_t large_bytes; /* large ones born less those that died, where nobody looked closer */
};

/* [atomic] all of them; zeros are the start: loading. */
struct tm_phase {
	_Atomic uint32_t kind;   /* enum tm_phase_kind; 0 counts as loading */
	_Atomic uint32_t events; /* requests */
	_Atomic uint64_t born_bytes, died_bytes;
	_Atomic uint64_t large_bytes; /* alive */
	_Atomic uint32_t
		last_large; /* `events` at the last large birth that may be a part of a load */
	_Atomic uint32_t usual_gap;  /* requests between two of them within a burst, times 16 */
	_Atomic uint64_t level;      /* bytes that lived when they last rose */
	_Atomic uint64_t level_born; /* and what was born until then */
	_Atomic uint32_t told;       /* 1: the program says where its steps are */
	_Atomic uint32_t changes;    /* of kind */
};

TM_INLINE enum tm_phase_kind tm_phase_now(const struct tm_phase *phase)
{
	return atomic_load_explicit(&phase->kind, memory_order_relaxed) == TM_PHASE_SERVE
		       ? TM_PHASE_SERVE
		       : TM_PHASE_LOAD;
}

/* Hands the thread's notes over, of so many requests, and judges. */
void tm_phase_flush(struct tm_phase *phase, struct tm_phase_local *local, uint32_t requests);

/* A large block is asked for, or dies; the notes were handed over before. */
void tm_phase_large_born(struct tm_phase *phase, uint64_t bytes);
/* It is of a site that is not known to be temporary. */
void tm_phase_large_kept(struct tm_phase *phase);
void tm_phase_large_died(struct tm_phase *phase, uint64_t bytes);

/* The program says where a step begins (tiermalloc_step, tiermalloc_session_begin): serving. */
void tm_phase_step(struct tm_phase *phase);

#endif
