/* SPDX-License-Identifier: MIT */
/*
 * early: memory for the few requests that come while the library boots.
 *
 * A static area that is handed out from the front and hardly ever taken back: the booting thread
 * that re-enters (a signal handler, an interposed function) is served from here, and so is a thread
 * that waited too long for the boot of another. Any thread, async-signal-safe, no system call.
 * A block has its size in front of it; tm_early_owns tells these blocks from all others by address.
 * Invariant (tm_early_check): the size words lead from the front of the area to its fill mark.
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

/* Zeroed memory aligned to `align` (a power of two, at least 16 is given); NULL when the area is full. */
void *tm_early_alloc(size_t align, size_t size);

/* Takes the block back if it was the last one; else it stays. */
void tm_early_free(void *p);

/* The bytes asked for, rounded up to 16; 0 for an address that is no block's start. */
size_t tm_early_usable(const void *p);

/* 0, or the source line of the invariant that does not hold. */
int tm_early_check(void);

#endif
