/* SPDX-License-Identifier: MIT */
/*
 * emergency: memory for whoever must not touch a heap or a lock: a signal handler that interrupted
 * an allocation function of its own thread, and a thread whose heap is just being born.
 *
 * Lock-free, from static memory that costs nothing until used; beyond it and for large requests,
 * from mappings of their own. Any thread, any context.
 */
#ifndef TM_HEAP_EMERGENCY_H
#define TM_HEAP_EMERGENCY_H

#include "shim/base/attrs.h"

/* Zeroed. `align` is a power of two. NULL without memory. */
void *tm_emergency_alloc(size_t bytes, size_t align);

/* The same in a mapping of its own, of which there are few. Needs nothing of libc and no relocation. */
void *tm_emergency_map(size_t bytes, size_t align);

bool tm_emergency_owns(const void *p);

/* What was asked for; 0 if p is no block's start. */
size_t tm_emergency_bytes(const void *p);

/* False if p is no live block. */
bool tm_emergency_free(void *p);

#endif
