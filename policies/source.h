/* SPDX-License-Identifier: MIT */
/*
 * source: when the resident pages of a mapped model file may go (TIERMALLOC_SOURCE_DROP). Engines that
 * repack weights read the file once, through a mapping, and leave it resident; engines that compute on
 * the mapping read it in each step. Which of the two it is shows only by trying, and a try costs little:
 * a sample of the pages is dropped; what is read comes back with the program's next steps. If the sample
 * stays away, the rest goes, and is looked at once more.
 *
 * Pure: values in, decision out.
 */
#ifndef TM_POLICIES_SOURCE_H
#define TM_POLICIES_SOURCE_H

#include "shim/base/attrs.h"

/* Smaller mappings are no models. */
#define TM_SOURCE_MIN_BYTES ((uint64_t)16 << 20)
/* One part of the mapping in so many is the sample, in pieces of so many bytes. */
#define TM_SOURCE_SAMPLE_ONE_IN 16u
#define TM_SOURCE_PIECE_BYTES ((uint64_t)2 << 20)
/* CPU time that the program takes between two looks: idle time says nothing about what is read. */
#define TM_SOURCE_WORK_MS 300u

enum tm_source_state {
	TM_SOURCE_NEW,
	TM_SOURCE_SAMPLED, /* the sample was dropped */
	TM_SOURCE_DROPPED, /* all was */
	TM_SOURCE_GONE,    /* and it stayed away: done */
	TM_SOURCE_READ     /* it is read: left alone for good */
};

enum tm_source_action { TM_SOURCE_NOTHING, TM_SOURCE_DROP_SAMPLE, TM_SOURCE_DROP_ALL };

/* One per mapping, zeroed. After an action the caller tells what it did with tm_source_dropped. */
struct tm_source_file {
	uint8_t state;      /* enum tm_source_state */
	uint64_t worked_ms; /* when the last look was, in CPU time */
	uint64_t resident;  /* what was left after the last action */
	uint64_t dropped;   /* what the last action took away */
};

struct tm_source_view {
	uint64_t resident;  /* of the mapping, now */
	uint64_t sources;   /* of all such mappings, before anything was dropped */
	uint64_t allocated; /* live in blocks: what the bytes may have been repacked into */
	uint64_t worked_ms; /* CPU time of the process */
};

/* Asked now and then while the program serves. */
enum tm_source_action tm_source_decide(struct tm_source_file *source,
				       const struct tm_source_view *view);

/* The action was carried out: what is resident now. */
void tm_source_dropped(struct tm_source_file *source, uint64_t resident);

/* There is nothing left to wait for. */
bool tm_source_is_done(const struct tm_source_file *source);

#endif
