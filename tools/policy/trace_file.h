/* SPDX-License-Identifier: MIT */
/*
 * trace_file: reads a recorded trace (.tmt, format in tests/data/traces/README.md), plain or
 * compressed with xz. Nothing in the file is trusted.
 */
#ifndef TM_TOOLS_TRACE_FILE_H
#define TM_TOOLS_TRACE_FILE_H

#include "shim/base/attrs.h"
#include "shim/base/parse.h"

enum tm_trace_op {
	TM_TRACE_MALLOC = 1,
	TM_TRACE_CALLOC,
	TM_TRACE_REALLOC,
	TM_TRACE_ALIGNED,
	TM_TRACE_NEW,
	TM_TRACE_FREE,
	TM_TRACE_DELETE,
	TM_TRACE_MARK,
	TM_TRACE_MMAP,
	TM_TRACE_MUNMAP,
};

/* One event; 36 bytes in the file. */
struct tm_trace_event {
	uint64_t time_ns;
	uint64_t size;
	uint32_t object; /* 0: none; in a mark: 1 a step begins, 2 it ends */
	uint32_t previous;
	uint32_t stack;
	uint32_t height; /* bytes */
	uint16_t thread;
	uint8_t op;
	uint8_t align_log2;
};

struct tm_trace_frame {
	struct tm_str module;   /* file name; empty: unknown */
	struct tm_str build_id; /* hexadecimal; empty: unknown */
	uint64_t offset;
};

struct tm_trace {
	unsigned char *data; /* owned */
	size_t bytes;
	uint64_t event_count;
	uint32_t object_count; /* ids are 1..object_count */
	uint32_t *stack_top;   /* owned; index + 1 of each stack's innermost frame; 0: none */
	uint32_t stack_count;
	struct tm_trace_frame *frames; /* owned */
	uint32_t frame_count;
	bool has_build_ids; /* false for traces from before 'tiermalloc trace' wrote them */
};

/* Returns 0, or -1 after one line on standard error. */
int tm_trace_open(struct tm_trace *trace, const char *path);
void tm_trace_close(struct tm_trace *trace);

/* Event number i; ids beyond the tables are returned as 0. */
struct tm_trace_event tm_trace_event_at(const struct tm_trace *trace, uint64_t i);

#endif
