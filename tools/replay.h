/* SPDX-License-Identifier: MIT */
/*
 * replay: runs the policy code of the library over a recorded trace and says what would go where.
 * Where the trace has marks of steps, each block's true tier is known from its life, and what the
 * policies chose is judged by it; the policies are not told of the marks.
 *
 * True tier: temporary = freed within the step it was born in or the next; persistent = born before
 * the first step and not freed before the last; scratch of loading = born and freed before the first
 * step (persistent and temporary are both right for it); session = everything else.
 *
 * A wrong tier is a wrong place only for some: session blocks, large temporary ones and those that are
 * persistent only because the program loads lie side by side.
 */
#ifndef TM_TOOLS_REPLAY_H
#define TM_TOOLS_REPLAY_H

#include "policies/route.h"
#include "tools/trace_file.h"

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

/* What became of one call site's requests. */
struct tm_replay_site {
	struct tm_trace_frame frame;
	struct tm_replay_sum tier[TM_TIER_COUNT];
	uint64_t bytes, wrong_bytes;
	uint8_t authority; /* of the last request */
};

struct tm_replay {
	uint64_t small;                           /* requests up to 1 KiB */
	struct tm_replay_sum tier[TM_TIER_COUNT]; /* 0: all */
	struct tm_replay_sum by[TM_AUTHORITY_COUNT];
	uint64_t end_ns;
	uint32_t phase_changes;
	uint64_t serving_from_ns; /* the last change to serving; UINT64_MAX: never */
	uint64_t loading_bytes;   /* decided while the phase was loading, after the first step */
	/* marks */
	uint32_t steps;
	uint64_t first_step_ns;
	struct tm_replay_sum judged, right;                 /* all requests above 1 KiB */
	struct tm_replay_sum judged_serving, right_serving; /* those after the first step's begin */
	uint64_t mistaken[TM_TRUTH_COUNT][TM_TIER_COUNT];   /* bytes, wrong ones alone */
	uint64_t misplaced_bytes;                           /* that lie where they should not */
	/* arenas: temporary blocks up to half an arena block */
	uint64_t arena_dead_bytes;    /* most bytes held beyond what lived... */
	uint64_t arena_live_bytes;    /* ...and what lived then */
	uint64_t arena_over_bytes;    /* most that dead bytes were beyond max(2 MiB, live) */
	uint64_t arena_held_bytes;    /* most held at any time */
	struct tm_replay_site *sites; /* owned; most bytes first */
	uint32_t site_count;
};

struct tm_replay_options {
	struct tm_rules *rules; /* NULL: none */
	bool steps;             /* marks are told to the policies, as tiermalloc_step does */
};

/* 0; or -1 after one line on standard error. */
int tm_replay_run(struct tm_replay *ret, const struct tm_trace *trace,
		  const struct tm_replay_options *options);
void tm_replay_free(struct tm_replay *replay);

#endif
