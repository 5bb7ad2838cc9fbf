/* SPDX-License-Identifier: MIT */
/*
 * phase: is the program loading a model or serving requests? Derived from the stream of requests
 * above 1 KiB alone.
 *
 * The sign of loading is large blocks that stay, which come in bursts. The phase is loading from
 * the start of the process until large blocks make up a good part of the live bytes and the burst
 * is over, that is, until the next large block is late by several times the gap that was usual
 * within the burst. From then on it is serving. A program without such bursts is serving once its
 * live bytes have been turned over several times without growing. A single block twice as large as
 * all live bytes is a model that came late: the phase goes back to loading.
 *
 * Each thread counts its own requests and hands the counts over now and then. No clock, no lock:
 * all words are advisory, and a lost update only delays the verdict. Any thread may call; a struct
 * tm_phase_local belongs to one thread.
 */
#ifndef TM_POLICIES_PHASE_H
#define TM_POLICIES_PHASE_H

#include <stdatomic.h>

#include "policies/rules.h"
#include "shim/base/attrs.h"

/* Requests of at least this size are reported to the phase one by one. */
#define TM_PHASE_LARGE_BYTES ((size_t)256 << 10)
/* A single request of at least this size may be a model that came late. */
#define TM_PHASE_MODEL_BYTES ((size_t)16 << 20)

/* [owner] Counts of one thread that it has not handed over yet. */
struct tm_phase_local {
	uint64_t born_bytes, died_bytes;
	/* large bytes born less large bytes freed, of those not reported one by one */
	uint64_t large_bytes;
};

/* All fields are [atomic]. All zeros is the initial state: loading. */
struct tm_phase {
	_Atomic uint32_t kind;   /* enum tm_phase_kind; 0 counts as loading */
	_Atomic uint32_t events; /* requests above 1 KiB handed over so far */
	_Atomic uint64_t born_bytes, died_bytes;
	_Atomic uint64_t large_bytes; /* live bytes in large blocks */
	/* `events` at the last large birth not known to be temporary */
	_Atomic uint32_t last_large;
	/* usual requests between two such births within a burst, times 16 */
	_Atomic uint32_t usual_gap;
	_Atomic uint64_t level;      /* live bytes when they last rose by LEVEL_RISE (phase.c) */
	_Atomic uint64_t level_born; /* born_bytes at that moment */
	_Atomic uint32_t told;       /* 1: the program marks its steps */
	_Atomic uint32_t changes;    /* how often `kind` changed */
};

/* Current phase: TM_PHASE_LOAD or TM_PHASE_SERVE. */
TM_INLINE enum tm_phase_kind tm_phase_now(const struct tm_phase *phase)
{
	return atomic_load_explicit(&phase->kind, memory_order_relaxed) == TM_PHASE_SERVE
		       ? TM_PHASE_SERVE
		       : TM_PHASE_LOAD;
}

/*
 * Adds the thread's counts, of `requests` requests, to the phase, clears them and updates the
 * verdict.
 */
void tm_phase_flush(struct tm_phase *phase, struct tm_phase_local *local, uint32_t requests);

/*
 * A block of at least TM_PHASE_LARGE_BYTES is born, or dies. Before a birth is reported the caller
 * flushes its counts.
 */
void tm_phase_large_born(struct tm_phase *phase, uint64_t bytes);
/* The large block just born belongs to a site that is not known to be temporary. */
void tm_phase_large_kept(struct tm_phase *phase);
void tm_phase_large_died(struct tm_phase *phase, uint64_t bytes);

/*
 * The program marks the start of a step (tiermalloc_step, tiermalloc_session_begin): it is serving.
 */
void tm_phase_step(struct tm_phase *phase);

#endif
