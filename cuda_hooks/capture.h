/* SPDX-License-Identifier: MIT */
/*
 * capture: the streams that are being captured into a graph. While any is, the hooks must not wait
 * for, record or query anything, because that would end the capture.
 *
 * A capture ends when cuStreamEndCapture says so, with whatever result, when its stream or its
 * context is destroyed, and also if it never began. A missed end would switch the pools off for
 * good.
 */
#ifndef TM_CUDA_CAPTURE_H
#define TM_CUDA_CAPTURE_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

struct tm_capture {
	tm_cu_stream stream;
	/* thread whose per-thread default stream it is; 0: a stream of all threads */
	uintptr_t thread;
	tm_cu_context context;
};

/*
 * Which form of the driver's function the program called: stream 0 means another stream in the
 * per-thread default forms (PTDS).
 */
enum tm_capture_form { TM_CAPTURE_ANY, TM_CAPTURE_PTDS };

extern TM_HIDDEN _Atomic uint32_t tm_capture_count;

TM_INLINE bool tm_capture_any(void)
{
	return atomic_load_explicit(&tm_capture_count, memory_order_acquire) != 0;
}

struct tm_capture tm_capture_of(tm_cu_stream stream, enum tm_capture_form form);

/* Take tm_hooks_lock themselves. */
void tm_capture_begun(const struct tm_capture *capture);
void tm_capture_over(const struct tm_capture *capture);
void tm_capture_stream_gone(tm_cu_stream stream);

/* [lock] Forgets the captures of a context that has ended. */
void tm_capture_context_gone(tm_cu_context context);

#endif
