/* SPDX-License-Identifier: MIT */
/*
 * trace_format: the file that TIERMALLOC_TRACE makes the library write. 'tiermalloc trace' converts
 * it into the portable format of 'tiermalloc replay' (tests/data/traces/README.md). Native byte
 * order.
 *
 * The magic word, followed by records in the order in which the threads appended them: sorted by
 * time only within a thread. TM_TRACE_RECORD_TEXT is followed by `size` bytes of text: lines of
 * /proc/PID/maps.
 */
#ifndef TM_BASE_TRACE_FORMAT_H
#define TM_BASE_TRACE_FORMAT_H

#include "shim/base/attrs.h"

#define TM_TRACE_RECORD_MAGIC UINT64_C(0x31445243455254d) /* "MTRECRD1", as a number */

/* The values of the portable format. */
enum tm_trace_record_op {
	TM_TRACE_RECORD_MALLOC = 1,
	TM_TRACE_RECORD_CALLOC,
	TM_TRACE_RECORD_REALLOC,
	TM_TRACE_RECORD_ALIGNED,
	TM_TRACE_RECORD_NEW,
	TM_TRACE_RECORD_FREE,
	TM_TRACE_RECORD_DELETE,
	TM_TRACE_RECORD_MARK, /* with pointer = 1: a step begins */
	TM_TRACE_RECORD_TEXT = 0x80,
};

struct tm_trace_record {
	uint64_t time_ns;
	uint64_t pointer, old; /* old: realloc's argument */
	uint64_t size;         /* requested bytes */
	uint64_t site;         /* return address */
	uint32_t height;       /* stack height, bytes */
	uint32_t thread;
	uint8_t op;
	uint8_t align_log2;
	uint8_t unused[6];
};
_Static_assert(sizeof(struct tm_trace_record) == 56, "layout");

#endif
