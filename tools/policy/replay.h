/* SPDX-License-Identifier: MIT */
/*
 * replay: runs the library's policy code over a recorded trace and reports the decisions. If the
 * trace has step marks, each block's true tier follows from its lifetime and the decisions are
 * judged by it; the policies do not see the marks.
 *
 * True tier: temporary = freed within the step of its birth or the next; persistent = born before
 * the first step and not freed before the last; scratch of loading = born and freed before the
 * first step (persistent and temporary are both right); session = everything else.
 *
 * A wrong tier does not always mean a wrong place: session blocks, large temporary blocks, and
 * blocks that are persistent only because the program is loading share one part.
 */
#ifndef TM_TOOLS_REPLAY_H
#define TM_TOOLS_REPLAY_H

#include "policies/route.h"
#include "tools/policy/trace_file.h"

enum tm_replay_truth {
	TM_TRUTH_TEMPORARY,
	TM_TRUTH_SESSION,
	TM_TRUTH_PERSISTENT,
	TM_TRUTH_SCRATCH,
	TM_TRUTH_COUNT
};

struct tm_replay_sum {
	uint64_t requests, bytes;
};

/* Results for one call site. */
struct tm_replay_site {
	struct tm_trace_frame frame;
	struct tm_replay_sum tier[TM_TIER_COUNT];
	uint64_t bytes, wrong_bytes;
	uint8_t authority; /* authority for the last request */
};

struct tm_replay {
	uint64_t small;                           /* requests up to 1 KiB */
	struct tm_replay_sum tier[TM_TIER_COUNT]; /* 0: all */
	struct tm_replay_sum by[TM_AUTHORITY_COUNT];
	uint64_t end_ns;
	uint32_t phase_changes;
	uint64_t serving_from_ns; /* time of the last change to serving; UINT64_MAX: never */
	uint64_t loading_bytes;   /* bytes decided in the loading phase after the first step */
	/* from step marks */
	uint32_t steps;
	uint64_t first_step_ns;
	/* all requests above 1 KiB; those judged right */
	struct tm_replay_sum judged, right;
	/* requests after the begin of the first step */
	struct tm_replay_sum judged_serving, right_serving;
	/* bytes with a wrong tier, by true and chosen tier */
	uint64_t mistaken[TM_TRUTH_COUNT][TM_TIER_COUNT];
	uint64_t misplaced_bytes; /* bytes in a wrong place */
	/* arenas: temporary blocks up to half an arena block in size */
	uint64_t arena_dead_bytes;    /* largest number of bytes held beyond live ones... */
	uint64_t arena_live_bytes;    /* ...and the live bytes at that moment */
	uint64_t arena_over_bytes;    /* largest excess of dead bytes over max(2 MiB, live) */
	uint64_t arena_held_bytes;    /* most held at any time */
	struct tm_replay_site *sites; /* owned; most bytes first */
	uint32_t site_count;
};

struct tm_replay_options {
	struct tm_rules *rules; /* NULL: none */
	bool steps;             /* pass the marks to the policies, as tiermalloc_step does */
};

/* Returns 0, or -1 after one line on standard error. */
int tm_replay_run(struct tm_replay *ret, const struct tm_trace *trace,
		  const struct tm_replay_options *options);
void tm_replay_free(struct tm_replay *replay);

#endif
