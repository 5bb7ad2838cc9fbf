/* SPDX-License-Identifier: MIT */
/*
 * capture: which streams are being captured into a graph. While one is, nothing may be waited for,
 * recorded or asked, which would end the capture.
 *
 * A capture is over when cuStreamEndCapture says so, in whatever way, when its stream or its context
 * is destroyed, and where it never began. One that is missed would switch the pools off for good.
 */
#ifndef TM_CUDA_CAPTURE_H
#define TM_CUDA_CAPTURE_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

struct tm_capture {
	tm_cu_stream stream;
	uintptr_t thread; /* whose own default stream it is; 0: anybody's */
	tm_cu_context context;
};

/* How the program named the stream: 0 means another one in the functions of the per-thread default. */
enum tm_capture_form { TM_CAPTURE_ANY, TM_CAPTURE_PTDS };

extern TM_HIDDEN _Atomic uint32_t tm_capture_count;

TM_INLINE bool tm_capture_any(void)
{
	return atomic_load_explicit(&tm_capture_count, memory_order_acquire) != 0;
}

struct tm_capture tm_capture_of(tm_cu_stream stream, enum tm_capture_form form);

/* Each takes tm_hooks_lock. */
void tm_capture_begun(const struct tm_capture *capture);
void tm_capture_over(const struct tm_capture *capture);
void tm_capture_stream_gone(tm_cu_stream stream);

/* [lock] */
void tm_capture_context_gone(tm_cu_context context);

#endif
