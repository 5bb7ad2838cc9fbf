/* SPDX-License-Identifier: MIT */
/*
 * guard_pages: TIERMALLOC_GUARD=sample. A sample of the blocks of up to 60 KiB is placed in a
 * region of its own. Each ends at an inaccessible guard page, and a freed block is inaccessible as
 * a whole, so the first overrun or use after free faults at the instruction at fault. 256 slots,
 * reused round robin to keep freed blocks inaccessible for long. No lock; any thread, any signal
 * handler.
 */
#ifndef TM_GUARD_PAGES_H
#define TM_GUARD_PAGES_H

#include "shim/base/attrs.h"

#define TM_GUARD_PAGES_MAX ((size_t)60 << 10)

/* At boot. False: no memory for the region; no block will be sampled. */
bool tm_guard_pages_init(void);

bool tm_guard_pages_own(const void *p);

/*
 * A zeroed block; NULL: the slot whose turn it is is in use, or size or align is too large for one.
 */
void *tm_guard_pages_take(size_t size, size_t align);

/* Requested bytes; 0: p is not a live block. */
size_t tm_guard_pages_bytes(const void *p);

/* Frees a block and makes it inaccessible. False: p is not a live block. */
bool tm_guard_pages_give(void *p);

#endif
