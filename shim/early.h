/* SPDX-License-Identifier: MIT */
/*
 * early: a bump allocator over a static area, for requests that arrive while the library boots: of
 * the booting thread when it re-enters (signal handler, interposed function) and of a thread that
 * has waited too long for another's boot. Any thread, async-signal-safe, no system call.
 *
 * Each block is preceded by its size; tm_early_owns recognises blocks by address. Invariant
 * (tm_early_check): following the size words from the start of the area ends at its fill mark.
 */
#ifndef TM_EARLY_H
#define TM_EARLY_H

#include "shim/base/attrs.h"

#define TM_EARLY_BYTES ((size_t)64 << 10)

extern TM_HIDDEN unsigned char tm_early_area[TM_EARLY_BYTES];

TM_INLINE bool tm_early_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)tm_early_area < TM_EARLY_BYTES;
}

/* Zeroed memory. align: a power of two, raised to 16. NULL when the area is full. */
void *tm_early_alloc(size_t align, size_t size);

/* Reclaims the block if it is the last one allocated; otherwise no effect. */
void tm_early_free(void *p);

/* The requested bytes rounded up to 16; 0 if p is not the start of a block. */
size_t tm_early_usable(const void *p);

/* 0, or the source line of the violated invariant. */
int tm_early_check(void);

#endif
