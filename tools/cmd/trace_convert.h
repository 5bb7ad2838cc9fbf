/* SPDX-License-Identifier: MIT */
/*
 * trace_convert: converts a recording of the library (shim/base/trace_format.h) into a portable
 * trace.
 */
#ifndef TM_TOOLS_TRACE_CONVERT_H
#define TM_TOOLS_TRACE_CONVERT_H

#include "shim/base/attrs.h"

struct tm_trace_sums {
	uint64_t events, objects, unknown_frees;
};

/* Returns 0, or an exit status after one line on standard error. */
int tm_trace_convert(const char *recording, const char *trace, struct tm_trace_sums *ret);

#endif
