/* SPDX-License-Identifier: MIT */
/*
 * trace: records every allocation and free in the file named by TIERMALLOC_TRACE
 * (base/trace_format.h). Works by variants of the malloc family that are installed at boot, so that
 * it costs nothing when not enabled.
 *
 * Records go into one buffer, under a lock; the file is opened anew to append each full buffer, so
 * that no descriptor stays open. If a signal handler interrupts a thread that is recording, the
 * handler's allocations are not recorded. A forked child records nothing.
 */
#ifndef TM_TRACE_H
#define TM_TRACE_H

#include "shim/base/attrs.h"

struct tm_ops;

/* At boot: installs the recording variants in ops if enabled and the file can be created. */
void tm_trace_ops(struct tm_ops *ops);

/* Records the program's mark that a step begins. */
void tm_trace_step(void);

/* At process end: writes the buffer, and the process's mappings (for symbol names). */
void tm_trace_end(void);

void tm_trace_fork_child(void);

#endif
