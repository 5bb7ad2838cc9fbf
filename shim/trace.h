/* SPDX-License-Identifier: MIT */
/*
 * trace: records every request and free into the file that TIERMALLOC_TRACE names
 * (base/trace_format.h). Chosen at boot: forms of the functions that note what they did; nothing costs
 * anything where no trace is asked for.
 *
 * A note goes into one buffer under a lock; the file is opened for each full buffer, so that no
 * descriptor stays open. A thread that is interrupted while it notes leaves out what its signal handler
 * allocates. A forked child records nothing.
 */
#ifndef TM_TRACE_H
#define TM_TRACE_H

#include "shim/base/attrs.h"

struct tm_ops;

/* At boot: puts the noting forms into `ops`, where a trace is asked for and its file can be made. */
void tm_trace_ops(struct tm_ops *ops);

/* A step begins. */
void tm_trace_step(void);

/* The process ends: what is noted goes out, and the modules' names. */
void tm_trace_end(void);

void tm_trace_fork_child(void);

#endif
