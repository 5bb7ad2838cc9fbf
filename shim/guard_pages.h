/* SPDX-License-Identifier: MIT */
/*
 * guard_pages: TIERMALLOC_GUARD=sample. Some blocks of up to 60 KiB lie in a region of their own, each
 * with its end at a page that nobody may touch, and are untouchable altogether once they are freed: the
 * first wrong access ends the program at the instruction that made it. 256 blocks at once; a place is
 * used again only after the others had their turn. No lock: any thread, any signal handler.
 */
#ifndef TM_GUARD_PAGES_H
#define TM_GUARD_PAGES_H

#include "shim/base/attrs.h"

#define TM_GUARD_PAGES_MAX ((size_t)60 << 10)

/* At boot. False: no memory, nothing is sampled. */
bool tm_guard_pages_init(void);

bool tm_guard_pages_own(const void *p);

/* Zeroed; NULL: no room, or larger or more aligned than a place is. */
void *tm_guard_pages_take(size_t size, size_t align);

/* What was asked for; 0: p is no block, or was freed. */
size_t tm_guard_pages_bytes(const void *p);

/* False: p is no block, or was freed. */
bool tm_guard_pages_give(void *p);

#endif
