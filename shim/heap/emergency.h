/* SPDX-License-Identifier: MIT */
/*
 * emergency: memory for callers that must not touch a heap or a lock: a signal handler that
 * interrupted an allocation function of its own thread, and a thread whose heap is being created.
 *
 * Lock-free, from static memory that is not resident until used; beyond that and for large
 * requests, from separate mappings. Any thread, any context.
 */
#ifndef TM_HEAP_EMERGENCY_H
#define TM_HEAP_EMERGENCY_H

#include "shim/base/attrs.h"

/* Allocate zeroed memory. `align` is a power of two. NULL without memory. */
void *tm_emergency_alloc(size_t bytes, size_t align);

/*
 * The same in a separate mapping, of which there are few. Uses nothing of libc and no relocation.
 */
void *tm_emergency_map(size_t bytes, size_t align);

bool tm_emergency_owns(const void *p);

/* Requested bytes; 0 if p is no block's start. */
size_t tm_emergency_bytes(const void *p);

/* Free a block; false if p is no live block. */
bool tm_emergency_free(void *p);

#endif
