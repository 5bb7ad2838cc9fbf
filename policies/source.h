/* SPDX-License-Identifier: MIT */
/*
 * source: decides when the resident pages of a mapped model file may be dropped
 * (TIERMALLOC_SOURCE_DROP). An engine that repacks weights reads the file once through a mapping
 * and leaves it resident; an engine that computes on the mapping reads it in each step. Only a
 * trial tells the two apart, and it costs little: a sample of the pages is dropped, and pages that
 * are in use come back in the program's next steps. If the sample stays away, the rest is dropped
 * and checked once more.
 *
 * Pure: values in, decision out.
 */
#ifndef TM_POLICIES_SOURCE_H
#define TM_POLICIES_SOURCE_H

#include "shim/base/attrs.h"

/* Mappings smaller than this are not taken for models. */
#define TM_SOURCE_MIN_BYTES ((uint64_t)16 << 20)
/* The sample is 1/16 of the mapping, in pieces of TM_SOURCE_PIECE_BYTES. */
#define TM_SOURCE_SAMPLE_ONE_IN 16u
#define TM_SOURCE_PIECE_BYTES ((uint64_t)2 << 20)
/*
 * CPU time that the process must use between two looks: while it idles nothing shows which pages it
 * reads.
 */
#define TM_SOURCE_WORK_MS 300u

enum tm_source_state {
	TM_SOURCE_NEW,
	TM_SOURCE_SAMPLED, /* the sample was dropped */
	TM_SOURCE_DROPPED, /* all pages were dropped */
	TM_SOURCE_GONE,    /* they stayed away: done */
	TM_SOURCE_READ     /* the file is in use: left alone for good */
};

enum tm_source_action { TM_SOURCE_NOTHING, TM_SOURCE_DROP_SAMPLE, TM_SOURCE_DROP_ALL };

/* One per mapping, zeroed. After an action the caller reports it by tm_source_dropped. */
struct tm_source_file {
	uint8_t state;      /* enum tm_source_state */
	uint64_t worked_ms; /* CPU time of the process at the last look */
	uint64_t resident;  /* bytes resident after the last action */
	uint64_t dropped;   /* bytes that the last action dropped */
};

struct tm_source_view {
	uint64_t resident;  /* resident bytes of the mapping, now */
	uint64_t sources;   /* bytes of all such mappings, before any drop */
	uint64_t allocated; /* live bytes in blocks, where repacked weights would be */
	uint64_t worked_ms; /* CPU time of the process */
};

/* Says what to do with a mapping; called now and then while the program serves. */
enum tm_source_action tm_source_decide(struct tm_source_file *source,
				       const struct tm_source_view *view);

/* Reports that the action was carried out and how many bytes are resident now. */
void tm_source_dropped(struct tm_source_file *source, uint64_t resident);

/* Whether the mapping needs no further look. */
bool tm_source_is_done(const struct tm_source_file *source);

#endif
